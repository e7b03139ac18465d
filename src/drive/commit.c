/* commit.c - the group commit: log first, then the core, then effects; refused appends; snapshots.
 *
 *     idle ── something waits ──► appending ── durable ──► apply, effects ──► idle
 *       ▲                            │ refused (no space, unavailable)     unknown ──► lost
 *       └──────── retry_ns ──────────┘
 * A log whose append is synchronous passes through `appending` within one call. */
#include "drive/internal.h"

#include <stdio.h>

#include "core/log/record.h"

/* --- when the log takes nothing --------------------------------------------------------------- */

/* Refuses queued writes at once. Agents' reports wait, because agents do not repeat them on the same
 * session. */
static void refuse_writes(struct driver *driver)
{
    bool full = driver->blocked.code == ERROR_NO_SPACE;
    char why[ERROR_TEXT_MAX + 96];
    snprintf(why, sizeof(why), "the controller's log cannot take the write now: %s%s", driver->blocked.text,
             full ? "; free some space and try again" : "");
    queue_refuse_writes(driver, full ? 507 : 503, full ? "InsufficientStorage" : "ServiceUnavailable", why);
}

static void log_refuses(struct driver *driver, const struct error *error)
{
    driver->blocked = *error;
    if (!driver->blocked_since_ns)
        driver->blocked_since_ns = driver_mono_ns(driver);
    driver->retry_ns = driver_mono_ns(driver) + DRIVE_RETRY_NS;
    driver->ports.log.refuses(driver->ports.log.context, error);
    refuse_writes(driver);
}

static void log_takes(struct driver *driver)
{
    int64_t since_ns = driver->blocked_since_ns;
    driver->blocked_since_ns = driver->retry_ns = 0;
    if (since_ns)
        driver->ports.log.takes(driver->ports.log.context, driver_mono_ns(driver) - since_ns);
}

const struct error *driver_refusal(const struct driver *driver)
{
    return driver->blocked_since_ns ? &driver->blocked : NULL;
}

/* --- the commit ------------------------------------------------------------------------------- */

/* Drops fields that a replica may be unable to read. This is decided here, after the previous append: a
 * standby may see in the log that the level was raised, and count on the ids of writes that it passes on,
 * while this controller still waits for the answer to that append. */
static void drop_unread(const struct driver *driver, struct event *event)
{
    if (event->kind == EVENT_WRITE && core_level(driver->core) < LEVEL_RECEIPTS)
        event->write.request = (struct str){0};
}

/* Stamps and encodes the events of a turn. Their bytes are kept until the append has ended. */
static void encode_turn(struct driver *driver)
{
    size_t count = driver->in_flight = queue_turn(driver);
    driver->stats.cut_turns += count < driver->queue.len;
    int64_t stamp_ns = driver_stamp_ns(driver);
    buf_clear(&driver->record_bytes);
    vec_clear(&driver->records);
    for (size_t i = 0; i < count; i++) {
        struct event *event = &driver->queue.items[i]->event;
        event->seq = core_seq(driver->core) + 1 + i;
        event->stamp_ns = stamp_ns;
        drop_unread(driver, event);
        CHECK(level_of_event(event) <= core_level(driver->core));
        size_t start = driver->record_bytes.len;
        record_encode_next(&driver->record_bytes, event, &driver->record_scratch);
        struct drive_record record = {event->seq, stamp_ns, {NULL, driver->record_bytes.len - start}};
        vec_push(&driver->records, record);
    }
    const char *at = driver->record_bytes.data; /* the buffer grows no more */
    for (size_t i = 0; i < count; i++) {
        driver->records.items[i].bytes.data = at;
        at += driver->records.items[i].bytes.len;
    }
}

static void apply_one(struct driver *driver, size_t i)
{
    const struct sink_port *sinks = &driver->ports.sinks;
    const struct pending *pending = driver->queue.items[i];
    if (sinks->before_step)
        sinks->before_step(sinks->context, &pending->event);
    core_step(driver->core, &pending->event, &driver->effects);
    if (sinks->after_step)
        sinks->after_step(sinks->context, &pending->event, &driver->records.items[i], &driver->effects);
    dispatch(driver, pending);
}

static void apply(struct driver *driver)
{
    size_t count = driver->in_flight;
    driver->bytes_since_snapshot += driver->record_bytes.len;
    for (size_t i = 0; i < count; i++)
        apply_one(driver, i);
    driver->in_flight = 0;
    queue_drop_first(driver, count);
    if (!driver->open && driver->queue.len == 0)
        driver_opens(driver);
}

static void append_ended(struct driver *driver, int rc, const struct error *error)
{
    CHECK(driver->in_flight > 0);
    if (rc == APPEND_DONE) {
        log_takes(driver);
        apply(driver);
        return;
    }
    driver->in_flight = 0; /* the events wait again, and get another stamp */
    if (rc == ERROR_NO_SPACE || rc == ERROR_UNAVAILABLE) {
        log_refuses(driver, error);
        return;
    }
    driver->lost = true;
    driver->ports.log.lost(driver->ports.log.context, error);
}

void driver_appended(struct driver *driver, int rc, const struct error *error)
{
    CHECK(driver->in_flight > 0 && rc != APPEND_LATER);
    driver->stats.late_failures += rc < 0;
    append_ended(driver, rc, error);
}

bool driver_is_appending(const struct driver *driver)
{
    return driver->in_flight > 0;
}

bool driver_has_work(const struct driver *driver)
{
    return driver->queue.len > 0 && driver->in_flight == 0 && !driver->retry_ns && !driver->lost;
}

static void commit_all(struct driver *driver)
{
    const struct log_port *log = &driver->ports.log;
    driver->retry_ns = 0;
    while (driver_has_work(driver)) {
        struct error error = {0};
        encode_turn(driver);
        int rc = log->append(log->context, driver->records.items, driver->records.len, &error);
        if (rc == APPEND_LATER)
            return;
        driver->stats.failed_appends += rc < 0;
        append_ended(driver, rc, &error);
    }
}

void commit_turn(struct driver *driver)
{
    if (driver->lost)
        return;
    if (driver->in_flight > 0) {
        if (!queue_has_room(driver))
            queue_refuse_writes(driver, 503, "ServiceUnavailable",
                                "the controller's log is slower than what it has to take: try again");
    } else if (!driver->retry_ns || driver_mono_ns(driver) >= driver->retry_ns) {
        commit_all(driver);
    } else {
        refuse_writes(driver);
    }
}

/* --- snapshots -------------------------------------------------------------------------------- */

static bool snapshot_is_due(const struct driver *driver)
{
    const struct driver_options *options = &driver->options;
    uint64_t records = core_seq(driver->core) - driver->snapshot_seq;
    size_t worth = 2 * driver->snapshot_size;
    return records >= options->snapshot_every ||
           driver->bytes_since_snapshot >=
               (worth > options->snapshot_bytes ? worth : options->snapshot_bytes);
}

void driver_maintain(struct driver *driver)
{
    const struct log_port *log = &driver->ports.log;
    uint64_t seq = core_seq(driver->core);
    if (driver->snapshot_under_way || !snapshot_is_due(driver))
        return;
    struct buf bytes BUF_CLEANUP = {0};
    core_snapshot_write(driver->core, &bytes);
    driver->snapshot_seq = seq;
    driver->snapshot_size = bytes.len;
    driver->bytes_since_snapshot = 0;
    driver->snapshot_under_way = log->snapshot(log->context, seq, core_now(driver->core), &bytes);
}

void driver_snapshot_ended(struct driver *driver)
{
    CHECK(driver->snapshot_under_way);
    driver->snapshot_under_way = false;
}
