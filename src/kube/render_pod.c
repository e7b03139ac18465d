#include <stdio.h>

#include "core/gang/trial.h"
#include "kube/render.h"

static bool is_gated(const struct task *task)
{
    const struct jobset *jobset = task->job->jobset;
    bool gated = jobset->form == FORM_POD ? jobset->spec.suspend : task->gate_count > 0;
    return gated && task->state == TASK_PENDING;
}

const char *render_pod_phase(const struct task *task)
{
    switch (task->state) {
    case TASK_RUNNING:
        return "Running";
    case TASK_STOPPING:
        return task->started_ns ? "Running" : "Pending";
    case TASK_SUCCEEDED:
        return "Succeeded";
    case TASK_FAILED:
        return "Failed";
    default:
        return "Pending";
    }
}

const char *render_pod_word(const struct task *task)
{
    switch (task->state) {
    case TASK_PENDING:
        return is_gated(task) ? "SchedulingGated" : "Pending";
    case TASK_PLACED:
    case TASK_STARTING:
        return "ContainerCreating";
    case TASK_RUNNING:
        return "Running";
    case TASK_STOPPING:
        return "Terminating";
    default:
        return render_end_reason(task);
    }
}

static void put_conditions(struct render *render, const struct task *task)
{
    struct json_writer *out = &render->out;
    bool placed = task->machine != MACHINE_NONE;
    const char *ready = task->ready ? "True" : "False";
    const char *unready = task->ready ? "" : task_ended(task->state) ? "PodCompleted" : "ContainersNotReady";
    int64_t ready_ns = task->ready ? task->started_ns : task->ended_ns ? task->ended_ns : task->created_ns;
    json_key(out, "conditions");
    json_begin_array(out);
    if (placed) {
        render_condition(render, "PodScheduled", "True", task->placed_ns, "", (struct str){0});
        struct pod_counts counts = render_pod_counts(task);
        bool done = counts.inits == counts.inits_done;
        render_condition(render, "Initialized", done ? "True" : "False", task->placed_ns,
                         done ? "" : "ContainersNotInitialized", (struct str){0});
    } else {
        render_condition(render, "PodScheduled", "False", task->created_ns,
                         is_gated(task) ? "SchedulingGated" : "Unschedulable",
                         task->gang ? task->gang->why : (struct str){0});
    }
    render_condition(render, "ContainersReady", ready, ready_ns, unready, (struct str){0});
    render_condition(render, "Ready", ready, ready_ns, unready, (struct str){0});
    if (task->end == END_MACHINE_LOST)
        render_condition(render, "DisruptionTarget", "True", task->ended_ns, "DeletionByTaintManager",
                         task->message);
    json_end_array(out);
}

static void put_status(struct render *render, const struct task *task)
{
    struct json_writer *out = &render->out;
    const struct cluster *cluster = core_cluster(render->core);
    json_key(out, "status");
    json_begin_object(out);
    json_pair_text(out, "phase", render_pod_phase(task));
    if (task->end == END_MACHINE_LOST)
        json_pair_text(out, "reason", "NodeLost");
    else if (task->reason.len)
        json_pair_str(out, "reason", task->reason);
    if (task->state == TASK_FAILED && task->message.len)
        json_pair_str(out, "message", task->message);
    put_conditions(render, task);
    render_time(render, "startTime", task->placed_ns);
    if (cluster && task->machine < cluster->machine_count) {
        struct str address = cluster->machines[task->machine].address;
        json_pair_str(out, "hostIP", address);
        json_pair_str(out, "podIP", address);
        json_key(out, "podIPs");
        json_begin_array(out);
        json_begin_object(out);
        json_pair_str(out, "ip", address);
        json_end_object(out);
        json_end_array(out);
    }
    if (task->machine != MACHINE_NONE)
        render_containers(render, task);
    json_pair_text(out, "qosClass", "BestEffort");
    json_key(out, "phalanx");
    json_begin_object(out);
    json_pair_int(out, "attempt", task->job->doomed ? task->job->attempt : task->attempt);
    json_pair_int(out, "beganAttempt", task->began_attempt);
    if (!task_is_spare(task))
        json_pair_int(out, "rank", task->rank);
    json_pair_int(out, "world", task->world);
    json_key(out, "chips");
    json_begin_array(out);
    for (int chip = 0; chip < CHIPS_PER_MACHINE_MAX; chip++)
        if (task->chips_were >> chip & 1)
            json_put_int(out, chip);
    json_end_array(out);
    json_end_object(out);
    json_end_object(out);
}

static void put_toleration(struct json_writer *out, const struct toleration *toleration)
{
    json_begin_object(out);
    if (toleration->key.len)
        json_pair_str(out, "key", toleration->key);
    json_pair_str(out, "operator", toleration->op.len ? toleration->op : STR("Equal"));
    if (toleration->value.len)
        json_pair_str(out, "value", toleration->value);
    if (toleration->effect.len)
        json_pair_str(out, "effect", toleration->effect);
    json_end_object(out);
}

