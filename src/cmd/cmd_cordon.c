/* phalanx cordon, drain, uncordon: stops new work on a node, evicts its pods with their grace periods, and
 * allows work again. kubectl makes the same requests. */
#include <stdio.h>
#include <string.h>

#include "doc/json.h"
#include "cmd/client.h"
#include "cmd/fabric_drain.h"
#include "cmd/node_empty.h"
#include "cmd/usage.h"

static const char cordon_usage[] =
    "Usage: phalanx cordon NODE [options]\n"
    "\n"
    "Marks a node unschedulable: it takes no new work, what runs there goes on.\n"
    "\n" CLIENT_HELP CLIENT_EXIT_HELP;

#define UNCORDON_USAGE(NAME, OTHER_NAME)                                                                     \
    "Usage: phalanx " NAME " NODE|switch/NAME|cube/NAME [options]\n"                                         \
    "\n"                                                                                                     \
    "Marks a node schedulable again, and names each Maintenance that still keeps work away from it. A\n"     \
    "switch of a pod is read before it is ready again. `phalanx " OTHER_NAME "` is the same command.\n"      \
    "\n" CLIENT_HELP CLIENT_EXIT_HELP

static const char uncordon_usage[] = UNCORDON_USAGE("uncordon", "undrain");
static const char undrain_usage[] = UNCORDON_USAGE("undrain", "uncordon");

static const char drain_usage[] =
    "Usage: phalanx drain NODE|switch/NAME|cube/NAME [options]\n"
    "\n"
    "Cordons a node and evicts its pods. Ranks that use libphalanx save a checkpoint before they are\n"
    "stopped, within their grace. An eviction that a disruption budget refuses is tried again.\n"
    "`phalanx migrate` empties a node without stopping its jobs.\n"
    "A switch of a pod is drained when the running slices are routed around it, a cube when its slices\n"
    "have moved to others; new slices keep away at once.\n"
    "\n"
    "      --grace DURATION   for the save, and from SIGTERM to SIGKILL (default: each pod's own)\n"
    "      --wait             return when the node is empty\n"
    "      --timeout DURATION of all of it, such as 30s or 5m (default: no limit)\n" CLIENT_HELP
        CLIENT_EXIT_HELP;

enum { AGAIN_NS = 1000000000 }; /* pause after a refusal if nothing changes */

struct nodes_command {
    struct client client;
    struct client_options options;
    struct str node;
    const struct resource *fabric; /* a switch or cube of this kind, with the name `node`; NULL: a node */
    bool wait;
    int64_t grace_ns, timeout_ns, deadline_ns; /* grace_ns -1: the pods' own */
};

static void node_path(const struct nodes_command *command, struct buf *ret_path)
{
    kind_path(ret_path, kind_find(STR("node")), NULL, command->node);
}

static int set_cordon(struct nodes_command *command, bool cordon)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    node_path(command, &path);
    bool was = false;
    int rc = client_get(&command->client, buf_str(&path), &reply);
    if (rc != EXIT_OK)
        return rc;
    was = doc_bool(doc_path(reply.doc, "spec", "unschedulable", NULL), false);
    client_reply_done(&reply);
    struct client_request request = {.method = "PATCH",
                                     .path = buf_str(&path),
                                     .content_type = "application/merge-patch+json",
                                     .body = cordon ? STR("{\"spec\":{\"unschedulable\":true}}")
                                                    : STR("{\"spec\":{\"unschedulable\":null}}")};
    rc = client_do(&command->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    output_print("node/" STR_FORMAT " %s%s\n", STR_ARG(command->node), was == cordon ? "already " : "",
                 cordon ? "cordoned" : "uncordoned");
    client_reply_done(&reply);
    return EXIT_OK;
}

/* --- drain ---------------------------------------------------------------------------------------- */

