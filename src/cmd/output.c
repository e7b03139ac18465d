#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cmd/client.h"

#define COLOR_GOOD    "\033[32m"
#define COLOR_BAD     "\033[31m"
#define COLOR_WAITING "\033[33m"
#define COLOR_END     "\033[0m"

bool output_is_terminal(void)
{
    return isatty(STDOUT_FILENO);
}

enum { COLUMNS_MIN = 20, LINES_MIN = 6, COLUMNS_FALLBACK = 80, LINES_FALLBACK = 24 };

void output_size(int *ret_columns, int *ret_lines)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    int64_t number;
    bool terminal = output_is_terminal();
    *ret_columns = terminal ? COLUMNS_FALLBACK : INT_MAX;
    *ret_lines = terminal ? LINES_FALLBACK : INT_MAX;
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
        *ret_columns = size.ws_col > COLUMNS_MIN ? size.ws_col : COLUMNS_MIN;
        *ret_lines = size.ws_row > LINES_MIN ? size.ws_row : LINES_MIN;
    } else if (columns && str_to_i64(str_from(columns), COLUMNS_MIN, 10000, &number)) {
        *ret_columns = (int)number;
    }
}

void put_count(struct buf *out, int64_t count, const char *noun)
{
    struct str text = str_from(noun);
    buf_printf(out, "%lld %s%s", (long long)count, noun,
               count == 1                 ? ""
               : str_ends(text, STR("s")) ? "es"
                                          : "s");
}

void put_clock(struct buf *out, int64_t wall_ns)
{
    time_t seconds = (time_t)(wall_ns / NS_PER_SECOND);
    struct tm parts;
    char text[16];
    localtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%H:%M:%S", &parts);
    buf_printf(out, "%s.%06lld", text, (long long)(wall_ns % NS_PER_SECOND / NS_PER_US));
}

bool output_colors(void)
{
    const char *off = getenv("NO_COLOR"), *term = getenv("TERM");
    return output_is_terminal() && (!off || !*off) && (!term || strcmp(term, "dumb") != 0);
}

/* Returns the length of the escape sequence of color_of or color_end that begins here; 0 if there is none. */
static size_t color_at(const char *text, size_t len)
{
    static const char *const made[] = {COLOR_GOOD, COLOR_BAD, COLOR_WAITING, COLOR_END};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (str_starts((struct str){text, len}, str_from(made[i])))
            return strlen(made[i]);
    return 0;
}

void output_clean(struct buf *text, bool colors)
{
    for (size_t i = 0; i < text->len; i++) {
        unsigned char byte = (unsigned char)text->data[i];
        unsigned char next = i + 1 < text->len ? (unsigned char)text->data[i + 1] : 0;
        size_t color = byte == 033 && colors ? color_at(text->data + i, text->len - i) : 0;
        if (color)
            i += color - 1;
        else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f)
            text->data[i] = '?';
        else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) /* U+0080 to U+009F, control characters too */
            text->data[i] = text->data[i + 1] = '?';
    }
}

void output_escape(struct buf *json)
{
    struct buf escaped = {0};
    for (size_t i = 0; i < json->len; i++) {
        unsigned char byte = (unsigned char)json->data[i];
        unsigned char next = i + 1 < json->len ? (unsigned char)json->data[i + 1] : 0;
        bool two = byte == 0xc2 && next >= 0x80 && next < 0xa0;
        if (two || byte == 0x7f)
            buf_printf(&escaped, "\\u%04x", two ? next : byte);
        else
            buf_add_char(&escaped, json->data[i]);
        i += two;
    }
    buf_done(json);
    *json = escaped;
}

void output_write(struct buf *out)
{
    output_clean(out, output_colors());
    if (out->len)
        fwrite(out->data, 1, out->len, stdout);
    fflush(stdout);
    buf_clear(out);
}

void output_print(const char *format, ...)
{
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    output_write(&text);
}

const char *color_of(struct str word)
{
    static const char *const good[] = {"Running",   "Ready", "Completed", "Complete",
                                       "Succeeded", "True",  "READY"};
    static const char *const bad[] = {"Failed",  "Error", "OOMKilled",  "NotReady", "MachineLost",
                                      "Warning", "LOST",  "StartError", "Fenced"};
    static const char *const waiting[] = {"Queued",      "Pending",      "Restarting",        "Starting",
                                          "Terminating", "Suspended",    "ContainerCreating", "Unknown",
                                          "AWAY",        "FailureTarget"};
    if (!output_colors())
        return "";
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (str_is(word, good[i]))
            return COLOR_GOOD;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (str_is(word, bad[i]))
            return COLOR_BAD;
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++)
        if (str_is(word, waiting[i]))
            return COLOR_WAITING;
    return "";
}

