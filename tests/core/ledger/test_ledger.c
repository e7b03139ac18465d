/* Both books: the cluster's sums to chips x time, an account's to what it wanted; a fault splits kept from
 * redone. */
#include "core/job/story.h"

static int64_t seconds(int64_t chip_us)
{
    return chip_us / 1000000;
}

static void assert_cluster_sums(const struct harness *h, int64_t chips)
{
    struct ledger ledger = *core_ledger(h->core);
    assert_true(ledger_balanced(&ledger));
    ledger = ledger_at(&ledger, h->now_ns / NS_PER_US);
    assert_true(ledger.all_chip_us == chips * (ledger.since_us - ledger.opened_us));
    assert_true(ledger_balanced(&ledger));
}

static void a_whole_life(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 3}, ", RJOB("x", 1, "", 4, "")));
    harness_wait(&h, 1 * NS_PER_SECOND); /* 1 s starting */
    harness_run_all(&h);
    const char *const hosts[] = {"a-x-0-0", "a-x-0-1", "a-x-0-2", "a-x-0-3"};
    for (int i = 0; i < 4; i++)
        report_task(&h, hosts[i], (struct task_report){.kind = REPORT_JOINED});
    harness_wait(&h, 2 * NS_PER_SECOND); /* 2 s until the first step */
    progress_to(&h, jobset, 1);
    harness_wait(&h, 10 * NS_PER_SECOND); /* 10 s that a checkpoint keeps */
    for (int i = 0; i < 4; i++)
        report_task(&h, hosts[i], (struct task_report){.kind = REPORT_SHARD_SAVED, .step = 10});
    harness_wait(&h, 5 * NS_PER_SECOND); /* 5 s lost by a fault */
    exits(&h, "a-x-0-2", 1);
    harness_wait(&h, 3 * NS_PER_SECOND); /* 3 s restarting */
    harness_run_all(&h);
    for (int i = 0; i < 4; i++)
        report_task(&h, hosts[i], (struct task_report){.kind = REPORT_JOINED});
    progress_to(&h, jobset, 11);
    harness_wait(&h, 7 * NS_PER_SECOND); /* 7 s kept by success */
    for (int i = 0; i < 4; i++)
        exits(&h, hosts[i], 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    struct ledger_account account = jobset_account(jobset, h.now_ns);
    assert_true(ledger_account_balanced(&account));
    assert_int_equal(seconds(account.chip_us[OWNER_STARTING]), 4 * 3);
    assert_int_equal(seconds(account.chip_us[OWNER_KEPT]), 4 * 17);
    assert_int_equal(seconds(account.chip_us[OWNER_FAILED]), 4 * 5); /* its own program failed */
    /* Three old tasks end for 3 s while the new attempt holds their chips already: those are counted once. */
    assert_int_equal(seconds(account.chip_us[OWNER_RESTARTING]), 4 * 3);
    assert_int_equal(seconds(account.chip_us[OWNER_UNKEPT]), 0);
    assert_int_equal((int)ledger_ettr_ppm(&account), 68 * 1000000 / 112);
    const struct ledger *ledger = core_ledger(h.core);
    assert_true(ledger->chip_us[OWNER_KEPT] == account.chip_us[OWNER_KEPT]);
    assert_true(ledger->chip_us[OWNER_FAILED] == account.chip_us[OWNER_FAILED]);
    assert_cluster_sums(&h, 4);
    harness_done(&h);
}

static void waiting_is_queued(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "", RJOB("x", 1, "", 4, "")));
    struct jobset *later = harness_create(&h, JOBSET("b", "", RJOB("x", 1, "", 2, "")));
    harness_run_all(&h);
    harness_wait(&h, 6 * NS_PER_SECOND);
    struct ledger_account account = jobset_account(later, h.now_ns);
    assert_int_equal(seconds(account.chip_us[OWNER_QUEUED]), 12);
    assert_int_equal((int)ledger_ettr_ppm(&account), 0);
    assert_int_equal(core_ledger(h.core)->chip_us[OWNER_QUEUED], 0); /* nobody holds what is only wanted */
    account = jobset_account(jobset, h.now_ns);
    assert_int_equal(seconds(account.chip_us[OWNER_UNKEPT]),
                     24); /* it does not speak libphalanx: running is productive */
    assert_cluster_sums(&h, 4);
    harness_done(&h);
}

