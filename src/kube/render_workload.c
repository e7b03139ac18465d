/* render_workload.c - Workloads (core/admit/admit.h) as kueue.x-k8s.io shows them. */
#include <stdio.h>

#include "kube/render.h"

static void put_amount(struct render *render, struct str resource, int64_t amount)
{
    struct buf text BUF_CLEANUP = {0};
    amount_format(&text, resource, amount);
    json_key_str(&render->out, resource);
    json_put_str(&render->out, buf_str(&text));
}

/* --- spec ---------------------------------------------------------------------------------------- */

static const struct doc *pod_template(const struct jobset *jobset, size_t rjob)
{
    const struct doc *spec = doc_get(jobset->document, "spec");
    if (jobset->form == FORM_POD)
        return jobset->document;
    if (jobset->form == FORM_JOB)
        return doc_get(spec, "template");
    return doc_path(doc_at(doc_get(spec, "replicatedJobs"), rjob), "template", "spec", "template", NULL);
}

/* Writes labels, annotations and spec of a pod template. The document of a plain Pod has further members. */
static void put_template(struct json_writer *out, const struct doc *template)
{
    static const char *const members[] = {"labels", "annotations"};
    const struct doc *metadata = doc_get(template, "metadata");
    json_begin_object(out);
    json_key(out, "metadata");
    json_begin_object(out);
    for (size_t i = 0; i < 2; i++) {
        if (!doc_get(metadata, members[i]))
            continue;
        json_key(out, members[i]);
        json_put_doc(out, doc_get(metadata, members[i]));
    }
    json_end_object(out);
    if (doc_get(template, "spec")) {
        json_key(out, "spec");
        json_put_doc(out, doc_get(template, "spec"));
    }
    json_end_object(out);
}

static void put_podset(struct render *render, const struct workload *workload, size_t rjob, int64_t count)
{
    struct json_writer *out = &render->out;
    const struct podset *podset = &workload->podsets[rjob];
    const struct doc *template = pod_template(workload->jobset, rjob);
    json_begin_object(out);
    json_pair_str(out, "name", podset->name);
    json_pair_int(out, "count", count);
    if (podset->least < podset->count)
        json_pair_int(out, "minCount", podset->least);
    if (template) {
        json_key(out, "template");
        put_template(out, template);
    }
    json_end_object(out);
}

/* The Workloads of a group's Pods that have the same shape. */
typedef VEC(const struct workload *) fellows;

/* Finds the next role of a group, from member *at on; roles are in the order of their first members. Returns
 * false at the end. */
static bool next_role(const struct workload *workload, size_t *at, fellows *ret_role)
{
    const struct workload *const *members;
    size_t count = workload_members(workload, &members);
    vec_clear(ret_role);
    for (; *at < count && ret_role->len == 0; (*at)++) {
        struct str role = members[*at]->podsets[0].name;
        bool before = false;
        for (size_t i = 0; !before && i < *at; i++)
            before = workload_counts(members[i]) && str_equal(members[i]->podsets[0].name, role);
        for (size_t i = *at; !before && i < count; i++)
            if (workload_counts(members[i]) && str_equal(members[i]->podsets[0].name, role))
                vec_push(ret_role, members[i]);
        if (ret_role->len && ret_role->items[0] != members[*at])
            vec_clear(ret_role); /* a replaced one: its role begins with another */
    }
    return ret_role->len > 0;
}

static void put_podsets(struct render *render, const struct workload *workload)
{
    fellows role = {0};
    size_t at = 0;
    json_key(&render->out, "podSets");
    json_begin_array(&render->out);
    while (next_role(workload, &at, &role))
        put_podset(render, role.items[0], 0, (int64_t)role.len);
    for (size_t r = 0; !workload->group && r < workload->jobset->spec.rjob_count; r++)
        put_podset(render, workload, r, workload->podsets[r].count);
    json_end_array(&render->out);
    vec_done(&role);
}

static void put_class(struct render *render, struct str group, struct str kind, struct str name)
{
    struct json_writer *out = &render->out;
    bool ours = str_is(group, "kueue.x-k8s.io");
    if (!name.len)
        return;
    if (render->old_form) {
        json_pair_str(out, "priorityClassName", name);
        json_pair_text(out, "priorityClassSource",
                       ours ? "kueue.x-k8s.io/workloadpriorityclass" : "scheduling.k8s.io/priorityclass");
        return;
    }
    json_key(out, "priorityClassRef");
    json_begin_object(out);
    json_pair_str(out, "group", group);
    json_pair_str(out, "kind", kind);
    json_pair_str(out, "name", name);
    json_end_object(out);
}

