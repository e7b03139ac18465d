/* Other systems that report faults: who may, how fast, how many. */
#include "core/job/story.h"

#include "base/rng.h"
#include "core/health/sender.h"

/* A report as a host lets it in; the HTTP status. */
static int report(struct harness *h, const char *sender, const char *machine, const char *code,
                  const char *more)
{
    char yaml[400];
    snprintf(yaml, sizeof yaml,
             "apiVersion: phalanx.dev/v1\nkind: Fault\nmetadata: {}\nspec: {machine: %s, code: %s%s%s%s}\n",
             machine, code, sender ? ", sender: " : "", sender ? sender : "", more);
    int code_ = harness_write_checked(h, OBJECT_FAULT, WRITE_CREATE, "", yaml);
    core_check_invariants(h->core);
    return code_;
}

static void set_table(struct harness *h, const char *spec)
{
    char yaml[600];
    snprintf(yaml, sizeof yaml,
             "apiVersion: phalanx.dev/v1\nkind: FaultTable\nmetadata: {name: default}\nspec: {%s}\n", spec);
    bool there = object_find(core_objects(h->core), OBJECT_FAULT_TABLE, STR(""), STR("default")) != NULL;
    int code = harness_write_checked(h, OBJECT_FAULT_TABLE, there ? WRITE_REPLACE : WRITE_CREATE,
                                     there ? "default" : "", yaml);
    if (code >= 300)
        fail_msg("%s", h->last_message);
}

static void only_the_listed_may(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    assert_int_equal(report(&h, "anyone", "m-1", "public/1", ", severity: notice"), 201);
    set_table(
        &h,
        "public: {senders: [{name: pingmesh, codes: ['public/*', net/lost]}, {name: CCAE, users: [bob]}]}");
    assert_int_equal(report(&h, "anyone", "m-1", "public/2", ", severity: notice"), 403);
    assert_int_equal(report(&h, NULL, "m-1", "public/2", ", severity: notice"), 403);
    assert_int_equal(report(&h, "pingmesh", "m-1", "public/2", ", severity: notice"), 201);
    assert_int_equal(report(&h, "pingmesh", "m-1", "net/lost", ", severity: notice"), 201);
    assert_int_equal(report(&h, "pingmesh", "m-1", "xid/79", ""), 403);
    assert_non_null(strstr(h.last_message, "xid/79"));
    assert_int_equal(report(&h, "CCAE", "m-1", "public/3", ", severity: notice"), 403); /* of another user */
    set_table(&h, "public: {senders: []}");
    assert_int_equal(report(&h, "pingmesh", "m-1", "public/4", ", severity: notice"), 403);
    set_table(&h, "");
    assert_int_equal(report(&h, "CCAE", "m-1", "public/4", ", severity: notice"), 201);
    harness_done(&h);
}

static void a_bucket_of_reports(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    set_table(&h, "public: {perSecond: 2, burst: 3}");
    for (int i = 0; i < 3; i++)
        assert_int_equal(report(&h, "a", "m-1", "public/1", ", severity: notice"), 201);
    assert_int_equal(report(&h, "a", "m-1", "public/1", ", severity: notice"), 429);
    assert_int_equal(report(&h, "b", "m-1", "public/1", ", severity: notice"), 201); /* each has its own */
    h.now_ns += 499 * NS_PER_MS;
    assert_int_equal(report(&h, "a", "m-1", "public/1", ", severity: notice"), 429);
    h.now_ns += 1 * NS_PER_MS;
    assert_int_equal(report(&h, "a", "m-1", "public/1", ", severity: notice"), 201);
    assert_int_equal(report(&h, "a", "m-1", "public/1", ", severity: notice"), 429);
    h.now_ns += 100 * NS_PER_SECOND; /* it fills up to the burst and no further */
    for (int i = 0; i < 3; i++)
        assert_int_equal(report(&h, "a", "m-1", "public/1", ", severity: notice"), 201);
    assert_int_equal(report(&h, "a", "m-1", "public/1", ", severity: notice"), 429);
    harness_done(&h);
}

static void as_many_as_may_be_open(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 0);
    set_table(&h, "public: {perSender: 2, total: 3, burst: 1000}, unknown: {major: SubHealth}");
    assert_int_equal(report(&h, "a", "m-1", "public/1", ""), 201);
    assert_int_equal(report(&h, "a", "m-1", "public/2", ""), 201);
    assert_int_equal(report(&h, "a", "m-1", "public/3", ""), 429);
    assert_int_equal(report(&h, "a", "m-1", "public/2", ""), 201); /* it takes no room */
    assert_int_equal(report(&h, "b", "m-1", "public/3", ""), 201);
    assert_int_equal(report(&h, "b", "m-1", "public/4", ""), 429); /* of all */
    assert_int_equal(report(&h, "a", "m-1", "public/1", ", assertion: recover"), 201);
    assert_int_equal(report(&h, "b", "m-1", "public/4", ""), 201);
    /* Signals from agents are bounded elsewhere. */
    struct signal signal = {.code = STR("disk/io"),
                            .assertion = SIGNAL_OCCUR,
                            .severity = SEVERITY_MAJOR,
                            .chip = -1,
                            .first_ns = 1,
                            .last_ns = 1,
                            .count = 1};
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = STR("m-2");
    event.reports.reports = (struct reports){.signals = &signal, .signal_count = 1};
    harness_step(&h, &event);
    assert_int_equal(fault_count(core_health(h.core)), 5);
    assert_int_equal(report(&h, "a", "m-3", "public/9", ", assertion: recover"), 404);
    harness_done(&h);
}

static void sum_up(void *context, const struct sender *sender)
{
    ((size_t *)context)[0]++;
    ((size_t *)context)[1] += sender->open;
}

/* Names come and go without end; the book of them does not grow, and replays and twins agree. */
static void strangers_are_forgotten(void **state)
{
    struct harness h;
    struct rng rng;
    size_t sums[2] = {0, 0};
    char name[32], code[32];
    harness_init(&h, 4, 4, 0);
    rng_seed(&rng, 7);
    set_table(&h, "unknown: {major: NotHandle}");
    for (int i = 0; i < SENDERS_MAX + 200; i++) {
        snprintf(name, sizeof name, "s-%d", i);
        snprintf(code, sizeof code, "public/%d", (int)rng_below(&rng, 4));
        h.now_ns += 20 * NS_PER_MS;
        assert_int_equal(report(&h, name, "m-1", code, rng_below(&rng, 2) ? ", assertion: once" : ""), 201);
    }
    sender_visit(core_health(h.core), sum_up, sums);
    assert_true(sums[0] <= SENDERS_MAX && sums[0] > 0);
    assert_true(sums[1] <= 4);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_listed_may),
        cmocka_unit_test(a_bucket_of_reports),
        cmocka_unit_test(as_many_as_may_be_open),
        cmocka_unit_test(strangers_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
