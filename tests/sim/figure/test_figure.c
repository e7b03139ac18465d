/* Figures: their tables as CSV and text, their charts as SVG, and the papers' values beside ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"
#include "sim/figure/papers.h"

static void near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("found %.6f, expected %.6f +- %g", found, expected, tolerance);
}

static uint32_t count_of(const struct buf *text, const char *part)
{
    uint32_t count = 0;
    for (const char *at = text->data; (at = strstr(at, part)); at += strlen(part))
        count++;
    return count;
}

static void small_figure(struct figure *figure)
{
    *figure =
        (struct figure){.name = "small", .title = "A < B & C", .x_label = "x", .y_label = "y", .x_log = true};
    figure_add_column(figure, "size", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "line_s", FIGURE_LINE, 2);
    figure_add_column(figure, "note", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "quoted", FIGURE_QUOTED, 1);
    static const double cells[][3] = {{1, 2.125, NAN}, {10, NAN, 4}, {100, 3, INFINITY}, {0, 5, 5}};
    for (int row = 0; row < 4; row++) {
        figure_add(figure, cells[row][0]);
        figure_add(figure, cells[row][1]);
        figure_add_word(figure, "a \"%d\", b", row);
        figure_add(figure, cells[row][2]);
    }
}

static void a_table_is_written(void **state)
{
    struct figure figure;
    struct buf BUF_CLEANUP csv = {0}, cell = {0};
    small_figure(&figure);
    assert_int_equal(figure_rows(&figure), 4);
    figure_csv(&figure, &csv);
    assert_string_equal(csv.data, "size,line_s,note,quoted\n"
                                  "1,2.125,\"a \"\"0\"\", b\",\n"
                                  "10,,\"a \"\"1\"\", b\",4\n"
                                  "100,3,\"a \"\"2\"\", b\",\n"
                                  "0,5,\"a \"\"3\"\", b\",5\n");
    figure_cell_text(&figure, 0, 1, &cell);
    figure_cell_text(&figure, 1, 1, &cell);
    figure_cell_text(&figure, 1, 3, &cell);
    figure_cell_text(&figure, 2, 2, &cell);
    assert_string_equal(cell.data, "2.12-4.0a \"2\", b");
    figure_done(&figure);
}

/* Marks stand where the numbers are: the axis is logarithmic, and a row at 0 is left out. */
static void a_chart_is_drawn(void **state)
{
    struct figure figure;
    struct buf BUF_CLEANUP svg = {0};
    small_figure(&figure);
    figure_svg(&figure, &svg);
    assert_non_null(strstr(svg.data, "A &lt; B &amp; C"));
    assert_int_equal(count_of(&svg, "<polyline"), 1);
    const char *points = strstr(svg.data, "points=\"") + strlen("points=\"");
    double x[2], y[2];
    assert_int_equal(sscanf(points, "%lf,%lf %lf,%lf \"", &x[0], &y[0], &x[1], &y[1]), 4);
    near(x[1] - x[0], 500, .2); /* 1 to 100: the whole axis */
    const char *mark = strstr(svg.data, "<path d=\"M") + strlen("<path d=\"M");
    double mark_x, mark_y;
    assert_int_equal(sscanf(mark, "%lf %lf", &mark_x, &mark_y), 2);
    near(mark_x, (x[0] + x[1]) / 2, .2); /* 10 */
    near((mark_y + 6 - y[0]) / (y[1] - y[0]), (4 - 2.125) / (3 - 2.125), .01);
    assert_int_equal(count_of(&svg, "<path"), 2); /* and in the legend */
    figure_done(&figure);
}

static void a_figure_without_values_is_drawn(void **state)
{
    struct figure figure = {.name = "empty", .title = "t", .x_label = "x", .y_label = "y", .y_log = true};
    struct buf BUF_CLEANUP svg = {0};
    figure_add_column(&figure, "x", FIGURE_HIDDEN, 0);
    figure_add_column(&figure, "y", FIGURE_LINE, 0);
    figure_svg(&figure, &svg);
    figure_add(&figure, 3);
    figure_add(&figure, -1);
    figure_svg(&figure, &svg);
    assert_int_equal(count_of(&svg, "nan"), 0);
    assert_int_equal(count_of(&svg, "</svg>"), 2);
    figure_done(&figure);
}

/* --- the papers ----------------------------------------------------------------------------------------- */

static uint32_t column_of(const struct figure *figure, const char *name)
{
    for (uint32_t i = 0; i < figure->column_count; i++)
        if (str_is(figure->columns[i].name, name))
            return i;
    fail_msg("%s has no column %s", figure->name, name);
    return 0;
}

static void build(const char *name, struct figure *figure)
{
    uint32_t count;
    const struct paper_figure *papers = papers_all(&count);
    struct papers_input input = {.seed = 1};
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(papers[i].name, name) == 0) {
            papers_build(&papers[i], &input, figure);
            return;
        }
    fail_msg("there is no figure %s", name);
}

