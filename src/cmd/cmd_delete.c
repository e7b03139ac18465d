/* phalanx delete: deletes objects by name or by file, and waits until they no longer exist. */
#include <stdio.h>

#include "cmd/usage.h"
#include "cmd/files.h"
#include "cmd/gone.h"

static const char usage[] =
    "Usage: phalanx delete KIND NAME... | KIND/NAME... | -f FILE|DIR|- ... [options]\n"
    "\n"
    "Deletes objects and what they own; returns when they are gone.\n"
    "\n"
    "  -f, --filename PATH    the objects in a file, a directory or standard input (-); repeatable\n"
    "  -l, --selector TEXT    with KIND alone: objects with these labels\n"
    "      --all              with KIND alone: all objects of the namespace\n"
    "      --grace SECONDS    time between SIGTERM and SIGKILL; 0 kills at once\n"
    "      --no-wait          do not wait until they are gone\n"
    "      --timeout DURATION of the wait, such as 30s or 5m (default: no limit)\n"
    "      --ignore-not-found succeed if an object does not exist\n" CLIENT_HELP CLIENT_EXIT_HELP;

struct deleting {
    struct client client;
    struct client_options options;
    const char *labels;
    bool all, no_wait, ignore_missing;
    int64_t grace_s; /* -1: the object's own */
    int64_t timeout_ns;
    int64_t deadline_ns;
};

static int delete_one(struct deleting *deleting, const struct resource *kind, const char *namespace_,
                      struct str name)
{
    struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
    struct arena arena ARENA_CLEANUP = {0};
    struct client_reply reply;
    kind_path(&path, kind, namespace_, name);
    buf_printf(&body,
               "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"propagationPolicy\":\"Background\"");
    if (deleting->grace_s >= 0)
        buf_printf(&body, ",\"gracePeriodSeconds\":%lld", (long long)deleting->grace_s);
    buf_add_char(&body, '}');
    struct client_request request = {.method = "DELETE", .path = buf_str(&path), .body = buf_str(&body)};
    int rc = client_call(&deleting->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    if (reply.code == 404 && deleting->ignore_missing) {
        client_reply_done(&reply);
        return EXIT_OK;
    }
    if (reply.code >= 400) {
        rc = client_refused(&reply, NULL);
        client_reply_done(&reply);
        return rc;
    }
    output_print("%s/" STR_FORMAT " deleted\n", kind->singular, STR_ARG(name));
    struct str uid = doc_text(reply.doc, "details.uid");
    uid = arena_str(&arena, uid.len ? uid : doc_text(reply.doc, "metadata.uid"));
    client_reply_done(&reply);
    return deleting->no_wait || uid.len == 0
               ? EXIT_OK
               : wait_gone(&deleting->client, kind, namespace_, name, uid, deleting->deadline_ns);
}

/* Deletes the objects of the kind that match -l, or all of them. */
static int delete_many(struct deleting *deleting, const struct resource *kind)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply list;
    kind_path(&path, kind, client_namespace(&deleting->options), (struct str){0});
    if (deleting->labels) {
        buf_add_str(&path, STR("?labelSelector="));
        url_add(&path, str_from(deleting->labels));
    }
    int result = client_get(&deleting->client, buf_str(&path), &list);
    if (result != EXIT_OK)
        return result;
    const struct doc *items = doc_get(list.doc, "items");
    for (size_t i = 0; i < doc_len(items) && result != EXIT_UNREACHABLE; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        const struct doc *item = doc_at(items, i);
        const char *namespace_ = arena_strdup(&arena, doc_text(item, "metadata.namespace"));
        int rc = delete_one(deleting, kind, namespace_, doc_text(item, "metadata.name"));
        if (rc != EXIT_OK && rc != EXIT_NOT_FOUND)
            result = rc;
    }
    if (doc_len(items) == 0)
        say("no %s found", kind->plural);
    client_reply_done(&list);
    return result;
}

