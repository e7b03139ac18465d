/* fault.c - how signals, people and timers change one fault. */
#include "core/health/internal.h"
#include "core/health/sender.h"

#include <inttypes.h>
#include <stdio.h>

const char *const fault_action_names[FAULT_ACTIONS] = {"Noted", "Restarted", "Held", "Evicted", "HeldBack"};
const char *const fault_reason_names[FAULT_REASONS] = {"", "Frequency", "Duration", "Relation"};
_Static_assert(FAULT_ACTIONS == 5 && FAULT_REASONS == 4, "each action and each reason has a name");
_Static_assert(FAULT_NOTED == 0 && RAISED_NOT == 0, "nothing was done yet about a new fault");

const struct fault_rule *fault_rule(const struct health *health, const struct fault *fault)
{
    return fault_table_rule(health->table, fault->code, fault->severity);
}

bool fault_is_unknown(const struct health *health, const struct fault *fault)
{
    return fault_rule(health, fault)->code.len == 0;
}

bool fault_is_on_purpose(struct str code)
{
    return str_starts(code, STR("injected/")) || str_is(code, AGENT_STOP_CODE);
}

bool health_on_purpose(const struct health *health, struct str machine, int64_t now_ns)
{
    const struct machine_faults *at_machine = str_map_get(&health->by_machine, machine);
    if (!at_machine)
        return false;
    list_for_each(node, &at_machine->faults)
    {
        const struct fault *fault = container_of(node, struct fault, on_machine);
        if (fault_is_on_purpose(fault->code) && (fault->open || now_ns - fault->last_ns <= ON_PURPOSE_NS))
            return true;
    }
    return false;
}

bool subject_is_place(struct str subject)
{
    struct str kind, name;
    return str_cut(subject, '/', &kind, &name);
}

enum place_kind fault_place(const struct fault *fault, struct str *ret_name)
{
    struct str kind, name;
    *ret_name = fault->machine;
    if (!str_cut(fault->machine, '/', &kind, &name))
        return PLACE_MACHINE;
    *ret_name = name;
    CHECK(str_is(kind, "switch") || str_is(kind, "cube") || str_is(kind, "link"));
    return str_is(kind, "switch") ? PLACE_SWITCH : str_is(kind, "cube") ? PLACE_CUBE : PLACE_LINK;
}

/* --- timers --------------------------------------------------------------------------------------------- */

static void sooner(int64_t *due_ns, int64_t at_ns, int64_t span_ns)
{
    int64_t then_ns = at_ns > INT64_MAX - span_ns ? INT64_MAX : at_ns + span_ns;
    *due_ns = then_ns < *due_ns ? then_ns : *due_ns;
}

static bool may_last(const struct fault_rule *rule, const struct fault *fault)
{
    return fault->open && rule->settle_ns > 0 && fault->level < rule->lasting && !fault->recovered_ns;
}

static bool is_released(const struct fault_rule *rule, const struct fault *fault)
{
    return fault->open && fault->reason == RAISED_FREQUENCY && rule->release_ns > 0;
}

void fault_arm(struct health *health, struct fault *fault)
{
    const struct fault_rule *rule = fault_rule(health, fault);
    int64_t due_ns = INT64_MAX;
    if (may_last(rule, fault))
        sooner(&due_ns, fault->opened_ns, rule->settle_ns);
    if (fault->open && fault->recovered_ns)
        sooner(&due_ns, fault->recovered_ns, rule->recover_ns);
    if (is_released(rule, fault))
        sooner(&due_ns, fault->last_ns, rule->release_ns);
    if (fault->unshown)
        sooner(&due_ns, fault->shown_ns, FAULT_SHOW_NS);
    if (heap_has(&fault->due))
        heap_remove(&health->due, &fault->due);
    if (heap_has(&fault->closed))
        heap_remove(&health->closed, &fault->closed);
    fault->due.tie = fault->closed.tie = fault->uid;
    fault->due.key = due_ns;
    fault->closed.key = fault->closed_ns;
    if (due_ns != INT64_MAX)
        heap_insert(&health->due, &fault->due);
    if (!fault->open)
        heap_insert(&health->closed, &fault->closed);
    CHECK(heap_has(&fault->closed) == !fault->open && heap_has(&fault->due) == (due_ns != INT64_MAX));
}

