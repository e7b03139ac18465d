/* commit.c - the queue of events and its group commit: log first, then the core, then effects. */
#include "core/record.h"
#include "host/controller/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* One commit's size, so that none takes long or much memory. */
enum { TURN_RECORDS_MAX = 4096, TURN_BYTES_MAX = 32 * 1024 * 1024 };
/* What agents said while the log takes nothing is kept up to here; beyond, reports are thrown away and their
 * agents are made to say hello again once there is room (machines.c). 16,384 machines that lose all their
 * tasks fill a tenth. */
enum { QUEUE_BYTES_MAX = 256 * 1024 * 1024 };
#define BLOCKED_RETRY_NS    (200 * NS_PER_MS)
#define TRIM_PERIOD_NS      (60 * NS_PER_SECOND)
#define KEEP_LOG_DEFAULT_NS (7 * 86400 * NS_PER_SECOND)
enum { SNAPSHOT_EVERY_DEFAULT = 20000 };

/* --- the queue -------------------------------------------------------------------------------- */

struct pending *pending_new(enum event_kind kind)
{
    struct pending *pending = mem_alloc(sizeof(*pending));
    pending->event.kind = kind;
    pending->machine = MACHINE_NONE;
    return pending;
}

static size_t pending_bytes(const struct pending *pending)
{
    return sizeof(*pending) + pending->arena.used_bytes;
}

void commit_queue(struct controller *controller, struct pending *pending)
{
    controller->queue_bytes += pending_bytes(pending);
    controller->queued_writes += pending->event.kind == EVENT_WRITE;
    controller->tick_queued |= pending->event.kind == EVENT_TICK;
    if (pending->machine != MACHINE_NONE) {
        struct link *link = &controller->links[pending->machine];
        link->hellos += pending->event.kind == EVENT_MACHINE_HELLO;
        link->queued += pending->conn != NULL;
    }
    vec_push(&controller->queue, pending);
}

void commit_queue_first(struct controller *controller, struct pending *pending)
{
    CHECK(pending->machine == MACHINE_NONE && !pending->conn);
    commit_queue(controller, pending);
    struct pending **items = controller->queue.items;
    memmove(&items[1], &items[0], (controller->queue.len - 1) * sizeof(*items));
    items[0] = pending;
}

/* It has left the queue: takes it off the books. */
static void pending_free(struct controller *controller, struct pending *pending)
{
    CHECK(controller->queue_bytes >= pending_bytes(pending));
    controller->queue_bytes -= pending_bytes(pending);
    controller->queued_writes -= pending->event.kind == EVENT_WRITE;
    if (pending->event.kind == EVENT_TICK)
        controller->tick_queued = false;
    if (pending->machine != MACHINE_NONE) {
        struct link *link = &controller->links[pending->machine];
        link->hellos -= pending->event.kind == EVENT_MACHINE_HELLO;
        link->queued -= pending->conn != NULL;
    }
    arena_done(&pending->arena);
    mem_free(pending);
}

bool commit_has_room(const struct controller *controller)
{
    return controller->queue_bytes < QUEUE_BYTES_MAX;
}

void commit_forget_conn(struct controller *controller, struct link *link)
{
    for (size_t i = 0; link->queued > 0 && i < controller->queue.len; i++)
        if (controller->queue.items[i]->conn == link->conn) {
            controller->queue.items[i]->conn = NULL;
            link->queued--;
        }
    CHECK(link->queued == 0);
}

void commit_forget_hellos(struct controller *controller, machine_id machine)
{
    if (controller->links[machine].hellos == 0)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < controller->queue.len; i++) {
        struct pending *pending = controller->queue.items[i];
        if (pending->event.kind == EVENT_MACHINE_HELLO && pending->machine == machine)
            pending_free(controller, pending);
        else
            controller->queue.items[kept++] = pending;
    }
    controller->queue.len = kept;
}

/* --- when the log takes nothing --------------------------------------------------------------- */

/* Writes are answered at once; what agents said waits: they will not say it again on this connection. */
static void refuse_writes(struct controller *controller)
{
    bool full = controller->blocked.code == ERROR_NO_SPACE;
    char why[ERROR_TEXT_MAX + 96];
    snprintf(why, sizeof(why), "the controller's log cannot take the write now: %s%s",
             controller->blocked.text, full ? "; free some space and try again" : "");
    size_t kept = 0;
    for (size_t i = 0; i < controller->queue.len; i++) {
        struct pending *pending = controller->queue.items[i];
        if (pending->event.kind != EVENT_WRITE || !pending->request) {
            controller->queue.items[kept++] = pending;
            continue;
        }
        api_reply_error(pending->request, full ? 507 : 503,
                        full ? "InsufficientStorage" : "ServiceUnavailable", why);
        pending_free(controller, pending);
    }
    controller->queue.len = kept;
}

static void log_blocked(struct controller *controller, const struct error *error)
{
    controller->blocked = *error;
    if (!controller->blocked_since_ns) {
        controller->blocked_since_ns = controller_mono_ns();
        fprintf(stderr, "error: the log takes no records: %s; writes are refused until it does\n",
                error->text);
    }
    controller->retry_ns = controller_mono_ns() + BLOCKED_RETRY_NS;
    if (controller->api)
        api_log_refuses(controller->api, error->text);
}

