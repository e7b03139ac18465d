/* A rank's own work, told from what it waits for: sums over steps, whatever phases they are cut into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "job/loop/pace.h"

#define MS 1000000

static uint64_t draw(void) /* xorshift64 */
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static struct jobwire_pace sums(const struct job_pace *pace)
{
    struct jobwire_pace ret;
    job_pace_fill(pace, &ret);
    return ret;
}

static void test_own_work(void **unused)
{
    struct job_pace pace = {0};
    job_pace_step(&pace, 1000 * MS);
    assert_int_equal(sums(&pace).steps, 0); /* what came before the first step is nobody's */
    job_pace_phase(&pace, PHX_PHASE_LOAD, 1000 * MS);
    job_pace_phase(&pace, PHX_PHASE_COMPUTE, 1010 * MS);
    job_pace_phase(&pace, PHX_PHASE_COMMUNICATE, 1050 * MS);
    job_pace_phase(&pace, PHX_PHASE_NONE, 1080 * MS);
    job_pace_step(&pace, 1085 * MS);
    assert_true(sums(&pace).steps == 1 && sums(&pace).elapsed_us == 85000 && sums(&pace).own_us == 55000);
    job_pace_step(&pace, 1100 * MS); /* nothing was marked: all of it is its own */
    assert_true(sums(&pace).steps == 2 && sums(&pace).elapsed_us == 100000 && sums(&pace).own_us == 70000);
}

/* A phase across the end of a step belongs to both; an unknown one is none; a barrier within a phase gives it
 * back. */
static void test_edges(void **unused)
{
    struct job_pace pace = {0};
    job_pace_step(&pace, 100 * MS);
    job_pace_phase(&pace, PHX_PHASE_SAVE, 110 * MS);
    job_pace_step(&pace, 120 * MS);
    assert_int_equal(sums(&pace).own_us, 10000);
    job_pace_step(&pace, 130 * MS);
    assert_int_equal(sums(&pace).own_us, 10000);
    job_pace_phase(&pace, (enum phx_phase)77, 130 * MS);
    job_pace_step(&pace, 140 * MS);
    assert_int_equal(sums(&pace).own_us, 20000);
    job_pace_phase(&pace, PHX_PHASE_COMPUTE, 140 * MS);
    enum phx_phase before = job_pace_phase(&pace, PHX_PHASE_COMMUNICATE, 145 * MS);
    assert_int_equal(before, PHX_PHASE_COMPUTE);
    job_pace_phase(&pace, before, 165 * MS);
    job_pace_step(&pace, 170 * MS);
    assert_int_equal(sums(&pace).own_us, 30000);
}

/* Whatever the phases are: own work and time away sum up to the time that passed. */
static void test_sums(void **unused)
{
    struct job_pace pace = {0};
    int64_t now_ns = MS, away_ns = 0, begun_ns = 0, own_us;
    uint64_t steps = 0;
    enum phx_phase phase = PHX_PHASE_NONE;
    for (int i = 0; i < 10000; i++) {
        int64_t passed_ns = (int64_t)(draw() % (3 * MS));
        now_ns += passed_ns;
        if (begun_ns && (phase == PHX_PHASE_COMMUNICATE || phase == PHX_PHASE_SAVE))
            away_ns += passed_ns;
        if (draw() % 4 == 0) {
            job_pace_step(&pace, now_ns);
            steps += begun_ns != 0;
            begun_ns = begun_ns ? begun_ns : now_ns;
            own_us = (now_ns - begun_ns - away_ns) / 1000;
            assert_true(sums(&pace).steps == steps);
            assert_true(llabs((long long)sums(&pace).own_us - own_us) <= 1);
            assert_true(sums(&pace).elapsed_us == (uint64_t)(now_ns - begun_ns) / 1000);
        } else {
            phase = (enum phx_phase)(draw() % 5);
            job_pace_phase(&pace, phase, now_ns);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_work),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