static void drawings_are_whole_and_repeatable(void **state)
{
    uint32_t count;
    const struct paper_figure *papers = papers_all(&count);
    assert_int_equal(count, 10);
    for (uint32_t i = 0; i < count; i++) {
        struct buf BUF_CLEANUP first = {0}, second = {0};
        struct figure figure, again;
        if (papers[i].needs_trace)
            continue;
        build(papers[i].name, &figure);
        build(papers[i].name, &again);
        figure_svg(&figure, &first);
        figure_svg(&again, &second);
        figure_csv(&figure, &first);
        figure_csv(&again, &second);
        assert_string_equal(first.data, second.data);
        assert_int_equal(count_of(&first, "nan") + count_of(&first, "inf"), 0);
        assert_int_equal(count_of(&first, "<text"), count_of(&first, "</text>"));
        assert_true(figure.note_count > 0 && figure_rows(&figure) > 3);
        figure_done(&figure);
        figure_done(&again);
    }
}

/* In each row that quotes a paper the model's value is near. */
static void models_are_near_what_is_quoted(void **state)
{
    static const struct {
        const char *figure, *model, *quoted;
        double tolerance; /* of the ratio */
    } pairs[] = {
        {"mttf", "rsc1_h", "quoted_projected_h", .03},
        {"ettr", "exact", "quoted", .045},
        {"ettr", "drawn", "quoted", .045},
        {"contour", "ettr_0.5_m", "quoted_0.5_m", .07},
        {"mix", "jobs_%", "quoted_jobs_%", .06},
        {"mix", "gpu_time_%", "quoted_gpu_time_%", .05},
        {"lemons", "before_%", "quoted_before", .11},
        {"lemons", "after_%", "quoted_after", .38},
        {"availability", "ocs_0.99", "quoted", .02},
        {"goodput", "ocs_0.99", "quoted", .02},
        {"switch", "all_to_all_%", "quoted_min", .10},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct figure figure;
        build(pairs[i].figure, &figure);
        uint32_t model = column_of(&figure, pairs[i].model), quoted = column_of(&figure, pairs[i].quoted),
                 found = 0;
        for (uint32_t row = 0; row < figure_rows(&figure); row++) {
            double quote = figure_at(&figure, row, quoted)->value;
            if (!isfinite(quote))
                continue;
            near(figure_at(&figure, row, model)->value / quote, 1, pairs[i].tolerance);
            found++;
        }
        assert_true(found > 0);
        figure_done(&figure);
    }
}

/* All-to-all keeps what the paper's range has; rings on the switch keep half at the least. */
static void one_switch_out(void **state)
{
    struct figure figure;
    build("switch", &figure);
    uint32_t all = column_of(&figure, "all_to_all_%"), ring = column_of(&figure, "all_reduce_%");
    double least = 100;
    for (uint32_t row = 0; row < figure_rows(&figure); row++) {
        double kept = figure_at(&figure, row, all)->value, kept_ring = figure_at(&figure, row, ring)->value;
        assert_true(kept >= 92.2 && kept <= 101.7);
        assert_true(kept_ring >= 49.9 && kept_ring <= 100.1);
        least = fmin(least, kept_ring);
    }
    near(least, 50, .1);
    figure_done(&figure);
}

static void a_trace_is_replayed(void **state)
{
    static const char text[] =
        "[{\"node_id\":\"a\",\"event_time\":0,\"event_type\":\"fault_start\",\"fault_type\":{\"Level\":\"x\","
        "\"Class\":\"GPU\",\"Desc\":\"d\"}},{\"node_id\":\"a\",\"event_time\":5,\"event_type\":\"fault_end\","
        "\"fault_type\":{\"Level\":\"x\",\"Class\":\"GPU\",\"Desc\":\"d\"}},{\"node_id\":\"b\",\"event_"
        "time\":10,"
        "\"event_type\":\"fault_start\",\"fault_type\":{\"Level\":\"x\",\"Class\":\"GPU\",\"Desc\":\"d\"}}]";
    struct arena ARENA_CLEANUP arena = {0};
    struct doc *doc;
    struct fault_trace trace;
    struct figure figure;
    uint32_t count;
    const struct paper_figure *papers = papers_all(&count);
    assert_int_equal(json_parse(&arena, str_from(text), &doc, NULL), 0);
    assert_int_equal(fault_trace_read(&arena, doc, &trace, NULL), 0);
    struct papers_input input = {.trace = &trace, .trace_machines = 10, .seed = 1};
    assert_true(papers[count - 1].needs_trace);
    papers_build(&papers[count - 1], &input, &figure);
    assert_int_equal(figure_rows(&figure), 10);
    near(figure_at(&figure, 9, column_of(&figure, "waiting"))->value, .5,
         1e-9); /* all ten: half of ten days */
    near(figure_at(&figure, 8, column_of(&figure, "waiting"))->value, 0, 1e-9);
    figure_done(&figure);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_written),
        cmocka_unit_test(a_chart_is_drawn),
        cmocka_unit_test(a_figure_without_values_is_drawn),
        cmocka_unit_test(drawings_are_whole_and_repeatable),
        cmocka_unit_test(models_are_near_what_is_quoted),
        cmocka_unit_test(one_switch_out),
        cmocka_unit_test(a_trace_is_replayed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
