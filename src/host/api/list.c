/* list.c - lists. First the names of the objects are collected; then the objects are rendered as the client
 * reads. A list of 16,000 Nodes costs a few hundred KiB, not its 30 MB, and no turn of the loop is long. A
 * list whose text fits into the first chunk is answered at once, with its length.
 *
 * A list has the version at which its names were collected. An object is shown in the state that it has when
 * it is rendered, which may be newer; an object that was deleted in between is left out. A client that
 * watches from the list's version gets both changes again, so its view becomes correct. */
#include "host/api/builtin.h"
#include "host/api/list.h"

#include "host/api/page.h"
#include "kube/usage.h"

#include <stdio.h>

enum { CHUNK_BYTES = 64 * 1024, SCRATCH_BYTES = 64 * 1024 };

struct lister {
    struct body_stream stream;
    struct api *api;
    const struct resource *resource;
    struct answer_form form;
    struct render render; /* writes to `text` */
    struct arena names, scratch;
    struct page page;
    bool exact; /* the list has no selector */
    size_t next, sent;
    struct buf text;
    bool ended;
};

static void put_object(struct lister *lister, struct object_ref object, struct str name)
{
    if (lister->form.table)
        list_put_row(&lister->render, lister->form, lister->resource, object, name);
    else
        render_object(&lister->render, lister->resource, object, name);
    if (lister->scratch.used_bytes > SCRATCH_BYTES)
        arena_done(&lister->scratch);
}

static void begin_list(struct lister *lister)
{
    struct json_writer *out = &lister->render.out;
    uint64_t seq = core_seq(lister->render.core);
    char kind[64];
    if (lister->form.table) {
        table_begin_metadata(out, lister->form.version);
        page_put_metadata(&lister->page, out, seq, lister->exact);
        table_end_metadata(out, lister->resource, true);
        return;
    }
    snprintf(kind, sizeof kind, "%sList", lister->resource->kind);
    json_begin_object(out);
    render_type(&lister->render, resource_api_version(lister->resource), kind);
    json_key(out, "metadata");
    json_begin_object(out);
    page_put_metadata(&lister->page, out, seq, lister->exact);
    json_end_object(out);
    json_key(out, "items");
    json_begin_array(out);
}

static void end_list(struct lister *lister)
{
    json_end_array(&lister->render.out);
    json_end_object(&lister->render.out);
}

static bool find(const struct api *api, const struct resource *resource, struct page_place place,
                 struct object_ref *ret_object)
{
    const struct core *core = api->hooks.core(api->hooks.context);
    return resource_get(resource, core, place.namespace_, place.name, ret_object) ||
           builtin_find(resource, api->builtins, place.name, ret_object);
}

/* Renders objects from `next` on, until the text has `bytes` bytes. */
static void render_some(struct lister *lister, size_t bytes)
{
    while (lister->next < lister->page.places.len && lister->render.out.out->len < bytes) {
        struct page_place place = lister->page.places.items[lister->next++];
        struct object_ref object;
        if (find(lister->api, lister->resource, place, &object) &&
            object_is_listed(lister->api, lister->resource, object, lister->render.now_ns))
            put_object(lister, object, place.name);
    }
    if (lister->next == lister->page.places.len && !lister->ended) {
        end_list(lister);
        lister->ended = true;
    }
}

static void lister_done(struct lister *lister)
{
    page_done(&lister->page);
    arena_done(&lister->names);
    arena_done(&lister->scratch);
    buf_done(&lister->text);
}

/* --- as a stream ------------------------------------------------------------------------------- */

static int64_t lister_read(struct body_stream *stream, char *data, size_t max)
{
    struct lister *lister = (struct lister *)stream;
    if (lister->sent == lister->text.len) {
        if (lister->ended)
            return -1;
        lister->sent = 0;
        buf_clear(&lister->text);
        lister->render.core = lister->api->hooks.core(lister->api->hooks.context);
        render_some(lister, CHUNK_BYTES);
    }
    size_t left = lister->text.len - lister->sent, len = left < max ? left : max;
    memcpy(data, lister->text.data + lister->sent, len);
    lister->sent += len;
    return (int64_t)len;
}

static void lister_free(struct body_stream *stream)
{
    struct lister *lister = (struct lister *)stream;
    lister_done(lister);
    mem_free(lister);
}

/* Makes a stream of the rest of the list, after the text that the answer has. */
static void answer_stream(struct api_request *request, struct lister *lister)
{
    struct lister *kept = mem_alloc(sizeof *kept);
    *kept = *lister;
    kept->stream = (struct body_stream){lister_read, lister_free, request->transport};
    kept->text = request->answer;
    request->answer = (struct buf){0};
    kept->render.out.out = &kept->text;
    kept->render.scratch = &kept->scratch;
    request->outcome = OUTCOME_STREAM;
    request->stream = &kept->stream;
}

/* --- the request ------------------------------------------------------------------------------- */

struct choosing {
    struct lister *lister;
    const struct selector *selector;
};

static void choose(void *context, struct object_ref object, struct str name)
{
    struct choosing *choosing = context;
    struct lister *lister = choosing->lister;
    if (select_all(choosing->selector) ||
        select_object(choosing->selector, lister->render.core, object, name, &lister->scratch)) {
        struct str namespace_ = lister->resource->namespaced ? resource_namespace(object) : (struct str){0};
        page_add(&lister->page, &lister->names, namespace_, name);
    }
    if (lister->scratch.used_bytes > SCRATCH_BYTES)
        arena_done(&lister->scratch);
}

void handle_list(struct api_request *request)
{
    struct lister lister = {
        .api = request->api, .resource = request->resource, .form = request_form(request)};
    struct selector selector;
    struct object_ref object;
    if (!page_read(request, &lister.page) || !request_selector(request, &selector))
        return;
    lister.exact = select_all(&selector);
    const struct resource *resource = request->resource;
    watch_ring_interest(request->api->ring, resource);
    lister.render = list_render(request, (struct json_writer){0});
    lister.render.scratch = &lister.scratch;
    struct choosing choosing = {&lister, &selector};
    if (selector.name.len && (!resource->namespaced || request->namespace_.len)) {
        if (find(request->api, resource, (struct page_place){request->namespace_, selector.name}, &object))
            choose(&choosing, object, selector.name);
    } else {
        builtin_visit(resource, lister.render.core, request->api->builtins, choose, &choosing);
        resource_visit(resource, lister.render.core, request->namespace_, choose, &choosing);
    }
    page_end(&lister.page);
    lister.render.out = answer_begin(request, 200);
    begin_list(&lister);
    render_some(&lister, CHUNK_BYTES);
    if (lister.ended)
        lister_done(&lister);
    else
        answer_stream(request, &lister);
}
