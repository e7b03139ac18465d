/* The rung that answers each loss; no history of losses breaks the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/ladder/ladder.h"

#define AT_S(s) ((s)*NS_PER_SECOND)

struct world {
    struct ladder ladder;
    struct ladder_settings settings;
    struct ladder_means means;
    struct ladder_incident incident;
    struct ladder_decision decision;
};

/* Everything can be done but what nobody has built a means for. */
static struct world world_new(void)
{
    struct world world = {.ladder = {.best_step = -1},
                          .incident = {.cause = LOSS_EXIT, .now_ns = AT_S(1000)}};
    ladder_defaults(&world.settings);
    return world;
}

static enum rung decide(struct world *world)
{
    ladder_decide(&world->ladder, &world->settings, &world->means, &world->incident, &world->decision);
    return world->decision.rung;
}

/* A new loss, answered. */
static enum rung lose(struct world *world, enum loss_cause cause)
{
    world->incident.cause = cause;
    world->incident.below = RUNG_NONE;
    ladder_loss(&world->ladder, &world->incident);
    if (decide(world) != RUNG_NONE)
        ladder_begin(&world->ladder, &world->incident, &world->decision);
    return world->decision.rung;
}

static void passed(const struct world *world, const char *why)
{
    if (!strstr(world->decision.passed, why))
        fail_msg("\"%s\" is not in \"%s\"", why, world->decision.passed);
}

static void the_cause_says_where_it_begins(void **state)
{
    static const struct {
        enum loss_cause cause;
        bool place_is_bad;
        enum rung rung;
        const char *why;
    } rows[] = {
        {LOSS_EXIT, false, RUNG_RESTART_PROCESS, "retry: a process was lost"},
        {LOSS_EXIT, true, RUNG_REPLACE_MACHINE, "restart-process: its machine is to be avoided"},
        {LOSS_OUT_OF_MEMORY, false, RUNG_RESTART_PROCESS, "retry: a process was lost"},
        {LOSS_START_FAILED, true, RUNG_REPLACE_MACHINE, "to be avoided"},
        {LOSS_MACHINE, true, RUNG_REPLACE_MACHINE, "restart-process: its machine is lost"},
        {LOSS_FAULT, false, RUNG_RESTART_PROCESS, "retry: a process was lost"},
        {LOSS_FAULT, true, RUNG_REPLACE_MACHINE, "restart-process: its machine is to be avoided"},
        {LOSS_EVICTED, true, RUNG_REPLACE_MACHINE, "restart-process: its machine is to be left"},
        {LOSS_HANG, false, RUNG_RESTART_PROCESS, "retry: a process was lost"},
        {LOSS_SLOW, false, RUNG_REPLACE_MACHINE, "restart-process: its machine is to be left"},
        {LOSS_USER, false, RUNG_REPLACE_MACHINE, "restart-process: its Pod was deleted"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world world = world_new();
        world.incident.cause = rows[i].cause;
        world.incident.place_is_bad = rows[i].place_is_bad;
        assert_int_equal(decide(&world), rows[i].rung);
        passed(&world, rows[i].why);
        assert_int_equal(world.decision.limit_ns, world.settings.limit_ns[rows[i].rung]);
    }
    struct world world = world_new();
    world.incident = (struct ladder_incident){.cause = LOSS_FAULT, .processes_live = true, .now_ns = 1};
    assert_int_equal(decide(&world), RUNG_RETRY);
    assert_string_equal(world.decision.passed, "");
}

static void what_cannot_be_done_is_passed_over(void **state)
{
    struct world world = world_new();
    ladder_means_none(&world.means);
    assert_int_equal(decide(&world), RUNG_REQUEUE);
    world.means.lacks[RUNG_SHRINK] = NULL;
    world.means.lacks[RUNG_REPLACE_MACHINE] = "no spare is ready";
    assert_int_equal(decide(&world), RUNG_SHRINK);
    passed(&world, "restart-process: it cannot be done here; replace-machine: no spare is ready");
    world.settings.allowed[RUNG_SHRINK] = false;
    assert_int_equal(decide(&world), RUNG_REQUEUE);
    passed(&world, "shrink: not allowed");
    assert_int_equal(world.decision.limit_ns, 0);
}

static void off_leaves_the_failure_policy(void **state)
{
    struct world world = world_new();
    assert_true(ladder_take(&world.settings, WORD_RECOVERY, STR("off"), NULL));
    for (int cause = LOSS_NONE + 1; cause < LOSS_CAUSES; cause++) {
        world.incident.cause = (enum loss_cause)cause;
        assert_int_equal(decide(&world), RUNG_REQUEUE);
    }
}

static void a_rung_that_does_not_help_gives_way_to_the_next(void **state)
{
    struct world world = world_new();
    assert_int_equal(lose(&world, LOSS_EXIT), RUNG_RESTART_PROCESS);
    assert_int_equal(world.ladder.due_ns, AT_S(1030));
    static const enum rung next[] = {RUNG_REPLACE_MACHINE, RUNG_SHRINK, RUNG_DUMP, RUNG_REQUEUE};
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        world.incident.below = (enum rung)world.ladder.rung;
        world.incident.now_ns = world.ladder.due_ns;
        assert_int_equal(decide(&world), next[i]);
        passed(&world, "it did not help in its time");
        ladder_begin(&world.ladder, &world.incident, &world.decision);
    }
    assert_int_equal(world.ladder.due_ns, 0);
    assert_true(ladder_stepped(&world.ladder, 7));
    assert_int_equal(world.ladder.rung, RUNG_NONE);
    assert_false(ladder_stepped(&world.ladder, 8));
    ladder_done(&world.ladder);
}

