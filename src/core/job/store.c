#include "core/job/folder.h"
#include "core/job/internal.h"
#include "core/job/trial.h"
#include "core/sched/capacity.h"

#include <stdio.h>

/* Keys of the name indexes are made on the stack for look-ups and kept in the object's arena for entries. */
enum { KEY_MAX = 2 * NAME_MAX_BYTES + 2 };

static struct str key_of(char *buffer, struct str namespace_, struct str name)
{
    if (namespace_.len + name.len + 1 > KEY_MAX)
        return STR("");
    mem_copy(buffer, namespace_.data, namespace_.len);
    buffer[namespace_.len] = '/';
    mem_copy(buffer + namespace_.len + 1, name.data, name.len);
    return (struct str){buffer, namespace_.len + 1 + name.len};
}

struct jobset *jobs_find(const struct job_store *store, struct str namespace_, struct str name)
{
    char buffer[KEY_MAX];
    return str_map_get(&store->by_name, key_of(buffer, namespace_, name));
}

struct jobset *jobs_find_uid(const struct job_store *store, obj_id uid)
{
    return u64_map_get(&store->by_uid, uid);
}

struct task *jobs_find_task(const struct job_store *store, obj_id uid)
{
    return u64_map_get(&store->tasks, uid);
}

struct task *jobs_find_pod(const struct job_store *store, struct str namespace_, struct str name)
{
    char buffer[KEY_MAX];
    return str_map_get(&store->task_names, key_of(buffer, namespace_, name));
}

struct job *jobs_find_job(const struct job_store *store, struct str namespace_, struct str name)
{
    char buffer[KEY_MAX];
    return str_map_get(&store->job_names, key_of(buffer, namespace_, name));
}

void jobs_visit_jobs(const struct job_store *store, void (*visit)(void *context, const struct job *),
                     void *context)
{
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        for (uint32_t j = 0; j < jobset->job_count && jobset->form != FORM_POD; j++)
            if (jobset_seen_job(jobset, j) && !job_is_hidden(jobset_seen_job(jobset, j)))
                visit(context, jobset_seen_job(jobset, j));
    }
}

static void visit_job_tasks(const struct job *job, void (*visit)(void *context, const struct task *),
                            void *context)
{
    for (size_t t = 0; t < job->tasks.len; t++)
        visit(context, job->tasks.items[t]);
    for (size_t s = 0; s < job->spares.len; s++)
        visit(context, job->spares.items[s]);
}

void jobs_visit_tasks(const struct job_store *store, void (*visit)(void *context, const struct task *),
                      void *context)
{
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        for (size_t j = 0; j < jobset->old_jobs.len; j++)
            visit_job_tasks(jobset->old_jobs.items[j], visit, context);
        for (uint32_t j = 0; j < jobset->job_count; j++)
            if (jobset->jobs[j])
                visit_job_tasks(jobset->jobs[j], visit, context);
    }
}

static struct str key_keep(struct arena *arena, struct str namespace_, struct str name)
{
    char buffer[KEY_MAX];
    return arena_str(arena, key_of(buffer, namespace_, name));
}

static bool is_exclusive(const struct jobset *jobset)
{
    for (size_t r = 0; r < jobset->spec.rjob_count; r++)
        if (jobset->spec.rjobs[r].exclusive_topology.len)
            return true;
    return false;
}

static bool names_machine(const struct jobset *jobset)
{
    for (size_t r = 0; r < jobset->spec.rjob_count; r++)
        if (jobset->spec.rjobs[r].job.pod.node_name.len)
            return true;
    return false;
}

void store_count_naming(struct job_store *store, struct jobset *jobset)
{
    store->naming -= jobset->entry.names_machine;
    jobset->entry.names_machine = names_machine(jobset);
    store->naming += jobset->entry.names_machine;
}

/* --- names of Jobs ---------------------------------------------------------------------------- */

