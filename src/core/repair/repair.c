/* repair.c - the course of one repair. */
#include "core/repair/internal.h"

#include "doc/json.h"
#include "core/lemon/lemon.h"

#define TEST_ACTION STR("qualify")
enum { BACKOFF_DOUBLINGS_MAX = 10, TEST_RETRIES = 1 }; /* of tests that ended without a result */
_Static_assert(24 * 3600 * NS_PER_SECOND <= INT64_MAX >> (BACKOFF_DOUBLINGS_MAX + 1),
               "the longest pause of a hook, which is a day, can double so often");

static const struct repair_settings *settings_of(const struct step *step)
{
    return &step->cluster->policy.repair;
}

static struct machine *machine_of(const struct step *step, const struct repair *repair)
{
    struct machine *machine = cluster_find(step->cluster, repair->subject);
    CHECK(machine); /* repairs_cluster closes repairs of removed machines */
    return machine;
}

static const struct repair_hook *hook_of(const struct step *step, const struct repair *repair)
{
    int rank = hook_rank(settings_of(step), repair->action);
    return rank < 0 ? NULL : &settings_of(step)->hooks[rank];
}

static struct repair_attempt *last_attempt(struct repair *repair)
{
    return repair->attempt_count ? &repair->attempts[repair->attempt_count - 1] : NULL;
}

/* Returns the machine that runs the hook; NULL: it has left the cluster. */
static const struct machine *runner_of(const struct step *step, const struct repair *repair)
{
    const struct repair_hook *hook = hook_of(step, repair);
    return hook && hook->on.len ? cluster_find(step->cluster, hook->on) : machine_of(step, repair);
}

bool repair_can_begin(const struct machine *machine)
{
    return isolation_is_out(machine->isolation) && machine->task_count == 0 && machine->leave_ns == 0;
}

/* --- moving --------------------------------------------------------------------------------------------- */

void repair_move(struct step *step, struct repair *repair, enum repair_state state, const char *format, ...)
{
    struct buf why BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&why, format, args);
    va_end(args);
    uint8_t moved = (uint8_t)repair->state;
    lifecycle_move(&repair_lifecycle, &moved, (uint8_t)state);
    repair->state = state;
    CHECK((repair->closed_ns != 0) == (state == REPAIR_CLOSED));
    CHECK((repair->errand != 0) == (state == REPAIR_RESETTING || state == REPAIR_QUALIFYING));
    repair->changed_ns = step->now_ns;
    repair->due_ns = 0;
    book_change(repair,
                &(struct repair_change){state, step->now_ns, arena_str(&repair->text, buf_str(&why))});
    step->repairs->changed = true;
    ticket_show(step, repair);
}

void repair_note(struct step *step, const struct repair *repair, bool warning, const char *reason,
                 const char *format, ...)
{
    struct buf text BUF_CLEANUP = {0};
    const struct object *object = repair_object(step, repair->uid);
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    if (!repair_is_of_place(repair))
        step_note(step, warning, reason, ref_machine(machine_of(step, repair)), STR_FORMAT,
                  STR_ARG(buf_str(&text)));
    if (object)
        step_note(step, warning, reason, ref_object(object), STR_FORMAT, STR_ARG(buf_str(&text)));
}

/* Whether the ticket is a question: no action was tried, and only faults of codes that the fault table does
 * not know keep the machine out. */
static bool is_question(const struct step *step, const struct repair *repair)
{
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    size_t count = health_blocking(step->health, repair->subject, faults);
    bool all = count > 0 && repair->attempt_count == 0 && repair->origin == REPAIR_BY_FAULT;
    for (size_t i = 0; all && i < count; i++)
        all = faults[i]->level == LEVEL_PRE_SEPARATE && fault_is_unknown(step->health, faults[i]);
    return all;
}

static void make_ticket(struct step *step, struct repair *repair, const char *why)
{
    CHECK(*why); /* a ticket says what to do */
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    repair->heals = health_blocking(step->health, repair->subject, faults) > 0;
    repair->asks = is_question(step, repair);
    step->repairs->totals.tickets++;
    bool known = repair->code_count == 1 && str_is(repair->codes[0], LEMON_FAULT);
    /* tickets for lemons, and questions, are no new evidence about the machine */
    if (!known && !repair->asks)
        lemon_count(step, machine_of(step, repair), LEMON_TICKET);
    repair_move(step, repair, REPAIR_TICKETED, "%s", why);
    repair_note(step, repair, true, "RepairTicket", "a person is needed: %s", why);
}

