/* phalanx mindcluster: the objects of MindCluster's parts, out of a running cluster and into it. */
#include <stdio.h>
#include <string.h>

#include "cmd/client.h"
#include "cmd/files.h"
#include "host/mindcluster/mindcluster.h"

static const char usage[] =
    "Usage: phalanx mindcluster export device-info|node-info NODE [options]\n"
    "       phalanx mindcluster export reset-config|hccl JOBSET [options]\n"
    "       phalanx mindcluster export public-faults [options]\n"
    "       phalanx mindcluster import FILE|- [options]\n"
    "\n"
    "Speaks the JSON of Huawei's MindCluster (docs/mindcluster.md). export prints one of its objects as the\n"
    "cluster is now. import reads a public-fault message, or a ConfigMap with one, a device-info or a\n"
    "node-info, and creates the Faults.\n"
    "\n"
    "      --resource NAME    what devices are called (default Ascend910)\n"
    "      --dry-run          import: print the Faults instead of creating them\n" CLIENT_HELP
        CLIENT_EXIT_HELP;

struct mindcluster {
    struct client_options options;
    struct client client;
    const char *resource;
    bool dry_run;
    struct arena arena;
};

/* --- export --------------------------------------------------------------------------------------------- */

/* An object (name given) or a list of a kind; it lives as long as `reply`. */
static int fetch(struct mindcluster *command, const char *kind, struct str name, const char *query,
                 struct client_reply *reply)
{
    struct buf path BUF_CLEANUP = {0};
    kind_path(&path, kind_find(str_from(kind)), client_namespace(&command->options), name);
    buf_add_str(&path, str_from(query));
    return client_get(&command->client, buf_str(&path), reply);
}

static struct doc *convert(struct mindcluster *command, const char *what, struct str name,
                           const struct mindcluster_view *view, const struct doc *node)
{
    if (strcmp(what, "device-info") == 0)
        return mindcluster_device_info(&command->arena, view, node);
    if (strcmp(what, "node-info") == 0)
        return mindcluster_node_info(&command->arena, view, node);
    if (strcmp(what, "reset-config") == 0)
        return mindcluster_reset_config(&command->arena, view, name);
    if (strcmp(what, "hccl") == 0)
        return mindcluster_hccl(&command->arena, view);
    return mindcluster_public_faults(&command->arena, view);
}

static int export(struct mindcluster *command, const char *what, const char *about)
{
    struct client_reply faults = {0}, object = {0}, pods = {0};
    struct mindcluster_view view = {.resource = command->resource, .now_s = client_wall() / NS_PER_SECOND};
    bool of_node = strcmp(what, "device-info") == 0 || strcmp(what, "node-info") == 0;
    bool of_job = strcmp(what, "reset-config") == 0 || strcmp(what, "hccl") == 0;
    if ((!of_node && !of_job && strcmp(what, "public-faults") != 0) ||
        (of_node || of_job) != (about != NULL)) {
        say(about || !(of_node || of_job) ? "export: what \"%s\" is nobody knows; see --help"
                                          : "export %s: of which one? See --help",
            what);
        return EXIT_USAGE;
    }
    struct str name = about ? str_from(about) : (struct str){0};
    int rc = fetch(command, "faults", (struct str){0}, "", &faults);
    if (rc == EXIT_OK && (of_node || of_job))
        rc = fetch(command, of_node ? "nodes" : "jobsets", name, "", &object);
    if (rc == EXIT_OK && of_job) {
        struct buf query BUF_CLEANUP = {0};
        buf_add_str(&query, STR("?labelSelector=jobset.sigs.k8s.io%2Fjobset-name%3D"));
        url_add(&query, name);
        rc = fetch(command, "pods", (struct str){0}, query.data, &pods);
    }
    if (rc == EXIT_OK) {
        struct buf out BUF_CLEANUP = {0};
        view.faults = doc_get(faults.doc, "items");
        view.pods = doc_get(pods.doc, "items");
        json_write_pretty(&out, convert(command, what, name, &view, object.doc));
        output_write(&out);
    }
    client_reply_done(&faults);
    client_reply_done(&object);
    client_reply_done(&pods);
    return rc;
}