static void machines_that_are_down(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_wait(&h, 2 * NS_PER_SECOND);
    harness_news(&h, EVENT_MACHINE_SILENT, "m-2");
    harness_wait(&h, 3 * NS_PER_SECOND);
    harness_hello(&h, "m-2", NULL, 0);
    assert_int_equal(seconds(core_ledger(h.core)->chip_us[OWNER_DOWN]), 12);
    assert_int_equal(seconds(core_ledger(h.core)->chip_us[OWNER_IDLE]), 28);
    assert_cluster_sums(&h, 8);
    harness_done(&h);
}

static void reads(struct harness *h, struct jobset *jobset, int64_t step, enum step_source source)
{
    struct event event = {.kind = EVENT_PROGRESS};
    event.progress = (struct progress_event){
        .jobset = jobset->uid, .attempt = jobset->attempt, .step = step, .source = source};
    harness_step(h, &event);
}

/* A program without libphalanx runs for 10 s, loses a task, and runs for 5 s more. */
static struct ledger_account restarted(struct harness *h, int64_t before, int64_t after,
                                       enum step_source source, const struct jobset **ret_jobset)
{
    harness_init(h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(h, JOBSET("a", "failurePolicy: {maxRestarts: 3}, ", RJOB("x", 1, "", 4, "")));
    *ret_jobset = jobset;
    harness_run_all(h);
    if (before)
        reads(h, jobset, before, source);
    harness_wait(h, 10 * NS_PER_SECOND);
    exits(h, "a-x-0-0", 1);
    harness_run_all(h);
    if (after)
        reads(h, jobset, after, source);
    harness_wait(h, 5 * NS_PER_SECOND);
    struct ledger_account account = jobset_account(jobset, h->now_ns);
    assert_true(ledger_account_balanced(&account));
    assert_cluster_sums(h, 8);
    return account;
}

static void programs_of_others(void **state)
{
    static const char *const hosts[] = {"a-x-0-0", "a-x-0-1", "a-x-0-2", "a-x-0-3"};
    static const struct {
        int64_t before, after;
        enum step_source source;
        int redone, unkept, at_fault, resumed;
    } cases[] = {
        {0, 0, STEP_SAID, 0, 60, -1, -1},       /* it says nothing: nobody knows what it makes again */
        {100, 76, STEP_READ, 10, 50, 100, 75},  /* a quarter is made again */
        {100, 1, STEP_READ, 40, 20, 100, 0},    /* all */
        {100, 101, STEP_READ, 0, 60, 100, 100}, /* nothing */
        {100, 1, STEP_COUNTED, 0, 60, -1, -1},  /* its lines are counted: no places */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct harness h;
        const struct jobset *jobset;
        struct ledger_account account =
            restarted(&h, cases[i].before, cases[i].after, cases[i].source, &jobset);
        assert_int_equal(seconds(account.chip_us[OWNER_FAILED]), cases[i].redone);
        assert_int_equal(seconds(account.chip_us[OWNER_UNKEPT]), cases[i].unkept);
        assert_int_equal(jobset->history.record_count, 1);
        assert_int_equal(jobset->history.records[0].step_at_fault, cases[i].at_fault);
        assert_int_equal(jobset->history.records[0].step_resumed_from, cases[i].resumed);
        for (int t = 0; t < 4; t++)
            exits(&h, hosts[t], 0);
        account = jobset_account(jobset, h.now_ns);
        assert_int_equal(seconds(account.chip_us[OWNER_KEPT]), cases[i].unkept);
        harness_done(&h);
    }
}

static void saves(struct harness *h, int64_t number)
{
    static const char *const hosts[] = {"a-x-0-0", "a-x-0-1", "a-x-0-2", "a-x-0-3"};
    for (int i = 0; i < 4; i++)
        report_task(h, hosts[i], (struct task_report){.kind = REPORT_SHARD_SAVED, .step = number});
}

/* All ranks join and make `first`, their first step. */
static void begin_at(struct harness *h, struct jobset *jobset, int64_t first)
{
    static const char *const hosts[] = {"a-x-0-0", "a-x-0-1", "a-x-0-2", "a-x-0-3"};
    harness_run_all(h);
    for (int i = 0; i < 4; i++)
        report_task(h, hosts[i], (struct task_report){.kind = REPORT_JOINED});
    struct event event = {.kind = EVENT_PROGRESS};
    event.progress = (struct progress_event){.jobset = jobset->uid,
                                             .attempt = jobset->attempt,
                                             .step = first,
                                             .first_plus_1 = first + 1,
                                             .source = STEP_SAID};
    harness_step(h, &event);
}

/* Ranks pass over the newest checkpoint, which is wrong or damaged: what it had kept is lost after all, once,
 * however often they begin there again. */
static void checkpoints_that_are_no_good(void **state)
{
    struct harness h;
    harness_init(&h, 1, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 9}, ", RJOB("x", 1, "", 4, "")));
    begin_at(&h, jobset, 1);
    harness_wait(&h, 20 * NS_PER_SECOND); /* 20 s for 200 steps */
    saves(&h, 200);
    harness_wait(&h, 5 * NS_PER_SECOND);
    exits(&h, "a-x-0-2", 1);
    begin_at(&h, jobset, 51);
    assert_int_equal((int)jobset->checkpoint.fallback_step, 50);
    struct ledger_account account = jobset_account(jobset, h.now_ns);
    assert_int_equal(seconds(account.chip_us[OWNER_KEPT]), 4 * 5); /* a quarter */
    assert_int_equal(seconds(account.chip_us[OWNER_FAILED]), 4 * (15 + 5));
    assert_int_equal((int)jobset->history.records[0].step_resumed_from, 50);
    harness_check_replay(&h);
    exits(&h, "a-x-0-1", 1); /* before it saves again */
    begin_at(&h, jobset, 51);
    account = jobset_account(jobset, h.now_ns);
    assert_int_equal(seconds(account.chip_us[OWNER_KEPT]), 4 * 5);
    harness_wait(&h, 3 * NS_PER_SECOND);
    saves(&h, 80);
    assert_int_equal((int)jobset->checkpoint.fallback_step, -1);
    exits(&h, "a-x-0-1", 1);
    begin_at(&h, jobset, 80); /* its steps count from 0: that of the checkpoint is the first one */
    account = jobset_account(jobset, h.now_ns);
    assert_int_equal(seconds(account.chip_us[OWNER_KEPT]), 4 * 8);
    assert_int_equal((int)jobset->checkpoint.fallback_step, -1);
    assert_true(ledger_account_balanced(&account));
    assert_cluster_sums(&h, 4);
    harness_done(&h);
}

static int64_t owned(const struct harness *h, enum ledger_owner owner)
{
    return core_ledger(h->core)->chips[owner];
}

/* Free chips have the owner that says why they are free. */
static void free_chips(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 1);
    assert_int_equal((int)owned(&h, OWNER_IDLE), 8);
    assert_int_equal((int)owned(&h, OWNER_STANDBY), 4);
    harness_create(&h, JOBSET("a", "", RJOB("x", 1, "", 3, "")));
    assert_int_equal((int)owned(&h, OWNER_FRAGMENTED), 1); /* the rest of its machine */
    assert_int_equal((int)owned(&h, OWNER_STARTING), 3);
    harness_run_all(&h);
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_REPLACE,
                                       .object = OBJECT_NODE,
                                       .name = STR("m-2"),
                                       .body = STR("{\"metadata\":{},\"spec\":{\"unschedulable\":true}}")};
    harness_step(&h, &event);
    assert_int_equal((int)owned(&h, OWNER_CORDONED), 4);
    assert_int_equal((int)owned(&h, OWNER_IDLE), 0);
    harness_news(&h, EVENT_MACHINE_SILENT, "m-2");
    assert_int_equal((int)owned(&h, OWNER_DOWN), 4);
    assert_cluster_sums(&h, 12);
    harness_done(&h);
}

