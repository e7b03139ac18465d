/* shrink.c - whole data-parallel replicas leave a JobSet for lack of machines, and return
 * (docs/recovery.md, rung 4).
 *
 * The world is divided into replicas of phalanx.dev/replica-size consecutive ranks. While the whole JobSet is
 * to run again (inplace.c), some ranks may have no place: they fit nowhere, or the previous rung's time has
 * expired. Their incomplete replicas become *absent*. The others continue as a smaller world with contiguous
 * ranks, under the attempt that was prepared. At least phalanx.dev/min-replicas stay.
 *
 * The remaining tasks of an absent replica stand by: its processes wait for the next Rejoin, parked tasks
 * keep their chips, and missing tasks are in the queue. One machine is therefore enough for its return. An
 * absent replica fails no other task: a process that ends is parked, and a lost task is replaced. Its chips
 * belong to the owner `restarting`, in a gang for each replica.
 *
 * A complete replica returns by a planned change: a new attempt without a loss. It returns no earlier than
 * SETTLE_NS after replicas left and GROW_EVERY_NS after others returned, and only if every rank has made a
 * step in between.
 */
#include "core/recover/internal.h"

#include "core/words/limits.h"

#define SETTLE_NS     (10 * NS_PER_SECOND)
#define GROW_EVERY_NS (60 * NS_PER_SECOND)

/* --- missing replicas ------------------------------------------------------------------------- */

typedef VEC(uint32_t) replica_list;

/* Returns whether the task has its place and waits there for the next attempt or for its start. */
static bool is_there(const struct task *task)
{
    bool tested = task->state == TASK_PLACED && task->gang && !task->gang->preflight;
    return tested || (task->state == TASK_RUNNING && task->keep == KEEP_WAITS);
}

/* Returns whether a placement of the task was tried and failed. */
static bool lacks_room(const struct task *task)
{
    return task && task->state == TASK_PENDING && task->gang && task->gang->why.len > 0;
}

/* The ranks of a JobSet that is to run again. */
struct look {
    replica_list missing; /* replicas with missing ranks, ascending */
    bool settled;         /* no task is ending or starting that would have to be awaited */
    bool more;            /* some of the missing replicas took part */
    bool no_room;         /* each missing rank of those replicas lacks room */
};

static void look_at_rank(struct look *look, const struct jobset *jobset, const struct job *job,
                         uint32_t index, uint32_t replica)
{
    const struct task *task = job->indexes[index].task;
    if (job->indexes[index].failed || (task && is_there(task)))
        return;
    bool ends = task && !task_ended(task->state) && task->state != TASK_PENDING && task->state != TASK_PLACED;
    look->settled &= !ends;
    if (!look->missing.len || look->missing.items[look->missing.len - 1] != replica)
        vec_push(&look->missing, replica);
    if (replica_is_away(&jobset->recovery.absence, replica))
        return;
    look->more = true;
    look->no_room &= lacks_room(task);
}

/* Fills in *ret. Returns false if the JobSet has no replicas, or a Job that is not active. */
static bool look_at(struct look *ret, const struct jobset *jobset)
{
    uint32_t size = replica_size(jobset), rank = 0;
    *ret = (struct look){.settled = true, .no_room = true};
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        if (!size || !job || job->state != JOB_ACTIVE)
            return false;
        for (uint32_t index = 0; index < job_index_count(job->rjob); index++)
            look_at_rank(ret, jobset, job, index, rank++ / size);
    }
    return true;
}

/* --- leaving ---------------------------------------------------------------------------------- */

static bool belongs(const struct task *task, const struct gang *gang, uint32_t replica)
{
    uint32_t world;
    return task->gang == gang && !task_ended(task->state) && !task->job->doomed && !task_is_spare(task) &&
           task_full_rank(task, &world) / task->job->jobset->recovery.absence.size == replica;
}

static uint32_t count_of(const struct gang *gang, uint32_t replica)
{
    uint32_t count = 0;
    for (size_t t = 0; t < gang->tasks.len; t++)
        count += belongs(gang->tasks.items[t], gang, replica);
    return count;
}

