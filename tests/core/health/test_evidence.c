/* The evidence of connections and silence: stories that torture found, and a property of all orders. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "base/units.h"
#include "core/health/evidence.h"

#define LEASE_NS (3 * NS_PER_SECOND)
enum { STAMP = 1000 };

static struct hello hello_of(uint64_t incarnation, uint64_t connection)
{
    return (struct hello){.incarnation = incarnation, .connection = connection};
}

/* Connection and tether of one number, both heard; the tether at `stamp`. */
static struct evidence connected(int64_t stamp)
{
    struct evidence evidence = {0};
    struct hello hello = hello_of(1, 1);
    evidence_tether_opened(&evidence, &hello, stamp);
    evidence_hello(&evidence, &hello, 0);
    return evidence;
}

static void test_everything_closed_is_gone(void **state)
{
    struct evidence evidence = connected(STAMP);
    assert_int_equal(evidence_closed(&evidence, true, STAMP + 5),
                     VERDICT_AWAY); /* the agent died alone, or so it seems */
    assert_int_equal(evidence_tether_closed(&evidence, true, STAMP + 5), VERDICT_GONE);
    evidence = connected(STAMP);
    assert_int_equal(evidence_tether_closed(&evidence, true, STAMP + 5), VERDICT_NONE);
    assert_int_equal(evidence_closed(&evidence, true, STAMP + 5), VERDICT_GONE);
}

static void test_a_task_older_than_the_tether_is_not_covered(void **state)
{
    const int64_t starts[] = {STAMP - 1, STAMP};
    for (int i = 0; i < 2; i++) {
        struct evidence evidence = connected(STAMP);
        evidence_tether_closed(&evidence, true, starts[i]);
        assert_int_equal(evidence_closed(&evidence, true, starts[i]), VERDICT_AWAY);
    }
    struct evidence evidence = connected(STAMP);
    evidence_tether_closed(&evidence, true, INT64_MAX);
    assert_int_equal(evidence_closed(&evidence, true, INT64_MAX),
                     VERDICT_GONE); /* nothing could live there */
}

static void test_what_times_out_proves_nothing(void **state)
{
    struct evidence evidence = connected(STAMP);
    evidence_tether_closed(&evidence, false, STAMP + 5);
    assert_int_equal(evidence_closed(&evidence, true, STAMP + 5), VERDICT_AWAY);
    evidence = connected(STAMP);
    evidence_tether_closed(&evidence, true, STAMP + 5);
    assert_int_equal(evidence_closed(&evidence, false, STAMP + 5), VERDICT_AWAY);
}

/* A controller that has just begun has heard no tether at all. */
static void test_no_tether_no_proof(void **state)
{
    struct evidence evidence = {0};
    struct hello hello = hello_of(1, 1);
    evidence_hello(&evidence, &hello, 0);
    assert_int_equal(evidence_closed(&evidence, true, STAMP), VERDICT_AWAY);
}

/* Torture seed 273: the agent came back, its new tether was never heard, and the old one's span seemed to
 * cover all. */
static void test_an_unheard_tether_proves_nothing(void **state)
{
    struct evidence evidence = connected(STAMP);
    evidence_closed(&evidence, true, STAMP + 5);
    evidence_tether_closed(&evidence, true, INT64_MAX);
    struct hello hello = hello_of(2, 1);
    evidence_hello(&evidence, &hello, 0);
    assert_int_equal(evidence_closed(&evidence, true, STAMP + 50), VERDICT_AWAY);
    /* Tasks of that connection stay so when the next one's tether is heard. */
    hello.connection = 2;
    evidence_hello(&evidence, &hello, 0);
    evidence_tether_opened(&evidence, &hello, STAMP + 100);
    evidence_tether_closed(&evidence, true, STAMP + 50);
    assert_int_equal(evidence_closed(&evidence, true, STAMP + 50), VERDICT_AWAY);
}

