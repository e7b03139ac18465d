/* Orders to break something on purpose: who may be asked, what leaves, what is told, what an answer does. */
#include "core/job/story.h"

#include "base/rng.h"
#include "core/errand/errand.h"
#include "core/health/fault.h"

#define ORDER(name, spec) "metadata: {name: " name "}\nspec: {" spec "}\n"

static int inject(struct harness *h, const char *machine, const char *order)
{
    return harness_write_checked(h, OBJECT_NODE, WRITE_INJECT, machine, order);
}

static void allow(struct harness *h, const char *machine, bool injection)
{
    struct event event = {.kind = EVENT_MACHINE_HELLO,
                          .machine_hello.hello = {.version = WIRE_VERSION,
                                                  .machine = str_from(machine),
                                                  .incarnation = 1,
                                                  .chips = 4,
                                                  .errands = true,
                                                  .injection = injection}};
    harness_step(h, &event);
}

static struct told_errand *order_at(struct harness *h, machine_id machine)
{
    return harness_errand(h, ERRAND_INJECT, machine);
}

static void first_with_code(void *context, const struct fault *fault)
{
    const struct fault **found = context;
    if (str_starts(fault->code, STR("injected/")))
        *found = fault;
}

static const struct fault *told_fault(const struct harness *h)
{
    const struct fault *found = NULL;
    fault_visit(core_health(h->core), first_with_code, &found);
    return found;
}

static void begin(struct harness *h)
{
    harness_init(h, 2, 4, 0);
    allow(h, "m-1", true);
}

static void what_is_no_order(void **state)
{
    struct harness h;
    begin(&h);
    assert_int_equal(inject(&h, "m-9", ORDER("a", "action: kill, object: m-1")), 404);
    assert_int_equal(inject(&h, "m-1", ORDER("A/b", "action: kill, object: m-1")), 422);
    assert_int_equal(inject(&h, "m-1", ORDER("a", "action: Kill/x, object: m-1")), 422);
    assert_int_equal(inject(&h, "m-1", ORDER("a", "action: kill")), 422);
    assert_int_equal(inject(&h, "m-1", ORDER("a", "action: kill, object: m-1, more: [1]")), 422);
    assert_int_equal(inject(&h, "m-1", "metadata: {name: a}\n"), 422);
    assert_null(order_at(&h, 0));
    assert_null(told_fault(&h));
    harness_done(&h);
}

static void only_a_machine_that_allows_it(void **state)
{
    struct harness h;
    begin(&h);
    allow(&h, "m-2", false);
    assert_int_equal(inject(&h, "m-2", ORDER("a", "action: kill, object: m-2")), 403);
    assert_int_equal(inject(&h, "m-2", ORDER("b", "action: heal, object: all")), 201); /* mending is free */
    assert_non_null(order_at(&h, 1));
    harness_news(&h, EVENT_MACHINE_AWAY, "m-1");
    assert_int_equal(inject(&h, "m-1", ORDER("c", "action: kill, object: m-1")), 409);
    allow(&h, "m-1", false); /* its agent was started again without it */
    assert_int_equal(inject(&h, "m-1", ORDER("d", "action: kill, object: m-1")), 403);
    harness_done(&h);
}

static void what_only_happens_is_told_and_over(void **state)
{
    struct harness h;
    begin(&h);
    assert_int_equal(inject(&h, "m-1", ORDER("a", "action: kill, object: machine/m-1")), 201);
    struct told_errand *order = order_at(&h, 0);
    assert_non_null(strstr(order->body.data, "\"object\":\"machine/m-1\""));
    const struct fault *fault = told_fault(&h);
    assert_true(str_is(fault->code, "injected/kill") && str_is(fault->place, "injection/a") && !fault->open);
    harness_errand_end(&h, order, ERRAND_OK, "7 processes");
    assert_int_equal(notes(&h, "Injected"), 1);
    harness_done(&h);
}