/* Writes the spec as its user wrote it; a priority that it omits follows from its classes. */
static void put_own_spec(struct render *render, const struct workload *workload)
{
    static const char *const ours[] = {"active", "priority", "priorityClassRef", NULL};
    struct json_writer *out = &render->out;
    const struct doc *spec = doc_get(workload->own->document, "spec");
    const struct doc *class = doc_get(spec, "priorityClassRef");
    json_key(out, "spec");
    json_begin_object(out);
    render_members(render, spec, ours);
    put_class(render, doc_str(doc_get(class, "group"), STR("")), doc_str(doc_get(class, "kind"), STR("")),
              doc_str(doc_get(class, "name"), STR("")));
    if (doc_get(spec, "priority") || class || workload->priority)
        json_pair_int(out, "priority", workload->priority);
    json_pair_bool(out, "active", workload->active);
    json_end_object(out);
}

static void put_spec(struct render *render, const struct workload *workload)
{
    struct json_writer *out = &render->out;
    if (workload->own) {
        put_own_spec(render, workload);
        return;
    }
    json_key(out, "spec");
    json_begin_object(out);
    put_podsets(render, workload);
    json_pair_str(out, "queueName", workload->queue_name);
    put_class(render, STR("kueue.x-k8s.io"), STR("WorkloadPriorityClass"), workload->priority_class);
    json_pair_int(out, "priority", workload->priority);
    json_pair_bool(out, "active", workload->active);
    json_end_object(out);
}

/* --- status -------------------------------------------------------------------------------------- */

/* Writes the assignment of one PodSet: of a Workload, or of a role of a group, all of whose members have
 * quota. */
static void put_assignment(struct render *render, const fellows *all, size_t rjob)
{
    struct json_writer *out = &render->out;
    const struct podset *podset = &all->items[0]->podsets[rjob];
    int64_t admitted = 0;
    for (size_t i = 0; i < all->len; i++)
        admitted += all->items[i]->podsets[rjob].admitted;
    json_begin_object(out);
    json_pair_str(out, "name", podset->name);
    json_key(out, "flavors");
    json_begin_object(out);
    for (size_t i = 0; i < podset->resource_count; i++) {
        if (!podset->resources[i].flavor.len)
            continue;
        json_key_str(out, podset->resources[i].name);
        json_put_str(out, podset->resources[i].flavor);
    }
    json_end_object(out);
    json_key(out, "resourceUsage");
    json_begin_object(out);
    for (size_t i = 0; i < podset->resource_count; i++)
        if (podset->resources[i].flavor.len)
            put_amount(render, podset->resources[i].name, podset->resources[i].per_task * admitted);
    json_end_object(out);
    json_pair_int(out, "count", admitted);
    render_topology(render, all->items, all->len, rjob);
    json_end_object(out);
}

static void put_assignments(struct render *render, const struct workload *workload)
{
    fellows role = {0};
    size_t at = 0;
    json_key(&render->out, "podSetAssignments");
    json_begin_array(&render->out);
    while (next_role(workload, &at, &role)) {
        size_t kept = 0;
        for (size_t i = 0; i < role.len; i++)
            if (role.items[i]->podsets[0].admitted)
                role.items[kept++] = role.items[i];
        role.len = kept;
        if (kept)
            put_assignment(render, &role, 0);
    }
    for (size_t r = 0; !workload->group && r < workload->jobset->spec.rjob_count; r++) {
        vec_clear(&role);
        vec_push(&role, workload);
        put_assignment(render, &role, r);
    }
    json_end_array(&render->out);
    vec_done(&role);
}

static void put_done(struct render *render, struct str name, int64_t count, bool *some)
{
    struct json_writer *out = &render->out;
    if (!count)
        return;
    if (!*some) {
        json_key(out, "reclaimablePods");
        json_begin_array(out);
    }
    *some = true;
    json_begin_object(out);
    json_pair_str(out, "name", name);
    json_pair_int(out, "count", count);
    json_end_object(out);
}

static void put_reclaimable(struct render *render, const struct workload *workload)
{
    bool some = false;
    fellows role = {0};
    size_t at = 0;
    while (next_role(workload, &at, &role)) {
        int64_t done = 0;
        for (size_t i = 0; i < role.len; i++)
            done += role.items[i]->state == WORKLOAD_FINISHED;
        put_done(render, role.items[0]->podsets[0].name, done, &some);
    }
    for (size_t r = 0; !workload->group && r < workload->jobset->spec.rjob_count; r++)
        put_done(render, workload->podsets[r].name, workload->podsets[r].done, &some);
    if (some)
        json_end_array(&render->out);
    vec_done(&role);
}