/* Notifies watchers of the fault: at once of an important change (`now`), otherwise at most once in
 * FAULT_SHOW_NS. */
static void show(struct step *step, struct fault *fault, bool now)
{
    if (now || step->now_ns - fault->shown_ns >= FAULT_SHOW_NS) {
        fault->shown_ns = step->now_ns;
        fault->unshown = false;
        step_changed(step, CHANGE_MODIFIED, ref_fault(fault));
    } else {
        fault->unshown = true;
    }
}

/* --- one fault ------------------------------------------------------------------------------------------ */

static void close_fault(struct step *step, struct fault *fault)
{
    CHECK(fault->open && (!fault->from || fault->from->open > 0));
    fault->open = false;
    if (fault->from)
        fault->from->open--;
    step->health->closings++;
    fault->closed_ns = step->now_ns;
    fault->recovered_ns = 0;
    if (fault->reason == RAISED_FREQUENCY)
        vec_clear(&fault->recent); /* occurrences are counted from zero again */
    machine_faults_mark(step, fault->at_machine);
    show(step, fault, true);
    fault_arm(step->health, fault);
}

static void open_fault(struct step *step, struct fault *fault, const struct fault_rule *rule)
{
    CHECK(!fault->open && rule->level < LEVELS && rule->domain < DOMAINS);
    fault->open = true;
    if (fault->from)
        fault->from->open++;
    fault->opened_ns = step->now_ns;
    fault->closed_ns = 0;
    fault->level = fault->own = rule->level;
    fault->domain = rule->domain;
    fault->high = rule->high;
    fault->reason = RAISED_NOT;
    fault->action = FAULT_NOTED;
    fault->software = false;
    fault->remedy =
        str_equal(fault->remedy, rule->action) ? fault->remedy : arena_str(&fault->text, rule->action);
}

static void raise_fault(struct step *step, struct fault *fault, enum fault_level level,
                        enum fault_reason reason)
{
    CHECK(fault->open && level < LEVELS && reason != RAISED_NOT);
    if (level <= fault->level)
        return;
    fault->level = level;
    fault->reason = reason;
    fault->high |= reason != RAISED_DURATION && level >= LEVEL_RESET;
    machine_faults_mark(step, fault->at_machine);
}

static bool struck_lately(const struct fault *fault, int64_t now_ns, int64_t window_ns)
{
    return fault->last_ns > 0 && now_ns - fault->last_ns <= window_ns;
}

/* Marks the fault as software if the same code occurred on another chip of the same JobSet within the window,
 * unless it was caused on purpose. */
static void judge_software(struct step *step, struct fault *fault)
{
    CHECK(fault->open);
    if (fault_is_on_purpose(fault->code))
        return;
    const struct correlated_faults *correlated = store_correlated(step->health, fault);
    for (size_t i = 0; correlated && i < correlated->faults.len; i++) {
        struct fault *other = correlated->faults.items[i];
        if (other == fault || !struck_lately(other, step->now_ns, SOFTWARE_WINDOW_NS))
            continue;
        fault->software = true;
        vec_clear(&fault->recent);
        if (!other->software) {
            other->software = true;
            vec_clear(&other->recent);
            show(step, other, false);
            fault_arm(step->health, other);
        }
        return;
    }
}

static void count_frequency(struct step *step, struct fault *fault, const struct fault_rule *rule,
                            uint32_t count)
{
    CHECK(fault->open && rule->times <= FAULT_TIMES_MAX);
    if (!rule->times || fault->software)
        return;
    size_t old = 0;
    while (old < fault->recent.len && step->now_ns - fault->recent.items[old] > rule->window_ns)
        old++;
    if (old > 0)
        memmove(fault->recent.items, fault->recent.items + old, (fault->recent.len - old) * sizeof(int64_t));
    fault->recent.len -= old;
    for (uint32_t i = 0; i < count && i < FAULT_TIMES_MAX; i++) {
        if (fault->recent.len == FAULT_TIMES_MAX)
            vec_remove(&fault->recent, 0);
        vec_push(&fault->recent, step->now_ns);
    }
    CHECK(fault->recent.len <= FAULT_TIMES_MAX);
    if (fault->recent.len >= rule->times)
        raise_fault(step, fault, rule->frequent, RAISED_FREQUENCY);
}

