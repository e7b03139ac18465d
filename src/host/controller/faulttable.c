/* faulttable.c - reads the fault table from a file, for the controller and for `phalanx check`. */
#include "doc/yaml.h"
#include "core/health/table.h"
#include "core/spec/spec.h"
#include "host/controller/controller.h"
#include "os/file.h"

enum { FILE_BYTES_MAX = 1024 * 1024 };

/* Appends each mistake in the table to `why`, with its field. */
static void check_table(const char *path, struct arena *arena, struct doc *table, struct buf *why)
{
    struct field_errors errors = {.arena = arena};
    stored_default(arena, table);
    spec_unknown_fields(table, &errors);
    stored_check(table, &errors);
    for (size_t i = 0; i < errors.list.len; i++) {
        const struct field_error *item = &errors.list.items[i];
        buf_printf(why, "%s%s:%u:%u: " STR_FORMAT "%s" STR_FORMAT, i ? "\n" : "", path, item->line,
                   item->column, STR_ARG(item->path), item->path.len ? ": " : "", STR_ARG(item->message));
    }
    field_errors_done(&errors);
}

struct doc *fault_table_read(const char *path, struct arena *arena, struct buf *why)
{
    struct buf text BUF_CLEANUP = {0};
    struct doc_list docs = {0};
    struct error error = {0};
    if (os_file_read(path, FILE_BYTES_MAX, &text, &error) < 0) {
        buf_printf(why, "%s", error.text);
        return NULL;
    }
    if (yaml_parse_all(arena, buf_str(&text), &docs, &error) < 0) {
        buf_printf(why, "%s:%s", path, error.text);
        return NULL;
    }
    if (docs.len != 1) {
        buf_printf(why, "%s: expected one document, got %zu", path, docs.len);
        return NULL;
    }
    struct doc *table = docs.items[0];
    if (!doc_get(table, "kind") && !doc_get(table, "spec")) {
        struct doc *whole = doc_new(arena, DOC_OBJECT);
        doc_set(arena, whole, STR("spec"), table);
        table = whole;
    }
    doc_set(arena, table, STR("apiVersion"), doc_new_str(arena, STR("phalanx.dev/v1")));
    if (!doc_get(table, "kind"))
        doc_set(arena, table, STR("kind"), doc_new_str(arena, STR("FaultTable")));
    struct doc *metadata = doc_need_object(arena, table, "metadata");
    if (metadata && !doc_get(metadata, "name"))
        doc_set(arena, metadata, STR("name"), doc_new_str(arena, STR(FAULT_TABLE_NAME)));
    if (str_is(doc_str(doc_get(table, "kind"), STR("")), "FaultTable"))
        check_table(path, arena, table, why);
    else
        buf_printf(why, "%s: no FaultTable, but something else", path);
    return why->len ? NULL : table;
}
