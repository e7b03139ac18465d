/* phalanx top: what the chips are doing. */
#include <stdio.h>
#include <time.h>

#include "cmd/usage.h"
#include "cmd/client.h"

static const char usage[] =
    "Usage: phalanx top [jobs|nodes] [options]\n"
    "\n"
    "Shows, for the cluster and each jobset: chips, step, steps per second, ETTR and the shares of its "
    "chip-seconds\n"
    "(kept, not yet kept, redone, restarting, starting, queued, stopping); with nodes, the machines. On a "
    "terminal it\n"
    "is shown again every second until interrupted; otherwise once.\n"
    "\n"
    "      --once             show it once\n"
    "      --interval TIME    between two showings (default: 1s)\n"
    "  -A is the default; -n NAME shows the jobsets of one namespace\n" CLIENT_HELP CLIENT_EXIT_HELP;

struct topping {
    struct client client;
    struct client_options options;
    bool nodes, once;
    int64_t interval_ns;
};

/* Chips that running pods hold, by jobset. */
struct holder {
    struct str namespace_, jobset;
    int64_t chips;
};
struct holders {
    VEC(struct holder) list;
};

static void add_holder(struct holders *holders, struct str namespace_, struct str jobset, int64_t chips)
{
    for (size_t i = 0; i < holders->list.len; i++) {
        struct holder *holder = &holders->list.items[i];
        if (str_equal(holder->namespace_, namespace_) && str_equal(holder->jobset, jobset)) {
            holder->chips += chips;
            return;
        }
    }
    struct holder holder = {namespace_, jobset, chips};
    vec_push(&holders->list, holder);
}

static void count_holders(struct holders *holders, const struct doc *pods)
{
    for (size_t i = 0; i < doc_len(pods); i++) {
        const struct doc *pod = doc_at(pods, i);
        struct str phase = doc_text(pod, "status.phase");
        struct str jobset =
            doc_str(doc_get(doc_dotted(pod, "metadata.labels"), "jobset.sigs.k8s.io/jobset-name"), STR(""));
        if (!str_is(phase, "Succeeded") && !str_is(phase, "Failed"))
            add_holder(holders, doc_text(pod, "metadata.namespace"), jobset,
                       (int64_t)doc_len(doc_dotted(pod, "status.phalanx.chips")));
    }
}

static int64_t held_by(const struct holders *holders, struct str namespace_, struct str jobset)
{
    for (size_t i = 0; i < holders->list.len; i++)
        if (str_equal(holders->list.items[i].namespace_, namespace_) &&
            str_equal(holders->list.items[i].jobset, jobset))
            return holders->list.items[i].chips;
    return 0;
}

static bool is_ready(const struct doc *node)
{
    return str_is(doc_text(doc_at(doc_dotted(node, "status.conditions"), 0), "status"), "True");
}

static void put_cluster(struct buf *out, const struct doc *nodes, const struct doc *jobsets)
{
    int64_t chips = 0, free_chips = 0, down = 0, ready = 0, cordoned = 0, running = 0, waiting = 0;
    for (size_t i = 0; i < doc_len(nodes); i++) {
        const struct doc *node = doc_at(nodes, i);
        bool off = doc_bool(doc_dotted(node, "spec.unschedulable"), false), up = is_ready(node);
        chips += doc_number(node, "status.phalanx.chips", 0);
        *(up && !off ? &free_chips : &down) += doc_number(node, "status.phalanx.freeChips", 0);
        ready += up;
        cordoned += off;
    }
    for (size_t i = 0; i < doc_len(jobsets); i++) {
        struct str state = doc_text(doc_at(jobsets, i), "status.phalanx.state");
        running += str_is(state, "Running");
        waiting += str_is(state, "Queued") || str_is(state, "Restarting") || str_is(state, "Starting");
    }
    buf_printf(out, "machines  %zu, %lld ready, %lld cordoned\n", doc_len(nodes), (long long)ready,
               (long long)cordoned);
    buf_printf(out, "chips     %lld, %lld held, %lld free, %lld down\n", (long long)chips,
               (long long)(chips - free_chips - down), (long long)free_chips, (long long)down);
    buf_printf(out, "jobsets   %zu, %lld running, %lld waiting or starting\n\n", doc_len(jobsets),
               (long long)running, (long long)waiting);
}

