#include "cmd/cluster_file.h"
#include "cmd/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doc/json.h"
#include "doc/yaml.h"

enum { FILE_BYTES_MAX = 64 * 1024 * 1024, ARENA_BYTES_MAX = 512 * 1024 * 1024 };

bool cluster_file_text(const char *path, struct buf *ret_text)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!file) {
        say("%s: %s", path, strerror(errno));
        return false;
    }
    char chunk[65536];
    size_t got;
    while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0 && ret_text->len <= FILE_BYTES_MAX)
        buf_add(ret_text, chunk, got);
    bool failed = ferror(file) || ret_text->len > FILE_BYTES_MAX;
    if (failed)
        say("%s: %s", path, ferror(file) ? "cannot be read" : "larger than 64 MiB");
    if (file != stdin)
        fclose(file);
    return !failed;
}

static void print_errors(const char *path, const struct field_errors *errors)
{
    for (size_t i = 0; i < errors->list.len; i++) {
        const struct field_error *item = &errors->list.items[i];
        fprintf(stderr, "%s:%u:%u: " STR_FORMAT ": " STR_FORMAT "\n", path, item->line, item->column,
                STR_ARG(item->path), STR_ARG(item->message));
    }
    if (errors->dropped)
        fprintf(stderr, "%s: and %zu more mistakes\n", path, errors->dropped);
}

static bool load(const char *path, struct arena *arena, struct str text, struct cluster *ret_cluster,
                 struct buf *ret_json)
{
    struct doc_list docs = {0};
    struct error error = {0};
    if (yaml_parse_all(arena, text, &docs, &error) < 0) {
        fprintf(stderr, "%s:%s\n", path, error.text);
        return false;
    }
    if (docs.len != 1) {
        fprintf(stderr, "%s: expected one document, got %zu\n", path, docs.len);
        return false;
    }
    struct field_errors errors = {.arena = arena};
    bool loaded = cluster_load(docs.items[0], ret_cluster, &errors);
    if (!loaded)
        print_errors(path, &errors);
    else
        json_write(ret_json, docs.items[0]);
    field_errors_done(&errors);
    return loaded;
}

bool cluster_file_load(const char *path, struct cluster *ret_cluster, struct buf *ret_json)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = ARENA_BYTES_MAX};
    struct buf text BUF_CLEANUP = {0};
    return cluster_file_text(path, &text) && load(path, &arena, buf_str(&text), ret_cluster, ret_json);
}
