/* The binary form of a head's status. One walk over the fields either writes or reads them. */
#include "flow/island/status.h"

#include "flow/ir/pack.h"

enum { STATUS_VERSION = 4, STATUS_ROWS_MAX = 1 << 24 };

const int64_t flow_status_bounds[STATUS_BUCKETS] = {20000,    50000,     100000,     200000,
                                                    500000,   1000000,   2000000,    5000000,
                                                    10000000, 100000000, 1000000000, 10000000000};

void flow_histogram_add(struct flow_histogram *histogram, int64_t time_ns)
{
    if (time_ns < 0)
        time_ns = 0;
    histogram->count++;
    histogram->sum_ns += (uint64_t)time_ns;
    for (int i = 0; i < STATUS_BUCKETS; i++)
        if (time_ns <= flow_status_bounds[i]) {
            histogram->buckets[i]++;
            return;
        }
}

/* Writes to `out`, or reads from `in` if `out` is NULL. */
struct status_walk {
    struct buf *out;
    struct unpack in;
};

static void walk_u32(struct status_walk *walk, uint32_t *value, uint32_t max)
{
    if (walk->out)
        pack_u32(walk->out, *value);
    else
        *value = unpack_u32(&walk->in, max);
}

static void walk_u64(struct status_walk *walk, uint64_t *value)
{
    if (walk->out)
        pack_u64(walk->out, *value);
    else
        *value = unpack_u64(&walk->in, UINT64_MAX);
}

static void walk_i64(struct status_walk *walk, int64_t *value)
{
    uint64_t bits = (uint64_t)*value;
    walk_u64(walk, &bits);
    *value = (int64_t)bits;
}

static void walk_text(struct status_walk *walk, char text[STATUS_NAME_MAX + 1])
{
    uint32_t len = walk->out ? (uint32_t)strlen(text) : 0;
    walk_u32(walk, &len, STATUS_NAME_MAX);
    if (walk->out) {
        buf_add(walk->out, text, len);
        return;
    }
    const void *bytes = unpack_bytes(&walk->in, len);
    if (bytes)
        memcpy(text, bytes, len);
}

/* Writes or reads the length of a list whose rows take at least `size` bytes each. */
static uint32_t walk_count(struct status_walk *walk, size_t count, size_t size)
{
    if (!walk->out)
        return unpack_count(&walk->in, STATUS_ROWS_MAX, size);
    pack_u32(walk->out, (uint32_t)count);
    return (uint32_t)count;
}

static void walk_histogram(struct status_walk *walk, struct flow_histogram *histogram)
{
    for (int i = 0; i < STATUS_BUCKETS; i++)
        walk_u64(walk, &histogram->buckets[i]);
    walk_u64(walk, &histogram->count);
    walk_u64(walk, &histogram->sum_ns);
}

static void walk_tally(struct status_walk *walk, struct flow_status_tally *tally)
{
    uint64_t *fields[] = {&tally->hosts_came,   &tally->hosts_lost,   &tally->hosts_back,
                          &tally->clients_came, &tally->clients_gone, &tally->clients_back,
                          &tally->breaks,       &tally->lowerings,    &tally->remaps,
                          &tally->spills,       &tally->fills,        &tally->launches,
                          &tally->failed};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        walk_u64(walk, fields[i]);
}

static void walk_island(struct status_walk *walk, struct flow_status_island *island)
{
    walk_text(walk, island->name);
    walk_u64(walk, &island->tickets);
    walk_u32(walk, &island->running, UINT32_MAX);
    walk_u32(walk, &island->window, UINT32_MAX);
}

static void walk_host(struct status_walk *walk, struct flow_status_host *host, uint32_t islands)
{
    uint64_t *fields[] = {&host->device_bytes,   &host->host_bytes,    &host->spilled_bytes,
                          &host->spilled_in_all, &host->filled_in_all, &host->runs,
                          &host->failed_runs,    &host->sent_bytes,    &host->received_bytes,
                          &host->put_bytes,      &host->fetched_bytes, &host->compiled,
                          &host->reused,         &host->values,        &host->cells};
    walk_u32(walk, &host->number, UINT32_MAX);
    walk_u32(walk, &host->island, islands - 1);
    walk_u32(walk, &host->incarnation, UINT32_MAX);
    walk_u32(walk, &host->first_device, UINT32_MAX);
    walk_u32(walk, &host->device_count, UINT32_MAX);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        walk_u64(walk, fields[i]);
    walk_text(walk, host->address);
}

static void walk_device(struct status_walk *walk, struct flow_status_device *device)
{
    walk_u32(walk, &device->host, UINT32_MAX);
    walk_u32(walk, &device->number, UINT32_MAX);
    walk_u32(walk, &device->load, UINT32_MAX);
    walk_u32(walk, &device->queued, UINT32_MAX);
    walk_i64(walk, &device->used_bytes);
    walk_u64(walk, &device->busy_ns);
}

