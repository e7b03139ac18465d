#include <stdio.h>

#include "host/api/request.h"

struct json_writer answer_begin(struct api_request *request, int code)
{
    buf_clear(&request->answer);
    request->outcome = OUTCOME_READY;
    request->code = code;
    request->answer_type = ANSWER_JSON;
    return (struct json_writer){.out = &request->answer};
}

struct str resource_title(struct arena *arena, const struct resource *resource)
{
    if (!*resource->group)
        return str_from(resource->plural);
    return arena_printf(arena, "%s.%s", resource->plural, resource->group);
}

static void begin_status(struct json_writer *out, int code, const char *reason, struct str message)
{
    json_begin_object(out);
    json_pair_text(out, "kind", "Status");
    json_pair_text(out, "apiVersion", "v1");
    json_key(out, "metadata");
    json_begin_object(out);
    json_end_object(out);
    json_pair_text(out, "status", code < 400 ? "Success" : "Failure");
    if (message.len)
        json_pair_str(out, "message", message);
    if (reason && *reason)
        json_pair_text(out, "reason", reason);
    json_pair_int(out, "code", code);
}

void status_write(struct json_writer *out, int code, const char *reason, struct str message)
{
    begin_status(out, code, reason, message);
    json_end_object(out);
}

static void put_causes(struct json_writer *out, const struct field_errors *causes)
{
    json_key(out, "causes");
    json_begin_array(out);
    for (size_t i = 0; i < causes->list.len; i++) {
        const struct field_error *cause = &causes->list.items[i];
        json_begin_object(out);
        json_pair_text(out, "reason", cause->reason);
        json_pair_str(out, "message", cause->message);
        if (cause->path.len)
            json_pair_str(out, "field", cause->path);
        json_end_object(out);
    }
    json_end_array(out);
}

static void put_details(struct json_writer *out, struct api_request *request,
                        const struct field_errors *causes, obj_id uid)
{
    const struct resource *resource = request->resource;
    json_key(out, "details");
    json_begin_object(out);
    if (request->name.len)
        json_pair_str(out, "name", request->name);
    if (resource && *resource->group)
        json_pair_text(out, "group", resource->group);
    /* Kubernetes names the kind for Invalid and the plural otherwise; kubectl prints either. */
    if (resource)
        json_pair_text(out, "kind", causes ? resource->kind : resource->plural);
    if (uid) {
        char text[UID_TEXT_MAX];
        uid_text(uid, text);
        json_pair_text(out, "uid", text);
    }
    if (causes)
        put_causes(out, causes);
    if (request->retry_after_s)
        json_pair_int(out, "retryAfterSeconds", request->retry_after_s);
    json_end_object(out);
}

void answer_status_causes(struct api_request *request, int code, const char *reason, struct str message,
                          const struct field_errors *causes)
{
    struct json_writer out = answer_begin(request, code);
    begin_status(&out, code, reason, message);
    if (code == 429 && causes) { /* of a disruption budget: as in Kubernetes, the causes only */
        json_key(&out, "details");
        json_begin_object(&out);
        put_causes(&out, causes);
        json_end_object(&out);
    } else if (request->resource) {
        put_details(&out, request, causes, 0);
    }
    json_end_object(&out);
}

void answer_status(struct api_request *request, int code, const char *reason, const char *format, ...)
{
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    answer_status_causes(request, code, reason, buf_str(&text), NULL);
}

void answer_not_found(struct api_request *request)
{
    struct str title = resource_title(&request->arena, request->resource);
    answer_status(request, 404, "NotFound", STR_FORMAT " \"" STR_FORMAT "\" not found", STR_ARG(title),
                  STR_ARG(request->name));
}

void answer_success(struct api_request *request, obj_id uid)
{
    struct json_writer out = answer_begin(request, 200);
    begin_status(&out, 200, "", (struct str){0});
    put_details(&out, request, NULL, uid);
    json_end_object(&out);
}
