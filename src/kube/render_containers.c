/* render_containers.c - status.containerStatuses and .initContainerStatuses of a Pod, and the words and
 * numbers of its table row: from the agent's report on each container, or from the task itself if it is a
 * single process.
 */
#include <stdio.h>

#include "kube/render.h"

/* Returns the reason why a container did not start. As in kubelet, one that runAsNonRoot keeps from starting
 * has its own. */
static const char *start_reason(struct str message)
{
    return str_starts(message, STR("container has runAsNonRoot")) ? "CreateContainerConfigError"
                                                                  : "StartError";
}

/* Returns why the task's process ended, in the words of container states. */
const char *render_end_reason(const struct task *task)
{
    if (task->state == TASK_SUCCEEDED)
        return "Completed";
    if (task->oom)
        return "OOMKilled";
    switch (task->end) {
    case END_START_FAILED:
        return start_reason(task->message);
    case END_MACHINE_LOST:
        return "MachineLost";
    case END_REFUSED:
        return task->reason.data;
    default:
        return task->fenced ? "Fenced" : "Error";
    }
}

static int shown_code(int32_t code, int32_t signal, bool lost)
{
    return signal ? 128 + signal : lost || code < 0 ? 137 : code;
}

static struct container_end task_end_of(const struct task *task)
{
    return (struct container_end){
        .exit_code = shown_code(task->exit_code, task->signal, task->end == END_MACHINE_LOST),
        .signal = task->signal,
        .oom = task->oom,
        .start_failed = task->end == END_START_FAILED,
        .started_ns = task->started_ns,
        .finished_ns = task->ended_ns,
        .message = task->message,
    };
}

/* Returns the status of the named container, as far as it is known. */
static struct container_status status_of(const struct task *task, struct str name, enum container_role role,
                                         bool has_init)
{
    struct container_status status = {.name = name, .role = role};
    for (uint32_t i = 0; i < task->container_count; i++)
        if (str_equal(task->containers[i].name, name))
            status = task->containers[i];
    bool known = status.phase != CONTAINER_WAITING || status.reason.len;
    if (!known && !task->containers && task->started_ns && role == CONTAINER_MAIN) {
        status.phase = CONTAINER_RUNNING;
        status.started_ns = task->started_ns;
        status.started = true;
        status.ready = task->ready;
    } else if (!known) {
        status.reason = task->parked && task->failed_runs ? STR("CrashLoopBackOff")
                        : has_init                        ? STR("PodInitializing")
                                                          : STR("ContainerCreating");
    }
    if (task_ended(task->state) && status.phase != CONTAINER_TERMINATED) {
        status.phase = CONTAINER_TERMINATED; /* it went with its task */
        status.end = task_end_of(task);
        status.ready = status.started = false;
    }
    status.restarts += task->runs_before;
    return status;
}

static void put_terminated(struct render *render, const struct container_end *end, const char *reason)
{
    struct json_writer *out = &render->out;
    json_key(out, "terminated");
    json_begin_object(out);
    json_pair_int(out, "exitCode", shown_code(end->exit_code, end->signal, false));
    if (end->signal)
        json_pair_int(out, "signal", end->signal);
    json_pair_text(out, "reason", reason);
    if (end->message.len)
        json_pair_str(out, "message", end->message);
    render_time(render, "startedAt", end->started_ns);
    render_time(render, "finishedAt", end->finished_ns);
    json_end_object(out);
}

static const char *reason_of(const struct container_end *end)
{
    return end->oom            ? "OOMKilled"
           : end->start_failed ? start_reason(end->message)
           : end->exit_code    ? "Error"
           : end->signal       ? "Error"
                               : "Completed";
}

static void put_state(struct render *render, const struct task *task, const struct container_status *status)
{
    struct json_writer *out = &render->out;
    json_key(out, "state");
    json_begin_object(out);
    if (status->phase == CONTAINER_TERMINATED) {
        bool whole = !task->containers && task_ended(task->state);
        put_terminated(render, &status->end, whole ? render_end_reason(task) : reason_of(&status->end));
    } else if (status->phase == CONTAINER_RUNNING) {
        json_key(out, "running");
        json_begin_object(out);
        render_time(render, "startedAt", status->started_ns);
        json_end_object(out);
    } else {
        json_key(out, "waiting");
        json_begin_object(out);
        json_pair_str(out, "reason", status->reason);
        if (status->message.len)
            json_pair_str(out, "message", status->message);
        json_end_object(out);
    }
    json_end_object(out);
    json_key(out, "lastState");
    json_begin_object(out);
    if (status->phase != CONTAINER_TERMINATED && status->restarts > 0 && status->end.finished_ns)
        put_terminated(render, &status->end, reason_of(&status->end));
    json_end_object(out);
}

