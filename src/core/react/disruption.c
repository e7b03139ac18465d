#include "core/react/disruption.h"

#include "base/units.h"

/* The one label in which the pods of a Job differ. */
#define INDEX_LABEL "batch.kubernetes.io/job-completion-index"

struct counts {
    int64_t healthy, desired, expected, allowed;
};

/* --- selection ------------------------------------------------------------------------------------------ */

static struct doc *labels_doc(struct arena *arena, const struct task *task)
{
    struct labels labels = job_labels(task->job, task, arena);
    struct doc *map = doc_new(arena, DOC_OBJECT);
    for (size_t i = 0; i < labels.len; i++)
        doc_set(arena, map, labels.items[i].key, doc_new_str(arena, labels.items[i].value));
    return map;
}

static const struct doc *selector_of(const struct object *budget)
{
    return doc_path(budget->document, "spec", "selector", NULL);
}

static bool selects(const struct object *budget, const struct task *task)
{
    CHECK(budget->kind == OBJECT_DISRUPTION_BUDGET);
    struct arena arena ARENA_CLEANUP = {0};
    const struct doc *selector = selector_of(budget);
    return selector && selector_matches(selector, labels_doc(&arena, task));
}

/* Returns whether the selector can tell the pods of one Job apart. */
static bool looks_at_index(const struct doc *selector)
{
    const struct doc *expressions = doc_get(selector, "matchExpressions");
    if (doc_get(doc_get(selector, "matchLabels"), INDEX_LABEL))
        return true;
    for (size_t i = 0; i < doc_len(expressions); i++)
        if (str_is(doc_str(doc_get(doc_at(expressions, i), "key"), STR("")), INDEX_LABEL))
            return true;
    return false;
}

/* --- counting ------------------------------------------------------------------------------------------- */

static bool is_healthy(const struct task *task)
{
    return task->state == TASK_RUNNING && task->ready;
}

static bool is_there(const struct task *task)
{
    return !task_ended(task->state) && task->state != TASK_STOPPING && !task->doomed;
}

/* Returns the number of pods that the Job still wants, existing or not. A pod that was just evicted and not
 * replaced yet counts. */
static int64_t still_wanted(const struct job *job)
{
    CHECK(job->rjob && job->jobset);
    const struct job_spec *spec = &job->rjob->job;
    if (job->state != JOB_ACTIVE || job->doomed || job->jobset->form == FORM_POD)
        return 0;
    int64_t left = spec->completions < 0 ? (job->succeeded ? 0 : spec->parallelism)
                                         : spec->completions - (int64_t)job->succeeded;
    return left < spec->parallelism ? left : spec->parallelism;
}

/* Adds the Job's pods that the budget selects to the counts. Pods of one Job have the same labels, except for
 * users' changes of single pods, so one pod is matched for all of them unless `each`. */
static void count_job(const struct object *budget, bool each, const struct job *job, struct counts *counts)
{
    int64_t there = 0;
    const struct task *plain = NULL;
    for (size_t i = 0; i < job->tasks.len && !plain && !each; i++)
        plain = job->tasks.items[i]->meta ? NULL : job->tasks.items[i];
    bool all = plain && selects(budget, plain);
    for (size_t i = 0; i < job->tasks.len; i++) {
        const struct task *task = job->tasks.items[i];
        if (each || task->meta ? !selects(budget, task) : !all)
            continue;
        there += is_there(task);
        counts->healthy += is_healthy(task);
    }
    int64_t wanted = all ? still_wanted(job) : 0;
    counts->expected += there > wanted ? there : wanted;
}

/* Returns the node's number, or its percentage of `whole`, rounded up, or `absent` if there is no node. */
static int64_t share(const struct doc *node, int64_t whole, int64_t absent)
{
    CHECK(whole >= 0);
    int64_t percent = 0;
    if (!node || node->kind == DOC_NULL)
        return absent;
    if (node->kind == DOC_INT)
        return node->integer;
    struct str digits = doc_str(node, STR("%"));
    digits.len -= digits.len > 0;
    (void)str_to_i64(digits, 0, 100, &percent);
    return (whole * percent + 99) / 100;
}