void repair_close(struct step *step, struct repair *repair, const char *why, bool returned)
{
    const struct machine *machine = cluster_find(step->cluster, repair->subject);
    CHECK(!repair->errand);
    CHECK(!last_attempt(repair) || last_attempt(repair)->outcome != REPAIR_RUNS);
    repair->closed_ns = step->now_ns;
    if (returned && machine && isolation_is_out(machine->isolation) && settings_of(step)->watch_ns > 0)
        repair->watch_ns = step->now_ns + settings_of(step)->watch_ns;
    step->repairs->totals.returned += returned && machine;
    book_shut(step->repairs, repair);
    repair_move(step, repair, REPAIR_CLOSED, "%s", why);
    if (!machine && !repair_is_of_place(repair))
        return;
    if (machine)
        book_watch(step->repairs, machine->id); /* in case its faults still keep it out */
    repair_note(step, repair, false, machine && returned ? "MachineReturned" : "RepairClosed", "%s", why);
}

/* --- attempts ------------------------------------------------------------------------------------------- */

static void end_attempt(struct step *step, struct repair *repair, enum repair_outcome outcome,
                        int32_t exit_code, struct str output)
{
    struct repair_attempt *attempt = last_attempt(repair);
    CHECK(attempt && attempt->outcome == REPAIR_RUNS && outcome != REPAIR_RUNS);
    CHECK(outcome < REPAIR_OUTCOMES && !repair->errand);
    attempt->outcome = outcome;
    attempt->exit_code = exit_code;
    attempt->ended_ns = step->now_ns;
    if (output.len)
        attempt->output = arena_str(&repair->text, str_head_utf8(output, REPAIR_OUTPUT_MAX));
    step->repairs->totals.attempts[outcome]++;
}

static void stop_attempt(struct step *step, struct repair *repair, enum repair_outcome outcome,
                         const char *output)
{
    if (repair->errand)
        errand_cancel(step, repair->errand);
    repair->errand = 0;
    if (last_attempt(repair) && last_attempt(repair)->outcome == REPAIR_RUNS)
        end_attempt(step, repair, outcome, 0, str_from(output));
}

/* Appends the errand's body: {"hook": "reboot", "env": {"PHX_MACHINE": "m-1", ...}} */
static void put_hook(const struct step *step, const struct repair *repair, struct buf *out)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *body = doc_new(&arena, DOC_OBJECT), *env = doc_need_object(&arena, body, "env");
    const struct fault *fault = fault_of_machine(step->health, repair->subject);
    const struct object *object = repair_object(step, repair->uid);
    const struct {
        const char *name;
        struct str value;
    } pairs[] = {
        {"PHX_MACHINE", repair->subject},
        {"PHX_ACTION", repair->action},
        {"PHX_REPAIR", object ? object->name : STR("")},
        {"PHX_FAULT_CODE", fault ? fault->code : STR("")},
        {"PHX_FAULT_PLACE", fault ? fault->place : STR("")},
    };
    doc_set(&arena, body, STR("hook"), doc_new_str(&arena, repair->action));
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
        doc_set(&arena, env, str_from(pairs[i].name), doc_new_str(&arena, pairs[i].value));
    json_write(out, body);
}

static void send(struct step *step, struct repair *repair, const struct machine *machine,
                 enum errand_kind kind, int64_t timeout_ns)
{
    struct buf body BUF_CLEANUP = {0};
    CHECK(!repair->errand && (kind == ERRAND_HOOK || kind == ERRAND_QUALIFY));
    if (kind == ERRAND_HOOK)
        put_hook(step, repair, &body);
    else
        buf_add_str(&body, qualify_class_of(&step->cluster->qualification, machine)->body);
    step->repairs->sent = true;
    repair->errand = errand_begin(step, &(struct errand_order){.machine = machine->id,
                                                               .kind = kind,
                                                               .owner = ERRAND_OF_REPAIR,
                                                               .about = repair->uid,
                                                               .tag = ++repair->tag,
                                                               .body = buf_str(&body),
                                                               .timeout_ns = timeout_ns});
    CHECK(repair->errand && last_attempt(repair) && last_attempt(repair)->outcome == REPAIR_RUNS);
}

