/* Steps in logs: however the bytes are cut; numbers; lines that are too long; patterns that are none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "host/agent/steplines.h"

static struct pace_sums read_log(const char *step, const char *work, struct str text, struct rng *cuts)
{
    struct step_lines lines;
    int64_t now_ns = NS_PER_SECOND;
    step_lines_init(&lines, str_from(step), str_from(work));
    while (text.len > 0) {
        size_t len = cuts ? 1 + rng_below(cuts, text.len) : text.len;
        step_lines_take(&lines, (struct str){text.data, len}, now_ns);
        text = (struct str){text.data + len, text.len - len};
    }
    struct pace_sums sums = lines.sums;
    step_lines_done(&lines);
    return sums;
}

static void steps_and_work(void **state)
{
    static const char log[] = "starting, own: 5000 ms\nstep 1 own: 9 ms\nnoise\nstep 2 own: 12.5 ms\n"
                              "step 3 own=7\nstep 4 own   0.2509 ms\nstep 5 (own .5)\nstep 6 own: many";
    struct rng rng;
    rng_seed(&rng, 5);
    for (int i = 0; i < 200; i++) {
        struct pace_sums sums = read_log("^step \\d+", "own", str_from(log), i ? &rng : NULL);
        assert_int_equal(sums.steps, 4); /* the first begins the count; the last has no end of line yet */
        assert_int_equal(sums.own_us, 12500 + 7000 + 250);
    }
}

static void time_between_steps(void **state)
{
    struct step_lines lines;
    step_lines_init(&lines, STR("tick"), STR(""));
    for (int64_t i = 1; i <= 10; i++)
        step_lines_take(&lines, STR("tick\n"), i * 20 * NS_PER_MS);
    assert_true(lines.sums.steps == 9 && lines.sums.elapsed_us == 180000 && lines.sums.own_us == 180000);
    step_lines_done(&lines);
}

static void long_lines_and_bad_patterns(void **state)
{
    struct buf text BUF_CLEANUP = {0};
    for (int line = 0; line < 3; line++) {
        buf_add_str(&text, STR("step "));
        for (int i = 0; i < 5000; i++)
            buf_add_char(&text, 'x');
        buf_add_str(&text, STR(" step step\n"));
    }
    struct rng rng;
    rng_seed(&rng, 6);
    for (int i = 0; i < 50; i++)
        assert_int_equal(read_log("step", "", buf_str(&text), &rng).steps, 2); /* one a line */
    assert_int_equal(read_log("xx step", "", buf_str(&text), &rng).steps, 0);  /* behind what is looked at */
    assert_int_equal(read_log("(", "[", STR("(\n(\n"), NULL).steps, 0);
    assert_int_equal(read_log("x{900}", "", STR("x\nx\n"), NULL).steps, 0);
    struct pace_sums sums =
        read_log("s", "o", STR("s\no 99999999999999999999999999999\no1.0000000000000000000001\ns\n"), NULL);
    assert_true(sums.steps == 1 && sums.own_us > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_and_work),
        cmocka_unit_test(time_between_steps),
        cmocka_unit_test(long_lines_and_bad_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
