/* phalanx sim: months of a cluster in seconds; see docs/sim.md. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cmd/client.h"
#include "cmd/cluster_file.h"
#include "cmd/picture.h"
#include "cmd/sim.h"
#include "cmd/usage.h"
#include "doc/yaml.h"

enum { ARENA_BYTES_MAX = 512 * 1024 * 1024, BAR_WIDTH = 40 };

static const char usage[] =
    "Usage: phalanx sim SCENARIO [OPTIONS]\n"
    "\n"
    "Simulates a cluster whose machines fail, under the controller that ships: its core, its driver, its\n"
    "scheduler and its recovery, in virtual time. SCENARIO is a YAML file (\"-\": standard input);\n"
    "docs/sim.md explains it, examples/sim has some.\n"
    "  --seed N      seed of all that is random (default: the scenario's)\n"
    "  --svg FILE    a figure: chips at work and machines out over time, ETTR by the size of jobs\n"
    "  --check       read and check the scenario only\n"
    "  -o json       one JSON object; times are seconds\n"
    "  --help        this text\n"
    "\n"
    "Exit status: 0 done, 1 the scenario is wrong or a file cannot be read or written, 2 wrong usage.\n";

struct sim_order {
    const char *path, *svg;
    int64_t seed; /* -1: the scenario's */
    bool json, check;
};

/* 0: go on; 1: help was asked for; -1: wrong. */
static int sim_parse(struct sim_order *order, int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},
        {"svg", required_argument, NULL, 'v'},
        {"check", no_argument, NULL, 'c'},
        {"output", required_argument, NULL, 'o'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    bool usable = true;
    for (int letter; (letter = usage_option(argc, argv, "ho:", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return 1;
        }
        if (letter == 's')
            usable = usage_value(str_to_i64(str_from(optarg), 0, INT64_MAX, &order->seed)) && usable;
        else if (letter == 'v')
            order->svg = optarg;
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

static bool sim_load(const struct sim_order *order, struct sim_scenario *ret_scenario)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = ARENA_BYTES_MAX};
    struct buf text BUF_CLEANUP = {0};
    struct doc_list docs = {0};
    struct error error = {0};
    if (!cluster_file_text(order->path, &text))
        return false;
    if (yaml_parse_all(&arena, buf_str(&text), &docs, &error) < 0) {
        fprintf(stderr, "%s:%s\n", order->path, error.text);
        return false;
    }
    if (docs.len != 1) {
        fprintf(stderr, "%s: expected one document, got %zu\n", order->path, docs.len);
        return false;
    }
    if (sim_scenario_read(ret_scenario, docs.items[0], order->path, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return false;
    }
    if (simulation_check(ret_scenario, &error) < 0) {
        fprintf(stderr, "%s: %s\n", order->path, error.text);
        sim_scenario_done(ret_scenario);
        return false;
    }
    return true;
}

/* A bar on standard error, where that is a terminal. */
static void sim_bar(void *context, double share)
{
    int done = (int)(share * BAR_WIDTH + 0.5);
    fprintf(stderr, "\r[%-*.*s] %3.0f %%", BAR_WIDTH, done,
            "########################################################################", 100 * share);
    fflush(stderr);
}

static int sim_run(const struct sim_order *order, const struct sim_scenario *scenario)
{
    struct simulation_outcome *outcome = mem_alloc(sizeof *outcome);
    struct simulation_options options = {.scenario = scenario,
                                         .seed = order->seed >= 0 ? (uint64_t)order->seed : scenario->seed};
    bool bar = isatty(STDERR_FILENO);
    struct buf out BUF_CLEANUP = {0}, picture BUF_CLEANUP = {0};
    if (bar)
        options.progress = sim_bar;
    simulation_run(&options, outcome);
    if (bar)
        fprintf(stderr, "\r%*s\r", BAR_WIDTH + 10, "");
    if (order->json) {
        struct json_writer json = {.out = &out};
        sim_report_json(&json, scenario, outcome);
        buf_add_char(&out, '\n');
    } else {
        sim_report_text(&out, scenario, outcome);
    }
    output_write(&out);
    if (order->svg)
        sim_picture(&picture, scenario, outcome);
    mem_free(outcome);
    return order->svg ? picture_write(order->svg, "--svg", &picture) : EXIT_OK;
}

int cmd_sim(int argc, char **argv)
{
    struct sim_order order = {.seed = -1};
    struct sim_scenario scenario;
    int parsed = sim_parse(&order, argc, argv);
    if (parsed != 0)
        return parsed > 0 ? EXIT_OK : EXIT_USAGE;
    if (!sim_load(&order, &scenario))
        return EXIT_FAILED;
    int status = order.check ? EXIT_OK : sim_run(&order, &scenario);
    sim_scenario_done(&scenario);
    return status;
}