static void begin_hook(struct step *step, struct repair *repair)
{
    const struct repair_hook *hook = hook_of(step, repair);
    const struct machine *runner = runner_of(step, repair);
    CHECK(hook && runner && runner->state == MACHINE_READY && !repair->testing);
    book_attempt(repair, &(struct repair_attempt){
                             .action = repair->action, .reboots = hook->reboots, .began_ns = step->now_ns});
    repair->tries++;
    send(step, repair, runner, ERRAND_HOOK, hook->timeout_ns);
    repair_move(step, repair, REPAIR_RESETTING, STR_FORMAT ", try %u", STR_ARG(repair->action),
                repair->tries);
    repair_note(step, repair, false, "RepairHook", "hook " STR_FORMAT " runs on " STR_FORMAT ", try %u",
                STR_ARG(repair->action), STR_ARG(runner->name), repair->tries);
}

static void begin_test(struct step *step, struct repair *repair)
{
    repair->testing = true;
    book_attempt(repair,
                 &(struct repair_attempt){.action = TEST_ACTION, .test = true, .began_ns = step->now_ns});
    send(step, repair, machine_of(step, repair), ERRAND_QUALIFY, step->cluster->qualification.timeout_ns);
    repair_move(step, repair, REPAIR_QUALIFYING, "the machine is tested");
}

void repair_gone(struct step *step, struct repair *repair)
{
    bool place = repair_is_of_place(repair);
    stop_attempt(step, repair, REPAIR_LOST, "the machine left the cluster");
    repair_close(step, repair, place ? "the cluster has it no more" : "the cluster has the machine no more",
                 false);
}

/* --- what is next --------------------------------------------------------------------------------------- */

static void pause(struct step *step, struct repair *repair, int64_t backoff_ns, const char *why)
{
    CHECK(backoff_ns >= 0);
    uint32_t doublings = repair->tries < BACKOFF_DOUBLINGS_MAX ? repair->tries : BACKOFF_DOUBLINGS_MAX;
    repair_move(step, repair, REPAIR_PAUSED, "%s", why);
    repair->due_ns = step->now_ns + (backoff_ns << (doublings > 0 ? doublings - 1 : 0));
}

static void try_action(struct step *step, struct repair *repair, int rank)
{
    CHECK(rank >= 0 && (size_t)rank < settings_of(step)->hook_count);
    const struct repair_hook *hook = &settings_of(step)->hooks[rank];
    if (!str_equal(hook->action, repair->action))
        repair->action = arena_str(&repair->text, hook->action);
    repair->tries = 0;
    repair->testing = false;
    const struct machine *runner = runner_of(step, repair);
    if (!runner)
        make_ticket(step, repair, "the machine that should run the hook is not in the cluster");
    else if (runner->state == MACHINE_READY)
        begin_hook(step, repair);
    else
        pause(step, repair, 0, "the machine's agent is not there");
}

/* Chooses the action that the faults ask for, not milder than `least`. */
static void choose(struct step *step, struct repair *repair, int least)
{
    take_codes(step, repair);
    struct choice choice = choose_action(step, repair, least);
    CHECK(choice.rank >= 0 || choice.test != (choice.why[0] != 0));
    if (choice.rank >= 0)
        try_action(step, repair, choice.rank);
    else if (choice.test && repair->tested && settings_of(step)->qualify)
        begin_test(step, repair);
    else if (choice.test)
        repair_close(step, repair, "back without a test", true);
    else
        make_ticket(step, repair, choice.why);
}

/* Called when an action did not help: chooses a harder one, or opens a ticket. */
static void escalate(struct step *step, struct repair *repair, const char *why)
{
    int rank = hook_rank(settings_of(step), repair->action);
    if (rank < 0 || repair->origin == REPAIR_BY_MAINTENANCE)
        make_ticket(step, repair, why);
    else
        choose(step, repair, rank + 1);
}

