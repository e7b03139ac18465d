#include "cmd/progress.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_MIN = 8, BAR_MAX = 32, NAME_CELLS_MIN = 5, NAME_CELLS_MAX = 24, FACTS_COLUMNS = 62 };
#define REDRAW_NS (80 * NS_PER_MS)
#define PLAIN_NS  NS_PER_SECOND

void progress_begin(struct progress_view *view)
{
    *view = (struct progress_view){0};
    setlocale(LC_CTYPE, "");
    view->terminal = output_is_terminal();
    view->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    view->color = output_colors();
}

static struct progress_row *row_of(struct progress_view *view, struct str namespace_, struct str name)
{
    struct str key =
        arena_printf(&view->arena, STR_FORMAT "/" STR_FORMAT, STR_ARG(namespace_), STR_ARG(name));
    for (size_t i = 0; i < view->rows.len; i++)
        if (str_equal(view->rows.items[i]->key, key))
            return view->rows.items[i];
    struct progress_row *row = ARENA_NEW(&view->arena, struct progress_row);
    row->key = key;
    row->name = arena_str(&view->arena, name);
    row->step = row->checkpoint = row->ettr_ppm = -1;
    vec_push(&view->rows, row);
    return row;
}

static void take_metrics(struct progress_row *row, const struct doc *metrics)
{
    buf_clear(&row->metrics);
    for (size_t i = 0; metrics && metrics->kind == DOC_OBJECT && i < metrics->object.len && i < 3; i++)
        buf_printf(&row->metrics, "%s" STR_FORMAT " %.4f", i ? "  " : "",
                   STR_ARG(metrics->object.members[i].key), doc_real(metrics->object.members[i].value, 0));
}

/* "restart 1: machine m-3 was lost at step 420; went on from step 400" */
static void take_restart(struct progress_row *row, const struct doc *restarts)
{
    const struct doc *newest = doc_at(restarts, doc_len(restarts) ? doc_len(restarts) - 1 : 0);
    int64_t fault_ns, then_ns;
    buf_clear(&row->last_event);
    if (!newest)
        return;
    struct str machine = doc_text(newest, "machine"), detail = doc_text(newest, "detail");
    buf_printf(&row->last_event, "restart %lld: " STR_FORMAT, (long long)doc_number(newest, "attempt", 0),
               STR_ARG(doc_text(newest, "cause")));
    if (machine.len)
        buf_printf(&row->last_event, " on " STR_FORMAT, STR_ARG(machine));
    if (detail.len)
        buf_printf(&row->last_event, " (" STR_FORMAT ")", STR_ARG(detail));
    if (doc_number(newest, "stepAtFault", -1) >= 0)
        buf_printf(&row->last_event, " at step %lld", (long long)doc_number(newest, "stepAtFault", -1));
    if (doc_number(newest, "resumedFrom", -1) >= 0)
        buf_printf(&row->last_event, ", resumes from step %lld",
                   (long long)doc_number(newest, "resumedFrom", -1));
    else
        buf_add_str(&row->last_event, STR(", begins again"));
    if (time_parse(doc_text(newest, "faultTime"), &fault_ns) &&
        time_parse(doc_text(newest, "steppedTime"), &then_ns)) {
        char text[24];
        duration_format(then_ns - fault_ns, text);
        buf_printf(&row->last_event, ", next step after %s", text);
    }
}

void progress_take(struct progress_view *view, const struct doc *jobset, bool gone)
{
    const struct doc *phalanx = doc_dotted(jobset, "status.phalanx");
    struct str terminal = doc_text(jobset, "status.terminalState");
    struct progress_row *row =
        row_of(view, doc_text(jobset, "metadata.namespace"), doc_text(jobset, "metadata.name"));
    struct str state = gone ? STR("Deleted") : terminal.len ? terminal : doc_text(phalanx, "state");
    if (!str_equal(row->state, state))
        row->state = arena_str(&view->arena, state);
    row->step = doc_number(phalanx, "step", -1);
    row->total = doc_number(phalanx, "totalSteps", 0);
    row->attempt = doc_number(phalanx, "attempt", 0);
    row->restarts = row->attempt; /* in place too */
    row->checkpoint = doc_number(phalanx, "checkpointStep", -1);
    row->ettr_ppm = doc_number(phalanx, "ledger.ettrPpm", -1);
    row->rate = doc_real(doc_dotted(phalanx, "stepsPerSecond"), 0);
    row->gone = gone;
    row->finished = gone || terminal.len > 0;
    row->failed = str_is(terminal, "Failed") || (gone && terminal.len == 0);
    take_metrics(row, doc_get(phalanx, "metrics"));
    buf_clear(&row->why);
    buf_add_str(&row->why, doc_text(phalanx, "why"));
    take_restart(row, doc_get(phalanx, "restarts"));
}

/* --- lines ------------------------------------------------------------------------------------- */

static void add_bar(struct buf *out, const struct progress_view *view, const struct progress_row *row,
                    int width)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int64_t step = row->step < 0 ? 0 : row->step > row->total ? row->total : row->step;
    int64_t parts = row->total > 0 ? step * width * 8 / row->total : 0;
    int cells = 0;
    buf_add_char(out, '[');
    for (; cells < parts / 8; cells++)
        buf_add_str(out, view->utf8 ? STR("█") : STR("#"));
    if (view->utf8 && parts % 8 && cells < width) {
        buf_add_str(out, str_from(eighths[parts % 8]));
        cells++;
    }
    buf_printf(out, "%*s]", width - cells, "");
}