static void what_stands_is_open_until_its_agent_says_so(void **state)
{
    struct harness h;
    begin(&h);
    assert_int_equal(inject(&h, "m-1", ORDER("a", "action: stop, object: machine/m-1, for: 5s")), 201);
    assert_true(told_fault(&h)->open);
    harness_errand_end(&h, order_at(&h, 0), ERRAND_OK, "7 processes");
    assert_true(told_fault(&h)->open);
    struct signal over = signal_now(STR("injected/stop"), SIGNAL_RECOVER, SEVERITY_NOTICE, STR(""), h.now_ns);
    over.place = STR("injection/a");
    struct event event = {.kind = EVENT_REPORTS,
                          .reports = {STR("m-1"), {.number = 9, .signals = &over, .signal_count = 1}}};
    harness_step(&h, &event);
    assert_false(told_fault(&h)->open);
    harness_done(&h);
}

static void what_was_refused_does_not_stand(void **state)
{
    struct harness h;
    begin(&h);
    assert_int_equal(inject(&h, "m-1", ORDER("a", "action: stop, object: machine/m-1, for: 2h")), 201);
    harness_errand_end(&h, order_at(&h, 0), ERRAND_FAILED, "at most an hour");
    assert_false(told_fault(&h)->open);
    assert_int_equal(notes(&h, "InjectionFailed"), 1);
    harness_done(&h);
}

static void a_machine_that_is_lost_may_stand_still(void **state)
{
    struct harness h;
    begin(&h);
    assert_int_equal(inject(&h, "m-1", ORDER("a", "action: stop, object: machine/m-1, for: 5s")), 201);
    harness_news(&h, EVENT_MACHINE_SILENT, "m-1");
    assert_int_equal(notes(&h, "InjectionLost"), 1);
    assert_true(told_fault(&h)->open);
    harness_done(&h);
}

static void silence_is_kept(void **state)
{
    struct harness h;
    begin(&h);
    assert_int_equal(inject(&h, "m-1", ORDER("a", "action: kill, object: machine/m-1, silent: true")), 201);
    assert_null(told_fault(&h));
    assert_non_null(order_at(&h, 0));
    harness_done(&h);
}

/* Orders, answers, machines that come and go, in any order: each order has one end, and nothing is left. */
static void every_order_ends_once(void **state)
{
    static const char *const machines[] = {"m-1", "m-2", "m-3"};
    static const char *const specs[] = {"action: kill, object: pod/default/x",
                                        "action: stop, object: m, for: 5s", "action: heal, object: all",
                                        "action: lie, object: m, silent: true"};
    struct harness h;
    struct rng rng;
    size_t accepted = 0;
    rng_seed(&rng, 4);
    harness_init(&h, 3, 4, 0);
    for (int i = 0; i < 600; i++) {
        machine_id id = (machine_id)rng_below(&rng, 3);
        struct told_errand *order = order_at(&h, id);
        char yaml[160];
        switch (rng_below(&rng, 6)) {
        case 0:
            harness_news(&h, rng_below(&rng, 2) ? EVENT_MACHINE_AWAY : EVENT_MACHINE_SILENT, machines[id]);
            break;
        case 1:
            allow(&h, machines[id], rng_below(&rng, 4) != 0);
            break;
        case 2:
            harness_wait(&h, (int64_t)rng_below(&rng, 10) * NS_PER_SECOND);
            break;
        case 3:
            if (order)
                harness_errand_end(&h, order, rng_below(&rng, 2) ? ERRAND_OK : ERRAND_TIMED_OUT,
                                   "2 processes");
            break;
        default:
            snprintf(yaml, sizeof yaml, "metadata: {name: o-%d}\nspec: {%s}\n", i, specs[rng_below(&rng, 4)]);
            accepted += inject(&h, machines[id], yaml) == 201;
        }
        core_check_invariants(h.core);
    }
    harness_wait(&h, 60 * NS_PER_SECOND);
    assert_int_equal(errands_count(core_errands_store(h.core)), 0);
    assert_true(accepted > 50);
    size_t ends = (size_t)(notes(&h, "Injected") + notes(&h, "InjectionFailed") + notes(&h, "InjectionLost"));
    assert_int_equal(ends, accepted);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_order),
        cmocka_unit_test(only_a_machine_that_allows_it),
        cmocka_unit_test(what_only_happens_is_told_and_over),
        cmocka_unit_test(what_stands_is_open_until_its_agent_says_so),
        cmocka_unit_test(what_was_refused_does_not_stand),
        cmocka_unit_test(a_machine_that_is_lost_may_stand_still),
        cmocka_unit_test(silence_is_kept),
        cmocka_unit_test(every_order_ends_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
