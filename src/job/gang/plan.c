#include "job/gang/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A class of shards that serve the same ranks: those with one key or, without a key, those of one owner. */
struct class_id {
    bool keyed;
    uint64_t id;
};

/* An offer with its place in the order of the search: checkpoint (newest first), class, memory before
 * storage, machine, holder. */
struct entry {
    uint64_t step;
    uint32_t attempt;
    struct class_id class;
    bool stored, struck;
    uint64_t machine;
    uint32_t holder, index;
};

struct range {
    size_t begin, end;
};

struct planner {
    const struct plan_input *input;
    struct entry *entries;
    size_t count;
    struct class_id *owners; /* [world] class of the rank's own shard of this checkpoint */
    bool *owned;             /* [world] the rank has such a shard */
    uint32_t *turns;         /* [count] at a class's first entry: the holder whose turn is next */
    uint32_t *loads;         /* [holders] dump: shards that each writes */
    uint32_t holders;
    uint32_t members;  /* reshard: ranks that offer shares of the storage */
    uint32_t *sources; /* [world] */
};

int plan_compare(uint64_t step_a, uint32_t attempt_a, uint64_t step_b, uint32_t attempt_b)
{
    if (step_a != step_b)
        return step_a < step_b ? -1 : 1;
    return attempt_a < attempt_b ? -1 : attempt_a > attempt_b;
}

/* ---- the order ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_classes(struct class_id a, struct class_id b)
{
    return a.keyed != b.keyed ? (a.keyed ? 1 : -1) : compare_numbers(a.id, b.id);
}

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = -plan_compare(a->step, a->attempt, b->step, b->attempt);
    if (order == 0)
        order = compare_classes(a->class, b->class);
    if (order == 0)
        order = compare_numbers(a->struck, b->struck);
    if (order == 0)
        order = compare_numbers(a->stored, b->stored);
    if (order == 0)
        order = compare_numbers(a->machine, b->machine);
    if (order == 0)
        order = compare_numbers(a->holder, b->holder);
    return order != 0 ? order : compare_numbers(a->index, b->index);
}

static struct class_id class_of(const struct offer *offer)
{
    if (offer->key != 0)
        return (struct class_id){true, offer->key};
    return (struct class_id){false, (uint64_t)offer->rank << 32 | offer->world};
}

/* Adds the offers as entries. A peer's copy serves as the shard that it is a copy of. */
static void add_entries(struct planner *planner, bool memory_only)
{
    const struct plan_input *input = planner->input;
    for (size_t i = 0; i < input->count; i++) {
        const struct plan_offer *from = &input->offers[i];
        bool stored = !offer_in_memory(&from->offer);
        if (memory_only && stored)
            continue;
        planner->entries[planner->count++] = (struct entry){
            .step = from->offer.step,
            .attempt = from->offer.attempt,
            .class = class_of(&from->offer),
            .stored = stored,
            .struck = from->struck,
            .machine = input->machines != NULL ? input->machines[from->holder] : 0,
            .holder = from->holder,
            .index = (uint32_t)i,
        };
        if (from->holder >= planner->holders)
            planner->holders = from->holder + 1;
    }
    qsort(planner->entries, planner->count, sizeof *planner->entries, compare_entries);
}

/* As calloc, but NULL always means that there is no memory, even for a count of 0. */
static void *room(size_t count, size_t size)
{
    return calloc(count + 1, size);
}

static bool planner_init(struct planner *planner, const struct plan_input *input, bool memory_only)
{
    assert(input->world > 0 && input->count < PLAN_NONE);
    *planner = (struct planner){
        .input = input,
        .entries = room(input->count, sizeof *planner->entries),
        .owners = room(input->world, sizeof *planner->owners),
        .owned = room(input->world, sizeof *planner->owned),
        .turns = room(input->count, sizeof *planner->turns),
        .sources = room(input->world, sizeof *planner->sources),
    };
    if (planner->entries != NULL)
        add_entries(planner, memory_only);
    planner->loads = room(planner->holders, sizeof *planner->loads);
    return planner->entries != NULL && planner->owners != NULL && planner->owned != NULL &&
           planner->turns != NULL && planner->sources != NULL && planner->loads != NULL;
}

