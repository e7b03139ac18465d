/* phalanx rerun: runs a job that has ended again under its name, from the start or from its last checkpoint.
 *
 * The old object is deleted and the new one created: a finished JobSet does not run again, and most of its
 * fields cannot change. The server checks the new object before anything is deleted. */
#include <errno.h>
#include <stdio.h>

#include "doc/json.h"
#include "cmd/files.h"
#include "cmd/gone.h"
#include "cmd/usage.h"
#include "core/spec/spec.h"

static const char usage[] =
    "Usage: phalanx rerun jobset/NAME|job/NAME [options]\n"
    "\n"
    "Deletes a job that has ended and creates it again, under the same name.\n"
    "\n"
    "      --from-checkpoint  go on from the last step that was committed, instead of from the start\n"
    "  -f, --filename FILE    create what FILE says (\"-\": standard input) instead of the same again\n"
    "      --stop             if the job has not ended yet, end it first\n"
    "      --timeout DURATION of the end of the old one, such as 30s or 5m (default: no limit)\n" CLIENT_HELP
    "\n"
    "Examples:\n"
    "  phalanx rerun jobset/train --from-checkpoint           # after the program was fixed\n"
    "  phalanx rerun jobset/train --from-checkpoint -f train.yaml\n" CLIENT_EXIT_HELP;

enum { CHECKED_NAME_MAX = 40 };

struct rerun {
    struct client client;
    struct client_options options;
    const struct resource *kind;
    struct str name;
    const char *namespace_, *file;
    bool from_checkpoint, stop;
    int64_t timeout_ns;
    struct client_reply old;
    struct file_docs docs;
};

/* --- what is created ---------------------------------------------------------------------------- */

static struct doc *same_again(struct arena *arena, const struct doc *old)
{
    static const char *const kept[] = {"name", "namespace", "labels", "annotations"};
    struct doc *object = doc_new(arena, DOC_OBJECT), *meta = doc_new(arena, DOC_OBJECT);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const struct doc *value = doc_path(old, "metadata", kept[i], NULL);
        if (value)
            doc_set(arena, meta, str_from(kept[i]), doc_clone(arena, value));
    }
    doc_set(arena, object, STR("apiVersion"), doc_clone(arena, doc_get(old, "apiVersion")));
    doc_set(arena, object, STR("kind"), doc_clone(arena, doc_get(old, "kind")));
    doc_set(arena, object, STR("metadata"), meta);
    doc_set(arena, object, STR("spec"), doc_clone(arena, doc_get(old, "spec")));
    return object;
}

/* Returns the one document of the file, which must be of this kind and name; NULL after a message. */
static struct doc *from_file(struct rerun *rerun, struct arena *arena)
{
    if (!files_read(rerun->file, &rerun->docs))
        return NULL;
    for (size_t i = 0; i < rerun->docs.list.len; i++) {
        const struct file_doc *file = &rerun->docs.list.items[i];
        if (file->kind != rerun->kind || !str_equal(doc_text(file->doc, "metadata.name"), rerun->name))
            continue;
        return file_doc_check(file, true) ? doc_clone(arena, file->doc) : NULL;
    }
    say("%s has no %s named " STR_FORMAT, rerun->file, rerun->kind->kind, STR_ARG(rerun->name));
    return NULL;
}

static bool name_folder(struct rerun *rerun, struct arena *arena, struct doc *object)
{
    struct str folder = doc_text(rerun->old.doc, "status.phalanx.checkpointFolder");
    if (!rerun->from_checkpoint)
        return true;
    if (folder.len == 0) {
        say("no step of %s/" STR_FORMAT " was committed; without --from-checkpoint it begins anew",
            rerun->kind->singular, STR_ARG(rerun->name));
        return false;
    }
    struct doc *meta = doc_need_object(arena, object, "metadata");
    struct doc *annotations = doc_need_object(arena, meta, "annotations");
    doc_set(arena, annotations, STR(CHECKPOINT_FOLDER_KEY), doc_new_str(arena, folder));
    return true;
}

static int post(struct rerun *rerun, const struct doc *object, bool dry_run, struct client_reply *ret_reply)
{
    struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
    kind_path(&path, rerun->kind, rerun->namespace_, (struct str){0});
    buf_printf(&path, dry_run ? "?dryRun=All" : "");
    json_write(&body, object);
    return client_call(&rerun->client,
                       &(struct client_request){.method = "POST",
                                                .path = buf_str(&path),
                                                .body = buf_str(&body),
                                                .content_type = "application/json"},
                       ret_reply);
}

/* Has the server check the new object, under an unused name, before the old object is deleted. */
static int check(struct rerun *rerun, struct arena *arena, const struct doc *object)
{
    struct doc *trial = doc_clone(arena, object), *meta = doc_need_object(arena, trial, "metadata");
    struct client_reply reply;
    if (rerun->name.len > CHECKED_NAME_MAX)
        return EXIT_OK; /* names of Jobs and Pods would become too long */
    doc_set(arena, meta, STR("name"),
            doc_new_str(arena, arena_printf(arena, STR_FORMAT "-rerun", STR_ARG(rerun->name))));
    if (doc_get(meta, "annotations"))
        doc_unset(doc_get(meta, "annotations"), CHECKPOINT_FOLDER_KEY);
    int rc = post(rerun, trial, true, &reply);
    if (rc != EXIT_OK)
        return rc;
    rc = reply.code >= 400 && reply.code != 409 ? client_refused(&reply, "nothing was deleted") : EXIT_OK;
    client_reply_done(&reply);
    return rc;
}

/* --- steps -------------------------------------------------------------------------------------- */