static void walk_tenant(struct status_walk *walk, struct flow_status_tenant *tenant)
{
    walk_text(walk, tenant->name);
    walk_u32(walk, &tenant->clients, UINT32_MAX);
    walk_u32(walk, &tenant->suspended, UINT32_MAX);
    walk_u64(walk, &tenant->launches);
    walk_u64(walk, &tenant->failed);
    walk_u64(walk, &tenant->queued);
    walk_u64(walk, &tenant->running);
    walk_u64(walk, &tenant->device_ns);
}

static void walk_client(struct status_walk *walk, struct flow_status_client *client, uint32_t tenants)
{
    uint32_t priority = (uint32_t)client->priority, away = client->away;
    walk_u32(walk, &client->id, UINT32_MAX);
    walk_u32(walk, &client->weight, UINT32_MAX);
    walk_u32(walk, &client->tenant, tenants - 1);
    walk_u32(walk, &priority, UINT32_MAX);
    walk_u32(walk, &away, 1);
    client->priority = (int32_t)priority;
    client->away = away != 0;
    walk_u64(walk, &client->queued);
    walk_u64(walk, &client->running);
    walk_u64(walk, &client->launches);
    walk_u64(walk, &client->values);
    walk_u64(walk, &client->programs);
    walk_u64(walk, &client->device_ns);
}

static void walk_program(struct status_walk *walk, struct flow_status_program *program)
{
    walk_u32(walk, &program->client, UINT32_MAX);
    walk_u32(walk, &program->number, UINT32_MAX);
    walk_u32(walk, &program->calls, UINT32_MAX);
    walk_text(walk, program->name);
    walk_u64(walk, &program->launches);
    walk_u64(walk, &program->device_ns);
    walk_u64(walk, &program->estimate_ns);
}

/* Walks a list. When reading, the list grows row by row, and the walk stops at the end of the bytes. */
#define WALK_LIST(walk, list, least, call)                                                                   \
    for (uint32_t count_ = walk_count(walk, (list)->len, least), i = 0; i < count_ && !(walk)->in.bad;       \
         i++) {                                                                                              \
        if (!(walk)->out) {                                                                                  \
            vec_reserve(list, i + 1);                                                                        \
            memset(&(list)->items[i], 0, sizeof *(list)->items);                                             \
            (list)->len = i + 1;                                                                             \
        }                                                                                                    \
        call;                                                                                                \
    }

static void walk_status(struct status_walk *walk, struct flow_status *status)
{
    walk_i64(walk, &status->now_ns);
    walk_i64(walk, &status->began_ns);
    walk_tally(walk, &status->tally);
    walk_histogram(walk, &status->waits);
    walk_histogram(walk, &status->times);
    WALK_LIST(walk, &status->islands, 20, walk_island(walk, &status->islands.items[i]))
    uint32_t islands = (uint32_t)status->islands.len;
    WALK_LIST(walk, &status->hosts, 144, walk_host(walk, &status->hosts.items[i], islands))
    WALK_LIST(walk, &status->devices, 32, walk_device(walk, &status->devices.items[i]))
    WALK_LIST(walk, &status->tenants, 52, walk_tenant(walk, &status->tenants.items[i]))
    uint32_t tenants = (uint32_t)status->tenants.len;
    WALK_LIST(walk, &status->clients, 68, walk_client(walk, &status->clients.items[i], tenants))
    WALK_LIST(walk, &status->programs, 40, walk_program(walk, &status->programs.items[i]))
}

void flow_status_encode(const struct flow_status *status, struct buf *out)
{
    buf_add_str(out, STR("PHXT"));
    pack_u32(out, STATUS_VERSION);
    struct flow_status copy = *status; /* the walk does not write to it here, but takes no const */
    walk_status(&(struct status_walk){.out = out}, &copy);
}

int flow_status_decode(struct str bytes, struct flow_status *ret_status, struct error *error)
{
    struct status_walk walk = {.in = {bytes.data, bytes.len, false}};
    const char *magic = unpack_bytes(&walk.in, 4);
    uint32_t version = unpack_u32(&walk.in, UINT32_MAX);
    if (walk.in.bad || memcmp(magic, "PHXT", 4) != 0)
        return error_set(error, ERROR_CORRUPT, "the head's status cannot be read");
    if (version != STATUS_VERSION)
        return error_set(error, ERROR_UNSUPPORTED, "the head's status has version %u, this program reads %d",
                         version, STATUS_VERSION);
    walk_status(&walk, ret_status);
    bool lost = (ret_status->hosts.len > 0 && ret_status->islands.len == 0) ||
                (ret_status->clients.len > 0 && ret_status->tenants.len == 0);
    if (walk.in.bad || walk.in.left > 0 || lost)
        return error_set(error, ERROR_CORRUPT, "the head's status cannot be read");
    return 0;
}

void flow_status_done(struct flow_status *status)
{
    vec_done(&status->islands);
    vec_done(&status->hosts);
    vec_done(&status->devices);
    vec_done(&status->tenants);
    vec_done(&status->clients);
    vec_done(&status->programs);
}
