#include "cmd/progress.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>

#include "cmd/cause.h"

enum { BAR_MIN = 8, BAR_MAX = 32, NAME_CELLS_MIN = 5, NAME_CELLS_MAX = 24, FACT_BYTES = 160 };
#define REDRAW_NS (80 * NS_PER_MS)
#define PLAIN_NS  NS_PER_SECOND

void progress_begin(struct progress_view *view, bool json)
{
    *view = (struct progress_view){.json = json};
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
    row->namespace_ = arena_str(&view->arena, namespace_);
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

/* Formats the known facts of the newest restart: "restart 1: MachineLost on m-3 at step 420, resumed from
 * step 400, next step after 98 ms". */
static void take_restart(struct progress_row *row, const struct doc *restarts)
{
    const struct doc *newest = doc_at(restarts, doc_len(restarts) ? doc_len(restarts) - 1 : 0);
    int64_t fault_ns, then_ns;
    buf_clear(&row->last_event);
    row->resumed = false;
    if (!newest)
        return;
    struct str machine = doc_text(newest, "machine"), detail = doc_text(newest, "detail");
    buf_printf(&row->last_event, "restart %lld: " STR_FORMAT, (long long)doc_number(newest, "number", 0),
               STR_ARG(doc_text(newest, "cause")));
    if (machine.len)
        buf_printf(&row->last_event, " on " STR_FORMAT, STR_ARG(machine));
    if (detail.len)
        buf_printf(&row->last_event, " (" STR_FORMAT ")", STR_ARG(detail));
    if (doc_number(newest, "stepAtFault", -1) >= 0)
        buf_printf(&row->last_event, " at step %lld", (long long)doc_number(newest, "stepAtFault", -1));
    row->resumed = doc_get(newest, "steppedTime") != NULL;
    if (row->resumed && doc_number(newest, "resumedFrom", -1) >= 0)
        buf_printf(&row->last_event, ", resumed from step %lld",
                   (long long)doc_number(newest, "resumedFrom", -1));
    else if (row->resumed)
        buf_add_str(&row->last_event, STR(", began again"));
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
    row->restarts = doc_number(phalanx, "restartCount", 0);
    row->checkpoint = doc_number(phalanx, "checkpointStep", -1);
    row->ettr_ppm = doc_number(phalanx, "ledger.ettrPpm", -1);
    row->rate = doc_real(doc_dotted(phalanx, "stepsPerSecond"), 0);
    if (!time_parse(doc_text(jobset, "metadata.creationTimestamp"), &row->created_ns))
        row->created_ns = 0;
    if (!time_parse(doc_text(phalanx, "finishedTime"), &row->finished_ns))
        row->finished_ns = 0;
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

/* Returns the remaining time in seconds; -1 if it is not known. */
static int64_t eta_of(const struct progress_row *row)
{
    if (row->finished || row->rate <= 0 || row->step < 0 || row->total <= 0)
        return -1;
    return row->total > row->step ? (int64_t)((double)(row->total - row->step) / row->rate + 0.5) : 0;
}

static int64_t elapsed_of(const struct progress_row *row)
{
    int64_t end_ns = row->finished_ns ? row->finished_ns : client_wall();
    return row->created_ns == 0       ? -1
           : end_ns > row->created_ns ? (end_ns - row->created_ns) / NS_PER_SECOND
                                      : 0;
}

/* In the order in which they are shown. */
enum fact {
    FACT_STEP,
    FACT_RATE,
    FACT_ETA,
    FACT_ELAPSED,
    FACT_METRICS,
    FACT_ATTEMPT,
    FACT_CHECKPOINT,
    FACT_ETTR,
    FACTS
};
/* The order in which facts are left out when the line is too narrow. */
static const enum fact least_first[] = {FACT_CHECKPOINT, FACT_ATTEMPT, FACT_METRICS, FACT_RATE,
                                        FACT_ELAPSED,    FACT_ETTR,    FACT_ETA};
enum { FACTS_OPTIONAL = sizeof least_first / sizeof *least_first };

struct facts {
    char text[FACTS][FACT_BYTES]; /* empty: not known, or left out */
};

static void take_seconds(char *text, const char *name, int64_t seconds)
{
    char age[24];
    if (seconds < 0)
        return;
    age_format(seconds * NS_PER_SECOND, age);
    snprintf(text, FACT_BYTES, "%s %s", name, age);
}

static void take_facts(struct facts *facts, const struct progress_row *row)
{
    *facts = (struct facts){0};
    if (row->step >= 0 && row->total > 0)
        snprintf(facts->text[FACT_STEP], FACT_BYTES, "step %lld/%lld", (long long)row->step,
                 (long long)row->total);
    else if (row->step >= 0)
        snprintf(facts->text[FACT_STEP], FACT_BYTES, "step %lld", (long long)row->step);
    if (row->rate > 0 && !row->finished)
        snprintf(facts->text[FACT_RATE], FACT_BYTES, "%.1f steps/s", row->rate);
    take_seconds(facts->text[FACT_ETA], "ETA", eta_of(row));
    take_seconds(facts->text[FACT_ELAPSED], row->finished ? "after" : "elapsed", elapsed_of(row));
    snprintf(facts->text[FACT_METRICS], FACT_BYTES, STR_FORMAT, STR_ARG(buf_str(&row->metrics)));
    snprintf(facts->text[FACT_ATTEMPT], FACT_BYTES, "attempt %lld", (long long)row->attempt);
    if (row->checkpoint >= 0)
        snprintf(facts->text[FACT_CHECKPOINT], FACT_BYTES, "checkpoint %lld", (long long)row->checkpoint);
    if (row->finished && row->ettr_ppm >= 0)
        snprintf(facts->text[FACT_ETTR], FACT_BYTES, "ETTR %.1f %%", (double)row->ettr_ppm / 10000);
}

static size_t facts_width(const struct facts *facts)
{
    size_t width = 0;
    for (int i = 0; i < FACTS; i++)
        width += *facts->text[i] ? strlen(facts->text[i]) + 2 : 0;
    return width;
}

static void add_facts(struct buf *out, const struct facts *facts)
{
    for (int i = 0; i < FACTS; i++)
        if (*facts->text[i])
            buf_printf(out, "  %s", facts->text[i]);
}

static int clamp(int value, int min, int max)
{
    return value < min ? min : value > max ? max : value;
}

static void draw_row(struct buf *out, const struct progress_view *view, const struct progress_row *row,
                     int screen)
{
    struct facts facts;
    const char *color = view->color ? color_of(row->state) : "";
    int name = NAME_CELLS_MIN;
    for (size_t i = 0; i < view->rows.len; i++)
        name = clamp((int)view->rows.items[i]->name.len, name, NAME_CELLS_MAX);
    /* "NAME [BAR]  42%  STATE" and facts */
    int others = name + 3 + 5 + 2 + (int)row->state.len, dropped = 0;
    take_facts(&facts, row);
    while (others + BAR_MIN + (int)facts_width(&facts) > screen - 1 && dropped < FACTS_OPTIONAL)
        *facts.text[least_first[dropped++]] = 0;
    buf_printf(out, "%-*.*s ", name, clamp((int)row->name.len, 0, name), row->name.data);
    add_bar(out, view, row, clamp(screen - 1 - others - (int)facts_width(&facts), BAR_MIN, BAR_MAX));
    if (row->total > 0 && row->step >= 0)
        buf_printf(out, " %3d%%", (int)(row->step * 100 / row->total));
    else
        buf_add_str(out, STR("     "));
    buf_printf(out, "  %s" STR_FORMAT "%s", color, STR_ARG(row->state), *color ? color_end() : "");
    add_facts(out, &facts);
    buf_add_char(out, '\n');
    if (row->why.len && !row->finished) {
        buf_add_str(out, STR("  waits: "));
        put_wrapped(out, buf_str(&row->why), (size_t)screen - 1, 9, 9);
        buf_add_char(out, '\n');
    }
}

/* Returns true if the newest restart must be printed: once, and again when the step that it resumed from is
 * known. */
static bool has_news(const struct progress_row *row)
{
    return row->last_event.len > 0 &&
           (row->restarts > row->restarts_shown || (row->resumed && !row->resumed_shown));
}

/* Prints news above the live block. */
static void add_news(struct buf *out, struct progress_row *row, int screen)
{
    if (!has_news(row))
        return;
    buf_printf(out, STR_FORMAT ": ", STR_ARG(row->name));
    put_wrapped(out, buf_str(&row->last_event), (size_t)screen, row->name.len + 2, 4);
    buf_add_char(out, '\n');
    row->restarts_shown = row->restarts;
    row->resumed_shown = row->resumed;
}

static void draw_live(struct progress_view *view, bool last)
{
    struct buf out BUF_CLEANUP = {0}, block BUF_CLEANUP = {0};
    int64_t now_ns = client_clock();
    int columns, lines;
    if (!last && now_ns - view->drawn_ns < REDRAW_NS)
        return;
    view->drawn_ns = now_ns;
    output_size(&columns, &lines);
    if (view->lines_shown)
        printf("\033[%zuA", view->lines_shown);
    fputs("\r\033[J", stdout);
    for (size_t i = 0; i < view->rows.len; i++)
        add_news(&out, view->rows.items[i], columns);
    for (size_t i = 0; i < view->rows.len; i++)
        draw_row(&block, view, view->rows.items[i], columns);
    view->lines_shown = 0;
    for (size_t i = 0; i < block.len; i++)
        view->lines_shown += block.data[i] == '\n';
    buf_add_str(&out, buf_str(&block));
    output_write(&out);
}

/* Writes the row without the time, which always changes. */
static void put_json(struct buf *out, const struct progress_row *row)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_pair_str(&writer, "namespace", row->namespace_);
    json_pair_str(&writer, "name", row->name);
    json_pair_str(&writer, "state", row->state);
    json_pair_int(&writer, "attempt", row->attempt);
    if (row->step >= 0)
        json_pair_int(&writer, "step", row->step);
    if (row->total > 0)
        json_pair_int(&writer, "totalSteps", row->total);
    if (row->rate > 0 && !row->finished) {
        json_key(&writer, "stepsPerSecond");
        json_put_fixed(&writer, (int64_t)(row->rate * 1000), 3);
    }
    if (eta_of(row) >= 0)
        json_pair_int(&writer, "etaSeconds", eta_of(row));
    if (elapsed_of(row) >= 0)
        json_pair_int(&writer, "elapsedSeconds", elapsed_of(row));
    if (row->checkpoint >= 0)
        json_pair_int(&writer, "checkpointStep", row->checkpoint);
    if (row->ettr_ppm >= 0) {
        json_key(&writer, "ettr");
        json_put_fixed(&writer, row->ettr_ppm, 6);
    }
    if (row->why.len && !row->finished)
        json_pair_str(&writer, "why", buf_str(&row->why));
    json_pair_int(&writer, "restarts", row->restarts);
    if (row->restarts)
        json_pair_str(&writer, "newestRestart", buf_str(&row->last_event));
    json_end_object(&writer);
}

static void put_line(struct buf *out, const struct progress_row *row)
{
    struct facts facts;
    take_facts(&facts, row);
    buf_printf(out, STR_FORMAT ": " STR_FORMAT, STR_ARG(row->name), STR_ARG(row->state));
    add_facts(out, &facts);
    if (row->why.len && !row->finished)
        buf_printf(out, "  waits: " STR_FORMAT, STR_ARG(buf_str(&row->why)));
}

static void draw_plain(struct progress_view *view, bool last)
{
    int64_t now_ns = client_clock();
    for (size_t i = 0; i < view->rows.len; i++) {
        struct progress_row *row = view->rows.items[i];
        struct buf line BUF_CLEANUP = {0};
        if (has_news(row)) {
            if (!view->json) {
                buf_printf(&line, STR_FORMAT ": " STR_FORMAT "\n", STR_ARG(row->name),
                           STR_ARG(buf_str(&row->last_event)));
                output_write(&line);
            }
            row->restarts_shown = row->restarts;
            row->resumed_shown = row->resumed;
        }
        if (view->json)
            put_json(&line, row);
        else
            put_line(&line, row);
        bool same = str_equal(buf_str(&line), buf_str(&row->printed));
        bool news = !str_equal(row->state, row->printed_state);
        if (same || (!news && !last && now_ns - row->printed_ns < PLAIN_NS))
            continue;
        buf_clear(&row->printed);
        buf_add_str(&row->printed, buf_str(&line));
        buf_add_char(&line, '\n');
        if (view->json)
            output_escape(&line);
        output_write(&line);
        row->printed_state = row->state;
        row->printed_ns = now_ns;
    }
}

void progress_failure(struct progress_view *view, const struct doc *jobset)
{
    struct buf why BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
    struct str name = doc_text(jobset, "metadata.name");
    int columns, lines;
    put_failure(&why, jobset);
    if (!why.len)
        return;
    output_size(&columns, &lines);
    if (view->json) {
        struct json_writer writer = {.out = &out};
        json_begin_object(&writer);
        json_pair_str(&writer, "namespace", doc_text(jobset, "metadata.namespace"));
        json_pair_str(&writer, "name", name);
        json_pair_text(&writer, "state", "Failed");
        json_pair_str(&writer, "failure", buf_str(&why));
        json_end_object(&writer);
    } else {
        buf_printf(&out, STR_FORMAT ": failed: ", STR_ARG(name));
        put_wrapped(&out, buf_str(&why), (size_t)columns, name.len + 10, 4);
    }
    buf_add_char(&out, '\n');
    if (view->json)
        output_escape(&out);
    output_write(&out);
}

void progress_draw(struct progress_view *view, bool last)
{
    if (view->terminal && !view->json)
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
