#include "core/model/model.h"

#include "base/check.h"

static const char *const state_names[MACHINE_STATES] = {
    [MACHINE_UNSEEN] = "Unseen", [MACHINE_READY] = "Ready", [MACHINE_AWAY] = "Away", [MACHINE_LOST] = "Lost"};

/* A lost machine returns only by registering. A machine that is away may reconnect, or become lost. If its
 * connection breaks with evidence of the machine's end, the machine moves from READY to LOST at once. A newer
 * agent may register before its predecessor's connection breaks: the machine is READY already. */
static const uint32_t state_next[MACHINE_STATES] = {
    [MACHINE_UNSEEN] = LIFECYCLE_TO(MACHINE_READY),
    [MACHINE_READY] = LIFECYCLE_TO(MACHINE_READY) | LIFECYCLE_TO(MACHINE_AWAY) | LIFECYCLE_TO(MACHINE_LOST),
    [MACHINE_AWAY] = LIFECYCLE_TO(MACHINE_READY) | LIFECYCLE_TO(MACHINE_LOST),
    [MACHINE_LOST] = LIFECYCLE_TO(MACHINE_READY),
};
_Static_assert(MACHINE_UNSEEN == 0, "a machine that was just loaded has not been seen");
_Static_assert(CHIPS_PER_MACHINE_MAX == 8 * sizeof(uint64_t), "a bit for each chip");
const struct lifecycle machine_lifecycle = {"machine", MACHINE_STATES, state_names, state_next};

static const char *const isolation_names[ISOLATIONS] = {[ISOLATION_HEALTHY] = "Healthy",
                                                        [ISOLATION_SUSPECT] = "Suspect",
                                                        [ISOLATION_DRAINING] = "Draining",
                                                        [ISOLATION_QUARANTINED] = "Quarantined",
                                                        [ISOLATION_RESETTING] = "Resetting",
                                                        [ISOLATION_QUALIFYING] = "Qualifying",
                                                        [ISOLATION_TICKETED] = "Ticketed",
                                                        [ISOLATION_RETURNED] = "Returned"};
/* Faults open and close in any order, so the states that faults lead to may follow each other freely. A
 * repair begins only on an idle machine that takes no work. */
#define BY_FAULTS                                                                                            \
    (LIFECYCLE_TO(ISOLATION_HEALTHY) | LIFECYCLE_TO(ISOLATION_SUSPECT) |                                     \
     LIFECYCLE_TO(ISOLATION_DRAINING) | LIFECYCLE_TO(ISOLATION_QUARANTINED) |                                \
     LIFECYCLE_TO(ISOLATION_RETURNED))
#define BY_REPAIR                                                                                            \
    (LIFECYCLE_TO(ISOLATION_RESETTING) | LIFECYCLE_TO(ISOLATION_QUALIFYING) |                                \
     LIFECYCLE_TO(ISOLATION_TICKETED))
#define BUT(states, state) ((states) & ~LIFECYCLE_TO(state))
static const uint32_t isolation_next[ISOLATIONS] = {
    [ISOLATION_HEALTHY] = BUT(BY_FAULTS, ISOLATION_HEALTHY),
    [ISOLATION_SUSPECT] = BUT(BY_FAULTS, ISOLATION_SUSPECT),
    [ISOLATION_DRAINING] = BUT(BY_FAULTS, ISOLATION_DRAINING) | BY_REPAIR,
    [ISOLATION_QUARANTINED] = BUT(BY_FAULTS, ISOLATION_QUARANTINED) | BY_REPAIR,
    [ISOLATION_RESETTING] = BUT(BY_FAULTS | BY_REPAIR, ISOLATION_RESETTING),
    [ISOLATION_QUALIFYING] = BUT(BY_FAULTS | BY_REPAIR, ISOLATION_QUALIFYING),
    [ISOLATION_TICKETED] = BUT(BY_FAULTS | BY_REPAIR, ISOLATION_TICKETED),
    [ISOLATION_RETURNED] = BUT(BY_FAULTS, ISOLATION_RETURNED),
};
const struct lifecycle isolation_lifecycle = {"isolation", ISOLATIONS, isolation_names, isolation_next};