/* "namespace/<jobset>-<rjob>": Jobs of two JobSets have equal names only when these are equal. */
static struct str stem_of(struct arena *arena, struct str ns, struct str jobset, struct str rjob)
{
    return arena_printf(arena, STR_FORMAT "/" STR_FORMAT "-" STR_FORMAT, STR_ARG(ns), STR_ARG(jobset),
                        STR_ARG(rjob));
}

/* Returns the JobSet that has, or will have, a Job of this name. */
static const struct jobset *stem_holder(const struct job_store *store, struct str ns, struct str name)
{
    size_t dash = name.len;
    while (dash > 0 && name.data[dash - 1] >= '0' && name.data[dash - 1] <= '9')
        dash--;
    int64_t index;
    if (dash < 2 || name.data[dash - 1] != '-' ||
        !str_to_i64((struct str){name.data + dash, name.len - dash}, 0, INT32_MAX, &index) ||
        (name.len - dash > 1 && name.data[dash] == '0'))
        return NULL;
    char buffer[KEY_MAX];
    struct str stem = {name.data, dash - 1};
    const struct jobset *jobset = str_map_get(&store->job_stems, key_of(buffer, ns, stem));
    for (size_t r = 0; jobset && r < jobset->spec.rjob_count; r++) {
        const struct rjob_spec *rjob = &jobset->spec.rjobs[r];
        if (stem.len == jobset->name.len + 1 + rjob->name.len && str_ends(stem, rjob->name) &&
            index < rjob->replicas)
            return jobset;
    }
    return NULL;
}

bool jobs_names_taken(const struct job_store *store, enum form form, struct str ns, struct str name,
                      const struct jobset_spec *spec, struct arena *arena, struct str *ret_taken)
{
    if (form != FORM_JOBSET) {
        if (form == FORM_POD || (!jobs_find_job(store, ns, name) && !stem_holder(store, ns, name)))
            return false;
        *ret_taken = name;
        return true;
    }
    for (size_t r = 0; r < spec->rjob_count; r++) {
        const struct rjob_spec *rjob = &spec->rjobs[r];
        bool shared = str_map_get(&store->job_stems, stem_of(arena, ns, name, rjob->name));
        for (int32_t i = 0; i < rjob->replicas && (shared || store->own_jobs > 0); i++) {
            struct str job = job_name(arena, name, rjob->name, i);
            if (!jobs_find_job(store, ns, job) && !stem_holder(store, ns, job))
                continue;
            *ret_taken = job;
            return true;
        }
    }
    return false;
}

static void add_stems(struct job_store *store, struct jobset *jobset)
{
    struct arena scratch ARENA_CLEANUP = {0};
    struct str taken;
    store->own_jobs += jobset->form == FORM_JOB;
    if (jobset->form != FORM_JOBSET)
        return;
    jobset->entry.shares_names = jobs_names_taken(store, FORM_JOBSET, jobset->namespace_, jobset->name,
                                                  &jobset->spec, &scratch, &taken);
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        struct str stem =
            stem_of(&jobset->entry.stems, jobset->namespace_, jobset->name, jobset->spec.rjobs[r].name);
        if (!str_map_get(&store->job_stems, stem))
            str_map_put(&store->job_stems, stem, jobset);
    }
}

static void remove_stems(struct job_store *store, struct jobset *jobset)
{
    struct arena scratch ARENA_CLEANUP = {0};
    CHECK(store->own_jobs >= (jobset->form == FORM_JOB));
    store->own_jobs -= jobset->form == FORM_JOB;
    for (size_t r = 0; jobset->form == FORM_JOBSET && r < jobset->spec.rjob_count; r++) {
        struct str stem = stem_of(&scratch, jobset->namespace_, jobset->name, jobset->spec.rjobs[r].name);
        if (str_map_get(&store->job_stems, stem) == jobset)
            str_map_remove(&store->job_stems, stem);
    }
}

bool store_name_free(const struct job_store *store, const struct jobset *jobset, struct str job)
{
    return !jobset->entry.shares_names || !jobs_find_job(store, jobset->namespace_, job);
}

