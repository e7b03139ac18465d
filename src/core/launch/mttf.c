/* mttf.c - the mean time for which a JobSet runs until one of its machines fails.
 *
 * Failures of machines are taken as a Poisson process of an unknown rate. The prior is a gamma distribution,
 * as if two failures had been seen at the published rate of 6.5 in 1,000 machine days (arXiv 2410.21680). The
 * cluster's own n failures in T machine days outweigh the prior as they occur. The mean of the rate is (2 +
 * n) / (2 / 0.0065 + T). n is the number of times that machines have left service within lemon's window; T is
 *    the
 * number of machines times that window, or times the age of the cluster if that is shorter. All numbers are
 * integers, so that every replay gives the same result. */
#include <stdlib.h>

#include "core/launch/launch.h"
#include "core/lemon/lemon.h"

enum { PRIOR_FAILURES = 2 };
/* The machine seconds in which the prior's failures were seen. */
#define PRIOR_S (PRIOR_FAILURES * INT64_C(1000) * 24 * 3600 * 10 / 65)

int64_t machine_mttf_s(const struct cluster *cluster, const struct lemon_store *lemons, int64_t age_s)
{
    int64_t window_s = cluster->policy.lemons.window_days * 24 * 3600;
    int64_t failures = PRIOR_FAILURES + lemon_sum(lemons, LEMON_OUT);
    CHECK(failures >= PRIOR_FAILURES && window_s > 0);
    age_s = age_s < 0 ? 0 : age_s < window_s ? age_s : window_s;
    return (PRIOR_S + (int64_t)cluster->machine_count * age_s) / failures;
}

static int compare_machines(const void *a_id, const void *b_id)
{
    machine_id a = *(const machine_id *)a_id, b = *(const machine_id *)b_id;
    return a < b ? -1 : a > b;
}

static uint32_t machines_of(const struct jobset *jobset)
{
    VEC(machine_id) ids = {0};
    uint32_t machines = 0;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (uint32_t s = 0; job && s < job->index_count; s++) {
            const struct task *task = job->indexes[s].task;
            if (task && task->machine != MACHINE_NONE)
                vec_push(&ids, task->machine);
        }
    }
    if (ids.len)
        qsort(ids.items, ids.len, sizeof *ids.items, compare_machines);
    for (size_t i = 0; i < ids.len; i++)
        machines += i == 0 || ids.items[i] != ids.items[i - 1];
    vec_done(&ids);
    return machines;
}

int64_t jobset_mttf_s(const struct jobset *jobset, int64_t machine_s)
{
    CHECK(machine_s >= 0);
    uint32_t machines = machines_of(jobset);
    if (machines == 0)
        return 0;
    return machine_s > machines ? machine_s / machines : 1;
}
