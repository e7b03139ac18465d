/* phalanx apply: creates objects that do not exist, and changes objects that differ.
 *
 * As in client-side `kubectl apply`, the last applied document is kept in an annotation (kubectl's own, so
 * both tools may be used in turn). Fields that the last document had and the new one lacks are removed; the
 * rest is merged. */
#include <stdio.h>

#include "cmd/usage.h"
#include "cmd/files.h"
#include "core/spec/spec.h"

static const char usage[] =
    "Usage: phalanx apply -f FILE|DIR|- ... [options]\n"
    "\n"
    "Creates what the documents describe, or changes it where it exists. YAML or JSON, several documents\n"
    "a file. Every document is checked before the first one is sent; mistakes are printed as\n"
    "FILE:LINE:COLUMN: path: message. Container images are recorded only: commands run directly on the\n"
    "machine.\n"
    "\n"
    "  -f, --filename PATH    a file, a directory (its *.yaml, *.yml, *.json) or - for standard input;\n"
    "                         repeatable\n"
    "      --dry-run          check here and on the server, change nothing\n"
    "      --no-strict        warn of unknown fields instead of refusing them\n" CLIENT_HELP CLIENT_EXIT_HELP;

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

struct applying {
    struct client client;
    struct client_options options;
    bool dry_run, lax;
};

/* Puts the document into its own annotation, where it appears without that annotation. */
static void annotate(struct arena *arena, struct doc *object)
{
    struct buf text BUF_CLEANUP = {0};
    struct doc *annotations =
        doc_need_object(arena, doc_need_object(arena, object, "metadata"), "annotations");
    doc_unset(annotations, LAST_APPLIED);
    json_write(&text, object);
    buf_add_char(&text, '\n');
    doc_set(arena, annotations, STR(LAST_APPLIED), doc_new_str(arena, buf_str(&text)));
}

/* Makes a merge patch that turns `live` into `wanted`, and removes the fields that `last` had and `wanted`
 * lacks. */
static struct doc *diff(struct arena *arena, const struct doc *last, const struct doc *wanted,
                        const struct doc *live)
{
    struct doc *patch = doc_new(arena, DOC_OBJECT);
    for (size_t i = 0; last && last->kind == DOC_OBJECT && i < last->object.len; i++) {
        struct str key = last->object.members[i].key;
        if (!doc_get_str(wanted, key) && doc_get_str(live, key))
            doc_set(arena, patch, key, doc_new(arena, DOC_NULL));
    }
    for (size_t i = 0; i < wanted->object.len; i++) {
        struct str key = wanted->object.members[i].key;
        const struct doc *value = wanted->object.members[i].value, *now = doc_get_str(live, key);
        if (value->kind == DOC_OBJECT && now && now->kind == DOC_OBJECT) {
            struct doc *inner = diff(arena, doc_get_str(last, key), value, now);
            if (doc_len(inner))
                doc_set(arena, patch, key, inner);
        } else if (!now || !doc_equal(value, now)) {
            doc_set(arena, patch, key, doc_clone(arena, value));
        }
    }
    return patch;
}

static void add_query(const struct applying *applying, struct buf *path)
{
    buf_printf(path, "?fieldManager=phalanx-apply&fieldValidation=%s%s", applying->lax ? "Warn" : "Strict",
               applying->dry_run ? "&dryRun=All" : "");
}