void store_add_jobset(struct job_store *store, struct jobset *jobset)
{
    add_stems(store, jobset);
    vec_push(&store->jobsets, jobset);
    const struct jobset *same_name =
        jobset_is_seen(jobset) ? str_map_put(&store->by_name, jobset->key, jobset) : NULL;
    const struct jobset *same_uid = u64_map_put(&store->by_uid, jobset->uid, jobset);
    CHECK(!same_name && !same_uid);
    jobset->entry.exclusive = is_exclusive(jobset);
    store->exclusive += jobset->entry.exclusive;
    store_count_naming(store, jobset);
}

void store_remove_jobset(struct job_store *store, struct jobset *jobset)
{
    const struct jobset *removed =
        jobset_is_seen(jobset) ? str_map_remove(&store->by_name, jobset->key) : jobset;
    CHECK(removed == jobset && store->exclusive >= jobset->entry.exclusive);
    u64_map_remove(&store->by_uid, jobset->uid);
    remove_stems(store, jobset);
    store->exclusive -= jobset->entry.exclusive;
    store->naming -= jobset->entry.names_machine;
    jobset_keep_reserved(store, jobset, NULL, 0);
}

void store_hide_jobset(struct job_store *store, struct jobset *jobset)
{
    CHECK(!jobset->hidden && jobset->form != FORM_POD);
    if (jobset->form == FORM_JOBSET)
        str_map_remove(&store->by_name, jobset->key);
    else
        store_hide_job(store, jobset->jobs[0]);
    jobset->hidden = true;
}

void store_add_job(struct job_store *store, struct job *job)
{
    if (job->jobset->form != FORM_POD && !job_is_hidden(job) &&
        jobset_seen_job(job->jobset, job->global_index) == job)
        str_map_put(&store->job_names, key_keep(&job->arena, job->jobset->namespace_, job->name), job);
}

void store_hide_job(struct job_store *store, struct job *job)
{
    char buffer[KEY_MAX];
    struct str key = key_of(buffer, job->jobset->namespace_, job->name);
    if (str_map_get(&store->job_names, key) != job)
        return;
    str_map_remove(&store->job_names, key);
    store->names_freed = true;
}

void store_add_task(struct job_store *store, struct task *task)
{
    const struct task *same_uid = u64_map_put(&store->tasks, task->uid, task);
    CHECK(!same_uid);
    str_map_put(&store->task_names, key_keep(&task->arena, task->job->jobset->namespace_, task->name), task);
}

int64_t jobs_oldest_start(const struct job_store *store, machine_id machine)
{
    CHECK(machine < store->machine_count);
    int64_t oldest_ns = INT64_MAX;
    list_for_each(node, &store->machine_tasks[machine])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (task->state >= TASK_STARTING && !task_ended(task->state) && task->start_sent_ns < oldest_ns)
            oldest_ns = task->start_sent_ns;
    }
    return oldest_ns;
}

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
        buf_done(&jobset->conditions[kind].text);
    vec_done(&jobset->old_jobs);
    vec_done(&jobset->work.dirty);
    vec_done(&jobset->work.uncounted);
    vec_done(&jobset->gangs);
    vec_done(&jobset->recovery.absence.replicas);
    jobset_unbind(jobset);
    for (size_t i = 0; i < RESTART_RECORDS_MAX; i++)
        restart_record_done(&jobset->history.records[i]);
    ladder_done(&jobset->recovery.ladder);
    end_clues_done(&jobset->history.clues);
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
    heap_done(&store->timers); /* both calls reset the contents */
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
        for (uint32_t j = 0; j < jobset->job_count; j++)
            remap_job(jobset->jobs[j], map);
        for (size_t j = 0; j < jobset->old_jobs.len; j++)
            remap_job(jobset->old_jobs.items[j], map);
        for (size_t s = 0; s < jobset->history.suspect_count; s++)
            jobset->history.suspects[s] = mapped(jobset->history.suspects[s], map);
        for (uint32_t s = 0; s < jobset->slots.count; s++)
            jobset->slots.last_machines[s] = mapped(jobset->slots.last_machines[s], map);
        move_remap(jobset, map);
        jobset_remap_reserved(store, jobset, map);
    }
    preflight_remap(store, map);
}
