/* phalanx trace: extracts the external events of a cluster to a file that `phalanx sim` plays
 * (docs/replay.md). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cmd/client.h"
#include "cmd/cluster_file.h"
#include "cmd/cmd.h"
#include "cmd/log_place.h"
#include "cmd/log_walk.h"
#include "cmd/usage.h"
#include "doc/json.h"
#include "sim/replay/extract.h"

static const char usage[] =
    "Usage: phalanx trace extract [OPTIONS] DIR|FILE|--etcd URL[,URL...]\n"
    "       phalanx trace anonymise TRACE\n"
    "       phalanx trace show [-o json] TRACE\n"
    "\n"
    "A trace has what came to a cluster from outside: its machines, their outages and faults, its jobs\n"
    "with their shapes, run times and crashes. It has no decision of the controller, so that\n"
    "`phalanx sim TRACE` can play it under another policy. docs/replay.md explains it, and\n"
    "docs/formats/trace.md has the format.\n"
    "  extract    take it out of a controller's log, named by its data directory or its log.db, also\n"
    "             while the controller runs; prints it\n"
    "  anonymise  replace the names of machines, racks, jobs and queues, the same name by the same one,\n"
    "             and the date; times and shapes stay; prints it (TRACE \"-\": standard input)\n"
    "  show       print what it has, in numbers\n"
    "\n"
    "Options:\n"
    "  --until T     extract: up to this record, or this time (2026-03-01T12:00:00Z)\n"
    "  -o json       show: one JSON object; times are seconds\n" LOG_PLACE_HELP "  --help        this text\n"
    "\n"
    "Exit status: 0 done, 1 the log or the trace cannot be read, 2 wrong usage, 3 no such log.\n";

static const char *const trace_actions[] = {"extract", "anonymise", "show"};
enum { TRACE_ACTIONS = sizeof trace_actions / sizeof *trace_actions };

struct trace_order {
    const char *action, *path;
    struct log_place place;
    struct log_limits limits;
    bool json;
};

/* Reads the action, and the file or log that it uses. */
static int trace_words(struct trace_order *order, int count, char **words)
{
    bool known = false;
    if (count > 0)
        for (int i = 0; i < TRACE_ACTIONS; i++)
            known |= strcmp(words[0], trace_actions[i]) == 0;
    if (count > 0 && !known) {
        usage_unknown("action", str_from(words[0]), trace_actions, TRACE_ACTIONS);
        usage_wrong(usage, NULL);
        return -1;
    }
    order->action = count > 0 ? words[0] : "";
    bool on_etcd = strcmp(order->action, "extract") == 0 && order->place.etcd.options.endpoints;
    if (count != 2 - on_etcd) {
        usage_wrong(usage, "an action and DIR, FILE or TRACE are needed");
        return -1;
    }
    order->path = on_etcd ? NULL : words[1];
    order->place.path = order->path;
    return 0;
}