static struct counts count(const struct job_store *jobs, const struct object *budget)
{
    struct counts counts = {0};
    const struct doc *spec = doc_get(budget->document, "spec");
    bool each = looks_at_index(selector_of(budget));
    for (size_t i = 0; i < jobs->jobsets.len; i++) {
        const struct jobset *jobset = jobs->jobsets.items[i];
        if (!str_equal(jobset->namespace_, budget->namespace_))
            continue;
        for (uint32_t j = 0; j < jobset->job_count; j++)
            if (jobset->jobs[j])
                count_job(budget, each, jobset->jobs[j], &counts);
        for (size_t j = 0; j < jobset->old_jobs.len; j++)
            count_job(budget, each, jobset->old_jobs.items[j], &counts);
    }
    const struct doc *least = doc_get(spec, "minAvailable"), *most = doc_get(spec, "maxUnavailable");
    if (most)
        counts.desired = counts.expected - share(most, counts.expected, 0);
    else
        counts.desired = share(least, counts.expected, 0);
    counts.desired = counts.desired > 0 ? counts.desired : 0;
    counts.allowed = counts.expected > 0 ? counts.healthy - counts.desired : 0;
    counts.allowed = counts.allowed > 0 ? counts.allowed : 0;
    CHECK(counts.expected >= 0 && counts.healthy >= 0);
    CHECK(counts.desired >= 0 && counts.allowed <= counts.healthy);
    return counts;
}

/* --- status --------------------------------------------------------------------------------------------- */

static void set_int(struct arena *arena, struct doc *object, const char *key, int64_t value)
{
    doc_set(arena, object, str_from(key), doc_new_int(arena, value));
}

static void set_text(struct arena *arena, struct doc *object, const char *key, const char *value)
{
    doc_set(arena, object, str_from(key), doc_new_str(arena, arena_str(arena, str_from(value))));
}

static const struct doc *condition_of(const struct doc *status)
{
    return doc_at(doc_get(status, "conditions"), 0);
}

/* Returns a budget's status. `since` is the time at which the condition got its present value. */
static struct doc *status_doc(struct arena *arena, const struct counts *counts, int64_t generation,
                              struct str since)
{
    struct doc *status = doc_new(arena, DOC_OBJECT), *condition = doc_new(arena, DOC_OBJECT);
    struct doc *conditions = doc_new(arena, DOC_ARRAY);
    bool enough = counts->allowed > 0;
    set_int(arena, status, "observedGeneration", generation);
    set_int(arena, status, "disruptionsAllowed", counts->allowed);
    set_int(arena, status, "currentHealthy", counts->healthy);
    set_int(arena, status, "desiredHealthy", counts->desired);
    set_int(arena, status, "expectedPods", counts->expected);
    set_text(arena, condition, "type", "DisruptionAllowed");
    set_text(arena, condition, "status", enough ? "True" : "False");
    set_text(arena, condition, "reason", enough ? "SufficientPods" : "InsufficientPods");
    set_text(arena, condition, "message", "");
    set_int(arena, condition, "observedGeneration", generation);
    doc_set(arena, condition, STR("lastTransitionTime"), doc_new_str(arena, arena_str(arena, since)));
    doc_push(arena, conditions, condition);
    doc_set(arena, status, STR("conditions"), conditions);
    return status;
}

/* Returns the status that the budget should have now. */
static struct doc *wanted_status(struct arena *arena, const struct job_store *jobs,
                                 const struct object *budget, int64_t now_ns)
{
    struct counts counts = count(jobs, budget);
    const struct doc *was = condition_of(doc_get(budget->document, "status"));
    bool same =
        was && str_is(doc_str(doc_get(was, "status"), STR("")), counts.allowed > 0 ? "True" : "False");
    char now[32];
    time_format(now_ns, now);
    struct str since = same ? doc_str(doc_get(was, "lastTransitionTime"), STR("")) : str_from(now);
    return status_doc(arena, &counts, budget->generation, since);
}

/* --- a step --------------------------------------------------------------------------------------------- */

struct counting {
    struct step *step;
    size_t effects; /* number of effects before counting */
    VEC(const struct object *) stale;
};

/* Returns a pod that represents the changed object: the pod itself, or the first one of a Job. Returns NULL
 * if budgets do not count the object. */
static const struct task *pod_of(struct object_ref ref)
{
    if (ref.kind == OBJECT_POD)
        return ref.task;
    return ref.kind == OBJECT_JOB && ref.job->tasks.len > 0 ? ref.job->tasks.items[0] : NULL;
}

