/* watch.c - watchers: each is a cursor into the ring. An idle watcher holds no text; its next events are
 * written into `text` when its connection asks for them, a few KB ahead at most. A watcher that also reports
 * existing objects first collects their names, and renders the objects as its client reads (see list.c); the
 * memory for the names of all such watchers is limited. */
#include <stdio.h>

#include "host/api/guard.h"
#include "host/api/page.h"
#include "host/api/ring.h"

enum {
    TEXT_AHEAD = 16 * 1024,
    FIRST_BYTES_MAX = 64 * 1024 * 1024,
    LOOKS_A_READ = 512, /* then other connections follow */
};
#define BOOKMARK_NS (60 * NS_PER_SECOND)

struct watcher {
    struct body_stream stream; /* first: it is freed through it */
    struct list_node node;
    struct watch_ring *ring;
    const struct resource *resource;
    struct str namespace_; /* empty: all */
    struct selector selector;
    struct arena arena; /* of the selector; most selectors need none, and a first block takes 2 KB */
    struct answer_form form;
    uint64_t next;      /* number of the next change to examine */
    uint64_t after_seq; /* the client knows the changes up to here */
    uint64_t start_seq; /* core_seq() when the watch began; see `matched` */
    bool idle, columns_sent, bookmarks, ended;
    int64_t end_ns, bookmark_ns; /* 0: none */
    struct u64_map matched;      /* uids that match a mutable selector, as far as the client knows */
    struct guard_pass *pass;     /* NULL: no access control */
    struct buf text;
    size_t sent;      /* of text */
    struct buf first; /* "namespace\0name\0" of existing objects that were not sent yet */
    size_t first_next;
    char namespace_text[];
};

/* --- lines ------------------------------------------------------------------------------------- */

static void put_line(struct watcher *watcher, const char *type, struct str object, struct str metadata,
                     struct str cells, uint64_t seq)
{
    struct json_writer out = {.out = &watcher->text};
    json_begin_object(&out);
    json_pair_text(&out, "type", type);
    json_key(&out, "object");
    if (watcher->form.table) {
        table_begin(&out, watcher->resource, watcher->form.version, seq, !watcher->columns_sent);
        table_row(&out, watcher->form.include, watcher->form.version, cells, object, metadata);
        table_end(&out);
        watcher->columns_sent = true;
    } else {
        json_put_raw(&out, object);
    }
    json_end_object(&out);
    buf_add_char(&watcher->text, '\n');
}

static void put_bookmark(struct watcher *watcher, uint64_t seq)
{
    struct json_writer out = {.out = &watcher->text};
    char version[24];
    snprintf(version, sizeof version, "%llu", (unsigned long long)seq);
    json_begin_object(&out);
    json_pair_text(&out, "type", "BOOKMARK");
    json_key(&out, "object");
    json_begin_object(&out);
    json_pair_text(&out, "kind", watcher->resource->kind);
    json_pair_text(&out, "apiVersion", resource_api_version(watcher->resource));
    json_key(&out, "metadata");
    json_begin_object(&out);
    json_pair_text(&out, "resourceVersion", version);
    json_end_object(&out);
    json_end_object(&out);
    json_end_object(&out);
    buf_add_char(&watcher->text, '\n');
}

static void put_expired(struct watcher *watcher)
{
    struct json_writer out = {.out = &watcher->text};
    json_begin_object(&out);
    json_pair_text(&out, "type", "ERROR");
    json_key(&out, "object");
    status_write(&out, 410, "Expired", STR("too old resource version: list again"));
    json_end_object(&out);
    buf_add_char(&watcher->text, '\n');
    watcher->ended = true;
    watcher->ring->api->stats.expired_watches++;
}

/* --- changes ----------------------------------------------------------------------------------- */

static bool concerns(const struct watcher *watcher, const struct change *change)
{
    return change->resource == watcher->resource->id &&
           (watcher->namespace_.len == 0 || str_equal(watcher->namespace_, change->namespace_)) &&
           (watcher->selector.name.len == 0 || str_equal(watcher->selector.name, change->name));
}

/* Returns the type of a change as this watcher sees it, or NULL if it does not concern the watcher. An
 * object that no longer matches appears as deleted. */
