/* sim_study.c - writes studies of several seeds and sweeps as tables, as JSON and as a figure. */
#include <math.h>
#include <stdio.h>

#include "cmd/client.h"
#include "cmd/sim.h"
#include "doc/markup.h"

static struct str study_mean_text(struct arena *arena, struct study_mean mean, bool share)
{
    int digits = share ? 4 : 1;
    if (!isfinite(mean.mean))
        return STR("-");
    if (!isfinite(mean.half))
        return arena_printf(arena, "%.*f", digits, mean.mean);
    return arena_printf(arena, "%.*f ± %.*f", digits, mean.mean, digits, mean.half);
}

static bool study_figure_is_share(enum study_figure figure)
{
    return figure <= FIGURE_DOWN;
}

void sim_study_text(struct buf *out, const struct study *study, uint64_t seed)
{
    const struct sim_scenario *first = &study->points.items[0].scenario;
    struct text_table table = {.columns = study->field_count + STUDY_TABLE_FIGURES};
    buf_printf(out, "%s: %u machines of %u chips, %.4g days, seeds %llu to %llu", first->name,
               first->machines, first->chips, (double)first->duration_ns / 86400e9, (unsigned long long)seed,
               (unsigned long long)(seed + study->seeds - 1));
    buf_printf(out, study->seeds > 1 ? "; mean ± half of the 95 %% confidence interval\n\n" : "\n\n");
    for (size_t i = 0; i < study->field_count; i++)
        table_add(&table, study->fields[i]);
    for (int figure = 0; figure < STUDY_TABLE_FIGURES; figure++)
        table_add(&table, str_from(study_figure_names[figure]));
    for (size_t point = 0; point < study->points.len; point++) {
        for (size_t i = 0; i < study->field_count; i++)
            table_add(&table, study->points.items[point].values[i]);
        for (int figure = 0; figure < STUDY_TABLE_FIGURES; figure++)
            table_add(&table,
                      study_mean_text(&table.arena, study_figure(study, point, (enum study_figure)figure),
                                      study_figure_is_share((enum study_figure)figure)));
    }
    table_print(&table, out, false);
    table_done(&table);
}

/* --- JSON ----------------------------------------------------------------------------------------- */

static void study_json_point(struct json_writer *json, const struct study *study, size_t at)
{
    const struct study_point *point = &study->points.items[at];
    json_begin_object(json);
    json_key(json, "values");
    json_begin_object(json);
    for (size_t i = 0; i < study->field_count; i++) {
        json_key_str(json, study->fields[i]);
        json_put_str(json, point->values[i]);
    }
    json_end_object(json);
    for (int figure = 0; figure < STUDY_FIGURES; figure++) {
        struct study_mean mean = study_figure(study, at, (enum study_figure)figure);
        json_key(json, study_figure_names[figure]);
        json_begin_object(json);
        json_pair_float(json, "mean", mean.mean);
        json_pair_float(json, "half", mean.half);
        json_pair_float(json, "least", mean.least);
        json_pair_float(json, "most", mean.most);
        json_end_object(json);
    }
    json_key(json, "runs");
    json_begin_array(json);
    for (size_t seed = 0; seed < study->seeds; seed++)
        sim_report_json(json, &point->scenario, point->outcomes[seed]);
    json_end_array(json);
    json_end_object(json);
}

void sim_study_json(struct json_writer *json, const struct study *study, uint64_t seed)
{
    json_begin_object(json);
    json_pair_text(json, "name", study->points.items[0].scenario.name);
    json_pair_int(json, "seed", (int64_t)seed);
    json_pair_int(json, "seeds", (int64_t)study->seeds);
    json_key(json, "points");
    json_begin_array(json);
    for (size_t point = 0; point < study->points.len; point++)
        study_json_point(json, study, point);
    json_end_array(json);
    json_end_object(json);
}

/* --- figure --------------------------------------------------------------------------------------- */

enum { WIDTH = 760, LEFT = 64, TOP = 44, RIGHT = 220, PLOT_X = WIDTH - LEFT - RIGHT, PLOT_Y = 300 };
static const char *const study_colors[] = {"#2b5fa8", "#c0392b", "#2a7d4f", "#e08e0b",
                                           "#7d3c98", "#118a8a", "#8a5a11", "#555555"};
enum { COLORS = sizeof study_colors / sizeof *study_colors };

/* The points of a line differ in the first field alone: their numbers are a stride apart. */
struct study_lines {
    size_t stride, steps;
};