static void test_older_hellos(void **state)
{
    struct evidence evidence = connected(STAMP);
    struct hello same = hello_of(1, 1), newer = hello_of(1, 2), older = hello_of(1, 0), past = hello_of(0, 9);
    assert_false(evidence_is_older(&evidence, &same, LEASE_NS, 0));
    assert_false(evidence_is_older(&evidence, &newer, LEASE_NS, 0));
    assert_true(evidence_is_older(&evidence, &older, LEASE_NS, 0));
    assert_true(evidence_is_older(&evidence, &past, LEASE_NS, 0));
    evidence_dropped(&evidence);
    assert_true(evidence_is_older(&evidence, &past, LEASE_NS, LEASE_NS));
    assert_false(evidence_is_older(&evidence, &past, LEASE_NS,
                                   evidence_span_ns(LEASE_NS))); /* its clock was set back */
}

static void test_silence(void **state)
{
    struct evidence evidence = connected(STAMP);
    evidence_renew(&evidence, NS_PER_SECOND);
    assert_true(evidence_span_ns(LEASE_NS) > LEASE_NS);
    assert_false(evidence_is_silent(&evidence, LEASE_NS, NS_PER_SECOND + LEASE_NS));
    assert_true(evidence_is_silent(&evidence, LEASE_NS, NS_PER_SECOND + evidence_span_ns(LEASE_NS)));
}

/* A hold of the leases: the machine is silent only behind all that its agent may count on. */
static void test_grants_put_silence_off(void **state)
{
    const struct lease_grant first = {5, 60 * NS_PER_SECOND}, last = {5, 20 * NS_PER_SECOND}, over = {9, 0};
    struct evidence evidence = connected(STAMP);
    int64_t held_ns = evidence_span_ns(LEASE_NS + first.left_ns);
    evidence_granted(&evidence, &first, LEASE_NS);
    assert_int_equal(evidence_silent_at(&evidence, LEASE_NS), held_ns);
    assert_false(evidence_is_silent(&evidence, LEASE_NS, held_ns - 1));
    assert_true(evidence_is_silent(&evidence, LEASE_NS, held_ns));
    evidence_renew(&evidence, NS_PER_SECOND); /* what is left of it shrinks; the first grant stands */
    evidence_granted(&evidence, &last, LEASE_NS);
    assert_int_equal(evidence_silent_at(&evidence, LEASE_NS), held_ns);
    evidence_granted(&evidence, &over, LEASE_NS); /* ended early: told is not heard */
    assert_int_equal(evidence_silent_at(&evidence, LEASE_NS), held_ns);
    evidence_counted(&evidence, 5);
    assert_int_equal(evidence_silent_at(&evidence, LEASE_NS), held_ns);
    evidence_counted(&evidence, 9);
    assert_int_equal(evidence_silent_at(&evidence, LEASE_NS), NS_PER_SECOND + evidence_span_ns(LEASE_NS));
}

/* A restarted controller waits for the longest that the one before may have granted, until the agent counts
 * by a grant of its own. */
static void test_what_another_granted_is_owed(void **state)
{
    const struct lease_grant own = {7, 0};
    struct evidence evidence = {0};
    struct hello hello = hello_of(1, 3);
    int64_t boot_ns = 100 * NS_PER_SECOND;
    evidence_renew(&evidence, boot_ns);
    evidence_owed(&evidence, 60 * NS_PER_SECOND, LEASE_NS, boot_ns);
    int64_t owed_ns = boot_ns + evidence_span_ns(LEASE_NS + 60 * NS_PER_SECOND);
    assert_int_equal(evidence_silent_at(&evidence, LEASE_NS), owed_ns);
    evidence_hello(&evidence, &hello, boot_ns + 1);
    evidence_granted(&evidence, &own, LEASE_NS);
    evidence_counted(&evidence, 5); /* said before it heard of the new controller's */
    assert_int_equal(evidence_silent_at(&evidence, LEASE_NS), owed_ns);
    evidence_counted(&evidence, 7);
    assert_int_equal(evidence_silent_at(&evidence, LEASE_NS), boot_ns + 1 + evidence_span_ns(LEASE_NS));
    evidence_owed(&evidence, 0, LEASE_NS, boot_ns);
    assert_int_equal(evidence_silent_at(&evidence, LEASE_NS), boot_ns + 1 + evidence_span_ns(LEASE_NS));
}

