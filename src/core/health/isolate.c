/* isolate.c - the isolation that follows from a machine's open faults; the breaker; orders for core.c. */
#include "core/health/internal.h"

/* Levels are compared: those that keep work away are above those that restart jobs. */
_Static_assert(LEVEL_NOT_HANDLE < LEVEL_SUB_HEALTH && LEVEL_SUB_HEALTH < LEVEL_RESTART_REQUEST,
               "no reaction");
_Static_assert(LEVEL_RESTART_BUSINESS < LEVEL_PRE_SEPARATE && LEVEL_PRE_SEPARATE < LEVEL_FREE_RESET,
               "drains");
_Static_assert(LEVEL_FREE_RESET < LEVEL_RESET && LEVEL_RESET < LEVEL_SEPARATE &&
                   LEVEL_SEPARATE < LEVEL_MANUALLY_SEPARATE && LEVEL_MANUALLY_SEPARATE + 1 == LEVELS,
               "out of service");

void machine_faults_mark(struct step *step, struct machine_faults *at_machine)
{
    struct health *health = step->health;
    const struct machine *machine = cluster_find(step->cluster, at_machine->machine);
    if (machine)
        machine_changed(machine); /* a waiting gang names the fault that keeps the machine from work */
    if (at_machine->marked)
        return;
    at_machine->marked = true;
    vec_push(&health->marked, at_machine);
}

/* Adds the machine to health->waiting, or removes it. The list is in the order of names, because the order of
 * arrival must not matter. */
void machine_faults_wait(struct health *health, struct machine_faults *at_machine, bool waits)
{
    if (at_machine->waiting == waits)
        return;
    at_machine->waiting = waits;
    size_t place = 0;
    while (place < health->waiting.len &&
           str_compare(health->waiting.items[place]->machine, at_machine->machine) < 0)
        place++;
    if (!waits) {
        CHECK(place < health->waiting.len && health->waiting.items[place] == at_machine);
        vec_remove(&health->waiting, place);
        return;
    }
    CHECK(place == health->waiting.len || health->waiting.items[place] != at_machine);
    vec_push(&health->waiting, at_machine);
    memmove(&health->waiting.items[place + 1], &health->waiting.items[place],
            (health->waiting.len - 1 - place) * sizeof(at_machine));
    health->waiting.items[place] = at_machine;
}

/* --- what faults ask for -------------------------------------------------------------------------------- */

static enum isolation wanted_by(const struct fault *fault, const struct machine *machine)
{
    CHECK(fault->open && fault->level < LEVELS);
    switch (fault->level) {
    case LEVEL_SUB_HEALTH:
        return ISOLATION_SUSPECT;
    case LEVEL_PRE_SEPARATE:
    case LEVEL_FREE_RESET:
        return ISOLATION_DRAINING;
    case LEVEL_RESET:
    case LEVEL_SEPARATE:
    case LEVEL_MANUALLY_SEPARATE:
        return fault->high || machine->task_count == 0 ||
                       (isolation_is_out(machine->isolation) && machine->isolation != ISOLATION_DRAINING)
                   ? ISOLATION_QUARANTINED
                   : ISOLATION_DRAINING;
    default:
        return ISOLATION_HEALTHY;
    }
}

static bool is_worse(const struct fault *fault, const struct fault *than)
{
    return !than || fault->level > than->level || (fault->level == than->level && fault->uid < than->uid);
}

enum isolation machine_faults_wanted(const struct machine_faults *at_machine, const struct machine *machine,
                                     struct fault **ret_cause)
{
    enum isolation most = ISOLATION_HEALTHY;
    struct fault *cause = NULL;
    list_for_each(node, &at_machine->faults)
    {
        struct fault *fault = container_of(node, struct fault, on_machine);
        if (!fault->open)
            continue;
        enum isolation wanted = wanted_by(fault, machine);
        if (wanted > most || (wanted == most && wanted > ISOLATION_HEALTHY && is_worse(fault, cause)))
            cause = fault;
        most = wanted > most ? wanted : most;
    }
    CHECK((cause != NULL) == (most > ISOLATION_HEALTHY));
    *ret_cause = cause;
    return most;
}

