/* phalanx sim: simulates months of a cluster in seconds; see docs/sim.md. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cmd/client.h"
#include "cmd/cluster_file.h"
#include "cmd/picture.h"
#include "cmd/sim.h"
#include "cmd/sim_log.h"
#include "cmd/usage.h"
#include "doc/yaml.h"

enum { ARENA_BYTES_MAX = 512 * 1024 * 1024, BAR_WIDTH = 40 };

static const char usage[] =
    "Usage: phalanx sim SCENARIO|TRACE [OPTIONS]\n"
    "\n"
    "Simulates a cluster whose machines fail, under the controller that ships: its core, its driver, its\n"
    "scheduler and its recovery, in virtual time. SCENARIO is a YAML file (\"-\": standard input);\n"
    "docs/sim.md explains it, examples/sim has some. TRACE is what `phalanx trace extract` took out of\n"
    "a log (docs/replay.md): its machines, outages and jobs are played.\n"
    "  --set PATH=VALUE   what if? The same once more with this value, and both side by side; may be\n"
    "                repeated. policy.CONSTANT (docs/policy.md), or a field of the scenario, such as\n"
    "                checkpoint or machines\n"
    "  --seed N      seed of all that is random, or the first of them (default: the scenario's)\n"
    "  --seeds N     so many seeds from there on: means with 95 % confidence intervals (default 1)\n"
    "  --jobs K      processes at a time, for seeds and sweeps (default: one a core)\n"
    "  --svg FILE    a figure: chips at work and machines out over time, ETTR by the size of jobs;\n"
    "                of a sweep: ETTR by the first of its fields\n"
    "  --check       read and check the scenario only\n"
    "  --plan        one JSON object instead of a simulation: the cluster file, JobSets and failures,\n"
    "                with their times, by which real machines tell the same story\n"
    "  --log FILE    keeps the log of the simulated controller in a new FILE, for `phalanx replay` and\n"
    "                `phalanx log`; of one seed and no sweep\n"
    "  -o json       one JSON object; times are seconds\n"
    "  --help        this text\n"
    "\n"
    "Exit status: 0 done, 1 the scenario is wrong or a file cannot be read or written, 2 wrong usage.\n";

/* A history that scenarios name by the path of its file. */
struct sim_history {
    char *path;
    struct history history;
};

struct sim_order {
    const char *path, *svg, *log;
    struct study_change changes[STUDY_FIELDS_MAX];
    size_t change_count;
    VEC(struct sim_history *) histories;
    int64_t seed; /* -1: the scenario's */
    int64_t seeds, jobs;
    bool json, check, plan;
};

static bool sim_parse_change(struct sim_order *order, struct str text)
{
    struct study_change change;
    if (order->change_count == STUDY_FIELDS_MAX) {
        say("at most %d --set", STUDY_FIELDS_MAX);
        return false;
    }
    if (!str_cut(text, '=', &change.path, &change.value) || change.path.len == 0)
        return usage_value(false);
    order->changes[order->change_count++] = change;
    return true;
}

