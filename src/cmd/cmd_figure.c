/* phalanx figure: reproduces figures of published papers from the models, as table, CSV and SVG. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/client.h"
#include "cmd/picture.h"
#include "cmd/usage.h"
#include "os/file.h"
#include "sim/figure/papers.h"

enum { TRACE_BYTES_MAX = 1 << 30, TRACE_MACHINES = 400, TRACE_MACHINES_MAX = 1000000, WIDTH_MAX = 100 };

static const char usage[] =
    "Usage: phalanx figure NAME [OPTIONS]\n"
    "       phalanx figure all --to DIR [--trace FILE]\n"
    "\n"
    "Draws a figure of a published paper from the models, and prints its numbers with those that the\n"
    "paper quotes (docs/models.md shows all). Without a NAME lists the figures.\n"
    "  --csv FILE           writes the numbers\n"
    "  --svg FILE           draws the figure\n"
    "  --to DIR             writes DIR/NAME.csv and DIR/NAME.svg; `all`: of every figure\n"
    "  --trace FILE         a history of faults, as fault_trace.json of InfiniteHBD-Trace; of trace\n"
    "  --trace-machines N   machines of that cluster, faulty or not (400)\n"
    "  --seed N             of what is drawn by chance (1)\n"
    "  -o, --output FORMAT  text (default) or json\n"
    "  -h, --help           this text\n"
    "\n"
    "Examples:\n"
    "  phalanx figure mttf\n"
    "  phalanx figure contour --svg contour.svg --csv contour.csv\n"
    "  phalanx figure all --to figures --trace fault_trace.json\n"
    "\n"
    "Exit status: 0 done, 1 a file cannot be read or written, 2 wrong usage.\n";

struct figure_asked {
    const char *csv, *svg, *to, *trace;
    int64_t machines, seed;
    bool json;
};

/* --- printed output ------------------------------------------------------------------------------------- */

static void put_figure_text(const struct figure *figure, struct buf *out)
{
    struct text_table table = {.columns = figure->column_count};
    buf_printf(out, "%s\n\n", figure->title);
    for (uint32_t column = 0; column < figure->column_count; column++)
        table_add(&table, figure->columns[column].name);
    for (uint32_t row = 0; row < figure_rows(figure); row++)
        for (uint32_t column = 0; column < figure->column_count; column++) {
            struct buf BUF_CLEANUP cell = {0};
            figure_cell_text(figure, row, column, &cell);
            table_add(&table, buf_str(&cell));
        }
    table_print(&table, out, false);
    buf_add_char(out, '\n');
    for (uint32_t i = 0; i < figure->note_count; i++) {
        put_wrapped(out, figure->notes[i], WIDTH_MAX, 0, 0);
        buf_add_char(out, '\n');
    }
}