/* Evicts a pod. *ret_again: a disruption budget does not allow it now. */
static int evict(struct nodes_command *command, const struct doc *pod, bool *ret_again)
{
    struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
    char namespace_[256];
    struct client_reply reply;
    struct str name = doc_text(pod, "metadata.name");
    snprintf(namespace_, sizeof namespace_, STR_FORMAT, STR_ARG(doc_text(pod, "metadata.namespace")));
    kind_path(&path, kind_find(STR("pod")), namespace_, name);
    buf_printf(&path, "/eviction");
    buf_printf(&body,
               "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"" STR_FORMAT
               "\",\"namespace\":\"%s\"}",
               STR_ARG(name), namespace_);
    if (command->grace_ns >= 0)
        buf_printf(&body, ",\"deleteOptions\":{\"gracePeriodSeconds\":%lld}",
                   (long long)(command->grace_ns / NS_PER_SECOND));
    buf_printf(&body, "}");
    struct client_request request = {
        .method = "POST", .path = buf_str(&path), .body = buf_str(&body), .content_type = "application/json"};
    int rc = client_call(&command->client, &request, &reply);
    if (rc != EXIT_OK)
        return rc;
    *ret_again = reply.code == 429;
    if (reply.code < 400)
        output_print("pod/" STR_FORMAT " evicted\n", STR_ARG(name));
    else if (reply.code != 404 && reply.code != 429) /* 404: the pod has ended by itself */
        rc = client_refused(&reply, "evicting a pod");
    client_reply_done(&reply);
    return rc;
}

static bool on_change(void *context, const char *type, const struct doc *object)
{
    (void)context, (void)object;
    return strcmp(type, "BEGIN") == 0 || strcmp(type, "ADDED") == 0 || strcmp(type, "SYNCED") == 0;
}

/* Evicts each pod that is on the node now; *ret_refused is the number of pods that must stay for now. */
static int evict_all(struct nodes_command *command, struct str list, size_t *ret_refused)
{
    struct client_reply reply;
    *ret_refused = 0;
    int rc = client_get(&command->client, list, &reply);
    if (rc != EXIT_OK)
        return rc;
    const struct doc *items = doc_get(reply.doc, "items");
    for (size_t i = 0; rc == EXIT_OK && i < doc_len(items); i++) {
        bool again = false;
        if (doc_text(items->array.items[i], "metadata.deletionTimestamp").len == 0)
            rc = evict(command, items->array.items[i], &again);
        *ret_refused += again;
    }
    fflush(stdout);
    client_reply_done(&reply);
    return rc;
}

static int drain_fabric(struct nodes_command *command)
{
    int rc = fabric_set_drain(&command->client, command->fabric, command->node, true);
    return rc == EXIT_OK && command->wait ? fabric_wait(&command->client, command->fabric, command->node,
                                                        "Drained", command->deadline_ns)
                                          : rc;
}

static int drain(struct nodes_command *command)
{
    struct buf path BUF_CLEANUP = {0}, query BUF_CLEANUP = {0}, list BUF_CLEANUP = {0};
    size_t refused;
    int rc = set_cordon(command, true);
    kind_path(&path, kind_find(STR("pod")), NULL, (struct str){0});
    node_pods_query(&query, command->node);
    buf_printf(&list, STR_FORMAT "?" STR_FORMAT, STR_ARG(buf_str(&path)), STR_ARG(buf_str(&query)));
    while (rc == EXIT_OK) {
        rc = evict_all(command, buf_str(&list), &refused);
        if (rc != EXIT_OK || refused == 0)
            break;
        int64_t now_ns = client_clock(), until_ns = now_ns + AGAIN_NS;
        if (now_ns >= command->deadline_ns) {
            say("disruption budgets keep %zu pods on " STR_FORMAT, refused, STR_ARG(command->node));
            return EXIT_TIMEOUT;
        }
        until_ns = until_ns < command->deadline_ns ? until_ns : command->deadline_ns;
        rc = client_watch(&command->client, buf_str(&path), buf_str(&query), until_ns, on_change, command);
        rc = rc == EXIT_TIMEOUT ? EXIT_OK : rc;
    }
    if (rc == EXIT_OK && command->wait)
        rc = node_wait_empty(&command->client, command->node, command->deadline_ns);
    return rc;
}

/* --- uncordon ------------------------------------------------------------------------------------- */

static bool names_node(const struct doc *maintenance, struct str node)
{
    const struct doc *machines = doc_path(maintenance, "spec", "machines", NULL);
    for (size_t i = 0; i < doc_len(machines); i++)
        if (str_equal(doc_str(machines->array.items[i], STR("")), node))
            return true;
    return false;
}