static void judge_relations(struct step *step, struct fault *fault)
{
    size_t count;
    const struct fault_relation *relations = fault_table_relations(step->health->table, &count);
    for (size_t i = 0; i < count; i++) {
        if (!str_equal(relations[i].then, fault->code))
            continue;
        list_for_each(node, &fault->at_machine->faults)
        {
            const struct fault *first = container_of(node, struct fault, on_machine);
            if (first != fault && str_equal(first->code, relations[i].first) &&
                struck_lately(first, step->now_ns, relations[i].within_ns))
                raise_fault(step, fault, relations[i].level, RAISED_RELATION);
        }
    }
}

static void take_evidence(struct fault *fault, const struct signal *signal)
{
    buf_clear(&fault->evidence);
    buf_add_str(&fault->evidence, signal->evidence);
    fault->chip = signal->chip;
    fault->severity = signal->severity;
}

/* Records an occurrence of the fault, or its beginning. */
static void occur(struct step *step, struct fault *fault, const struct signal *signal)
{
    struct health *health = step->health;
    CHECK(signal->assertion != SIGNAL_RECOVER && signal->count > 0);
    take_evidence(fault, signal);
    const struct fault_rule *rule = fault_rule(health, fault);
    bool opens = !fault->open;
    fault->count += signal->count;
    fault->recovered_ns = 0;
    if (opens)
        open_fault(step, fault, rule);
    enum fault_level before = fault->level;
    judge_software(step, fault);
    fault->last_ns = step->now_ns;
    count_frequency(step, fault, rule, signal->count);
    judge_relations(step, fault);
    CHECK(fault->open && fault->level >= fault->own && (!fault->software || fault->recent.len == 0));
    if (fault->high && (fault->level == LEVEL_RESTART_REQUEST || fault->level == LEVEL_RESTART_BUSINESS))
        vec_push(&health->restarts, fault);
    machine_faults_mark(step, fault->at_machine);
    show(step, fault, opens || fault->level != before);
    fault_arm(health, fault);
    if (signal->assertion == SIGNAL_ONCE && fault->level < LEVEL_PRE_SEPARATE)
        close_fault(step, fault);
}

static void recover(struct step *step, struct fault *fault)
{
    if (!fault->open || fault->recovered_ns || fault->level == LEVEL_MANUALLY_SEPARATE)
        return;
    if (fault_rule(step->health, fault)->recover_ns == 0) {
        close_fault(step, fault);
        return;
    }
    fault->recovered_ns = step->now_ns;
    show(step, fault, true);
    fault_arm(step->health, fault);
}

/* --- signals -------------------------------------------------------------------------------------------- */

/* Makes the name "<machine>.<family>-<code>.<suffix>", with the whole uid if the short suffix is taken. */
static struct str make_name(const struct health *health, struct arena *arena, const struct fault *fault)
{
    char suffix[SUFFIX_TEXT_MAX];
    uid_suffix(fault->uid, suffix);
    struct str family, code, place;
    CHECK(str_cut(fault->code, '/', &family, &code));
    (void)fault_place(fault, &place);
    struct str name = arena_printf(arena, STR_FORMAT "." STR_FORMAT "-" STR_FORMAT ".%s", STR_ARG(place),
                                   STR_ARG(family), STR_ARG(code), suffix);
    if (name.len <= NAME_MAX_BYTES && !fault_find(health, name))
        return name;
    return arena_printf(arena, "fault.%" PRIx64, fault->uid);
}

