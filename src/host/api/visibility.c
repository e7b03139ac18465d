#include "host/api/visibility.h"

#include "host/api/list.h"

static bool read_number(struct api_request *request, const char *name, int64_t fallback, int64_t *ret_number)
{
    struct str text = request_query(request, name);
    *ret_number = fallback;
    if (!text.len || str_to_i64(text, 0, INT32_MAX, ret_number))
        return true;
    answer_status(request, 400, "BadRequest", "%s must be a number, not \"" STR_FORMAT "\"", name,
                  STR_ARG(text));
    return false;
}

static void put_one(struct render *render, const struct pending_workload *pending)
{
    struct json_writer *out = &render->out;
    const struct workload *workload = pending->workload;
    json_begin_object(out);
    render_workload_head(render, workload);
    json_pair_int(out, "priority", workload->priority);
    json_pair_str(out, "localQueueName", workload->queue_name);
    json_pair_int(out, "positionInClusterQueue", pending->in_cluster_queue);
    json_pair_int(out, "positionInLocalQueue", pending->in_local_queue);
    json_end_object(out);
}

void handle_pending(struct api_request *request)
{
    const struct core *core = request_core(request);
    const struct object *queue =
        object_find(core_objects(core), request->resource->object, request->namespace_, request->name);
    int64_t offset, limit;
    struct pending_workload *list;
    if (request->method != METHOD_GET) {
        answer_status(request, 405, "MethodNotAllowed",
                      "the server does not allow this method on the requested resource");
        return;
    }
    if (!queue) {
        answer_not_found(request);
        return;
    }
    if (!read_number(request, "offset", 0, &offset) ||
        !read_number(request, "limit", PENDING_DEFAULT, &limit))
        return;
    size_t count = queue_pending(core_admit(core), queue, &request->arena, &list);
    struct render render = list_render(request, answer_begin(request, 200));
    struct json_writer *out = &render.out;
    json_begin_object(out);
    json_pair_text(out, "kind", "PendingWorkloadsSummary");
    json_pair_text(out, "apiVersion", request->resource->api_version);
    json_key(out, "metadata");
    json_begin_object(out);
    json_key(out, "creationTimestamp");
    json_put_null(out);
    json_end_object(out);
    json_key(out, "items");
    json_begin_array(out);
    for (size_t i = (size_t)offset; i < count && i - (size_t)offset < (size_t)limit; i++)
        put_one(&render, &list[i]);
    json_end_array(out);
    json_end_object(out);
}
