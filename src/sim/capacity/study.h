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
 * one runs fastest. Each run is a process of its own, so runs cannot disturb each other; outcomes come back
 * through pipes. Not pure: forks. Part of src/sim/capacity.
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
    FIGURE_ETTR,            /* of all chip-time from the first start on */
    FIGURE_ETTR_WITH_QUEUE, /* from the submission on */
    FIGURE_GOODPUT,         /* work that is kept, of all chip-time */
    FIGURE_BUSY,            /* share of chips at work */
    FIGURE_DOWN,            /* share of chips on machines that are out */
    FIGURE_WAIT,            /* mean seconds to the first start */
    FIGURE_FAILURES,        /* of runs, by machines and processes */
    FIGURE_COMPLETED,       /* jobs */
    FIGURE_STOPS,           /* of runs, by the controller: drains, preemptions */
    FIGURE_RESTARTS,        /* of jobs: starts beyond the first one of each */
    FIGURE_PREEMPTED,       /* workloads whose quota another one took */
    FIGURE_REDONE,          /* chip-hours of work that was done again */
    STUDY_FIGURES,
    STUDY_TABLE_FIGURES = FIGURE_STOPS /* of the table of a sweep: those before it */
};
extern const char *const study_figure_names[STUDY_FIGURES];

struct study_point {
    struct sim_scenario scenario;
    struct str values[STUDY_FIELDS_MAX];  /* of the swept fields, as JSON; in the study's arena */
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
    uint64_t seed;                                 /* of the first run of each point */
    size_t seeds, jobs;                            /* 1 to STUDY_SEEDS_MAX, STUDY_JOBS_MAX */
    void (*progress)(void *context, double share); /* NULL: nobody looks */
    void *context;
};
struct study_mean {
    double mean, half; /* half the width of the 95 % confidence interval (Student); NAN with one seed */
    double least, most;
};

/* A field of the scenario and its other value: `path` is one of a sweep's, or "policy." and that of a
 * constant of the controller's policy (docs/policy.md); `value` is JSON, or a text. */
struct study_change {
    struct str path, value;
};

/* Reads the scenario of each point. Errors as of sim_scenario_read. On failure *ret_study is untouched. */
int study_read(struct study *ret_study, const struct doc *document, const char *file, struct error *error);
/* Reads two points: the document's, and the same with all the changes (1 to STUDY_FIELDS_MAX). Errors as of
 * study_read; a mistake in a change begins with "--set". */
int study_read_beside(struct study *ret_study, const struct doc *document, const char *file,
                      const struct study_change *changes, size_t count, struct error *error);
/* Appends the field's value at a point, as the scenario has it once its trace was taken; "default": it says
 * nothing. */
void study_value_at(const struct study *study, size_t point, size_t field, struct buf *out);
/* Runs all points with all seeds. ERROR_IO: a process could not be started, or died. */
int study_run(struct study *study, const struct study_options *options, struct error *error);
void study_done(struct study *study);

double study_value(const struct simulation_outcome *outcome, enum study_figure figure);
struct study_mean study_figure(const struct study *study, size_t point, enum study_figure figure);

#endif