const char *color_end(void)
{
    return output_colors() ? COLOR_END : "";
}

/* --- documents --------------------------------------------------------------------------------- */

const struct doc *doc_dotted(const struct doc *object, const char *path)
{
    struct str rest = str_from(path), step, after;
    while (str_cut(rest, '.', &step, &after)) {
        object = doc_get_str(object, step);
        rest = after;
    }
    return doc_get_str(object, rest);
}

struct str doc_text(const struct doc *object, const char *path)
{
    return doc_str(doc_dotted(object, path), STR(""));
}

int64_t doc_number(const struct doc *object, const char *path, int64_t fallback)
{
    return doc_int(doc_dotted(object, path), fallback);
}

double doc_real(const struct doc *node, double fallback)
{
    if (node && node->kind == DOC_FLOAT)
        return node->number;
    return node && node->kind == DOC_INT ? (double)node->integer : fallback;
}

/* --- tables ------------------------------------------------------------------------------------ */

/* Returns the width of a text on the screen: its characters, not its bytes. */
static size_t shown_width(struct str text)
{
    size_t width = 0;
    for (size_t i = 0; i < text.len; i++)
        width += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return width;
}

void table_add(struct text_table *table, struct str cell)
{
    CHECK(table->columns && table->columns <= TABLE_COLUMNS_MAX);
    size_t column = table->cells.len % table->columns;
    char *text = arena_strdup(&table->arena, cell);
    for (size_t i = 0; i < cell.len; i++) /* a row is one line, so cells contain no line breaks */
        text[i] = text[i] == '\n' || text[i] == '\t' || text[i] == '\r' ? ' ' : text[i];
    size_t width = shown_width(cell);
    if (width > table->width[column])
        table->width[column] = width;
    vec_push(&table->cells, ((struct str){text, cell.len}));
}

void table_heads(struct text_table *table, const char *const *names)
{
    for (size_t i = 0; i < table->columns; i++)
        table_add(table, str_from(names[i]));
}

void put_wrapped(struct buf *out, struct str text, size_t width, size_t at, size_t indent)
{
    size_t column = at;
    bool begun = false;
    while ((text = str_trim(text)).len) {
        struct str word = text, rest = {0};
        if (!str_cut(text, ' ', &word, &rest))
            word = text;
        size_t need = shown_width(word);
        if (begun && column + 1 + need > width) {
            buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (begun) {
            buf_add_char(out, ' ');
            column++;
        }
        buf_add_str(out, word);
        begun = true;
        column += need;
        text = rest;
    }
}

enum { TABLE_GAP = 3 };

static size_t table_width(const struct text_table *table)
{
    size_t width = 0;
    for (size_t i = 0; i < table->columns; i++)
        width += table->hidden[i] ? 0 : table->width[i] + TABLE_GAP;
    return width ? width - TABLE_GAP : 0;
}

void table_fit(struct text_table *table, size_t width, struct buf *ret_hidden)
{
    while (table_width(table) > width) {
        size_t least = table->columns;
        for (size_t i = 0; i < table->columns; i++)
            if (!table->hidden[i] && table->worth[i] &&
                (least == table->columns || table->worth[i] >= table->worth[least]))
                least = i;
        if (least == table->columns)
            return;
        table->hidden[least] = true;
    }
    for (size_t i = 0; i < table->columns && table->cells.len >= table->columns; i++)
        if (table->hidden[i] && table->worth[i])
            buf_printf(ret_hidden, "%s" STR_FORMAT, ret_hidden->len ? ", " : "",
                       STR_ARG(table->cells.items[i]));
}

void table_print(struct text_table *table, struct buf *out, bool color)
{
    size_t last = 0;
    for (size_t i = 0; i < table->columns; i++)
        if (!table->hidden[i])
            last = i;
    for (size_t i = 0; i < table->cells.len; i++) {
        size_t column = i % table->columns;
        struct str cell = table->cells.items[i];
        if (!table->hidden[column]) {
            const char *start = color && i >= table->columns ? color_of(cell) : "";
            buf_printf(out, "%s" STR_FORMAT "%s", start, STR_ARG(cell), *start ? color_end() : "");
            size_t pad = column == last ? 0 : table->width[column] - shown_width(cell) + TABLE_GAP;
            buf_printf(out, "%*s", (int)pad, "");
        }
        if (column + 1 == table->columns)
            buf_add_char(out, '\n');
    }
    vec_clear(&table->cells);
    arena_done(&table->arena);
}

void table_done(struct text_table *table)
{
    vec_done(&table->cells);
    arena_done(&table->arena);
}
