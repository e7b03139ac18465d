/* labels.c - the labels that JobSet and the Job controller put on Jobs and Pods (jobset.sigs.k8s.io/...,
 * job-name, ...). kubectl (`logs job/x`) and users' selectors and fieldRefs depend on them. */
#include "core/job/facts.h"

#include <stdlib.h>

#include "base/hash.h"

typedef VEC(struct label) label_list;

static void add(label_list *list, struct str key, struct str value)
{
    for (size_t i = 0; i < list->len; i++) {
        if (str_equal(list->items[i].key, key)) {
            list->items[i].value = value;
            return;
        }
    }
    struct label label = {key, value};
    vec_push(list, label);
}

static void add_text(label_list *list, struct arena *arena, const char *key, const char *text)
{
    add(list, str_from(key), arena_str(arena, str_from(text)));
}

static void add_number(label_list *list, struct arena *arena, const char *key, uint64_t number)
{
    add(list, str_from(key), arena_printf(arena, "%llu", (unsigned long long)number));
}

static void add_all(label_list *list, const struct labels *labels)
{
    for (size_t i = 0; i < labels->len; i++)
        add(list, labels->items[i].key, labels->items[i].value);
}

static int compare(const void *a, const void *b)
{
    return str_compare(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static void add_jobset_labels(label_list *list, struct arena *arena, const struct job *job)
{
    const struct jobset *jobset = job->jobset;
    uint64_t all = 0, group = 0, group_index = job->index;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        const struct rjob_spec *rjob = &jobset->spec.rjobs[r];
        bool same = str_equal(rjob->group, job->rjob->group);
        all += (uint64_t)rjob->replicas;
        group += same ? (uint64_t)rjob->replicas : 0;
        group_index += same && r < job->rjob_index ? (uint64_t)rjob->replicas : 0;
    }
    CHECK(job->index < (uint64_t)job->rjob->replicas && all == jobset->job_count && group_index < group);
    char uid[UID_TEXT_MAX], hex[41];
    uid_text(jobset->uid, uid);
    uint8_t digest[20];
    struct str key =
        arena_printf(arena, STR_FORMAT "/" STR_FORMAT, STR_ARG(jobset->namespace_), STR_ARG(job->name));
    sha1(key.data, key.len, digest);
    hex_encode(digest, sizeof(digest), hex);
    add(list, STR("jobset.sigs.k8s.io/jobset-name"), jobset->name);
    add_text(list, arena, "jobset.sigs.k8s.io/jobset-uid", uid);
    add(list, STR("jobset.sigs.k8s.io/replicatedjob-name"), job->rjob->name);
    add_number(list, arena, "jobset.sigs.k8s.io/replicatedjob-replicas", (uint64_t)job->rjob->replicas);
    add_number(list, arena, "jobset.sigs.k8s.io/global-replicas", all);
    add_number(list, arena, "jobset.sigs.k8s.io/job-index", job->index);
    add_number(list, arena, "jobset.sigs.k8s.io/job-global-index", job->global_index);
    add_text(list, arena, "jobset.sigs.k8s.io/job-key", hex);
    add(list, STR("jobset.sigs.k8s.io/group-name"), job->rjob->group);
    add_number(list, arena, "jobset.sigs.k8s.io/group-replicas", group);
    add_number(list, arena, "jobset.sigs.k8s.io/job-group-index", group_index);
    add_number(list, arena, "jobset.sigs.k8s.io/restart-attempt", (uint64_t)job->attempt);
    if (jobset_restarts_jobs(&jobset->spec))
        add_number(list, arena, "jobset.sigs.k8s.io/job-restart-attempt", (uint64_t)job->job_attempt);
    if (jobset->spec.coordinator.len)
        add(list, STR("jobset.sigs.k8s.io/coordinator"), jobset->spec.coordinator);
}

/* Moves the list into the arena. Keys are unique, so the order is total. */
static struct labels keep(label_list *list, struct arena *arena)
{
    if (list->len > 1)
        qsort(list->items, list->len, sizeof(*list->items), compare);
    struct labels labels = {ARENA_ARRAY(arena, struct label, list->len), list->len};
    mem_copy(labels.items, list->items, list->len * sizeof(*list->items));
    vec_done(list);
    return labels;
}

/* Replaces the labels that users may change by those of the user, if there are any. */
static void take_user_meta(label_list *list, const struct user_meta *meta, const struct labels *said)
{
    size_t kept = 0;
    if (!meta)
        return;
    for (size_t i = 0; i < list->len; i++)
        if (meta_is_controlled(list->items[i].key))
            list->items[kept++] = list->items[i];
    list->len = kept;
    add_all(list, said);
}

struct labels job_annotations(const struct job *job, const struct task *task, struct arena *arena)
{
    static const char *const placement[] = {"alpha.jobset.sigs.k8s.io/exclusive-topology",
                                            "alpha.jobset.sigs.k8s.io/node-selector"};
    CHECK(!task || task->job == job);
    label_list list = {0};
    if (job->jobset->form == FORM_JOBSET) {
        add_jobset_labels(&list, arena, job);
        add_number(&list, arena, "jobset.sigs.k8s.io/execution-attempt",
                   (uint64_t)(task ? task->execution : job->execution));
        for (size_t i = 0; i < sizeof placement / sizeof *placement; i++) {
            struct str key = str_from(placement[i]);
            struct str value = labels_get(&job->rjob->annotations, key,
                                          labels_get(&job->jobset->spec.annotations, key, STR("")));
            if (value.len)
                add(&list, key, value);
        }
    }
    if (task && job->rjob->job.indexed && !task_is_spare(task) && job->jobset->form != FORM_POD)
        add_number(&list, arena, "batch.kubernetes.io/job-completion-index", (uint64_t)task->index);
    if (task && inplace_is_asked(job->jobset))
        add_number(&list, arena, "jobset.sigs.k8s.io/in-place-restart-attempt",
                   (uint64_t)(job->jobset->attempt - jobset_parks(job->jobset)));
    if (task && job->jobset->grant.terms)
        add_all(&list, &job->jobset->grant.terms[job->rjob_index].annotations);
    const struct user_meta *meta = task ? task->meta : job->meta;
    take_user_meta(&list, meta, meta ? &meta->annotations : NULL);
    return keep(&list, arena);
}

struct labels job_labels(const struct job *job, const struct task *task, struct arena *arena)
{
    CHECK(!task || task->job == job);
    CHECK(!task || task->job == job);
    label_list list = {0};
    /* The labels of a Job without a JobSet are not passed on to its pods. */
    bool own = job->jobset->form != FORM_JOBSET;
    if (!own || !task)
        add_all(&list, &job->rjob->labels);
    if (task)
        add_all(&list, &job->rjob->job.pod.labels);
    if (task && job->jobset->grant.terms)
        add_all(&list, &job->jobset->grant.terms[job->rjob_index].labels);
    if (job->jobset->form == FORM_JOBSET)
        add_jobset_labels(&list, arena, job);
    if (job->jobset->form == FORM_JOBSET && task)
        add(&list, STR("jobset.sigs.k8s.io/priority"), arena_printf(arena, "%d", (int)task->priority));
    char uid[UID_TEXT_MAX];
    uid_text(job->uid, uid);
    if (task && job->jobset->form != FORM_POD) {
        add_text(&list, arena, "batch.kubernetes.io/controller-uid", uid);
        add_text(&list, arena, "controller-uid", uid);
        add(&list, STR("batch.kubernetes.io/job-name"), job->name);
        add(&list, STR("job-name"), job->name);
        if (task_is_spare(task))
            add(&list, STR(SPARE_KEY), STR("true"));
        else if (job->rjob->job.indexed)
            add_number(&list, arena, "batch.kubernetes.io/job-completion-index", (uint64_t)task->index);
    }
    const struct user_meta *meta = task ? task->meta : job->meta;
    take_user_meta(&list, meta, meta ? &meta->labels : NULL);
    return keep(&list, arena);
}
