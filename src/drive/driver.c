/* driver.c - start, clocks, timers, the end of a turn. */
#include "drive/internal.h"

struct driver *driver_new(const struct driver_options *options, const struct driver_ports *ports,
                          struct core *core)
{
    struct driver *driver = mem_alloc(sizeof(*driver));
    struct driver_options *own = &driver->options;
    *own = *options;
    own->turn_records_max = own->turn_records_max ? own->turn_records_max : DRIVE_TURN_RECORDS_MAX;
    own->turn_bytes_max = own->turn_bytes_max ? own->turn_bytes_max : DRIVE_TURN_BYTES_MAX;
    own->queue_bytes_max = own->queue_bytes_max ? own->queue_bytes_max : DRIVE_QUEUE_BYTES_MAX;
    own->rank_table_inside_max =
        own->rank_table_inside_max ? own->rank_table_inside_max : DRIVE_RANK_TABLE_INSIDE_MAX;
    own->snapshot_every = own->snapshot_every ? own->snapshot_every : DRIVE_SNAPSHOT_EVERY;
    own->snapshot_bytes = own->snapshot_bytes ? own->snapshot_bytes : DRIVE_SNAPSHOT_BYTES;
    driver->ports = *ports;
    driver->core = core;
    driver->snapshot_seq = own->snapshot_seq;
    list_init(&driver->sessions);
    return driver;
}

void driver_free(struct driver *driver)
{
    if (!driver)
        return;
    queue_done(driver);
    job_steps_done(driver);
    sessions_done(driver);
    vec_done(&driver->records);
    buf_done(&driver->record_bytes);
    arena_done(&driver->record_scratch);
    arena_done(&driver->start_scratch);
    vec_done(&driver->effects.list);
    mem_free(driver);
}

/* --- clocks ----------------------------------------------------------------------------------- */

int64_t driver_mono_ns(const struct driver *driver)
{
    return driver->ports.clock.mono_ns(driver->ports.clock.context);
}

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t driver_stamp_ns(struct driver *driver)
{
    /* The wall clock first: a pause between the two then makes the offset smaller, and the larger one stays.
     */
    int64_t wall_ns = driver->ports.clock.wall_ns(driver->ports.clock.context);
    int64_t mono_ns = driver_mono_ns(driver);
    driver->clock_offset_ns = latest(driver->clock_offset_ns, wall_ns - mono_ns);
    /* The last start's clock may have been ahead. */
    driver->clock_offset_ns = latest(driver->clock_offset_ns, core_now(driver->core) - mono_ns);
    return mono_ns + driver->clock_offset_ns;
}

/* --- start ------------------------------------------------------------------------------------ */

/* Returns the next epoch, the time in milliseconds. A controller whose log was restored from a backup thus
 * has a larger epoch than those that ran after the backup was made: agents leave a controller of an older
 * epoch. */
static uint64_t next_epoch(struct driver *driver)
{
    uint64_t now = (uint64_t)(driver_stamp_ns(driver) / NS_PER_MS), next = core_epoch(driver->core) + 1;
    return now > next ? now : next;
}

static struct pending *boot_new(struct driver *driver, bool paused)
{
    struct pending *pending = pending_new(EVENT_BOOT);
    pending->event.boot.epoch = next_epoch(driver);
    pending->event.boot.version = driver->options.version;
    pending->event.boot.identity = driver->identity;
    pending->event.boot.secret = (struct str){(const char *)driver->secret, sizeof driver->secret};
    pending->event.boot.paused = paused;
    pending->event.boot.restored = driver->options.restored && !paused;
    if (core_level(driver->core) >= LEVEL_PLACE)
        pending->event.boot.place = driver->options.place;
    return pending;
}

void driver_start(struct driver *driver, uint64_t identity, const uint8_t secret[GANG_KEY_BYTES],
                  struct str cluster_json)
{
    CHECK(!driver->open && driver->queue.len == 0);
    driver->identity = identity;
    memcpy(driver->secret, secret, sizeof driver->secret);
    queue_put(driver, boot_new(driver, false));
    if (cluster_json.len == 0)
        return;
    struct pending *pending = pending_new(EVENT_CLUSTER);
    pending->event.cluster.document = arena_str(&pending->arena, cluster_json);
    queue_put(driver, pending);
}

void driver_raise_level(struct driver *driver, uint32_t level)
{
    CHECK(driver->open && level <= this_release.level);
    if (level <= core_level(driver->core) || level <= driver->level_asked)
        return;
    driver->level_asked = level;
    struct pending *pending = pending_new(EVENT_LEVEL);
    pending->event.level = level;
    queue_put(driver, pending);
}

