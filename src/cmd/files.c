#include "cmd/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "doc/yaml.h"
#include "core/spec/spec.h"

enum { FILE_BYTES_MAX = 64 * 1024 * 1024, FILE_MEMORY_MAX = 512 * 1024 * 1024 };

static bool read_all(FILE *file, const char *name, struct buf *out)
{
    size_t len;
    do {
        buf_reserve(out, 64 * 1024);
        len = fread(out->data + out->len, 1, 64 * 1024, file);
        out->len += len;
    } while (len > 0 && out->len <= FILE_BYTES_MAX);
    if (ferror(file))
        say("%s: %s", name, strerror(errno));
    else if (out->len > FILE_BYTES_MAX)
        say("%s: larger than %d bytes", name, FILE_BYTES_MAX);
    return !ferror(file) && out->len <= FILE_BYTES_MAX;
}

static void add_document(struct file_docs *docs, const char *name, struct doc *doc)
{
    const struct doc *items = doc_get(doc, "items");
    struct str kind = doc_text(doc, "kind");
    if (str_ends(kind, STR("List")) && items && items->kind == DOC_ARRAY) {
        for (size_t i = 0; i < doc_len(items); i++)
            add_document(docs, name, doc_at(items, i));
        return;
    }
    struct file_doc file = {name, doc, kind_of(doc_text(doc, "apiVersion"), kind)};
    vec_push(&docs->list, file);
}

static bool read_file(const char *path, struct file_docs *docs)
{
    struct buf text BUF_CLEANUP = {0};
    struct doc_list parsed = {0};
    struct error error = {0};
    bool input = strcmp(path, "-") == 0;
    const char *name = input ? "stdin" : arena_strdup(&docs->arena, str_from(path));
    FILE *file = input ? stdin : fopen(path, "rb");
    if (!file) {
        say("%s: %s", path, strerror(errno));
        return false;
    }
    bool read = read_all(file, name, &text);
    if (!input)
        fclose(file);
    if (!read)
        return false;
    /* The parser's strings may point into the text, so the arena keeps the text. */
    struct str kept = arena_str(&docs->arena, buf_str(&text));
    if (yaml_parse_all(&docs->arena, kept, &parsed, &error) < 0) {
        fprintf(stderr, "%s:%s\n", name, error.text);
        return false;
    }
    for (size_t i = 0; i < parsed.len; i++)
        add_document(docs, name, parsed.items[i]);
    return true;
}