static void planner_done(struct planner *planner)
{
    free(planner->entries);
    free(planner->owners);
    free(planner->owned);
    free(planner->turns);
    free(planner->sources);
    free(planner->loads);
}

/* ---- one checkpoint ---- */

/* Returns the entries of the checkpoint that begins at `begin`. */
static struct range checkpoint_at(const struct planner *planner, size_t begin)
{
    const struct entry *first = &planner->entries[begin];
    size_t end = begin + 1;
    while (end < planner->count && planner->entries[end].step == first->step &&
           planner->entries[end].attempt == first->attempt)
        end++;
    return (struct range){begin, end};
}

/* Finds the key of each rank's own shard. A shard with a key takes precedence over one without. */
static void find_owners(struct planner *planner, struct range checkpoint)
{
    const struct plan_input *input = planner->input;
    memset(planner->owned, 0, input->world * sizeof *planner->owned);
    for (size_t i = checkpoint.begin; i < checkpoint.end; i++) {
        const struct offer *offer = &input->offers[planner->entries[i].index].offer;
        if (offer->world != input->world || offer->rank >= input->world)
            continue;
        if (!planner->owned[offer->rank] || !planner->owners[offer->rank].keyed)
            planner->owners[offer->rank] = planner->entries[i].class;
        planner->owned[offer->rank] = true;
    }
}

/* Returns the first entry that is not before `probe`. */
static size_t lower_bound(const struct planner *planner, struct range range, const struct entry *probe)
{
    while (range.begin < range.end) {
        size_t middle = range.begin + (range.end - range.begin) / 2;
        if (compare_entries(&planner->entries[middle], probe) < 0)
            range.begin = middle + 1;
        else
            range.end = middle;
    }
    return range.begin;
}

/* Returns the usable entries of a class that are in memory, or those in storage. */
static struct range find_class(const struct planner *planner, struct range checkpoint, struct class_id class,
                               bool stored)
{
    const struct entry *any = &planner->entries[checkpoint.begin];
    struct entry probe = {.step = any->step, .attempt = any->attempt, .class = class, .stored = stored};
    struct range found = {.begin = lower_bound(planner, checkpoint, &probe)};
    probe.stored = true;
    if (stored)
        probe.struck = true, probe.stored = false;
    found.end = lower_bound(planner, checkpoint, &probe);
    return found;
}

#define CLASSES_MAX 2

/* Lists the classes of shards that serve this rank: those with its key and, without a key, its own. */
static size_t wanted_classes(const struct planner *planner, uint32_t rank,
                             struct class_id classes[CLASSES_MAX])
{
    const struct plan_input *input = planner->input;
    size_t count = 0;
    if (planner->owned[rank] && planner->owners[rank].keyed)
        classes[count++] = planner->owners[rank];
    else if (input->keys != NULL && input->keys[rank] != 0)
        classes[count++] = (struct class_id){true, input->keys[rank]};
    classes[count++] = (struct class_id){false, (uint64_t)rank << 32 | input->world};
    return count;
}

/* Returns the usable entries that serve the rank, of the first class that has any. */
static struct range find_sources(const struct planner *planner, struct range checkpoint, uint32_t rank,
                                 bool stored)
{
    struct class_id classes[CLASSES_MAX];
    struct range found = {0, 0};
    size_t count = wanted_classes(planner, rank, classes);
    for (size_t i = 0; i < count && found.begin == found.end; i++)
        found = find_class(planner, checkpoint, classes[i], stored);
    return found;
}

/* Returns an entry that the rank itself holds or else one on its machine; the range's end if there is
 * none. */
static size_t find_near(const struct planner *planner, struct range memory, uint32_t rank)
{
    const struct plan_input *input = planner->input;
    struct entry probe = planner->entries[memory.begin];
    probe.machine = input->machines[rank];
    probe.holder = rank;
    probe.index = 0;
    size_t own = lower_bound(planner, memory, &probe);
    if (own < memory.end && planner->entries[own].holder == rank)
        return own;
    probe.holder = 0;
    size_t near = lower_bound(planner, memory, &probe);
    return near < memory.end && planner->entries[near].machine == probe.machine ? near : memory.end;
}

