/* Errands in the core: each that is begun has exactly one end, whatever becomes of messages, machines and
 * time; and an agent is told of it until it knows it. */
#include "core/harness.h"

#include "base/rng.h"
#include "core/errand/errand.h"
#include "core/step.h"

enum { MACHINES = 3 };

/* A store beside a core, whose cluster it uses: steps are made by hand, so that no owner is needed. */
struct bench {
    struct harness h;
    struct errands *errands;
    struct effects effects;
    struct step step;
};

static struct machine *machine_at(struct bench *b, machine_id id)
{
    return (struct machine *)&core_cluster(b->h.core)->machines[id];
}

static void next_step(struct bench *b, int64_t duration_ns)
{
    const struct errand *errand;
    struct errand_end end;
    while (errands_next_end(b->errands, &errand, &end))
        ;
    errands_check(b->errands, core_cluster(b->h.core));
    errands_bury(b->errands);
    vec_clear(&b->effects.list);
    b->effects.seq++;
    b->step = (struct step){.cluster = (struct cluster *)core_cluster(b->h.core),
                            .errands = b->errands,
                            .effects = &b->effects,
                            .seq = b->effects.seq,
                            .now_ns = b->step.now_ns + duration_ns};
}

static void bench_init(struct bench *b)
{
    *b = (struct bench){.errands = errands_new()};
    b->h.twins.off = true;
    harness_init(&b->h, MACHINES, 4, 0);
    b->step.now_ns = b->h.now_ns;
    next_step(b, 0);
}

static void bench_done(struct bench *b)
{
    next_step(b, 0);
    errands_free(b->errands);
    vec_done(&b->effects.list);
    for (machine_id i = 0; i < MACHINES; i++)
        machine_at(b, i)->errands = true; /* as the log has it */
    harness_done(&b->h);
}

static obj_id begin(struct bench *b, machine_id machine)
{
    return errand_begin(&b->step, &(struct errand_order){.machine = machine,
                                                         .kind = ERRAND_QUALIFY,
                                                         .owner = ERRAND_OF_PREFLIGHT,
                                                         .about = 77,
                                                         .tag = 5,
                                                         .body = STR("{\"seconds\":1}"),
                                                         .timeout_ns = 60 * NS_PER_SECOND});
}

static size_t count_effects(const struct bench *b, enum effect_kind kind, obj_id errand)
{
    size_t count = 0;
    for (size_t i = 0; i < b->effects.list.len; i++) {
        const struct effect *effect = &b->effects.list.items[i];
        if (effect->kind == kind)
            count += (kind == EFFECT_ERRAND_START ? effect->errand_start.start.errand
                                                  : effect->errand_stop.errand) == errand;
    }
    return count;
}

static void hello(struct bench *b, machine_id machine, bool knows, obj_id *has, size_t count)
{
    machine_at(b, machine)->errands = knows;
    errands_hello(&b->step, machine_at(b, machine),
                  &(struct hello){.errands = knows, .errand_ids = has, .errand_count = count});
}

static void report(struct bench *b, machine_id machine, obj_id errand, enum errand_outcome outcome)
{
    struct errand_end end = {errand, outcome, outcome == ERRAND_FAILED ? 3 : 0, STR("it said so")};
    errands_reported(&b->step, machine_at(b, machine), &(struct reports){.errands = &end, .errand_count = 1});
}

/* The only end there is: of this errand. */
static struct errand_end only_end(struct bench *b, obj_id errand)
{
    const struct errand *of;
    struct errand_end end, none;
    assert_true(errands_next_end(b->errands, &of, &end));
    assert_true(of->uid == errand && end.errand == errand);
    assert_true(of->about == 77 && of->tag == 5 && of->owner == ERRAND_OF_PREFLIGHT);
    assert_false(errands_next_end(b->errands, &of, &none));
    assert_null(errand_find(b->errands, errand));
    return end;
}

/* --- stories -------------------------------------------------------------------------------------------- */

