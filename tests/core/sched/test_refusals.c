/* Random machines are counted and taken back: the counts, the order and the holders are those of a plain
 * list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/sched/refusals.h"

enum { MACHINES = 131, HOLDERS = 5, ROUNDS = 20000 };

struct verdict {
    bool counted;
    enum refusal refusal;
    obj_id holder;
};

static void check_all(const struct refusals *refusals, const struct verdict *verdicts)
{
    uint32_t fitting = 0, held[HOLDERS] = {0};
    for (machine_id id = 0; id < MACHINES; id++) {
        fitting += verdicts[id].counted && verdicts[id].refusal == FITS;
        if (verdicts[id].counted && verdicts[id].refusal == REFUSED_TAKEN)
            held[verdicts[id].holder]++;
    }
    assert_int_equal(refusals->fitting, fitting);
    for (obj_id holder = 0; holder < HOLDERS; holder++)
        assert_int_equal(refusals_held(refusals, holder), held[holder]);
    for (int refusal = FITS + 1; refusal < REFUSALS; refusal++) {
        machine_id next = 0;
        uint32_t count = 0;
        for (machine_id id = 0; id < MACHINES; id++)
            if (verdicts[id].counted && verdicts[id].refusal == (enum refusal)refusal) {
                assert_int_equal(refusals_next(refusals, (enum refusal)refusal, next), id);
                next = id + 1;
                count++;
            }
        assert_int_equal(refusals_next(refusals, (enum refusal)refusal, next), MACHINE_NONE);
        assert_int_equal(refusals->counts[refusal], count);
    }
}

static void as_a_list(void **state)
{
    struct refusals refusals = {0};
    struct arena arena ARENA_CLEANUP = {0};
    struct verdict verdicts[MACHINES] = {0};
    struct rng rng;
    rng_seed(&rng, 1);
    for (int round = 0; round < ROUNDS; round++) {
        machine_id id = (machine_id)rng_below(&rng, MACHINES);
        struct verdict *verdict = &verdicts[id];
        if (verdict->counted)
            refusals_remove(&refusals, id, verdict->refusal, verdict->holder);
        else
            *verdict = (struct verdict){.refusal = (enum refusal)rng_below(&rng, REFUSALS)};
        if (!verdict->counted && verdict->refusal == REFUSED_TAKEN)
            verdict->holder = rng_below(&rng, HOLDERS);
        if (!verdict->counted)
            refusals_add(&refusals, &arena, MACHINES, id, verdict->refusal, verdict->holder);
        verdict->counted = !verdict->counted;
        if (round % 100 == 0)
            check_all(&refusals, verdicts);
    }
    memset(verdicts, 0, sizeof verdicts);
    refusals_clear(&refusals);
    check_all(&refusals, verdicts);
    refusals_done(&refusals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_a_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
