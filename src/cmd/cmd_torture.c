/* phalanx torture: runs the real core and agents in a simulated world that fails; see docs/torture.md. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/units.h"
#include "cmd/client.h"
#include "cmd/usage.h"
#include "cmd/cmd.h"
#include "sim/campaign.h"
#include "sim/ha/ha.h"

static const char usage[] =
    "Usage: phalanx torture [--seed S | --seeds FROM..TO | --count N | --time DURATION] [options]\n"
    "\n"
    "Runs the controller's core and the machines' agents in a simulated world of crashes, partitions,\n"
    "delays and damage, and checks every invariant after every event. Then everything heals, and every\n"
    "job that can finish must finish. A failing seed is printed with the command that replays it.\n"
    "\n"
    "Options:\n"
    "  --seed S           one run (default 1); prints the options that the seed drew\n"
    "  --seeds FROM..TO   these seeds\n"
    "  --count N          so many seeds, from --seed on\n"
    "  --time DURATION    as many seeds as the time allows, from --seed on\n"
    "  --controllers K    K controllers, 1 to 5, that share their log through a simulated etcd\n"
    "  --steps N          events of the world before everything heals (default 10000, of several\n"
    "                     controllers 6000)\n"
    "  --jobs K           worker processes (default 1)\n"
    "  --keep-going       look for up to 32 failing seeds instead of one\n"
    "  --replay           one run in this process, every event printed\n"
    "  --plant BUG        with a known bug: skip-fence, apply-before-log, forget-release,\n"
    "                     start-before-dead, lose-report, quota-twice, skip-finalizer,\n"
    "                     ignore-reservation, lose-readiness, old-shard, forget-hold,\n"
    "                     hide-restore; with --controllers: append-unguarded, trust-silence,\n"
    "                     skip-catch-up, late-cleaning, revoke-later, overstay, new-ids,\n"
    "                     apply-before-log\n"
    "  --help             this text\n"
    "\n"
    "Exit status: 0 all held, 1 could not run, 2 wrong usage, 3 an invariant is broken, 4 something\n"
    "that should make progress does not, 5 a replay of the log gives another state.\n";

struct command {
    struct campaign_options options;
    bool many, replay;
};

static bool parse_number(const char *text, uint64_t min, uint64_t *ret)
{
    int64_t value;
    if (!str_to_i64(str_from(text), (int64_t)min, INT64_MAX - 1, &value))
        return false;
    *ret = (uint64_t)value;
    return true;
}

static bool parse_range(const char *text, struct campaign_options *options)
{
    const char *dots = strstr(text, "..");
    int64_t first, last;
    if (!dots || !str_to_i64((struct str){text, (size_t)(dots - text)}, 0, INT64_MAX / 2, &first) ||
        !str_to_i64(str_from(dots + 2), first, INT64_MAX / 2, &last))
        return false;
    options->first_seed = (uint64_t)first;
    options->count = (uint64_t)(last - first) + 1;
    return true;
}

static bool parse_option(struct command *command, int option, const char *value)
{
    struct campaign_options *options = &command->options;
    uint64_t number = 0;
    switch (option) {
    case 's':
        return parse_number(value, 0, &options->first_seed);
    case 'r':
        command->many = true;
        return parse_range(value, options);
    case 'c':
        command->many = true;
        return parse_number(value, 1, &options->count);
    case 't':
        command->many = true;
        options->count = 0;
        return duration_parse(str_from(value), &options->time_ns) && options->time_ns > 0;
    case 'n':
        return parse_number(value, 1, &options->steps);
    case 'j':
        if (!parse_number(value, 1, &number) || number > CAMPAIGN_JOBS_MAX)
            return false;
        options->jobs = (unsigned)number;
        return true;
    case 'o':
        if (!parse_number(value, 1, &number) || number > TORTURE_CONTROLLERS_MAX)
            return false;
        options->controllers = (uint32_t)number;
        return true;
    case 'k':
        options->failures_max = CAMPAIGN_FAILURES_MAX;
        return true;
    case 'v':
        command->replay = true;
        return true;
    case 'p':
        return torture_plant_find(value, &options->plant);
    }
    return false;
}

/* Parses the command line. Returns 0, 1 if help was printed, or -1 if it is wrong. */
static int parse(struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},
        {"seeds", required_argument, NULL, 'r'},
        {"count", required_argument, NULL, 'c'},
        {"time", required_argument, NULL, 't'},
        {"controllers", required_argument, NULL, 'o'},
        {"steps", required_argument, NULL, 'n'},
        {"jobs", required_argument, NULL, 'j'},
        {"keep-going", no_argument, NULL, 'k'},
        {"replay", no_argument, NULL, 'v'},
        {"plant", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int option, index = 0;
    while ((option = usage_option(argc, argv, "h", options, &index)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return 1;
        }
        if (option == '?') {
            usage_wrong(usage, NULL);
            return -1;
        }
        if (!parse_option(command, option, optarg)) {
            say("--%s: \"%s\" is not valid", options[index].name, optarg ? optarg : "");
            return -1;
        }
    }
    if (optind < argc) {
        usage_wrong(usage, "too many arguments");
        return -1;
    }
    return 0;
}