static const char *type_for(struct watcher *watcher, const struct change *change)
{
    static const char *const names[] = {
        [CHANGE_ADDED] = "ADDED", [CHANGE_MODIFIED] = "MODIFIED", [CHANGE_DELETED] = "DELETED"};
    if (select_all(&watcher->selector))
        return names[change->type];
    bool holds = select_json(&watcher->selector, change->object, change->metadata);
    if (!watcher->selector.mutable)
        return holds ? names[change->type] : NULL;
    bool known = u64_map_get(&watcher->matched, change->uid) != NULL || change->seq <= watcher->start_seq;
    if (change->type == CHANGE_DELETED || !holds) {
        u64_map_remove(&watcher->matched, change->uid);
        return known ? "DELETED" : NULL;
    }
    u64_map_put(&watcher->matched, change->uid, watcher);
    return known && change->type == CHANGE_MODIFIED ? "MODIFIED" : "ADDED";
}

static void drop_first(struct watcher *watcher)
{
    watcher->ring->first_bytes -= watcher->first.cap;
    watcher->first_next = 0;
    buf_done(&watcher->first);
}

static struct str next_first(struct watcher *watcher)
{
    struct str text = str_from(watcher->first.data + watcher->first_next);
    watcher->first_next += text.len + 1;
    return text;
}

/* Writes the next object that existed when the watch began, in its present state. Leaves out a deleted
 * one. */
static void put_first(struct watcher *watcher)
{
    const struct api *api = watcher->ring->api;
    struct arena scratch ARENA_CLEANUP = {0};
    struct buf object_text BUF_CLEANUP = {0}, cells_text BUF_CLEANUP = {0};
    struct render whole = {.out = {.out = &object_text},
                           .core = api->hooks.core(api->hooks.context),
                           .now_ns = api->hooks.now_ns(api->hooks.context),
                           .scratch = &scratch};
    struct render cells = whole;
    struct object_ref object;
    struct str namespace_ = next_first(watcher), name = next_first(watcher);
    if (resource_get(watcher->resource, whole.core, namespace_, name, &object)) {
        cells.out.out = &cells_text;
        if (watcher->form.table)
            table_cells(&cells, watcher->resource, object, name);
        render_object(&whole, watcher->resource, object, name);
        struct str metadata = {object_text.data + whole.metadata_start, whole.metadata_len};
        put_line(watcher, "ADDED", buf_str(&object_text), metadata, buf_str(&cells_text),
                 core_seq(whole.core));
    }
    if (watcher->first_next == watcher->first.len)
        drop_first(watcher);
}

/* Writes the following changes. Returns whether changes are left that were not examined. */
static bool fill(struct watcher *watcher)
{
    struct watch_ring *ring = watcher->ring;
    while (watcher->first.len && watcher->text.len < TEXT_AHEAD)
        put_first(watcher);
    for (int i = 0; i < LOOKS_A_READ && !watcher->ended && watcher->text.len < TEXT_AHEAD; i++) {
        if (watcher->next < ring->first)
            put_expired(watcher);
        if (watcher->ended || watcher->next == ring->next)
            return false;
        const struct change *change = ring_at(ring, watcher->next++);
        if (change->seq <= watcher->after_seq || !concerns(watcher, change))
            continue;
        const char *type = type_for(watcher, change);
        if (type)
            put_line(watcher, type, change->object, change->metadata, change->cells, change->seq);
    }
    return !watcher->ended;
}

static int64_t watcher_read(struct body_stream *stream, char *data, size_t max)
{
    struct watcher *watcher = (struct watcher *)stream;
    bool more = false;
    if (watcher->sent == watcher->text.len) {
        watcher->sent = 0;
        buf_clear(&watcher->text);
        more = fill(watcher);
    }
    size_t left = watcher->text.len - watcher->sent;
    if (left == 0) {
        if (watcher->ended)
            return -1;
        buf_done(&watcher->text);
        watcher->idle = !more;
        if (more) /* other connections have their turn first */
            transport_wake(watcher->stream.transport);
        return 0;
    }
    size_t len = left < max ? left : max;
    memcpy(data, watcher->text.data + watcher->sent, len);
    watcher->sent += len;
    return (int64_t)len;
}

