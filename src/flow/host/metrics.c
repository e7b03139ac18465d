#include "flow/host/metrics.h"

#include <pthread.h>

#include "base/units.h"
#include "flow/island/machine.h"
#include "flow/wire/loop.h"

/* --- text ----------------------------------------------------------------------------------------------- */

static void metric_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# TYPE %s %s\n# HELP %s %s\n", name, type, name, help);
}

static void metric_count(struct buf *out, const char *name, const char *help, uint64_t value)
{
    metric_head(out, name, "counter", help);
    buf_printf(out, "%s_total %llu\n", name, (unsigned long long)value);
}

static void metric_seconds(struct buf *out, uint64_t ns)
{
    buf_printf(out, "%llu.%09llu", (unsigned long long)(ns / (uint64_t)NS_PER_SECOND),
               (unsigned long long)(ns % (uint64_t)NS_PER_SECOND));
}

/* Appends the escaped value of a label. */
static void metric_label(struct buf *out, const char *text)
{
    buf_add_char(out, '"');
    for (; *text; text++) {
        if (*text == '\n') {
            buf_add_str(out, STR("\\n"));
            continue;
        }
        if (*text == '"' || *text == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, *text);
    }
    buf_add_char(out, '"');
}

static void metric_histogram(struct buf *out, const char *name, const char *help,
                             const struct flow_histogram *histogram)
{
    uint64_t sum = 0;
    metric_head(out, name, "histogram", help);
    for (int i = 0; i < STATUS_BUCKETS; i++) {
        sum += histogram->buckets[i];
        buf_printf(out, "%s_bucket{le=\"%g\"} %llu\n", name, (double)flow_status_bounds[i] / 1e9,
                   (unsigned long long)sum);
    }
    buf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum ", name, (unsigned long long)histogram->count, name);
    metric_seconds(out, histogram->sum_ns);
    buf_printf(out, "\n%s_count %llu\n", name, (unsigned long long)histogram->count);
}

static void metrics_write_head(const struct flow_status *status, struct buf *out)
{
    const struct flow_status_tally *tally = &status->tally;
    metric_count(out, "phalanx_flow_launches", "Launches that are over.", tally->launches);
    metric_count(out, "phalanx_flow_failed_launches",
                 "Launches that got no ticket, or whose gang lost a member.", tally->failed);
    metric_histogram(out, "phalanx_flow_launch_wait_seconds", "From a launch's arrival until its ticket.",
                     &status->waits);
    metric_histogram(out, "phalanx_flow_launch_seconds",
                     "From a launch's arrival until all hosts of its gang were through.", &status->times);
    metric_head(out, "phalanx_flow_joins", "counter",
                "Hosts and clients that came; again: known to a head before this one.");
    buf_printf(out,
               "phalanx_flow_joins_total{who=\"host\",again=\"no\"} %llu\n"
               "phalanx_flow_joins_total{who=\"host\",again=\"yes\"} %llu\n"
               "phalanx_flow_joins_total{who=\"client\",again=\"no\"} %llu\n"
               "phalanx_flow_joins_total{who=\"client\",again=\"yes\"} %llu\n",
               (unsigned long long)tally->hosts_came, (unsigned long long)tally->hosts_back,
               (unsigned long long)tally->clients_came, (unsigned long long)tally->clients_back);
    metric_count(out, "phalanx_flow_lost_hosts", "Hosts whose connection to the head has ended.",
                 tally->hosts_lost);
    metric_count(out, "phalanx_flow_gone_clients", "Clients that have ended.", tally->clients_gone);
    metric_count(out, "phalanx_flow_broken_connections",
                 "Connections between hosts, or of a client to a host, that broke.", tally->breaks);
    metric_count(out, "phalanx_flow_lowerings", "Times that a program was lowered.", tally->lowerings);
    metric_count(out, "phalanx_flow_spills", "Values that left devices for host memory.", tally->spills);
    metric_count(out, "phalanx_flow_fills", "Values that came back to devices.", tally->fills);
    metric_count(out, "phalanx_flow_moved_meshes", "Times that a mesh got other devices.", tally->remaps);
    metric_head(out, "phalanx_flow_tickets", "counter", "Tickets stamped, by island.");
    for (size_t i = 0; i < status->islands.len; i++) {
        buf_add_str(out, STR("phalanx_flow_tickets_total{island="));
        metric_label(out, status->islands.items[i].name);
        buf_printf(out, "} %llu\n", (unsigned long long)status->islands.items[i].tickets);
    }
}

