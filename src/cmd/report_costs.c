#include "cmd/report_costs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/client.h"
#include "cmd/usage.h"
#include "doc/json.h"

static const char usage[] =
    "Usage: phalanx report [options]                        what chips did, and what failures cost\n"
    "\n"
    "Prints the owner of every chip-second since the cluster was loaded (docs/report.md), the ends of\n"
    "attempts by size and cause, the loss of first and second order, and the ETTR of queues and jobs.\n"
    "\n"
    "  -o, --output FORMAT    table (default), json, csv or html: one page with its figures\n" CLIENT_HELP
        CLIENT_EXIT_HELP;

bool report_asks_costs(int argc, char **argv)
{
    static const char *const of_faults[] = {"--place", "--severity", "--chip",  "--recover",
                                            "--once",  "--state",    "--socket"};
    if (argc < 1)
        return true;
    if (argv[0][0] != '-')
        return false;
    for (int i = 0; i < argc; i++)
        for (size_t o = 0; o < sizeof of_faults / sizeof *of_faults; o++)
            if (strncmp(argv[i], of_faults[o], strlen(of_faults[o])) == 0)
                return false;
    return true;
}

double report_sum(const struct doc *owners)
{
    double all = 0;
    for (size_t i = 0; i < doc_len(owners); i++)
        all += doc_real(owners->object.members[i].value, 0);
    return all;
}

/* --- table ------------------------------------------------------------------------------------ */

static struct str percent(struct text_table *table, double part, double all)
{
    return all > 0 ? arena_printf(&table->arena, "%.2f%%", 100 * part / all) : STR("-");
}

static struct str hours(struct text_table *table, double seconds)
{
    return arena_printf(&table->arena, "%.2f", seconds / 3600);
}

static void put_owners(struct buf *out, const struct doc *status)
{
    static const char *const names[] = {"OWNER", "CHIPS NOW", "CHIP-HOURS", "SHARE"};
    const struct doc *owners = doc_dotted(status, "cluster.chipSeconds"),
                     *now = doc_dotted(status, "cluster.chipsNow");
    struct text_table table = {.columns = sizeof names / sizeof *names};
    double all = report_sum(owners);
    table_heads(&table, names);
    for (size_t i = 0; i < doc_len(owners); i++) {
        struct str owner = owners->object.members[i].key;
        double seconds = doc_real(owners->object.members[i].value, 0);
        const struct doc *chips = doc_get_str(now, owner);
        table_add(&table, owner);
        table_add(&table, arena_printf(&table.arena, "%.0f", chips ? doc_real(chips, 0) : 0));
        table_add(&table, hours(&table, seconds));
        table_add(&table, percent(&table, seconds, all));
    }
    table_print(&table, out, output_colors());
    table_done(&table);
}

void report_put_bounds(struct buf *out, const struct doc *size)
{
    double low_s = doc_real(doc_get(size, "mttfLowSeconds"), 0);
    double high_s = doc_real(doc_get(size, "mttfHighSeconds"), 0);
    if (low_s > 0 && high_s > 0)
        buf_printf(out, "%.2f to %.2f", low_s / 3600, high_s / 3600);
    else if (low_s > 0)
        buf_printf(out, "over %.2f", low_s / 3600);
}

static void put_sizes(struct buf *out, const struct doc *status)
{
    static const char *const names[] = {"CHIPS UP TO", "CHIP-DAYS", "INFRASTRUCTURE", "PROGRAM",
                                        "ORDERED",     "MTTF (H)",  "BOUNDS (H)"};
    const struct doc *sizes = doc_get(status, "sizes");
    struct text_table table = {.columns = sizeof names / sizeof *names};
    if (doc_len(sizes) == 0)
        return;
    table_heads(&table, names);
    for (size_t i = 0; i < doc_len(sizes); i++) {
        const struct doc *size = doc_at(sizes, i);
        double mttf_s = doc_real(doc_get(size, "mttfSeconds"), 0);
        table_add(&table, arena_printf(&table.arena, "%lld", (long long)doc_number(size, "chips", 0)));
        table_add(&table, arena_printf(&table.arena, "%.3f",
                                       doc_real(doc_get(size, "exposureChipSeconds"), 0) / 86400));
        for (size_t c = 0; c < 3; c++) {
            static const char *const causes[] = {"ends.infrastructure", "ends.program", "ends.ordered"};
            table_add(&table, arena_printf(&table.arena, "%lld", (long long)doc_number(size, causes[c], 0)));
        }
        table_add(&table, mttf_s > 0 ? arena_printf(&table.arena, "%.2f", mttf_s / 3600) : STR("-"));
        struct buf bounds BUF_CLEANUP = {0};
        report_put_bounds(&bounds, size);
        table_add(&table, bounds.len ? arena_str(&table.arena, buf_str(&bounds)) : STR("-"));
    }
    buf_printf(out,
               "\nEnds of attempts by size of job and cause; MTTF: infrastructure only, with %.0f%% bounds\n",
               (double)doc_number(status, "mttfConfidencePpm", 0) / 10000);
    table_print(&table, out, output_colors());
    table_done(&table);
}