static void draw_text(const struct campaign_options *options, uint64_t seed, char *ret_text, size_t size)
{
    if (options->controllers)
        ha_draw_text(seed, options->controllers, ret_text, size);
    else
        torture_draw(seed, ret_text, size);
}

static void print_replay(const struct campaign_options *options, uint64_t seed)
{
    char drawn[TORTURE_DRAW_MAX];
    draw_text(options, seed, drawn, sizeof(drawn));
    printf("seed %llu: %s\n", (unsigned long long)seed, drawn);
    printf("replay: phalanx torture --seed %llu", (unsigned long long)seed);
    if (options->controllers)
        printf(" --controllers %u", options->controllers);
    if (options->steps)
        printf(" --steps %llu", (unsigned long long)options->steps);
    if (options->plant != PLANT_NONE)
        printf(" --plant %s", torture_plant_name(options->plant));
    printf(" --replay\n");
}

static int run_one(const struct command *command)
{
    struct torture_options options = {.seed = command->options.first_seed,
                                      .steps = command->options.steps,
                                      .plant = command->options.plant,
                                      .controllers = command->options.controllers,
                                      .trace = stdout};
    struct torture_outcome outcome;
    if (options.controllers)
        ha_run(&options, &outcome);
    else
        torture_run(&options, &outcome);
    printf("%s; %llu events, %llu records, digest %016llx\n",
           outcome.result ? outcome.why : "every invariant held", (unsigned long long)outcome.events,
           (unsigned long long)outcome.records, (unsigned long long)outcome.digest);
    return outcome.result;
}

static void print_sum(const struct campaign_options *options, const struct campaign_outcome *outcome)
{
    double wall_s = (double)outcome->wall_ns / 1e9;
    printf("%llu seeds in %.1f s (%.1f a second): %llu events of %llu worlds' %.0f virtual seconds, %llu "
           "records; %llu "
           "faults, %llu controller starts, %llu task starts, %llu JobSets, %llu ended, "
           "%llu restarts; %zu failed\n",
           (unsigned long long)outcome->seeds, wall_s, (double)outcome->seeds / (wall_s > 0 ? wall_s : 1),
           (unsigned long long)outcome->events, (unsigned long long)outcome->seeds,
           (double)outcome->virtual_ns / 1e9, (unsigned long long)outcome->records,
           (unsigned long long)outcome->faults, (unsigned long long)outcome->boots,
           (unsigned long long)outcome->starts, (unsigned long long)outcome->jobsets,
           (unsigned long long)outcome->finished, (unsigned long long)outcome->restarts,
           outcome->failure_count);
    printf("reached, times (seeds):");
    const uint64_t *times = options->controllers ? outcome->ha : outcome->reached;
    const uint64_t *seeds = options->controllers ? outcome->ha_by : outcome->reached_by;
    int count = options->controllers ? (int)HA_REACHES : (int)REACHES;
    for (int reach = 0; reach < count; reach++)
        printf("%s %s %llu (%llu)", reach ? "," : "",
               options->controllers ? torture_ha_reach_name(reach) : torture_reach_name(reach),
               (unsigned long long)times[reach], (unsigned long long)seeds[reach]);
    printf("\n");
}

int cmd_torture(int argc, char **argv)
{
    struct command command = {.options = {.first_seed = 1, .count = 1, .jobs = 1, .progress = stdout}};
    int parsed = parse(&command, argc, argv);
    if (parsed != 0)
        return parsed > 0 ? EXIT_OK : EXIT_USAGE;
    if (command.replay)
        return run_one(&command);
    char drawn[TORTURE_DRAW_MAX];
    if (!command.many) {
        draw_text(&command.options, command.options.first_seed, drawn, sizeof(drawn));
        printf("seed %llu: %s\n", (unsigned long long)command.options.first_seed, drawn);
    }
    struct campaign_outcome outcome;
    if (campaign_run(&command.options, &outcome) < 0) {
        say("cannot start worker processes: %s", strerror(errno));
        return EXIT_FAILED;
    }
    print_sum(&command.options, &outcome);
    for (size_t i = 0; i < outcome.failure_count; i++)
        print_replay(&command.options, outcome.failures[i].seed);
    return outcome.result;
}