static int is_manifest(const struct dirent *entry)
{
    struct str name = str_from(entry->d_name);
    return name.len && name.data[0] != '.' &&
           (str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml")) || str_ends(name, STR(".json")));
}

bool files_read(const char *path, struct file_docs *docs)
{
    struct stat status;
    docs->arena.limit_bytes = FILE_MEMORY_MAX;
    if (strcmp(path, "-") == 0 || stat(path, &status) < 0 || !S_ISDIR(status.st_mode))
        return read_file(path, docs);
    struct dirent **entries;
    int count = scandir(path, &entries, is_manifest, alphasort);
    if (count < 0) {
        say("%s: %s", path, strerror(errno));
        return false;
    }
    bool good = true;
    for (int i = 0; i < count; i++) {
        struct buf name BUF_CLEANUP = {0};
        buf_printf(&name, "%s/%s", path, entries[i]->d_name);
        good = read_file(name.data, docs) && good;
        free(entries[i]);
    }
    free(entries);
    if (count == 0)
        say("%s: contains no *.yaml, *.yml or *.json", path);
    return good && count > 0;
}

bool files_read_all(const file_paths *paths, struct file_docs *docs)
{
    bool good = true;
    for (size_t i = 0; i < paths->len; i++)
        good = files_read(paths->items[i], docs) && good;
    return good;
}

void files_done(struct file_docs *docs)
{
    vec_done(&docs->list);
    arena_done(&docs->arena);
}

static void print_errors(const struct file_doc *file, const struct field_errors *errors)
{
    for (size_t i = 0; i < errors->list.len; i++) {
        const struct field_error *error = &errors->list.items[i];
        uint32_t line = error->line ? error->line : file->doc->line;
        uint32_t column = error->line ? error->column : file->doc->column;
        fprintf(stderr, "%s:%u:%u: ", file->file, line, column);
        if (error->path.len && !str_starts(error->message, STR("unknown field")))
            fprintf(stderr, STR_FORMAT ": ", STR_ARG(error->path));
        fprintf(stderr, STR_FORMAT "\n", STR_ARG(error->message));
    }
    if (errors->dropped)
        fprintf(stderr, "%s: %zu more mistakes\n", file->file, errors->dropped);
}

void file_doc_not_served(const struct file_doc *file)
{
    struct str kind = doc_text(file->doc, "kind"), version = doc_text(file->doc, "apiVersion");
    const struct resource *meant = kind_nearest(version, kind);
    bool same_kind = meant && str_is(kind, meant->kind);
    const struct doc *at = doc_get(file->doc, same_kind ? "apiVersion" : "kind");
    if (!at)
        at = file->doc;
    fprintf(stderr, "%s:%u:%u: ", file->file, at->line, at->column);
    if (kind.len == 0 || (same_kind && version.len == 0))
        fprintf(stderr, "the object has no %s", kind.len ? "apiVersion" : "kind");
    else if (same_kind)
        fprintf(stderr, "apiVersion \"" STR_FORMAT "\" of kind %s is not served", STR_ARG(version),
                meant->kind);
    else
        fprintf(stderr, "kind \"" STR_FORMAT "\" of apiVersion \"" STR_FORMAT "\" is not served",
                STR_ARG(kind), STR_ARG(version));
    if (same_kind)
        fprintf(stderr, "; did you mean \"%s\"?\n", meant->api_version);
    else if (meant)
        fprintf(stderr, "; did you mean kind %s of apiVersion %s?\n", meant->kind, meant->api_version);
    else
        fprintf(stderr, "; docs/api.md lists the kinds that are\n");
}

static bool check_object(const struct file_doc *file, const struct doc *node, const char *path)
{
    if (!node || node->kind == DOC_NULL || node->kind == DOC_OBJECT)
        return true;
    fprintf(stderr, "%s:%u:%u: %s: must be an object\n", file->file, node->line, node->column, path);
    return false;
}

/* Checks metadata and annotations, into which the commands write before the server sees them. */
static bool check_metadata(const struct file_doc *file)
{
    const struct doc *metadata = doc_get(file->doc, "metadata");
    return check_object(file, metadata, "metadata") &&
           check_object(file, doc_get(metadata, "annotations"), "metadata.annotations");
}

bool file_doc_check(const struct file_doc *file, bool strict)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct field_errors errors = {.arena = &arena};
    struct str kind = doc_text(file->doc, "kind");
    if (!file->kind) {
        file_doc_not_served(file);
        return false;
    }
    if (!check_metadata(file))
        return false;
    if (!str_is(kind, "JobSet"))
        return true;
    struct jobset_spec spec;
    struct doc *object = doc_clone(&arena, file->doc);
    if (strict)
        spec_unknown_fields(object, &errors);
    jobset_default(&arena, object);
    bool named = doc_text(object, "metadata.name").len > 0;
    if (!named && doc_text(object, "metadata.generateName").len) {
        struct str name =
            arena_printf(&arena, STR_FORMAT "xxxxx", STR_ARG(doc_text(object, "metadata.generateName")));
        doc_set(&arena, doc_need_object(&arena, object, "metadata"), STR("name"), doc_new_str(&arena, name));
    }
    if (jobset_read(&arena, object, &spec, &errors))
        jobset_validate(object, &spec, &errors);
    bool good = errors.list.len == 0;
    print_errors(file, &errors);
    field_errors_done(&errors);
    return good;
}