/* The end of an attempt counts under its cause; a machine's loss is no fault of the program. */
static void causes(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 5}, ", RJOB("x", 1, "", 8, "")));
    harness_run_all(&h);
    reads(&h, jobset, 100, STEP_READ);
    harness_wait(&h, 3600 * NS_PER_SECOND);
    harness_lose(&h, "m-1");
    harness_run_all(&h);
    reads(&h, jobset, 1, STEP_READ);
    const struct ledger *ledger = core_ledger(h.core);
    assert_int_equal((int)ledger->sizes[3].ends[CAUSE_INFRASTRUCTURE], 1);
    assert_int_equal((int)ledger->sizes[3].ends[CAUSE_PROGRAM], 0);
    assert_int_equal((int)ledger->first_order[CAUSE_INFRASTRUCTURE].count, 1);
    assert_int_equal(seconds(ledger->first_order[CAUSE_INFRASTRUCTURE].assumed_us), 8 * 1800);
    struct ledger_account account = jobset_account(jobset, h.now_ns);
    assert_int_equal(seconds(account.chip_us[OWNER_REDONE]), 8 * 3600);
    assert_int_equal(seconds(account.chip_us[OWNER_FAILED]), 0);
    exits(&h, "a-x-0-0", 1);
    assert_int_equal((int)ledger->sizes[3].ends[CAUSE_PROGRAM], 1);
    assert_int_equal((int)ledger->first_order[CAUSE_PROGRAM].count, 1);
    assert_true(ledger_at(ledger, h.now_ns / NS_PER_US).sizes[3].chip_us >= INT64_C(8) * 3600 * 1000000);
    harness_wait(&h, 60 * NS_PER_SECOND);
    assert_cluster_sums(&h, 12);
    harness_done(&h);
}

