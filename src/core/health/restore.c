/* restore.c - restores faults from a snapshot, and checks the invariants of their indexes. */
#include "core/health/internal.h"
#include "core/health/sender.h"

static void copy_state(struct fault *fault, const struct fault *saved)
{
    CHECK(saved->recent.len <= FAULT_TIMES_MAX && saved->job_count <= FAULT_JOBS_MAX);
    CHECK(!fault->open && fault->recent.len == 0 && fault->job_count == 0);
    buf_add_str(&fault->evidence, buf_str(&saved->evidence));
    fault->chip = saved->chip;
    fault->severity = saved->severity;
    fault->domain = saved->domain;
    fault->high = saved->high;
    fault->open = saved->open;
    fault->software = saved->software;
    fault->level = saved->level;
    fault->own = saved->own;
    fault->reason = saved->reason;
    fault->action = saved->action;
    fault->remedy = arena_str(&fault->text, saved->remedy);
    fault->count = saved->count;
    fault->first_ns = saved->first_ns;
    fault->last_ns = saved->last_ns;
    fault->opened_ns = saved->opened_ns;
    fault->closed_ns = saved->closed_ns;
    fault->recovered_ns = saved->recovered_ns;
    fault->jobs_more = saved->jobs_more;
    fault->created_ns = saved->created_ns;
    fault->changed_seq = saved->changed_seq;
    fault->shown_ns = saved->shown_ns;
    fault->unshown = saved->unshown;
    for (size_t i = 0; i < saved->recent.len; i++)
        vec_push(&fault->recent, saved->recent.items[i]);
    for (uint32_t i = 0; i < saved->job_count; i++)
        fault->jobs[i] = arena_str(&fault->text, saved->jobs[i]);
    fault->job_count = saved->job_count;
}

bool health_restore(struct health *health, const struct fault *saved)
{
    struct str family, code;
    if (!saved->uid || !saved->name.len || !str_cut(saved->code, '/', &family, &code) ||
        saved->machine.len > NAME_MAX_BYTES || saved->code.len > SIGNAL_CODE_MAX ||
        saved->place.len > SIGNAL_PLACE_MAX || saved->recent.len > FAULT_TIMES_MAX ||
        saved->sender.len > SENDER_NAME_MAX || saved->job_count > FAULT_JOBS_MAX ||
        health->sorted.len >= FAULTS_MAX)
        return false;
    struct fault *fault = store_add(health, saved);
    if (!fault || fault->at_machine->count > FAULTS_PER_MACHINE_MAX)
        return false;
    copy_state(fault, saved);
    if (fault->from)
        fault->from->open += fault->open;
    fault_arm(health, fault);
    return true;
}

const int64_t *health_isolations(const struct health *health, size_t *ret_count)
{
    *ret_count = health->isolations.len;
    return health->isolations.items;
}

void health_restore_breaker(struct health *health, const int64_t *isolations, size_t count, uint64_t dropped)
{
    vec_clear(&health->isolations);
    for (size_t i = 0; i < count; i++)
        vec_push(&health->isolations, isolations[i]);
    health->dropped = dropped;
}

/* Whether the breaker holds the machine back. */
static bool is_held_back(enum isolation asked, const struct machine *machine)
{
    return isolation_is_out(asked) && !isolation_is_out(machine->kept) &&
           machine->isolation == ISOLATION_SUSPECT;
}

/* Whether the machine must be in health->waiting: it drains or is held back. */
static bool should_wait(const struct machine_faults *at_machine, const struct machine *machine)
{
    struct fault *cause;
    return machine->isolation == ISOLATION_DRAINING ||
           is_held_back(machine_faults_wanted(at_machine, machine, &cause), machine);
}

bool health_restored(struct health *health, const struct cluster *cluster)
{
    health->isolated = 0;
    for (size_t i = 0; i < cluster->machine_count; i++) {
        struct machine *machine = &cluster->machines[i];
        struct machine_faults *at_machine = machine->kept ? store_machine_faults(health, machine->name)
                                                          : str_map_get(&health->by_machine, machine->name);
        health->isolated += isolation_is_out(machine->isolation);
        machine->suspect = at_machine && machine_faults_suspect(at_machine);
        if (at_machine && should_wait(at_machine, machine))
            machine_faults_wait(health, at_machine, true);
        if (!at_machine && machine->isolation != ISOLATION_HEALTHY)
            return false;
    }
    return true;
}

