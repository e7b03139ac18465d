/* phalanx watch: shows the progress of jobsets until they have finished. */
#include <stdio.h>

#include "cmd/usage.h"
#include "cmd/progress.h"

static const char usage[] =
    "Usage: phalanx watch jobset/NAME... [options]\n"
    "\n"
    "Shows a progress bar per jobset with its step, speed, time left and elapsed, loss, attempt and\n"
    "newest checkpoint, as the width of the screen allows; and why a job waits, restarted or failed. On\n"
    "a terminal the lines are redrawn in place; otherwise a line is printed when there is news, at most\n"
    "once a second. Ends when all jobsets have finished: exit status 0 if they completed, 1 if one\n"
    "failed or was deleted.\n"
    "\n"
    "      --timeout DURATION such as 30s, 5m (default: no limit)\n"
    "  -o, --output json      one JSON object a line\n" CLIENT_HELP CLIENT_EXIT_HELP;

struct viewing {
    struct client client;
    struct client_options options;
    struct progress_view view;
    struct str *names;
    size_t count;
    bool *seen;
    bool failed;
};

static bool all_finished(struct viewing *viewing)
{
    size_t finished = 0;
    for (size_t i = 0; i < viewing->view.rows.len; i++) {
        finished += viewing->view.rows.items[i]->finished;
        viewing->failed |= viewing->view.rows.items[i]->failed;
    }
    return finished == viewing->count;
}

static bool on_object(void *context, const char *type, const struct doc *object)
{
    struct viewing *viewing = context;
    struct str name = doc_text(object, "metadata.name");
    for (size_t i = 0; object && i < viewing->count; i++) {
        if (!str_equal(viewing->names[i], name))
            continue;
        viewing->seen[i] = true;
        progress_take(&viewing->view, object, strcmp(type, "DELETED") == 0);
    }
    bool ended = all_finished(viewing);
    progress_draw(&viewing->view, ended);
    for (size_t i = 0; strcmp(type, "SYNCED") == 0 && i < viewing->count; i++) {
        if (!viewing->seen[i]) {
            say("jobset/" STR_FORMAT " does not exist", STR_ARG(viewing->names[i]));
            viewing->count = 0;
            return false;
        }
    }
    return !ended;
}

/* Prints why jobsets failed. Reads each one alone, because lists do not contain the reason. */
static void tell_failures(struct viewing *viewing, const char *namespace_)
{
    for (size_t i = 0; i < viewing->view.rows.len; i++) {
        const struct progress_row *row = viewing->view.rows.items[i];
        struct buf path BUF_CLEANUP = {0};
        struct client_reply reply;
        if (!row->failed || row->gone)
            continue;
        kind_path(&path, kind_find(STR("jobsets")), namespace_, row->name);
        if (client_get(&viewing->client, buf_str(&path), &reply) != EXIT_OK)
            continue;
        progress_failure(&viewing->view, reply.doc);
        client_reply_done(&reply);
    }
}

static void on_tick(void *context)
{
    struct viewing *viewing = context;
    if (viewing->view.terminal && !viewing->view.json)
        progress_draw(&viewing->view, false);
}

static int run(struct viewing *viewing, int64_t timeout_ns)
{
    struct buf path BUF_CLEANUP = {0}, query BUF_CLEANUP = {0};
    const char *namespace_ = client_namespace(&viewing->options);
    namespace_ = namespace_ ? namespace_ : "default";
    kind_path(&path, kind_find(STR("jobsets")), namespace_, (struct str){0});
    if (viewing->count == 1) {
        buf_add_str(&query, STR("fieldSelector=metadata.name%3D"));
        url_add(&query, viewing->names[0]);
    }
    int64_t deadline_ns = timeout_ns > 0 ? client_clock() + timeout_ns : INT64_MAX;
    viewing->client.on_tick = on_tick;
    viewing->client.tick_context = viewing;
    int rc = client_watch(&viewing->client, buf_str(&path), buf_str(&query), deadline_ns, on_object, viewing);
    if (rc == EXIT_TIMEOUT)
        say("timed out");
    if (rc != EXIT_OK)
        return rc;
    tell_failures(viewing, namespace_);
    return viewing->count == 0 ? EXIT_NOT_FOUND : viewing->failed ? EXIT_FAILED : EXIT_OK;
}

int cmd_watch(int argc, char **argv)
{
    static const struct option options[] = {{"timeout", required_argument, NULL, 't'},
                                            {"output", required_argument, NULL, 'o'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct viewing viewing = {0};
    int64_t timeout_ns = 0;
    bool usable = true, json = false;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "o:", options, NULL)) != -1) {
        if (letter == 't')
            usable = usage_value(duration_parse(str_from(optarg), &timeout_ns)) && usable;
        else if (letter == 'o')
            usable = usage_json(optarg, &json) && usable;
        else
            usable = client_option(&viewing.options, letter, optarg) && usable;
    }
    if (viewing.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    int first = optind < argc && !strchr(argv[optind], '/') && kind_find(str_from(argv[optind])) ? optind + 1
                                                                                                 : optind;
    if (!usable || first >= argc) {
        return usage_wrong(usage, usable ? "jobset/NAME is missing" : NULL);
    }
    progress_begin(&viewing.view, json);
    viewing.names = ARENA_ARRAY(&viewing.view.arena, struct str, (size_t)(argc - first));
    viewing.seen = ARENA_ARRAY(&viewing.view.arena, bool, (size_t)(argc - first));
    for (int i = first; i < argc; i++) {
        const char *slash = strchr(argv[i], '/');
        viewing.names[viewing.count++] = str_from(slash ? slash + 1 : argv[i]);
    }
    client_open(&viewing.client, &viewing.options);
    int rc = run(&viewing, timeout_ns);
    client_close(&viewing.client);
    progress_done(&viewing.view);
    return rc;
}