static void budgets_are_of_a_time(void **state)
{
    struct world world = world_new();
    world.settings.no_progress_attempts = 0;
    assert_true(ladder_take(&world.settings, WORD_BUDGETS, STR("restart-process=2/10s"), NULL));
    assert_int_equal(lose(&world, LOSS_EXIT), RUNG_RESTART_PROCESS);
    world.incident.now_ns = AT_S(1005);
    assert_int_equal(lose(&world, LOSS_EXIT), RUNG_RESTART_PROCESS);
    assert_int_equal(lose(&world, LOSS_EXIT), RUNG_REPLACE_MACHINE);
    passed(&world, "restart-process: its budget is used up, 2 of 2 in 10.0 s");
    world.incident.now_ns = AT_S(1010); /* the first is forgotten */
    assert_int_equal(lose(&world, LOSS_EXIT), RUNG_RESTART_PROCESS);
    ladder_done(&world.ladder);
}

static void a_cause_has_a_budget_too(void **state)
{
    struct world world = world_new();
    world.settings.no_progress_attempts = 0;
    assert_true(ladder_take(&world.settings, WORD_BUDGETS, STR("process-exit=1/1h"), NULL));
    assert_int_equal(lose(&world, LOSS_EXIT), RUNG_RESTART_PROCESS);
    world.incident.below = RUNG_RESTART_PROCESS; /* the same incident is not counted twice */
    assert_int_equal(decide(&world), RUNG_REPLACE_MACHINE);
    assert_int_equal(lose(&world, LOSS_EXIT), RUNG_REQUEUE);
    passed(&world, "the process-exit budget is used up, 1 of 1");
    assert_int_equal(lose(&world, LOSS_MACHINE), RUNG_REPLACE_MACHINE);
    ladder_done(&world.ladder);
}

static void without_progress_it_waits_and_gives_up(void **state)
{
    static const int waits_s[] = {0, 10, 20, 40, 80, 160, 300, 300};
    struct world world = world_new();
    world.settings.no_progress_attempts = 9;
    for (size_t i = 0; i < sizeof waits_s / sizeof *waits_s; i++) {
        assert_int_not_equal(lose(&world, LOSS_EXIT), RUNG_NONE);
        assert_int_equal(world.decision.wait_ns, AT_S(waits_s[i]));
        assert_int_equal(world.ladder.wait_ns, waits_s[i] ? AT_S(1000 + waits_s[i]) : 0);
        ladder_stepped(&world.ladder, -1); /* they run, no step is new */
    }
    assert_int_equal(lose(&world, LOSS_EXIT), RUNG_NONE);
    assert_true(world.decision.no_progress);
    ladder_stepped(&world.ladder, 1);
    assert_int_equal(lose(&world, LOSS_EXIT), RUNG_RESTART_PROCESS);
    assert_int_equal(world.ladder.stalled, 0);
    assert_int_equal(world.decision.wait_ns, 0);
    ladder_done(&world.ladder);
}

static void only_a_new_step_is_progress(void **state)
{
    struct world world = world_new();
    ladder_stepped(&world.ladder, 165);
    lose(&world, LOSS_EXIT);
    assert_int_equal(world.ladder.stalled, 0);
    ladder_stepped(&world.ladder, 161);
    ladder_stepped(&world.ladder, 165); /* all of it was there before */
    lose(&world, LOSS_EXIT);
    assert_int_equal(world.ladder.stalled, 1);
    lose(&world, LOSS_EVICTED); /* it was asked to go */
    lose(&world, LOSS_USER);
    assert_int_equal(world.ladder.stalled, 1);
    world.incident.runs_long = true; /* it reports no steps */
    lose(&world, LOSS_EXIT);
    assert_int_equal(world.ladder.stalled, 0);
    ladder_done(&world.ladder);
}

static void infrastructure_is_what_no_job_does(void **state)
{
    static const bool is[LOSS_CAUSES] = {
        [LOSS_MACHINE] = true, [LOSS_FAULT] = true, [LOSS_EVICTED] = true, [LOSS_SLOW] = true};
    for (int cause = 0; cause < LOSS_CAUSES; cause++)
        assert_int_equal(loss_is_infrastructure((enum loss_cause)cause), is[cause]);
}

