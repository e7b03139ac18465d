/* store.c - the indexes of the store: objects by name and uid, and the names of Jobs that are in use. */
#include "core/job/folder.h"
#include "core/job/store.h"
#include "core/sched/capacity.h"

#include <stdio.h>

/* Length of a name index's key: on the stack for look-ups, in the object's arena for entries. */
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
    struct str key = key_of(buffer, namespace_, name);
    CHECK(key.len > 0); /* names are short */
    return arena_str(arena, key);
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
    CHECK(store->naming >= jobset->entry.names_machine);
    store->naming -= jobset->entry.names_machine;
    jobset->entry.names_machine = names_machine(jobset);
    store->naming += jobset->entry.names_machine;
}

/* --- names of Jobs ---------------------------------------------------------------------------- */

/* Returns "namespace/<jobset>-<rjob>". Jobs of two JobSets have equal names only if these stems are equal. */
static struct str stem_of(struct arena *arena, struct str ns, struct str jobset, struct str rjob)
{
    return ARENA_CONCAT(arena, ns, STR("/"), jobset, STR("-"), rjob);
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
    store->own_jobs += jobset->form == FORM_JOB;
    if (jobset->form != FORM_JOBSET || jobset->spec.rjob_count == 0)
        return;
    size_t bytes = 0;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++)
        bytes += arena_round(jobset->key.len + 1 + jobset->spec.rjobs[r].name.len + 1);
    arena_reserve(&jobset->entry.stems, bytes);
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
    CHECK(store->naming >= jobset->entry.names_machine);
    store->exclusive -= jobset->entry.exclusive;
    store->naming -= jobset->entry.names_machine;
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
    if (job->jobset->form == FORM_POD || job_is_hidden(job) ||
        jobset_seen_job(job->jobset, job->global_index) != job)
        return;
    const struct job *same_name =
        str_map_put(&store->job_names, key_keep(&job->arena, job->jobset->namespace_, job->name), job);
    /* Only an older Job of the same place can have this name: writes with a used name are refused. */
    CHECK(!same_name || (same_name->jobset == job->jobset && same_name->global_index == job->global_index));
}

void store_hide_job(struct job_store *store, struct job *job)
{
    char buffer[KEY_MAX];
    struct str key = key_of(buffer, job->jobset->namespace_, job->name);
    if (str_map_get(&store->job_names, key) == job)
        str_map_remove(&store->job_names, key);
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