/* --- invariants ----------------------------------------------------------------------------------------- */

static void check_senders(const struct health *health)
{
    uint64_t faults = 0, open = 0, faults_of = 0, open_of = 0;
    for (size_t i = 0; i < health->senders.len; i++) {
        const struct sender *sender = health->senders.items[i];
        CHECK(i == 0 || str_compare(health->senders.items[i - 1]->name, sender->name) < 0);
        CHECK(sender->open <= sender->faults);
        faults_of += sender->faults;
        open_of += sender->open;
    }
    for (size_t i = 0; i < health->sorted.len; i++) {
        const struct fault *fault = health->sorted.items[i];
        CHECK(!fault->from == !fault->sender.len &&
              (!fault->from || str_equal(fault->from->name, fault->sender)));
        faults += fault->from != NULL;
        open += fault->from && fault->open;
    }
    CHECK(faults == faults_of && open == open_of && health->senders.len <= SENDERS_MAX);
}

static void check_fault(const struct health *health, const struct fault *fault)
{
    CHECK(store_find(health, fault->machine, fault->code, fault->place) == fault);
    CHECK(fault->open == !heap_has(&fault->closed) && fault->open == (fault->closed_ns == 0));
    CHECK(fault->level >= fault->own || !fault->open);
    CHECK(fault->level < LEVELS && fault->action < FAULT_ACTIONS && fault->reason < FAULT_REASONS);
    CHECK(!fault->recovered_ns || fault->open);
    CHECK(!fault->unshown || heap_has(&fault->due));
    CHECK(fault->recent.len <= FAULT_TIMES_MAX && (!fault->software || fault->recent.len == 0));
    CHECK(fault->count > 0 && fault->first_ns <= fault->last_ns);
    CHECK(fault->uid && fault->job_count <= FAULT_JOBS_MAX);
    CHECK(fault->at_machine->count > 0 && fault->at_machine->count <= FAULTS_PER_MACHINE_MAX);
    CHECK(str_equal(fault->at_machine->machine, fault->machine));
}

/* Checks that a machine's isolation follows only from its open faults, the breaker and its repair. */
static void check_machine(const struct health *health, const struct machine *machine)
{
    struct fault *cause;
    const struct machine_faults *at_machine = str_map_get(&health->by_machine, machine->name);
    enum isolation asked =
        at_machine ? machine_faults_wanted(at_machine, machine, &cause) : ISOLATION_HEALTHY;
    enum isolation wanted = isolation_join(machine->kept, asked);
    bool held_back = is_held_back(asked, machine);
    CHECK(machine->isolation == wanted || held_back);
    CHECK(!at_machine || at_machine->waiting == (held_back || wanted == ISOLATION_DRAINING));
    CHECK(machine->suspect == (at_machine && machine_faults_suspect(at_machine)));
    CHECK(!machine->leave_ns || machine->isolation == ISOLATION_QUARANTINED);
}

void health_check(const struct health *health, const struct cluster *cluster)
{
    size_t isolated = 0, closed = 0;
    CHECK(health->marked.len == 0 && health->restarts.len == 0);
    CHECK(health->next_marked == 0 && health->next_restart == 0 && health->sorted.len <= FAULTS_MAX);
    check_senders(health);
    for (size_t i = 0; i < health->sorted.len; i++) {
        const struct fault *fault = health->sorted.items[i];
        CHECK(i == 0 || str_compare(health->sorted.items[i - 1]->name, fault->name) < 0);
        check_fault(health, fault);
        closed += !fault->open;
    }
    CHECK(closed == health->closed.len && health->sorted.len == health->by_key.len);
    for (size_t i = 0; i < cluster->machine_count; i++) {
        check_machine(health, &cluster->machines[i]);
        isolated += isolation_is_out(cluster->machines[i].isolation);
    }
    CHECK(isolated == health->isolated);
    for (size_t i = 1; i < health->isolations.len; i++)
        CHECK(health->isolations.items[i - 1] <= health->isolations.items[i]);
}
