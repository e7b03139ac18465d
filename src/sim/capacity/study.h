/* study.h - one scenario with many seeds, and sweeps over its fields, in parallel processes.
 *
 *     struct study study;
 *     if (study_read(&study, document, path, &error) < 0) ...
 *     study_run(&study, &(struct study_options){.seeds = 10, .jobs = 2}, &error)
 *     for (size_t i = 0; i < study.points.len; i++)
 *         study_figure(&study, i, FIGURE_ETTR)      // mean and confidence interval over the seeds
 *     study_done(&study);
 *
 * A point is a scenario with one value for each swept field; without a sweep there is one point. The members
 * of `sweep` are paths of the scenario, such as workload.checkpoint.interval or failures[0].rate; the last
 * one varies fastest. Each run is a separate process, so runs cannot disturb each other, and sends its
 * outcome through a pipe. Not pure: forks. Part of src/sim/capacity.
 */
#ifndef PHX_SIM_CAPACITY_STUDY_H
#define PHX_SIM_CAPACITY_STUDY_H

#include "sim/capacity/capacity.h"

enum {
    STUDY_FIELDS_MAX = 16,
    STUDY_SWEEP_MAX = 4, /* fields of a sweep */
    STUDY_POINTS_MAX = 1000,
    STUDY_SEEDS_MAX = 10000,
    STUDY_JOBS_MAX = 256
};

/* The figures that a study compares. */
enum study_figure {
    FIGURE_ETTR,            /* share of all chip-time from the first start on */
    FIGURE_ETTR_WITH_QUEUE, /* the same, from submission on */
    FIGURE_GOODPUT,         /* kept work as a share of all chip-time */
    FIGURE_BUSY,            /* share of chips at work */
    FIGURE_DOWN,            /* share of chips on machines that are out */
    FIGURE_WAIT,            /* mean seconds until the first start */
    FIGURE_FAILURES,        /* interruptions of runs by machines and processes */
    FIGURE_COMPLETED,       /* completed jobs */
    FIGURE_STOPS,           /* stops of runs by the controller: drains, preemptions */
    FIGURE_RESTARTS,        /* starts of jobs after the first one of each */
    FIGURE_PREEMPTED,       /* workloads that lost their quota to another */
    FIGURE_REDONE,          /* chip-hours of repeated work */
    STUDY_FIGURES,
    STUDY_TABLE_FIGURES = FIGURE_STOPS /* the table of a sweep has the figures before this one */
};
extern const char *const study_figure_names[STUDY_FIGURES];

struct study_point {
    struct sim_scenario scenario;
    struct str values[STUDY_FIELDS_MAX];  /* values of the swept fields, as JSON; in the study's arena */
    struct simulation_outcome **outcomes; /* [seeds]; NULL before study_run */
};
struct study {
    struct str fields[STUDY_FIELDS_MAX]; /* swept paths; in `arena` */
    size_t field_count;
    VEC(struct study_point) points;
    size_t seeds;
    struct arena arena;
};
struct study_options {
    uint64_t seed;                                 /* seed of the first run of each point */
    size_t seeds, jobs;                            /* 1 to STUDY_SEEDS_MAX, STUDY_JOBS_MAX */
    void (*progress)(void *context, double share); /* NULL: not called */
    void *context;
};
struct study_mean {
    double mean, half; /* half the width of the 95 % confidence interval (Student); NAN with one seed */
    double least, most;
};

/* A field of the scenario and its new value. `path` is a path of a sweep, or "policy." followed by the path
 * of a constant of the controller's policy (docs/policy.md). `value` is JSON, or a text. */
struct study_change {
    struct str path, value;
};

/* Reads the scenario of each point. Errors are those of sim_scenario_read(). On failure *ret_study is
 * untouched. */
int study_read(struct study *ret_study, const struct doc *document, const char *file, struct error *error);
/* Reads two points: the document, and the document with all changes (1 to STUDY_FIELDS_MAX). Errors are those
 * of study_read(); the message about a wrong change begins with "--set". */
int study_read_beside(struct study *ret_study, const struct doc *document, const char *file,
                      const struct study_change *changes, size_t count, struct error *error);
/* Appends the field's value at a point, after its trace was taken, or "default" if the scenario does not set
 * it. */
void study_value_at(const struct study *study, size_t point, size_t field, struct buf *out);
/* Runs all points with all seeds. Returns ERROR_IO if a process could not be started, or died. */
int study_run(struct study *study, const struct study_options *options, struct error *error);
void study_done(struct study *study);

double study_value(const struct simulation_outcome *outcome, enum study_figure figure);
struct study_mean study_figure(const struct study *study, size_t point, enum study_figure figure);

#endif