static void watcher_free(struct body_stream *stream)
{
    struct watcher *watcher = (struct watcher *)stream;
    list_remove(&watcher->node);
    watcher->ring->watcher_count[watcher->resource->id]--;
    watcher->ring->api->stats.watches--;
    watch_ring_interest(watcher->ring, watcher->resource);
    u64_map_done(&watcher->matched);
    drop_first(watcher);
    buf_done(&watcher->text);
    guard_pass_free(watcher->pass);
    arena_done(&watcher->arena);
    mem_free(watcher);
}

static void wake(struct watcher *watcher)
{
    watcher->idle = false;
    transport_wake(watcher->stream.transport);
}

void watchers_notice(struct watch_ring *ring, const struct change *change, uint64_t number)
{
    list_for_each(node, &ring->watchers[change->resource])
    {
        struct watcher *watcher = container_of(node, struct watcher, node);
        /* An idle watcher has seen every change of its resource, so its cursor may lag until now. */
        if (!watcher->idle || !concerns(watcher, change))
            continue;
        watcher->next = number;
        wake(watcher);
    }
}

/* Writes the last event of a watch whose user has lost the right to it. */
static void put_denied(struct watcher *watcher, int code)
{
    struct json_writer out = {.out = &watcher->text};
    if (watcher->first.len)
        drop_first(watcher);
    json_begin_object(&out);
    json_pair_text(&out, "type", "ERROR");
    json_key(&out, "object");
    if (code == 401)
        status_write(&out, 401, "Unauthorized", STR("Unauthorized"));
    else
        status_write(&out, 403, "Forbidden", str_from(guard_ended_text(code)));
    json_end_object(&out);
    buf_add_char(&watcher->text, '\n');
    watcher->ended = true;
    watcher->next = watcher->ring->next;
    if (watcher->idle)
        wake(watcher);
}

void watchers_check_rights(struct watch_ring *ring)
{
    if (!ring->api->access || !guard_look_due(ring->api, &ring->rights))
        return;
    for (int i = 0; i < RESOURCES; i++) {
        list_for_each_safe(node, after, &ring->watchers[i])
        {
            struct watcher *watcher = container_of(node, struct watcher, node);
            int code = watcher->pass && !watcher->ended
                           ? guard_pass_check(watcher->pass, ring->api, watcher->stream.transport)
                           : 0;
            if (code)
                put_denied(watcher, code);
        }
    }
}

void watchers_end(struct watch_ring *ring)
{
    for (int i = 0; i < RESOURCES; i++) {
        list_for_each_safe(node, after, &ring->watchers[i])
        {
            struct watcher *watcher = container_of(node, struct watcher, node);
            watcher->ended = true; /* after the objects that it began with */
            watcher->next = ring->next;
            wake(watcher);
        }
    }
}

void watch_ring_tick(struct watch_ring *ring)
{
    watchers_check_rights(ring);
    int64_t now_ns = ring->api->hooks.now_ns(ring->api->hooks.context);
    uint64_t seq = core_seq(ring->api->hooks.core(ring->api->hooks.context));
    for (int i = 0; i < RESOURCES; i++) {
        list_for_each_safe(node, after, &ring->watchers[i])
        {
            struct watcher *watcher = container_of(node, struct watcher, node);
            if (!watcher->idle)
                continue;
            if (watcher->end_ns && now_ns >= watcher->end_ns) {
                watcher->ended = true;
                watcher->next = ring->next;
                wake(watcher);
            } else if (watcher->bookmarks && now_ns >= watcher->bookmark_ns) {
                watcher->bookmark_ns = now_ns + BOOKMARK_NS;
                watcher->next = ring->next;
                put_bookmark(watcher, seq);
                wake(watcher);
            }
        }
    }
}

/* --- beginning --------------------------------------------------------------------------------- */

struct beginning {
    struct watcher *watcher;
    const struct core *core;
    bool say; /* the client wants the existing objects too */
    struct arena scratch;
};