static void log_works(struct controller *controller)
{
    if (controller->blocked_since_ns)
        fprintf(stderr, "the log takes records again after %.1f s\n",
                (double)(controller_mono_ns() - controller->blocked_since_ns) / 1e9);
    controller->blocked_since_ns = controller->retry_ns = 0;
    if (controller->api)
        api_log_refuses(controller->api, NULL);
}

/* --- the commit ------------------------------------------------------------------------------- */

static size_t turn_count(const struct controller *controller)
{
    size_t count = 0, bytes = 0;
    while (count < controller->queue.len && count < TURN_RECORDS_MAX && bytes < TURN_BYTES_MAX)
        bytes += pending_bytes(controller->queue.items[count++]);
    return count;
}

/* Stamps and encodes the first `count` queued events, and makes them durable. */
static int append(struct controller *controller, size_t count, struct error *error)
{
    struct store_record *records = mem_alloc(count * sizeof(*records));
    struct buf bytes BUF_CLEANUP = {0};
    size_t *starts = mem_alloc((count + 1) * sizeof(*starts));
    int64_t stamp_ns = controller_stamp_ns(controller);
    for (size_t i = 0; i < count; i++) {
        struct event *event = &controller->queue.items[i]->event;
        event->seq = core_seq(controller->core) + 1 + i;
        event->stamp_ns = stamp_ns;
        starts[i] = bytes.len;
        record_encode(&bytes, event);
    }
    starts[count] = bytes.len;
    for (size_t i = 0; i < count; i++)
        records[i] = (struct store_record){core_seq(controller->core) + 1 + i,
                                           stamp_ns,
                                           {bytes.data + starts[i], starts[i + 1] - starts[i]}};
    int rc = store_append(controller->store, records, count, error);
    mem_free(starts);
    mem_free(records);
    return rc;
}

static void apply(struct controller *controller, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct pending *pending = controller->queue.items[i];
        core_step(controller->core, &pending->event, &controller->effects);
        effects_carry_out(controller, pending);
        pending_free(controller, pending);
    }
    controller->queue.len -= count;
    memmove(controller->queue.items, controller->queue.items + count,
            controller->queue.len * sizeof(*controller->queue.items));
}

static void commit_all(struct controller *controller)
{
    while (controller->queue.len > 0) {
        size_t count = turn_count(controller);
        struct error error = {0};
        int rc = append(controller, count, &error);
        if (rc == ERROR_NO_SPACE || rc == ERROR_UNAVAILABLE) {
            log_blocked(controller, &error);
            refuse_writes(controller);
            return;
        }
        if (rc < 0) { /* what is durable is unknown: the next start finds out */
            fprintf(stderr, "fatal: the log cannot be written: %s\n", error.text);
            _exit(EXIT_FAILURE);
        }
        log_works(controller);
        apply(controller, count);
    }
}

void commit_turn(struct controller *controller)
{
    if (!controller->retry_ns || controller_mono_ns() >= controller->retry_ns)
        commit_all(controller);
    else if (controller->queued_writes > 0)
        refuse_writes(controller);
    if (controller->api)
        api_flush(controller->api);
}

/* --- snapshots and trimming, a slice a turn --------------------------------------------------- */

static void snapshot_end(struct controller *controller)
{
    store_snapshot_writer_free(controller->snapshot);
    controller->snapshot = NULL;
    buf_done(&controller->snapshot_bytes);
}

static void snapshot_slice(struct controller *controller)
{
    struct error error = {0};
    int rc = store_snapshot_step(controller->snapshot, &error);
    if (rc > 0)
        return;
    if (rc < 0)
        fprintf(stderr, "warning: a snapshot was not saved: %s\n", error.text);
    snapshot_end(controller);
    controller->trimming = true;
}

static void snapshot_begin(struct controller *controller)
{
    struct error error = {0};
    uint64_t seq = core_seq(controller->core);
    controller->snapshot_seq = seq;
    core_snapshot_write(controller->core, &controller->snapshot_bytes);
    if (store_snapshot_begin(controller->store, seq, core_now(controller->core),
                             buf_str(&controller->snapshot_bytes), &controller->snapshot, &error) < 0) {
        fprintf(stderr, "warning: a snapshot could not be begun: %s\n", error.text);
        buf_done(&controller->snapshot_bytes);
    }
}

void commit_maintain(struct controller *controller)
{
    uint32_t every =
        controller->options.snapshot_every ? controller->options.snapshot_every : SNAPSHOT_EVERY_DEFAULT;
    if (controller->snapshot)
        snapshot_slice(controller);
    else if (core_seq(controller->core) - controller->snapshot_seq >= every)
        snapshot_begin(controller);
    if (controller_mono_ns() - controller->trim_ns > TRIM_PERIOD_NS) {
        controller->trim_ns = controller_mono_ns();
        controller->trimming = true;
    }
    if (!controller->trimming || controller->snapshot)
        return;
    int64_t keep_ns = controller->options.keep_log_ns ? controller->options.keep_log_ns : KEEP_LOG_DEFAULT_NS;
    struct error error = {0};
    int rc = store_trim(controller->store, controller_stamp_ns(controller) - keep_ns, &error);
    if (rc < 0)
        fprintf(stderr, "warning: the log was not trimmed: %s\n", error.text);
    controller->trimming = rc > 0;
}

void commit_done(struct controller *controller)
{
    for (size_t i = 0; i < controller->queue.len; i++)
        pending_free(controller, controller->queue.items[i]);
    vec_done(&controller->queue);
    if (controller->snapshot)
        snapshot_end(controller);
}
