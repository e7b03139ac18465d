/* backoff.c - how long a workload that crashes is held back before it runs again.
 *
 * The first crash is answered at once, and so are the acts of infrastructure and of people: a lost
 * machine, an eviction, a fence. A second crash in a row is followed by a wait of backoff_first_ns, each
 * further one by a wait of twice the last, up to backoff_max_ns (recover/ladder.h; annotation
 * phalanx.dev/restart-backoff). So ten lives outlast a file server that is away for half a minute. The row
 * ends with a step beyond all earlier ones, or with a run of LADDER_RUN_NS. Workloads under the ladder
 * wait as recover/ladder.c says instead. */
#include "core/job/internal.h"

#include "base/backoff.h"

static bool is_crash(const struct task *culprit)
{
    return culprit && !culprit->evicted && !culprit->fenced &&
           (culprit->end == END_EXIT || culprit->end == END_START_FAILED);
}

static bool got_on(const struct step *step, const struct jobset *jobset, const struct task *culprit)
{
    bool ran_long = culprit->started_ns && step->now_ns - culprit->started_ns >= LADDER_RUN_NS;
    return ran_long || jobset->recovery.ladder.best_step > jobset->recovery.crashes.best_step;
}

void backoff_begin(const struct step *step, struct jobset *jobset, const struct task *culprit)
{
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
