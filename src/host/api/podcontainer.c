/* podcontainer.c - finds the container of a Pod that a request for its log, or for a command, refers to.
 * Answers have the words of Kubernetes. */
#include "host/api/podexec.h"
#include "kube/render.h"

/* Lists the names of all containers, init containers first. */
static void list_names(const struct pod_spec *pod, struct buf *out)
{
    for (int initial = 1; initial >= 0; initial--)
        for (size_t i = 0; i < pod->container_count; i++) {
            const struct container_launch *launch = &pod->containers[i].launch;
            if ((launch->role != CONTAINER_MAIN) == initial)
                buf_printf(out, "%s" STR_FORMAT, out->len ? " " : "", STR_ARG(launch->name));
        }
}

static bool has_container(const struct pod_spec *pod, struct str name)
{
    for (size_t i = 0; i < pod->container_count; i++)
        if (str_equal(pod->containers[i].launch.name, name))
            return true;
    return str_equal(pod->container, name);
}

static size_t count_main(const struct pod_spec *pod)
{
    size_t count = 0;
    for (size_t i = 0; i < pod->container_count; i++)
        count += pod->containers[i].launch.role == CONTAINER_MAIN;
    return count;
}

bool pod_container(struct api_request *request, const struct task *task, struct str *ret_container)
{
    const struct pod_spec *pod = &task->job->rjob->job.pod;
    struct str wanted = request_query(request, "container");
    if (wanted.len == 0 && count_main(pod) > 1) {
        struct buf names BUF_CLEANUP = {0};
        list_names(pod, &names);
        answer_status(request, 400, "BadRequest",
                      "a container name must be specified for pod " STR_FORMAT ", choose one of: [" STR_FORMAT
                      "]",
                      STR_ARG(task->name), STR_ARG(buf_str(&names)));
        return false;
    }
    if (wanted.len && !has_container(pod, wanted)) {
        answer_status(request, 400, "BadRequest", "container " STR_FORMAT " is not valid for pod " STR_FORMAT,
                      STR_ARG(wanted), STR_ARG(task->name));
        return false;
    }
    *ret_container = wanted.len ? wanted : pod->container;
    return true;
}

bool pod_container_started(struct api_request *request, const struct task *task, struct str container)
{
    struct container_status status;
    bool known = render_container_status(task, container, &status);
    bool begun = task->machine != MACHINE_NONE && known &&
                 (status.phase != CONTAINER_WAITING || status.end.finished_ns || status.restarts > 0);
    if (!begun)
        answer_status(request, 400, "BadRequest",
                      "container \"" STR_FORMAT "\" in pod \"" STR_FORMAT
                      "\" is waiting to start: " STR_FORMAT,
                      STR_ARG(container), STR_ARG(task->name),
                      STR_ARG(known && status.reason.len ? status.reason : str_from(render_pod_word(task))));
    return begun;
}

bool pod_container_runs(struct api_request *request, const struct task *task, struct str container)
{
    struct container_status status;
    if (task->machine == MACHINE_NONE) {
        answer_status(request, 400, "BadRequest", "pod " STR_FORMAT " does not have a host assigned",
                      STR_ARG(task->name));
        return false;
    }
    bool known = render_container_status(task, container, &status);
    if (known && status.phase == CONTAINER_RUNNING)
        return true;
    bool ended = known && status.phase == CONTAINER_TERMINATED;
    answer_status(request, 400, "BadRequest",
                  "container \"" STR_FORMAT "\" in pod \"" STR_FORMAT "\" is not running: " STR_FORMAT,
                  STR_ARG(container), STR_ARG(task->name),
                  STR_ARG(ended                        ? STR("it has ended")
                          : known && status.reason.len ? status.reason
                                                       : str_from(render_pod_word(task))));
    return false;
}
