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
    ledger_move(&ledger, 0, OWNER_IDLE, OWNER_DOWN, h->now_ns / NS_PER_US); /* integrates up to now */
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
    assert_int_equal(seconds(account.chip_us[OWNER_REDONE]), 4 * 5);
    /* Three old tasks end for 3 s while the new attempt holds their chips already: those are counted once. */
    assert_int_equal(seconds(account.chip_us[OWNER_RESTARTING]), 4 * 3);
    assert_int_equal(seconds(account.chip_us[OWNER_UNKEPT]), 0);
    assert_int_equal((int)ledger_ettr_ppm(&account), 68 * 1000000 / 112);
    const struct ledger *ledger = core_ledger(h.core);
    assert_true(ledger->chip_us[OWNER_KEPT] == account.chip_us[OWNER_KEPT]);
    assert_true(ledger->chip_us[OWNER_REDONE] == account.chip_us[OWNER_REDONE]);
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
        assert_int_equal(seconds(account.chip_us[OWNER_REDONE]), cases[i].redone);
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

/* The arithmetic alone. */
static void accounts(void **state)
{
    struct ledger ledger;
    struct ledger_account account;
    ledger_open(&ledger, 100);
    ledger_move(&ledger, 8, LEDGER_OWNERS, OWNER_IDLE, 100);
    ledger_move(&ledger, 3, OWNER_IDLE, OWNER_UNKEPT, 110);
    ledger_account_open(&account, OWNER_UNKEPT, 3, 110);
    assert_int_equal((int)ledger_ettr_ppm(&account), -1);
    ledger_account_keep(&account, &ledger, 120);
    ledger_account_lose(&account, &ledger, 125);
    ledger_account_set(&account, OWNER_STOPPING, 3, 127);
    assert_int_equal((int)account.chip_us[OWNER_KEPT], 30);
    assert_int_equal((int)account.chip_us[OWNER_REDONE], 15);
    assert_int_equal((int)account.chip_us[OWNER_UNKEPT], 6);
    struct ledger_account later = ledger_account_at(&account, 137);
    assert_int_equal((int)later.chip_us[OWNER_STOPPING], 30);
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
        cmocka_unit_test(accounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