/* --- import --------------------------------------------------------------------------------------------- */

static int create(struct mindcluster *command, const struct doc *fault)
{
    struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0}, line BUF_CLEANUP = {0};
    struct client_reply reply;
    kind_path(&path, kind_find(STR("faults")), NULL, (struct str){0});
    json_write(&body, fault);
    struct client_request request = {
        .method = "POST", .path = buf_str(&path), .content_type = "application/json", .body = buf_str(&body)};
    int rc = client_call(&command->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    if (reply.code >= 400) {
        struct str machine = doc_text(fault, "spec.machine"), code = doc_text(fault, "spec.code");
        buf_printf(&line, STR_FORMAT " of " STR_FORMAT, STR_ARG(code), STR_ARG(machine));
        rc = client_refused(&reply, line.data);
    } else {
        struct str name = doc_text(reply.doc, "metadata.name");
        printf("fault/" STR_FORMAT "\n", STR_ARG(name));
    }
    client_reply_done(&reply);
    return rc;
}

static int import_one(struct mindcluster *command, const char *file, const struct doc *object)
{
    struct doc *faults;
    struct error error = {0};
    int failed = EXIT_OK;
    if (mindcluster_import(&command->arena, object, &faults, &error) < 0) {
        say("%s: %s", file, error.text);
        return EXIT_FAILED;
    }
    if (command->dry_run) {
        struct buf out BUF_CLEANUP = {0};
        json_write_pretty(&out, faults);
        output_write(&out);
        return EXIT_OK;
    }
    for (size_t i = 0; i < doc_len(faults); i++) { /* one that is refused holds back no other */
        int rc = create(command, doc_at(faults, i));
        if (rc == EXIT_UNREACHABLE)
            return rc;
        failed = rc != EXIT_OK ? rc : failed;
    }
    return failed;
}

static int import(struct mindcluster *command, const char *path)
{
    struct file_docs docs = {0};
    int rc = files_read(path, &docs) ? EXIT_OK : EXIT_FAILED;
    if (rc == EXIT_OK && docs.list.len == 0) {
        say("%s: there is nothing in it", path);
        rc = EXIT_FAILED;
    }
    for (size_t i = 0; rc == EXIT_OK && i < docs.list.len; i++)
        rc = import_one(command, docs.list.items[i].file, docs.list.items[i].doc);
    files_done(&docs);
    return rc;
}

int cmd_mindcluster(int argc, char **argv)
{
    static const struct option options[] = {CLIENT_LONG_OPTIONS,
                                            {"resource", required_argument, NULL, 'r'},
                                            {"dry-run", no_argument, NULL, 'd'},
                                            {0}};
    struct mindcluster command = {.resource = "Ascend910"};
    int letter;
    while ((letter = getopt_long(argc, argv, CLIENT_SHORT_OPTIONS, options, NULL)) != -1) {
        if (letter == 'r')
            command.resource = optarg;
        else if (letter == 'd')
            command.dry_run = true;
        else if (!client_option(&command.options, letter, optarg))
            return EXIT_USAGE;
    }
    if (command.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    int count = argc - optind;
    bool exports = count >= 2 && count <= 3 && strcmp(argv[optind], "export") == 0;
    bool imports = count == 2 && strcmp(argv[optind], "import") == 0;
    if (!exports && !imports) {
        say("export or import is needed; see --help");
        return EXIT_USAGE;
    }
    int rc = client_open(&command.client, &command.options);
    if (rc == EXIT_OK)
        rc = exports ? export(&command, argv[optind + 1], count == 3 ? argv[optind + 2] : NULL)
                     : import(&command, argv[optind + 1]);
    client_close(&command.client);
    arena_done(&command.arena);
    return rc;
}