/* Returns the shard with the rank's own number in storage, or else the first one. */
static size_t find_stored(const struct planner *planner, struct range stored, uint32_t rank)
{
    struct entry probe = planner->entries[stored.begin];
    probe.machine = planner->input->machines[rank];
    probe.holder = rank;
    probe.index = 0;
    size_t own = lower_bound(planner, stored, &probe);
    return own < stored.end && planner->entries[own].holder == rank ? own : stored.begin;
}

static uint32_t choose_source(struct planner *planner, struct range checkpoint, uint32_t rank)
{
    struct range memory = find_sources(planner, checkpoint, rank, false);
    struct range stored = find_sources(planner, checkpoint, rank, true);
    size_t chosen;
    if (memory.begin < memory.end) {
        chosen = find_near(planner, memory, rank);
        if (chosen == memory.end)
            chosen = memory.begin + planner->turns[memory.begin]++ % (memory.end - memory.begin);
    } else if (stored.begin < stored.end) {
        chosen = find_stored(planner, stored, rank);
    } else {
        return PLAN_NONE;
    }
    return planner->entries[chosen].index;
}

#define LOOK_AHEAD 16 /* holders compared for each shard: there may be many replicas */

/* Chooses, among the ranks that hold the shard, the one with the fewest shards to write so far. The search in
 * each class continues where the previous one stopped. */
static uint32_t choose_writer(struct planner *planner, struct range checkpoint, uint32_t rank)
{
    struct range memory = find_sources(planner, checkpoint, rank, false);
    size_t count = memory.end - memory.begin, best = memory.end;
    for (size_t i = 0; i < count && i < LOOK_AHEAD; i++) {
        size_t at = memory.begin + (planner->turns[memory.begin] + i) % count;
        if (best == memory.end ||
            planner->loads[planner->entries[at].holder] < planner->loads[planner->entries[best].holder])
            best = at;
    }
    if (best == memory.end)
        return PLAN_NONE;
    planner->turns[memory.begin] = (uint32_t)((best - memory.begin + 1) % count);
    planner->loads[planner->entries[best].holder]++;
    return planner->entries[best].index;
}

/* Returns the share of a checkpoint in storage that contains the old rank's shard; PLAN_NONE if there is
 * none. */
static uint32_t choose_share(struct planner *planner, struct range checkpoint, uint32_t rank)
{
    uint32_t sharer = rank % planner->members;
    struct class_id class = {false, (uint64_t)sharer << 32 | planner->members};
    struct range found = find_class(planner, checkpoint, class, true);
    for (size_t i = found.begin; i < found.end; i++) {
        uint32_t index = planner->entries[i].index;
        const struct offer *offer = &planner->input->offers[index].offer;
        if (offer->place == OFFER_SHARE && offer->len == planner->input->world)
            return index;
    }
    return PLAN_NONE;
}

static uint32_t choose_part(struct planner *planner, struct range checkpoint, uint32_t rank)
{
    uint32_t memory = choose_writer(planner, checkpoint, rank);
    bool keyed = memory != PLAN_NONE && planner->input->offers[memory].offer.key != 0;
    return keyed ? memory : choose_share(planner, checkpoint, rank);
}

typedef uint32_t (*choose_fn)(struct planner *planner, struct range checkpoint, uint32_t rank);

/* Chooses a source for each rank. Returns true if every rank has one. */
static bool try_checkpoint(struct planner *planner, struct range checkpoint, choose_fn choose,
                           struct plan_choice *ret_choice)
{
    const struct entry *first = &planner->entries[checkpoint.begin];
    const struct plan_input *input = planner->input;
    struct plan_choice choice = {.step = first->step, .attempt = first->attempt, .stored = true};
    find_owners(planner, checkpoint);
    memset(planner->loads, 0, planner->holders * sizeof *planner->loads);
    for (uint32_t rank = 0; rank < input->world; rank++) {
        uint32_t source = choose(planner, checkpoint, rank);
        planner->sources[rank] = source;
        if (source == PLAN_NONE && choice.missing++ == 0)
            choice.missing_first = rank;
        else if (source != PLAN_NONE && offer_in_memory(&input->offers[source].offer))
            choice.stored = false;
    }
    *ret_choice = choice;
    return choice.missing == 0;
}