static struct fault *new_fault(struct step *step, const struct sighting *sighting)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct health *health = step->health;
    if (!store_make_room(step, sighting->machine)) {
        health->dropped++;
        return NULL;
    }
    CHECK(health->sorted.len < FAULTS_MAX);
    struct fault from = {
        .uid = step_uid(step),
        .name = sighting->name,
        .machine = sighting->machine,
        .code = sighting->signal->code,
        .place = sighting->signal->place,
        .user = sighting->user,
        .sender = sighting->sender,
        .created_ns = step->now_ns,
        .job = sighting->job,
    };
    if (!from.name.len)
        from.name = make_name(health, &arena, &from);
    struct fault *fault = store_add(health, &from);
    if (!fault)
        return NULL;
    CHECK(!fault->open && fault->at_machine->count <= FAULTS_PER_MACHINE_MAX);
    fault->created_ns = fault->first_ns = fault->shown_ns = step->now_ns;
    fault->closed_ns = step->now_ns;
    step_changed(step, CHANGE_ADDED, ref_fault(fault));
    return fault;
}

static void charge(struct step *step, struct str name)
{
    struct sender *sender = sender_need(step->health, name, step->now_ns);
    CHECK(sender); /* sender_judge has refused a report from one sender too many */
    sender_charge(sender, step->health->table, step->now_ns);
}

struct fault *health_signal(struct step *step, const struct sighting *sighting)
{
    const struct signal *signal = sighting->signal;
    CHECK(signal_is_valid(signal));
    if (sighting->sender.len)
        charge(step, sighting->sender);
    struct fault *fault = store_find(step->health, sighting->machine, signal->code, signal->place);
    if (signal->assertion == SIGNAL_RECOVER) {
        if (fault)
            recover(step, fault);
        return fault;
    }
    /* An agent repeats its standing signals when it reconnects: such a signal is no new occurrence. */
    bool stands = fault && fault->open && signal->assertion == SIGNAL_OCCUR && !fault->recovered_ns;
    if (stands)
        return fault;
    if (!fault)
        fault = new_fault(step, sighting);
    if (!fault)
        return NULL;
    store_set_job(step->health, fault, sighting->job);
    occur(step, fault, signal);
    return fault;
}

void health_clear(struct step *step, struct fault *fault)
{
    if (fault->open)
        close_fault(step, fault);
}

void health_remove(struct step *step, struct fault *fault)
{
    health_clear(step, fault);
    CHECK(!fault->open);
    step_changed(step, CHANGE_DELETED, ref_fault(fault));
    store_remove(step->health, fault);
}

void fault_strike(struct step *step, struct fault *fault, struct str name)
{
    CHECK(fault->job_count <= FAULT_JOBS_MAX);
    for (uint32_t i = 0; i < fault->job_count; i++)
        if (str_equal(fault->jobs[i], name))
            return;
    if (fault->job_count < FAULT_JOBS_MAX)
        fault->jobs[fault->job_count++] = arena_str(&fault->text, name);
    else
        fault->jobs_more++;
    show(step, fault, true);
    fault_arm(step->health, fault);
}

/* --- time ----------------------------------------------------------------------------------------------- */

static void fire(struct step *step, struct fault *fault)
{
    CHECK(!heap_has(&fault->closed) || fault->unshown); /* a closed fault waits for watchers only */
    const struct fault_rule *rule = fault_rule(step->health, fault);
    int64_t now_ns = step->now_ns;
    if (fault->recovered_ns && now_ns - fault->recovered_ns >= rule->recover_ns) {
        close_fault(step, fault);
        return;
    }
    if (is_released(rule, fault) && now_ns - fault->last_ns >= rule->release_ns) {
        close_fault(step, fault);
        return;
    }
    enum fault_level before = fault->level;
    if (may_last(rule, fault) && now_ns - fault->opened_ns >= rule->settle_ns)
        raise_fault(step, fault, rule->lasting, RAISED_DURATION);
    if (fault->unshown || fault->level != before)
        show(step, fault, fault->level != before);
    fault_arm(step->health, fault);
}

void health_tick(struct step *step)
{
    struct heap_node *node;
    breaker_forget(step);
    while ((node = heap_min(&step->health->due)) && node->key <= step->now_ns) {
        fire(step, container_of(node, struct fault, due));
        CHECK(!heap_has(node) || node->key > step->now_ns); /* so that this loop ends */
    }
}

void health_set_table(struct health *health, const struct doc *document)
{
    fault_table_free(health->table);
    health->table = fault_table_new(document);
    for (size_t i = 0; i < health->sorted.len; i++)
        fault_arm(health, health->sorted.items[i]);
}