/* Any settings, means and histories: the rung is allowed, possible, below the one before, within its
 * budgets; each finer one has its sentence; without a coarser rung there is always the last. */
static void check_decision(const struct world *world)
{
    const struct ladder_decision *decision = &world->decision;
    const struct ladder_settings *settings = &world->settings;
    bool give_up = world->incident.below == RUNG_NONE && settings->no_progress_attempts > 0 &&
                   world->ladder.stalled >= settings->no_progress_attempts;
    assert_int_equal(decision->no_progress, give_up);
    if (give_up) {
        assert_int_equal(decision->rung, RUNG_NONE);
        return;
    }
    assert_in_range(decision->rung, RUNG_RETRY, RUNG_REQUEUE);
    assert_true(settings->allowed[decision->rung]);
    assert_true(decision->rung == RUNG_REQUEUE || decision->rung > world->incident.below);
    assert_true(decision->rung == RUNG_REQUEUE || !world->means.lacks[decision->rung]);
    const struct ladder_budget *budget = &settings->rungs[decision->rung];
    assert_true(!budget->given || ladder_used(&world->ladder, decision->rung, budget->window_ns,
                                              world->incident.now_ns) < budget->count);
    for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++) {
        bool said = strstr(decision->passed, rung_name((enum rung)rung)) != NULL;
        bool cut = strlen(decision->passed) == sizeof decision->passed - 1;
        assert_true(rung < (int)decision->rung ? said || cut : !said);
    }
    assert_in_range(decision->wait_ns, 0, LADDER_BACKOFF_MAX_NS);
}

static void one_life(struct world *world, struct rng *rng)
{
    static const char *const reasons[] = {NULL, NULL, "no spare is ready"};
    for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++)
        world->means.lacks[rung] = reasons[rng_below(rng, 3)];
    bool falls = world->ladder.rung && rng_below(rng, 2);
    world->incident = (struct ladder_incident){
        .cause = (enum loss_cause)(1 + rng_below(rng, LOSS_CAUSES - 1)),
        .below = falls ? (enum rung)world->ladder.rung : RUNG_NONE,
        .place_is_bad = rng_below(rng, 2),
        .processes_live = rng_below(rng, 2),
        .runs_long = rng_below(rng, 20) == 0,
        .now_ns = world->incident.now_ns + (int64_t)rng_below(rng, AT_S(900)),
    };
    if (!falls)
        ladder_loss(&world->ladder, &world->incident);
    decide(world);
    check_decision(world);
    if (!world->decision.no_progress)
        ladder_begin(&world->ladder, &world->incident, &world->decision);
    assert_true(world->ladder.uses.len <= LADDER_USES_MAX);
    if (rng_below(rng, 2))
        ladder_stepped(&world->ladder, (int64_t)rng_below(rng, 1000));
}

static void no_history_breaks_the_rules(void **state)
{
    struct rng rng;
    rng_seed(&rng, 5);
    for (int seed = 0; seed < 300; seed++) {
        struct world world = world_new();
        world.settings.no_progress_attempts = (int64_t)rng_below(&rng, 6);
        for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++) {
            world.settings.allowed[rung] = rng_below(&rng, 4) > 0;
            world.settings.rungs[rung] = (struct ladder_budget){
                rng_below(&rng, 2), (uint32_t)rng_below(&rng, 5), AT_S(1 + (int64_t)rng_below(&rng, 7200))};
        }
        for (int i = 0; i < 200; i++)
            one_life(&world, &rng);
        ladder_done(&world.ladder);
    }
}

static void better_places_come_first(void **state)
{
    const struct ladder_place order[] = {
        {.same_rack = true, .same_pod = true, .machine = 9},
        {.same_pod = true, .machine = 1},
        {.same_pod = true, .machine = 2},
        {.machine = 0},
        {.suspect = true, .same_rack = true, .same_pod = true, .machine = 3},
        {.suspect = true, .machine = 4},
        {.caused = true, .same_rack = true, .same_pod = true, .machine = 5},
        {.caused = true, .suspect = true, .same_rack = true, .same_pod = true, .machine = 6},
    };
    size_t count = sizeof order / sizeof *order;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            int compared = ladder_place_compare(&order[i], &order[j]);
            assert_int_equal((compared > 0) - (compared < 0), (i > j) - (i < j));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cause_says_where_it_begins),
        cmocka_unit_test(what_cannot_be_done_is_passed_over),
        cmocka_unit_test(off_leaves_the_failure_policy),
        cmocka_unit_test(a_rung_that_does_not_help_gives_way_to_the_next),
        cmocka_unit_test(budgets_are_of_a_time),
        cmocka_unit_test(a_cause_has_a_budget_too),
        cmocka_unit_test(without_progress_it_waits_and_gives_up),
        cmocka_unit_test(only_a_new_step_is_progress),
        cmocka_unit_test(infrastructure_is_what_no_job_does),
        cmocka_unit_test(no_history_breaks_the_rules),
        cmocka_unit_test(better_places_come_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