static void put_losses(struct buf *out, const struct doc *status)
{
    static const char *const names[] = {"LOSS", "CAUSE", "COUNT", "CHIP-HOURS (ASSUMED)"};
    const struct doc *losses = doc_get(status, "losses");
    struct text_table table = {.columns = sizeof names / sizeof *names};
    table_heads(&table, names);
    size_t shown = 0;
    for (size_t i = 0; i < doc_len(losses); i++) {
        const struct doc *loss = doc_at(losses, i);
        if (doc_number(loss, "count", 0) == 0)
            continue;
        shown++;
        table_add(&table, doc_text(loss, "order"));
        table_add(&table, doc_text(loss, "cause"));
        table_add(&table, arena_printf(&table.arena, "%lld", (long long)doc_number(loss, "count", 0)));
        table_add(&table, hours(&table, doc_real(doc_get(loss, "assumedChipSeconds"), 0)));
    }
    if (shown > 0) {
        buf_printf(out,
                   "\nLost work: at most half an hour of each attempt that ended (first order) or that was "
                   "preempted\nfor a job that looked for machines again (second order)\n");
        table_print(&table, out, output_colors());
    }
    table_done(&table);
}

static void add_ettr(struct text_table *table, const struct doc *item)
{
    int64_t ppm = doc_number(item, "ettrPpm", -1);
    const struct doc *owners = doc_get(item, "chipSeconds");
    double all = report_sum(owners);
    table_add(table, ppm >= 0 ? arena_printf(&table->arena, "%.2f%%", (double)ppm / 10000) : STR("-"));
    table_add(table, hours(table, all));
    static const char *const shown[] = {"redone", "failed-by-user", "restarting"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        table_add(table, percent(table, doc_real(doc_get(owners, shown[i]), 0), all));
}

static void put_accounts(struct buf *out, const struct doc *items, const char *what, bool queues)
{
    const char *const names[] = {
        "NAMESPACE",  what, queues ? "JOBS" : "CHIPS", "RESTARTS", "ETTR", "CHIP-HOURS", "REDONE", "FAILED",
        "RESTARTING", "MFU"};
    struct text_table table = {.columns = sizeof names / sizeof *names - queues}; /* a queue has no MFU */
    if (doc_len(items) == 0)
        return;
    table_heads(&table, names);
    for (size_t i = 0; i < doc_len(items); i++) {
        const struct doc *item = doc_at(items, i);
        struct str name = doc_text(item, "name");
        table_add(&table, doc_text(item, "namespace"));
        table_add(&table, name.len ? name : STR("-"));
        table_add(&table, arena_printf(&table.arena, "%lld",
                                       (long long)doc_number(item, queues ? "jobs" : "chips", 0)));
        table_add(&table, arena_printf(&table.arena, "%lld", (long long)doc_number(item, "restarts", 0)));
        add_ettr(&table, item);
        int64_t mfu = doc_number(item, "mfuPpm", -1);
        if (!queues)
            table_add(&table,
                      mfu >= 0 ? arena_printf(&table.arena, "%.1f%%", (double)mfu / 10000) : STR("-"));
    }
    buf_printf(out, "\n");
    table_print(&table, out, output_colors());
    table_done(&table);
}

static void put_table(struct buf *out, const struct doc *report)
{
    const struct doc *status = doc_get(report, "status");
    int64_t goodput = doc_number(status, "cluster.normalisedGoodputPpm", -1),
            ettr = doc_number(status, "all.ettrPpm", -1);
    buf_printf(out, "cluster " STR_FORMAT ": %lld machines, %lld chips, since " STR_FORMAT "\n",
               STR_ARG(doc_text(status, "cluster.name")),
               (long long)doc_number(status, "cluster.machines", 0),
               (long long)doc_number(status, "cluster.chips", 0), STR_ARG(doc_text(status, "since")));
    if (goodput >= 0)
        buf_printf(out, "goodput, of all chips: %.2f%%", (double)goodput / 10000);
    if (ettr >= 0)
        buf_printf(out, "   ETTR of all jobs: %.2f%%", (double)ettr / 10000);
    double rate = doc_real(doc_dotted(status, "failureRate.perThousandMachineDays"), -1);
    if (rate >= 0)
        buf_printf(out, "   failures in 1,000 machine days: %.2f", rate);
    buf_printf(out, "\n\n");
    put_owners(out, status);
    put_losses(out, status);
    put_sizes(out, status);
    put_accounts(out, doc_get(status, "queues"), "QUEUE", true);
    put_accounts(out, doc_get(status, "jobs"), "JOB", false);
}

/* --- CSV -------------------------------------------------------------------------------------- */

/* Appends rows of owners. Names of objects and queues are DNS labels, so they need no quotes. Rows of owners
 * leave the columns of losses and sizes empty, and vice versa. */
static void put_rows(struct buf *out, const char *scope, const struct doc *item, const struct doc *owners)
{
    struct str namespace_ = doc_text(item, "namespace"), name = doc_text(item, "name");
    for (size_t i = 0; i < doc_len(owners); i++)
        buf_printf(out, "%s," STR_FORMAT "," STR_FORMAT "," STR_FORMAT ",%.6f,,,,,,\n", scope,
                   STR_ARG(namespace_), STR_ARG(name), STR_ARG(owners->object.members[i].key),
                   doc_real(owners->object.members[i].value, 0));
}

/* Appends a row for each loss: its order as the name, the cause, the count, and the chip-seconds assumed to
 * be lost. */
static void put_loss_rows(struct buf *out, const struct doc *losses)
{
    for (size_t i = 0; i < doc_len(losses); i++) {
        const struct doc *loss = doc_at(losses, i);
        buf_printf(out, "loss,," STR_FORMAT ",,%.6f," STR_FORMAT ",%lld,,,,\n",
                   STR_ARG(doc_text(loss, "order")), doc_real(doc_get(loss, "assumedChipSeconds"), 0),
                   STR_ARG(doc_text(loss, "cause")), (long long)doc_number(loss, "count", 0));
    }
}

static void put_cell(struct buf *out, const struct doc *number)
{
    buf_add_char(out, ',');
    if (number)
        buf_printf(out, "%.6f", doc_real(number, 0));
}

/* Appends for each size a row with its exposure and MTTF, and a row for the ends of each cause. */
static void put_size_rows(struct buf *out, const struct doc *sizes)
{
    for (size_t i = 0; i < doc_len(sizes); i++) {
        const struct doc *size = doc_at(sizes, i), *ends = doc_get(size, "ends");
        long long chips = (long long)doc_number(size, "chips", 0);
        buf_printf(out, "size,,,,%.6f,,,%lld", doc_real(doc_get(size, "exposureChipSeconds"), 0), chips);
        put_cell(out, doc_get(size, "mttfSeconds"));
        put_cell(out, doc_get(size, "mttfLowSeconds"));
        put_cell(out, doc_get(size, "mttfHighSeconds"));
        buf_add_char(out, '\n');
        for (size_t c = 0; c < doc_len(ends); c++)
            buf_printf(out, "ends,,,,," STR_FORMAT ",%.0f,%lld,,,\n", STR_ARG(ends->object.members[c].key),
                       doc_real(ends->object.members[c].value, 0), chips);
    }
}

static void put_csv(struct buf *out, const struct doc *report)
{
    const struct doc *status = doc_get(report, "status"), *queues = doc_get(status, "queues"),
                     *jobs = doc_get(status, "jobs");
    buf_printf(out, "scope,namespace,name,owner,chip_seconds,cause,count,chips,mttf_seconds,mttf_low_seconds,"
                    "mttf_high_seconds\n");
    put_rows(out, "cluster", NULL, doc_dotted(status, "cluster.chipSeconds"));
    put_rows(out, "gone", NULL, doc_dotted(status, "gone.chipSeconds"));
    for (size_t i = 0; i < doc_len(queues); i++)
        put_rows(out, "queue", doc_at(queues, i), doc_get(doc_at(queues, i), "chipSeconds"));
    for (size_t i = 0; i < doc_len(jobs); i++)
        put_rows(out, "job", doc_at(jobs, i), doc_get(doc_at(jobs, i), "chipSeconds"));
    put_loss_rows(out, doc_get(status, "losses"));
    put_size_rows(out, doc_get(status, "sizes"));
}

/* --- the command ------------------------------------------------------------------------------ */

static int fetch_and_put(const struct client_options *options, struct str format)
{
    struct client client;
    struct client_reply reply = {0};
    struct buf out BUF_CLEANUP = {0};
    int rc = client_open(&client, options);
    if (rc != EXIT_OK)
        return rc;
    rc = client_get(&client, STR("/report"), &reply);
    if (rc == EXIT_OK) {
        if (str_is(format, "json"))
            json_write_pretty(&out, reply.doc);
        else if (str_is(format, "csv"))
            put_csv(&out, reply.doc);
        else if (str_is(format, "html"))
            report_put_html(reply.doc, &out);
        else
            put_table(&out, reply.doc);
        output_write(&out);
    }
    client_reply_done(&reply);
    client_close(&client);
    return rc;
}

int report_costs(int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, CLIENT_LONG_OPTIONS, {0}};
    static const char *const formats[] = {"table", "json", "csv", "html"};
    struct client_options client = {0};
    struct str format = STR("table");
    bool usable = true, known = false;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "o:", options, NULL)) != -1) {
        if (letter == 'o')
            format = str_from(optarg);
        else
            usable = client_option(&client, letter, optarg) && usable;
    }
    if (client.help) {
        printf("%s\n%s", usage, report_fault_usage);
        return EXIT_OK;
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        known |= str_is(format, formats[i]);
    if (!known) {
        usage_unknown("output format", format, formats, sizeof formats / sizeof *formats);
        return usage_wrong(usage, NULL);
    }
    if (!usable || optind < argc)
        return usable ? usage_wrong(usage, "unexpected argument \"%s\"", argv[optind])
                      : usage_wrong(usage, NULL);
    return fetch_and_put(&client, format);
}
