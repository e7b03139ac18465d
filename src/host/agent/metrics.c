/* metrics.c - the agent's own metrics: GET /metrics at --metrics, as OpenMetrics 1.0 text (docs/agent.md has
 * the list). Only the signals by code are counted for this; all other values are read at each request. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host/http/door.h"
#include "host/agent/internal.h"
#include "host/probes/probes.h"

#define OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
enum { CODES_MAX = 256 }; /* further codes are counted together */

struct seen {
    char code[SIGNAL_CODE_MAX + 1];
    uint64_t count;
};
struct agent_metrics {
    struct live *live;
    struct door *server; /* NULL: metrics are not served */
    VEC(struct seen) seen;
};

/* --- counting ------------------------------------------------------------------------------------------- */

static void count(struct agent_metrics *metrics, const struct signal *signal)
{
    for (size_t i = 0; i < metrics->seen.len; i++)
        if (str_is(signal->code, metrics->seen.items[i].code) || i == CODES_MAX) {
            metrics->seen.items[i].count += signal->count;
            return;
        }
    struct seen fresh = {.count = signal->count};
    bool full = metrics->seen.len == CODES_MAX;
    snprintf(fresh.code, sizeof fresh.code, STR_FORMAT, STR_ARG(full ? STR("other") : signal->code));
    vec_push(&metrics->seen, fresh);
}

void local_saw(struct live *live, const struct signal *signal)
{
    count(live->metrics, signal);
    local_step(live->machine, (struct agent_event){.kind = AGENT_SAW, .saw = signal});
}

/* --- writing -------------------------------------------------------------------------------------------- */

static void put_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# TYPE %s %s\n# HELP %s %s\n", name, type, name, help);
}

static void put_gauge(struct buf *out, const char *name, const char *help, int64_t value)
{
    put_head(out, name, "gauge", help);
    buf_printf(out, "%s %lld\n", name, (long long)value);
}

static void put_seconds(struct buf *out, const char *name, const char *label, const char *value, int64_t ns)
{
    buf_printf(out, "%s", name);
    if (label)
        buf_printf(out, "{%s=\"%s\"}", label, value);
    buf_printf(out, " %lld.%06lld\n", (long long)(ns / NS_PER_SECOND),
               (long long)(ns % NS_PER_SECOND / NS_PER_US));
}

static void put_machine(struct buf *out, const struct live *live)
{
    const struct agent *agent = live->machine->agent;
    int64_t left_ns = agent_fence(agent) - local_boot_ns();
    int busy = __builtin_popcountll(agent_busy_chips(agent));
    put_head(out, "phalanx_agent", "info", "The agent and its machine.");
    buf_printf(out, "phalanx_agent_info{machine=\"%s\",version=\"%s\"} 1\n", live->machine->name,
               this_release.version);
    put_gauge(out, "phalanx_agent_connected", "Whether a controller has accepted this agent.",
              agent_is_welcome(agent));
    put_head(out, "phalanx_agent_lease_seconds", "gauge", "Until tasks end by themselves.");
    put_seconds(out, "phalanx_agent_lease_seconds", NULL, NULL, left_ns > 0 ? left_ns : 0);
    put_gauge(out, "phalanx_agent_tasks", "Tasks that wait, start, run or stop.",
              (int64_t)agent_live_tasks(agent));
    put_head(out, "phalanx_agent_chips", "gauge", "Chips of the machine by what they do.");
    buf_printf(out, "phalanx_agent_chips{state=\"busy\"} %d\nphalanx_agent_chips{state=\"free\"} %d\n", busy,
               (int)live->chips - busy);
}

