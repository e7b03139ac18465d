/* report_html.c - writes the report as one HTML page without scripts or other files; figures are SVG in the
 * page. */
#include "cmd/client.h"
#include "cmd/report_costs.h"
#include "doc/markup.h"

/* Returns the colour of an owner: productive time is green, lost time red, preparation yellow, free chips
 * grey or blue. */
static const char *owner_color(struct str owner)
{
    static const struct {
        const char *owner, *color;
    } colors[] = {
        {"productive-kept", "#1a7f37"},
        {"productive-unkept", "#4ac26b"},
        {"redone", "#cf222e"},
        {"failed-by-user", "#a40e26"},
        {"restarting", "#fa4549"},
        {"waiting-for-machine", "#ff8182"},
        {"degraded", "#ffaba8"},
        {"checkpoint-stall", "#bf8700"},
        {"starting", "#d4a72c"},
        {"placing", "#eac54f"},
        {"wiring", "#e3b341"},
        {"preflight", "#f2cc60"},
        {"draining", "#9a6700"},
        {"queued", "#fae17d"},
        {"spare", "#54aeff"},
        {"spare-machine", "#80ccff"},
        {"idle", "#d0d7de"},
        {"fragmented", "#afb8c1"},
        {"reserved", "#b6e3ff"},
        {"quarantined", "#8250df"},
        {"in-repair", "#a475f9"},
        {"cordoned", "#c297ff"},
        {"down", "#57606a"},
    };
    for (size_t i = 0; i < sizeof colors / sizeof *colors; i++)
        if (str_is(owner, colors[i].owner))
            return colors[i].color;
    return "#8c959f";
}

/* Appends a bar of all owners, `width` units long. */
static void put_bar(struct buf *out, const struct doc *owners, double width, double height)
{
    double all = report_sum(owners), at = 0;
    buf_printf(out, "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\">", width,
               height, width, height);
    for (size_t i = 0; all > 0 && i < doc_len(owners); i++) {
        struct str owner = owners->object.members[i].key;
        double share = doc_real(owners->object.members[i].value, 0) / all;
        buf_printf(out, "<rect x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"%.0f\" fill=\"%s\"><title>", at,
                   share * width, height, owner_color(owner));
        markup_add(out, owner);
        buf_printf(out, " %.2f%%</title></rect>", 100 * share);
        at += share * width;
    }
    buf_printf(out, "</svg>");
}

static void put_legend(struct buf *out, const struct doc *owners)
{
    double all = report_sum(owners);
    buf_printf(out, "<table><tr><th></th><th>owner</th><th>chip-hours</th><th>share</th></tr>\n");
    for (size_t i = 0; all > 0 && i < doc_len(owners); i++) {
        struct str owner = owners->object.members[i].key;
        double seconds = doc_real(owners->object.members[i].value, 0);
        buf_printf(out, "<tr><td><span style=\"background:%s\">&#8195;</span></td><td>", owner_color(owner));
        markup_add(out, owner);
        buf_printf(out, "</td><td>%.2f</td><td>%.2f%%</td></tr>\n", seconds / 3600, 100 * seconds / all);
    }
    buf_printf(out, "</table>\n");
}

enum { MTTF_ROW = 22, MTTF_LEFT = 110, MTTF_WIDE = 440, MTTF_TEXT = 12 };

/* Returns the place of a time on the logarithmic scale from an hour to a year. */
static double mttf_at(double seconds)
{
    double hours = seconds / 3600, length = 1;
    for (double most = 8760; hours > 1 && most > 1; hours = hours / 2, most = most / 2)
        length += MTTF_WIDE / 13.1; /* log2 of the hours of a year */
    return MTTF_LEFT + (length > MTTF_WIDE ? MTTF_WIDE : length);
}

/* Appends a bar for the mean time, and a line from the lower bound to the upper one; without a failure the
 * line has no end. */
static void put_mttf_row(struct buf *out, const struct doc *size, int y)
{
    double mttf_s = doc_real(doc_get(size, "mttfSeconds"), 0);
    double low_s = doc_real(doc_get(size, "mttfLowSeconds"), 0);
    double high_s = doc_real(doc_get(size, "mttfHighSeconds"), 0);
    buf_printf(out, "<text x=\"0\" y=\"%d\">&#8804; %lld chips</text>", y + 15,
               (long long)doc_number(size, "chips", 0));
    if (mttf_s > 0)
        buf_printf(out, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"14\" fill=\"#0969da\"/>", MTTF_LEFT,
                   y + 4, mttf_at(mttf_s) - MTTF_LEFT);
    if (low_s > 0)
        buf_printf(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#24292f\"/>",
                   mttf_at(low_s), high_s > 0 ? mttf_at(high_s) : MTTF_LEFT + MTTF_WIDE, y + 11, y + 11);
    buf_printf(out, "<text x=\"%d\" y=\"%d\">", MTTF_LEFT + MTTF_WIDE + MTTF_TEXT, y + 15);
    if (mttf_s > 0)
        buf_printf(out, "%.2f h, %lld ends", mttf_s / 3600,
                   (long long)doc_number(size, "ends.infrastructure", 0));
    else
        buf_printf(out, "no failure");
    if (low_s > 0) {
        buf_printf(out, " (");
        report_put_bounds(out, size);
        buf_printf(out, " h)");
    }
    buf_printf(out, "</text>\n");
}