/* Called when the machine has passed its test, or needs none. Closes the repair, or escalates if faults are
 * open. */
static void judge_return(struct step *step, struct repair *repair, const char *why)
{
    struct buf text BUF_CLEANUP = {0};
    size_t standing = take_codes(step, repair);
    CHECK(!last_attempt(repair) || last_attempt(repair)->outcome != REPAIR_RUNS);
    if (standing == 0) {
        repair_close(step, repair, why, true);
        return;
    }
    buf_printf(&text, "%zu of its faults stand", standing);
    escalate(step, repair, text.data);
}

static void say_again(struct step *step, const struct repair *repair)
{
    struct effect *effect = effect_add(step->effects, EFFECT_SAY_AGAIN);
    effect->say_again.machine = machine_of(step, repair)->id;
}

static void begin_return(struct step *step, struct repair *repair)
{
    say_again(step, repair);
    repair->tries = 0;
    if (repair->tested && settings_of(step)->qualify)
        begin_test(step, repair);
    else
        judge_return(step, repair, "back without a test");
}

/* Called when the hook succeeded: closes the faults that it can clear, until probes report them again. */
static void cured(struct step *step, struct repair *repair)
{
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    size_t count = health_blocking(step->health, repair->subject, faults);
    int rank = hook_rank(settings_of(step), repair->action);
    for (size_t i = 0; i < count; i++)
        if (hook_clears(settings_of(step), rank, faults[i]) ||
            (repair->asked && fault_is_unknown(step->health, faults[i])))
            health_clear(step, faults[i]);
    begin_return(step, repair);
}

/* Whether all faults have ended by themselves. Returns false if the repair itself may have closed some,
 * because the test may report those again. */
static bool has_healed(const struct step *step, const struct repair *repair)
{
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    bool closed = repair->origin != REPAIR_BY_FAULT;
    for (size_t i = 0; i < repair->attempt_count; i++)
        closed |= repair->attempts[i].test;
    return !closed && health_blocking(step->health, repair->subject, faults) == 0;
}

/* Called when the machine's faults have ended by themselves. A machine on which no action ran need not be
 * tested. */
static void heal(struct step *step, struct repair *repair)
{
    bool touched = false;
    for (size_t i = 0; i < repair->attempt_count; i++)
        touched |= repair->attempts[i].outcome != REPAIR_MISSING;
    if (touched)
        begin_return(step, repair);
    else
        repair_close(step, repair, "its faults are over", false);
}

void repair_done(struct step *step, struct repair *repair)
{
    if (repair_is_of_place(repair)) {
        place_done(step, repair);
        return;
    }
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    take_codes(step, repair);
    size_t count = health_blocking(step->health, repair->subject, faults);
    stop_attempt(step, repair, REPAIR_STOPPED, "");
    for (size_t i = 0; i < count; i++)
        health_clear(step, faults[i]);
    repair->action = STR(""); /* a failure from here on leads to a ticket */
    repair->asked = false;
    if (repair_can_begin(machine_of(step, repair)))
        begin_return(step, repair);
    else
        repair_close(step, repair, "no longer needed", false);
}

void repair_ask(struct step *step, struct repair *repair, struct str action)
{
    CHECK(repair->state == REPAIR_TICKETED);
    if (repair_is_of_place(repair)) /* no hook repairs it */
        return;
    repair->action = arena_str(&repair->text, action);
    repair->asked = true;
    choose(step, repair, -1);
}

/* --- ends of errands ------------------------------------------------------------------------------------ */

static enum repair_outcome outcome_of(const struct step *step, const struct repair *repair,
                                      const struct errand_end *end)
{
    const struct machine *runner = runner_of(step, repair);
    switch (end->outcome) {
    case ERRAND_OK:
        return REPAIR_OK;
    case ERRAND_FAILED:
        return end->exit_code == -1 ? REPAIR_MISSING : REPAIR_FAILED;
    case ERRAND_TIMED_OUT:
        return REPAIR_TIMED_OUT;
    case ERRAND_LOST:
        return runner && runner->state == MACHINE_READY && !runner->errands ? REPAIR_MISSING : REPAIR_LOST;
    }
    return REPAIR_LOST;
}