static struct study_lines study_lines_of(const struct study *study)
{
    struct study_lines lines = {study->points.len, 1};
    if (study->field_count == 0)
        return lines;
    lines.stride = 1;
    while (lines.stride < study->points.len &&
           str_equal(study->points.items[lines.stride].values[0], study->points.items[0].values[0]))
        lines.stride++;
    lines.steps = study->points.len / lines.stride;
    return lines;
}

/* Returns the ETTR at a place along the line, with its confidence interval. Without a sweep, places are
 * seeds. */
static struct study_mean study_place(const struct study *study, struct study_lines lines, size_t line,
                                     size_t step)
{
    if (study->field_count > 0)
        return study_figure(study, line + step * lines.stride, FIGURE_ETTR);
    return (struct study_mean){.mean = study_value(study->points.items[0].outcomes[step], FIGURE_ETTR),
                               .half = (double)NAN};
}

static void study_axes(struct buf *out, const struct study *study, struct study_lines lines, size_t steps)
{
    buf_printf(out, "<text x=\"%d\" y=\"24\" font-size=\"13\">ETTR from the first start on</text>\n", LEFT);
    for (int tenth = 0; tenth <= 10; tenth += 2) {
        int y = TOP + PLOT_Y - PLOT_Y * tenth / 10;
        buf_printf(out,
                   "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#ddd\"/>\n<text x=\"%d\" y=\"%d\" "
                   "text-anchor=\"end\">%.1f</text>\n",
                   LEFT, y, LEFT + PLOT_X, y, LEFT - 6, y + 4, tenth / 10.0);
    }
    for (size_t step = 0; step < steps && study->field_count > 0; step++) {
        buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
                   LEFT + PLOT_X * ((double)step + 0.5) / (double)steps, TOP + PLOT_Y + 16);
        markup_add(out, study->points.items[step * lines.stride].values[0]);
        buf_printf(out, "</text>\n");
    }
    buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", LEFT + PLOT_X / 2, TOP + PLOT_Y + 36);
    markup_add(out, study->field_count > 0 ? study->fields[0] : STR("seeds"));
    buf_printf(out, "</text>\n");
}

static void study_line(struct buf *out, const struct study *study, struct study_lines lines, size_t line,
                       size_t steps)
{
    const char *color = study_colors[line % COLORS];
    buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", color);
    for (size_t step = 0; step < steps; step++) {
        struct study_mean ettr = study_place(study, lines, line, step);
        if (isfinite(ettr.mean))
            buf_printf(out, "%.1f,%.1f ", LEFT + PLOT_X * ((double)step + 0.5) / (double)steps,
                       TOP + PLOT_Y * (1 - ettr.mean));
    }
    buf_printf(out, "\"/>\n");
    for (size_t step = 0; step < steps; step++) {
        struct study_mean ettr = study_place(study, lines, line, step);
        double x = LEFT + PLOT_X * ((double)step + 0.5) / (double)steps;
        if (isfinite(ettr.half))
            buf_printf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x,
                       TOP + PLOT_Y * (1 - ettr.mean - ettr.half), x,
                       TOP + PLOT_Y * (1 - ettr.mean + ettr.half), color);
    }
    buf_printf(out, "<text x=\"%d\" y=\"%zu\" fill=\"%s\">", LEFT + PLOT_X + 10, TOP + 12 + 16 * line, color);
    for (size_t i = 1; i < study->field_count; i++) {
        struct str name = study->fields[i], head, tail;
        while (str_cut(name, '.', &head, &tail))
            name = tail;
        buf_printf(out, "%s", i > 1 ? ", " : "");
        markup_add(out, name);
        buf_add_char(out, ' ');
        markup_add(out, study->points.items[line].values[i]);
    }
    buf_printf(out, "</text>\n");
}

void sim_study_picture(struct buf *out, const struct study *study)
{
    struct study_lines lines = study_lines_of(study);
    size_t steps = study->field_count > 0 ? lines.steps : study->seeds;
    size_t count = study->field_count > 0 ? lines.stride : 1;
    size_t height = TOP + PLOT_Y + 52 > TOP + 16 * count ? TOP + PLOT_Y + 52 : TOP + 16 * count;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" viewBox=\"0 0 %d %zu\" "
               "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" "
               "fill=\"white\"/>\n",
               WIDTH, height, WIDTH, height);
    study_axes(out, study, lines, steps);
    for (size_t line = 0; line < count; line++)
        study_line(out, study, lines, line, steps);
    buf_printf(out, "</svg>\n");
}
