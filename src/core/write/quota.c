/* quota.c - ResourceQuotas: the limits of a namespace, checked when an object is created in it.
 *
 *     count/<plural>[.<group>], and the old names pods, services, secrets, configmaps,
 *     persistentvolumeclaims, resourcequotas
 *                                           objects of that kind
 *     requests.<resource>, limits.<resource>, and cpu and memory for requests.cpu and requests.memory
 *                                           all tasks of unfinished workloads together
 * A workload is refused as a whole, because its gang is placed as a whole. Scopes are not supported: a
 * quota with scopes limits nothing.
 */
#include "base/units.h"
#include "core/admit/admit.h"
#include "core/gang/trial.h"
#include "core/object/life.h"
#include "core/write/write.h"

struct tally {
    struct str namespace_;
    size_t count;
};

static void count_job(void *context, const struct job *job)
{
    struct tally *tally = context;
    tally->count += str_equal(job->jobset->namespace_, tally->namespace_);
}

static void count_task(void *context, const struct task *task)
{
    struct tally *tally = context;
    tally->count += str_equal(task->job->jobset->namespace_, tally->namespace_);
}

/* Counts a Workload; all Pods of a group share one. */
static void count_workload(void *context, const struct workload *workload)
{
    struct tally *tally = context;
    const struct workload *const *members;
    bool first = !workload_members(workload, &members) || members[0] == workload;
    tally->count += first && str_equal(workload->jobset->namespace_, tally->namespace_);
}

static size_t count_objects(const struct core *core, struct str namespace_, enum object_kind kind)
{
    CHECK(kind > 0 && kind < OBJECT_KINDS);
    struct tally tally = {.namespace_ = namespace_};
    if (kind == OBJECT_JOB)
        jobs_visit_jobs(&core->jobs, count_job, &tally);
    else if (kind == OBJECT_POD)
        jobs_visit_tasks(&core->jobs, count_task, &tally);
    else if (kind == OBJECT_WORKLOAD)
        workload_visit(core->admit, count_workload, &tally);
    else if (kind != OBJECT_JOBSET)
        return object_kind_info(kind) ? object_count_in(core->objects, kind, namespace_) : 0;
    for (size_t i = 0; kind == OBJECT_JOBSET && i < core->jobs.jobsets.len; i++) {
        const struct jobset *jobset = core->jobs.jobsets.items[i];
        tally.count += jobset_is_seen(jobset) && str_equal(jobset->namespace_, namespace_);
    }
    return tally.count;
}

/* Returns the kind whose objects the key counts, or 0 if the key does not count objects. */
static enum object_kind counted_kind(struct str key)
{
    struct str rest, front;
    static const char *const old_names[] = {
        "pods", "services", "secrets", "configmaps", "persistentvolumeclaims", "resourcequotas"};
    bool old = false;
    for (size_t i = 0; i < sizeof old_names / sizeof *old_names; i++)
        old |= str_is(key, old_names[i]);
    if (!old && (!str_cut(key, '/', &front, &rest) || !str_is(front, "count")))
        return 0;
    struct str title = old ? key : rest;
    for (int kind = OBJECT_JOBSET; kind < OBJECT_KINDS; kind++)
        if (str_is(title, object_kind_title((enum object_kind)kind)))
            return (enum object_kind)kind;
    return 0;
}

/* --- requests of tasks ---------------------------------------------------------------------------------- */

/* The additional usage of a write. */
struct asked {
    struct str namespace_;
    enum object_kind kind;
    const struct doc *document; /* of a workload; NULL: none */
    const struct jobset_spec *spec;
};

static int64_t workload_tasks(const struct jobset_spec *spec)
{
    int64_t tasks = 0;
    for (size_t r = 0; r < spec->rjob_count; r++)
        tasks += rjob_task_count(&spec->rjobs[r]);
    CHECK(tasks >= 0);
    return tasks;
}

static bool quantity_milli(const struct doc *node, int64_t *ret_milli)
{
    if (!node || node->kind != DOC_INT)
        return node && quantity_parse_milli(node->text, ret_milli);
    if (node->integer < 0 || node->integer > INT64_MAX / 1000)
        return false;
    *ret_milli = node->integer * 1000;
    return true;
}

/* Returns a resource's value in thousandths: the Pod's own in `list`, or else the sum of its containers'. */
static int64_t pod_sum(const struct doc *pod, const char *list, struct str resource)
{
    CHECK(strcmp(list, "requests") == 0 || strcmp(list, "limits") == 0);
    int64_t whole = 0;
    if (quantity_milli(doc_get_str(doc_path(pod, "spec", "resources", list, NULL), resource), &whole))
        return whole;
    const struct doc *containers = doc_path(pod, "spec", "containers", NULL);
    int64_t sum = 0;
    for (size_t i = 0; i < doc_len(containers); i++) {
        const struct doc *resources = doc_get(doc_at(containers, i), "resources");
        const struct doc *amount = doc_get_str(doc_get(resources, list), resource);
        if (!amount && strcmp(list, "requests") == 0)
            amount = doc_get_str(doc_get(resources, "limits"), resource); /* as the API server defaults it */
        int64_t milli = 0;
        if (!quantity_milli(amount, &milli))
            continue;
        if (__builtin_add_overflow(sum, milli, &sum))
            return INT64_MAX;
    }
    return sum;
}

