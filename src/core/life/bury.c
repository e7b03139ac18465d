/* bury.c - the release of removed objects, and the renumbering of machines. */
#include "core/job/folder.h"
#include "core/life/internal.h"
#include "core/gang/trial.h"
#include "core/sched/capacity.h"

static void free_task(struct task *task)
{
    arena_done(&task->containers_arena);
    user_meta_free(task->meta);
    arena_done(&task->arena);
    mem_free(task);
}

static void free_job(struct job *job)
{
    for (size_t i = 0; i < job->tasks.len; i++)
        free_task(job->tasks.items[i]);
    for (size_t i = 0; i < job->spares.len; i++)
        free_task(job->spares.items[i]);
    vec_done(&job->tasks);
    vec_done(&job->spares);
    mem_free(job->indexes);
    user_meta_free(job->meta);
    arena_done(&job->arena);
    mem_free(job);
}

void store_free_gang(struct gang *gang)
{
    vec_done(&gang->tasks);
    buf_done(&gang->why_text);
    preflight_free(gang->preflight);
    mem_free(gang);
}

static void free_jobset(struct jobset *jobset)
{
    heap_done(&jobset->work.timers); /* resets the heap's contents */
    for (uint32_t i = 0; i < jobset->job_count; i++)
        if (jobset->jobs[i])
            free_job(jobset->jobs[i]);
    for (size_t i = 0; i < jobset->old_jobs.len; i++)
        free_job(jobset->old_jobs.items[i]);
    for (size_t i = 0; i < jobset->gangs.len; i++)
        store_free_gang(jobset->gangs.items[i]);
    for (int kind = 0; kind < CONDITION_KINDS; kind++)
        mem_free(jobset->conditions[kind].reason);
    vec_done(&jobset->old_jobs);
    vec_done(&jobset->work.dirty);
    vec_done(&jobset->work.uncounted);
    vec_done(&jobset->work.starts);
    vec_done(&jobset->gangs);
    vec_done(&jobset->recovery.absence.replicas);
    jobset_unbind(jobset);
    for (size_t i = 0; jobset->history.records && i < RESTART_RECORDS_MAX; i++)
        restart_record_done(&jobset->history.records[i]);
    mem_free(jobset->history.records);
    ladder_done(&jobset->recovery.ladder);
    incident_done(&jobset->recovery.incident);
    end_signatures_done(&jobset->history.signatures);
    end_faults_done(&jobset->history.faults);
    pace_done(&jobset->pace);
    mem_free(jobset->history.suspects);
    mem_free(jobset->grant.reserved);
    arena_done(&jobset->grant.arena);
    arena_done(&jobset->entry.stems);
    arena_done(&jobset->foreign.arena);
    mem_free((char *)jobset->key.data);
    arena_done(&jobset->arena);
    mem_free(jobset);
}

void jobs_bury(struct job_store *store)
{
    for (size_t i = 0; i < store->dead_tasks.len; i++)
        free_task(store->dead_tasks.items[i]);
    for (size_t i = 0; i < store->dead_jobs.len; i++)
        free_job(store->dead_jobs.items[i]);
    for (size_t i = 0; i < store->dead_gangs.len; i++)
        store_free_gang(store->dead_gangs.items[i]);
    for (size_t i = 0; i < store->dead_jobsets.len; i++)
        free_jobset(store->dead_jobsets.items[i]);
    for (size_t i = 0; i < store->dead_arenas.len; i++)
        arena_done(&store->dead_arenas.items[i]);
    vec_clear(&store->dead_tasks);
    vec_clear(&store->dead_jobs);
    vec_clear(&store->dead_gangs);
    vec_clear(&store->dead_jobsets);
    vec_clear(&store->dead_arenas);
}

void job_store_done(struct job_store *store)
{
    jobs_bury(store);
    heap_done(&store->timers); /* these calls reset the contents */
    heap_done(&store->whys);
    sched_queue_done(&store->queue);
    for (size_t i = 0; i < store->jobsets.len; i++)
        free_jobset(store->jobsets.items[i]);
    vec_done(&store->jobsets);
    vec_done(&store->dirty);
    vec_done(&store->lacking);
    vec_done(&store->touched);
    vec_done(&store->config_waiters);
    folders_done(store);
    vec_done(&store->preflights);
    vec_done(&store->testing);
    vec_done(&store->reserving);
    vec_done(&store->reserved_anew);
    CHECK(store->verdicts.len == 0);
    vec_done(&store->verdicts);
    vec_done(&store->dead_tasks);
    vec_done(&store->dead_jobs);
    vec_done(&store->dead_gangs);
    vec_done(&store->dead_jobsets);
    vec_done(&store->dead_arenas);
    mem_free(store->machine_tasks);
    str_map_done(&store->by_name);
    u64_map_done(&store->by_uid);
    str_map_done(&store->task_names);
    str_map_done(&store->job_names);
    str_map_done(&store->job_stems);
    u64_map_done(&store->tasks);
    capacity_free(store->capacity);
    *store = (struct job_store){0};
}

void jobs_bind_machines(struct job_store *store, size_t machine_count)
{
    mem_free(store->machine_tasks);
    store->machine_tasks = mem_alloc(machine_count * sizeof(*store->machine_tasks));
    store->machine_count = machine_count;
    capacity_forget(store->capacity);
    for (size_t i = 0; i < machine_count; i++)
        list_init(&store->machine_tasks[i]);
    for (size_t i = 0; i < store->jobsets.len; i++) {
        struct jobset *jobset = store->jobsets.items[i];
        for (size_t g = 0; g < jobset->gangs.len; g++) {
            struct gang *gang = jobset->gangs.items[g];
            for (size_t t = 0; t < gang->tasks.len; t++) {
                struct task *task = gang->tasks.items[t];
                if (task_ended(task->state) || task->machine == MACHINE_NONE)
                    continue;
                CHECK(task->machine < machine_count); /* a machine with tasks stays in the inventory */
                list_append(&store->machine_tasks[task->machine], &task->on_machine);
            }
        }
    }
}

static machine_id mapped(machine_id machine, const machine_id *map)
{
    return machine == MACHINE_NONE ? MACHINE_NONE : map[machine];
}

static void remap_job(struct job *job, const machine_id *map)
{
    for (size_t t = 0; job && t < job->tasks.len; t++)
        job->tasks.items[t]->machine = mapped(job->tasks.items[t]->machine, map);
    for (size_t s = 0; job && s < job->spares.len; s++)
        job->spares.items[s]->machine = mapped(job->spares.items[s]->machine, map);
}

void jobs_remap_machines(struct job_store *store, const machine_id *map)
{
    for (size_t i = 0; i < store->jobsets.len; i++) {
        struct jobset *jobset = store->jobsets.items[i];
        struct move *move = &jobset->recovery.move;
        for (uint32_t j = 0; j < jobset->job_count; j++)
            remap_job(jobset->jobs[j], map);
        for (size_t j = 0; j < jobset->old_jobs.len; j++)
            remap_job(jobset->old_jobs.items[j], map);
        for (size_t s = 0; s < jobset->history.suspect_count; s++)
            jobset->history.suspects[s] = mapped(jobset->history.suspects[s], map);
        for (uint32_t s = 0; s < jobset->slots.count; s++)
            jobset->slots.last_machines[s] = mapped(jobset->slots.last_machines[s], map);
        if (move->state != MOVE_NONE)
            move->machine = mapped(move->machine, map);
        jobset_remap_reserved(store, jobset, map);
    }
    jobs_look_at_reserved(store);
    preflight_remap(store, map);
}