/* Appends a metric with one sample for each host: the number at `offset` of its row. */
static void metrics_write_hosts(const struct flow_status *status, const char *name, const char *type,
                                const char *help, size_t offset, struct buf *out)
{
    metric_head(out, name, type, help);
    for (size_t i = 0; i < status->hosts.len; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&status->hosts.items[i] + offset, sizeof value);
        buf_printf(out, "%s%s{host=\"%u\"} %llu\n", name, str_is(STR("counter"), type) ? "_total" : "",
                   status->hosts.items[i].number, (unsigned long long)value);
    }
}

static void metrics_write_all_hosts(const struct flow_status *status, struct buf *out)
{
    static const struct {
        const char *name, *type, *help;
        size_t offset;
    } of_hosts[] = {
        {"phalanx_flow_runs", "counter", "Calls of functions.", offsetof(struct flow_status_host, runs)},
        {"phalanx_flow_failed_runs", "counter", "Calls of functions that failed.",
         offsetof(struct flow_status_host, failed_runs)},
        {"phalanx_flow_sent_bytes", "counter", "Of shards, to other hosts.",
         offsetof(struct flow_status_host, sent_bytes)},
        {"phalanx_flow_received_bytes", "counter", "Of shards, from other hosts.",
         offsetof(struct flow_status_host, received_bytes)},
        {"phalanx_flow_put_bytes", "counter", "Of shards, from clients.",
         offsetof(struct flow_status_host, put_bytes)},
        {"phalanx_flow_fetched_bytes", "counter", "Of shards, to clients.",
         offsetof(struct flow_status_host, fetched_bytes)},
        {"phalanx_flow_compiled_functions", "counter", "Functions compiled.",
         offsetof(struct flow_status_host, compiled)},
        {"phalanx_flow_reused_functions", "counter", "Functions found compiled for the same text.",
         offsetof(struct flow_status_host, reused)},
        {"phalanx_flow_values", "gauge", "Values of which the host holds shards.",
         offsetof(struct flow_status_host, values)},
        {"phalanx_flow_shards", "gauge", "Shards that the host holds, or that are to come.",
         offsetof(struct flow_status_host, cells)},
        {"phalanx_flow_device_memory_bytes", "gauge", "Of one device of the host.",
         offsetof(struct flow_status_host, device_bytes)},
        {"phalanx_flow_host_memory_bytes", "gauge", "Of the host, for values that leave its devices.",
         offsetof(struct flow_status_host, host_bytes)},
        {"phalanx_flow_host_used_bytes", "gauge", "Of it, by such values.",
         offsetof(struct flow_status_host, spilled_bytes)},
        {"phalanx_flow_spilled_bytes", "counter", "Of values, from the host's devices to its memory.",
         offsetof(struct flow_status_host, spilled_in_all)},
        {"phalanx_flow_filled_bytes", "counter", "Of values, from the host's memory to its devices.",
         offsetof(struct flow_status_host, filled_in_all)},
    };
    for (size_t i = 0; i < sizeof of_hosts / sizeof *of_hosts; i++)
        metrics_write_hosts(status, of_hosts[i].name, of_hosts[i].type, of_hosts[i].help, of_hosts[i].offset,
                            out);
}

static void metrics_write_devices(const struct flow_status *status, struct buf *out)
{
    metric_head(out, "phalanx_flow_device_busy_seconds", "counter", "Time in functions.");
    for (size_t i = 0; i < status->devices.len; i++) {
        const struct flow_status_device *device = &status->devices.items[i];
        buf_printf(out, "phalanx_flow_device_busy_seconds_total{host=\"%u\",device=\"%u\"} ", device->host,
                   device->number);
        metric_seconds(out, device->busy_ns);
        buf_add_char(out, '\n');
    }
    metric_head(out, "phalanx_flow_device_used_bytes", "gauge", "By values, and reserved by launches.");
    for (size_t i = 0; i < status->devices.len; i++)
        buf_printf(out, "phalanx_flow_device_used_bytes{host=\"%u\",device=\"%u\"} %lld\n",
                   status->devices.items[i].host, status->devices.items[i].number,
                   (long long)status->devices.items[i].used_bytes);
    metric_head(out, "phalanx_flow_device_queue", "gauge", "Runs that wait for the device, or are in it.");
    for (size_t i = 0; i < status->devices.len; i++)
        buf_printf(out, "phalanx_flow_device_queue{host=\"%u\",device=\"%u\"} %u\n",
                   status->devices.items[i].host, status->devices.items[i].number,
                   status->devices.items[i].queued);
}

