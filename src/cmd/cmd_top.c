/* phalanx top: shows jobsets and machines with their chips, steps and shares of chip-seconds. */
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include "cmd/usage.h"
#include "cmd/client.h"

static const char usage[] =
    "Usage: phalanx top [jobs|nodes] [options]\n"
    "\n"
    "Shows, for the cluster and each jobset: chips, step, steps per second, ETTR and the shares of its\n"
    "chip-seconds (kept, not yet kept, redone, restarting, starting, queued, draining); with nodes, the\n"
    "machines. Running jobsets come first, the largest on top; of machines, those out of service.\n"
    "\n"
    "On a terminal the table is drawn again every second and cut to the screen; q ends it, n shows the\n"
    "machines, j the jobsets. Otherwise everything is printed once.\n"
    "\n"
    "      --once             show it once\n"
    "      --interval TIME    time between two updates (default: 1s)\n"
    "  -o, --output json      print it once, as one JSON object\n"
    "  -A is the default; -n NAME shows the jobsets of one namespace\n" CLIENT_HELP CLIENT_EXIT_HELP;

struct topping {
    struct client client;
    struct client_options options;
    bool nodes, once, json;
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

/* --- the cluster ------------------------------------------------------------------------------- */

struct sums {
    int64_t machines, ready, cordoned;
    int64_t chips, free_chips, reserved, down; /* reserved: among the free ones */
    int64_t jobsets, running, waiting;
};

static void sum_up(struct sums *sums, const struct doc *nodes, const struct doc *jobsets,
                   const struct doc *report)
{
    *sums = (struct sums){.machines = (int64_t)doc_len(nodes),
                          .jobsets = (int64_t)doc_len(jobsets),
                          .reserved = doc_number(report, "cluster.chipsNow.reserved", 0)};
    for (size_t i = 0; i < doc_len(nodes); i++) {
        const struct doc *node = doc_at(nodes, i);
        bool off = doc_bool(doc_dotted(node, "spec.unschedulable"), false), up = is_ready(node);
        sums->chips += doc_number(node, "status.phalanx.chips", 0);
        *(up && !off ? &sums->free_chips : &sums->down) += doc_number(node, "status.phalanx.freeChips", 0);
        sums->ready += up;
        sums->cordoned += off;
    }
    for (size_t i = 0; i < doc_len(jobsets); i++) {
        struct str state = doc_text(doc_at(jobsets, i), "status.phalanx.state");
        sums->running += str_is(state, "Running");
        sums->waiting += str_is(state, "Queued") || str_is(state, "Restarting") || str_is(state, "Starting");
    }
}

static int64_t held_of(const struct sums *sums)
{
    return sums->chips - sums->free_chips - sums->down;
}

static void put_cluster(struct buf *out, const struct sums *sums)
{
    buf_printf(out, "machines  %lld, %lld ready, %lld cordoned\n", (long long)sums->machines,
               (long long)sums->ready, (long long)sums->cordoned);
    buf_printf(out, "chips     %lld, %lld held, %lld free", (long long)sums->chips, (long long)held_of(sums),
               (long long)sums->free_chips);
    if (sums->reserved)
        buf_printf(out, " (%lld reserved)", (long long)sums->reserved);
    buf_printf(out, ", %lld down\n", (long long)sums->down);
    buf_printf(out, "jobsets   %lld, %lld running, %lld waiting or starting\n\n", (long long)sums->jobsets,
               (long long)sums->running, (long long)sums->waiting);
}

/* --- rows -------------------------------------------------------------------------------------- */

struct row {
    const struct doc *object;
    struct str name, state;
    int64_t chips;
    int64_t rank, order; /* sorted by rank, then by order */
};
struct row_list {
    VEC(struct row) rows;
};

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return str_compare(a->name, b->name);
}

static void sort_rows(struct row_list *list)
{
    if (list->rows.len)
        qsort(list->rows.items, list->rows.len, sizeof *list->rows.items, compare_rows);
}

static int64_t rank_of_state(struct str state)
{
    static const char *const order[] = {"Running", "Restarting", "Starting", "Queued", "Suspended"};
    int64_t count = sizeof order / sizeof *order;
    for (int64_t i = 0; i < count; i++)
        if (str_is(state, order[i]))
            return i;
    return count;
}

