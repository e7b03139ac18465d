/* bench/sim - how fast the simulator of capacity is, and how close to the formula of ETTR.
 *
 * Prints one JSON object a line (bench/run gives the form). Times are the process's own CPU seconds, so
 * another program on the computer does not slow them. Without arguments it simulates DAYS days:
 *   - RSC-1 (arXiv 2410.21680): 2,000 machines of 8, 7,200 jobs a day, 6.5 failures of a machine in 1,000
 *     days. "a year of RSC-1" is its cost a day times 335; the queue of the first days is shorter than
 *     later, so `bench_sim 335` measures the whole
 *   - the same work for each machine on 1,000 to 16,384 machines: the cost of a record must not grow
 *   - ETTR of one job under ETTR_FAILURES failures beside the renewal formula (job/loop/ettr.h); `bench_sim
 *     ettr` takes 200,000 failures for each row of the reference's table
 *
 *     bench_sim [DAYS | ettr]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "doc/yaml.h"
#include "sim/model/ettr_forms.h"
#include "sim/capacity/capacity.h"

enum { DAYS = 2, YEAR_DAYS = 335, ETTR_FAILURES = 20000, ETTR_FAILURES_ALL = 200000, TEXT_MAX = 2048 };

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void say(const char *name, double value, const char *unit)
{
    printf("{\"bench\":\"sim\",\"case\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"}\n", name, value, unit);
    fflush(stdout);
}

/* Simulates the scenario; returns the CPU seconds that it took. */
static double simulate(const char *text, struct simulation_outcome *ret)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc_list docs;
    struct error error = {0};
    struct sim_scenario scenario;
    if (yaml_parse_all(&arena, str_from(text), &docs, &error) < 0 ||
        sim_scenario_read(&scenario, docs.items[0], "bench", &error) < 0 ||
        simulation_check(&scenario, "bench", &error) < 0) {
        fprintf(stderr, "bench: %s\n", error.text);
        exit(1);
    }
    double began_s = cpu_s();
    simulation_run(&(struct simulation_options){.scenario = &scenario, .seed = scenario.seed}, ret);
    double took_s = cpu_s() - began_s;
    sim_scenario_done(&scenario);
    return took_s;
}

/* --- clusters ------------------------------------------------------------------------------------- */

/* RSC-1 on so many machines: jobs that do not fit are left out of small ones, and their time is shared. */
static double cluster_days(uint32_t machines, int days, struct simulation_outcome *ret)
{
    static const struct {
        uint32_t chips, jobs, time;
    } sizes[] = {{1, 4200, 15},   {2, 800, 7},    {4, 800, 8},     {8, 3300, 60},  {16, 300, 30},
                 {32, 220, 40},   {64, 160, 70},  {128, 100, 110}, {256, 60, 140}, {512, 30, 150},
                 {1024, 18, 150}, {2048, 8, 100}, {4096, 4, 120}};
    char text[TEXT_MAX];
    int len = snprintf(text, sizeof text,
                       "duration: %dd\ncluster: {machines: %u, chips: 8}\n"
                       "failures:\n- {kind: crash, rate: 2, repair: {lognormal: {median: 6h, sigma: 1}}}\n"
                       "- {kind: fault, rate: 4.5, repair: {lognormal: {median: 1d, sigma: 1}}}\n"
                       "workload:\n  mix: rsc-1\n  jobsPerDay: %g\n  sizes:\n",
                       days, machines, 3.6 * machines);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].chips <= 2 * machines)
            len += snprintf(text + len, sizeof text - (size_t)len, "  - {chips: %u, jobs: %u, time: %u}\n",
                            sizes[i].chips, sizes[i].jobs, sizes[i].time);
    return simulate(text, ret);
}

static void bench_clusters(int days)
{
    static const uint32_t sizes[] = {1000, 2000, 4000, 8000, 16384};
    struct simulation_outcome *outcome = malloc(sizeof *outcome);
    double first_us = 0;
    char name[96];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double took_s = cluster_days(sizes[i], days, outcome);
        double us = took_s * 1e6 / (double)outcome->records;
        first_us = i ? first_us : us;
        snprintf(name, sizeof name, "%u machines: cost of a record", sizes[i]);
        say(name, us, "us");
        snprintf(name, sizeof name, "%u machines: beside 1,000", sizes[i]);
        say(name, us / first_us, "x");
        snprintf(name, sizeof name, "%u machines: a month", sizes[i]);
        say(name, took_s * 30 / days, "s");
        if (sizes[i] != 2000)
            continue;
        say("RSC-1: records a second and core", (double)outcome->records / took_s, "records/s");
        say("RSC-1: jobs a second and core", (double)outcome->jobs / took_s, "jobs/s");
        say("RSC-1: chips at work", 100 * outcome->busy_chip_s / outcome->all_chip_s, "%");
        say(days == YEAR_DAYS ? "a year of RSC-1" : "a year of RSC-1, from these days",
            took_s * YEAR_DAYS / days, "s");
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        say("RSC-1: memory", (double)usage.ru_maxrss / 1024, "MiB");
    }
    free(outcome);
}