static void put_evictions(struct render *render, const struct workload *workload)
{
    struct json_writer *out = &render->out;
    if (!workload->evictions.len)
        return;
    json_key(out, "schedulingStats");
    json_begin_object(out);
    json_key(out, "evictions");
    json_begin_array(out);
    for (size_t i = 0; i < workload->evictions.len; i++) {
        static const char due[] = "DeactivatedDueTo";
        const char *reason = workload->evictions.items[i].reason;
        bool caused = str_starts(str_from(reason), str_from(due));
        json_begin_object(out);
        json_pair_text(out, "reason", caused ? "Deactivated" : reason);
        json_pair_text(out, "underlyingCause", caused ? reason + sizeof due - 1 : "");
        json_pair_int(out, "count", workload->evictions.items[i].count);
        json_end_object(out);
    }
    json_end_array(out);
    json_end_object(out);
}

static void put_requeue(struct render *render, const struct workload *workload)
{
    if (!workload->requeues)
        return;
    json_key(&render->out, "requeueState");
    json_begin_object(&render->out);
    json_pair_int(&render->out, "count", workload->requeues);
    render_time(render, "requeueAt", workload->requeue_ns);
    json_end_object(&render->out);
}

/* Writes the end of a group, which has ended only when all its Pods have. */
static void put_group_end(struct render *render, const struct workload *workload)
{
    const struct workload_condition *condition = &workload->conditions[WORKLOAD_IS_FINISHED];
    struct group_end end = workload_group_end(workload);
    bool stuck = condition->present && strcmp(condition->reason, "FailedToStart") == 0;
    if (!end.finished)
        return;
    render_condition(render, "Finished", "True", condition->changed_ns,
                     stuck      ? condition->reason
                     : end.well ? "Succeeded"
                                : "Failed",
                     stuck ? buf_str(&condition->message)
                           : arena_printf(render->scratch, "Pods succeeded: %lld/%lld.",
                                          (long long)end.succeeded, (long long)end.total));
}

/* Writes the conditions. A client that requests this object alone gets the current reason for waiting. */
static void put_workload_conditions(struct render *render, const struct workload *workload)
{
    struct json_writer *out = &render->out;
    struct buf why BUF_CLEANUP = {0};
    const char *fresh = render->fresh ? workload_explain(render->core, workload, &why) : NULL;
    json_key(out, "conditions");
    json_begin_array(out);
    for (int kind = 0; kind < WORKLOAD_CONDITIONS; kind++) {
        const struct workload_condition *condition = &workload->conditions[kind];
        bool anew = fresh && kind == WORKLOAD_QUOTA_RESERVED;
        if ((!condition->present && !anew) || (workload->group && kind == WORKLOAD_IS_FINISHED))
            continue;
        json_begin_object(out);
        json_pair_text(out, "type", workload_condition_name((enum workload_condition_kind)kind));
        json_pair_text(out, "status", condition->status ? "True" : "False");
        json_pair_int(out, "observedGeneration", workload->generation);
        render_time(render, "lastTransitionTime",
                    condition->present ? condition->changed_ns : workload->created_ns);
        json_pair_text(out, "reason", anew ? fresh : condition->reason);
        json_pair_str(out, "message", buf_str(anew ? &why : &condition->message));
        json_end_object(out);
    }
    if (workload->group)
        put_group_end(render, workload);
    json_end_array(out);
}

static void put_checks(struct render *render, const struct workload *workload)
{
    struct json_writer *out = &render->out;
    if (!workload->checks.len)
        return;
    json_key(out, "admissionChecks");
    json_begin_array(out);
    for (size_t i = 0; i < workload->checks.len; i++) {
        const struct workload_check *check = &workload->checks.items[i];
        json_begin_object(out);
        json_pair_str(out, "name", check->name);
        json_pair_text(out, "state", check_state_name(check->state));
        render_time(render, "lastTransitionTime", check->changed_ns);
        json_pair_str(out, "message", buf_str(&check->message));
        if (check->updates) {
            json_key(out, "podSetUpdates");
            json_put_doc(out, check->updates);
        }
        if (check->requeue_after_s)
            json_pair_int(out, "requeueAfterSeconds", check->requeue_after_s);
        json_pair_int(out, "retryCount", check->retries);
        json_end_object(out);
    }
    json_end_array(out);
}

static void put_status(struct render *render, const struct workload *workload)
{
    struct json_writer *out = &render->out;
    json_key(out, "status");
    json_begin_object(out);
    if (workload->reserved_in.len && workload->conditions[WORKLOAD_QUOTA_RESERVED].status) {
        json_key(out, "admission");
        json_begin_object(out);
        json_pair_str(out, "clusterQueue", workload->reserved_in);
        put_assignments(render, workload);
        json_end_object(out);
    }
    put_workload_conditions(render, workload);
    put_checks(render, workload);
    put_reclaimable(render, workload);
    put_requeue(render, workload);
    put_evictions(render, workload);
    json_end_object(out);
}

/* --- the object ---------------------------------------------------------------------------------- */