/* Moves the replica's tasks to a new gang, which is placed and booked separately. */
static void split(struct step *step, struct gang *gang, uint32_t replica)
{
    CHECK(gang->state != GANG_ENDED && !gang->preflight);
    struct jobset *jobset = gang->jobset;
    struct gang *made = mem_alloc(sizeof(*made));
    int64_t chips = 0;
    made->uid = made->queued.id = step_uid(step);
    made->jobset = jobset;
    made->attempt = gang->attempt;
    made->state = gang->state;
    made->mixed_plus_1 = gang->mixed_plus_1;
    made->replaces = true;
    made->told = gang->told;
    made->queued.priority = gang->queued.priority;
    made->queued.submitted_ns = gang->queued.submitted_ns;
    made->queued_ns = gang->queued_ns;
    made->placed_ns = gang->placed_ns;
    made->running_ns = gang->running_ns;
    buf_add_str(&made->why_text, gang->why);
    made->why = buf_str(&made->why_text);
    for (size_t t = 0; t < gang->tasks.len; t++) {
        struct task *task = gang->tasks.items[t];
        if (!belongs(task, gang, replica))
            continue;
        chips += gang->state == GANG_QUEUED ? task->asked_chips : __builtin_popcountll(task->chips);
        made->alive++;
        made->waiting += !task->counted;
        gang_leave(task);
        task->gang = made;
        vec_push(&made->tasks, task);
    }
    CHECK(made->alive < gang->alive && made->waiting <= gang->waiting);
    gang->alive -= made->alive;
    gang->waiting -= made->waiting;
    gang_judge_anew(gang);
    gang_thin(gang);
    ledger_account_split(&gang->account, chips, step_now_us(step), &made->account);
    vec_push(&jobset->gangs, made);
    if (made->state == GANG_QUEUED)
        sched_queue_add(&step->jobs->queue, &made->queued);
    step->schedule |= made->state == GANG_QUEUED;
}

void shrink_divide(struct step *step, struct jobset *jobset)
{
    for (size_t g = 0; g < jobset->gangs.len; g++) /* split() appends gangs, each of one replica */
        for (size_t i = 0; i < jobset->recovery.absence.replicas.len; i++) {
            struct gang *gang = jobset->gangs.items[g];
            uint32_t replica = jobset->recovery.absence.replicas.items[i], count = count_of(gang, replica);
            if (count > 0 && count < gang->alive && gang->state != GANG_ENDED && !gang->preflight)
                split(step, gang, replica);
        }
}

static void rank_anew(struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++)
            if (!task_ended(job->tasks.items[t]->state))
                task_rank(job->tasks.items[t]);
        if (job)
            job_touch(job);
    }
}

static bool same_replicas(const struct absence *absence, const replica_list *list)
{
    return absence->replicas.len == list->len &&
           (list->len == 0 ||
            memcmp(absence->replicas.items, list->items, list->len * sizeof(*list->items)) == 0);
}

/* Books the chips of absent replicas, which make no steps, as restarting. One of their gangs may have come to
 * run when the losses of this step were answered. */
static void book_absent(struct step *step, struct jobset *jobset)
{
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        struct gang *gang = jobset->gangs.items[i];
        if (gang->account.owner == OWNER_UNKEPT && gang_is_away(gang))
            gang_book(step, gang, OWNER_RESTARTING);
    }
}

