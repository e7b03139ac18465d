/* campaign.h - many torture runs, each seed in a process that may abort.
 *
 * Workers are forked; each takes every jobs-th seed and says over a pipe what came of it. A worker that
 * dies (a broken invariant aborts, check.h) is a failure of the seed that it was at, and another one goes
 * on behind it. */
#ifndef PHX_SIM_CAMPAIGN_H
#define PHX_SIM_CAMPAIGN_H

#include "sim/torture.h"

struct campaign_options {
    uint64_t first_seed, count; /* count 0: until time_ns has passed */
    int64_t time_ns;            /* 0: no limit */
    uint64_t steps;
    enum torture_plant plant;
    uint32_t controllers;  /* as in torture_options */
    unsigned jobs;         /* worker processes, 1 to CAMPAIGN_JOBS_MAX */
    uint64_t failures_max; /* stop after so many; 0: the first */
    FILE *progress;        /* failures and a line now and then; NULL: silent */
};
enum { CAMPAIGN_JOBS_MAX = 256 };

struct campaign_failure {
    uint64_t seed;
    enum torture_result result;
    char why[TORTURE_WHY_MAX];
};
enum { CAMPAIGN_FAILURES_MAX = 32 };

struct campaign_outcome {
    enum torture_result result; /* of the lowest failing seed */
    uint64_t seeds;             /* that were run */
    uint64_t events, records, starts, faults, boots, jobsets, finished, restarts;
    uint64_t reached[REACHES], reached_by[REACHES]; /* how often each; by how many seeds */
    uint64_t ha[HA_REACHES], ha_by[HA_REACHES];     /* likewise, of several controllers */
    int64_t virtual_ns, wall_ns;
    struct campaign_failure failures[CAMPAIGN_FAILURES_MAX]; /* by seed */
    size_t failure_count;
};

/* 0, or -1 when processes or pipes cannot be made (errno). */
int campaign_run(const struct campaign_options *options, struct campaign_outcome *ret_outcome);

#endif