static void list_jobsets(struct row_list *list, const struct doc *jobsets, const struct holders *holders)
{
    for (size_t i = 0; i < doc_len(jobsets); i++) {
        const struct doc *jobset = doc_at(jobsets, i);
        struct row row = {.object = jobset,
                          .name = doc_text(jobset, "metadata.name"),
                          .state = doc_text(jobset, "status.phalanx.state")};
        row.rank = rank_of_state(row.state);
        row.chips = held_by(holders, doc_text(jobset, "metadata.namespace"), row.name);
        row.order = -row.chips;
        vec_push(&list->rows, row);
    }
    sort_rows(list);
}

static void list_nodes(struct row_list *list, const struct doc *nodes)
{
    for (size_t i = 0; i < doc_len(nodes); i++) {
        const struct doc *node = doc_at(nodes, i);
        bool ready = is_ready(node), off = doc_bool(doc_dotted(node, "spec.unschedulable"), false);
        struct row row = {.object = node,
                          .name = doc_text(node, "metadata.name"),
                          .state = ready ? STR("Ready") : doc_text(node, "status.phalanx.state"),
                          .rank = !ready ? 0
                                  : off  ? 1
                                         : 2};
        row.chips =
            doc_number(node, "status.phalanx.chips", 0) - doc_number(node, "status.phalanx.freeChips", 0);
        vec_push(&list->rows, row);
    }
    sort_rows(list);
}

enum { STATES_MAX = 16 };

/* Appends a line about the rows from `first` on, such as "not shown: 20 jobsets (18 Queued, 2 Completed)". */
static void put_rest(struct buf *out, const struct row_list *list, size_t first, const char *noun)
{
    if (first >= list->rows.len)
        return;
    buf_add_str(out, STR("not shown: "));
    put_count(out, (int64_t)(list->rows.len - first), noun);
    struct {
        struct str state;
        int64_t count;
    } states[STATES_MAX] = {0};
    size_t known = 0;
    for (size_t i = first; i < list->rows.len; i++) {
        size_t k = 0;
        while (k < known && !str_equal(states[k].state, list->rows.items[i].state))
            k++;
        if (k == STATES_MAX)
            continue;
        known += k == known;
        states[k].state = list->rows.items[i].state;
        states[k].count++;
    }
    for (size_t k = 0; k < known; k++)
        buf_printf(out, "%s%lld " STR_FORMAT, k ? ", " : " (", (long long)states[k].count,
                   STR_ARG(states[k].state));
    buf_add_str(out, STR(")\n"));
}

/* --- jobsets ----------------------------------------------------------------------------------- */

static void add_share(struct text_table *table, const struct doc *owners, const char *owner, double all)
{
    double value = doc_real(doc_get(owners, owner), 0);
    table_add(table,
              all > 0 && value > 0 ? arena_printf(&table->arena, "%.1f%%", 100 * value / all) : STR("-"));
}

static const char *const owners_shown[] = {
    "productive-kept", "productive-unkept", "redone", "restarting", "starting", "queued", "draining"};
enum { OWNERS_SHOWN = sizeof owners_shown / sizeof *owners_shown };

static double owners_sum(const struct doc *owners)
{
    double all = 0;
    for (size_t i = 0; i < doc_len(owners); i++)
        all += doc_real(owners->object.members[i].value, 0);
    return all;
}

static void add_jobset(struct text_table *table, const struct row *row)
{
    const struct doc *phalanx = doc_dotted(row->object, "status.phalanx"),
                     *owners = doc_dotted(phalanx, "ledger.chipSeconds");
    int64_t step = doc_number(phalanx, "step", -1), total = doc_number(phalanx, "totalSteps", 0);
    int64_t ettr_ppm = doc_number(phalanx, "ledger.ettrPpm", -1);
    double rate = doc_real(doc_dotted(phalanx, "stepsPerSecond"), 0), all = owners_sum(owners);
    table_add(table, doc_text(row->object, "metadata.namespace"));
    table_add(table, row->name);
    table_add(table, row->state);
    table_add(table, arena_printf(&table->arena, "%lld", (long long)doc_number(phalanx, "restartCount", 0)));
    table_add(table, arena_printf(&table->arena, "%lld", (long long)row->chips));
    if (step < 0)
        table_add(table, STR("-"));
    else if (total > 0)
        table_add(table, arena_printf(&table->arena, "%lld/%lld", (long long)step, (long long)total));
    else
        table_add(table, arena_printf(&table->arena, "%lld", (long long)step));
    bool finished = doc_text(row->object, "status.terminalState").len > 0;
    table_add(table, rate > 0 && !finished ? arena_printf(&table->arena, "%.2f", rate) : STR("-"));
    table_add(table,
              ettr_ppm >= 0 ? arena_printf(&table->arena, "%.2f%%", (double)ettr_ppm / 10000) : STR("-"));
    for (int i = 0; i < OWNERS_SHOWN; i++)
        add_share(table, owners, owners_shown[i], all);
}

