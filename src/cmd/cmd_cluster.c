/* phalanx cluster: checks a cluster file, shows the running cluster and its policy. */
#include <stdio.h>

#include "cmd/usage.h"
#include "cmd/client.h"
#include "cmd/cluster_file.h"

static const char usage[] =
    "Usage: phalanx cluster check FILE... [-o json]\n"
    "       phalanx cluster policy [FILE] [-o json | --markdown]\n"
    "       phalanx cluster show [options]\n"
    "\n"
    "check   reads cluster files; prints their inventory, or every mistake as\n"
    "        FILE:LINE:COLUMN: path: message\n"
    "policy  prints the constants of the controller's behaviour: FILE's, or the defaults; a * marks\n"
    "        what FILE changes (docs/policy.md)\n"
    "show    prints the blocks of the running cluster, their machines and chips\n"
    "\n"
    "  -o, --output json      check: each file as JSON, one a line; policy, show: one object\n"
    "      --markdown         policy: the page of the documentation\n" CLIENT_HELP CLIENT_EXIT_HELP;

static int check(char **files, int count, bool json_wanted)
{
    int result = EXIT_OK;
    for (int i = 0; i < count; i++) {
        struct cluster cluster;
        struct buf json BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        if (!cluster_file_load(files[i], &cluster, &json)) {
            result = EXIT_FAILED;
            continue;
        }
        if (json_wanted)
            buf_printf(&text, STR_FORMAT "\n", STR_ARG(buf_str(&json)));
        else
            cluster_describe(&cluster, &text);
        if (count > 1 && !json_wanted)
            printf("%s:\n", files[i]);
        output_write(&text);
        cluster_done(&cluster);
    }
    return result;
}

/* --- policy
 * ---------------------------------------------------------------------------------------------- */

static void put_policy(struct buf *out, const struct policy *policy)
{
    static const char *const head[] = {"FIELD", "VALUE", "DEFAULT"};
    struct policy defaults = policy_default();
    struct text_table table = {.columns = 3};
    for (int i = 0; i < 3; i++)
        table_add(&table, str_from(head[i]));
    for (size_t i = 0; i < policy_field_count; i++) {
        const struct policy_field *field = &policy_fields[i];
        struct buf value BUF_CLEANUP = {0}, fallback BUF_CLEANUP = {0};
        int64_t now = policy_get(policy, field), usual = policy_get(&defaults, field);
        policy_print_value(field, usual, &fallback);
        policy_print_value(field, now, &value);
        buf_printf(&value, "%s", now == usual || (field->fallback_text && !field->fallback) ? "" : " *");
        table_add(&table, str_from(field->path));
        table_add(&table, arena_str(&table.arena, buf_str(&value)));
        table_add(&table, arena_str(&table.arena, buf_str(&fallback)));
    }
    table_print(&table, out, false);
    table_done(&table);
}

static void put_policy_json(struct buf *out, const struct policy *policy)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    for (size_t i = 0; i < policy_field_count; i++) {
        const struct policy_field *field = &policy_fields[i];
        struct buf text BUF_CLEANUP = {0};
        policy_print_value(field, policy_get(policy, field), &text);
        json_pair_str(&writer, field->path, buf_str(&text));
    }
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

static int policy(const char *file, bool json_wanted, bool markdown)
{
    struct cluster cluster = {0};
    struct policy values = policy_default();
    struct buf json BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
    if (file && !cluster_file_load(file, &cluster, &json))
        return EXIT_FAILED;
    if (file)
        values = cluster.policy;
    if (markdown)
        policy_document(&out);
    else if (json_wanted)
        put_policy_json(&out, &values);
    else
        put_policy(&out, &values);
    output_write(&out);
    if (file)
        cluster_done(&cluster);
    return EXIT_OK;
}

/* --- show
 * ------------------------------------------------------------------------------------------------ */

/* The sums of one block. */
struct block_sum {
    struct str pod, block;
    int64_t machines, ready, cordoned, spares, chips, free_chips;
};

static void add_node(struct block_sum *sum, const struct doc *node)
{
    bool ready = str_is(doc_text(node, "status.phalanx.state"), "Ready") ||
                 str_is(doc_text(doc_at(doc_dotted(node, "status.conditions"), 0), "status"), "True");
    sum->machines++;
    sum->ready += ready;
    sum->cordoned += doc_bool(doc_dotted(node, "spec.unschedulable"), false);
    sum->spares += doc_bool(doc_dotted(node, "status.phalanx.spare"), false);
    sum->chips += doc_number(node, "status.phalanx.chips", 0);
    sum->free_chips += doc_number(node, "status.phalanx.freeChips", 0);
}