/* A model machine: an agent and shims that hold tethers, whose news arrive late and in any order across
 * connections. The controller may say GONE only when all shims are dead, and so is the agent that it
 * welcomed. */
struct model {
    struct rng rng;
    struct evidence evidence;
    uint64_t incarnation, connection;
    struct {
        bool opened, heard, closed_heard, held_by_agent;
        uint32_t shims;
        struct hello hello;
    } tethers[64];
    size_t count;
    bool agent, welcomed, hello_heard;
    int64_t stamp, oldest;
};

static uint32_t all_shims(const struct model *model)
{
    uint32_t shims = 0;
    for (size_t i = 0; i < model->count; i++)
        shims += model->tethers[i].shims;
    return shims;
}

static void check_verdict(const struct model *model, enum verdict verdict)
{
    if (verdict == VERDICT_GONE)
        assert_false((model->agent && model->welcomed) || all_shims(model) > 0);
}

static int64_t oldest(const struct model *model)
{
    return all_shims(model) > 0 ? model->oldest : INT64_MAX;
}

static void agent_connects(struct model *model)
{
    if (model->agent || model->count == 64)
        return;
    model->agent = true;
    model->welcomed = model->hello_heard = false;
    model->incarnation++;
    model->connection = 1;
    model->tethers[model->count].opened = model->tethers[model->count].held_by_agent = true;
    model->tethers[model->count++].hello = hello_of(model->incarnation, model->connection);
}

static void hear_something(struct model *model)
{
    if (model->agent && !model->hello_heard && rng_chance(&model->rng, 500000)) {
        struct hello hello = hello_of(model->incarnation, model->connection);
        evidence_hello(&model->evidence, &hello, 0);
        model->hello_heard = model->welcomed = true;
        return;
    }
    for (size_t i = 0; i < model->count; i++) {
        bool dead = !model->tethers[i].held_by_agent && model->tethers[i].shims == 0;
        if (!rng_chance(&model->rng, 300000) || model->tethers[i].closed_heard)
            continue;
        if (!model->tethers[i].heard) {
            evidence_tether_opened(&model->evidence, &model->tethers[i].hello, ++model->stamp);
            model->tethers[i].heard = true;
        } else if (dead) {
            model->tethers[i].closed_heard = true;
            check_verdict(model, evidence_tether_closed(&model->evidence, true, oldest(model)));
        }
    }
}

static void agent_dies(struct model *model)
{
    if (!model->agent)
        return;
    model->agent = false;
    model->tethers[model->count - 1].held_by_agent = false;
    if (model->hello_heard) /* its connection's end is heard before the next one's hello */
        check_verdict(model, evidence_closed(&model->evidence, true, oldest(model)));
}

static void task_starts(struct model *model)
{
    if (!model->agent || !model->welcomed)
        return;
    model->stamp++;
    model->oldest = all_shims(model) > 0 ? model->oldest : model->stamp;
    model->tethers[model->count - 1].shims++;
}

static void shim_dies(struct model *model)
{
    size_t i = model->count ? rng_below(&model->rng, model->count) : 0;
    if (model->count && model->tethers[i].shims)
        model->tethers[i].shims--;
}

static void test_gone_is_gone(void **state)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct model model = {.stamp = STAMP};
        rng_seed(&model.rng, seed);
        for (int step = 0; step < 200; step++) {
            switch (rng_below(&model.rng, 6)) {
            case 0:
                agent_connects(&model);
                break;
            case 1:
                task_starts(&model);
                break;
            case 2:
                shim_dies(&model);
                break;
            case 3:
                agent_dies(&model);
                break;
            default:
                hear_something(&model);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_closed_is_gone),
        cmocka_unit_test(test_a_task_older_than_the_tether_is_not_covered),
        cmocka_unit_test(test_what_times_out_proves_nothing),
        cmocka_unit_test(test_no_tether_no_proof),
        cmocka_unit_test(test_an_unheard_tether_proves_nothing),
        cmocka_unit_test(test_older_hellos),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_grants_put_silence_off),
        cmocka_unit_test(test_what_another_granted_is_owed),
        cmocka_unit_test(test_gone_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