/* Prints the jobsets, cut to `columns` and `lines`, and a line about those left out. */
static void put_jobsets(struct buf *out, const struct row_list *list, int columns, int lines)
{
    static const char *const names[] = {"NAMESPACE", "JOBSET",  "STATE",  "RESTARTS", "CHIPS",
                                        "STEP",      "STEPS/S", "ETTR",   "KEPT",     "UNKEPT",
                                        "REDONE",    "RESTART", "STARTS", "QUEUED",   "DRAINING"};
    /* Columns with higher values are left out first. */
    static const uint8_t worth[] = {9, 0, 0, 3, 0, 0, 1, 0, 2, 7, 4, 5, 8, 6, 10};
    struct text_table table = {.columns = sizeof names / sizeof *names};
    struct buf hidden BUF_CLEANUP = {0};
    size_t room = lines > 3 ? (size_t)lines - 3 : 0, count = list->rows.len;
    bool many = false;
    memcpy(table.worth, worth, sizeof worth);
    table_heads(&table, names);
    for (size_t i = 0; i < count; i++)
        many |= !str_equal(doc_text(list->rows.items[i].object, "metadata.namespace"),
                           doc_text(list->rows.items[0].object, "metadata.namespace"));
    if (!many && columns < INT_MAX)
        table.hidden[0] = true, table.worth[0] = 0;
    count = count > room ? room : count;
    for (size_t i = 0; i < count; i++)
        add_jobset(&table, &list->rows.items[i]);
    table_fit(&table, (size_t)columns, &hidden);
    table_print(&table, out, output_colors());
    put_rest(out, list, count, "jobset");
    if (hidden.len)
        buf_printf(out, "columns left out: " STR_FORMAT "\n", STR_ARG(buf_str(&hidden)));
    table_done(&table);
}

/* --- machines ---------------------------------------------------------------------------------- */

static void put_nodes(struct buf *out, const struct row_list *list, int columns, int lines)
{
    static const char *const names[] = {"MACHINE", "STATE", "CHIPS", "PODS", "SPARE", "CORDONED", "BLOCK"};
    static const uint8_t worth[] = {0, 0, 0, 1, 2, 3, 4};
    struct text_table table = {.columns = sizeof names / sizeof *names};
    struct buf hidden BUF_CLEANUP = {0};
    size_t room = lines > 3 ? (size_t)lines - 3 : 0;
    size_t count = list->rows.len > room ? room : list->rows.len;
    memcpy(table.worth, worth, sizeof worth);
    table_heads(&table, names);
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &list->rows.items[i];
        table_add(&table, row->name);
        table_add(&table, row->state);
        table_add(&table, arena_printf(&table.arena, "%lld/%lld", (long long)row->chips,
                                       (long long)doc_number(row->object, "status.phalanx.chips", 0)));
        table_add(&table, arena_printf(&table.arena, "%lld",
                                       (long long)doc_number(row->object, "status.phalanx.tasks", 0)));
        table_add(&table,
                  doc_bool(doc_dotted(row->object, "status.phalanx.spare"), false) ? STR("yes") : STR("-"));
        table_add(&table,
                  doc_bool(doc_dotted(row->object, "spec.unschedulable"), false) ? STR("yes") : STR("-"));
        table_add(&table, doc_text(row->object, "status.phalanx.block"));
    }
    table_fit(&table, (size_t)columns, &hidden);
    table_print(&table, out, output_colors());
    put_rest(out, list, count, "machine");
    table_done(&table);
}

