/* peers.c - reports of ranks about their peers: a broken connection to a peer is evidence about the peer's
 * machine, weaker than its tethers, stronger than silence. The evidence counts only while the machine's agent
 * is away, and only when every task that may live there has been reported. It is about one process: a task
 * with several processes, or with one that may run again in its place, can survive. If older processes of the
 * same attempt may have lived when the gang was formed, a report may be about one of those, so none
 * counts. */
#include "core/recover/internal.h"

/* Returns whether no other task can have had the task's rank in the reporter's attempt. Either both were
 * placed together, or the task is older than the attempt: a rank that was kept, or a spare that got a
 * rank. */
static bool has_only_had(const struct task *reporter, const struct task *task)
{
    return task->gang && (task->gang == reporter->gang || task->began_attempt < task->attempt);
}

/* Returns the peer with that rank in the reporter's attempt. Returns NULL if there is none, if the peer
 * joined later, or if it waits to run again in its place, so that the report is about its earlier process. An
 * ended task keeps its rank number, which another task may have by now. */
static struct task *peer_of(const struct task *reporter, uint32_t rank)
{
    const struct jobset *jobset = reporter->job->jobset;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        if (!job || !str_equal(job->rjob->group, reporter->job->rjob->group))
            continue;
        for (uint32_t s = 0; s < job->index_count; s++) {
            struct task *task = job->indexes[s].task;
            if (task && task->rank == rank && !task_ended(task->state) && !task_is_dead(task) &&
                !task->parked && has_only_had(reporter, task) && task->attempt == reporter->attempt)
                return task;
        }
    }
    return NULL;
}

void peers_report_gone(struct step *step, struct task *reporter, uint32_t rank)
{
    if (task_is_spare(reporter))
        return;
    step_note(step, true, "PeerGone", ref_task(reporter), "rank %u lost its connection to rank %u",
              reporter->rank, rank);
    bool mixed = reporter->gang && reporter->gang->mixed_plus_1 == (uint32_t)reporter->attempt + 1;
    struct task *gone = reporter->job->doomed || mixed ? NULL : peer_of(reporter, rank);
    if (!gone || gone == reporter || gone->machine == MACHINE_NONE)
        return;
    CHECK(gone->machine < step->cluster->machine_count);
    gone->peers_lost = true;
    rejoin_note_apart(step, reporter);
    step->suspect = gone->machine;
}

bool jobs_peers_say_lost(const struct job_store *store, const struct machine *machine)
{
    bool any = false;
    if (machine->state != MACHINE_AWAY)
        return false;
    list_for_each(node, &store->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (task->state < TASK_STARTING || task_is_spare(task))
            continue;
        if (!task->peers_lost || !task_is_plain(task))
            return false;
        CHECK(!task_ended(task->state)); /* the list has living tasks only */
        any = true;
    }
    return any;
}