static void hook_failed(struct step *step, struct repair *repair, enum repair_outcome outcome)
{
    CHECK(outcome != REPAIR_OK && outcome != REPAIR_RUNS);
    const struct repair_hook *hook = hook_of(step, repair);
    struct buf why BUF_CLEANUP = {0};
    buf_printf(&why, "hook " STR_FORMAT ": %s", STR_ARG(repair->action), repair_outcome_names[outcome]);
    repair_note(step, repair, true, "RepairHookFailed", "hook " STR_FORMAT ", try %u: %s",
                STR_ARG(repair->action), repair->tries, repair_outcome_names[outcome]);
    if (has_healed(step, repair))
        heal(step, repair);
    else if (outcome == REPAIR_MISSING)
        make_ticket(step, repair, why.data);
    else if (hook && repair->tries <= hook->retries)
        pause(step, repair, hook->backoff_ns, why.data);
    else
        escalate(step, repair, why.data);
}

static void wait_for_return(struct step *step, struct repair *repair, const struct repair_hook *hook)
{
    CHECK(hook->reboots && last_attempt(repair)->outcome == REPAIR_RUNS);
    repair_move(step, repair, REPAIR_RETURNING, "the machine should be back soon");
    repair->due_ns = last_attempt(repair)->began_ns + hook->timeout_ns;
}

static void hook_ended(struct step *step, struct repair *repair, const struct errand_end *end)
{
    const struct repair_hook *hook = hook_of(step, repair);
    enum repair_outcome outcome = outcome_of(step, repair, end);
    bool goes = hook && hook->reboots && (outcome == REPAIR_OK || outcome == REPAIR_LOST);
    if (goes && (outcome == REPAIR_OK || machine_of(step, repair)->state != MACHINE_READY)) {
        wait_for_return(step, repair, hook);
        return;
    }
    end_attempt(step, repair, outcome, end->exit_code, end->output);
    if (outcome == REPAIR_OK)
        cured(step, repair);
    else
        hook_failed(step, repair, outcome);
}

static void test_ended(struct step *step, struct repair *repair, const struct errand_end *end)
{
    enum repair_outcome outcome = outcome_of(step, repair, end);
    end_attempt(step, repair, outcome, end->exit_code, end->output);
    if (outcome == REPAIR_OK) {
        judge_return(step, repair, "tested and back");
        return;
    }
    repair_note(step, repair, true, "QualificationFailed", "the test: %s, exit code %d",
                repair_outcome_names[outcome], end->exit_code);
    bool unknown = outcome == REPAIR_LOST || outcome == REPAIR_TIMED_OUT;
    if (unknown && ++repair->tries <= TEST_RETRIES)
        pause(step, repair, 30 * NS_PER_SECOND, "the test did not end");
    else if (outcome == REPAIR_MISSING)
        make_ticket(step, repair, "the machine cannot be tested");
    else
        escalate(step, repair, "the test failed");
}

void repairs_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end)
{
    struct repair *repair = (struct repair *)repair_find(step->repairs, errand->about);
    if (!repair || repair->errand != errand->uid || !cluster_find(step->cluster, repair->subject))
        return;
    repair->errand = 0;
    step->repairs->stirred = true;
    if (errand->kind == ERRAND_QUALIFY)
        test_ended(step, repair, end);
    else
        hook_ended(step, repair, end);
}

static bool lists(const struct hello *hello, obj_id errand)
{
    for (size_t i = 0; i < hello->errand_count; i++)
        if (hello->errand_ids[i] == errand)
            return true;
    return false;
}

void repairs_hello(struct step *step, const struct machine *machine, const struct hello *hello)
{
    struct repair *repair = book_open(step->repairs, machine->name);
    if (!repair || (repair->state != REPAIR_RESETTING && repair->state != REPAIR_RETURNING))
        return;
    const struct repair_hook *hook = hook_of(step, repair);
    if (!hook || !hook->reboots || (repair->errand && lists(hello, repair->errand)))
        return;
    stop_attempt(step, repair, REPAIR_OK, "the machine came back");
    cured(step, repair);
}