struct block_list {
    VEC(struct block_sum) blocks;
    struct block_sum all;
};

/* Sums the nodes of each block. Nodes are in the order of the cluster file, those of a block together. */
static void sum_blocks(struct block_list *list, const struct doc *nodes)
{
    for (size_t i = 0; i < doc_len(nodes); i++) {
        const struct doc *node = doc_at(nodes, i);
        struct block_sum sum = {.pod = doc_text(node, "status.phalanx.pod"),
                                .block = doc_text(node, "status.phalanx.block")};
        size_t last = list->blocks.len - 1;
        if (!list->blocks.len || !str_equal(list->blocks.items[last].pod, sum.pod) ||
            !str_equal(list->blocks.items[last].block, sum.block))
            vec_push(&list->blocks, sum);
        add_node(&list->blocks.items[list->blocks.len - 1], node);
        add_node(&list->all, node);
    }
}

static void add_row(struct text_table *table, const struct block_sum *sum)
{
    const int64_t numbers[] = {sum->machines, sum->ready,      sum->cordoned,
                               sum->spares,   sum->free_chips, sum->chips};
    table_add(table, sum->pod);
    table_add(table, sum->block);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        table_add(table, arena_printf(&table->arena, "%lld", (long long)numbers[i]));
}

static void put_table(struct buf *out, struct block_list *list)
{
    static const char *const head[] = {"POD",      "BLOCK",  "MACHINES", "READY",
                                       "CORDONED", "SPARES", "FREE",     "CHIPS"};
    struct text_table table = {.columns = 8};
    for (int i = 0; i < 8; i++)
        table_add(&table, str_from(head[i]));
    for (size_t i = 0; i < list->blocks.len; i++)
        add_row(&table, &list->blocks.items[i]);
    list->all.pod = STR("all");
    add_row(&table, &list->all);
    table_print(&table, out, false);
    table_done(&table);
}

static void put_members(struct json_writer *writer, const struct block_sum *sum)
{
    json_pair_int(writer, "machines", sum->machines);
    json_pair_int(writer, "ready", sum->ready);
    json_pair_int(writer, "cordoned", sum->cordoned);
    json_pair_int(writer, "spares", sum->spares);
    json_pair_int(writer, "freeChips", sum->free_chips);
    json_pair_int(writer, "chips", sum->chips);
}

static void put_json(struct buf *out, const struct block_list *list)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_key(&writer, "blocks");
    json_begin_array(&writer);
    for (size_t i = 0; i < list->blocks.len; i++) {
        json_begin_object(&writer);
        json_pair_str(&writer, "pod", list->blocks.items[i].pod);
        json_pair_str(&writer, "block", list->blocks.items[i].block);
        put_members(&writer, &list->blocks.items[i]);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    put_members(&writer, &list->all);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

static int show(const struct client_options *common, bool json)
{
    struct client client;
    struct client_reply nodes;
    client_open(&client, common);
    int rc = client_get(&client, STR("/api/v1/nodes"), &nodes);
    if (rc == EXIT_OK) {
        struct block_list list = {0};
        struct buf out BUF_CLEANUP = {0};
        sum_blocks(&list, doc_get(nodes.doc, "items"));
        if (json)
            put_json(&out, &list);
        else
            put_table(&out, &list);
        output_write(&out);
        vec_done(&list.blocks);
        client_reply_done(&nodes);
    }
    client_close(&client);
    return rc;
}

int cmd_cluster(int argc, char **argv)
{
    static const char *const actions[] = {"check", "policy", "show"};
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"markdown", no_argument, NULL, 'M'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct client_options common = {0};
    bool json = false, markdown = false, usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "o:", options, NULL)) != -1) {
        if (letter == 'o')
            usable = usage_json(optarg, &json) && usable;
        else if (letter == 'M')
            markdown = true;
        else
            usable = client_option(&common, letter, optarg) && usable;
    }
    if (common.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (!usable || optind == argc)
        return usage_wrong(usage, usable ? "check, policy or show is needed" : NULL);
    const char *action = argv[optind++];
    if (strcmp(action, "show") == 0)
        return optind < argc ? usage_wrong(usage, "unexpected argument \"%s\"", argv[optind])
                             : show(&common, json);
    if (strcmp(action, "policy") == 0)
        return optind + 1 < argc ? usage_wrong(usage, "unexpected argument \"%s\"", argv[optind + 1])
                                 : policy(argv[optind], json, markdown);
    if (strcmp(action, "check") == 0)
        return optind == argc ? usage_wrong(usage, "FILE is missing")
                              : check(argv + optind, argc - optind, json);
    usage_unknown("action", str_from(action), actions, sizeof actions / sizeof *actions);
    return usage_wrong(usage, NULL);
}