static void put_status(struct render *render, const struct task *task, const struct doc *container,
                       const struct container_status *status)
{
    struct json_writer *out = &render->out;
    json_begin_object(out);
    json_pair_str(out, "name", status->name);
    json_pair_str(out, "image", doc_str(doc_get(container, "image"), STR("")));
    json_pair_text(out, "imageID", "");
    json_pair_bool(out, "ready", status->ready);
    json_pair_bool(out, "started", status->started);
    json_pair_int(out, "restartCount", status->restarts);
    put_state(render, task, status);
    json_end_object(out);
}

static enum container_role role_of(const struct doc *container, bool initial)
{
    bool always = str_is(doc_str(doc_get(container, "restartPolicy"), STR("")), "Always");
    return !initial ? CONTAINER_MAIN : always ? CONTAINER_SIDECAR : CONTAINER_INIT;
}

static const struct doc *containers_of(const struct task *task, bool initial)
{
    const struct doc *spec = doc_get(render_pod_template(task->job), "spec");
    return doc_get(spec, initial ? "initContainers" : "containers");
}

static struct container_status status_at(const struct task *task, size_t index, bool initial)
{
    const struct doc *container = doc_at(containers_of(task, initial), index);
    bool has_init = doc_len(containers_of(task, true)) > 0;
    return status_of(task, doc_str(doc_get(container, "name"), STR("")), role_of(container, initial),
                     has_init);
}

bool render_container_status(const struct task *task, struct str name, struct container_status *ret_status)
{
    for (int initial = 0; initial < 2; initial++)
        for (size_t i = 0; i < doc_len(containers_of(task, initial)); i++) {
            struct container_status status = status_at(task, i, initial);
            if (!str_equal(status.name, name))
                continue;
            *ret_status = status;
            return true;
        }
    return false;
}

void render_containers(struct render *render, const struct task *task)
{
    for (int initial = 1; initial >= 0; initial--) {
        const struct doc *list = containers_of(task, initial);
        if (doc_len(list) == 0)
            continue;
        json_key(&render->out, initial ? "initContainerStatuses" : "containerStatuses");
        json_begin_array(&render->out);
        for (size_t i = 0; i < doc_len(list); i++) {
            struct container_status status = status_at(task, i, initial);
            put_status(render, task, doc_at(list, i), &status);
        }
        json_end_array(&render->out);
    }
}

struct pod_counts render_pod_counts(const struct task *task)
{
    struct pod_counts counts = {0};
    for (int initial = 0; initial < 2; initial++) {
        const struct doc *list = containers_of(task, initial);
        for (size_t i = 0; i < doc_len(list); i++) {
            struct container_status status = status_at(task, i, initial);
            bool sidecar = status.role == CONTAINER_SIDECAR;
            counts.restarts += status.restarts;
            if (initial && !sidecar) {
                counts.inits++;
                counts.inits_done +=
                    status.phase == CONTAINER_TERMINATED && status.end.exit_code == 0 && !status.end.signal;
                continue;
            }
            counts.containers++;
            counts.ready += status.ready;
            if (status.phase == CONTAINER_WAITING && counts.reason.len == 0)
                counts.reason = status.reason;
        }
    }
    return counts;
}

struct str render_pod_status(const struct task *task, struct arena *scratch)
{
    struct pod_counts counts = render_pod_counts(task);
    if (task->state == TASK_STOPPING ||
        (task->job->jobset->form == FORM_POD && task->job->jobset->deleted_ns))
        return STR("Terminating");
    if (task->state == TASK_PENDING)
        return str_from(render_pod_word(task));
    if (task_ended(task->state))
        return arena_str(scratch, str_from(render_end_reason(task)));
    if (counts.inits > counts.inits_done && task->containers)
        return arena_printf(scratch, "Init:%u/%u", counts.inits_done, counts.inits);
    if (counts.reason.len)
        return counts.reason;
    return task->state == TASK_RUNNING ? STR("Running") : STR("ContainerCreating");
}
