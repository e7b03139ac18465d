/* phalanx mindcluster: exports and imports the objects of MindCluster's components, from and into a running
 * cluster. */
#include <stdio.h>
#include <string.h>

#include "cmd/usage.h"
#include "cmd/client.h"
#include "cmd/files.h"
#include "host/mindcluster/mindcluster.h"

static const char usage[] =
    "Usage: phalanx mindcluster export device-info|node-info NODE [options]\n"
    "       phalanx mindcluster export reset-config|hccl JOBSET [options]\n"
    "       phalanx mindcluster export public-faults [options]\n"
    "       phalanx mindcluster import FILE|- [options]\n"
    "\n"
    "Exchanges JSON objects with Huawei's MindCluster (docs/mindcluster.md). export prints an object\n"
    "that describes the cluster as it is now. import reads a public-fault message, or a ConfigMap that\n"
    "holds one, a device-info, a node-info or a reset.json, and creates the Faults. A rank table\n"
    "(hccl.json) is compared with where the job's ranks run: differences are printed, and are a\n"
    "failure.\n"
    "\n"
    "      --job JOBSET       import of reset.json or hccl.json: the job whose ranks are meant\n"
    "                         (default: by the ConfigMap's name; for a rank table by addresses and\n"
    "                         devices)\n"
    "      --resource NAME    the name of devices (default Ascend910)\n"
    "      --dry-run          import: print the Faults instead of creating them\n" CLIENT_HELP
        CLIENT_EXIT_HELP;

struct mindcluster {
    struct client_options options;
    struct client client;
    const char *resource;
    const char *job; /* NULL: not given */
    bool dry_run;
    struct arena arena;
};

/* --- export --------------------------------------------------------------------------------------------- */

/* Fetches an object, or without `name` a list of its kind, which lives as long as `reply`. */
static int fetch(struct mindcluster *command, const char *kind, struct str name, const char *query,
                 struct client_reply *reply)
{
    struct buf path BUF_CLEANUP = {0};
    kind_path(&path, kind_find(str_from(kind)), client_namespace(&command->options), name);
    buf_add_str(&path, str_from(query));
    return client_get(&command->client, buf_str(&path), reply);
}

/* Fetches the pods of a JobSet, which must exist; of all JobSets if `job` is empty. */
static int fetch_pods(struct mindcluster *command, struct str job, struct client_reply *reply)
{
    struct buf query BUF_CLEANUP = {0};
    struct client_reply object = {0};
    int rc = job.len ? fetch(command, "jobsets", job, "", &object) : EXIT_OK;
    client_reply_done(&object);
    if (rc != EXIT_OK)
        return rc;
    if (job.len) {
        buf_add_str(&query, STR("?labelSelector=jobset.sigs.k8s.io%2Fjobset-name%3D"));
        url_add(&query, job);
    }
    return fetch(command, "pods", (struct str){0}, job.len ? query.data : "", reply);
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
        say(about || !(of_node || of_job) ? "export: unknown kind \"%s\", expected device-info, node-info, "
                                            "public-faults, reset-config or hccl"
                                          : "export %s: the name of the node or JobSet is missing",
            what);
        return EXIT_USAGE;
    }
    struct str name = about ? str_from(about) : (struct str){0};
    int rc = fetch(command, "faults", (struct str){0}, "", &faults);
    if (rc == EXIT_OK && of_node)
        rc = fetch(command, "nodes", name, "", &object);
    if (rc == EXIT_OK && of_job)
        rc = fetch_pods(command, name, &pods);
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
        output_print("fault/" STR_FORMAT "\n", STR_ARG(name));
    }
    client_reply_done(&reply);
    return rc;
}

static int create_all(struct mindcluster *command, const struct doc *faults)
{
    int failed = EXIT_OK;
    if (command->dry_run) {
        struct buf out BUF_CLEANUP = {0};
        json_write_pretty(&out, faults);
        output_write(&out);
        return EXIT_OK;
    }
    for (size_t i = 0; i < doc_len(faults); i++) { /* after a refused fault, continues with the others */
        int rc = create(command, doc_at(faults, i));
        if (rc == EXIT_UNREACHABLE)
            return rc;
        failed = rc != EXIT_OK ? rc : failed;
    }
    return failed;
}

static int import_faults(struct mindcluster *command, const char *file, const struct doc *object)
{
    struct doc *faults;
    struct error error = {0};
    if (mindcluster_import(&command->arena, object, &faults, &error) < 0) {
        say("%s: %s", file, error.text);
        return EXIT_FAILED;
    }
    return create_all(command, faults);
}

/* Returns the job whose ranks the object describes: --job, otherwise the job in the object's name. */
static struct str job_of(const struct mindcluster *command, const struct doc *object)
{
    return command->job ? str_from(command->job) : mindcluster_job(object);
}