bool machine_faults_suspect(const struct machine_faults *at_machine)
{
    list_for_each(node, &at_machine->faults)
    {
        const struct fault *fault = container_of(node, struct fault, on_machine);
        if (fault->open && str_is(fault->code, SUSPECT_FAULT))
            return true;
    }
    return false;
}

/* --- the breaker ---------------------------------------------------------------------------------------- */

void breaker_forget(const struct step *step)
{
    struct health *health = step->health;
    int64_t window_ns = step->cluster->policy.faults.breaker_window_ns;
    size_t old = 0;
    while (old < health->isolations.len && step->now_ns - health->isolations.items[old] >= window_ns)
        old++;
    if (old == 0)
        return;
    memmove(health->isolations.items, health->isolations.items + old,
            (health->isolations.len - old) * sizeof(int64_t));
    health->isolations.len -= old;
}

/* Returns `percent` of all machines, but at least one. */
static size_t share(size_t machines, uint32_t percent)
{
    CHECK(percent <= 100);
    size_t count = machines * percent / 100;
    return count > 0 || percent == 0 ? count : 1;
}

static bool breaker_has_room(const struct step *step)
{
    struct health *health = step->health;
    struct fault_breaker breaker = fault_table_breaker(health->table);
    size_t machines = step->cluster->machine_count;
    breaker_forget(step);
    /* In the hour's share, a machine counts every time that it is taken out, so 100 % must mean "no
     * limit". */
    return (breaker.hour_percent >= 100 || health->isolations.len < share(machines, breaker.hour_percent)) &&
           health->isolated < share(machines, breaker.total_percent);
}

/* --- orders --------------------------------------------------------------------------------------------- */

/* Records a change of isolation for the breaker. Planned and requested isolation counts as out of service,
 * but not in the hour's share. */
static void book(struct step *step, enum isolation from, enum isolation to, bool by_faults)
{
    struct health *health = step->health;
    if (!isolation_is_out(from) && isolation_is_out(to)) {
        CHECK(health->isolated < step->cluster->machine_count);
        health->isolated++;
        if (by_faults)
            vec_push(&health->isolations, step->now_ns);
    } else if (isolation_is_out(from) && !isolation_is_out(to)) {
        CHECK(health->isolated > 0);
        health->isolated--;
        health->released = true;
    }
}

static void set_action(struct step *step, struct fault *fault, enum fault_action action)
{
    CHECK(action != FAULT_NOTED && action < FAULT_ACTIONS);
    if (fault->action == action || fault->action == FAULT_EVICTED)
        return;
    fault->action = action;
    fault->shown_ns = step->now_ns;
    fault->unshown = false;
    step_changed(step, CHANGE_MODIFIED, ref_fault(fault));
    fault_arm(step->health, fault);
}

/* Makes an order for a place that faults keep out of service. Only repairs act on it: slice/ avoids broken
 * switches and links by itself. */
static bool judge_place(struct step *step, const struct machine_faults *at_place,
                        struct health_order *ret_order)
{
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    *ret_order = (struct health_order){.place = at_place->machine};
    return health_blocking(step->health, at_place->machine, faults) > 0;
}

static bool judge_machine(struct step *step, struct machine_faults *at_machine,
                          struct health_order *ret_order)
{
    struct machine *machine = cluster_find(step->cluster, at_machine->machine);
    if (!machine) {
        machine_faults_wait(step->health, at_machine, false);
        return false;
    }
    struct fault *cause;
    enum isolation was = (enum isolation)machine->isolation, kept = (enum isolation)machine->kept;
    enum isolation asked = machine_faults_wanted(at_machine, machine, &cause);
    machine->suspect = machine_faults_suspect(at_machine);
    machine_changed(machine);
    bool held_back = isolation_is_out(asked) && !isolation_is_out(was) && !isolation_is_out(kept) &&
                     !breaker_has_room(step);
    CHECK(!held_back || cause);
    bool told = held_back && cause->action == FAULT_HELD_BACK;
    if (held_back)
        asked = ISOLATION_SUSPECT;
    if (cause && (held_back || isolation_is_out(asked)))
        set_action(step, cause,
                   held_back                        ? FAULT_HELD_BACK
                   : asked == ISOLATION_QUARANTINED ? FAULT_EVICTED
                                                    : FAULT_HELD);
    enum isolation wanted = isolation_join(kept, asked);
    machine_faults_wait(step->health, at_machine, held_back || wanted == ISOLATION_DRAINING);
    *ret_order = (struct health_order){
        .machine = machine, .isolation = wanted, .fault = cause, .held_back = held_back && !told};
    book(step, was, wanted, !isolation_is_out(kept));
    return wanted != was || ret_order->held_back;
}

