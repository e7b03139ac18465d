/* phalanx upgrade check: shows which versions run where, and what would prevent a rolling upgrade. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/etcd_place.h"
#include "cmd/usage.h"
#include "core/words/release.h"

static const char usage[] =
    "Usage: phalanx upgrade check [options]\n"
    "\n"
    "Shows the controllers with their versions and the levels of the log that they read, how many\n"
    "machines are ready, and what would stop a rolling upgrade now (docs/upgrade.md).\n"
    "\n"
    "Options:\n"
    "  -o, --output json      one JSON object\n" ETCD_PLACE_HELP CLIENT_HELP
    "\nExit status: 0 a rolling upgrade may go on, 1 something would stop it, 2 wrong usage,\n"
    "4 no controller answers.\n";

struct upgrade {
    struct client_options common;
    struct etcd_place etcd;
    bool json;
    struct etcd_seen seen;
    struct etcd_replicas replicas;
    struct str api_version; /* of the controller that answers; in the reply's arena */
    size_t nodes, nodes_ready;
    struct buf stops; /* one line for each reason against */
    size_t stop_count;
};

__attribute__((format(printf, 2, 3))) static void upgrade_stop(struct upgrade *upgrade, const char *format,
                                                               ...)
{
    va_list arguments;
    char line[512];
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    buf_printf(&upgrade->stops, "%s\n", line);
    upgrade->stop_count++;
}

/* Reads "MAJOR.MINOR" at the beginning of a version. Returns false if it is not there. */
static bool release_read(const char *version, int64_t *ret_major, int64_t *ret_minor)
{
    struct str major, rest, minor;
    if (!str_cut(str_from(version), '.', &major, &rest))
        return false;
    if (!str_cut(rest, '.', &minor, &rest))
        minor = rest;
    return str_to_i64(major, 0, INT32_MAX, ret_major) && str_to_i64(minor, 0, INT32_MAX, ret_minor);
}

/* Returns true if two releases may run side by side: they are equal or neighbours. */
static bool releases_fit(const char *one, const char *other)
{
    int64_t major[2], minor[2];
    if (!release_read(one, &major[0], &minor[0]) || !release_read(other, &major[1], &minor[1]))
        return strcmp(one, other) == 0;
    int64_t apart = minor[0] - minor[1];
    return major[0] == major[1] && apart >= -1 && apart <= 1;
}

static bool replica_leads(const struct upgrade *upgrade, const struct etcd_replica *replica)
{
    return upgrade->seen.leader_term && strcmp(replica->who, upgrade->seen.who) == 0;
}

static void judge_controllers(struct upgrade *upgrade)
{
    const struct etcd_replicas *replicas = &upgrade->replicas;
    if (!upgrade->seen.leader_term)
        upgrade_stop(upgrade, "no controller leads");
    if (replicas->silent > 0)
        upgrade_stop(upgrade,
                     "%zu leases in etcd belong to controllers that do not say what they read: they are "
                     "starting, or their release is too old",
                     replicas->silent);
    if (replicas->count + replicas->silent < 2)
        upgrade_stop(upgrade, "there is no standby: start one, so that another controller can lead");
    for (size_t i = 0; i < replicas->count; i++)
        for (size_t j = 0; j < i; j++)
            if (!releases_fit(replicas->items[i].version, replicas->items[j].version))
                upgrade_stop(upgrade, "%s runs %s and %s runs %s: these releases are not neighbours",
                             replicas->items[j].who, replicas->items[j].version, replicas->items[i].who,
                             replicas->items[i].version);
}

static int look_at_etcd(struct upgrade *upgrade)
{
    struct etcd_log *log;
    struct error error = {0};
    int rc = etcd_log_open(&upgrade->etcd.options, &log, &error);
    if (rc == 0) {
        rc = etcd_log_refresh(log, &upgrade->seen, &error);
        if (rc == 0)
            rc = etcd_log_replicas(log, &upgrade->replicas, &error);
        etcd_log_close(log);
    }
    if (rc < 0) {
        say("%s", error.text);
        return EXIT_UNREACHABLE;
    }
    judge_controllers(upgrade);
    return EXIT_OK;
}

static bool node_is_ready(const struct doc *node)
{
    const struct doc *conditions = doc_path(node, "status", "conditions", NULL);
    for (size_t i = 0; i < doc_len(conditions); i++)
        if (str_is(doc_text(doc_at(conditions, i), "type"), "Ready"))
            return str_is(doc_text(doc_at(conditions, i), "status"), "True");
    return false;
}

static void judge_nodes(struct upgrade *upgrade, const struct doc *list)
{
    const struct doc *items = doc_get(list, "items");
    upgrade->nodes = doc_len(items);
    for (size_t i = 0; i < upgrade->nodes; i++) {
        const struct doc *node = doc_at(items, i);
        struct str name = doc_text(doc_get(node, "metadata"), "name");
        if (node_is_ready(node))
            upgrade->nodes_ready++;
        else
            upgrade_stop(upgrade, "node " STR_FORMAT " is not ready: start its agent, or drain the machine",
                         STR_ARG(name));
    }
}

