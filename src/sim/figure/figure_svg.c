/* figure_svg.c - the chart of a figure: axes, then bars, lines and points, then the legend. */
#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "doc/markup.h"
#include "sim/figure/figure.h"

enum {
    PLOT_X = 500,
    PLOT_Y = 300,
    PLOT_LEFT = 64,
    PLOT_TOP = 42,
    PLOT_BOTTOM = 56,
    PLOT_RIGHT = 190,
    TICKS_MAX = 24
};

static const char *const plot_colors[] = {"#2b5fa8", "#c0392b", "#2a7d4f", "#e08e0b", "#7d3c98",
                                          "#118a8a", "#8a5a11", "#555555", "#a83279", "#3a3a8a"};
enum { COLORS = sizeof plot_colors / sizeof *plot_colors };

struct scale {
    double low, high; /* range of the axis; logarithms if `log` */
    bool log;
};
struct chart {
    const struct figure *figure;
    struct buf *out;
    struct scale x, y;
    uint32_t rows, bars; /* number of columns drawn as bars */
};

static double scaled(const struct scale *scale, double value)
{
    return ((scale->log ? log10(value) : value) - scale->low) / (scale->high - scale->low);
}

/* Returns the x of a row: the value of its first cell, or its number. */
static double row_x(const struct chart *chart, uint32_t row)
{
    return chart->figure->categories ? row : figure_at(chart->figure, row, 0)->value;
}

static double place_x(const struct chart *chart, double value)
{
    return PLOT_LEFT + PLOT_X * scaled(&chart->x, value);
}

static double place_y(const struct chart *chart, double value)
{
    return PLOT_TOP + PLOT_Y * (1 - scaled(&chart->y, value));
}

static bool is_shown(const struct chart *chart, uint32_t row, uint32_t column)
{
    double x = row_x(chart, row), y = figure_at(chart->figure, row, column)->value;
    return isfinite(x) && isfinite(y) && (!chart->x.log || x > 0) && (!chart->y.log || y > 0);
}

/* Appends a name with its underscores as spaces. */
static void put_words(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        markup_add_char(out, text.data[i] == '_' ? ' ' : text.data[i]);
}