static void put_mttf(struct buf *out, const struct doc *status)
{
    const struct doc *sizes = doc_get(status, "sizes");
    buf_printf(out,
               "<h2>Mean time to a failure, by size of job</h2>\n<p>Lines: %.0f%% bounds.</p>\n"
               "<svg viewBox=\"0 0 880 %d\" width=\"880\" role=\"img\" font-size=\"12\" "
               "font-family=\"sans-serif\">\n",
               (double)doc_number(status, "mttfConfidencePpm", 0) / 10000,
               MTTF_ROW * (int)doc_len(sizes) + 4);
    for (size_t i = 0; i < doc_len(sizes); i++)
        put_mttf_row(out, doc_at(sizes, i), MTTF_ROW * (int)i);
    buf_printf(out, "</svg>\n");
}

static void put_losses(struct buf *out, const struct doc *losses)
{
    buf_printf(
        out, "<h2>Lost work</h2>\n<p>At most half an hour of each attempt that ended (first order), or that "
             "was preempted for a job that looked for machines again (second order).</p>\n"
             "<table><tr><th>order</th><th>cause</th><th>count</th><th>chip-hours (assumed)</th></tr>\n");
    for (size_t i = 0; i < doc_len(losses); i++) {
        const struct doc *loss = doc_at(losses, i);
        buf_printf(out, "<tr><td>");
        markup_add(out, doc_text(loss, "order"));
        buf_printf(out, "</td><td>");
        markup_add(out, doc_text(loss, "cause"));
        buf_printf(out, "</td><td>%lld</td><td>%.2f</td></tr>\n", (long long)doc_number(loss, "count", 0),
                   doc_real(doc_get(loss, "assumedChipSeconds"), 0) / 3600);
    }
    buf_printf(out, "</table>\n");
}

static void put_accounts(struct buf *out, const char *title, const struct doc *items)
{
    if (doc_len(items) == 0)
        return;
    buf_printf(
        out,
        "<h2>%s</h2>\n<table><tr><th>namespace</th><th>name</th><th>restarts</th><th>ETTR</th><th>MFU</th>"
        "<th>chip-hours</th><th></th></tr>\n",
        title);
    for (size_t i = 0; i < doc_len(items); i++) {
        const struct doc *item = doc_at(items, i), *owners = doc_get(item, "chipSeconds");
        int64_t ppm = doc_number(item, "ettrPpm", -1);
        buf_printf(out, "<tr><td>");
        markup_add(out, doc_text(item, "namespace"));
        buf_printf(out, "</td><td>");
        markup_add(out, doc_text(item, "name"));
        buf_printf(out, "</td><td>%lld</td><td>", (long long)doc_number(item, "restarts", 0));
        if (ppm >= 0)
            buf_printf(out, "%.2f%%", (double)ppm / 10000);
        buf_printf(out, "</td><td>");
        int64_t mfu = doc_number(item, "mfuPpm", -1);
        if (mfu >= 0)
            buf_printf(out, "%.1f%%", (double)mfu / 10000);
        buf_printf(out, "</td><td>%.2f</td><td>", report_sum(owners) / 3600);
        put_bar(out, owners, 240, 12);
        buf_printf(out, "</td></tr>\n");
    }
    buf_printf(out, "</table>\n");
}

void report_put_html(const struct doc *report, struct buf *out)
{
    const struct doc *status = doc_get(report, "status"), *owners = doc_dotted(status, "cluster.chipSeconds");
    buf_printf(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Report of ");
    markup_add(out, doc_text(status, "cluster.name"));
    buf_printf(out,
               "</title><style>body{font-family:sans-serif;margin:2em;max-width:60em}"
               "table{border-collapse:collapse}td,th{padding:2px 10px;text-align:left}</style></head><body>\n"
               "<h1>Cluster ");
    markup_add(out, doc_text(status, "cluster.name"));
    buf_printf(out, "</h1>\n<p>%lld machines, %lld chips; ",
               (long long)doc_number(status, "cluster.machines", 0),
               (long long)doc_number(status, "cluster.chips", 0));
    markup_add(out, doc_text(status, "since"));
    buf_printf(out, " to ");
    markup_add(out, doc_text(status, "asOf"));
    buf_printf(out, "</p>\n<h2>Owners of all chip-seconds</h2>\n");
    put_bar(out, owners, 760, 34);
    put_legend(out, owners);
    put_losses(out, doc_get(status, "losses"));
    put_mttf(out, status);
    put_accounts(out, "Queues", doc_get(status, "queues"));
    put_accounts(out, "Jobs", doc_get(status, "jobs"));
    buf_printf(out, "</body></html>\n");
}