static void print_json(const struct upgrade *upgrade, struct buf *out)
{
    struct json_writer writer = {.out = out};
    struct str lines = buf_str(&upgrade->stops), line;
    json_begin_object(&writer);
    json_pair_text(&writer, "client", this_release.version);
    json_pair_str(&writer, "server", upgrade->api_version);
    json_key(&writer, "controllers");
    json_begin_array(&writer);
    for (size_t i = 0; i < upgrade->replicas.count; i++) {
        const struct etcd_replica *replica = &upgrade->replicas.items[i];
        json_begin_object(&writer);
        json_pair_text(&writer, "address", replica->who);
        json_pair_text(&writer, "version", replica->version);
        json_pair_int(&writer, "reads", replica->reads);
        json_pair_int(&writer, "level", replica->level);
        json_pair_bool(&writer, "leads", replica_leads(upgrade, replica));
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_pair_int(&writer, "silentControllers", (int64_t)upgrade->replicas.silent);
    json_pair_int(&writer, "nodes", (int64_t)upgrade->nodes);
    json_pair_int(&writer, "nodesReady", (int64_t)upgrade->nodes_ready);
    json_key(&writer, "stops");
    json_begin_array(&writer);
    while (str_cut(lines, '\n', &line, &lines))
        json_put_str(&writer, line);
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

static void print_table(const struct upgrade *upgrade, struct buf *out)
{
    static const char *const heads[] = {"CONTROLLER", "VERSION", "READS", "LEVEL", "ROLE"};
    struct text_table table = {.columns = sizeof heads / sizeof *heads};
    char number[DECIMAL_TEXT_MAX];
    table_heads(&table, heads);
    for (size_t i = 0; i < upgrade->replicas.count; i++) {
        const struct etcd_replica *replica = &upgrade->replicas.items[i];
        table_add(&table, str_from(replica->who));
        table_add(&table, str_from(replica->version));
        table_add(&table, str_decimal(replica->reads, number));
        table_add(&table, str_decimal(replica->level, number));
        table_add(&table, replica_leads(upgrade, replica) ? STR("leads") : STR("standby"));
    }
    if (upgrade->replicas.count > 0) {
        table_print(&table, out, false);
        buf_add_char(out, '\n');
    }
    table_done(&table);
    buf_printf(out,
               "controller: phalanx " STR_FORMAT "; this program: phalanx %s, reads level %" PRIu32 "\n"
               "machines:   %zu of %zu are ready\n",
               STR_ARG(upgrade->api_version), this_release.version, this_release.level, upgrade->nodes_ready,
               upgrade->nodes);
    if (upgrade->stop_count > 0)
        buf_printf(out, "\nA rolling upgrade would be stopped by:\n" STR_FORMAT,
                   STR_ARG(buf_str(&upgrade->stops)));
    else
        buf_printf(out, "nothing stops a rolling upgrade\n");
}

static int check_upgrade(struct upgrade *upgrade)
{
    struct client client;
    struct client_reply version = {0}, nodes = {0};
    struct buf out BUF_CLEANUP = {0};
    client_open(&client, &upgrade->common);
    int rc = upgrade->etcd.options.endpoints ? look_at_etcd(upgrade) : EXIT_OK;
    if (rc == EXIT_OK)
        rc = client_get(&client, STR("/version"), &version);
    if (rc == EXIT_OK)
        rc = client_get(&client, STR("/api/v1/nodes"), &nodes);
    if (rc == EXIT_OK) {
        upgrade->api_version = doc_text(version.doc, "gitVersion");
        judge_nodes(upgrade, nodes.doc);
        if (upgrade->json)
            print_json(upgrade, &out);
        else
            print_table(upgrade, &out);
        output_write(&out);
        rc = upgrade->stop_count > 0 ? EXIT_FAILED : EXIT_OK;
    }
    client_reply_done(&version);
    client_reply_done(&nodes);
    client_close(&client);
    buf_done(&upgrade->stops);
    return rc;
}

int cmd_upgrade(int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, ETCD_PLACE_OPTIONS, CLIENT_LONG_OPTIONS, {0}};
    struct upgrade upgrade = {0};
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "o:", options, NULL)) != -1) {
        if (letter == 'o') {
            if (!usage_json(optarg, &upgrade.json))
                return usage_wrong(usage, NULL);
        } else if (!etcd_place_option(&upgrade.etcd, letter, optarg) &&
                   !client_option(&upgrade.common, letter, optarg)) {
            return usage_wrong(usage, NULL);
        }
    }
    if (upgrade.common.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (optind + 1 != argc || strcmp(argv[optind], "check") != 0)
        return usage_wrong(usage, "the action is missing, or is not \"check\"");
    return check_upgrade(&upgrade);
}