static int64_t workload_sum(const struct doc *document, const struct jobset_spec *spec, const char *list,
                            struct str resource)
{
    int64_t sum = 0;
    for (size_t r = 0; r < spec->rjob_count; r++) {
        const struct rjob_spec *rjob = &spec->rjobs[r];
        int64_t tasks = rjob_task_count(rjob), part = 0;
        if (__builtin_mul_overflow(pod_sum(workload_pod_template(document, r), list, resource), tasks,
                                   &part) ||
            __builtin_add_overflow(sum, part, &sum))
            return INT64_MAX;
    }
    return sum;
}

/* Measures the usage of one key of a quota, and the write's addition. Returns false if the key is unknown. */
static bool measure(const struct core *core, const struct asked *asked, struct str key,
                    int64_t *ret_used_milli, int64_t *ret_more_milli)
{
    enum object_kind kind = counted_kind(key);
    if (kind) {
        int64_t pods = asked->spec && kind == OBJECT_POD ? workload_tasks(asked->spec) : 0;
        *ret_used_milli = (int64_t)count_objects(core, asked->namespace_, kind) * 1000;
        *ret_more_milli = kind == asked->kind ? 1000 : pods * 1000;
        return true;
    }
    struct str list, resource;
    if (str_is(key, "cpu") || str_is(key, "memory")) {
        list = STR("requests");
        resource = key;
    } else if (!str_cut(key, '.', &list, &resource) ||
               (!str_is(list, "requests") && !str_is(list, "limits"))) {
        return false;
    }
    const char *which = str_is(list, "limits") ? "limits" : "requests";
    int64_t used = 0;
    for (size_t i = 0; i < core->jobs.jobsets.len; i++) {
        const struct jobset *jobset = core->jobs.jobsets.items[i];
        int64_t part = 0;
        if (!jobset_finished(jobset) && jobset->form != FORM_WORKLOAD &&
            str_equal(jobset->namespace_, asked->namespace_))
            part = workload_sum(jobset->document, &jobset->spec, which, resource);
        if (__builtin_add_overflow(used, part, &used))
            used = INT64_MAX;
    }
    CHECK(used >= 0);
    *ret_used_milli = used;
    *ret_more_milli = asked->spec ? workload_sum(asked->document, asked->spec, which, resource) : 0;
    return true;
}

static void put_amount(struct buf *out, struct str key, int64_t milli)
{
    CHECK(key.len > 0 && milli >= 0);
    buf_printf(out, STR_FORMAT "=%lld", STR_ARG(key), (long long)(milli / 1000));
    if (milli % 1000)
        buf_printf(out, ".%03d", (int)(milli % 1000));
}

static bool refuse_over(const struct writing *writing, const struct object *quota, struct str key,
                        int64_t used_milli, int64_t more_milli, int64_t hard_milli)
{
    CHECK(quota->kind == OBJECT_RESOURCE_QUOTA);
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "requested: ");
    put_amount(&text, key, more_milli);
    buf_printf(&text, ", used: ");
    put_amount(&text, key, used_milli);
    buf_printf(&text, ", limited: ");
    put_amount(&text, key, hard_milli);
    return write_refuse(writing, 403, "Forbidden", NULL,
                        "%s \"" STR_FORMAT "\" is forbidden: exceeded quota: " STR_FORMAT ", " STR_FORMAT,
                        object_kind_title(writing->write->object), STR_ARG(writing->write->name),
                        STR_ARG(quota->name), STR_ARG(buf_str(&text)));
}

struct judging {
    const struct writing *writing;
    const struct asked *asked;
    bool refused;
};

static void judge_quota(void *context, const struct object *quota)
{
    struct judging *judging = context;
    const struct doc *spec = doc_get(quota->document, "spec"), *hard = doc_get(spec, "hard");
    if (doc_len(doc_get(spec, "scopes")) > 0 || doc_get(spec, "scopeSelector"))
        return;
    for (size_t i = 0; i < doc_len(hard) && !judging->refused; i++) {
        struct str key = hard->object.members[i].key;
        int64_t used = 0, more = 0, limit = 0, sum;
        if (!quantity_milli(hard->object.members[i].value, &limit) ||
            !measure(judging->writing->core, judging->asked, key, &used, &more) || more == 0)
            continue;
        if (!__builtin_add_overflow(used, more, &sum) && sum <= limit)
            continue;
        refuse_over(judging->writing, quota, key, used, more, limit);
        judging->refused = true;
    }
}

bool write_quota_allows(const struct writing *writing, struct str namespace_, const struct doc *document,
                        const struct jobset_spec *spec)
{
    CHECK(!document == !spec);
    struct asked asked = {namespace_, writing->write->object, document, spec};
    struct judging judging = {writing, &asked, false};
    object_visit(writing->core->objects, OBJECT_RESOURCE_QUOTA, namespace_, judge_quota, &judging);
    return !judging.refused;
}

bool core_quota_used(const struct core *core, struct str namespace_, struct str key, int64_t *ret_milli)
{
    struct asked asked = {.namespace_ = namespace_};
    int64_t more = 0;
    return measure(core, &asked, key, ret_milli, &more);
}