/* Writes the constraints of its placement: those of the user, and those that admission added (its flavours'
 * labels and tolerations). */
static void put_placement(struct render *render, const struct task *task, const struct doc *spec)
{
    static const struct rjob_terms none;
    const struct jobset *jobset = task->job->jobset;
    const struct rjob_terms *terms =
        jobset->grant.terms ? &jobset->grant.terms[task->job->rjob_index] : &none;
    const struct doc *tolerations = doc_get(spec, "tolerations");
    struct json_writer *out = &render->out;
    render_labels(render, "nodeSelector", &terms->node_labels, doc_get(spec, "nodeSelector"));
    if (terms->toleration_count == 0 && doc_len(tolerations) == 0)
        return;
    json_key(out, "tolerations");
    json_begin_array(out);
    for (size_t i = 0; i < doc_len(tolerations); i++)
        json_put_doc(out, doc_at(tolerations, i));
    for (size_t i = 0; i < terms->toleration_count; i++)
        put_toleration(out, &terms->tolerations[i]);
    json_end_array(out);
}

static void put_gates(struct render *render, const struct task *task, const struct doc *spec)
{
    const struct doc *gates = task->job->jobset->form == FORM_POD ? doc_get(spec, "schedulingGates")
                                                                  : task_gates(task, render->scratch);
    if (doc_len(gates) == 0)
        return;
    json_key(&render->out, "schedulingGates");
    json_put_doc(&render->out, gates);
}

static void put_spec(struct render *render, const struct task *task)
{
    static const char *const ours[] = {"nodeName",     "hostname",    "subdomain",       "priority",
                                       "nodeSelector", "tolerations", "schedulingGates", NULL};
    static const char *const placed_only[] = {"nodeName", "nodeSelector",    "tolerations",
                                              "priority", "schedulingGates", NULL};
    const struct doc *spec = doc_get(render_pod_template(task->job), "spec");
    struct json_writer *out = &render->out;
    const struct cluster *cluster = core_cluster(render->core);
    const struct jobset *jobset = task->job->jobset;
    json_key(out, "spec");
    json_begin_object(out);
    if (cluster && task->machine < cluster->machine_count)
        json_pair_str(out, "nodeName", cluster->machines[task->machine].name);
    else if (task->job->rjob->job.pod.node_name.len)
        json_pair_str(out, "nodeName", task->job->rjob->job.pod.node_name);
    if (jobset->form == FORM_JOBSET || (jobset->form == FORM_JOB && task->job->rjob->job.indexed))
        json_pair_str(out, "hostname", task->hostname);
    if (jobset->spec.dns_hostnames)
        json_pair_str(out, "subdomain", jobset->spec.subdomain.len ? jobset->spec.subdomain : jobset->name);
    json_pair_int(out, "priority", task->priority); /* as admission put it in */
    put_placement(render, task, spec);
    put_gates(render, task, spec);
    render_members(render, spec, jobset->form == FORM_JOBSET ? ours : placed_only);
    json_end_object(out);
}

void render_pod(struct render *render, const struct task *task)
{
    struct json_writer *out = &render->out;
    const struct job *job = task->job;
    struct labels labels = job_labels(job, task, render->scratch);
    const struct doc *metadata = task->meta ? NULL : doc_get(render_pod_template(job), "metadata");
    bool own = job->jobset->form == FORM_POD;
    struct labels annotations = job_annotations(job, task, render->scratch);
    json_begin_object(out);
    render_type(render, "v1", "Pod");
    render_metadata_begin(render, &(struct render_metadata){.name = task->name,
                                                            .namespace_ = job->jobset->namespace_,
                                                            .uid = task->pod_uid,
                                                            .version = task->changed_seq,
                                                            .created_ns = task->created_ns,
                                                            .deleted_ns = own ? job->jobset->deleted_ns
                                                                              : task->stopping_since_ns});
    if (!own) {
        bool numbered = !str_equal(task->hostname, task->name);
        json_pair_str(
            out, "generateName",
            arena_printf(render->scratch, STR_FORMAT "-", STR_ARG(numbered ? task->hostname : job->name)));
    }
    render_labels(render, "labels", &labels, doc_get(metadata, "labels"));
    render_labels(render, "annotations", &annotations, doc_get(metadata, "annotations"));
    if (own)
        render_own_metadata(render, job->jobset);
    else if (!job_is_hidden(job))
        render_owner(render, "batch/v1", "Job", job->name, job->uid);
    render_metadata_end(render);
    put_spec(render, task);
    put_status(render, task);
    json_end_object(out);
}
