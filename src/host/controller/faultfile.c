/* faultfile.c - the fault table as a file: whenever the file changes, writes what `kubectl apply` would
 * write.
 *
 * The folder is watched (inotify), since editors and configuration managers replace the file; changes within
 * half a second count as one. A mistake in the file is reported with its place, on standard error and as an
 * Event, and the last good table stays. The file is one document: a FaultTable, or its spec alone.
 */
#include <stdio.h>

#include "doc/json.h"
#include "core/health/table.h"
#include "core/spec/spec.h"
#include "host/controller/internal.h"

enum { MEMORY_MAX = 64 * 1024 * 1024, NOTE_BYTES = 1000 };

struct fault_file {
    uv_fs_event_t *watch; /* NULL: none, or closing: it frees itself */
    bool changed;
    struct buf folder, name; /* the parts of options.faults */
};

static void queue_write(struct controller *controller, enum write_verb verb, enum object_kind kind,
                        const struct doc *body)
{
    struct buf json BUF_CLEANUP = {0};
    json_write(&json, body);
    bool named = kind == OBJECT_FAULT_TABLE && verb == WRITE_REPLACE;
    struct write_event write = {.verb = verb,
                                .object = kind,
                                .namespace_ = kind == OBJECT_EVENT ? STR("default") : STR(""),
                                .name = named ? STR(FAULT_TABLE_NAME) : STR(""),
                                .body = buf_str(&json),
                                .grace_s = -1,
                                .draw = controller_draw(),
                                .user = STR("phalanx:faults-file")};
    driver_write(controller->driver, &write, 0);
}

/* Reports a mistake to the operator: on standard error, and as an Event of the table. */
static void complain(struct controller *controller, struct str why)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *event;
    char now[32];
    struct buf text BUF_CLEANUP = {0};
    fprintf(stderr, "warning: the fault table stays as it was: " STR_FORMAT "\n", STR_ARG(why));
    time_format(driver_stamp_ns(controller->driver), now);
    struct json_writer json = {.out = &text};
    json_begin_object(&json);
    json_pair_text(&json, "message", "");
    json_pair_text(&json, "apiVersion", "v1");
    json_pair_text(&json, "kind", "Event");
    json_pair_text(&json, "type", "Warning");
    json_pair_text(&json, "reason", "BadFaultTable");
    json_pair_text(&json, "firstTimestamp", now);
    json_pair_text(&json, "lastTimestamp", now);
    json_pair_int(&json, "count", 1);
    json_key(&json, "metadata");
    json_put_raw(&json, STR("{\"generateName\":\"fault-table.\",\"namespace\":\"default\"}"));
    json_key(&json, "source");
    json_put_raw(&json, STR("{\"component\":\"phalanx-controller\"}"));
    json_key(&json, "involvedObject");
    json_put_raw(&json,
                 STR("{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"FaultTable\",\"name\":\"default\"}"));
    json_end_object(&json);
    CHECK(json_parse(&arena, buf_str(&text), &event, NULL) == 0);
    while (why.len > NOTE_BYTES || !str_is_utf8(why))
        why.len--;
    doc_set(&arena, event, STR("message"), doc_new_str(&arena, why));
    queue_write(controller, WRITE_CREATE, OBJECT_EVENT, event);
}

static void take(struct controller *controller)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = MEMORY_MAX};
    struct buf why BUF_CLEANUP = {0};
    const struct doc *table = fault_table_read(controller->options.faults, &arena, &why);
    if (!table) {
        complain(controller, buf_str(&why));
        return;
    }
    const struct object *known =
        object_find(core_objects(controller->core), OBJECT_FAULT_TABLE, STR(""), STR(FAULT_TABLE_NAME));
    if (!known || !spec_equal(doc_get(known->document, "spec"), doc_get(table, "spec")))
        queue_write(controller, known ? WRITE_REPLACE : WRITE_CREATE, OBJECT_FAULT_TABLE, table);
}

static void on_change(uv_fs_event_t *watch, const char *name, int events, int status)
{
    struct controller *controller = watch->data;
    struct fault_file *file = controller->fault_file;
    if (!name || strcmp(name, file->name.data) == 0)
        file->changed = true;
}

void fault_file_look(struct controller *controller)
{
    struct fault_file *file = controller->fault_file;
    if (!file || !file->changed)
        return;
    file->changed = false;
    take(controller);
}

int fault_file_open(struct controller *controller, struct error *error)
{
    const char *path = controller->options.faults;
    if (!path)
        return 0;
    struct fault_file *file = controller->fault_file = mem_alloc(sizeof *file);
    const char *slash = strrchr(path, '/');
    buf_add_str(&file->name, str_from(slash ? slash + 1 : path));
    buf_add_str(&file->folder, slash == path ? STR("/")
                               : slash       ? (struct str){path, (size_t)(slash - path)}
                                             : STR("."));
    file->watch = mem_alloc(sizeof *file->watch);
    CHECK(uv_fs_event_init(controller->loop, file->watch) == 0);
    file->watch->data = controller;
    int rc = uv_fs_event_start(file->watch, on_change, file->folder.data, 0);
    if (rc < 0)
        return error_set(error, ERROR_IO, "watching %s for the fault table: %s", file->folder.data,
                         uv_strerror(rc));
    take(controller);
    return 0;
}

static void on_closed(uv_handle_t *watch)
{
    mem_free(watch);
}

void fault_file_close(struct controller *controller)
{
    struct fault_file *file = controller->fault_file;
    if (file && file->watch)
        uv_close((uv_handle_t *)file->watch, on_closed);
    if (file)
        file->watch = NULL;
}

void fault_file_free(struct controller *controller)
{
    struct fault_file *file = controller->fault_file;
    if (!file)
        return;
    buf_done(&file->folder);
    buf_done(&file->name);
    mem_free(file);
}