/* Makes exactly these replicas absent. Takes over the list. */
static void change(struct step *step, struct jobset *jobset, replica_list *missing)
{
    CHECK(jobset_parks(jobset));
    struct absence *absence = &jobset->recovery.absence;
    if (same_replicas(absence, missing)) {
        vec_done(missing);
        return;
    }
    size_t before = absence->replicas.len;
    absence->size = replica_size(jobset);
    vec_done(&absence->replicas);
    absence->replicas.items = missing->items;
    absence->replicas.len = missing->len;
    absence->replicas.cap = missing->cap;
    *missing = (replica_list){0};
    absence->since_ns = absence->replicas.len == 0 ? 0 : before == 0 ? step->now_ns : absence->since_ns;
    int64_t grow_ns = step->now_ns + (absence->replicas.len < before ? GROW_EVERY_NS : SETTLE_NS);
    absence->grow_ns = grow_ns > absence->grow_ns ? grow_ns : absence->grow_ns;
    shrink_divide(step, jobset);
    rank_anew(jobset);
    book_absent(step, jobset);
    uint32_t all = jobset_replicas(jobset), here = all - (uint32_t)absence->replicas.len;
    if (absence->replicas.len < before)
        step_note(step, false, "Grown", ref_jobset(jobset), "goes on with %u of %u replicas as attempt %d",
                  here, all, jobset->attempt);
    else
        step_note(step, true, "Shrunk", ref_jobset(jobset),
                  "goes on with %u of %u replicas as attempt %d: the others have no place", here, all,
                  jobset->attempt);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

/* Returns whether the ladder allows more replicas to leave, and begins the rung if so. */
static bool takes_rung(struct step *step, struct jobset *jobset, const struct look *look)
{
    CHECK(jobset_parks(jobset) && look->missing.len > 0);
    bool decided = jobset->recovery.ladder.rung == RUNG_SHRINK;
    if (!shrink_is_allowed(jobset) || shrink_lacks(jobset, look->missing.len) ||
        (!look->no_room && !jobset->recovery.absence.overdue && !decided))
        return false;
    struct recovery recovery = recovery_ask(step, jobset, (struct trouble){.kind = TROUBLE_NO_ROOM});
    if (recovery.rung == RUNG_SHRINK && !decided)
        recovery_begin(step, jobset, &recovery, false);
    return decided || recovery.rung == RUNG_SHRINK;
}

bool shrink_settle(struct step *step, struct jobset *jobset)
{
    CHECK(jobset_parks(jobset));
    struct look look;
    if (shrink_deadline(jobset) <= step->now_ns)
        jobset->recovery.absence.overdue = true;
    bool can = look_at(&look, jobset) && look.settled && (!look.more || takes_rung(step, jobset, &look));
    if (can)
        change(step, jobset, &look.missing);
    vec_done(&look.missing);
    return can;
}

int64_t shrink_deadline(const struct jobset *jobset)
{
    const struct absence *absence = &jobset->recovery.absence;
    if (!jobset_parks(jobset))
        return absence->replicas.len && absence->grow_ns ? absence->grow_ns : INT64_MAX;
    if (absence->overdue || !shrink_is_allowed(jobset) || !replica_size(jobset))
        return INT64_MAX;
    return jobset->recovery.since_ns + jobset->spec.recovery.limit_ns[RUNG_REPLACE_MACHINE];
}

void shrink_some_through(struct jobset *jobset)
{
    for (uint32_t i = 0; jobset->recovery.absence.replicas.len && i < jobset->job_count; i++)
        if (jobset->jobs[i])
            job_touch(jobset->jobs[i]);
}

/* --- returning -------------------------------------------------------------------------------- */

/* Returns whether every participating rank can rejoin another attempt, and has made a step of this one. */
static bool all_go_on(const struct jobset *jobset)
{
    if (jobset_keeps(jobset) && jobset->progress.attempt >= 0)
        return false;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (uint32_t index = 0; job && index < job_index_count(job->rjob); index++) {
            const struct task *task = job->indexes[index].task;
            bool away = task && task_is_away(task);
            if (job->indexes[index].failed) /* this rank is never tried again, and no other waits for it */
                continue;
            if (!task || (!away && (!recovery_keeps(task) || task->keep != KEEP_NO)))
                return false;
        }
    }
    return true;
}

/* Returns whether no rank that is not away has a place, so that a change disturbs no process. */
static bool nobody_takes_part(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (uint32_t index = 0; job && index < job_index_count(job->rjob); index++) {
            const struct task *task = job->indexes[index].task;
            bool counts = !job->indexes[index].failed && !(task && task_is_away(task));
            if (counts && !lacks_room(task))
                return false;
        }
    }
    return true;
}