/* --- JSON -------------------------------------------------------------------------------------- */

static void put_json_jobset(struct json_writer *writer, const struct row *row)
{
    const struct doc *phalanx = doc_dotted(row->object, "status.phalanx"),
                     *owners = doc_dotted(phalanx, "ledger.chipSeconds");
    static const char *const copied[] = {"attempt", "restartCount", "step", "totalSteps", "stepsPerSecond"};
    json_begin_object(writer);
    json_pair_str(writer, "namespace", doc_text(row->object, "metadata.namespace"));
    json_pair_str(writer, "name", row->name);
    json_pair_str(writer, "state", row->state);
    json_pair_int(writer, "chips", row->chips);
    for (size_t i = 0; i < sizeof copied / sizeof *copied; i++) {
        if (!doc_get(phalanx, copied[i]))
            continue;
        json_key(writer, copied[i]);
        json_put_doc(writer, doc_get(phalanx, copied[i]));
    }
    if (doc_number(phalanx, "ledger.ettrPpm", -1) >= 0) {
        json_key(writer, "ettr");
        json_put_fixed(writer, doc_number(phalanx, "ledger.ettrPpm", 0), 6);
    }
    if (owners) {
        json_key(writer, "chipSeconds");
        json_put_doc(writer, owners);
    }
    json_end_object(writer);
}

static void put_json_node(struct json_writer *writer, const struct row *row)
{
    const struct doc *node = row->object;
    json_begin_object(writer);
    json_pair_str(writer, "name", row->name);
    json_pair_str(writer, "state", row->state);
    json_pair_int(writer, "chips", doc_number(node, "status.phalanx.chips", 0));
    json_pair_int(writer, "heldChips", row->chips);
    json_pair_int(writer, "pods", doc_number(node, "status.phalanx.tasks", 0));
    json_pair_bool(writer, "spare", doc_bool(doc_dotted(node, "status.phalanx.spare"), false));
    json_pair_bool(writer, "cordoned", doc_bool(doc_dotted(node, "spec.unschedulable"), false));
    json_pair_str(writer, "block", doc_text(node, "status.phalanx.block"));
    json_end_object(writer);
}

static void put_numbers(struct json_writer *writer, const char *key, const char *const names[],
                        const int64_t *values, size_t count)
{
    json_key(writer, key);
    json_begin_object(writer);
    for (size_t i = 0; i < count; i++)
        json_pair_int(writer, names[i], values[i]);
    json_end_object(writer);
}

static void put_json(struct buf *out, const struct sums *sums, const struct row_list *list, bool nodes)
{
    static const char *const machine_names[] = {"all", "ready", "cordoned"};
    static const char *const chip_names[] = {"all", "held", "free", "reserved", "down"};
    const int64_t machines[] = {sums->machines, sums->ready, sums->cordoned};
    const int64_t chips[] = {sums->chips, held_of(sums), sums->free_chips, sums->reserved, sums->down};
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    put_numbers(&writer, "machines", machine_names, machines, 3);
    put_numbers(&writer, "chips", chip_names, chips, 5);
    json_key(&writer, nodes ? "nodes" : "jobsets");
    json_begin_array(&writer);
    for (size_t i = 0; i < list->rows.len; i++) {
        if (nodes)
            put_json_node(&writer, &list->rows.items[i]);
        else
            put_json_jobset(&writer, &list->rows.items[i]);
    }
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(out, '\n');
}

/* --- showing ----------------------------------------------------------------------------------- */

static int list(struct topping *topping, const char *kind, struct client_reply *ret_reply)
{
    struct buf path BUF_CLEANUP = {0};
    kind_path(&path, kind_find(str_from(kind)), topping->options.namespace_, (struct str){0});
    return client_get(&topping->client, buf_str(&path), ret_reply);
}

enum { HEAD_LINES = 4 };

