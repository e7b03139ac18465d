/* queue.c - events that wait for their record to be durable. */
#include "drive/internal.h"

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

void queue_put(struct driver *driver, struct pending *pending)
{
    driver->queue_bytes += pending_bytes(pending);
    driver->queued_writes += pending->event.kind == EVENT_WRITE;
    driver->tick_queued |= pending->event.kind == EVENT_TICK;
    if (pending->machine != MACHINE_NONE) {
        struct machine_sessions *sessions = &driver->machines[pending->machine];
        sessions->hellos += pending->event.kind == EVENT_MACHINE_HELLO;
        sessions->queued += pending->session != 0;
    }
    vec_push(&driver->queue, pending);
}

void queue_put_first(struct driver *driver, struct pending *pending)
{
    CHECK(pending->machine == MACHINE_NONE && !pending->session && !pending->request);
    queue_put(driver, pending);
    struct pending **items = driver->queue.items + driver->in_flight;
    memmove(&items[1], &items[0], (driver->queue.len - 1 - driver->in_flight) * sizeof(*items));
    items[0] = pending;
}

/* Frees an event that has left the queue, and updates the queue's counts. */
static void pending_free(struct driver *driver, struct pending *pending)
{
    CHECK(driver->queue_bytes >= pending_bytes(pending));
    driver->queue_bytes -= pending_bytes(pending);
    driver->queued_writes -= pending->event.kind == EVENT_WRITE;
    if (pending->event.kind == EVENT_TICK)
        driver->tick_queued = false;
    if (pending->machine != MACHINE_NONE) {
        struct machine_sessions *sessions = &driver->machines[pending->machine];
        sessions->hellos -= pending->event.kind == EVENT_MACHINE_HELLO;
        sessions->queued -= pending->session != 0;
    }
    if (pending->event.kind == EVENT_WRITE)
        prepared_write_free(pending->event.write.prepared);
    arena_done(&pending->arena);
    mem_free(pending);
}

bool queue_has_room(const struct driver *driver)
{
    return driver->queue_bytes < driver->options.queue_bytes_max;
}

size_t queue_turn(const struct driver *driver)
{
    const struct driver_options *options = &driver->options;
    size_t count = 0, bytes = 0;
    while (count < driver->queue.len && count < options->turn_records_max && bytes < options->turn_bytes_max)
        bytes += pending_bytes(driver->queue.items[count++]);
    return count;
}

void queue_drop_first(struct driver *driver, size_t count)
{
    CHECK(count <= driver->queue.len);
    for (size_t i = 0; i < count; i++)
        pending_free(driver, driver->queue.items[i]);
    driver->queue.len -= count;
    memmove(driver->queue.items, driver->queue.items + count,
            driver->queue.len * sizeof(*driver->queue.items));
}

void queue_forget_session(struct driver *driver, struct machine_sessions *sessions)
{
    for (size_t i = 0; sessions->queued > 0 && i < driver->queue.len; i++)
        if (driver->queue.items[i]->session == sessions->session) {
            driver->queue.items[i]->session = 0;
            sessions->queued--;
        }
    CHECK(sessions->queued == 0);
}

/* Removes the events for which `leaves` returns true; an event that is being appended stays. */
static void queue_filter(struct driver *driver, bool (*leaves)(const struct pending *, const void *),
                         const void *context)
{
    size_t kept = driver->in_flight;
    for (size_t i = kept; i < driver->queue.len; i++) {
        struct pending *pending = driver->queue.items[i];
        if (leaves(pending, context))
            pending_free(driver, pending);
        else
            driver->queue.items[kept++] = pending;
    }
    driver->queue.len = kept;
}

static bool is_hello_of(const struct pending *pending, const void *machine)
{
    return pending->event.kind == EVENT_MACHINE_HELLO && pending->machine == *(const machine_id *)machine;
}

void queue_forget_hellos(struct driver *driver, machine_id machine)
{
    if (driver->machines[machine].hellos > 0)
        queue_filter(driver, is_hello_of, &machine);
}

struct refusal {
    struct driver *driver;
    int code;
    const char *reason, *why;
};

static bool is_refused(const struct pending *pending, const void *context)
{
    const struct refusal *refusal = context;
    if (pending->event.kind != EVENT_WRITE || !pending->request)
        return false;
    const struct sink_port *sinks = &refusal->driver->ports.sinks;
    refusal->driver->stats.refused_writes++;
    if (sinks->refuse)
        sinks->refuse(sinks->context, pending->request, refusal->code, refusal->reason, refusal->why);
    return true;
}

void queue_refuse_writes(struct driver *driver, int code, const char *reason, const char *why)
{
    struct refusal refusal = {driver, code, reason, why};
    if (driver->queued_writes > 0)
        queue_filter(driver, is_refused, &refusal);
}

void queue_done(struct driver *driver)
{
    queue_drop_first(driver, driver->queue.len);
    vec_done(&driver->queue);
}