/* Returns whether at least one absent replica is complete. */
static bool some_are_back(const struct jobset *jobset)
{
    CHECK(jobset->recovery.absence.size > 0);
    uint32_t size = jobset->recovery.absence.size, rank = 0;
    size_t gone = 0;
    uint32_t last = UINT32_MAX;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        if (!job || job->state != JOB_ACTIVE)
            return false;
        for (uint32_t index = 0; index < job_index_count(job->rjob); index++, rank++) {
            const struct task *task = job->indexes[index].task;
            uint32_t replica = rank / size;
            if (replica == last || !replica_is_away(&jobset->recovery.absence, replica) ||
                (task && is_there(task)))
                continue;
            last = replica;
            gone++;
        }
    }
    return gone < jobset->recovery.absence.replicas.len;
}

void shrink_look(struct step *step, struct jobset *jobset)
{
    struct absence *absence = &jobset->recovery.absence;
    if (absence->replicas.len == 0 || jobset_parks(jobset)) /* shrink_deadline: no timer runs then */
        return;
    if (absence->grow_ns <= step->now_ns)
        absence->grow_ns = 0;
    if (absence->grow_ns || jobset_finished(jobset) || jobset_suspends(jobset) || jobset->deleted_ns ||
        jobset->recovery.move.state != MOVE_NONE || inplace_has_succeeded(jobset) || !some_are_back(jobset) ||
        !(all_go_on(jobset) || nobody_takes_part(jobset)))
        return;
    inplace_begin_planned(step, jobset, "Grown", "replicas that were away are whole again");
}

/* Returns whether a participating rank of the orphaned Job has ended. */
static bool some_have_ended(const struct job *job)
{
    CHECK(job->jobset->recovery.absence.size > 0);
    const struct absence *absence = &job->jobset->recovery.absence;
    for (uint32_t index = 0; index < job_index_count(job->rjob); index++) {
        const struct task *task = job->indexes[index].task;
        if (!replica_is_away(absence, index / absence->size) && (!task || task_ended(task->state)))
            return true;
    }
    return false;
}

void shrink_part(struct step *step, struct job *job)
{
    struct jobset *jobset = job->jobset;
    if (!job_is_hidden(job) || jobset->recovery.absence.replicas.len == 0 || jobset_parks(jobset) ||
        !some_have_ended(job))
        return;
    for (uint32_t index = 0; index < job_index_count(job->rjob); index++) {
        struct task *task = job->indexes[index].task;
        if (task && task_is_away(task))
            task_stop(step, task, true, job->rjob->job.pod.grace_s * NS_PER_SECOND);
    }
}

bool shrink_restored(const struct jobset *jobset)
{
    const struct absence *absence = &jobset->recovery.absence;
    if (absence->replicas.len == 0)
        return true;
    for (size_t i = 1; i < absence->replicas.len; i++)
        if (absence->replicas.items[i - 1] >= absence->replicas.items[i])
            return false;
    return absence->size > 0 && absence->size <= TASKS_PER_JOBSET_MAX && absence->since_ns > 0 &&
           absence->replicas.items[absence->replicas.len - 1] < TASKS_PER_JOBSET_MAX / absence->size;
}

void shrink_check(const struct jobset *jobset)
{
    const struct absence *absence = &jobset->recovery.absence;
    CHECK(shrink_restored(jobset) && (absence->replicas.len > 0) == (absence->since_ns > 0));
    for (size_t g = 0; absence->replicas.len && g < jobset->gangs.len; g++) {
        const struct gang *gang = jobset->gangs.items[g];
        for (size_t t = 0; t < gang->tasks.len; t++) {
            const struct task *task = gang->tasks.items[t];
            bool away = !task_ended(task->state) && task_is_away(task);
            CHECK(task->rank < task->world || task_is_spare(task));
            CHECK(!away || gang->account.owner != OWNER_UNKEPT); /* an absent replica makes no steps */
        }
    }
}