static void put_labels(struct render *render, const struct workload *workload)
{
    struct json_writer *out = &render->out;
    char uid[UID_TEXT_MAX];
    uid_text(workload_owner_uid(workload), uid);
    json_key(out, "labels");
    json_begin_object(out);
    if (!workload->group)
        json_pair_text(out, "kueue.x-k8s.io/job-uid", uid);
    json_pair_str(out, "kueue.x-k8s.io/queue-name", workload->queue_name);
    json_end_object(out);
    static const char gates[] = "kueue.x-k8s.io/admission-gated-by";
    struct str gated = labels_get(&workload->jobset->spec.annotations, str_from(gates), STR(""));
    if (!gated.len)
        return;
    json_key(out, "annotations");
    json_begin_object(out);
    json_pair_str(out, gates, gated);
    json_end_object(out);
}

/* Writes the owners: every Pod of a group owns its Workload. */
static void put_pods(struct render *render, const struct workload *const *members, size_t count)
{
    struct json_writer *out = &render->out;
    json_key(out, "ownerReferences");
    json_begin_array(out);
    for (size_t i = 0; i < count; i++) {
        char uid[UID_TEXT_MAX];
        uid_text(workload_owner_uid(members[i]), uid);
        json_begin_object(out);
        json_pair_text(out, "apiVersion", "v1");
        json_pair_text(out, "kind", "Pod");
        json_pair_str(out, "name", members[i]->jobset->name);
        json_pair_text(out, "uid", uid);
        json_end_object(out);
    }
    json_end_array(out);
}

static void put_owner(struct render *render, const struct workload *workload)
{
    static const char *const owners[][2] = {
        [FORM_JOBSET] = {"jobset.x-k8s.io/v1alpha2", "JobSet"},
        [FORM_JOB] = {"batch/v1", "Job"},
        [FORM_POD] = {"v1", "Pod"},
    };
    const struct jobset *jobset = workload->jobset;
    const struct workload *const *members;
    size_t count = workload_members(workload, &members);
    if (workload_is_bare(workload))
        return;
    if (count)
        put_pods(render, members, count);
    else
        render_owner(render, owners[jobset->form][0], owners[jobset->form][1], jobset->name,
                     workload_owner_uid(workload));
}

void render_workload_head(struct render *render, const struct workload *workload)
{
    struct json_writer *out = &render->out;
    json_key(out, "metadata");
    json_begin_object(out);
    json_pair_str(out, "name", workload->name);
    json_pair_str(out, "namespace", workload->jobset->namespace_);
    render_time(render, "creationTimestamp", workload_shown_created(workload));
    put_owner(render, workload);
    json_end_object(out);
}

/* Writes the metadata as the user wrote it, with the owner. */
static void put_own_metadata(struct render *render, const struct workload *workload)
{
    if (workload->own->deleted_ns)
        json_pair_int(&render->out, "deletionGracePeriodSeconds", 0);
    render_user_metadata(render, doc_get(workload->own->document, "metadata"));
}

void render_workload(struct render *render, const struct resource *resource, const struct workload *workload)
{
    workload = workload_representative(workload); /* the representative of a group may have changed since */
    struct json_writer *out = &render->out;
    const struct jobset *jobset = workload->jobset;
    render->old_form = resource->id == RESOURCE_OLD_WORKLOADS;
    json_begin_object(out);
    render_type(render, resource_api_version(resource), resource->kind);
    render_metadata_begin(
        render, &(struct render_metadata){.name = workload->name,
                                          .namespace_ = jobset->namespace_,
                                          .uid = workload_shown_uid(workload),
                                          .version = workload_version(workload),
                                          .generation = workload->generation,
                                          .created_ns = workload_shown_created(workload),
                                          .deleted_ns = workload->own ? workload->own->deleted_ns : 0});
    if (workload->own) {
        put_own_metadata(render, workload);
    } else {
        put_labels(render, workload);
        put_owner(render, workload);
    }
    render_metadata_end(render);
    put_spec(render, workload);
    put_status(render, workload);
    json_end_object(out);
}

void workload_cells(struct render *render, const struct workload *workload)
{
    workload = workload_representative(workload);
    struct json_writer *out = &render->out;
    const struct workload_condition *admitted = &workload->conditions[WORKLOAD_IS_ADMITTED];
    const struct workload_condition *finished = &workload->conditions[WORKLOAD_IS_FINISHED];
    json_put_str(out, workload->name);
    json_put_str(out, workload->queue_name);
    json_put_str(out, workload->state == WORKLOAD_HOLDING ? STR("") : workload->reserved_in);
    json_put_text(out, !admitted->present ? "" : admitted->status ? "True" : "False");
    bool ended =
        workload->group ? workload_group_end(workload).finished : finished->present && finished->status;
    json_put_text(out, ended ? "True" : "");
}