/* Parses the command line. Returns 0, 1 if help was printed, or -1 if it is wrong. */
static int sim_parse(struct sim_order *order, int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},   {"seeds", required_argument, NULL, 'n'},
        {"jobs", required_argument, NULL, 'k'},   {"svg", required_argument, NULL, 'v'},
        {"set", required_argument, NULL, 'w'},    {"check", no_argument, NULL, 'c'},
        {"log", required_argument, NULL, 'l'},    {"plan", no_argument, NULL, 'p'},
        {"output", required_argument, NULL, 'o'}, {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    bool usable = true;
    for (int letter; (letter = usage_option(argc, argv, "ho:", options, NULL)) != -1;) {
        struct str value = str_from(optarg);
        if (letter == 'h') {
            fputs(usage, stdout);
            return 1;
        }
        if (letter == 's')
            usable = usage_value(str_to_i64(value, 0, INT64_MAX - STUDY_SEEDS_MAX, &order->seed)) && usable;
        else if (letter == 'n')
            usable = usage_value(str_to_i64(value, 1, STUDY_SEEDS_MAX, &order->seeds)) && usable;
        else if (letter == 'k')
            usable = usage_value(str_to_i64(value, 1, STUDY_JOBS_MAX, &order->jobs)) && usable;
        else if (letter == 'v')
            order->svg = optarg;
        else if (letter == 'l')
            order->log = optarg;
        else if (letter == 'p')
            order->plan = true;
        else if (letter == 'w')
            usable = sim_parse_change(order, value) && usable;
        else if (letter == 'c')
            order->check = true;
        else if (letter == 'j')
            order->json = true;
        else if (letter != 'o' || !usage_json(optarg, &order->json))
            usable = false;
    }
    if (!usable || argc - optind != 1) {
        usage_wrong(usage, !usable ? NULL : optind == argc ? "SCENARIO is missing" : "too many arguments");
        return -1;
    }
    order->path = argv[optind];
    return 0;
}

/* Returns a history, which is read once even if several scenarios name it. Returns NULL after a message. */
static const struct history *sim_history_of(struct sim_order *order, const char *path, struct str text)
{
    struct error error = {0};
    for (size_t i = 0; i < order->histories.len; i++)
        if (strcmp(order->histories.items[i]->path, path) == 0)
            return &order->histories.items[i]->history;
    struct sim_history *read = mem_alloc(sizeof *read);
    if (history_read(&read->history, text, path, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        mem_free(read);
        return NULL;
    }
    read->path = mem_alloc(strlen(path) + 1);
    memcpy(read->path, path, strlen(path));
    vec_push(&order->histories, read);
    return &read->history;
}

/* Makes a scenario that only plays this trace. */
static struct doc *sim_trace_document(struct arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct doc *root = doc_new(arena, DOC_OBJECT), *trace = doc_need_object(arena, root, "workload");
    struct doc *file = doc_new(arena, DOC_STRING), *format = doc_new(arena, DOC_STRING);
    file->text = str_from(slash ? slash + 1 : path);
    format->text = STR("phalanx");
    trace = doc_need_object(arena, trace, "trace");
    doc_set(arena, trace, STR("file"), file);
    doc_set(arena, trace, STR("format"), format);
    doc_set(arena, root, STR("name"), file->text.len <= SCENARIO_NAME_MAX ? file : format);
    return root;
}

static struct doc *sim_document(struct sim_order *order, struct arena *arena, struct str text)
{
    struct doc_list docs = {0};
    struct error error = {0};
    if (history_is(text))
        return sim_history_of(order, order->path, text) ? sim_trace_document(arena, order->path) : NULL;
    if (yaml_parse_all(arena, text, &docs, &error) < 0)
        fprintf(stderr, "%s:%s\n", order->path, error.text);
    else if (docs.len != 1)
        fprintf(stderr, "%s: expected one document, got %zu\n", order->path, docs.len);
    else
        return docs.items[0];
    return NULL;
}

static bool sim_load(struct sim_order *order, struct study *ret_study)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = ARENA_BYTES_MAX};
    struct buf text BUF_CLEANUP = {0};
    struct error error = {0};
    if (!cluster_file_text(order->path, &text))
        return false;
    struct doc *document = sim_document(order, &arena, buf_str(&text));
    if (!document)
        return false;
    int rc = order->change_count ? study_read_beside(ret_study, document, order->path, order->changes,
                                                     order->change_count, &error)
                                 : study_read(ret_study, document, order->path, &error);
    if (rc < 0)
        fprintf(stderr, "%s\n", error.text);
    return rc == 0;
}

/* Loads the history that the scenario names, and checks the scenario's cluster, which may be the
 * history's. */