static void begin_with(void *context, struct object_ref object, struct str name)
{
    struct beginning *beginning = context;
    struct watcher *watcher = beginning->watcher;
    if (!select_all(&watcher->selector) &&
        !select_object(&watcher->selector, beginning->core, object, name, &beginning->scratch))
        return;
    if (watcher->selector.mutable)
        u64_map_put(&watcher->matched, object_name(object).uid, watcher);
    if (beginning->say) {
        if (watcher->resource->namespaced)
            buf_add_str(&watcher->first, resource_namespace(object));
        buf_add_char(&watcher->first, 0);
        buf_add_str(&watcher->first, name);
        buf_add_char(&watcher->first, 0);
    }
    if (beginning->scratch.used_bytes > 64 * 1024)
        arena_done(&beginning->scratch);
}

static void begin(struct watcher *watcher, const struct core *core, bool say)
{
    struct beginning beginning = {.watcher = watcher, .core = core, .say = say};
    const struct resource *resource = watcher->resource;
    struct object_ref object;
    if (!say && !watcher->selector.mutable)
        return;
    if (watcher->selector.name.len && (!resource->namespaced || watcher->namespace_.len)) {
        if (resource_get(resource, core, watcher->namespace_, watcher->selector.name, &object))
            begin_with(&beginning, object, watcher->selector.name);
    } else {
        resource_visit(resource, core, watcher->namespace_, begin_with, &beginning);
    }
    arena_done(&beginning.scratch);
    watcher->ring->first_bytes += watcher->first.cap;
}

static struct watcher *watcher_new(struct api_request *request)
{
    struct watch_ring *ring = request->api->ring;
    struct watcher *watcher = mem_alloc(sizeof *watcher + request->namespace_.len);
    watcher->stream = (struct body_stream){watcher_read, watcher_free, request->transport};
    watcher->ring = ring;
    watcher->resource = request->resource;
    watcher->form = request_form(request);
    watcher->namespace_ = (struct str){watcher->namespace_text, request->namespace_.len};
    if (request->namespace_.len)
        memcpy(watcher->namespace_text, request->namespace_.data, request->namespace_.len);
    watcher->start_seq = core_seq(request_core(request));
    watcher->pass = guard_pass_new(request);
    list_append(&ring->watchers[request->resource->id], &watcher->node);
    ring->watcher_count[request->resource->id]++;
    request->api->stats.watches++;
    return watcher;
}

void handle_watch(struct api_request *request)
{
    struct watch_ring *ring = request->api->ring;
    struct selector checked;
    struct str version_text = request_query(request, "resourceVersion");
    int64_t version = 0, timeout_s = 0, now_ns = request_now(request);
    if (version_text.len && !str_to_i64(version_text, 0, INT64_MAX, &version)) {
        answer_status(request, 400, "BadRequest", "resourceVersion is a decimal number");
        return;
    }
    if (!page_allows_watch(request) || !request_selector(request, &checked))
        return;
    uint64_t seq = core_seq(request_core(request));
    if (version && ((uint64_t)version < ring->floor_seq[request->resource->id] || (uint64_t)version > seq)) {
        answer_status(request, 410, "Expired", "too old resource version: %lld (%llu)", (long long)version,
                      (unsigned long long)ring->floor_seq[request->resource->id]);
        return;
    }
    if (version == 0 && ring->first_bytes > FIRST_BYTES_MAX) {
        request->retry_after_s = 1;
        answer_status(request, 429, "TooManyRequests",
                      "too many watches begin at once: watch from the version of a list, or try again later");
        return;
    }
    struct watcher *watcher = watcher_new(request);
    CHECK(select_parse(&watcher->arena, request->resource, request_query(request, "labelSelector"),
                       request_query(request, "fieldSelector"), &watcher->selector, NULL) == 0);
    watcher->bookmarks = request_flag(request, "allowWatchBookmarks");
    watcher->bookmark_ns = now_ns + BOOKMARK_NS;
    if (str_to_i64(request_query(request, "timeoutSeconds"), 1, INT32_MAX, &timeout_s))
        watcher->end_ns = now_ns + timeout_s * NS_PER_SECOND;
    watcher->after_seq = version ? (uint64_t)version : seq;
    watcher->next = version ? ring->first : ring->next;
    begin(watcher, request_core(request), version == 0);
    (void)answer_begin(request, 200);
    request->outcome = OUTCOME_STREAM;
    request->stream = &watcher->stream;
}
