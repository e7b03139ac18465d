/* phalanx cluster: check a cluster file; show the cluster that runs. */
#include <stdio.h>

#include "cmd/client.h"
#include "cmd/cluster_file.h"

static const char usage[] =
    "Usage: phalanx cluster check FILE...\n"
    "       phalanx cluster show [options]\n"
    "\n"
    "check   reads cluster files; prints their inventory, or every mistake as\n"
    "        FILE:LINE:COLUMN: path: message\n"
    "show    prints the blocks of the running cluster, their machines and chips\n"
    "\n"
    "Options of show:\n" CLIENT_HELP CLIENT_EXIT_HELP;

static int check(int argc, char **argv)
{
    int result = EXIT_OK;
    for (int i = 0; i < argc; i++) {
        struct cluster cluster;
        struct buf json BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        if (!cluster_file_load(argv[i], &cluster, &json)) {
            result = EXIT_FAILED;
            continue;
        }
        cluster_describe(&cluster, &text);
        if (argc > 1)
            printf("%s:\n", argv[i]);
        output_write(&text);
        cluster_done(&cluster);
    }
    return result;
}

/* What a block has in all. */
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

static void add_row(struct text_table *table, struct str pod, struct str block, const struct block_sum *sum)
{
    const int64_t numbers[] = {sum->machines, sum->ready,      sum->cordoned,
                               sum->spares,   sum->free_chips, sum->chips};
    table_add(table, pod);
    table_add(table, block);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        table_add(table, arena_printf(&table->arena, "%lld", (long long)numbers[i]));
}

static void print_blocks(const struct doc *nodes)
{
    static const char *const head[] = {"POD",      "BLOCK",  "MACHINES", "READY",
                                       "CORDONED", "SPARES", "FREE",     "CHIPS"};
    struct text_table table = {.columns = 8};
    struct buf out BUF_CLEANUP = {0};
    struct block_sum sum = {0}, all = {0};
    for (int i = 0; i < 8; i++)
        table_add(&table, str_from(head[i]));
    for (size_t i = 0; i < doc_len(nodes); i++) {
        const struct doc *node = doc_at(nodes, i);
        struct str pod = doc_text(node, "status.phalanx.pod"), block = doc_text(node, "status.phalanx.block");
        if (sum.machines && (!str_equal(pod, sum.pod) || !str_equal(block, sum.block))) {
            add_row(&table, sum.pod, sum.block, &sum);
            sum = (struct block_sum){0};
        }
        sum.pod = pod;
        sum.block = block;
        add_node(&sum, node);
        add_node(&all, node);
    }
    if (sum.machines)
        add_row(&table, sum.pod, sum.block, &sum);
    add_row(&table, STR("all"), STR(""), &all);
    table_print(&table, &out, false);
    output_write(&out);
    table_done(&table);
}

static int show(int argc, char **argv)
{
    static const struct option options[] = {CLIENT_LONG_OPTIONS, {0}};
    struct client_options common = {0};
    struct client client;
    struct client_reply nodes;
    int letter;
    while ((letter = getopt_long(argc, argv, CLIENT_SHORT_OPTIONS, options, NULL)) != -1) {
        if (!client_option(&common, letter, optarg)) {
            fputs(usage, stderr);
            return EXIT_USAGE;
        }
    }
    if (common.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    client_open(&client, &common);
    int rc = client_get(&client, STR("/api/v1/nodes"), &nodes);
    if (rc == EXIT_OK) {
        print_blocks(doc_get(nodes.doc, "items"));
        client_reply_done(&nodes);
    }
    client_close(&client);
    return rc;
}

int cmd_cluster(int argc, char **argv)
{
    const char *action = argc > 1 ? argv[1] : "";
    if (strcmp(action, "--help") == 0 || strcmp(action, "-h") == 0) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (strcmp(action, "check") == 0 && argc > 2)
        return check(argc - 2, argv + 2);
    if (strcmp(action, "show") == 0)
        return show(argc - 1, argv + 1);
    fputs(usage, stderr);
    return EXIT_USAGE;
}
