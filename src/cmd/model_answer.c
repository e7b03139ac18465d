/* The output of phalanx model: lines and tables, or the same values as one JSON object. */
#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "cmd/model_asked.h"

enum { WORDS_WIDTH = 44 };

void span_text(double seconds, char text[SPAN_TEXT_MAX])
{
    char short_text[24];
    /* Days are the largest unit: a span beyond int64_t nanoseconds is practically endless. */
    if (seconds == 0) {
        snprintf(text, SPAN_TEXT_MAX, "0 s");
    } else if (seconds > 9e9) {
        snprintf(text, SPAN_TEXT_MAX, "%.3g days", seconds / 86400);
    } else if (seconds >= 86400) {
        snprintf(text, SPAN_TEXT_MAX, "%.2f days", seconds / 86400);
    } else if (seconds >= 3600) {
        snprintf(text, SPAN_TEXT_MAX, "%.2f h", seconds / 3600);
    } else {
        duration_format((int64_t)(seconds * (double)NS_PER_SECOND), short_text);
        snprintf(text, SPAN_TEXT_MAX, "%s", short_text);
    }
}

void reply_begin(struct model_answer *answer, bool json)
{
    *answer = (struct model_answer){.json = json};
    answer->writer.out = &answer->out;
    if (json)
        json_begin_object(&answer->writer);
}

int reply_end(struct model_answer *answer)
{
    if (answer->json) {
        json_end_object(&answer->writer);
        buf_add_char(&answer->out, '\n');
    }
    output_write(&answer->out);
    buf_done(&answer->out);
    return EXIT_OK;
}

/* Writes a value. A value without digits after the point is a count, and an integer in JSON. */
static void put_value(struct model_answer *answer, double value, int digits)
{
    if (digits == 0 && value == floor(value) && fabs(value) < 1e15)
        json_put_int(&answer->writer, (int64_t)value);
    else
        json_put_float(&answer->writer, value);
}

void reply_number(struct model_answer *answer, const char *key, const char *words, double value, int digits)
{
    if (!isfinite(value))
        return;
    if (answer->json) {
        json_key(&answer->writer, key);
        put_value(answer, value, digits);
        return;
    }
    buf_printf(&answer->out, "%-*s %.*f\n", WORDS_WIDTH, words, digits, value);
}

void reply_span(struct model_answer *answer, const char *key, const char *words, double seconds)
{
    char text[SPAN_TEXT_MAX];
    if (!isfinite(seconds))
        return;
    if (answer->json) {
        json_pair_float(&answer->writer, key, seconds);
    } else {
        span_text(seconds, text);
        buf_printf(&answer->out, "%-*s %s\n", WORDS_WIDTH, words, text);
    }
}

void reply_text(struct model_answer *answer, const char *format, ...)
{
    va_list args;
    if (answer->json)
        return;
    va_start(args, format);
    buf_vprintf(&answer->out, format, args);
    va_end(args);
    buf_add_char(&answer->out, '\n');
}

void reply_gap(struct model_answer *answer)
{
    if (!answer->json)
        buf_add_char(&answer->out, '\n');
}

/* --- tables --------------------------------------------------------------------------------------------- */

void reply_table(struct model_answer *answer, const char *key, const struct model_column *columns,
                 size_t count)
{
    CHECK(!answer->columns && count > 0 && count <= MODEL_COLUMNS_MAX);
    answer->columns = columns;
    answer->column_count = count;
    answer->at = 0;
    if (answer->json) {
        json_key(&answer->writer, key);
        json_begin_array(&answer->writer);
        return;
    }
    answer->table = (struct text_table){.columns = count};
    for (size_t i = 0; i < count; i++)
        table_add(&answer->table, str_from(columns[i].head));
}

/* Begins a cell: begins a row if necessary, and names the member. Returns false if the cell is left out. */
static bool cell_begin(struct model_answer *answer, bool exists)
{
    const char *key = answer->columns[answer->at].key;
    if (!answer->json)
        return true;
    if (answer->at == 0)
        json_begin_object(&answer->writer);
    if (exists && key)
        json_key(&answer->writer, key);
    return exists && key;
}

static void cell_end(struct model_answer *answer)
{
    answer->at = (answer->at + 1) % answer->column_count;
    if (answer->at == 0 && answer->json)
        json_end_object(&answer->writer);
}

void reply_cell(struct model_answer *answer, double value, int digits)
{
    char text[64];
    if (cell_begin(answer, isfinite(value))) {
        if (answer->json) {
            put_value(answer, value, digits);
        } else {
            snprintf(text, sizeof text, "%.*f", digits, value);
            table_add(&answer->table, str_from(isfinite(value) ? text : "-"));
        }
    }
    cell_end(answer);
}

void reply_cell_span(struct model_answer *answer, double seconds)
{
    char text[SPAN_TEXT_MAX] = "-";
    if (cell_begin(answer, isfinite(seconds))) {
        if (answer->json) {
            json_put_float(&answer->writer, seconds);
        } else {
            if (isfinite(seconds))
                span_text(seconds, text);
            table_add(&answer->table, str_from(text));
        }
    }
    cell_end(answer);
}

void reply_cell_text(struct model_answer *answer, const char *text)
{
    if (cell_begin(answer, true)) {
        if (answer->json)
            json_put_text(&answer->writer, text);
        else
            table_add(&answer->table, str_from(text));
    }
    cell_end(answer);
}

void reply_table_end(struct model_answer *answer)
{
    CHECK(answer->columns && answer->at == 0);
    if (answer->json)
        json_end_array(&answer->writer);
    else
        table_print(&answer->table, &answer->out, false);
    answer->columns = NULL;
}
