/* log.c - the driver's log, on SQLite or etcd: appends; snapshots and trimming, one slice per turn. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/agent/message.h"
#include "host/controller/internal.h"
#include "host/store/store.h"

_Static_assert(STORE_RECORD_BYTES_MAX >= FRAME_BYTES_MAX + (1 << 20),
               "the log takes every message of an agent");

#define TRIM_PERIOD_NS      (60 * NS_PER_SECOND)
#define KEEP_LOG_DEFAULT_NS (7 * 86400 * NS_PER_SECOND)

/* --- the port --------------------------------------------------------------------------------- */

static int append(void *context, const struct drive_record *records, size_t count, struct error *error)
{
    struct controller *controller = context;
    struct store_record *stored = mem_alloc(count * sizeof(*stored));
    for (size_t i = 0; i < count; i++)
        stored[i] = (struct store_record){records[i].seq, records[i].stamp_ns, records[i].bytes};
    lease_lend(controller);
    int rc = controller->log.append(controller->log.context, stored, count, error);
    (void)lease_take(controller);
    mem_free(stored);
    return rc < 0 ? rc : APPEND_DONE;
}

static void refuses(void *context, const struct error *why)
{
    struct controller *controller = context;
    if (!controller->log_refuses)
        fprintf(stderr, "error: the log takes no records: %s; writes are refused until it does\n", why->text);
    controller->log_refuses = true;
    if (controller->api)
        api_log_refuses(controller->api, why->text);
}

static void takes(void *context, int64_t refused_ns)
{
    struct controller *controller = context;
    fprintf(stderr, "the log takes records again after %.1f s\n", (double)refused_ns / 1e9);
    controller->log_refuses = false;
    if (controller->api)
        api_log_refuses(controller->api, NULL);
}

/* Ends the process: the next start finds out what is durable. */
static void lost(void *context, const struct error *why)
{
    const struct controller_shared *shared = ((struct controller *)context)->options.shared;
    if (shared)
        shared->lost(shared->context, why->text);
    fprintf(stderr, "fatal: the log cannot be written: %s\n", why->text);
    _exit(EXIT_FAILURE);
}

static bool snapshot(void *context, uint64_t seq, int64_t stamp_ns, struct buf *bytes)
{
    struct controller *controller = context;
    struct error error = {0};
    CHECK(!controller->snapshot);
    controller->snapshot_bytes = *bytes;
    *bytes = (struct buf){0};
    if (controller->log.snapshot_begin(controller->log.context, seq, stamp_ns,
                                       buf_str(&controller->snapshot_bytes), &controller->snapshot,
                                       &error) == 0)
        return true;
    fprintf(stderr, "warning: a snapshot could not be begun: %s\n", error.text);
    buf_done(&controller->snapshot_bytes);
    return false;
}

struct log_port log_port(struct controller *controller)
{
    return (struct log_port){controller, append, snapshot, refuses, takes, lost};
}

/* --- maintenance, a slice a turn -------------------------------------------------------------- */

static void snapshot_end(struct controller *controller)
{
    controller->log.snapshot_free(controller->snapshot);
    controller->snapshot = NULL;
    buf_done(&controller->snapshot_bytes);
}

static void snapshot_slice(struct controller *controller)
{
    struct error error = {0};
    int rc = controller->log.snapshot_step(controller->snapshot, &error);
    if (rc > 0)
        return;
    if (rc < 0)
        fprintf(stderr, "warning: a snapshot was not saved: %s\n", error.text);
    snapshot_end(controller);
    driver_snapshot_ended(controller->driver);
    controller->trimming = true;
}

static void maintain_log(struct controller *controller)
{
    if (controller->snapshot)
        snapshot_slice(controller);
    else
        driver_maintain(controller->driver);
    if (controller_mono_ns() - controller->trim_ns > TRIM_PERIOD_NS) {
        controller->trim_ns = controller_mono_ns();
        controller->trimming = true;
    }
    if (!controller->trimming || controller->snapshot)
        return;
    int64_t keep_ns = controller->options.keep_log_ns ? controller->options.keep_log_ns : KEEP_LOG_DEFAULT_NS;
    struct error error = {0};
    int rc =
        controller->log.trim(controller->log.context, driver_stamp_ns(controller->driver) - keep_ns, &error);
    if (rc < 0)
        fprintf(stderr, "warning: the log was not trimmed: %s\n", error.text);
    controller->trimming = rc > 0;
}

void log_maintain(struct controller *controller)
{
    lease_lend(controller);
    maintain_log(controller);
    (void)lease_take(controller);
}

void log_done(struct controller *controller)
{
    if (controller->snapshot)
        snapshot_end(controller);
}