static int read_old(struct rerun *rerun)
{
    struct buf path BUF_CLEANUP = {0};
    kind_path(&path, rerun->kind, rerun->namespace_, rerun->name);
    int rc = client_get(&rerun->client, buf_str(&path), &rerun->old);
    if (rc != EXIT_OK)
        return rc;
    struct str state = doc_text(rerun->old.doc, "status.phalanx.state");
    bool ended = str_is(state, "Completed") || str_is(state, "Failed");
    if (ended || rerun->stop)
        return EXIT_OK;
    say("%s/" STR_FORMAT " has not ended (%s" STR_FORMAT "); --stop ends it first", rerun->kind->singular,
        STR_ARG(rerun->name), state.len ? "" : "unknown", STR_ARG(state));
    return EXIT_FAILED;
}

static int delete_old(struct rerun *rerun)
{
    struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
    struct client_reply reply;
    struct str uid = doc_text(rerun->old.doc, "metadata.uid");
    int64_t deadline_ns = rerun->timeout_ns ? client_clock() + rerun->timeout_ns : INT64_MAX;
    kind_path(&path, rerun->kind, rerun->namespace_, rerun->name);
    buf_printf(&body,
               "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Background\","
               "\"preconditions\":{\"uid\":\"" STR_FORMAT "\"}}",
               STR_ARG(uid));
    struct client_request request = {.method = "DELETE", .path = buf_str(&path), .body = buf_str(&body)};
    int rc = client_call(&rerun->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    rc = reply.code >= 400 ? client_refused(&reply, NULL) : EXIT_OK;
    client_reply_done(&reply);
    return rc != EXIT_OK
               ? rc
               : wait_gone(&rerun->client, rerun->kind, rerun->namespace_, rerun->name, uid, deadline_ns);
}

/* Saves the text of the new object, which the server has refused after the old one was deleted. */
static void keep_text(const struct rerun *rerun, const struct doc *object)
{
    struct buf path BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
    buf_printf(&path, STR_FORMAT ".rerun.json", STR_ARG(rerun->name));
    json_write(&text, object);
    FILE *file = fopen(path.data, "we");
    if (!file || fwrite(text.data, 1, text.len, file) != text.len)
        say("%s: %s", path.data, strerror(errno));
    else
        say("the old object is gone; \"phalanx apply -f %s\" creates the new one", path.data);
    if (file)
        fclose(file);
}

static int create_new(struct rerun *rerun, const struct doc *object)
{
    struct client_reply reply;
    int rc = post(rerun, object, false, &reply);
    if (rc == EXIT_OK) {
        rc = reply.code >= 400 ? client_refused(&reply, NULL) : EXIT_OK;
        client_reply_done(&reply);
    }
    if (rc != EXIT_OK) {
        keep_text(rerun, object);
        return rc;
    }
    if (rerun->from_checkpoint)
        output_print("%s/" STR_FORMAT " runs again, from step %lld\n", rerun->kind->singular,
                     STR_ARG(rerun->name),
                     (long long)doc_number(rerun->old.doc, "status.phalanx.checkpointStep", 0));
    else
        output_print("%s/" STR_FORMAT " runs again\n", rerun->kind->singular, STR_ARG(rerun->name));
    return EXIT_OK;
}

static int run(struct rerun *rerun)
{
    struct arena arena ARENA_CLEANUP = {0};
    int rc = read_old(rerun);
    if (rc != EXIT_OK)
        return rc;
    struct doc *object = rerun->file ? from_file(rerun, &arena) : same_again(&arena, rerun->old.doc);
    if (!object || !name_folder(rerun, &arena, object))
        return EXIT_FAILED;
    rc = check(rerun, &arena, object);
    if (rc == EXIT_OK)
        rc = delete_old(rerun);
    return rc == EXIT_OK ? create_new(rerun, object) : rc;
}

static bool take_option(struct rerun *rerun, int letter)
{
    switch (letter) {
    case 'c':
        return rerun->from_checkpoint = true;
    case 'f':
        rerun->file = optarg;
        return true;
    case 'S':
        return rerun->stop = true;
    case 't':
        return duration_parse(str_from(optarg), &rerun->timeout_ns) && rerun->timeout_ns > 0;
    default:
        return client_option(&rerun->options, letter, optarg);
    }
}

int cmd_rerun(int argc, char **argv)
{
    static const struct option options[] = {{"from-checkpoint", no_argument, NULL, 'c'},
                                            {"filename", required_argument, NULL, 'f'},
                                            {"stop", no_argument, NULL, 'S'},
                                            {"timeout", required_argument, NULL, 't'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct rerun rerun = {0};
    bool usable = true;
    for (int letter; (letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "f:", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        usable = usage_value(take_option(&rerun, letter)) && usable;
    }
    if (!usable || argc - optind != 1)
        return usage_wrong(usage, usable ? "one jobset/NAME or job/NAME is needed" : NULL);
    if (!kind_split(argv[optind], &rerun.kind, &rerun.name))
        return EXIT_USAGE;
    if (strcmp(rerun.kind->kind, "JobSet") != 0 && strcmp(rerun.kind->kind, "Job") != 0)
        return usage_wrong(usage, "a %s cannot run again: expected jobset/NAME or job/NAME",
                           rerun.kind->kind);
    const char *namespace_ = client_namespace(&rerun.options);
    rerun.namespace_ = namespace_ ? namespace_ : "default";
    int rc = client_open(&rerun.client, &rerun.options);
    if (rc == EXIT_OK)
        rc = run(&rerun);
    client_reply_done(&rerun.old);
    files_done(&rerun.docs);
    client_close(&rerun.client);
    return rc;
}