static void put_process(struct buf *out)
{
    struct rusage used;
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*d %lld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    put_gauge(out, "phalanx_agent_memory_bytes", "Memory of this process.", pages * sysconf(_SC_PAGESIZE));
    if (getrusage(RUSAGE_SELF, &used) < 0)
        return;
    int64_t us = (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec +
                 used.ru_stime.tv_usec;
    put_head(out, "phalanx_agent_cpu_seconds", "counter", "Processor time of this process.");
    put_seconds(out, "phalanx_agent_cpu_seconds_total", NULL, NULL, us * NS_PER_US);
}

enum figure { RUNS, COST, COST_MOST, TIMEOUTS, OFF, CONDITIONS, HUNG, FIGURES };

static void put_standing(struct buf *out, enum figure figure, const struct probes_standing *probe)
{
    static const char *const samples[FIGURES] = {"phalanx_agent_probe_runs_total",
                                                 "phalanx_agent_probe_cpu_seconds_total",
                                                 "phalanx_agent_probe_cpu_seconds_max",
                                                 "phalanx_agent_probe_timeouts_total",
                                                 "phalanx_agent_probe_off",
                                                 "phalanx_agent_conditions",
                                                 "phalanx_agent_probe_hung"};
    const int64_t values[FIGURES] = {[RUNS] = (int64_t)probe->runs,
                                     [TIMEOUTS] = (int64_t)probe->timeouts,
                                     [OFF] = probe->off,
                                     [CONDITIONS] = probe->conditions,
                                     [HUNG] = probe->hung};
    if (figure == COST || figure == COST_MOST)
        put_seconds(out, samples[figure], "probe", probe->name,
                    figure == COST ? probe->cost_sum_ns : probe->cost_most_ns);
    else
        buf_printf(out, "%s{probe=\"%s\"} %lld\n", samples[figure], probe->name, (long long)values[figure]);
}

static void put_probes(struct buf *out, const struct probes *probes)
{
    static const char *const heads[FIGURES][3] = {
        {"phalanx_agent_probe_runs", "counter", "Looks that were finished."},
        {"phalanx_agent_probe_cpu_seconds", "counter", "Processor time of looks, children included."},
        {"phalanx_agent_probe_cpu_seconds_max", "gauge", "Of the dearest look."},
        {"phalanx_agent_probe_timeouts", "counter", "Looks that did not end in time."},
        {"phalanx_agent_probe_off", "gauge", "1 while the probe is off because it costs too much."},
        {"phalanx_agent_conditions", "gauge", "Conditions that last now."},
        {"phalanx_agent_probe_hung", "gauge", "Children that were killed and do not die."}};
    for (int figure = 0; figure < FIGURES; figure++) {
        put_head(out, heads[figure][0], heads[figure][1], heads[figure][2]);
        for (size_t i = 0; i < probes_count(); i++) {
            struct probes_standing standing;
            probes_standing(probes, i, &standing);
            if (standing.enabled)
                put_standing(out, (enum figure)figure, &standing);
        }
    }
}

static void on_request(void *context, const struct door_request *request, struct door_answer *answer)
{
    const struct agent_metrics *metrics = context;
    const struct probes *probes = local_health_probes(metrics->live);
    struct buf *out = &answer->body;
    if (!str_is(request->path, "/metrics") || !str_is(request->method, "GET")) {
        answer->code = str_is(request->path, "/metrics") ? 405 : 404;
        buf_printf(out, "there is GET /metrics\n");
        return;
    }
    answer->type = OPENMETRICS;
    put_machine(out, metrics->live);
    put_process(out);
    if (probes)
        put_probes(out, probes);
    put_head(out, "phalanx_agent_signals", "counter", "What was seen on the machine, by code.");
    for (size_t i = 0; i < metrics->seen.len; i++)
        buf_printf(out, "phalanx_agent_signals_total{code=\"%s\"} %llu\n", metrics->seen.items[i].code,
                   (unsigned long long)metrics->seen.items[i].count);
    buf_printf(out, "# EOF\n");
}

/* --- coming and going ----------------------------------------------------------------------------------- */

int local_metrics_new(struct live *live, const struct agent_host_options *options, struct error *error)
{
    struct agent_metrics *metrics = live->metrics = mem_alloc(sizeof *metrics);
    metrics->live = live;
    if (!options->metrics_address)
        return 0;
    int rc = door_open_tcp(live->machine->host->loop, options->metrics_address, options->metrics_port,
                           on_request, metrics, &metrics->server, NULL, error);
    if (rc == 0)
        live->machine->host->open_parts++;
    return rc < 0 ? error_wrap(error, "--metrics") : 0;
}

static void on_closed(void *context)
{
    local_part_closed(context);
}

void local_metrics_close(struct live *live)
{
    struct agent_metrics *metrics = live->metrics;
    if (!metrics || !metrics->server)
        return;
    door_close(metrics->server, on_closed, live->machine->host);
    metrics->server = NULL;
}

void local_metrics_free(struct live *live)
{
    if (!live->metrics)
        return;
    vec_done(&live->metrics->seen);
    mem_free(live->metrics);
    live->metrics = NULL;
}