/* Adds the budget to the list if an object that changed in this step concerns it. */
static void find_stale(void *context, const struct object *budget)
{
    struct counting *counting = context;
    const struct job *other = NULL; /* a Job whose pods the budget does not select */
    bool each = looks_at_index(selector_of(budget));
    for (size_t i = 0; i < counting->effects; i++) {
        const struct effect *effect = &counting->step->effects->list.items[i];
        if (effect->kind != EFFECT_CHANGED)
            continue;
        struct object_ref ref = effect->changed.object;
        bool own = ref.kind == OBJECT_DISRUPTION_BUDGET && ref.object == budget;
        if (own && effect->changed.type == CHANGE_DELETED)
            return;
        const struct task *task = pod_of(ref);
        bool near = task && (each || ref.kind == OBJECT_JOB || task->meta || task->job != other) &&
                    str_equal(task->job->jobset->namespace_, budget->namespace_);
        if (own || (near && selects(budget, task))) {
            vec_push(&counting->stale, budget);
            return;
        }
        other = task && !task->meta ? task->job : other;
    }
}

void disruptions_count(struct step *step)
{
    struct counting counting = {.step = step, .effects = step->effects->list.len};
    if (object_count(step->objects, OBJECT_DISRUPTION_BUDGET) == 0)
        return;
    object_visit(step->objects, OBJECT_DISRUPTION_BUDGET, STR(""), find_stale, &counting);
    for (size_t i = 0; i < counting.stale.len; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        const struct object *budget = counting.stale.items[i];
        struct doc *status = wanted_status(&arena, step->jobs, budget, step->now_ns);
        if (!doc_equal(doc_get(budget->document, "status"), status))
            object_set_status(step, budget, status);
    }
    vec_done(&counting.stale);
}

static void check_budget(void *context, const struct object *budget)
{
    const struct core *core = context;
    struct arena arena ARENA_CLEANUP = {0};
    CHECK(doc_equal(doc_get(budget->document, "status"),
                    wanted_status(&arena, &core->jobs, budget, core->now_ns)));
}

void disruptions_check(const struct core *core)
{
    object_visit(core->objects, OBJECT_DISRUPTION_BUDGET, STR(""), check_budget, (void *)core);
}

/* --- evictions ------------------------------------------------------------------------------------------ */

struct finding {
    const struct task *task;
    const struct object *budget;
    size_t found;
};

static void find_budget(void *context, const struct object *budget)
{
    struct finding *finding = context;
    if (selects(budget, finding->task)) {
        finding->budget = budget;
        finding->found++;
    }
}

static int64_t number(const struct object *budget, const char *field)
{
    return doc_int(doc_path(budget->document, "status", field, NULL), 0);
}

static bool refuse(const struct writing *writing, const struct object *budget)
{
    CHECK(budget->kind == OBJECT_DISRUPTION_BUDGET);
    struct field_errors *causes = write_new_errors(writing);
    field_error_add(causes, STR(""), "DisruptionBudget", NULL,
                    "The disruption budget " STR_FORMAT " needs %lld healthy pods and has %lld currently",
                    STR_ARG(budget->name), (long long)number(budget, "desiredHealthy"),
                    (long long)number(budget, "currentHealthy"));
    return write_refuse_causes(writing, 429, "TooManyRequests", causes,
                               "Cannot evict pod as it would violate the pod's disruption budget.");
}

bool disruption_allows(const struct writing *writing, const struct task *task)
{
    struct finding finding = {.task = task};
    /* A pod that has not begun, or is ending, can be evicted without disruption. */
    bool begun = task->state == TASK_RUNNING;
    if (begun)
        object_visit(writing->core->objects, OBJECT_DISRUPTION_BUDGET, task->job->jobset->namespace_,
                     find_budget, &finding);
    if (finding.found == 0)
        return true;
    if (finding.found > 1)
        return write_refuse(
            writing, 500, "InternalError", NULL,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does "
            "not support.");
    const struct object *budget = finding.budget;
    struct str policy = doc_str(doc_path(budget->document, "spec", "unhealthyPodEvictionPolicy", NULL),
                                STR("IfHealthyBudget"));
    int64_t desired = number(budget, "desiredHealthy");
    bool served = desired > 0 && number(budget, "currentHealthy") >= desired;
    if (!is_healthy(task) && (served || str_is(policy, "AlwaysAllow")))
        return true;
    return number(budget, "disruptionsAllowed") > 0 || refuse(writing, budget);
}