static void put_figure_json(const struct figure *figure, struct buf *out)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_pair_text(&writer, "name", figure->name);
    json_pair_text(&writer, "title", figure->title);
    json_key(&writer, "rows");
    json_begin_array(&writer);
    for (uint32_t row = 0; row < figure_rows(figure); row++) {
        json_begin_object(&writer);
        for (uint32_t column = 0; column < figure->column_count; column++) {
            const struct figure_cell *cell = figure_at(figure, row, column);
            if (!cell->word.len && !isfinite(cell->value))
                continue;
            json_key_str(&writer, figure->columns[column].name);
            if (cell->word.len)
                json_put_str(&writer, cell->word);
            else
                json_put_float(&writer, cell->value);
        }
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_key(&writer, "notes");
    json_begin_array(&writer);
    for (uint32_t i = 0; i < figure->note_count; i++)
        json_put_str(&writer, figure->notes[i]);
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

/* --- files ---------------------------------------------------------------------------------------------- */

static int write_csv(const struct figure *figure, const char *path, const char *option)
{
    struct buf BUF_CLEANUP text = {0};
    figure_csv(figure, &text);
    return picture_write(path, option, &text);
}

static int write_svg(const struct figure *figure, const char *path, const char *option)
{
    struct buf BUF_CLEANUP text = {0};
    figure_svg(figure, &text);
    return picture_write(path, option, &text);
}

static int write_to(const struct figure *figure, const char *folder)
{
    struct buf BUF_CLEANUP path = {0};
    buf_printf(&path, "%s/%s.csv", folder, figure->name);
    int status = write_csv(figure, path.data, "--to");
    buf_clear(&path);
    buf_printf(&path, "%s/%s.svg", folder, figure->name);
    return status == EXIT_OK ? write_svg(figure, path.data, "--to") : status;
}

static int write_files(const struct figure_asked *asked, const struct figure *figure)
{
    int status = EXIT_OK;
    if (asked->csv)
        status = write_csv(figure, asked->csv, "--csv");
    if (asked->svg && status == EXIT_OK)
        status = write_svg(figure, asked->svg, "--svg");
    if (asked->to && status == EXIT_OK)
        status = write_to(figure, asked->to);
    return status;
}

/* --- the history of faults ------------------------------------------------------------------------------ */

static int trace_read(const struct figure_asked *asked, struct arena *arena, struct fault_trace *ret_trace)
{
    struct buf BUF_CLEANUP text = {0};
    struct error error = {0};
    struct doc *events;
    if (os_file_read(asked->trace, TRACE_BYTES_MAX, &text, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    if (json_parse(arena, buf_str(&text), &events, &error) < 0 ||
        fault_trace_read(arena, events, ret_trace, &error) < 0) {
        say("%s:%s", asked->trace, error.text);
        return EXIT_FAILED;
    }
    if (ret_trace->count == 0 || ret_trace->machines > asked->machines) {
        say("%s: %u machines have faults, and --trace-machines is %lld", asked->trace, ret_trace->machines,
            (long long)asked->machines);
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

/* --- the command ---------------------------------------------------------------------------------------- */

static int list_figures(void)
{
    uint32_t count;
    const struct paper_figure *papers = papers_all(&count);
    for (uint32_t i = 0; i < count; i++)
        printf("%-14s %s\n", papers[i].name, papers[i].brief);
    return EXIT_OK;
}

static int draw_one(const struct figure_asked *asked, const struct paper_figure *paper,
                    const struct papers_input *input)
{
    struct figure figure;
    struct buf BUF_CLEANUP out = {0};
    papers_build(paper, input, &figure);
    if (asked->json)
        put_figure_json(&figure, &out);
    else
        put_figure_text(&figure, &out);
    output_write(&out);
    int status = write_files(asked, &figure);
    figure_done(&figure);
    return status;
}

static int draw_all(const struct figure_asked *asked, const struct papers_input *input)
{
    uint32_t count;
    const struct paper_figure *papers = papers_all(&count);
    for (uint32_t i = 0; i < count; i++) {
        struct figure figure;
        if (papers[i].needs_trace && !input->trace) {
            printf("%-14s skipped: it needs a history of faults (--trace FILE)\n", papers[i].name);
            continue;
        }
        papers_build(&papers[i], input, &figure);
        int status = write_files(asked, &figure);
        if (status == EXIT_OK)
            printf("%-14s %s/%s.svg and .csv\n", papers[i].name, asked->to, papers[i].name);
        figure_done(&figure);
        if (status != EXIT_OK)
            return status;
    }
    return EXIT_OK;
}

static const struct paper_figure *paper_named(const char *name)
{
    const char *names[32];
    uint32_t count;
    const struct paper_figure *papers = papers_all(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(papers[i].name, name) == 0)
            return &papers[i];
        names[i] = papers[i].name;
    }
    usage_unknown("figure", str_from(name), names, count);
    return NULL;
}

static int figure_run(const struct figure_asked *asked, const char *name)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct fault_trace trace;
    struct papers_input input = {.trace_machines = (uint32_t)asked->machines, .seed = (uint64_t)asked->seed};
    bool all = strcmp(name, "all") == 0;
    const struct paper_figure *paper = all ? NULL : paper_named(name);
    if (!all && !paper)
        return usage_wrong(usage, NULL);
    if (all && (!asked->to || asked->csv || asked->svg || asked->json))
        return usage_wrong(usage, "all takes --to DIR, and no --csv, --svg or -o");
    if (!all && paper->needs_trace && !asked->trace)
        return usage_wrong(usage, "%s needs --trace FILE, a history of faults", name);
    if (asked->to && mkdir(asked->to, 0777) < 0 && errno != EEXIST) {
        say("--to %s: %m", asked->to);
        return EXIT_FAILED;
    }
    if (asked->trace && (all || paper->needs_trace)) {
        int status = trace_read(asked, &arena, &trace);
        if (status != EXIT_OK)
            return status;
        input.trace = &trace;
    }
    return all ? draw_all(asked, &input) : draw_one(asked, paper, &input);
}

int cmd_figure(int argc, char **argv)
{
    static const struct option options[] = {{"csv", required_argument, NULL, 'c'},
                                            {"svg", required_argument, NULL, 'g'},
                                            {"to", required_argument, NULL, 't'},
                                            {"trace", required_argument, NULL, 'f'},
                                            {"trace-machines", required_argument, NULL, 'm'},
                                            {"seed", required_argument, NULL, 'd'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct figure_asked asked = {.machines = TRACE_MACHINES, .seed = 1};
    bool good = true;
    for (int letter; (letter = usage_option(argc, argv, "ho:", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (letter == 'c' || letter == 'g' || letter == 't' || letter == 'f')
            *(letter == 'c'   ? &asked.csv
              : letter == 'g' ? &asked.svg
              : letter == 't' ? &asked.to
                              : &asked.trace) = optarg;
        else if (letter == 'o')
            good = usage_json(optarg, &asked.json) && good;
        else
            good = usage_value(letter == 'm'
                                   ? str_to_i64(str_from(optarg), 1, TRACE_MACHINES_MAX, &asked.machines)
                               : letter == 'd' ? str_to_i64(str_from(optarg), 0, INT64_MAX, &asked.seed)
                                               : false) &&
                   good;
    }
    if (!good)
        return usage_wrong(usage, NULL);
    if (optind == argc)
        return list_figures();
    if (optind + 1 < argc)
        return usage_wrong(usage, "unexpected argument \"%s\"", argv[optind + 1]);
    return figure_run(&asked, argv[optind]);
}