bool isolation_is_out(enum isolation isolation)
{
    CHECK(isolation < ISOLATIONS);
    return isolation >= ISOLATION_DRAINING && isolation != ISOLATION_RETURNED;
}

enum isolation isolation_join(enum isolation a, enum isolation b)
{
    static const uint8_t weight[ISOLATIONS] = {
        [ISOLATION_HEALTHY] = 0,     [ISOLATION_RETURNED] = 1,   [ISOLATION_SUSPECT] = 2,
        [ISOLATION_DRAINING] = 3,    [ISOLATION_QUARANTINED] = 4, [ISOLATION_RESETTING] = 5,
        [ISOLATION_QUALIFYING] = 6,  [ISOLATION_TICKETED] = 7,
    };
    CHECK(a < ISOLATIONS && b < ISOLATIONS);
    return weight[a] >= weight[b] ? a : b;
}

void cluster_done(struct cluster *cluster)
{
    for (size_t i = 0; cluster->machines && i < cluster->machine_count; i++)
        arena_done(&cluster->machines[i].user);
    str_map_done(&cluster->by_name);
    if (cluster->changes)
        vec_done(&cluster->changes->ids);
    arena_done(&cluster->arena);
    *cluster = (struct cluster){0};
}

struct machine *cluster_find(const struct cluster *cluster, struct str name)
{
    struct machine *machine = str_map_get(&cluster->by_name, name);
    CHECK(!machine || machine == &cluster->machines[machine->id]);
    return machine;
}

static bool find_label(const struct labels *labels, struct str key, struct str *ret_value)
{
    for (size_t i = 0; i < labels->len; i++)
        if (str_equal(labels->items[i].key, key)) {
            *ret_value = labels->items[i].value;
            return true;
        }
    return false;
}

bool machine_label(const struct machine *machine, struct str key, struct str *ret_value)
{
    return find_label(&machine->user_labels, key, ret_value) || find_label(&machine->labels, key, ret_value);
}

struct str machine_chips_at(const struct cluster *cluster, const struct machine *machine, struct arena *arena)
{
    const struct pod *pod = &cluster->pods[machine->pod];
    const struct block *block = &cluster->blocks[machine->block];
    struct str head, between, tail, rest;
    if (pod->chips.len == 0 || block->kind != BLOCK_CUBE)
        return (struct str){0};
    bool whole = str_cut(pod->chips, '{', &head, &rest) && str_cut(rest, '}', &between, &rest) &&
                 str_cut(rest, '{', &between, &rest) && str_cut(rest, '}', &rest, &tail);
    CHECK(whole); /* load_switches.c has seen both placeholders */
    machine_id id = (machine_id)(machine - cluster->machines);
    return arena_printf(arena, STR_FORMAT "%u" STR_FORMAT "%u" STR_FORMAT, STR_ARG(head),
                        machine->block - pod->first_block, STR_ARG(between), id - block->first,
                        STR_ARG(tail));
}

bool machine_schedulable(const struct machine *machine)
{
    return machine->state == MACHINE_READY && !machine->cordoned &&
           !isolation_is_out(machine->isolation);
}

uint64_t machine_all_chips(const struct machine *machine)
{
    CHECK(machine->chip_count <= CHIPS_PER_MACHINE_MAX);
    return machine->chip_count ? UINT64_MAX >> (64 - machine->chip_count) : 0;
}

/* Number of changes in the journal. A reader that is further behind inspects every machine. */
enum { MACHINE_CHANGES_MAX = 65536 };

void machine_changed(const struct machine *machine)
{
    struct machine_changes *changes = machine->changes;
    if (!changes)
        return;
    if (changes->ids.len == MACHINE_CHANGES_MAX) {
        changes->first += changes->ids.len;
        vec_clear(&changes->ids);
    }
    vec_push(&changes->ids, machine->id);
}