static bool sim_load_history(struct sim_order *order, struct sim_scenario *scenario, const char *path)
{
    struct buf text BUF_CLEANUP = {0};
    struct error error = {0};
    bool known = false;
    size_t left_out = 0;
    for (size_t i = 0; i < order->histories.len; i++)
        known |= strcmp(order->histories.items[i]->path, path) == 0;
    if (!known && !cluster_file_text(path, &text))
        return false;
    const struct history *history = sim_history_of(order, path, buf_str(&text));
    if (!history)
        return false;
    int rc = sim_scenario_take_history(scenario, history, path, &left_out, &error);
    if (rc == 0)
        rc = simulation_check(scenario, path, &error);
    if (rc < 0)
        fprintf(stderr, "%s\n", error.text);
    else if (left_out > 0)
        say("%s: %zu jobs that never worked, have no chips or are too large were left out", path, left_out);
    return rc == 0;
}

/* Reads the trace that the point's scenario names, relative to the scenario's file. */
static bool sim_load_trace(struct sim_order *order, struct sim_scenario *scenario)
{
    const struct trace_source *source = &scenario->trace;
    struct buf text BUF_CLEANUP = {0}, path BUF_CLEANUP = {0};
    struct error error = {0};
    struct trace trace;
    const char *slash = strrchr(order->path, '/');
    if (slash && source->file[0] != '/')
        buf_add(&path, order->path, (size_t)(slash - order->path) + 1);
    buf_printf(&path, "%s", source->file);
    if (source->format == TRACE_PHALANX)
        return sim_load_history(order, scenario, path.data);
    if (!cluster_file_text(path.data, &text))
        return false;
    if (trace_read(&trace, source->format, buf_str(&text), path.data, &source->terms, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return false;
    }
    size_t too_large;
    if (sim_scenario_take_trace(scenario, &trace, path.data, &too_large, &error) < 0) {
        trace_done(&trace);
        fprintf(stderr, "%s\n", error.text);
        return false;
    }
    if (trace.left_out + too_large > 0)
        say("%s: %llu lines without work and %zu jobs that are too large were left out", path.data,
            (unsigned long long)trace.left_out, too_large);
    trace_done(&trace);
    return true;
}

static bool sim_load_traces(struct sim_order *order, struct study *study)
{
    bool good = true;
    for (size_t i = 0; i < study->points.len && good; i++)
        if (study->points.items[i].scenario.trace.file[0])
            good = sim_load_trace(order, &study->points.items[i].scenario);
    return good;
}

/* Draws a progress bar on standard error, if that is a terminal. */
static void sim_bar(void *context, double share)
{
    int done = (int)(share * BAR_WIDTH + 0.5);
    char bar[BAR_WIDTH + 1];
    memset(bar, '#', BAR_WIDTH);
    bar[BAR_WIDTH] = 0;
    fprintf(stderr, "\r[%-*.*s] %3.0f %%", BAR_WIDTH, done, bar, 100 * share);
    fflush(stderr);
}

static void sim_clear_bar(void)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%*s\r", BAR_WIDTH + 10, "");
}

/* Simulates one seed in this process, so that the progress bar can follow the run. */
static bool sim_run_one(const struct sim_order *order, const struct sim_scenario *scenario, struct buf *out,
                        struct buf *picture)
{
    struct error error = {0};
    struct sim_log *log = order->log ? sim_log_open(order->log, &error) : NULL;
    if (order->log && !log) {
        say("--log: %s", error.text);
        return false;
    }
    struct simulation_outcome *outcome = mem_alloc(sizeof *outcome);
    struct simulation_options options = {.scenario = scenario,
                                         .seed = order->seed >= 0 ? (uint64_t)order->seed : scenario->seed,
                                         .progress = isatty(STDERR_FILENO) ? sim_bar : NULL,
                                         .keep = log ? sim_log_keep : NULL,
                                         .keep_context = log};
    simulation_run(&options, outcome);
    sim_clear_bar();
    bool kept = !log || sim_log_close(log, &error) == 0;
    if (!kept)
        say("--log: %s", error.text);
    struct json_writer json = {.out = out};
    if (order->json)
        sim_report_json(&json, scenario, outcome);
    else
        sim_report_text(out, scenario, outcome);
    sim_picture(picture, scenario, outcome);
    mem_free(outcome);
    return kept;
}