static void add_share(struct text_table *table, const struct doc *owners, const char *owner, double all)
{
    double value = doc_real(doc_get(owners, owner), 0);
    table_add(table,
              all > 0 && value > 0 ? arena_printf(&table->arena, "%.1f%%", 100 * value / all) : STR("-"));
}

static void add_jobset(struct text_table *table, const struct doc *jobset, const struct holders *holders)
{
    static const char *const owners_shown[] = {
        "productive-kept", "productive-unkept", "redone", "restarting", "starting", "queued", "stopping"};
    const struct doc *phalanx = doc_dotted(jobset, "status.phalanx"),
                     *owners = doc_dotted(phalanx, "ledger.chipSeconds");
    struct str namespace_ = doc_text(jobset, "metadata.namespace"), name = doc_text(jobset, "metadata.name");
    int64_t step = doc_number(phalanx, "step", -1), total = doc_number(phalanx, "totalSteps", 0);
    int64_t ettr_ppm = doc_number(phalanx, "ledger.ettrPpm", -1);
    double rate = doc_real(doc_dotted(phalanx, "stepsPerSecond"), 0), all = 0;
    for (size_t i = 0; i < doc_len(owners); i++)
        all += doc_real(owners->object.members[i].value, 0);
    table_add(table, namespace_);
    table_add(table, name);
    table_add(table, doc_text(phalanx, "state"));
    table_add(table, arena_printf(&table->arena, "%lld", (long long)doc_number(phalanx, "attempt", 0)));
    table_add(table, arena_printf(&table->arena, "%lld", (long long)held_by(holders, namespace_, name)));
    if (step < 0)
        table_add(table, STR("-"));
    else if (total > 0)
        table_add(table, arena_printf(&table->arena, "%lld/%lld", (long long)step, (long long)total));
    else
        table_add(table, arena_printf(&table->arena, "%lld", (long long)step));
    bool finished = doc_text(jobset, "status.terminalState").len > 0;
    table_add(table, rate > 0 && !finished ? arena_printf(&table->arena, "%.2f", rate) : STR("-"));
    table_add(table,
              ettr_ppm >= 0 ? arena_printf(&table->arena, "%.2f%%", (double)ettr_ppm / 10000) : STR("-"));
    for (size_t i = 0; i < sizeof owners_shown / sizeof *owners_shown; i++)
        add_share(table, owners, owners_shown[i], all);
}

static void put_jobsets(struct buf *out, const struct doc *jobsets, const struct doc *pods)
{
    static const char *const names[] = {"NAMESPACE", "JOBSET",  "STATE",  "ATTEMPT", "CHIPS",
                                        "STEP",      "STEPS/S", "ETTR",   "KEPT",    "UNKEPT",
                                        "REDONE",    "RESTART", "STARTS", "QUEUED",  "STOPPING"};
    struct text_table table = {.columns = sizeof names / sizeof *names};
    struct holders holders = {0};
    count_holders(&holders, pods);
    for (size_t i = 0; i < table.columns; i++)
        table_add(&table, str_from(names[i]));
    for (size_t i = 0; i < doc_len(jobsets); i++)
        add_jobset(&table, doc_at(jobsets, i), &holders);
    table_print(&table, out, output_colors());
    table_done(&table);
    vec_done(&holders.list);
}