uint64_t cluster_next_change(const struct cluster *cluster)
{
    const struct machine_changes *changes = cluster->changes;
    return changes ? changes->first + changes->ids.len : 0;
}

void cluster_number_changes_after(struct cluster *cluster, const struct cluster *before)
{
    CHECK(!cluster->changes || cluster->changes->ids.len == 0);
    if (cluster->changes && before->changes)
        cluster->changes->first = cluster_next_change(before) + 1; /* the cluster itself is a change */
}

static int64_t capacity_cpu(const struct machine *machine)
{
    return machine->cpu_milli ? machine->cpu_milli : machine->found_cpu_milli;
}

static int64_t capacity_memory(const struct machine *machine)
{
    return machine->memory_bytes ? machine->memory_bytes : machine->found_memory_bytes;
}

static void raise_max(struct cluster *cluster, const struct machine *machine)
{
    int64_t cpu_milli = capacity_cpu(machine), memory_bytes = capacity_memory(machine);
    if (cpu_milli > cluster->cpu_milli_max)
        cluster->cpu_milli_max = cpu_milli;
    if (memory_bytes > cluster->memory_bytes_max)
        cluster->memory_bytes_max = memory_bytes;
}

void cluster_find_max(struct cluster *cluster)
{
    cluster->cpu_milli_max = cluster->memory_bytes_max = 0;
    for (size_t i = 0; i < cluster->machine_count; i++)
        raise_max(cluster, &cluster->machines[i]);
}

void machine_found(struct cluster *cluster, struct machine *machine, int64_t cpu_milli, int64_t memory_bytes)
{
    bool lessens = machine->found_cpu_milli > cpu_milli || machine->found_memory_bytes > memory_bytes;
    machine->found_cpu_milli = cpu_milli > 0 ? cpu_milli : 0;
    machine->found_memory_bytes = memory_bytes > 0 ? memory_bytes : 0;
    if (lessens) /* it may have been the largest */
        cluster_find_max(cluster);
    else
        raise_max(cluster, machine);
}

void machine_take(struct machine *machine, uint64_t chips, int64_t cpu_milli, int64_t memory_bytes)
{
    CHECK((chips & ~machine->free_mask) == 0 && (chips & ~machine_all_chips(machine)) == 0);
    CHECK(cpu_milli >= 0 && memory_bytes >= 0);
    CHECK(machine->task_count < UINT32_MAX);
    machine->free_mask &= ~chips;
    machine->cpu_used_milli += cpu_milli;
    machine->memory_used_bytes += memory_bytes;
    machine->task_count++;
    machine_changed(machine);
}

void machine_give(struct machine *machine, uint64_t chips, int64_t cpu_milli, int64_t memory_bytes)
{
    CHECK((chips & machine->free_mask) == 0 && (chips & ~machine_all_chips(machine)) == 0);
    CHECK(machine->cpu_used_milli >= cpu_milli && machine->memory_used_bytes >= memory_bytes);
    CHECK(machine->task_count > 0 && cpu_milli >= 0 && memory_bytes >= 0);
    machine->free_mask |= chips;
    machine->cpu_used_milli -= cpu_milli;
    machine->memory_used_bytes -= memory_bytes;
    machine->task_count--;
    CHECK(machine->task_count > 0 || machine->free_mask == machine_all_chips(machine));
    CHECK(machine->task_count > 0 || (!machine->cpu_used_milli && !machine->memory_used_bytes));
    machine_changed(machine);
}

void machine_set_state(struct machine *machine, enum machine_state state, int64_t now_ns, uint64_t seq)
{
    lifecycle_move(&machine_lifecycle, &machine->state, state);
    machine->state_since_ns = now_ns;
    machine->changed_seq = seq;
    machine_changed(machine);
}