static int delete_files(struct deleting *deleting, const struct file_docs *docs)
{
    int result = EXIT_OK;
    for (size_t i = docs->list.len; i-- > 0 && result != EXIT_UNREACHABLE;) {
        const struct file_doc *file = &docs->list.items[i];
        struct arena arena ARENA_CLEANUP = {0};
        struct str in = doc_text(file->doc, "metadata.namespace");
        if (!file->kind) {
            file_doc_not_served(file);
            result = EXIT_FAILED;
            continue;
        }
        const char *namespace_ = in.len ? arena_strdup(&arena, in) : client_namespace(&deleting->options);
        int rc = delete_one(deleting, file->kind, namespace_ ? namespace_ : "default",
                            doc_text(file->doc, "metadata.name"));
        if (rc != EXIT_OK)
            result = rc;
    }
    return result;
}

static int delete_named(struct deleting *deleting, char **args, int count)
{
    int result = EXIT_OK;
    const struct resource *kind = NULL;
    const char *namespace_ = client_namespace(&deleting->options);
    if (!strchr(args[0], '/')) {
        kind = kind_find(str_from(args[0]));
        if (!kind) {
            kind_say_unknown(str_from(args[0]));
            return EXIT_USAGE;
        }
        if (count == 1) {
            if (deleting->labels || deleting->all)
                return delete_many(deleting, kind);
            say("which %s? give a name, --selector or --all", kind->plural);
            return EXIT_USAGE;
        }
        args++;
        count--;
    }
    for (int i = 0; i < count && result != EXIT_UNREACHABLE; i++) {
        struct str name = str_from(args[i]);
        const struct resource *one = kind;
        if (!kind && !kind_split(args[i], &one, &name))
            return EXIT_USAGE;
        int rc = delete_one(deleting, one, namespace_ ? namespace_ : "default", name);
        if (rc != EXIT_OK)
            result = rc;
    }
    return result;
}

static bool take_option(struct deleting *deleting, file_paths *paths, int letter)
{
    switch (letter) {
    case 'f':
        vec_push(paths, optarg);
        return true;
    case 'l':
        deleting->labels = optarg;
        return true;
    case 'a':
        deleting->all = true;
        return true;
    case 'W':
        deleting->no_wait = true;
        return true;
    case 'I':
        deleting->ignore_missing = true;
        return true;
    case 'g':
        return str_to_i64(str_from(optarg), 0, 86400, &deleting->grace_s);
    case 't':
        return duration_parse(str_from(optarg), &deleting->timeout_ns);
    default:
        return client_option(&deleting->options, letter, optarg);
    }
}

int cmd_delete(int argc, char **argv)
{
    static const struct option options[] = {{"filename", required_argument, NULL, 'f'},
                                            {"selector", required_argument, NULL, 'l'},
                                            {"all", no_argument, NULL, 'a'},
                                            {"grace", required_argument, NULL, 'g'},
                                            {"no-wait", no_argument, NULL, 'W'},
                                            {"timeout", required_argument, NULL, 't'},
                                            {"ignore-not-found", no_argument, NULL, 'I'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct deleting deleting = {.grace_s = -1};
    struct file_docs docs = {0};
    file_paths paths = {0};
    bool usable = true;
    int letter, rc = EXIT_USAGE;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "f:l:", options, NULL)) != -1)
        usable = usage_value(take_option(&deleting, &paths, letter)) && usable;
    if (deleting.options.help) {
        fputs(usage, stdout);
        vec_done(&paths);
        return EXIT_OK;
    }
    deleting.deadline_ns = deleting.timeout_ns ? client_clock() + deleting.timeout_ns : INT64_MAX;
    if (usable && (paths.len > 0) == (optind < argc)) {
        say(paths.len ? "-f FILE and names exclude each other" : "KIND/NAME or -f FILE is missing");
    } else if (usable) {
        client_open(&deleting.client, &deleting.options);
        if (paths.len)
            rc = files_read_all(&paths, &docs) ? delete_files(&deleting, &docs) : EXIT_FAILED;
        else
            rc = delete_named(&deleting, argv + optind, argc - optind);
        client_close(&deleting.client);
    }
    if (rc == EXIT_USAGE)
        usage_wrong(usage, NULL);
    files_done(&docs);
    vec_done(&paths);
    return rc;
}
