/* timers.c - the timers of JobSets: each is set to the earliest deadline of the JobSet's recovery, its Jobs
 * and its TTL. */
#include "core/recover/internal.h"

/* Returns the stamp at which the JobSet, or one of its Jobs, has to be reconciled again, or INT64_MAX. */
static int64_t jobset_due_ns(const struct jobset *jobset)
{
    int64_t due_ns = INT64_MAX;
    if (jobset_finished(jobset) && jobset->spec.ttl_s >= 0 && !jobset->deleted_ns && !jobset->hidden)
        due_ns = jobset->finished_ns + jobset->spec.ttl_s * NS_PER_SECOND;
    bool managed = !jobset_finished(jobset) && !jobset->deleted_ns && !jobset->hidden;
    bool held = jobset->history.record_count >= RESTART_RECORDS_MAX || jobset->recovery.ladder.wait_ns ||
                jobset->recovery.crashes.due_ns;
    if (managed && held && jobset_wants_jobs(jobset))
        due_ns = attempt_due(jobset);
    int64_t parked_ns = inplace_deadline(jobset), move_ns = managed ? move_deadline(jobset) : INT64_MAX;
    int64_t suspend_grace_ns = managed ? suspend_deadline(jobset) : INT64_MAX;
    due_ns = suspend_grace_ns < due_ns ? suspend_grace_ns : due_ns;
    due_ns = parked_ns < due_ns ? parked_ns : due_ns;
    due_ns = move_ns < due_ns ? move_ns : due_ns;
    const struct heap_node *node = heap_min(&jobset->work.timers);
    return node && node->key < due_ns ? node->key : due_ns;
}

void jobset_set_timer(struct job_store *store, struct jobset *jobset)
{
    if (heap_has(&jobset->entry.timer))
        heap_remove(&store->timers, &jobset->entry.timer);
    jobset->entry.timer.key = jobset_due_ns(jobset);
    jobset->entry.timer.tie = jobset->uid;
    if (jobset->entry.timer.key != INT64_MAX)
        heap_insert(&store->timers, &jobset->entry.timer);
}

void jobs_set_timers(struct job_store *store)
{
    CHECK(!heap_min(&store->timers));
    for (size_t i = 0; i < store->jobsets.len; i++)
        jobset_set_timer(store, store->jobsets.items[i]);
}

void jobs_check_timers(const struct job_store *store)
{
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        int64_t due_ns = jobset_due_ns(jobset);
        CHECK(heap_has(&jobset->entry.timer) == (due_ns != INT64_MAX));
        CHECK(due_ns == INT64_MAX || jobset->entry.timer.key == due_ns);
        for (uint32_t j = 0; j < jobset->job_count; j++) {
            const struct job *job = jobset->jobs[j];
            CHECK(!job || !job->spare_due_ns || job_goes_on(job));
            due_ns = job ? job_due_ns(job) : INT64_MAX;
            CHECK(!job || heap_has(&job->timer) == (due_ns != INT64_MAX));
            CHECK(due_ns == INT64_MAX || job->timer.key == due_ns);
        }
        for (size_t j = 0; j < jobset->old_jobs.len; j++)
            CHECK(!heap_has(&jobset->old_jobs.items[j]->timer) && !jobset->old_jobs.items[j]->spare_due_ns);
        for (size_t g = 0; g < jobset->gangs.len; g++) {
            const struct gang *gang = jobset->gangs.items[g];
            due_ns = gang_why_due_ns(gang);
            CHECK(heap_has(&gang->why_timer) == (due_ns != INT64_MAX));
            CHECK(due_ns == INT64_MAX || gang->why_timer.key == due_ns);
        }
    }
}

void jobs_tick(struct step *step)
{
    struct heap_node *node;
    while ((node = heap_min(&step->jobs->timers)) && node->key <= step->now_ns) {
        struct jobset *jobset = container_of(node, struct jobset, entry.timer);
        heap_remove(&step->jobs->timers, node);
        jobset_mark(step, jobset);
    }
    gangs_say_due(step);
}

int64_t jobs_deadline(const struct job_store *store)
{
    struct heap_node *node = heap_min(&store->timers), *why = heap_min(&store->whys);
    int64_t due_ns = node ? node->key : INT64_MAX;
    return why && why->key < due_ns ? why->key : due_ns;
}
