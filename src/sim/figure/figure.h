/* figure.h - a figure: a table of numbers, and the chart that shows some of its columns.
 *
 *     struct figure figure = {.title = "...", .x_label = "GPUs", .y_label = "hours", .x_log = true};
 *     figure_add_column(&figure, "gpus", FIGURE_HIDDEN, 0);         the first column is x
 *     figure_add_column(&figure, "mttf_h", FIGURE_LINE, 3);
 *     figure_add(&figure, 1024); figure_add(&figure, 28.8);         cells row by row
 *     figure_csv(&figure, &out); figure_svg(&figure, &out);
 *     figure_done(&figure);
 *
 * Text, CSV, JSON and SVG come from the same cells, so a picture never shows a number that the table lacks. A
 * cell may be absent (NaN). With `categories` the first column holds words, and x is the row number. All
 * columns share the y axis. Quoted columns hold the values that a paper prints.
 *
 * The chart is plain SVG 1.1 with at most FIGURE_ROWS_MAX rows. Equal cells give equal bytes. No function
 * does I/O.
 */
#ifndef PHX_SIM_FIGURE_FIGURE_H
#define PHX_SIM_FIGURE_FIGURE_H

#include "base/vec.h"

enum { FIGURE_COLUMNS_MAX = 12, FIGURE_ROWS_MAX = 2000, FIGURE_NOTES_MAX = 6 };

enum figure_style {
    FIGURE_HIDDEN, /* in the table only */
    FIGURE_LINE,
    FIGURE_DASHED,
    FIGURE_POINTS,
    FIGURE_BARS,
    FIGURE_QUOTED, /* points with a distinct shape */
};

struct figure_column {
    struct str name; /* for the heading: letters, digits and _ */
    enum figure_style style;
    int digits; /* digits after the decimal point, in text */
};
struct figure_cell {
    double value;    /* NaN: absent, unless `word` is set */
    struct str word; /* empty: the cell is a number */
};

struct figure {
    const char *name, *title, *x_label, *y_label; /* static */
    bool x_log, y_log, categories;
    double y_low, y_high; /* range of the y axis; both 0: chosen from the cells */
    struct figure_column columns[FIGURE_COLUMNS_MAX];
    uint32_t column_count;
    VEC(struct figure_cell) cells;
    struct str notes[FIGURE_NOTES_MAX]; /* lines for people */
    uint32_t note_count;
    struct arena arena; /* words, names and notes */
};

void figure_add_column(struct figure *figure, const char *name, enum figure_style style, int digits);
void figure_add(struct figure *figure, double value);
void figure_add_word(struct figure *figure, const char *format, ...) __attribute__((format(printf, 2, 3)));
void figure_add_note(struct figure *figure, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t figure_rows(const struct figure *figure);
void figure_done(struct figure *figure);

static inline const struct figure_cell *figure_at(const struct figure *figure, uint32_t row, uint32_t column)
{
    return &figure->cells.items[(size_t)row * figure->column_count + column];
}

/* Appends the heading and a line for each row. Numbers have nine significant digits, and absent cells are
 * empty. */
void figure_csv(const struct figure *figure, struct buf *out);
/* Appends a cell as text for a table: "-" if it is absent. */
void figure_cell_text(const struct figure *figure, uint32_t row, uint32_t column, struct buf *out);
/* Appends the chart. Values up to 0 on a log axis are left out. */
void figure_svg(const struct figure *figure, struct buf *out);

#endif