static void it_runs_and_ends(void **state)
{
    struct bench b;
    bench_init(&b);
    obj_id errand = begin(&b, 1);
    const struct effect *effect = &b.effects.list.items[0];
    assert_int_equal(effect->kind, EFFECT_ERRAND_START);
    assert_int_equal(effect->errand_start.machine, 1);
    assert_int_equal(effect->errand_start.start.kind, ERRAND_QUALIFY);
    assert_true(str_is(effect->errand_start.start.body, "{\"seconds\":1}"));
    assert_true(effect->errand_start.start.timeout_ns == 60 * NS_PER_SECOND);
    next_step(&b, NS_PER_SECOND);
    report(&b, 0, errand, ERRAND_OK); /* of another machine: not its word */
    assert_non_null(errand_find(b.errands, errand));
    report(&b, 1, errand, ERRAND_FAILED);
    report(&b, 1, errand, ERRAND_OK); /* said again: it has ended */
    struct errand_end end = only_end(&b, errand);
    assert_int_equal(end.outcome, ERRAND_FAILED);
    assert_int_equal(end.exit_code, 3);
    assert_true(str_is(end.output, "it said so"));
    assert_true(errands_deadline(b.errands) == INT64_MAX);
    bench_done(&b);
}

static void it_is_said_again_until_it_is_known(void **state)
{
    struct bench b;
    bench_init(&b);
    obj_id errand = begin(&b, 0);
    machine_at(&b, 0)->state = MACHINE_AWAY;
    next_step(&b, 20 * NS_PER_SECOND);
    obj_id later = begin(&b, 0); /* nobody to tell now */
    assert_int_equal(b.effects.list.len, 0);
    next_step(&b, 0);
    machine_at(&b, 0)->state = MACHINE_READY;
    obj_id has[] = {later, 4711};
    hello(&b, 0, true, has, 2);
    assert_int_equal(count_effects(&b, EFFECT_ERRAND_START, errand), 1);
    assert_int_equal(count_effects(&b, EFFECT_ERRAND_START, later), 0);
    assert_int_equal(count_effects(&b, EFFECT_ERRAND_STOP, 4711), 1); /* nobody wants it any more */
    for (size_t i = 0; i < b.effects.list.len; i++)
        if (b.effects.list.items[i].kind == EFFECT_ERRAND_START)
            assert_true(b.effects.list.items[i].errand_start.start.timeout_ns == 40 * NS_PER_SECOND);
    bench_done(&b);
}

static void what_cannot_be_heard_of_is_lost(void **state)
{
    struct bench b;
    bench_init(&b);
    obj_id errand = begin(&b, 0);
    int64_t due_ns = errands_deadline(b.errands);
    assert_true(due_ns == b.step.now_ns + 60 * NS_PER_SECOND + ERRAND_MARGIN_NS);
    next_step(&b, due_ns - b.step.now_ns - 1);
    errands_tick(&b.step);
    assert_non_null(errand_find(b.errands, errand));
    next_step(&b, 1);
    errands_tick(&b.step);
    assert_int_equal(only_end(&b, errand).outcome, ERRAND_LOST);
    assert_int_equal(count_effects(&b, EFFECT_ERRAND_STOP, errand), 1);
    next_step(&b, 0);
    errand = begin(&b, 2);
    machine_at(&b, 2)->state = MACHINE_LOST;
    errands_machine_lost(&b.step, machine_at(&b, 2), STR("no power"));
    struct errand_end end = only_end(&b, errand);
    assert_int_equal(end.outcome, ERRAND_LOST);
    assert_true(str_is(end.output, "its machine is lost: no power"));
    errand = begin(&b, 2); /* still not there */
    assert_int_equal(only_end(&b, errand).outcome, ERRAND_LOST);
    machine_at(&b, 2)->state = MACHINE_READY;
    bench_done(&b);
}

static void an_old_agent_understands_none(void **state)
{
    struct bench b;
    bench_init(&b);
    machine_at(&b, 0)->errands = false;
    obj_id errand = begin(&b, 0);
    assert_int_equal(b.effects.list.len, 0);
    struct errand_end end = only_end(&b, errand);
    assert_int_equal(end.outcome, ERRAND_LOST);
    assert_true(str_is(end.output, "its agent is too old for errands"));
    errand = begin(&b, 1);
    next_step(&b, 0);
    hello(&b, 1, false, NULL, 0); /* it was replaced by an older one */
    assert_int_equal(only_end(&b, errand).outcome, ERRAND_LOST);
    bench_done(&b);
}

