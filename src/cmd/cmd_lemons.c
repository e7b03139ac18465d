/* phalanx lemons: lists machines that fail again and again. */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/usage.h"
#include "cmd/client.h"
#include "cmd/lemons_import.h"

static const char usage[] =
    "Usage: phalanx lemons [options]\n"
    "       phalanx lemons --import FILE.csv [--cluster FILE] [--all] [-o json]\n"
    "\n"
    "Lists machines that failed repeatedly in the last 28 days, the worst first: whether the machine is a\n"
    "lemon, its score (the sum of its signals, each in percent of its threshold) and the evidence. The\n"
    "thresholds are in the cluster file, spec.settings.lemons. Hardware failures count; injected faults,\n"
    "orderly stops of agents and outages of the controller do not.\n"
    "\n"
    "How many lemons fail again within 28 days (the precision) depends on how unevenly failures are\n"
    "spread. For multi_node_node_fails (LANL: 22 clusters, 1996 to 2005, all causes):\n"
    "  threshold     precision, synthetic   precision, LANL   machines flagged, LANL\n"
    "  2             0.99                   0.40              23 %\n"
    "  3 (default)   1.00                   0.55              10 %\n"
    "  5             -                      0.76               4 %\n"
    "\n"
    "      --import FILE      judge a history of failures: lines machine,start,end,cause[,domain]\n"
    "      --cluster FILE     with --import: use the thresholds of this cluster file\n"
    "      --all              include machines that are not lemons\n"
    "  -o, --output FORMAT    table or json (default: table)\n" CLIENT_HELP CLIENT_EXIT_HELP;

struct listing {
    struct client_options options;
    const char *import, *cluster; /* NULL: ask the controller; the default thresholds */
    bool all, json;
};

static bool is_lemon(const struct doc *item)
{
    return doc_bool(doc_dotted(item, "status.lemon"), false);
}

/* Orders lemons first, then by score, then by name. */
static int worst_first(const void *a, const void *b)
{
    const struct doc *x = *(const struct doc *const *)a, *y = *(const struct doc *const *)b;
    int64_t left = doc_number(x, "status.score", 0), right = doc_number(y, "status.score", 0);
    if (is_lemon(x) != is_lemon(y))
        return is_lemon(x) ? -1 : 1;
    if (left != right)
        return left > right ? -1 : 1;
    return str_compare(doc_text(x, "metadata.name"), doc_text(y, "metadata.name"));
}

static void put_table(struct buf *out, struct doc *const *items, size_t count)
{
    static const char *const names[] = {"MACHINE", "LEMON", "SCORE", "SINCE", "EVIDENCE"};
    struct text_table table = {.columns = sizeof names / sizeof *names};
    table_heads(&table, names);
    for (size_t i = 0; i < count; i++) {
        struct str since = doc_text(items[i], "status.since");
        table_add(&table, doc_text(items[i], "metadata.name"));
        table_add(&table, is_lemon(items[i]) ? STR("yes") : STR("no"));
        table_add(&table,
                  arena_printf(&table.arena, "%lld%%", (long long)doc_number(items[i], "status.score", 0)));
        table_add(&table, is_lemon(items[i]) ? since : STR("-"));
        table_add(&table, doc_text(items[i], "status.evidence"));
    }
    table_print(&table, out, output_colors());
    table_done(&table);
}

/* Sorts the list and drops the machines that were not asked for. */
static void arrange(struct doc *list, bool all)
{
    size_t kept = 0;
    if (!list || list->kind != DOC_ARRAY)
        return;
    for (size_t i = 0; i < list->array.len; i++)
        if (all || is_lemon(list->array.items[i]))
            list->array.items[kept++] = list->array.items[i];
    list->array.len = kept;
    if (kept > 1)
        qsort(list->array.items, kept, sizeof(*list->array.items), worst_first);
}

static int show(const struct listing *listing)
{
    struct client client;
    struct client_reply reply = {0};
    struct buf path BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
    int rc = client_open(&client, &listing->options);
    if (rc != EXIT_OK)
        return rc;
    kind_path(&path, kind_find(STR("lemons")), NULL, (struct str){0});
    rc = client_get(&client, buf_str(&path), &reply);
    if (rc == EXIT_OK) {
        struct doc *items = doc_get(reply.doc, "items");
        arrange(items, listing->all);
        if (listing->json)
            json_write_pretty(&out, reply.doc);
        else if (doc_len(items))
            put_table(&out, items->array.items, doc_len(items));
        else
            say(listing->all ? "no failure of any machine was counted" : "no machine is a lemon");
        output_write(&out);
    }
    client_reply_done(&reply);
    client_close(&client);
    return rc;
}

enum { OPTION_IMPORT = 256, OPTION_CLUSTER };

int cmd_lemons(int argc, char **argv)
{
    static const struct option options[] = {{"all", no_argument, NULL, 'a'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"import", required_argument, NULL, OPTION_IMPORT},
                                            {"cluster", required_argument, NULL, OPTION_CLUSTER},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct listing listing = {0};
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "o:", options, NULL)) != -1) {
        if (letter == 'a')
            listing.all = true;
        else if (letter == OPTION_IMPORT)
            listing.import = optarg;
        else if (letter == OPTION_CLUSTER)
            listing.cluster = optarg;
        else if (letter == 'o')
            usable = usage_json(optarg, &listing.json) && usable;
        else
            usable = client_option(&listing.options, letter, optarg) && usable;
    }
    if (listing.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (!usable || optind < argc) {
        return usable ? usage_wrong(usage, "unexpected argument \"%s\"", argv[optind])
                      : usage_wrong(usage, NULL);
    }
    if (listing.cluster && !listing.import)
        return usage_wrong(usage,
                           "--cluster goes with --import: the controller has a cluster file of its own");
    return listing.import ? lemons_import(listing.import, listing.cluster, listing.all, listing.json)
                          : show(&listing);
}