/* Finds the first checkpoint from `at` on that has a source for every rank. */
static void find_older(struct planner *planner, size_t at, struct plan_choice *choice)
{
    while (at < planner->count && !choice->any_older) {
        struct range checkpoint = checkpoint_at(planner, at);
        struct plan_choice older;
        choice->any_older = try_checkpoint(planner, checkpoint, choose_source, &older);
        choice->older_step = older.step;
        choice->older_attempt = older.attempt;
        at = checkpoint.end;
    }
}

static enum plan_result run(const struct plan_input *input, const struct offer *above, uint32_t members,
                            choose_fn choose, uint32_t *ret_sources, struct plan_choice *ret_choice)
{
    struct planner planner;
    enum plan_result result = PLAN_INCOMPLETE;
    *ret_choice = (struct plan_choice){0};
    if (!planner_init(&planner, input, choose == choose_writer)) {
        planner_done(&planner);
        return PLAN_OUT_OF_MEMORY;
    }
    planner.members = members;
    size_t at = 0;
    while (at < planner.count && result == PLAN_INCOMPLETE) {
        struct range checkpoint = checkpoint_at(&planner, at);
        const struct entry *first = &planner.entries[at];
        struct plan_choice choice;
        if (above != NULL && plan_compare(first->step, first->attempt, above->step, above->attempt) <= 0)
            break;
        if (try_checkpoint(&planner, checkpoint, choose, &choice))
            result = PLAN_FOUND;
        if (result == PLAN_FOUND || at == 0)
            *ret_choice = choice;
        at = checkpoint.end;
    }
    if (result == PLAN_FOUND)
        memcpy(ret_sources, planner.sources, input->world * sizeof *ret_sources);
    if (result == PLAN_FOUND && choose == choose_source)
        find_older(&planner, at, ret_choice);
    planner_done(&planner);
    return result;
}

enum plan_result plan_make(const struct plan_input *input, uint32_t *ret_sources,
                           struct plan_choice *ret_choice)
{
    return run(input, NULL, input->world, choose_source, ret_sources, ret_choice);
}

enum plan_result plan_dump(const struct plan_input *input, const struct offer *stored, uint32_t *ret_sources,
                           struct plan_choice *ret_choice)
{
    struct plan_input memory = *input;
    memory.machines = NULL;
    return run(&memory, stored, input->world, choose_writer, ret_sources, ret_choice);
}

enum plan_result plan_reshard(const struct plan_input *input, uint32_t members, uint32_t *ret_sources,
                              struct plan_choice *ret_choice)
{
    struct plan_input old = *input;
    old.machines = NULL;
    return run(&old, NULL, members, choose_part, ret_sources, ret_choice);
}

uint32_t plan_other_world(const struct plan_input *input, uint32_t after)
{
    uint32_t next = 0;
    for (size_t i = 0; i < input->count; i++) {
        const struct offer *offer = &input->offers[i].offer;
        bool other = offer_in_memory(offer) && offer->key != 0 && offer->world != input->world;
        if (other && offer->world > after && (next == 0 || offer->world < next))
            next = offer->world;
    }
    return next;
}

/* ---- keys ---- */

static bool repeats(const uint64_t *keys, uint32_t world, uint32_t period)
{
    for (uint32_t rank = period; rank < world; rank++)
        if (keys[rank] != keys[rank - period])
            return false;
    return true;
}

void plan_extend_keys(const uint64_t *known, uint32_t known_world, uint64_t *ret_keys, uint32_t world)
{
    uint32_t period = 1;
    if (known_world == world) {
        memmove(ret_keys, known, world * sizeof *ret_keys);
        return;
    }
    /* The period must divide both worlds into whole replicas; a single replica does not show it. */
    while (period < known_world &&
           (known_world % period != 0 || world % period != 0 || !repeats(known, known_world, period)))
        period++;
    for (uint32_t rank = 0; rank < world; rank++)
        ret_keys[rank] = period < known_world ? known[rank % period] : 0;
}