/* Parses the command line. Returns 0, 1 if help was printed, or -1 if it is wrong. */
static int trace_parse(struct trace_order *order, int argc, char **argv)
{
    static const struct option options[] = {
        {"until", required_argument, NULL, 'u'},
        LOG_PLACE_OPTIONS,
        {"output", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    bool usable = true;
    for (int letter; (letter = usage_option(argc, argv, "ho:", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return 1;
        }
        if (letter == 'u')
            usable = usage_value(log_limits_parse(optarg, &order->limits)) && usable;
        else if (letter == 'o')
            usable = usage_json(optarg, &order->json) && usable;
        else if (!log_place_option(&order->place, letter, optarg))
            usable = false;
    }
    if (!usable) {
        usage_wrong(usage, NULL);
        return -1;
    }
    return trace_words(order, argc - optind, argv + optind);
}

/* --- extract -------------------------------------------------------------------------------------- */

static void trace_see(void *context, struct core *core, const struct event *event,
                      const struct effects *effects)
{
    extract_event(context, core, event, effects);
}

static int trace_extract_from(const struct trace_order *order, const struct log_store *log,
                              struct history *ret_history, struct error *error)
{
    struct core *core = core_new();
    int rc = log_walk_begin(log, &order->limits, core, error);
    if (rc == 0) {
        struct extract *extract = extract_new(core);
        rc = log_walk(log, &order->limits, isatty(STDERR_FILENO), core, trace_see, extract, error);
        if (rc == 0)
            extract_end(extract, core, ret_history);
        else
            extract_free(extract);
    }
    core_free(core);
    return rc;
}

static int trace_extract(struct trace_order *order)
{
    struct error error = {0};
    struct log_store log = {0};
    struct history history;
    struct buf out BUF_CLEANUP = {0};
    int rc = log_place_open(&order->place, &log, &error);
    bool missing = rc == ERROR_NOT_FOUND;
    if (rc == 0) {
        rc = trace_extract_from(order, &log, &history, &error);
        log.close(log.context);
    }
    log_place_done(&order->place);
    if (rc < 0) {
        say("%s", error.text);
        return missing ? EXIT_NOT_FOUND : EXIT_FAILED;
    }
    history_write(&history, &out);
    history_done(&history);
    output_write(&out);
    return EXIT_OK;
}

/* --- show ----------------------------------------------------------------------------------------- */

static double trace_seconds(int64_t us)
{
    return (double)us / 1e6;
}

static void trace_show_jobs(struct buf *out, const struct history *history)
{
    static const char *const header[] = {"CHIPS",     "JOBS",    "COMPLETED", "FAILED",
                                         "CANCELLED", "RUNNING", "CRASHES",   "CHIP-HOURS"};
    struct text_table table = {.columns = sizeof header / sizeof *header};
    table_heads(&table, header);
    for (int bucket = 0; bucket < 31; bucket++) {
        uint64_t most = UINT64_C(1) << bucket, jobs = 0, ends[HISTORY_ENDS] = {0}, crashes = 0;
        double hours = 0;
        for (size_t i = 0; i < history->jobs.len; i++) {
            const struct history_job *job = &history->jobs.items[i];
            uint64_t chips = (uint64_t)job->ranks * job->chips;
            if (chips > most || (bucket > 0 && chips <= most / 2))
                continue;
            jobs++;
            ends[job->end]++;
            crashes += job->crash_count;
            hours += trace_seconds(job->run_us) * (double)chips / 3600;
        }
        if (jobs == 0)
            continue;
        struct arena *arena = &table.arena;
        table_add(&table, arena_printf(arena, bucket < 2 ? "%llu" : "<=%llu", (unsigned long long)most));
        table_add(&table, arena_printf(arena, "%llu", (unsigned long long)jobs));
        for (int end = 0; end < HISTORY_ENDS; end++)
            table_add(&table, arena_printf(arena, "%llu", (unsigned long long)ends[end]));
        table_add(&table, arena_printf(arena, "%llu", (unsigned long long)crashes));
        table_add(&table, arena_printf(arena, "%.2f", hours));
    }
    table_print(&table, out, false);
    table_done(&table);
}

static void trace_show_text(struct buf *out, const struct history *history, const struct history_facts *facts)
{
    char date[40], span[24], gaps[24], silence[24];
    time_format_micro(history->begin_ns, date);
    duration_format(history->end_us * NS_PER_US, span);
    duration_format(facts->gap_us * NS_PER_US, gaps);
    duration_format(facts->silence_us * NS_PER_US, silence);
    buf_printf(out, "from %s, %s; machines %zu, chips %llu, policy constants %zu\n", date, span,
               history->machines.len, (unsigned long long)facts->chips, history->policy.len);
    buf_printf(
        out,
        "outages %llu (and %llu machines that came later), faults %llu; %llu not over, %llu overlap an "
        "earlier one; %.6g machine-hours\n",
        (unsigned long long)facts->outages, (unsigned long long)facts->absent,
        (unsigned long long)facts->faults, (unsigned long long)facts->open,
        (unsigned long long)facts->overlaps, facts->out_s / 3600);
    buf_printf(out, "gaps without a controller %zu, %s; nothing came for %s from %.6g s on\n",
               history->gaps.len, gaps, silence, trace_seconds(facts->silence_at_us));
    buf_printf(out, "jobs %zu, of which %llu never worked; crashes of their own %llu\n", history->jobs.len,
               (unsigned long long)facts->never_ran, (unsigned long long)facts->crashes);
    if (history->jobs.len > 0) {
        buf_add_char(out, '\n');
        trace_show_jobs(out, history);
    }
}

static void trace_show_json(struct buf *out, const struct history *history, const struct history_facts *facts)
{
    struct json_writer json = {.out = out};
    char date[40];
    time_format_micro(history->begin_ns, date);
    json_begin_object(&json);
    json_pair_text(&json, "begin", date);
    json_pair_float(&json, "seconds", trace_seconds(history->end_us));
    json_pair_int(&json, "machines", (int64_t)history->machines.len);
    json_pair_int(&json, "chips", (int64_t)facts->chips);
    json_pair_int(&json, "policyConstants", (int64_t)history->policy.len);
    json_pair_int(&json, "jobs", (int64_t)history->jobs.len);
    for (int end = 0; end < HISTORY_ENDS; end++)
        json_pair_int(&json, history_end_names[end], (int64_t)facts->ends[end]);
    json_pair_int(&json, "neverWorked", (int64_t)facts->never_ran);
    json_pair_int(&json, "crashes", (int64_t)facts->crashes);
    json_pair_float(&json, "workChipHours", facts->work_chip_s / 3600);
    json_pair_int(&json, "outages", (int64_t)facts->outages);
    json_pair_int(&json, "absent", (int64_t)facts->absent);
    json_pair_int(&json, "faults", (int64_t)facts->faults);
    json_pair_int(&json, "open", (int64_t)facts->open);
    json_pair_int(&json, "overlaps", (int64_t)facts->overlaps);
    json_pair_float(&json, "outMachineHours", facts->out_s / 3600);
    json_pair_int(&json, "gaps", (int64_t)history->gaps.len);
    json_pair_float(&json, "gapSeconds", trace_seconds(facts->gap_us));
    json_pair_float(&json, "longestSilenceSeconds", trace_seconds(facts->silence_us));
    json_end_object(&json);
    buf_add_char(out, '\n');
}

static int trace_print(const struct trace_order *order)
{
    struct buf text BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
    struct error error = {0};
    struct history history;
    struct history_facts facts;
    if (!cluster_file_text(order->path, &text))
        return EXIT_FAILED;
    if (history_read(&history, buf_str(&text), order->path, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return EXIT_FAILED;
    }
    history_sum(&history, &facts);
    if (strcmp(order->action, "anonymise") == 0) {
        history_anonymise(&history);
        history_write(&history, &out);
    } else if (order->json) {
        trace_show_json(&out, &history, &facts);
    } else {
        trace_show_text(&out, &history, &facts);
    }
    history_done(&history);
    output_write(&out);
    return EXIT_OK;
}

int cmd_trace(int argc, char **argv)
{
    struct trace_order order = {.limits = LOG_LIMITS_NONE};
    int parsed = trace_parse(&order, argc, argv);
    if (parsed != 0)
        return parsed > 0 ? EXIT_OK : EXIT_USAGE;
    return strcmp(order.action, "extract") == 0 ? trace_extract(&order) : trace_print(&order);
}