enum tenant_metric {
    TENANT_CLIENTS,
    TENANT_SUSPENDED,
    TENANT_QUEUED,
    TENANT_RUNNING,
    TENANT_LAUNCHES,
    TENANT_FAILED,
    TENANT_SECONDS,
    TENANT_METRICS
};

static void metrics_write_tenants(const struct flow_status *status, struct buf *out)
{
    static const char *const heads[TENANT_METRICS][4] = {
        {"phalanx_flow_tenant_clients", "gauge", "Clients of the name.", ""},
        {"phalanx_flow_tenant_suspended_clients", "gauge", "Clients that have left their devices.", ""},
        {"phalanx_flow_tenant_queued_launches", "gauge", "Launches without a ticket yet.", ""},
        {"phalanx_flow_tenant_running_launches", "gauge", "Launches with a ticket, not over.", ""},
        {"phalanx_flow_tenant_launches", "counter", "Launches that are over.", "_total"},
        {"phalanx_flow_tenant_failed_launches", "counter", "As phalanx_flow_failed_launches.", "_total"},
        {"phalanx_flow_tenant_device_seconds", "counter", "Device time used.", "_total"}};
    for (int m = 0; m < TENANT_METRICS; m++) {
        metric_head(out, heads[m][0], heads[m][1], heads[m][2]);
        for (size_t i = 0; i < status->tenants.len; i++) {
            const struct flow_status_tenant *tenant = &status->tenants.items[i];
            const uint64_t values[TENANT_SECONDS] = {tenant->clients, tenant->suspended, tenant->queued,
                                                     tenant->running, tenant->launches,  tenant->failed};
            buf_printf(out, "%s%s{tenant=", heads[m][0], heads[m][3]);
            metric_label(out, tenant->name);
            buf_add_str(out, STR("} "));
            if (m == TENANT_SECONDS)
                metric_seconds(out, tenant->device_ns);
            else
                buf_printf(out, "%llu", (unsigned long long)values[m]);
            buf_add_char(out, '\n');
        }
    }
}

void flow_metrics_write(const struct flow_status *status, struct buf *out)
{
    metrics_write_head(status, out);
    metrics_write_all_hosts(status, out);
    metrics_write_devices(status, out);
    metrics_write_tenants(status, out);
    buf_add_str(out, STR("# EOF\n"));
}

/* --- requests from other threads ------------------------------------------------------------------------ */

struct flow_desk {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    struct loop *loop; /* NULL: no head */
    uint64_t asked, answered;
    struct buf text; /* the last answer */
};

struct flow_desk *flow_desk_new(void)
{
    struct flow_desk *desk = mem_alloc(sizeof *desk);
    pthread_mutex_init(&desk->mutex, NULL);
    pthread_cond_init(&desk->moved, NULL);
    return desk;
}

void flow_desk_free(struct flow_desk *desk)
{
    if (!desk)
        return;
    CHECK(!desk->loop);
    buf_done(&desk->text);
    pthread_cond_destroy(&desk->moved);
    pthread_mutex_destroy(&desk->mutex);
    mem_free(desk);
}

bool flow_desk_ask(struct flow_desk *desk, struct buf *out)
{
    pthread_mutex_lock(&desk->mutex);
    uint64_t mine = ++desk->asked;
    if (desk->loop)
        loop_wake(desk->loop);
    while (desk->loop && desk->answered < mine)
        pthread_cond_wait(&desk->moved, &desk->mutex);
    bool told = desk->answered >= mine;
    if (told)
        buf_add_str(out, buf_str(&desk->text));
    pthread_mutex_unlock(&desk->mutex);
    return told;
}

void flow_desk_open(struct flow_desk *desk, struct loop *loop)
{
    pthread_mutex_lock(&desk->mutex);
    desk->loop = loop;
    pthread_mutex_unlock(&desk->mutex);
}

void flow_desk_answer(struct flow_desk *desk, const struct head *head)
{
    pthread_mutex_lock(&desk->mutex);
    if (desk->answered < desk->asked) {
        struct flow_status status = {0};
        head_status(head, &status);
        buf_clear(&desk->text);
        flow_metrics_write(&status, &desk->text);
        flow_status_done(&status);
        desk->answered = desk->asked;
        pthread_cond_broadcast(&desk->moved);
    }
    pthread_mutex_unlock(&desk->mutex);
}

void flow_desk_close(struct flow_desk *desk)
{
    pthread_mutex_lock(&desk->mutex);
    desk->loop = NULL;
    pthread_cond_broadcast(&desk->moved);
    pthread_mutex_unlock(&desk->mutex);
}