void driver_opens(struct driver *driver)
{
    driver->open = true;
    sessions_open(driver);
}

const struct driver_stats *driver_stats(const struct driver *driver)
{
    return &driver->stats;
}

bool driver_is_open(const struct driver *driver)
{
    return driver->open;
}

/* --- a host that stood still ------------------------------------------------------------------ */

/* Returns whether the host paused for so long that agents' leases may have run out. */
static bool stood_still(const struct driver *driver)
{
    if (!driver->open || !driver->listens)
        return false;
    const struct cluster *cluster = core_cluster(driver->core);
    int64_t waited_ns = driver_mono_ns(driver) - driver->listened_ns, heard_ns = cluster->policy.heartbeat_ns;
    int64_t grace_ns = cluster->policy.lease_ns > 2 * heard_ns ? cluster->policy.lease_ns - heard_ns
                                                               : cluster->policy.lease_ns / 2;
    return waited_ns - driver->wait_ns - driver->attended_ns > grace_ns - grace_ns / 10;
}

/* Returns whether a boot is at `first` in the queue. That boot also serves for a second pause, since each
 * boot's epoch has to follow the one before. */
static bool boot_waits(const struct driver *driver, size_t first)
{
    return driver->queue.len > first && driver->queue.items[first]->event.kind == EVENT_BOOT;
}

/* Continues as after a start when the host or its computer was stopped. Machines count as away until their
 * agents report the state of their tasks, and this is applied before any input that has arrived since. */
static void resume(struct driver *driver)
{
    driver->stats.pauses++;
    if (!boot_waits(driver, driver->in_flight)) {
        struct pending *boot = boot_new(driver, true);
        for (size_t i = 0; i < driver->in_flight; i++)
            boot->event.boot.epoch += driver->queue.items[i]->event.kind == EVENT_BOOT;
        queue_put_first(driver, boot);
    }
    sessions_resume(driver);
}

/* --- the loop --------------------------------------------------------------------------------- */

void driver_turn(struct driver *driver)
{
    if (stood_still(driver))
        resume(driver);
    driver->listens = false;
    commit_turn(driver);
}

/* Returns the monotonic time at which something falls due. */
static int64_t next_due(const struct driver *driver)
{
    int64_t due_ns = driver->retry_ns ? driver->retry_ns : INT64_MAX;
    if (driver_has_work(driver))
        due_ns = driver->listened_ns;
    if (!driver->open)
        return due_ns;
    due_ns = earliest(due_ns, earliest(sessions_deadline(driver), job_steps_deadline(driver)));
    int64_t core_ns = core_deadline(driver->core);
    if (core_ns != INT64_MAX && !driver->tick_queued)
        due_ns = earliest(due_ns, core_ns - driver->clock_offset_ns);
    return due_ns;
}

int64_t driver_wait(struct driver *driver, int64_t host_due_ns)
{
    driver->listens = true;
    driver->attended_ns = 0;
    driver->listened_ns = driver_mono_ns(driver);
    int64_t due_ns = earliest(next_due(driver), host_due_ns);
    driver->wait_ns = latest(0, due_ns - driver->listened_ns);
    return due_ns;
}

void driver_attended(struct driver *driver, int64_t attended_ns)
{
    CHECK(attended_ns >= 0);
    if (driver->listens)
        driver->attended_ns += attended_ns;
}

void driver_timers(struct driver *driver)
{
    if (!driver->open || driver->lost)
        return;
    sessions_check(driver);
    job_steps_flush(driver);
    if (!driver->tick_queued && core_deadline(driver->core) <= driver_stamp_ns(driver))
        queue_put(driver, pending_new(EVENT_TICK));
}

/* --- input ------------------------------------------------------------------------------------ */

void driver_write(struct driver *driver, const struct write_event *write, drive_request request)
{
    struct pending *pending = pending_new(EVENT_WRITE);
    struct arena *arena = &pending->arena;
    pending->event.write = *write;
    pending->event.write.namespace_ = arena_str(arena, write->namespace_);
    pending->event.write.name = arena_str(arena, write->name);
    pending->event.write.body = arena_str(arena, write->body);
    pending->event.write.uid_text = arena_str(arena, write->uid_text);
    pending->event.write.user = arena_str(arena, write->user);
    pending->event.write.request = arena_str(arena, write->request);
    pending->event.write.document = NULL;
    pending->request = request;
    queue_put(driver, pending);
}