/* --- ETTR ----------------------------------------------------------------------------------------- */

struct ettr_row {
    const char *name;
    double chips, rate, interval_min, write_s, restart_min, queue_min;
};
static const struct ettr_row rows[] = {
    {"16,000 chips, 6.5, 60 min", 16000, 6.5, 60, 0, 5, 0},
    {"16,000 chips, 6.5, 5 min", 16000, 6.5, 5, 0, 5, 0},
    {"8,000 chips, 6.5, 30 min, wait 1 min", 8000, 6.5, 30, 0, 5, 1},
    {"4,096 chips, 6.5, 60 min", 4096, 6.5, 60, 0, 5, 0},
    {"100,000 chips, 2.34, 2 min, wait 1 min", 100000, 2.34, 2, 0, 2, 1},
    {"12,000 chips, 6.5, write 10 s", 12000, 6.5, 7.02, 10, 5, 0},
    {"12,000 chips, 1.0, write 5 min", 12000, 1.0, 98, 300, 5, 0},
    {"16,000 chips, 6.5, write 5 min", 16000, 6.5, 33.3, 300, 5, 0},
    {"16,384 chips, 3.79, write 10 s", 16384, 3.79, 12.5, 10, 10, 0},
};

/* A job of one machine that fails as often as one of so many chips would, with others to go on with. The wait
 * is the time of the detection. The ladder's own waits for jobs without progress are the controller's, and in
 * no formula: these rows have few of them. */
static double ettr_of(const struct ettr_row *row, int failures, double *ret_error)
{
    char text[TEXT_MAX];
    struct simulation_outcome *outcome = malloc(sizeof *outcome);
    double lambda = ettr_failures_per_s(row->chips / 8, row->rate);
    double days = failures / lambda / 86400;
    int parts = (int)ceil(days / 3600); /* of at most ten years each, the longest scenario */
    double sum = 0, squares = 0;
    for (int part = 0; part < parts; part++) {
        snprintf(text, sizeof text,
                 "seed: %d\nduration: %.3fd\ncluster: {machines: 3, chips: 8}\n"
                 "failures: [{life: {exponential: %.3f}, detection: %g, repair: 20}]\nworkload:\n"
                 "  checkpoint: {interval: %g, write: %g, fromChips: 1}\n  launch: 0.5\n  load: %g\n  stop: "
                 "0.001\n"
                 "  annotations: {phalanx.dev/recovery: replace-machine, "
                 "phalanx.dev/no-progress-attempts: '0', "
                 "phalanx.dev/recovery-budgets: replace-machine=100/1h}\n"
                 "  jobs: [{chips: 8, runtime: 3650d}]\n",
                 part + 1, days / parts, 1 / lambda, row->queue_min * 60 + 0.001, row->interval_min * 60,
                 row->write_s, row->restart_min * 60 - 0.5);
        simulate(text, outcome);
        double ettr = simulation_ettr(&outcome->buckets[simulation_bucket_of(8)]);
        sum += ettr;
        squares += ettr * ettr;
    }
    double mean = sum / parts;
    *ret_error = parts > 1 ? sqrt((squares / parts - mean * mean) / (parts - 1)) : 0;
    free(outcome);
    return mean;
}

static void bench_ettr(bool all)
{
    size_t count = all ? sizeof rows / sizeof *rows : 3;
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ettr_row *row = &rows[i];
        struct ettr_terms terms = {.failures_per_s = ettr_failures_per_s(row->chips / 8, row->rate),
                                   .interval_s = row->interval_min * 60,
                                   .write_s = row->write_s,
                                   .restart_s = row->restart_min * 60,
                                   .queue_s = row->queue_min * 60};
        char name[96];
        double error, exact = ettr_exact(&terms);
        double ettr = ettr_of(row, all ? ETTR_FAILURES_ALL : ETTR_FAILURES, &error);
        snprintf(name, sizeof name, "ETTR of %s", row->name);
        say(name, ettr, "");
        snprintf(name, sizeof name, "ETTR of %s: formula", row->name);
        say(name, exact, "");
        worst = fmax(worst, fabs(ettr - exact));
    }
    say("ETTR: farthest from the formula", worst, "");
}

int main(int argc, char **argv)
{
    int64_t days = DAYS;
    bool ettr = argc == 2 && strcmp(argv[1], "ettr") == 0;
    if (argc > 2 || (argc == 2 && !ettr && !str_to_i64(str_from(argv[1]), 1, YEAR_DAYS, &days)))
        return 2;
    if (!ettr)
        bench_clusters((int)days);
    bench_ettr(ettr);
    return 0;
}