/* Marks draining machines that became idle, and machines that were held back if the breaker may allow one
 * now. */
static void mark_waiting(struct step *step)
{
    struct health *health = step->health;
    bool room = false, asked = false;
    for (size_t i = 0; i < health->waiting.len; i++) {
        struct machine_faults *at_machine = health->waiting.items[i];
        CHECK(at_machine->waiting);
        const struct machine *machine = cluster_find(step->cluster, at_machine->machine);
        bool drains = machine && machine->isolation == ISOLATION_DRAINING;
        if (!drains && !asked) {
            room = breaker_has_room(step);
            asked = true;
        }
        if (!machine || (drains ? machine->task_count == 0 : room))
            machine_faults_mark(step, at_machine);
    }
}

static bool next_restart(struct step *step, struct health_order *ret_order)
{
    struct health *health = step->health;
    CHECK(health->next_restart <= health->restarts.len);
    while (health->next_restart < health->restarts.len) {
        struct fault *fault = health->restarts.items[health->next_restart++];
        struct machine *machine = cluster_find(step->cluster, fault->machine);
        bool lives = store_find(health, fault->machine, fault->code, fault->place) == fault;
        if (!machine || !lives)
            continue;
        set_action(step, fault, FAULT_RESTARTED);
        *ret_order = (struct health_order){.machine = machine, .restart = true, .fault = fault};
        return true;
    }
    return false;
}

bool health_next_order(struct step *step, struct health_order *ret_order)
{
    struct health *health = step->health;
    if (health->next_marked == 0 || (health->released && health->next_marked == health->marked.len)) {
        health->released = false;
        mark_waiting(step);
    }
    while (health->next_marked < health->marked.len) {
        struct machine_faults *at_machine = health->marked.items[health->next_marked++];
        CHECK(at_machine->marked);
        at_machine->marked = false;
        if (subject_is_place(at_machine->machine) ? judge_place(step, at_machine, ret_order)
                                                  : judge_machine(step, at_machine, ret_order))
            return true;
    }
    if (next_restart(step, ret_order))
        return true;
    CHECK(health->next_marked == health->marked.len && health->next_restart == health->restarts.len);
    vec_clear(&health->marked);
    vec_clear(&health->restarts);
    health->next_marked = health->next_restart = 0;
    return false;
}

void health_kept(struct step *step, const struct machine *machine)
{
    CHECK(machine->id < step->cluster->machine_count && machine->kept < ISOLATIONS);
    machine_faults_mark(step, store_machine_faults(step->health, machine->name));
}

void health_cluster(struct step *step)
{
    struct health *health = step->health;
    health->isolated = 0;
    for (size_t i = 0; i < step->cluster->machine_count; i++)
        health->isolated += isolation_is_out(step->cluster->machines[i].isolation);
    /* In the order of machines, because the map's order depends on which machine had a fault first. */
    for (size_t i = 0; i < step->cluster->machine_count; i++) {
        struct machine_faults *at_machine = str_map_get(&health->by_machine, step->cluster->machines[i].name);
        if (at_machine)
            machine_faults_mark(step, at_machine);
    }
}

int64_t health_deadline(const struct health *health, const struct policy *policy)
{
    const struct heap_node *node = heap_min(&health->due);
    int64_t due_ns = node ? node->key : INT64_MAX;
    if (health->waiting.len && health->isolations.len) {
        CHECK(policy->faults.breaker_window_ns > 0);
        int64_t room_ns = health->isolations.items[0] + policy->faults.breaker_window_ns;
        due_ns = room_ns < due_ns ? room_ns : due_ns;
    }
    return due_ns;
}