/* Warns of each Maintenance that keeps work away from the node although it is uncordoned. */
static int tell_maintenance(struct nodes_command *command)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    kind_path(&path, kind_find(STR("maintenance")), NULL, (struct str){0});
    int rc = client_get(&command->client, buf_str(&path), &reply);
    if (rc != EXIT_OK)
        return rc;
    const struct doc *items = doc_get(reply.doc, "items");
    for (size_t i = 0; i < doc_len(items); i++) {
        const struct doc *one = items->array.items[i];
        struct str state = doc_text(one, "status.phase");
        if (!names_node(one, command->node) || str_is(state, "Pending") || str_is(state, "Done"))
            continue;
        struct str name = doc_text(one, "metadata.name"), reason = doc_text(one, "spec.reason");
        output_print("warning: maintenance/" STR_FORMAT " still keeps work away from it until " STR_FORMAT
                     "%s" STR_FORMAT "; `phalanx delete maintenance " STR_FORMAT "` ends that\n",
                     STR_ARG(name), STR_ARG(doc_text(one, "spec.end")), reason.len ? ": " : "",
                     STR_ARG(reason), STR_ARG(name));
    }
    client_reply_done(&reply);
    return EXIT_OK;
}

/* --- the commands --------------------------------------------------------------------------------- */

static bool take_option(struct nodes_command *command, int letter)
{
    switch (letter) {
    case 'g':
        return duration_parse(str_from(optarg), &command->grace_ns) && command->grace_ns >= 0;
    case 'W':
        command->wait = true;
        return true;
    case 't':
        return duration_parse(str_from(optarg), &command->timeout_ns);
    default:
        return client_option(&command->options, letter, optarg);
    }
}

/* Parses the command line and opens the client. Returns false with the exit code in *ret_code if the command
 * ends. */
static bool begin(struct nodes_command *command, int argc, char **argv, const char *usage,
                  const struct option *options, int *ret_code)
{
    bool usable = true;
    int letter;
    *command = (struct nodes_command){.grace_ns = -1};
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS, options, NULL)) != -1)
        usable = usage_value(take_option(command, letter)) && usable;
    *ret_code = EXIT_OK;
    if (command->options.help) {
        fputs(usage, stdout);
        return false;
    }
    if (!usable || optind != argc - 1) {
        *ret_code = !usable         ? usage_wrong(usage, NULL)
                    : optind < argc ? usage_wrong(usage, "unexpected argument \"%s\"", argv[optind + 1])
                                    : usage_wrong(usage, "NODE is missing");
        return false;
    }
    if (!fabric_thing(argv[optind], &command->fabric, &command->node))
        command->node = node_named(argv[optind]);
    command->deadline_ns = command->timeout_ns ? client_clock() + command->timeout_ns : INT64_MAX;
    *ret_code = client_open(&command->client, &command->options);
    return *ret_code == EXIT_OK;
}

static const struct option plain_options[] = {CLIENT_LONG_OPTIONS, {0}};

int cmd_cordon(int argc, char **argv)
{
    struct nodes_command command;
    int rc;
    if (!begin(&command, argc, argv, cordon_usage, plain_options, &rc))
        return rc;
    rc = command.fabric ? fabric_set_drain(&command.client, command.fabric, command.node, true)
                        : set_cordon(&command, true);
    client_close(&command.client);
    return rc;
}

int cmd_uncordon(int argc, char **argv)
{
    struct nodes_command command;
    int rc;
    const char *usage = strcmp(argv[0], "undrain") == 0 ? undrain_usage : uncordon_usage;
    if (!begin(&command, argc, argv, usage, plain_options, &rc))
        return rc;
    rc = command.fabric ? fabric_set_drain(&command.client, command.fabric, command.node, false)
                        : set_cordon(&command, false);
    if (rc == EXIT_OK && !command.fabric)
        rc = tell_maintenance(&command);
    client_close(&command.client);
    return rc;
}

int cmd_drain(int argc, char **argv)
{
    static const struct option options[] = {{"grace", required_argument, NULL, 'g'},
                                            {"wait", no_argument, NULL, 'W'},
                                            {"timeout", required_argument, NULL, 't'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct nodes_command command;
    int rc;
    if (!begin(&command, argc, argv, drain_usage, options, &rc))
        return rc;
    rc = command.fabric ? drain_fabric(&command) : drain(&command);
    client_close(&command.client);
    return rc;
}
