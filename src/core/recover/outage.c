/* outage.c - the end of all tasks after the controller was away for longer than a lease (limits.h). It is one
 * incident, however many agents report it one after the other.
 *
 * The first reported end after such an outage is taken for the whole JobSet. Every process that was started
 * before the outage counts as fenced, so the whole JobSet begins again at once, and later reports concern
 * processes that are being stopped already. The cause is the outage; no machine is blamed.
 */
#include "core/recover/internal.h"

/* Returns whether the task was fenced during the outage. Tasks that were fenced while the controller was
 * present were declared lost long ago. */
static bool was_fenced(const struct step *step, const struct task_report *report)
{
    return report && report->fenced && report->finished_ns > 0 &&
           report->finished_ns <= step->outage.boot_ns + step->cluster->policy.lease_ns;
}

bool outage_explains(const struct step *step, const struct task_report *report)
{
    return was_fenced(step, report) || (!report && step_is_after(step, step->outage.paused_ns));
}

void outage_ends(struct step *step, struct task *task)
{
    struct jobset *jobset = task->job->jobset;
    struct end_fault found;
    if (task->state == TASK_STOPPING || task->doomed || task->job->doomed)
        return; /* the task was told to end already */
    end_fault_ordered(ORDER_AWAY, STR(""), STR(""),
                      STR("the controller was away for longer than the lease, and tasks end themselves then"),
                      step->now_ns, &found);
    found.domain = DOMAIN_SOFTWARE;
    ends_strike(step, jobset, &found);
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            struct task *other = job->tasks.items[t];
            bool before = other->start_sent_ns && other->start_sent_ns <= step->outage.boot_ns;
            if (before && !task_ended(other->state))
                other->fenced = true;
        }
    }
}
