/* figure.c - the table of a figure: see figure.h. */
#include "sim/figure/figure.h"

#include <math.h>
#include <stdarg.h>

#include "base/check.h"

static struct str figure_words(struct figure *figure, const char *format, va_list args)
{
    struct buf BUF_CLEANUP text = {0};
    buf_vprintf(&text, format, args);
    return arena_str(&figure->arena, buf_str(&text));
}

void figure_add_column(struct figure *figure, const char *name, enum figure_style style, int digits)
{
    CHECK(figure->column_count < FIGURE_COLUMNS_MAX && figure->cells.len == 0);
    figure->columns[figure->column_count++] = (struct figure_column){
        .name = arena_str(&figure->arena, str_from(name)), .style = style, .digits = digits};
}

void figure_add(struct figure *figure, double value)
{
    CHECK(figure->cells.len < (size_t)FIGURE_ROWS_MAX * figure->column_count);
    vec_push(&figure->cells, ((struct figure_cell){.value = value}));
}

void figure_add_word(struct figure *figure, const char *format, ...)
{
    va_list args;
    CHECK(figure->cells.len < (size_t)FIGURE_ROWS_MAX * figure->column_count);
    va_start(args, format);
    struct str word = figure_words(figure, format, args);
    va_end(args);
    vec_push(&figure->cells, ((struct figure_cell){.value = NAN, .word = word}));
}

void figure_add_note(struct figure *figure, const char *format, ...)
{
    va_list args;
    CHECK(figure->note_count < FIGURE_NOTES_MAX);
    va_start(args, format);
    figure->notes[figure->note_count++] = figure_words(figure, format, args);
    va_end(args);
}

uint32_t figure_rows(const struct figure *figure)
{
    CHECK(figure->column_count > 0 && figure->cells.len % figure->column_count == 0);
    return (uint32_t)(figure->cells.len / figure->column_count);
}

void figure_done(struct figure *figure)
{
    vec_done(&figure->cells);
    arena_done(&figure->arena);
}

static void csv_word(struct str word, struct buf *out)
{
    bool quoted = memchr(word.data, ',', word.len) || memchr(word.data, '"', word.len);
    if (quoted)
        buf_add_char(out, '"');
    for (size_t i = 0; i < word.len; i++) {
        if (word.data[i] == '"')
            buf_add_char(out, '"');
        buf_add_char(out, word.data[i]);
    }
    if (quoted)
        buf_add_char(out, '"');
}

void figure_csv(const struct figure *figure, struct buf *out)
{
    for (uint32_t column = 0; column < figure->column_count; column++)
        buf_printf(out, "%s" STR_FORMAT, column ? "," : "", STR_ARG(figure->columns[column].name));
    buf_add_char(out, '\n');
    for (uint32_t row = 0; row < figure_rows(figure); row++) {
        for (uint32_t column = 0; column < figure->column_count; column++) {
            const struct figure_cell *cell = figure_at(figure, row, column);
            if (column)
                buf_add_char(out, ',');
            if (cell->word.len)
                csv_word(cell->word, out);
            else if (isfinite(cell->value))
                buf_printf(out, "%.9g", cell->value);
        }
        buf_add_char(out, '\n');
    }
}

void figure_cell_text(const struct figure *figure, uint32_t row, uint32_t column, struct buf *out)
{
    const struct figure_cell *cell = figure_at(figure, row, column);
    if (cell->word.len)
        buf_add_str(out, cell->word);
    else if (isfinite(cell->value))
        buf_printf(out, "%.*f", figure->columns[column].digits, cell->value);
    else
        buf_add_char(out, '-');
}