/* Ranks that wait for a peer's machine hold their chips for it. */
static void a_machine_is_missing(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 5}, ", RJOB("x", 1, "", 8, "")));
    harness_run_all(&h);
    harness_lose(&h, "m-1");
    harness_run_all(&h);
    harness_wait(&h, 100 * NS_PER_SECOND);
    struct ledger_account account = jobset_account(jobset, h.now_ns);
    assert_true(seconds(account.chip_us[OWNER_AWAITING]) >= 8 * 60);
    assert_cluster_sums(&h, 8);
    harness_done(&h);
}

/* The reference's goodput loss: ten minutes and three hours of 512 chips. */
static void assumed_losses(void **state)
{
    const int64_t minute_us = INT64_C(60) * 1000000;
    assert_true(ledger_assumed_loss(10 * minute_us, 512) * 100 / (60 * minute_us) == 8533);
    assert_true(ledger_assumed_loss(180 * minute_us, 512) == 256 * 60 * minute_us);
    assert_int_equal(ledger_size_of(0), 0);
    assert_int_equal(ledger_size_of(1), 0);
    assert_int_equal(ledger_size_of(128), 7);
    assert_int_equal(ledger_size_of(129), 8);
    assert_int_equal(ledger_size_of(INT64_MAX), LEDGER_SIZES - 1);
}

/* The arithmetic alone. */
static void accounts(void **state)
{
    struct ledger ledger;
    struct ledger_account account;
    ledger_open(&ledger, 100);
    ledger_free_chips(&ledger, OWNER_IDLE, 8, 100);
    ledger_free_chips(&ledger, OWNER_IDLE, -3, 110);
    ledger_account_open(&account, 2, OWNER_QUEUED, 3, 110);
    ledger_account_take(&account, &ledger, OWNER_UNKEPT, 110);
    assert_int_equal((int)ledger_ettr_ppm(&account), -1);
    ledger_account_keep(&account, &ledger, 120);
    ledger_account_lose(&account, &ledger, OWNER_REDONE, 125);
    ledger_account_book(&account, &ledger, OWNER_DRAINING, 127);
    assert_int_equal((int)ledger.chips[OWNER_DRAINING], 3);
    assert_int_equal((int)ledger.sizes[2].chips, 3);
    assert_int_equal((int)account.chip_us[OWNER_KEPT], 30);
    assert_int_equal((int)account.chip_us[OWNER_REDONE], 15);
    assert_int_equal((int)account.chip_us[OWNER_UNKEPT], 6);
    struct ledger_account later = ledger_account_at(&account, 137);
    assert_int_equal((int)later.chip_us[OWNER_DRAINING], 30);
    assert_true(ledger_account_balanced(&later) && ledger_balanced(&ledger));
    assert_int_equal((int)ledger_ettr_ppm(&later), 36 * 1000000 / 81);
    later.chip_us[OWNER_KEPT]++;
    assert_false(ledger_account_balanced(&later));
    ledger.chip_us[OWNER_IDLE]++;
    assert_false(ledger_balanced(&ledger));
    for (int owner = 0; owner < LEDGER_OWNERS; owner++)
        assert_true(strlen(ledger_owner_name((enum ledger_owner)owner)) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_life),
        cmocka_unit_test(waiting_is_queued),
        cmocka_unit_test(machines_that_are_down),
        cmocka_unit_test(programs_of_others),
        cmocka_unit_test(checkpoints_that_are_no_good),
        cmocka_unit_test(free_chips),
        cmocka_unit_test(causes),
        cmocka_unit_test(a_machine_is_missing),
        cmocka_unit_test(assumed_losses),
        cmocka_unit_test(accounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