static int submit(struct applying *applying, const struct file_doc *file, const char *method,
                  struct buf *path, const struct doc *body, const char *type, const char *done)
{
    struct buf text BUF_CLEANUP = {0};
    struct client_reply reply;
    add_query(applying, path);
    json_write(&text, body);
    struct client_request request = {
        .method = method, .path = buf_str(path), .body = buf_str(&text), .content_type = type};
    int rc = client_call(&applying->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    char doing[512];
    struct str name = doc_text(reply.code < 400 ? reply.doc : file->doc, "metadata.name");
    snprintf(doing, sizeof doing, "%s: %s/" STR_FORMAT, file->file, file->kind->singular, STR_ARG(name));
    if (reply.code >= 400)
        rc = client_refused(&reply, doing);
    else
        output_print("%s/" STR_FORMAT " %s%s\n", file->kind->singular, STR_ARG(name), done,
                     applying->dry_run ? " (dry run)" : "");
    client_reply_done(&reply);
    return rc;
}

static int change(struct applying *applying, struct arena *arena, const struct file_doc *file,
                  struct doc *wanted, const struct doc *live, struct buf *path)
{
    struct doc *last = NULL;
    struct str text = doc_str(doc_get(doc_dotted(live, "metadata.annotations"), LAST_APPLIED), STR(""));
    if (text.len && json_parse(arena, text, &last, NULL) < 0)
        last = NULL;
    doc_unset(wanted, "status");
    /* The last document had the map, which annotate() made. Its absence now must not remove all
     * annotations. */
    doc_need_object(arena, doc_need_object(arena, wanted, "metadata"), "annotations");
    /* Lists are compared as a whole, and the live ones have the server's defaults in them. */
    struct doc *defaulted = doc_clone(arena, wanted);
    if (strcmp(file->kind->kind, "JobSet") == 0)
        jobset_default(arena, defaulted);
    if (doc_len(diff(arena, last, defaulted, live)) == 0) {
        output_print("%s/" STR_FORMAT " unchanged\n", file->kind->singular,
                     STR_ARG(doc_text(live, "metadata.name")));
        return EXIT_OK;
    }
    annotate(arena, wanted);
    struct doc *patch = diff(arena, last, wanted, live);
    return submit(applying, file, "PATCH", path, patch, "application/merge-patch+json", "configured");
}

static int apply_one(struct applying *applying, struct arena *arena, const struct file_doc *file)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply live;
    struct doc *wanted = doc_clone(arena, file->doc);
    struct str namespace_ = doc_text(wanted, "metadata.namespace"), name = doc_text(wanted, "metadata.name");
    const char *in = namespace_.len ? arena_strdup(arena, namespace_) : client_namespace(&applying->options);
    if (!in)
        in = "default";
    if (file->kind->namespaced)
        doc_set(arena, doc_need_object(arena, wanted, "metadata"), STR("namespace"),
                doc_new_str(arena, str_from(in)));
    kind_path(&path, file->kind, in, name);
    if (name.len) {
        int rc = client_call(&applying->client, &(struct client_request){.path = buf_str(&path)}, &live);
        if (rc != EXIT_OK)
            return rc;
        if (live.code == 200 && live.doc)
            rc = change(applying, arena, file, wanted, live.doc, &path);
        else if (live.code != 404)
            rc = client_refused(&live, file->file);
        bool absent = live.code == 404;
        client_reply_done(&live);
        if (!absent)
            return rc;
    }
    buf_clear(&path);
    kind_path(&path, file->kind, in, (struct str){0});
    annotate(arena, wanted);
    return submit(applying, file, "POST", &path, wanted, "application/json", "created");
}

static int apply_documents(struct applying *applying, const struct file_docs *docs)
{
    int result = EXIT_OK;
    bool good = true;
    for (size_t i = 0; i < docs->list.len; i++)
        good = file_doc_check(&docs->list.items[i], !applying->lax) && good;
    if (!good)
        return EXIT_FAILED;
    if (docs->list.len == 0) {
        say("nothing to apply: no document was found");
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < docs->list.len; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        int rc = apply_one(applying, &arena, &docs->list.items[i]);
        if (rc != EXIT_OK)
            result = rc;
        if (rc == EXIT_UNREACHABLE)
            break;
    }
    return result;
}

static int apply_files(struct applying *applying, const file_paths *paths)
{
    struct file_docs docs = {0};
    client_open(&applying->client, &applying->options);
    int rc = files_read_all(paths, &docs) ? apply_documents(applying, &docs) : EXIT_FAILED;
    client_close(&applying->client);
    files_done(&docs);
    return rc;
}

int cmd_apply(int argc, char **argv)
{
    static const struct option options[] = {{"filename", required_argument, NULL, 'f'},
                                            {"dry-run", optional_argument, NULL, 'd'},
                                            {"no-strict", no_argument, NULL, 'L'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct applying applying = {0};
    file_paths paths = {0};
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "f:", options, NULL)) != -1) {
        if (letter == 'f') {
            vec_push(&paths, optarg);
        } else if (letter == 'd') {
            applying.dry_run = true;
        } else if (letter == 'L') {
            applying.lax = true;
        } else if (!client_option(&applying.options, letter, optarg)) {
            vec_done(&paths);
            return usage_wrong(usage, NULL);
        }
    }
    int rc = EXIT_USAGE;
    if (applying.options.help) {
        fputs(usage, stdout);
        rc = EXIT_OK;
    } else if (!paths.len) {
        rc = usage_wrong(usage, "-f FILE is missing");
    } else if (optind < argc) {
        rc = usage_wrong(usage, "unexpected argument \"%s\"", argv[optind]);
    } else {
        rc = apply_files(&applying, &paths);
    }
    vec_done(&paths);
    return rc;
}
