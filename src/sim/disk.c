/* disk.c - the controller's log and snapshots, on a disk that loses what was not synced.
 *
 * Records are encoded and decoded as their real bytes. A crash keeps some of the records that were being
 * written, in order, and may tear the last of them. The checksum shows the damage, and the record counts as
 * not written. A snapshot becomes durable some records later; a crash before that destroys it. */
#include "sim/world.h"

#include "base/hash.h"

enum { SNAPSHOT_LATE_RECORDS = 3, SNAPSHOTS_KEPT = 3 };

uint64_t disk_hash(const struct drive_record *record)
{
    uint64_t seed = record->seq ^ hash_mix((uint64_t)record->stamp_ns);
    return hash_words(seed, record->bytes.data, record->bytes.len);
}

static struct drive_record record_of(const struct disk_record *record)
{
    return (struct drive_record){record->seq, record->stamp_ns, buf_str(&record->bytes)};
}

void disk_append(struct sim_disk *disk, const struct drive_record *record)
{
    struct disk_record kept = {.seq = record->seq, .stamp_ns = record->stamp_ns, .hash = disk_hash(record)};
    buf_add_str(&kept.bytes, record->bytes);
    CHECK(disk->log.len == record->seq - 1);
    vec_push(&disk->log, kept);
}

static void cut_log(struct sim_disk *disk, size_t kept)
{
    while (disk->log.len > kept)
        buf_done(&disk->log.items[--disk->log.len].bytes);
}

void disk_fails(struct sim_disk *disk)
{
    cut_log(disk, disk->durable);
}

void disk_synced(struct sim_disk *disk)
{
    disk->durable = disk->log.len;
    for (size_t i = 0; i < disk->snapshots.len; i++)
        if (disk->snapshots.items[i].seq + SNAPSHOT_LATE_RECORDS <= disk->durable)
            disk->snapshots.items[i].durable = true;
}

static void snapshot_drop(struct sim_disk *disk, size_t i)
{
    buf_done(&disk->snapshots.items[i].bytes);
    vec_remove(&disk->snapshots, i);
}

void disk_crash(struct world *world)
{
    struct sim_disk *disk = &world->disk;
    size_t kept = (size_t)world_draw(world, (int64_t)disk->durable, (int64_t)disk->log.len);
    if (kept > disk->durable && world_chance(world, 500000)) {
        struct disk_record *last = &disk->log.items[kept - 1];
        last->bytes.len = (size_t)world_draw(world, 0, (int64_t)last->bytes.len - 1);
        struct drive_record torn = record_of(last);
        CHECK(disk_hash(&torn) != last->hash);
        kept--; /* the store drops it because of its checksum */
    }
    cut_log(disk, kept);
    disk->durable = kept;
    for (size_t i = disk->snapshots.len; i-- > 0;)
        if (!disk->snapshots.items[i].durable)
            snapshot_drop(disk, i);
}

bool disk_restore(struct world *world)
{
    enum { LOST_MAX = 400, KEPT_MIN = 8 };
    struct sim_disk *disk = &world->disk;
    if (disk->log.len <= KEPT_MIN)
        return false;
    size_t lost = (size_t)world_draw(world, 1, LOST_MAX), most = disk->log.len - KEPT_MIN;
    cut_log(disk, disk->log.len - (lost < most ? lost : most));
    disk->durable = disk->log.len;
    while (disk->snapshots.len && vec_last(&disk->snapshots).seq > disk->log.len)
        snapshot_drop(disk, disk->snapshots.len - 1);
    core_free(disk->reader);
    disk->reader = NULL;
    disk->restored = true;
    return true;
}

void disk_snapshot(struct world *world, uint64_t seq, struct buf *bytes)
{
    struct sim_disk *disk = &world->disk;
    struct disk_snapshot snapshot = {.seq = seq, .bytes = *bytes};
    *bytes = (struct buf){0};
    snapshot.digest = core_snapshot_digest(buf_str(&snapshot.bytes));
    if (core_digest(world->controller.core) != snapshot.digest)
        world_fail(world, TORTURE_REPLAY, "the digest at record %llu is not that of the snapshot",
                   (unsigned long long)snapshot.seq);
    vec_push(&disk->snapshots, snapshot);
    if (disk->snapshots.len > SNAPSHOTS_KEPT)
        snapshot_drop(disk, 0);
}