static void put_nodes(struct buf *out, const struct doc *nodes)
{
    static const char *const names[] = {"MACHINE", "STATE", "BLOCK", "CHIPS",
                                        "FREE",    "PODS",  "SPARE", "CORDONED"};
    struct text_table table = {.columns = 8};
    for (size_t i = 0; i < table.columns; i++)
        table_add(&table, str_from(names[i]));
    for (size_t i = 0; i < doc_len(nodes); i++) {
        const struct doc *node = doc_at(nodes, i);
        table_add(&table, doc_text(node, "metadata.name"));
        table_add(&table, is_ready(node) ? STR("Ready") : doc_text(node, "status.phalanx.state"));
        table_add(&table, doc_text(node, "status.phalanx.block"));
        table_add(&table,
                  arena_printf(&table.arena, "%lld", (long long)doc_number(node, "status.phalanx.chips", 0)));
        table_add(&table, arena_printf(&table.arena, "%lld",
                                       (long long)doc_number(node, "status.phalanx.freeChips", 0)));
        table_add(&table,
                  arena_printf(&table.arena, "%lld", (long long)doc_number(node, "status.phalanx.tasks", 0)));
        table_add(&table, doc_bool(doc_dotted(node, "status.phalanx.spare"), false) ? STR("yes") : STR("-"));
        table_add(&table, doc_bool(doc_dotted(node, "spec.unschedulable"), false) ? STR("yes") : STR("-"));
    }
    table_print(&table, out, output_colors());
    table_done(&table);
}

static int list(struct topping *topping, const char *kind, struct client_reply *ret_reply)
{
    struct buf path BUF_CLEANUP = {0};
    kind_path(&path, kind_find(str_from(kind)), topping->options.namespace_, (struct str){0});
    return client_get(&topping->client, buf_str(&path), ret_reply);
}

static int show(struct topping *topping, bool again)
{
    struct client_reply nodes = {0}, jobsets = {0}, pods = {0};
    struct buf out BUF_CLEANUP = {0};
    int rc = list(topping, "nodes", &nodes);
    if (rc == EXIT_OK)
        rc = list(topping, "jobsets", &jobsets);
    if (rc == EXIT_OK && !topping->nodes)
        rc = list(topping, "pods", &pods);
    if (rc == EXIT_OK) {
        if (again)
            buf_add_str(&out, STR("\033[H\033[2J"));
        put_cluster(&out, doc_get(nodes.doc, "items"), doc_get(jobsets.doc, "items"));
        if (topping->nodes)
            put_nodes(&out, doc_get(nodes.doc, "items"));
        else
            put_jobsets(&out, doc_get(jobsets.doc, "items"), doc_get(pods.doc, "items"));
        output_write(&out);
    }
    client_reply_done(&nodes);
    client_reply_done(&jobsets);
    client_reply_done(&pods);
    return rc;
}

int cmd_top(int argc, char **argv)
{
    static const struct option options[] = {{"once", no_argument, NULL, 'o'},
                                            {"interval", required_argument, NULL, 'i'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    static const char *const tables[] = {"jobs", "nodes"};
    struct topping topping = {.interval_ns = NS_PER_SECOND};
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS, options, NULL)) != -1) {
        if (letter == 'o')
            topping.once = true;
        else if (letter == 'i')
            usable = usage_value(duration_parse(str_from(optarg), &topping.interval_ns) &&
                                 topping.interval_ns > 0) &&
                     usable;
        else
            usable = client_option(&topping.options, letter, optarg) && usable;
    }
    if (topping.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (optind < argc && strncmp(argv[optind], "job", 3) != 0) {
        const struct kind *kind = kind_find(str_from(argv[optind]));
        topping.nodes = kind && strcmp(kind->plural, "nodes") == 0;
        if (usable && !topping.nodes)
            usage_unknown("table", str_from(argv[optind]), tables, 2);
        usable = usable && topping.nodes;
    }
    if (!usable || optind + 1 < argc) {
        return usable ? usage_wrong(usage, "unexpected argument \"%s\"", argv[optind + 1])
                      : usage_wrong(usage, NULL);
    }
    bool live = output_is_terminal() && !topping.once;
    client_open(&topping.client, &topping.options);
    int rc = show(&topping, live);
    while (live && rc == EXIT_OK) {
        struct timespec pause = {topping.interval_ns / NS_PER_SECOND, topping.interval_ns % NS_PER_SECOND};
        nanosleep(&pause, NULL);
        rc = show(&topping, true);
    }
    client_close(&topping.client);
    return rc;
}