static void a_cancelled_one_ends_in_silence(void **state)
{
    struct bench b;
    const struct errand *of;
    struct errand_end end;
    bench_init(&b);
    obj_id errand = begin(&b, 0), ended = begin(&b, 1);
    next_step(&b, 0);
    errand_cancel(&b.step, errand);
    assert_int_equal(count_effects(&b, EFFECT_ERRAND_STOP, errand), 1);
    report(&b, 0, errand, ERRAND_OK);
    report(&b, 1, ended, ERRAND_OK);
    errand_cancel(&b.step, ended); /* its end was on the way */
    errand_cancel(&b.step, 12345);
    assert_false(errands_next_end(b.errands, &of, &end));
    assert_int_equal(errands_count(b.errands), 0);
    bench_done(&b);
}

static void a_snapshot_keeps_them(void **state)
{
    struct bench b;
    bench_init(&b);
    obj_id first = begin(&b, 0);
    next_step(&b, NS_PER_SECOND);
    obj_id second = begin(&b, 1);
    struct errands *copy = errands_new();
    for (size_t i = 0; i < errands_count(b.errands); i++)
        assert_true(errands_restore(copy, errands_at(b.errands, i)));
    assert_false(errands_restore(copy, errands_at(b.errands, 0))); /* out of order */
    assert_true(errands_deadline(copy) == errands_deadline(b.errands));
    assert_true(str_is(errand_find(copy, first)->machine, "m-1"));
    assert_true(str_is(errand_find(copy, second)->body, "{\"seconds\":1}"));
    errands_check(copy, core_cluster(b.h.core));
    errands_free(copy);
    bench_done(&b);
}

/* --- at random ------------------------------------------------------------------------------------------ */

enum { ROUNDS = 3000 };

struct life {
    obj_id uid;
    machine_id machine;
    int ends;
    bool cancelled;
};

static void hear(struct bench *b, struct life *lives, size_t count)
{
    const struct errand *of;
    struct errand_end end;
    while (errands_next_end(b->errands, &of, &end))
        for (size_t i = 0; i < count; i++)
            lives[i].ends += lives[i].uid == end.errand;
}

static void do_something(struct bench *b, struct rng *rng, struct life *lives, size_t *count)
{
    machine_id id = (machine_id)rng_below(rng, MACHINES);
    struct machine *machine = machine_at(b, id);
    size_t any = *count > 0 ? rng_below(rng, *count) : 0;
    switch (rng_below(rng, 7)) {
    case 0:
    case 1:
        lives[*count] = (struct life){.uid = begin(b, id), .machine = id};
        ++*count;
        break;
    case 2:
        machine->state = MACHINE_AWAY;
        break;
    case 3:
        machine->state = MACHINE_READY;
        hello(b, id, rng_chance(rng, 900000), NULL, 0);
        break;
    case 4:
        machine->state = MACHINE_LOST;
        errands_machine_lost(&b->step, machine, STR("test"));
        break;
    case 5:
        if (*count == 0)
            break;
        lives[any].cancelled = lives[any].cancelled || lives[any].ends == 0;
        errand_cancel(&b->step, lives[any].uid);
        break;
    default:
        if (*count > 0)
            report(b, lives[any].machine, lives[any].uid, ERRAND_OK);
    }
}

static void each_has_one_end(void **state)
{
    struct bench b;
    struct rng rng;
    size_t count = 0;
    struct life *lives = mem_alloc((ROUNDS + 1) * sizeof *lives);
    bench_init(&b);
    rng_seed(&rng, 11);
    for (int i = 0; i < ROUNDS; i++) {
        do_something(&b, &rng, lives, &count);
        hear(&b, lives, count);
        next_step(&b, rng_range(&rng, 0, NS_PER_SECOND));
        errands_tick(&b.step);
        hear(&b, lives, count);
    }
    next_step(&b, 3600 * NS_PER_SECOND);
    errands_tick(&b.step);
    hear(&b, lives, count);
    assert_int_equal(errands_count(b.errands), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(lives[i].ends, lives[i].cancelled ? 0 : 1);
    for (machine_id i = 0; i < MACHINES; i++)
        machine_at(&b, i)->state = MACHINE_READY;
    mem_free(lives);
    bench_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_runs_and_ends),
        cmocka_unit_test(it_is_said_again_until_it_is_known),
        cmocka_unit_test(what_cannot_be_heard_of_is_lost),
        cmocka_unit_test(an_old_agent_understands_none),
        cmocka_unit_test(a_cancelled_one_ends_in_silence),
        cmocka_unit_test(a_snapshot_keeps_them),
        cmocka_unit_test(each_has_one_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