static bool sim_run_study(const struct sim_order *order, struct study *study, struct buf *out,
                          struct buf *picture)
{
    const struct sim_scenario *first = &study->points.items[0].scenario;
    struct study_options options = {.seed = order->seed >= 0 ? (uint64_t)order->seed : first->seed,
                                    .seeds = (size_t)order->seeds,
                                    .jobs = (size_t)order->jobs,
                                    .progress = isatty(STDERR_FILENO) ? sim_bar : NULL};
    struct error error = {0};
    int rc = study_run(study, &options, &error);
    sim_clear_bar();
    if (rc < 0) {
        say("%s", error.text);
        return false;
    }
    struct json_writer json = {.out = out};
    const struct history *history = order->histories.len == 1 ? &order->histories.items[0]->history : NULL;
    if (order->change_count)
        sim_compare(out, study, history, options.seed, order->json);
    else if (order->json)
        sim_study_json(&json, study, options.seed);
    else
        sim_study_text(out, study, options.seed);
    sim_study_picture(picture, study);
    return true;
}

static int sim_run(const struct sim_order *order, struct study *study)
{
    struct buf out BUF_CLEANUP = {0}, picture BUF_CLEANUP = {0};
    bool one = study->points.len == 1 && order->seeds == 1;
    if (order->log && !one) {
        say("--log: expected one seed and no sweep, got %zu runs", study->points.len * (size_t)order->seeds);
        return EXIT_FAILED;
    }
    if (one ? !sim_run_one(order, &study->points.items[0].scenario, &out, &picture)
            : !sim_run_study(order, study, &out, &picture))
        return EXIT_FAILED;
    if (order->json)
        buf_add_char(&out, '\n');
    output_write(&out);
    return order->svg ? picture_write(order->svg, "--svg", &picture) : EXIT_OK;
}

static int sim_plan(const struct study *study)
{
    const struct sim_scenario *scenario = &study->points.items[0].scenario;
    struct buf out BUF_CLEANUP = {0};
    struct json_writer json = {.out = &out};
    if (study->points.len != 1 || !sim_scenario_is_planned(scenario)) {
        say("--plan: expected a time for each job and failure, without jobsPerDay, rate, life, corruption "
            "and sweep");
        return EXIT_FAILED;
    }
    sim_plan_json(&json, scenario);
    output_escape(&out);
    buf_add_char(&out, '\n');
    output_write(&out);
    return EXIT_OK;
}

static void sim_forget(struct sim_order *order)
{
    for (size_t i = 0; i < order->histories.len; i++) {
        history_done(&order->histories.items[i]->history);
        mem_free(order->histories.items[i]->path);
        mem_free(order->histories.items[i]);
    }
    vec_done(&order->histories);
}

int cmd_sim(int argc, char **argv)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct sim_order order = {.seed = -1, .seeds = 1, .jobs = cores < 1 ? 1 : cores};
    struct study study;
    if (order.jobs > STUDY_JOBS_MAX)
        order.jobs = STUDY_JOBS_MAX;
    int parsed = sim_parse(&order, argc, argv);
    if (parsed != 0)
        return parsed > 0 ? EXIT_OK : EXIT_USAGE;
    if (!sim_load(&order, &study)) {
        sim_forget(&order);
        return EXIT_FAILED;
    }
    int status = EXIT_FAILED;
    if (sim_load_traces(&order, &study))
        status = order.check ? EXIT_OK : order.plan ? sim_plan(&study) : sim_run(&order, &study);
    study_done(&study);
    sim_forget(&order);
    return status;
}
