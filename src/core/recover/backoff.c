/* backoff.c - the wait of a workload that crashes repeatedly before it runs again.
 *
 * The workload runs again at once after a first crash, and after acts of infrastructure and of people: a lost
 * machine, an eviction, a fence. A second crash in a row is followed by a wait of backoff_first_ns, each
 * further one by a wait of twice the last, up to backoff_max_ns (ladder/ladder.h; annotation
 * phalanx.dev/restart-backoff). With ten restarts a workload thus outlasts a file server that is away for
 * half a minute. The row ends with a step beyond all earlier ones, or with a run of LADDER_RUN_NS. Workloads
 * under the ladder wait as ladder/ladder.c decides instead. */
#include "core/recover/internal.h"

#include "base/backoff.h"

static bool is_crash(const struct task *culprit)
{
    return culprit && !culprit->evicted && !culprit->fenced &&
           (culprit->end == END_EXIT || culprit->end == END_START_FAILED);
}

static bool got_on(const struct step *step, const struct jobset *jobset, const struct task *culprit)
{
    CHECK(jobset->recovery.crashes.count >= 0);
    bool ran_long = culprit->started_ns && step->now_ns - culprit->started_ns >= LADDER_RUN_NS;
    return ran_long || jobset->recovery.ladder.best_step > jobset->recovery.crashes.best_step;
}

void backoff_begin(const struct step *step, struct jobset *jobset, const struct task *culprit)
{
    CHECK(!culprit || culprit->job->jobset == jobset);
    struct crashes *crashes = &jobset->recovery.crashes;
    const struct ladder_settings *settings = &jobset->spec.recovery;
    crashes->due_ns = 0;
    if (!is_crash(culprit))
        return;
    if (got_on(step, jobset, culprit))
        crashes->count = 0;
    crashes->count += crashes->count < INT32_MAX;
    crashes->best_step = jobset->recovery.ladder.best_step;
    if (crashes->count < 2)
        return;
    int64_t wait_ns =
        backoff_wait(settings->backoff_first_ns, settings->backoff_max_ns, (uint32_t)crashes->count - 2);
    crashes->due_ns = wait_ns ? step->now_ns + wait_ns : 0;
}

/* Returns the stamp from which a JobSet may begin again whose restarts follow each other closely; 0: at
 * once. */
static int64_t loop_due(const struct jobset *jobset)
{
    if (jobset->history.record_count < RESTART_RECORDS_MAX)
        return 0;
    for (size_t i = 0; i < RESTART_RECORDS_MAX; i++)
        if (jobset->history.records[i].stepped_ns)
            return 0; /* the JobSet makes progress between restarts, so the failures come from outside */
    _Static_assert(RESTART_RECORDS_MAX > 0, "a window of restarts");
    return restart_back(&jobset->history, RESTART_RECORDS_MAX - 1)->fault_ns + RESTART_WINDOW_NS;
}

int64_t attempt_due(const struct jobset *jobset)
{
    int64_t due_ns = loop_due(jobset);
    due_ns = jobset->recovery.ladder.wait_ns > due_ns ? jobset->recovery.ladder.wait_ns : due_ns;
    return jobset->recovery.crashes.due_ns > due_ns ? jobset->recovery.crashes.due_ns : due_ns;
}
