#include <stdio.h>

#include "host/api/builtin.h"
#include "host/api/list.h"
#include "kube/usage.h"

struct render list_render(struct api_request *request, struct json_writer out)
{
    return (struct render){.out = out,
                           .core = request_core(request),
                           .now_ns = request_now(request),
                           .live = !request->compares,
                           .usages = request->api->usages,
                           .hold_counts = request->compares ? NULL : request->api->hooks.hold_counts,
                           .host = request->api->hooks.context,
                           .scratch = &request->arena};
}

/* Renders an object into `text`. Returns the text, and the place of its metadata. */
static struct str render_text(const struct render *base, struct buf *text, const struct resource *resource,
                              struct object_ref object, struct str name, struct str *ret_metadata)
{
    struct render render = *base;
    buf_clear(text);
    render.out = (struct json_writer){.out = text};
    render_object(&render, resource, object, name);
    *ret_metadata = (struct str){text->data + render.metadata_start, render.metadata_len};
    return buf_str(text);
}

void list_put_row(struct render *render, struct answer_form form, const struct resource *resource,
                  struct object_ref object, struct str name)
{
    struct buf text BUF_CLEANUP = {0}, cells BUF_CLEANUP = {0};
    struct str metadata = {0}, whole = {0};
    if (form.include != INCLUDE_NONE)
        whole = render_text(render, &text, resource, object, name, &metadata);
    struct render row = *render;
    row.out = (struct json_writer){.out = &cells};
    table_cells(&row, resource, object, name);
    table_row(&render->out, form.include, form.version, buf_str(&cells), whole, metadata);
}

void answer_object(struct api_request *request, int code, struct object_ref object, struct str name)
{
    struct answer_form form = request_form(request);
    struct render render = list_render(request, answer_begin(request, code));
    render.fresh = code == 200;
    if (form.table) {
        table_begin(&render.out, request->resource, form.version, core_seq(render.core), true);
        list_put_row(&render, form, request->resource, object, name);
        table_end(&render.out);
    } else {
        render_object(&render, request->resource, object, name);
    }
}

void handle_report(struct api_request *request)
{
    struct render render = list_render(request, answer_begin(request, 200));
    render.live = true;
    render_report(&render);
}

bool object_is_listed(const struct api *api, const struct resource *resource, struct object_ref object,
                      int64_t now_ns)
{
    if (resource->id == RESOURCE_LEMONS)
        return lemon_is_shown(api->hooks.core(api->hooks.context), object.machine);
    return usage_shows(api->usages, resource, object, now_ns);
}

bool request_find(const struct api_request *request, struct object_ref *ret_object)
{
    return resource_get(request->resource, request_core(request), request->namespace_, request->name,
                        ret_object) ||
           builtin_find(request->resource, request->api->builtins, request->name, ret_object);
}

void handle_get(struct api_request *request)
{
    struct object_ref object;
    watch_ring_interest(request->api->ring, request->resource);
    if (!request_find(request, &object) ||
        !object_is_listed(request->api, request->resource, object, request_now(request))) {
        answer_not_found(request);
        return;
    }
    answer_object(request, 200, object, request->name);
}
