/* campaign.h - many torture runs in worker processes, because a run may abort.
 *
 * Workers are forked. Each takes every jobs-th seed and reports the outcomes over a pipe. A worker that dies,
 * as a broken invariant aborts (check.h), is a failure of its current seed, and another worker continues with
 * the next seed. */
#ifndef PHX_SIM_CAMPAIGN_H
#define PHX_SIM_CAMPAIGN_H

#include "sim/torture.h"

struct campaign_options {
    uint64_t first_seed, count; /* count 0: no limit but time_ns and failures_max */
    int64_t time_ns;            /* 0: no limit */
    uint64_t steps;
    enum torture_plant plant;
    uint32_t controllers;  /* as in torture_options */
    unsigned jobs;         /* worker processes, 1 to CAMPAIGN_JOBS_MAX */
    uint64_t failures_max; /* stop after this many failures; 0: after the first */
    FILE *progress;        /* prints failures, and a line for every 100 seeds; NULL: silent */
};
enum { CAMPAIGN_JOBS_MAX = 256 };

struct campaign_failure {
    uint64_t seed;
    enum torture_result result;
    char why[TORTURE_WHY_MAX];
};
enum { CAMPAIGN_FAILURES_MAX = 32 };

struct campaign_outcome {
    enum torture_result result; /* result of the lowest failing seed */
    uint64_t seeds;             /* seeds that were run */
    uint64_t events, records, starts, faults, boots, jobsets, finished, restarts;
    /* how often each part was reached, and by how many seeds */
    uint64_t reached[REACHES], reached_by[REACHES];
    uint64_t ha[HA_REACHES], ha_by[HA_REACHES]; /* the same, for several controllers */
    int64_t virtual_ns, wall_ns;
    struct campaign_failure failures[CAMPAIGN_FAILURES_MAX]; /* sorted by seed */
    size_t failure_count;
};

/* Runs a campaign. Returns 0, also if seeds failed, or -1 with errno if a process or pipe cannot be made. All
 * workers have ended on return. */
int campaign_run(const struct campaign_options *options, struct campaign_outcome *ret_outcome);

#endif
