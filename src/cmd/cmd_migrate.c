/* phalanx migrate: moves the ranks on a machine to others while their jobs continue, by creating a
 * Maintenance whose notice begins now (docs/repair.md). */
#include <stdio.h>
#include <time.h>

#include "doc/json.h"
#include "cmd/usage.h"
#include "cmd/client.h"
#include "cmd/node_empty.h"

static const char usage[] =
    "Usage: phalanx migrate MACHINE [options]\n"
    "\n"
    "Empties a machine without stopping its jobs. Replacements for its ranks start first; when they are\n"
    "ready, all ranks save the same step and continue from it. A job that cannot do so is notified,\n"
    "saves a checkpoint, and is stopped when the time is up. Nothing new is placed on the machine\n"
    "meanwhile. The command creates a Maintenance; deleting that object calls the migration off.\n"
    "\n"
    "      --within DURATION  stop whatever still runs there after this time (default: 1h)\n"
    "      --keep DURATION    keep the machine free for so long after that (default: 4h)\n"
    "      --reason TEXT      the reason that others see\n"
    "      --wait             return when the machine is empty\n"
    "      --timeout DURATION of the wait, such as 30s or 5m (default: no limit)\n" CLIENT_HELP
        CLIENT_EXIT_HELP;

struct migrating {
    struct client client;
    struct client_options options;
    struct str machine;
    const char *reason;
    bool wait;
    int64_t within_ns, keep_ns, timeout_ns, deadline_ns;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

static void set(struct arena *arena, struct doc *doc, const char *key, struct str value)
{
    doc_set(arena, doc, str_from(key), doc_new_str(arena, value));
}

static void describe(const struct migrating *migrating, struct buf *out)
{
    struct arena arena ARENA_CLEANUP = {0};
    int64_t begin_ns = now_ns(), start_ns = begin_ns + migrating->within_ns;
    char start[32], end[32];
    time_format(start_ns, start);
    time_format(start_ns + migrating->keep_ns, end);
    struct doc *document = doc_new(&arena, DOC_OBJECT), *meta = doc_new(&arena, DOC_OBJECT),
               *spec = doc_new(&arena, DOC_OBJECT), *machines = doc_new(&arena, DOC_ARRAY);
    set(&arena, document, "apiVersion", STR("phalanx.dev/v1"));
    set(&arena, document, "kind", STR("Maintenance"));
    set(&arena, meta, "generateName",
        arena_printf(&arena, "migrate-" STR_FORMAT "-", STR_ARG(migrating->machine)));
    doc_set(&arena, document, STR("metadata"), meta);
    doc_push(&arena, machines, doc_new_str(&arena, migrating->machine));
    doc_set(&arena, spec, STR("machines"), machines);
    set(&arena, spec, "start", str_from(start));
    set(&arena, spec, "end", str_from(end));
    /* Begins the notice in the past, so it has begun by the controller's clock too. */
    set(&arena, spec, "notice",
        arena_printf(&arena, "%llds", (long long)(migrating->within_ns / NS_PER_SECOND + 60)));
    set(&arena, spec, "reason", str_from(migrating->reason));
    doc_set(&arena, document, STR("spec"), spec);
    json_write(out, document);
}

static int create(struct migrating *migrating)
{
    struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
    struct client_reply reply;
    kind_path(&path, kind_find(STR("maintenance")), NULL, (struct str){0});
    describe(migrating, &body);
    struct client_request request = {
        .method = "POST", .path = buf_str(&path), .body = buf_str(&body), .content_type = "application/json"};
    int rc = client_do(&migrating->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    output_print("maintenance/" STR_FORMAT " created\n", STR_ARG(doc_text(reply.doc, "metadata.name")));
    fflush(stdout);
    client_reply_done(&reply);
    return EXIT_OK;
}

static bool take_option(struct migrating *migrating, int letter)
{
    switch (letter) {
    case 'w':
        return duration_parse(str_from(optarg), &migrating->within_ns) && migrating->within_ns >= 0;
    case 'k':
        return duration_parse(str_from(optarg), &migrating->keep_ns) && migrating->keep_ns > 0;
    case 'r':
        migrating->reason = optarg;
        return true;
    case 'W':
        migrating->wait = true;
        return true;
    case 't':
        return duration_parse(str_from(optarg), &migrating->timeout_ns);
    default:
        return client_option(&migrating->options, letter, optarg);
    }
}

int cmd_migrate(int argc, char **argv)
{
    static const struct option options[] = {{"within", required_argument, NULL, 'w'},
                                            {"keep", required_argument, NULL, 'k'},
                                            {"reason", required_argument, NULL, 'r'},
                                            {"wait", no_argument, NULL, 'W'},
                                            {"timeout", required_argument, NULL, 't'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct migrating migrating = {
        .within_ns = 3600 * NS_PER_SECOND, .keep_ns = 4 * 3600 * NS_PER_SECOND, .reason = "phalanx migrate"};
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS, options, NULL)) != -1)
        usable = usage_value(take_option(&migrating, letter)) && usable;
    if (migrating.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (!usable || optind != argc - 1) {
        return !usable         ? usage_wrong(usage, NULL)
               : optind < argc ? usage_wrong(usage, "unexpected argument \"%s\"", argv[optind + 1])
                               : usage_wrong(usage, "MACHINE is missing");
    }
    migrating.machine = node_named(argv[optind]);
    migrating.deadline_ns = migrating.timeout_ns ? client_clock() + migrating.timeout_ns : INT64_MAX;
    client_open(&migrating.client, &migrating.options);
    int rc = node_must_exist(&migrating.client, migrating.machine);
    if (rc == EXIT_OK)
        rc = create(&migrating);
    if (rc == EXIT_OK && migrating.wait)
        rc = node_wait_empty(&migrating.client, migrating.machine, migrating.deadline_ns);
    client_close(&migrating.client);
    return rc;
}