/* --- reading back ----------------------------------------------------------------------------- */

static bool load_snapshot(struct world *world, struct core *core)
{
    struct sim_disk *disk = &world->disk;
    const struct disk_snapshot *newest = NULL;
    for (size_t i = 0; i < disk->snapshots.len; i++)
        if (disk->snapshots.items[i].seq <= disk->log.len)
            newest = &disk->snapshots.items[i];
    if (!newest)
        return true;
    struct error error = {0};
    if (core_snapshot_read(core, buf_str(&newest->bytes), &error) < 0) {
        world_fail(world, TORTURE_REPLAY, "the snapshot at record %llu cannot be read: %s",
                   (unsigned long long)newest->seq, error.text);
        return false;
    }
    if (core_digest(core) != newest->digest || core_seq(core) != newest->seq) {
        world_fail(world, TORTURE_REPLAY, "the snapshot at record %llu gives another state when it is read",
                   (unsigned long long)newest->seq);
        return false;
    }
    return true;
}

/* Describes an event, for people. */
static void describe(void *context, struct core *core, const struct event *event,
                     const struct effects *effects)
{
    buf_clear(context);
    record_describe(context, event);
}

static bool step_record(struct world *world, const struct disk_record *record, struct core *core,
                        struct effects *effects, struct buf *told)
{
    struct drive_record stored = record_of(record);
    struct error error = {0};
    if (drive_replay(core, &stored, effects, told ? describe : NULL, told, &error) == 0)
        return true;
    world_fail(world, TORTURE_REPLAY, "%s", error.text);
    return false;
}

/* Replays the log from scratch and from a snapshot side by side, and fails the world with the first record
 * after which the states differ. */
void disk_tell_apart(struct world *world)
{
    const struct sim_disk *disk = &world->disk;
    struct core *whole = core_new(), *late = core_new();
    struct effects effects = {0}, late_effects = {0};
    struct buf text BUF_CLEANUP = {0};
    bool good = load_snapshot(world, late);
    for (size_t i = 0; i < disk->log.len && good; i++) {
        const struct disk_record *record = &disk->log.items[i];
        good = step_record(world, record, whole, &effects, &text) &&
               (core_seq(late) >= record->seq || step_record(world, record, late, &late_effects, NULL));
        if (!good || core_seq(late) != core_seq(whole) || core_digest(whole) == core_digest(late))
            continue;
        world_fail(world, TORTURE_REPLAY, "from a snapshot, record %llu gives another state (%.200s)",
                   (unsigned long long)record->seq, text.data);
        good = false;
    }
    vec_done(&effects.list);
    vec_done(&late_effects.list);
    core_free(whole);
    core_free(late);
}

static bool replay_record(struct world *world, const struct disk_record *record, struct core *core,
                          struct effects *effects)
{
    if (!step_record(world, record, core, effects, NULL))
        return false;
    size_t at = record->seq - 1;
    if (at >= world->digests.len || !world->digests.items[at] ||
        world->digests.items[at] == core_digest(core))
        return true;
    disk_tell_apart(world);
    if (!world_failed(world))
        world_fail(world, TORTURE_REPLAY, "replay differs at record %llu", (unsigned long long)record->seq);
    return false;
}

bool disk_replay(struct world *world, bool from_snapshot, struct core *core)
{
    struct sim_disk *disk = &world->disk;
    if (from_snapshot && !load_snapshot(world, core))
        return false;
    struct effects effects = {0};
    bool good = true;
    for (size_t i = core_seq(core); i < disk->log.len && good; i++)
        good = replay_record(world, &disk->log.items[i], core, &effects);
    vec_done(&effects.list);
    return good;
}

const struct core *disk_read_whole(struct world *world)
{
    struct sim_disk *disk = &world->disk;
    if (!disk->reader)
        disk->reader = core_new();
    CHECK(core_seq(disk->reader) <= disk->log.len); /* durable records stay */
    return disk_replay(world, false, disk->reader) ? disk->reader : NULL;
}

void disk_done(struct sim_disk *disk)
{
    core_free(disk->reader);
    for (size_t i = 0; i < disk->log.len; i++)
        buf_done(&disk->log.items[i].bytes);
    vec_done(&disk->log);
    while (disk->snapshots.len)
        snapshot_drop(disk, disk->snapshots.len - 1);
    vec_done(&disk->snapshots);
}
