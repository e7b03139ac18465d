/* ranks.c - the ranks of tasks, in the full world and without absent replicas (recover/shrink.c). */
#include "core/job/facts.h"

#include "base/hash.h"
#include "core/words/limits.h"

enum { PORT_FIRST = 20000, PORT_PAIRS = 5000 };
_Static_assert(PORT_FIRST + 2 * PORT_PAIRS < 32768, "below the ports that kernels hand out by themselves");

bool replica_is_away(const struct absence *absence, uint32_t replica)
{
    for (size_t i = 0; i < absence->replicas.len; i++)
        if (absence->replicas.items[i] == replica)
            return true;
    return false;
}

/* Returns the rank of the Job's index in the full world. */
static uint32_t place_full_rank(const struct job *job, uint32_t index, uint32_t *ret_world)
{
    const struct jobset_spec *spec = &job->jobset->spec;
    CHECK(job->rjob_index < spec->rjob_count);
    uint32_t world = 0, rank = 0;
    for (size_t r = 0; r < spec->rjob_count; r++) {
        const struct rjob_spec *rjob = &spec->rjobs[r];
        if (!str_equal(rjob->group, job->rjob->group))
            continue;
        uint32_t each =
            (uint32_t)(rjob->job.completions >= 0 ? rjob->job.completions : rjob->job.parallelism);
        if (r < job->rjob_index)
            rank += each * (uint32_t)rjob->replicas;
        else if (r == job->rjob_index)
            rank += each * job->index + index;
        world += each * (uint32_t)rjob->replicas;
    }
    *ret_world = world;
    return rank;
}

uint32_t task_full_rank(const struct task *task, uint32_t *ret_world)
{
    return place_full_rank(task->job, (uint32_t)task->index, ret_world);
}

static bool place_is_away(const struct job *job, uint32_t index)
{
    const struct absence *absence = &job->jobset->recovery.absence;
    uint32_t world;
    return absence->replicas.len > 0 && !job->doomed &&
           replica_is_away(absence, place_full_rank(job, index, &world) / absence->size);
}

bool task_is_away(const struct task *task)
{
    return !task_is_spare(task) && place_is_away(task->job, (uint32_t)task->index);
}

bool gang_is_away(const struct gang *gang)
{
    if (gang->jobset->recovery.absence.replicas.len == 0)
        return false;
    for (size_t t = 0; t < gang->tasks.len; t++)
        if (!task_ended(gang->tasks.items[t]->state))
            return task_is_away(gang->tasks.items[t]);
    return false;
}

uint32_t shrink_away_in(const struct job *job)
{
    uint32_t count = 0, places = job->jobset->recovery.absence.replicas.len ? job_index_count(job->rjob) : 0;
    for (uint32_t i = 0; i < places; i++) /* includes ranks whose task is yet to be made */
        count += !job->indexes[i].succeeded && !job->indexes[i].failed && place_is_away(job, i);
    return count;
}

/* Returns the number of the replica's ranks in the full world. */
static uint32_t ranks_in(uint32_t replica, uint32_t size, uint32_t world)
{
    CHECK(size > 0);
    uint64_t first = (uint64_t)replica * size;
    return first >= world ? 0 : world - first < size ? world - (uint32_t)first : size;
}

uint32_t shrink_rank(const struct jobset *jobset, uint32_t full, uint32_t full_world, uint32_t *ret_world)
{
    const struct absence *absence = &jobset->recovery.absence;
    CHECK(absence->size > 0 || absence->replicas.len == 0);
    uint32_t before = 0, away = 0;
    bool self = false;
    for (size_t i = 0; i < absence->replicas.len; i++) {
        uint32_t replica = absence->replicas.items[i], ranks = ranks_in(replica, absence->size, full_world);
        if (full / absence->size == replica) {
            self = true;
            before += full % absence->size; /* ranks of absent replicas before it */
        } else if (replica < full / absence->size) {
            before += ranks;
        }
        away += ranks;
    }
    CHECK(away <= full_world && before <= full);
    *ret_world = self ? full_world : full_world - away;
    return self ? full_world - away + before : full - before;
}

uint32_t jobset_replicas(const struct jobset *jobset)
{
    uint32_t size = replica_size(jobset), world = 0;
    for (size_t r = 0; size && r < jobset->spec.rjob_count; r++)
        world += job_index_count(&jobset->spec.rjobs[r]) * (uint32_t)jobset->spec.rjobs[r].replicas;
    return size ? world / size : 0;
}

uint32_t task_present_rank(const struct task *task)
{
    uint32_t full_world, world, full = task_full_rank(task, &full_world);
    return shrink_rank(task->job->jobset, full, full_world, &world);
}

/* The world consists of the tasks of the JobSet's group in spec order, without absent replicas. */
void task_rank(struct task *task)
{
    const struct job *job = task->job;
    uint32_t world, rank = task_full_rank(task, &world);
    CHECK((rank < world || task_is_spare(task)) && world <= TASKS_PER_JOBSET_MAX);
    task->rank = task->world = world; /* the rank of a spare is no one's */
    if (!task_is_spare(task))
        task->rank = shrink_rank(job->jobset, rank, world, &task->world);
    uint64_t hash = hash_mix(job->jobset->uid * 31 + (uint64_t)job->jobset->attempt);
    hash = hash64(hash, job->rjob->group.data, job->rjob->group.len);
    task->port = (uint16_t)(PORT_FIRST + 2 * (hash % PORT_PAIRS));
}

void shrink_forget(struct jobset *jobset)
{
    vec_done(&jobset->recovery.absence.replicas);
    jobset->recovery.absence = (struct absence){0};
}