/* --- time ----------------------------------------------------------------------------------------------- */

struct repair *repair_begin(struct step *step, obj_id uid, struct str subject, const struct repair_wish *wish)
{
    CHECK(!book_open(step->repairs, subject));
    CHECK(wish->origin < REPAIR_ORIGINS);
    struct repair *repair = book_new(step->repairs, uid, subject);
    repair->origin = wish->origin;
    repair->now = wish->now;
    repair->asked = wish->action.len > 0;
    repair->tested = !wish->untested;
    repair->action = arena_str(&repair->text, wish->action);
    repair->opened_ns = repair->changed_ns = step->now_ns;
    step->repairs->totals.opened++;
    step->repairs->changed = step->repairs->stirred = true;
    book_change(repair,
                &(struct repair_change){REPAIR_WAITING, step->now_ns,
                                        repair_is_of_place(repair) ? STR("until a person is told")
                                                                   : STR("until the machine is idle")});
    take_codes(step, repair);
    ticket_show(step, repair);
    return repair;
}

/* Returns the machine that the next action needs. */
static const struct machine *needed(const struct step *step, const struct repair *repair)
{
    const struct machine *runner = repair->testing ? NULL : runner_of(step, repair);
    return runner ? runner : machine_of(step, repair);
}

static bool is_absent(const struct step *step, const struct machine *machine)
{
    return machine->state != MACHINE_READY &&
           step->now_ns - machine->state_since_ns >= settings_of(step)->absent_ns;
}

static void look_at_ticket(struct step *step, struct repair *repair)
{
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    if (repair->asks && machine_of(step, repair)->isolation == ISOLATION_QUARANTINED) {
        choose(step, repair, -1);
        return;
    }
    if (repair->heals && health_blocking(step->health, repair->subject, faults) == 0)
        heal(step, repair);
}

static void go_on(struct step *step, struct repair *repair)
{
    CHECK(repair->state == REPAIR_WAITING || repair->state == REPAIR_PAUSED);
    if (needed(step, repair)->state != MACHINE_READY) {
        if (is_absent(step, needed(step, repair)))
            make_ticket(step, repair, "the machine's agent is not there");
    } else if (repair->state == REPAIR_WAITING) {
        choose(step, repair, -1);
    } else if (repair->testing) {
        begin_test(step, repair);
    } else if (hook_of(step, repair) && runner_of(step, repair)) {
        begin_hook(step, repair);
    } else {
        make_ticket(step, repair, "its hook, or the machine that runs it, is no longer in the cluster file");
    }
}

void repair_advance(struct step *step, struct repair *repair)
{
    bool due = step->now_ns >= repair->due_ns;
    switch (repair->state) {
    case REPAIR_WAITING:
        if (repair_can_begin(machine_of(step, repair)))
            go_on(step, repair);
        break;
    case REPAIR_PAUSED:
        if (due)
            go_on(step, repair);
        break;
    case REPAIR_RETURNING:
        if (!due)
            break;
        end_attempt(step, repair, REPAIR_TIMED_OUT, 0, STR("the machine did not come back"));
        hook_failed(step, repair, REPAIR_TIMED_OUT);
        break;
    case REPAIR_TICKETED:
        look_at_ticket(step, repair);
        break;
    case REPAIR_RESETTING:
    case REPAIR_QUALIFYING:
    case REPAIR_CLOSED:
        break;
    case REPAIR_STATES:
        CHECK_UNREACHABLE();
    }
}

int64_t repair_due(const struct step *step, const struct repair *repair)
{
    const struct machine *machine = cluster_find(step->cluster, repair->subject);
    if (repair->state == REPAIR_CLOSED)
        return repair->watch_ns > step->now_ns ? repair->watch_ns : INT64_MAX;
    bool waits = repair->state == REPAIR_PAUSED ||
                 (repair->state == REPAIR_WAITING && machine && repair_can_begin(machine));
    if (waits && step->now_ns >= repair->due_ns) {
        const struct machine *who = needed(step, repair);
        return who->state == MACHINE_READY ? step->now_ns
                                           : who->state_since_ns + settings_of(step)->absent_ns;
    }
    return repair->due_ns ? repair->due_ns : INT64_MAX;
}