static void put_text(const struct chart *chart, double x, double y, const char *anchor, struct str text)
{
    buf_printf(chart->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    put_words(chart->out, text);
    buf_printf(chart->out, "</text>\n");
}

/* --- axes ----------------------------------------------------------------------------------------------- */

static void scale_take(struct scale *scale, double value)
{
    double taken = scale->log ? log10(value) : value;
    scale->low = fmin(scale->low, taken);
    scale->high = fmax(scale->high, taken);
}

static void scale_end(struct scale *scale, bool from_zero)
{
    if (!(scale->low <= scale->high))
        *scale = (struct scale){.low = 0, .high = 1, .log = scale->log};
    if (from_zero && !scale->log && scale->low > 0)
        scale->low = 0;
    if (scale->high - scale->low < 1e-9)
        scale->high = scale->low + 1;
}

static void find_scales(struct chart *chart)
{
    const struct figure *figure = chart->figure;
    chart->x =
        (struct scale){.low = INFINITY, .high = -INFINITY, .log = figure->x_log && !figure->categories};
    chart->y = (struct scale){.low = INFINITY, .high = -INFINITY, .log = figure->y_log};
    for (uint32_t row = 0; row < chart->rows; row++)
        for (uint32_t column = 1; column < figure->column_count; column++)
            if (figure->columns[column].style != FIGURE_HIDDEN && is_shown(chart, row, column)) {
                scale_take(&chart->x, row_x(chart, row));
                scale_take(&chart->y, figure_at(figure, row, column)->value);
            }
    scale_end(&chart->x, false);
    scale_end(&chart->y, true);
    if (figure->categories) {
        chart->x.low = -.6;
        chart->x.high = chart->rows - .4;
    }
    if (figure->y_low != 0 || figure->y_high != 0) {
        chart->y.low = figure->y_log ? log10(figure->y_low) : figure->y_low;
        chart->y.high = figure->y_log ? log10(figure->y_high) : figure->y_high;
    } else if (!figure->y_log) {
        chart->y.high += .04 * (chart->y.high - chart->y.low);
    }
}

/* Finds round numbers along an axis: steps of 1, 2 or 5, or decades and their parts. */
static uint32_t find_ticks(const struct scale *scale, double ticks[TICKS_MAX])
{
    uint32_t count = 0;
    double span = scale->high - scale->low;
    if (scale->log) {
        static const double parts[] = {1, 2, 5};
        for (double decade = floor(scale->low); decade <= scale->high && count < TICKS_MAX; decade++)
            for (int i = 0; i < (span <= 3 ? 3 : 1) && count < TICKS_MAX; i++) {
                double at = decade + log10(parts[i]);
                if (at >= scale->low - 1e-9 && at <= scale->high + 1e-9)
                    ticks[count++] = pow(10, decade) * parts[i];
            }
        return count;
    }
    double step = pow(10, floor(log10(span / 4)));
    while (span / step > 8)
        step *= span / step > 20 ? 5 : 2;
    for (double at = ceil(scale->low / step - 1e-9);
         at * step <= scale->high + 1e-9 * span && count < TICKS_MAX; at++)
        ticks[count++] = at * step;
    return count;
}

static struct str number_text(double value, char text[32])
{
    bool thousands = fabs(value) >= 1e4;
    int len = fabs(value) < 1e-12
                  ? snprintf(text, 32, "0")
                  : snprintf(text, 32, thousands ? "%.4gk" : "%.4g", thousands ? value / 1000 : value);
    return (struct str){text, (size_t)len};
}

static void put_y_axis(const struct chart *chart)
{
    double ticks[TICKS_MAX];
    char text[32];
    for (uint32_t i = 0, count = find_ticks(&chart->y, ticks); i < count; i++) {
        double y = place_y(chart, ticks[i]);
        buf_printf(chart->out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                   PLOT_LEFT, y, PLOT_LEFT + PLOT_X, y);
        put_text(chart, PLOT_LEFT - 6, y + 4, "end", number_text(ticks[i], text));
    }
    buf_printf(chart->out, "<text transform=\"translate(14 %d) rotate(-90)\" text-anchor=\"middle\">",
               PLOT_TOP + PLOT_Y / 2);
    put_words(chart->out, str_from(chart->figure->y_label));
    buf_printf(chart->out, "</text>\n");
}

static void put_x_axis(const struct chart *chart)
{
    double ticks[TICKS_MAX];
    char text[32];
    int bottom = PLOT_TOP + PLOT_Y;
    bool crowded = chart->figure->categories && chart->rows > 9;
    for (uint32_t row = 0; chart->figure->categories && row < chart->rows; row++) {
        const struct figure_cell *cell = figure_at(chart->figure, row, 0);
        struct str word = cell->word.len ? cell->word : number_text(cell->value, text);
        put_text(chart, place_x(chart, row), bottom + (crowded && row % 2 ? 27 : 15), "middle", word);
    }
    for (uint32_t i = 0, count = chart->figure->categories ? 0 : find_ticks(&chart->x, ticks); i < count;
         i++) {
        double x = place_x(chart, ticks[i]);
        buf_printf(chart->out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#eee\"/>\n", x,
                   PLOT_TOP, x, bottom);
        put_text(chart, x, bottom + 15, "middle", number_text(ticks[i], text));
    }
    put_text(chart, PLOT_LEFT + PLOT_X / 2.0, bottom + 44, "middle", str_from(chart->figure->x_label));
    buf_printf(chart->out,
               "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n",
               PLOT_LEFT, PLOT_TOP, PLOT_X, PLOT_Y);
}

/* --- columns -------------------------------------------------------------------------------------------- */

static void put_line(const struct chart *chart, uint32_t column, const char *color)
{
    bool open = false, dashed = chart->figure->columns[column].style == FIGURE_DASHED;
    for (uint32_t row = 0; row < chart->rows; row++) {
        if (!is_shown(chart, row, column))
            continue; /* a line continues over rows in which only other columns have values */
        if (!open)
            buf_printf(chart->out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"",
                       color, dashed ? " stroke-dasharray=\"6 4\"" : "");
        open = true;
        buf_printf(chart->out, "%.1f,%.1f ", place_x(chart, row_x(chart, row)),
                   place_y(chart, figure_at(chart->figure, row, column)->value));
    }
    if (open)
        buf_printf(chart->out, "\"/>\n");
}

static void put_mark(const struct chart *chart, double x, double y, bool quoted, const char *color)
{
    if (quoted)
        buf_printf(
            chart->out,
            "<path d=\"M%.1f %.1fl6 6l-6 6l-6 -6z\" fill=\"#fff\" stroke=\"%s\" stroke-width=\"2\"/>\n", x,
            y - 6, color);
    else
        buf_printf(chart->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>\n", x, y, color);
}

static void put_marks(const struct chart *chart, uint32_t column, const char *color)
{
    for (uint32_t row = 0; row < chart->rows; row++)
        if (is_shown(chart, row, column))
            put_mark(chart, place_x(chart, row_x(chart, row)),
                     place_y(chart, figure_at(chart->figure, row, column)->value),
                     chart->figure->columns[column].style == FIGURE_QUOTED, color);
}

static void put_bars(const struct chart *chart, uint32_t column, uint32_t bar, const char *color)
{
    double slot = PLOT_X / (chart->x.high - chart->x.low), width = slot * .8 / chart->bars;
    for (uint32_t row = 0; row < chart->rows; row++) {
        if (!is_shown(chart, row, column))
            continue;
        double y = place_y(chart, figure_at(chart->figure, row, column)->value);
        buf_printf(chart->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
                   place_x(chart, row_x(chart, row)) - slot * .4 + bar * width, y, width,
                   PLOT_TOP + PLOT_Y - y, color);
    }
}

static void put_columns(struct chart *chart)
{
    const struct figure *figure = chart->figure;
    uint32_t shown = 0, bar = 0;
    for (uint32_t column = 1; column < figure->column_count; column++)
        chart->bars += figure->columns[column].style == FIGURE_BARS;
    for (uint32_t column = 1; column < figure->column_count; column++) {
        enum figure_style style = figure->columns[column].style;
        if (style == FIGURE_HIDDEN)
            continue;
        const char *color = plot_colors[shown % COLORS];
        double key_x = PLOT_LEFT + PLOT_X + 14, key_y = PLOT_TOP + 8 + 18.0 * shown++;
        if (style == FIGURE_BARS)
            put_bars(chart, column, bar++, color);
        else if (style == FIGURE_LINE || style == FIGURE_DASHED)
            put_line(chart, column, color);
        else
            put_marks(chart, column, color);
        if (style == FIGURE_POINTS || style == FIGURE_QUOTED)
            put_mark(chart, key_x + 8, key_y, style == FIGURE_QUOTED, color);
        else
            buf_printf(chart->out,
                       "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                       "stroke-width=\"%d\"%s/>\n",
                       key_x, key_y, key_x + 16, key_y, color, style == FIGURE_BARS ? 10 : 2,
                       style == FIGURE_DASHED ? " stroke-dasharray=\"6 4\"" : "");
        put_text(chart, key_x + 22, key_y + 4, "start", figure->columns[column].name);
    }
}

void figure_svg(const struct figure *figure, struct buf *out)
{
    struct chart chart = {.figure = figure, .out = out, .rows = figure_rows(figure)};
    int width = PLOT_LEFT + PLOT_X + PLOT_RIGHT, height = PLOT_TOP + PLOT_Y + PLOT_BOTTOM;
    find_scales(&chart);
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
               "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" "
               "fill=\"#fff\"/>\n"
               "<text x=\"%d\" y=\"22\" font-size=\"14\" font-weight=\"bold\">",
               width, height, width, height, PLOT_LEFT);
    put_words(out, str_from(figure->title));
    buf_printf(out, "</text>\n");
    put_y_axis(&chart);
    put_x_axis(&chart);
    buf_printf(out, "<clipPath id=\"plot\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n",
               PLOT_LEFT - 8, PLOT_TOP - 8, PLOT_X + PLOT_RIGHT + 8, PLOT_Y + 16);
    buf_printf(out, "<g clip-path=\"url(#plot)\">\n");
    put_columns(&chart);
    buf_printf(out, "</g>\n</svg>\n");
}
