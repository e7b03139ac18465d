/* Steps in logs: however the bytes are cut; numbers; lines that are too long; patterns that are none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

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

/* The newest step, "number/total source name=micro ...". */
static const char *newest(const struct step_lines *lines)
{
    static const char *const sources[] = {"said", "read", "counted"};
    static char text[200];
    const struct task_step *step = &lines->newest;
    int at = snprintf(text, sizeof text, "%lld/%lld %s", (long long)step->step, (long long)step->total,
                      sources[step->source]);
    for (size_t i = 0; i < step->metric_count; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, " " STR_FORMAT "=%lld",
                       STR_ARG(step->metrics[i].name), (long long)step->metrics[i].micro);
    return text;
}

static void take(struct step_lines *lines, const char *line)
{
    step_lines_take(lines, str_from(line), NS_PER_SECOND);
    step_lines_take(lines, STR("\n"), NS_PER_SECOND);
}

static void numbers_of_groups(void **state)
{
    static const struct {
        const char *pattern, *line, *newest;
    } cases[] = {
        {"iteration +\\d+/", "iteration 12/100 loss 2.31", "1/0 counted"},
        {"iteration +(\\d+)", "iteration  12/100 loss 2.31", "12/0 read"},
        {"iteration +(\\d+)/(\\d+)", "iteration 12/100 loss 2.31", "12/100 read"},
        {"iteration (\\d+)/(\\d+) loss (\\S+)", "iteration 12/100 loss 2.31", "12/100 read loss=2310000"},
        {"(?P<loss>[0-9.]+) at (?P<step>\\d+)", "0.25 at 7", "7/0 read loss=250000"},
        {"(?P<step>\\d+) lr (?P<lr>\\S+) loss (?P<loss>\\S+)", "3 lr 1e-5 loss 2.31E+00",
         "3/0 read lr=10 loss=2310000"},
        {"(?P<step>\\d+) (?:loss|l) (?P<loss>\\S+)", "3 loss nan", "3/0 read"},
        {"(?P<step>\\d+) (?P<loss>\\S+)", "3 none", "3/0 read"},
        {"(step|iteration) \\d+", "step 12", "1/0 counted"},
        {"(?P<step>\\d+)/(?P<total>\\d+)", "0012/99999999999999999999", "12/0 read"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct step_lines lines;
        step_lines_init(&lines, str_from(cases[i].pattern), STR(""));
        take(&lines, "nothing of the kind");
        assert_int_equal(lines.matched, 0);
        take(&lines, cases[i].line);
        assert_int_equal(lines.matched, 1);
        assert_string_equal(newest(&lines), cases[i].newest);
        step_lines_done(&lines);
    }
}

static void number_lines(struct step_lines *lines, int from, int to)
{
    char line[64];
    for (int i = from; i <= to; i++) {
        snprintf(line, sizeof line, "it %d/%d", i, 500);
        take(lines, line);
    }
}

/* The step since which the loss has not been finite; a finite one ends that, other values do not. */
static void losses(void **state)
{
    struct step_lines lines;
    step_lines_init(&lines, STR("it (?P<step>\\d+) loss (?P<train_loss>\\S+) lr (?P<lr>\\S+)"), STR(""));
    take(&lines, "it 1 loss 2.5 lr nan");
    assert_int_equal(lines.newest.not_finite.len, 0);
    take(&lines, "it 2 loss nan lr 1");
    take(&lines, "it 3 loss 2.5 lr 1");
    assert_int_equal(lines.newest.not_finite.len, 0);
    take(&lines, "it 4 loss -inf lr 1");
    take(&lines, "it 5 loss nan lr 1");
    assert_true(str_is(lines.newest.not_finite, "train_loss"));
    assert_int_equal(lines.newest.not_finite_step, 4);
    step_lines_done(&lines);
}

/* Epochs begin again at 1: from then on lines are counted, and the step never falls. */
static void numbers_that_start_again(void **state)
{
    struct step_lines lines;
    step_lines_init(&lines, STR("it (\\d+)/(\\d+)"), STR(""));
    number_lines(&lines, 1, 500);
    assert_string_equal(newest(&lines), "500/500 read");
    number_lines(&lines, 1, 30);
    assert_string_equal(newest(&lines), "530/0 counted");
    number_lines(&lines, 499, 500);
    assert_string_equal(newest(&lines), "532/0 counted");
    step_lines_done(&lines);
    step_lines_init(&lines, STR("it (\\d+)/(\\d+)"), STR("")); /* short ones, told by their number */
    for (int i = 0; i < 2 * LOWER_LINES; i++)
        number_lines(&lines, 1, 4);
    assert_true(lines.newest.source == STEP_COUNTED && lines.newest.step > 5 * LOWER_LINES);
    step_lines_done(&lines);
}

/* Ranks under one torchrun write one log, and are a step apart. */
static void ranks_that_share_a_log(void **state)
{
    struct step_lines lines;
    step_lines_init(&lines, STR("it (\\d+)/(\\d+)"), STR(""));
    for (int i = 1; i <= 300; i++) {
        number_lines(&lines, i, i);
        for (int rank = 1; rank < 8; rank++)
            number_lines(&lines, i > 1 ? i - 1 : 1, i);
    }
    assert_string_equal(newest(&lines), "300/500 read");
    step_lines_done(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_and_work),
        cmocka_unit_test(time_between_steps),
        cmocka_unit_test(long_lines_and_bad_patterns),
        cmocka_unit_test(numbers_of_groups),
        cmocka_unit_test(losses),
        cmocka_unit_test(numbers_that_start_again),
        cmocka_unit_test(ranks_that_share_a_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