static void put_all(struct topping *topping, struct buf *out, bool live, const struct doc *nodes,
                    const struct doc *jobsets, const struct doc *pods, const struct doc *report)
{
    struct sums sums;
    struct holders holders = {0};
    struct row_list rows = {0};
    int columns, lines;
    output_size(&columns, &lines);
    sum_up(&sums, nodes, jobsets, report);
    count_holders(&holders, pods);
    if (topping->nodes)
        list_nodes(&rows, nodes);
    else
        list_jobsets(&rows, jobsets, &holders);
    lines = lines == INT_MAX ? INT_MAX : lines - HEAD_LINES - 1;
    if (topping->json) {
        put_json(out, &sums, &rows, topping->nodes);
    } else {
        put_cluster(out, &sums);
        (topping->nodes ? put_nodes : put_jobsets)(out, &rows, columns, lines - live);
        if (live)
            buf_add_str(out, STR("keys: q ends, j jobsets, n machines"));
    }
    vec_done(&rows.rows);
    vec_done(&holders.list);
}

static int show(struct topping *topping, bool live)
{
    struct client_reply nodes = {0}, jobsets = {0}, pods = {0}, report = {0};
    struct buf out BUF_CLEANUP = {0};
    int rc = list(topping, "nodes", &nodes);
    if (rc == EXIT_OK)
        rc = list(topping, "jobsets", &jobsets);
    if (rc == EXIT_OK && !topping->nodes)
        rc = list(topping, "pods", &pods);
    if (rc == EXIT_OK)
        rc = client_get(&topping->client, STR("/report"), &report);
    if (rc == EXIT_OK) {
        if (live)
            fputs("\033[H\033[J", stdout);
        put_all(topping, &out, live, doc_get(nodes.doc, "items"), doc_get(jobsets.doc, "items"),
                doc_get(pods.doc, "items"), doc_get(report.doc, "status"));
        output_write(&out);
    }
    client_reply_done(&nodes);
    client_reply_done(&jobsets);
    client_reply_done(&pods);
    client_reply_done(&report);
    return rc;
}

/* --- keys -------------------------------------------------------------------------------------- */

static struct termios terminal_before;
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* Sets the terminal to deliver keys at once and without echo. Signals end the loop, which restores the
 * terminal. */
static bool keys_begin(void)
{
    if (tcgetattr(STDIN_FILENO, &terminal_before) < 0)
        return false;
    struct termios keys = terminal_before;
    struct sigaction action = {.sa_handler = on_signal};
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return tcsetattr(STDIN_FILENO, TCSANOW, &keys) == 0;
}

/* Waits for a key or the next update. Returns false if the user wants to end. */
static bool await_key(struct topping *topping, bool keys)
{
    struct pollfd input = {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
    char key = 0;
    if (poll(&input, 1, (int)(topping->interval_ns / NS_PER_MS)) > 0 && read(STDIN_FILENO, &key, 1) <= 0)
        return false;
    if (key == 'n' || key == 'j')
        topping->nodes = key == 'n';
    return !interrupted && key != 'q' && key != 'Q';
}

static int show_live(struct topping *topping)
{
    bool keys = isatty(STDIN_FILENO) && keys_begin();
    int rc = show(topping, true);
    while (rc == EXIT_OK && await_key(topping, keys))
        rc = show(topping, true);
    if (keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
    putchar('\n');
    return rc;
}

int cmd_top(int argc, char **argv)
{
    static const struct option options[] = {{"once", no_argument, NULL, '1'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"interval", required_argument, NULL, 'i'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    static const char *const tables[] = {"jobs", "nodes"};
    struct topping topping = {.interval_ns = NS_PER_SECOND};
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "o:", options, NULL)) != -1) {
        if (letter == '1')
            topping.once = true;
        else if (letter == 'o')
            usable = usage_json(optarg, &topping.json) && usable;
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
        const struct resource *kind = kind_find(str_from(argv[optind]));
        topping.nodes = kind && strcmp(kind->plural, "nodes") == 0;
        if (usable && !topping.nodes)
            usage_unknown("table", str_from(argv[optind]), tables, 2);
        usable = usable && topping.nodes;
    }
    if (!usable || optind + 1 < argc) {
        return usable ? usage_wrong(usage, "unexpected argument \"%s\"", argv[optind + 1])
                      : usage_wrong(usage, NULL);
    }
    bool live = output_is_terminal() && !topping.once && !topping.json;
    client_open(&topping.client, &topping.options);
    int rc = live ? show_live(&topping) : show(&topping, false);
    client_close(&topping.client);
    return rc;
}