static void add_facts(struct buf *out, const struct progress_row *row)
{
    if (row->step >= 0 && row->total > 0)
        buf_printf(out, "  step %lld/%lld", (long long)row->step, (long long)row->total);
    else if (row->step >= 0)
        buf_printf(out, "  step %lld", (long long)row->step);
    if (row->metrics.len)
        buf_printf(out, "  " STR_FORMAT, STR_ARG(buf_str(&row->metrics)));
    if (row->rate > 0 && !row->finished)
        buf_printf(out, "  %.1f steps/s", row->rate);
    buf_printf(out, "  attempt %lld", (long long)row->attempt);
    if (row->checkpoint >= 0)
        buf_printf(out, "  checkpoint %lld", (long long)row->checkpoint);
    if (row->finished && row->ettr_ppm >= 0)
        buf_printf(out, "  ETTR %.1f %%", (double)row->ettr_ppm / 10000);
}

static int columns(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

/* Cuts to the width of the screen, so that a line never wraps; escapes take no room. */
static void add_cut(struct buf *out, struct str line, int width)
{
    bool escape = false;
    for (size_t i = 0; i < line.len;) {
        size_t len = str_utf8_len(line.data + i, line.len - i);
        len = len ? len : 1;
        if (line.data[i] == '\033')
            escape = true;
        if (escape || width > 0)
            buf_add(out, line.data + i, len);
        if (!escape)
            width--;
        else if (line.data[i] == 'm')
            escape = false;
        i += len;
    }
}

static int clamp(int value, int min, int max)
{
    return value < min ? min : value > max ? max : value;
}

static void draw_row(struct buf *out, const struct progress_view *view, const struct progress_row *row)
{
    struct buf line BUF_CLEANUP = {0};
    const char *color = view->color ? color_of(row->state) : "";
    int screen = columns(), name = NAME_CELLS_MIN;
    for (size_t i = 0; i < view->rows.len; i++)
        name = clamp((int)view->rows.items[i]->name.len, name, NAME_CELLS_MAX);
    buf_printf(&line, "%-*.*s ", name, clamp((int)row->name.len, 0, name), row->name.data);
    add_bar(&line, view, row, clamp(screen - name - FACTS_COLUMNS, BAR_MIN, BAR_MAX));
    if (row->total > 0 && row->step >= 0)
        buf_printf(&line, " %3d%%", (int)(row->step * 100 / row->total));
    else
        buf_add_str(&line, STR("     "));
    buf_printf(&line, "  %s" STR_FORMAT "%s", color, STR_ARG(row->state), *color ? color_end() : "");
    add_facts(&line, row);
    if (row->why.len && !row->finished)
        buf_printf(&line, "  " STR_FORMAT, STR_ARG(buf_str(&row->why)));
    add_cut(out, buf_str(&line), screen - 1);
}

/* News above the live block: a restart that is told once. */
static void add_news(struct buf *out, struct progress_row *row)
{
    if (row->restarts > row->restarts_shown && row->last_event.len) {
        buf_printf(out, "\033[2K" STR_FORMAT ": " STR_FORMAT "\n", STR_ARG(row->name),
                   STR_ARG(buf_str(&row->last_event)));
        row->restarts_shown = row->restarts;
    }
}

static void draw_live(struct progress_view *view, bool last)
{
    struct buf out BUF_CLEANUP = {0};
    int64_t now_ns = client_clock();
    if (!last && now_ns - view->drawn_ns < REDRAW_NS)
        return;
    view->drawn_ns = now_ns;
    if (view->lines_shown)
        buf_printf(&out, "\033[%zuA\r", view->lines_shown);
    for (size_t i = 0; i < view->rows.len; i++)
        add_news(&out, view->rows.items[i]);
    for (size_t i = 0; i < view->rows.len; i++) {
        buf_add_str(&out, STR("\033[2K"));
        draw_row(&out, view, view->rows.items[i]);
        buf_add_char(&out, '\n');
    }
    view->lines_shown = view->rows.len;
    output_write(&out);
}

static void draw_plain(struct progress_view *view, bool last)
{
    int64_t now_ns = client_clock();
    for (size_t i = 0; i < view->rows.len; i++) {
        struct progress_row *row = view->rows.items[i];
        struct buf line BUF_CLEANUP = {0};
        if (row->restarts > row->restarts_shown && row->last_event.len) {
            printf(STR_FORMAT ": " STR_FORMAT "\n", STR_ARG(row->name), STR_ARG(buf_str(&row->last_event)));
            row->restarts_shown = row->restarts;
        }
        buf_printf(&line, STR_FORMAT ": " STR_FORMAT, STR_ARG(row->name), STR_ARG(row->state));
        size_t state_len = line.len;
        add_facts(&line, row);
        if (row->why.len && !row->finished)
            buf_printf(&line, "  " STR_FORMAT, STR_ARG(buf_str(&row->why)));
        bool same = str_equal(buf_str(&line), buf_str(&row->printed));
        bool news = row->printed.len < state_len || memcmp(row->printed.data, line.data, state_len) != 0;
        if (same || (!news && !last && now_ns - row->printed_ns < PLAIN_NS))
            continue;
        printf(STR_FORMAT "\n", STR_ARG(buf_str(&line)));
        buf_clear(&row->printed);
        buf_add_str(&row->printed, buf_str(&line));
        row->printed_ns = now_ns;
    }
    fflush(stdout);
}

void progress_draw(struct progress_view *view, bool last)
{
    if (view->terminal)
        draw_live(view, last);
    else
        draw_plain(view, last);
}

void progress_done(struct progress_view *view)
{
    for (size_t i = 0; i < view->rows.len; i++) {
        struct progress_row *row = view->rows.items[i];
        buf_done(&row->metrics);
        buf_done(&row->why);
        buf_done(&row->last_event);
        buf_done(&row->printed);
    }
    vec_done(&view->rows);
    arena_done(&view->arena);
}