static int import_reset(struct mindcluster *command, const char *file, const struct doc *object)
{
    struct client_reply faults = {0}, pods = {0};
    struct str job = job_of(command, object);
    struct error error = {0};
    struct doc *made;
    if (!job.len) {
        say("%s: does not name its job: give --job JOBSET", file);
        return EXIT_USAGE;
    }
    int rc = fetch(command, "faults", (struct str){0}, "", &faults);
    rc = rc == EXIT_OK ? fetch_pods(command, job, &pods) : rc;
    if (rc == EXIT_OK) {
        struct mindcluster_view view = {.faults = doc_get(faults.doc, "items"),
                                        .pods = doc_get(pods.doc, "items")};
        rc = mindcluster_import_reset(&command->arena, &view, job, object, &made, &error);
        if (rc < 0)
            say("%s: %s", file, error.text);
        rc = rc < 0 ? EXIT_FAILED : create_all(command, made);
    }
    client_reply_done(&faults);
    client_reply_done(&pods);
    return rc;
}

/* Compares a rank table with `pods`, the pods of `job`. */
static int compare(const char *file, struct str job, const struct mindcluster_table *table,
                   const struct doc *pods)
{
    struct buf lines BUF_CLEANUP = {0};
    struct mindcluster_view view = {.pods = pods};
    size_t differences = mindcluster_compare(&view, table, &lines);
    if (differences == 0)
        buf_printf(&lines, "%zu ranks of " STR_FORMAT " are where the table has them\n", table->count,
                   STR_ARG(job));
    output_write(&lines);
    if (differences)
        say("%s: %zu ranks of " STR_FORMAT " differ", file, differences, STR_ARG(job));
    return differences ? EXIT_FAILED : EXIT_OK;
}

static int import_table(struct mindcluster *command, const char *file, const struct doc *object)
{
    struct client_reply all = {0}, pods = {0};
    struct str job = job_of(command, object);
    struct mindcluster_table table;
    struct error error = {0};
    int rc = EXIT_OK;
    if (mindcluster_read_table(&command->arena, object, &table, &error) < 0) {
        say("%s: %s", file, error.text);
        return EXIT_FAILED;
    }
    if (!job.len) {
        rc = fetch_pods(command, job, &all);
        job = rc == EXIT_OK ? mindcluster_find_job(&table, doc_get(all.doc, "items")) : job;
        if (rc == EXIT_OK && !job.len) {
            say("%s: no single job runs on the table's machines: give --job JOBSET", file);
            rc = EXIT_FAILED;
        }
    }
    rc = rc == EXIT_OK ? fetch_pods(command, job, &pods) : rc;
    rc = rc == EXIT_OK ? compare(file, job, &table, doc_get(pods.doc, "items")) : rc;
    client_reply_done(&all);
    client_reply_done(&pods);
    return rc;
}

static int import_one(struct mindcluster *command, const char *file, const struct doc *object)
{
    switch (mindcluster_kind(object)) {
    case MINDCLUSTER_RESET:
        return import_reset(command, file, object);
    case MINDCLUSTER_HCCL:
        return import_table(command, file, object);
    case MINDCLUSTER_OF_FAULTS:
        break;
    }
    return import_faults(command, file, object);
}

static int import(struct mindcluster *command, const char *path)
{
    struct file_docs docs = {0};
    int rc = files_read(path, &docs) ? EXIT_OK : EXIT_FAILED;
    if (rc == EXIT_OK && docs.list.len == 0) {
        say("%s: the document is empty", path);
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
                                            {"job", required_argument, NULL, 'j'},
                                            {"dry-run", no_argument, NULL, 'd'},
                                            {0}};
    struct mindcluster command = {.resource = "Ascend910"};
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS, options, NULL)) != -1) {
        if (letter == 'r')
            command.resource = optarg;
        else if (letter == 'j')
            command.job = optarg;
        else if (letter == 'd')
            command.dry_run = true;
        else if (!client_option(&command.options, letter, optarg))
            return usage_wrong(usage, NULL);
    }
    if (command.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    int count = argc - optind;
    bool exports = count >= 2 && count <= 3 && strcmp(argv[optind], "export") == 0;
    bool imports = count == 2 && strcmp(argv[optind], "import") == 0;
    if (!exports && !imports) {
        return usage_wrong(usage, "export or import is needed");
    }
    int rc = client_open(&command.client, &command.options);
    if (rc == EXIT_OK)
        rc = exports ? export(&command, argv[optind + 1], count == 3 ? argv[optind + 2] : NULL)
                     : import(&command, argv[optind + 1]);
    client_close(&command.client);
    arena_done(&command.arena);
    return rc;
}
