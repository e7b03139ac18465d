/* unjoined.c - processes that run and do not join their gang, though their peers have. libphalanx waits for
 * all ranks, so one that cannot reach its agent holds up the rest for ever, and the rank that gives up first
 * is the wrong one to blame.
 *
 * Only Jobs that are known to use libphalanx are judged: at least as many of the Job's ranks must have joined
 * as are late. A rank is late when spec.settings.hangs.join has passed since its own start and since the
 * newest join of its JobSet; when a peer gives up waiting, GIVEN_UP_NS are enough. The machine of a late rank
 * gets the fault UNJOINED_FAULT, and the rank is ended, to run elsewhere. A JobSet that blamed a machine
 * recently blames no other: if ranks do not join on two machines, the program is at fault. */
#include "core/health/fault.h"
#include "core/recover/internal.h"

#define GIVEN_UP_NS (10 * NS_PER_SECOND)
#define BLAMES_NS   (3600 * NS_PER_SECOND)

static int64_t join_limit_ns(const struct step *step)
{
    return step->cluster->policy.hangs.join_ns;
}

static bool counts(const struct jobset *jobset, const struct task *task)
{
    return task->state == TASK_RUNNING && task->attempt == jobset->attempt && !task_is_spare(task) &&
           !task_is_away(task) && !task->doomed;
}

static bool waits(const struct jobset *jobset, const struct task *task)
{
    return counts(jobset, task) && !task->joined && task->keep == KEEP_NO;
}

static int64_t late_at(const struct jobset *jobset, const struct task *task, int64_t limit_ns)
{
    int64_t since_ns = task->started_ns > jobset->recovery.joins.newest_ns ? task->started_ns
                                                                           : jobset->recovery.joins.newest_ns;
    return since_ns + limit_ns;
}

static uint32_t count_joined(const struct jobset *jobset, const struct job *job)
{
    uint32_t joined = 0;
    for (size_t t = 0; t < job->tasks.len; t++)
        joined += counts(jobset, job->tasks.items[t]) && job->tasks.items[t]->joined;
    return joined;
}

static uint32_t count_late(const struct step *step, const struct jobset *jobset, const struct job *job,
                           int64_t limit_ns)
{
    uint32_t late = 0;
    for (size_t t = 0; t < job->tasks.len; t++)
        late += waits(jobset, job->tasks.items[t]) &&
                late_at(jobset, job->tasks.items[t], limit_ns) <= step->now_ns;
    return late;
}

static void blame(struct step *step, struct jobset *jobset, struct task *task, uint32_t joined, bool ends)
{
    CHECK(task->machine < step->cluster->machine_count && !task->joined);
    struct buf why BUF_CLEANUP = {0};
    const struct machine *machine = &step->cluster->machines[task->machine];
    buf_printf(&why,
               "rank %u (" STR_FORMAT
               ") has run for %lld s and has not joined, %u of its peers have: its agent "
               "does not answer it, or it never asks",
               task->rank, STR_ARG(task->name),
               (long long)((step->now_ns - task->started_ns) / NS_PER_SECOND), joined);
    step_note(step, true, "NotJoined", ref_task(task), STR_FORMAT, STR_ARG(buf_str(&why)));
    if (jobset->recovery.joins.blamed_ns && jobset->recovery.joins.blamed_ns != step->now_ns &&
        step->now_ns - jobset->recovery.joins.blamed_ns < BLAMES_NS)
        return;
    jobset->recovery.joins.blamed_ns = step->now_ns;
    struct signal signal =
        signal_now(STR(UNJOINED_FAULT), SIGNAL_ONCE, SEVERITY_MAJOR, buf_str(&why), step->now_ns);
    struct sighting sighting = {.machine = machine->name, .signal = &signal, .job = jobset->uid};
    struct fault *fault = health_signal(step, &sighting);
    if (fault) {
        struct end_fault found;
        end_fault_of(fault, task->started_ns, step->now_ns, &found);
        fault_strike(step, fault, jobset->key);
        ends_strike(step, jobset, &found);
    }
    /* The next attempt may be placed before the machine is out of service. */
    restart_suspect(jobset, task->machine);
    if (ends) /* whatever the breaker decides about the machine */
        jobs_end_hung(step, task, buf_str(&why));
}

static bool blame_late(struct step *step, struct job *job, int64_t limit_ns, bool ends)
{
    struct jobset *jobset = job->jobset;
    uint32_t joined = count_joined(jobset, job), late = count_late(step, jobset, job, limit_ns);
    if (late == 0 || late > joined)
        return false;
    for (size_t t = 0; t < job->tasks.len; t++) {
        struct task *task = job->tasks.items[t];
        if (waits(jobset, task) && late_at(jobset, task, limit_ns) <= step->now_ns)
            blame(step, jobset, task, joined, ends);
    }
    return true;
}

void unjoined_note_join(struct step *step, struct jobset *jobset)
{
    jobset->recovery.joins.newest_ns = step->now_ns;
    if (jobset->recovery.joins.due_ns)
        return;
    jobset->recovery.joins.due_ns = step->now_ns + join_limit_ns(step);
    jobset_mark(step, jobset); /* its timer */
}

int64_t unjoined_deadline(const struct jobset *jobset)
{
    return jobset->recovery.joins.due_ns ? jobset->recovery.joins.due_ns : INT64_MAX;
}

void unjoined_look(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->recovery.joins.due_ns > 0);
    int64_t due_ns = INT64_MAX;
    jobset->recovery.joins.due_ns = 0;
    if (jobset_finished(jobset) || jobset_rests(jobset) || jobset->deleted_ns || jobset->hidden)
        return;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        bool blamed = job && blame_late(step, job, join_limit_ns(step), true);
        for (size_t t = 0; job && !blamed && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            int64_t late_ns = waits(jobset, task) ? late_at(jobset, task, join_limit_ns(step)) : INT64_MAX;
            if (late_ns <= step->now_ns) /* most ranks of the Job are late: a slow start; judge again later */
                late_ns = step->now_ns + join_limit_ns(step);
            due_ns = late_ns < due_ns ? late_ns : due_ns;
        }
    }
    if (due_ns != INT64_MAX)
        jobset->recovery.joins.due_ns = due_ns;
}

void unjoined_given_up(struct step *step, const struct task *task)
{
    struct jobset *jobset = task->job->jobset;
    int64_t limit_ns = join_limit_ns(step) < GIVEN_UP_NS ? join_limit_ns(step) : GIVEN_UP_NS;
    if (incident_is_open(&jobset->recovery.incident)) /* an earlier report of this step explains it */
        return;
    if (jobset->recovery.joins.newest_ns && task->joined && counts(jobset, task) && !jobset_parks(jobset))
        blame_late(step, task->job, limit_ns, false);
}
