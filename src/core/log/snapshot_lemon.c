/* snapshot_lemon.c - failure counts of machines, in snapshots. */
#include "core/agent/codec_pb.h"
#include "core/lemon/lemon.h"
#include "core/log/snapshot.h"

struct writing_lemons {
    void (*put)(void *context, Snapshot__Record *record);
    void *context;
};

static void write_lemon(void *context, const struct lemon *lemon)
{
    CHECK(lemon->machine.len > 0);
    struct writing_lemons *writing = context;
    struct arena arena ARENA_CLEANUP = {0};
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Lemon pb = SNAPSHOT__LEMON__INIT;
    size_t count = lemon->entries.len;
    record.kind_case = SNAPSHOT__RECORD__KIND_LEMON;
    record.lemon = &pb;
    pb.machine = codec_text(&arena, lemon->machine);
    pb.n_days = pb.n_counters = pb.n_counts = count;
    pb.days = ARENA_ARRAY(&arena, uint32_t, count);
    pb.counters = ARENA_ARRAY(&arena, uint32_t, count);
    pb.counts = ARENA_ARRAY(&arena, uint32_t, count);
    for (size_t i = 0; i < count; i++) {
        const struct lemon_entry *entry = &lemon->entries.items[i];
        CHECK(entry->counter < LEMON_COUNTERS && (i == 0 || entry->day >= entry[-1].day));
        pb.days[i] = (uint32_t)(i ? entry->day - entry[-1].day : entry->day);
        pb.counters[i] = entry->counter;
        pb.counts[i] = entry->count;
    }
    pb.is_lemon = lemon->is_lemon;
    pb.since_ns = lemon->since_ns;
    pb.changed_seq = lemon->changed_seq;
    writing->put(writing->context, &record);
}

void snapshot_write_lemons(const struct lemon_store *store,
                           void (*put)(void *context, Snapshot__Record *record), void *context)
{
    struct writing_lemons writing = {put, context};
    lemon_visit(store, write_lemon, &writing);
}

bool snapshot_read_lemon(struct lemon_store *store, int64_t now_ns, const Snapshot__Lemon *pb)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct lemon_entry *entries = ARENA_ARRAY(&arena, struct lemon_entry, pb->n_days);
    int64_t day = 0;
    if (pb->n_counters != pb->n_days || pb->n_counts != pb->n_days || pb->since_ns > now_ns)
        return false;
    for (size_t i = 0; i < pb->n_days; i++) {
        day += pb->days[i];
        if (day > now_ns / LEMON_DAY_NS || day > INT32_MAX || pb->counters[i] >= LEMON_COUNTERS ||
            pb->counts[i] > UINT16_MAX)
            return false;
        entries[i] = (struct lemon_entry){(int32_t)day, (uint16_t)pb->counters[i], (uint16_t)pb->counts[i]};
    }
    struct lemon saved = {.machine = str_from(pb->machine),
                          .entries = {.items = entries, .len = pb->n_days},
                          .is_lemon = pb->is_lemon,
                          .since_ns = pb->since_ns,
                          .changed_seq = pb->changed_seq};
    return lemon_restore(store, &saved);
}
