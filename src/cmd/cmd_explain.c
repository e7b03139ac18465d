/* phalanx explain: prints why a JobSet waits, has restarted or ended, and the cost, from the JobSet's
 * status. */
#include <stdio.h>

#include "cmd/usage.h"
#include "cmd/cause.h"

static const char usage[] =
    "Usage: phalanx explain jobset/NAME... [options]\n"
    "\n"
    "Explains why a jobset waits, restarted or failed. For each restart, and for a failure, it names\n"
    "the cause (a fault of a machine, or what a rank's log and exit status say), the domain (user,\n"
    "software, network or hardware), what else was seen, and the cost: the time until all ranks made\n"
    "steps again, and the steps that had to be repeated.\n"
    "\n"
    "  -o, --output json      one JSON object for each jobset\n" CLIENT_HELP CLIENT_EXIT_HELP;

struct explaining {
    struct client client;
    struct client_options options;
    bool json;
    struct buf out;
};

/* --- cost ---------------------------------------------------------------------------------------------- */

struct cost {
    int64_t restarts, down_ns; /* down time that has ended */
    int64_t steps;             /* -1: not known of any restart */
};

/* Returns when a restart without a step ended: the next restart began, or the jobset ended. */
static struct str over_at(const struct doc *phalanx, size_t index)
{
    const struct doc *next = doc_at(doc_get(phalanx, "restarts"), index + 1);
    return next ? doc_text(next, "faultTime") : doc_text(phalanx, "finishedTime");
}

/* Returns the down time of a restart; -1 if it has not ended. */
static int64_t down_ns(const struct doc *phalanx, size_t index)
{
    int64_t from_ns, to_ns;
    const struct doc *record = doc_at(doc_get(phalanx, "restarts"), index);
    struct str end = doc_text(record, "steppedTime");
    end = end.len ? end : doc_text(record, "startedTime");
    end = end.len ? end : over_at(phalanx, index);
    if (!time_parse(doc_text(record, "faultTime"), &from_ns) || !time_parse(end, &to_ns))
        return -1;
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

/* Returns the number of steps that were made and lost; -1 if it is not known, or not yet. */
static int64_t steps_lost(const struct doc *record)
{
    int64_t at = doc_number(record, "stepAtFault", -1), from = doc_number(record, "resumedFrom", 0);
    return at < 0 || !doc_get(record, "steppedTime") ? -1 : at > from ? at - from : 0;
}

static struct cost cost_of(const struct doc *phalanx)
{
    const struct doc *restarts = doc_get(phalanx, "restarts");
    struct cost cost = {.restarts = doc_number(phalanx, "restartCount", 0),
                        .steps = doc_len(restarts) ? -1 : 0};
    for (size_t i = 0; i < doc_len(restarts); i++) {
        int64_t down = down_ns(phalanx, i), steps = steps_lost(doc_at(restarts, i));
        cost.down_ns += down > 0 ? down : 0;
        if (steps >= 0)
            cost.steps = (cost.steps > 0 ? cost.steps : 0) + steps;
    }
    return cost;
}

/* --- text ---------------------------------------------------------------------------------------------- */

enum { HEADING_COLUMNS = 13 };

/* Appends a line such as "  evidence   text", broken to the width of the screen. */
static void put_line(struct buf *out, const char *heading, struct str text)
{
    int columns, lines;
    if (!text.len)
        return;
    output_size(&columns, &lines);
    buf_printf(out, "  %-10s ", heading);
    put_wrapped(out, text, (size_t)columns, HEADING_COLUMNS, HEADING_COLUMNS);
    buf_add_char(out, '\n');
}

/* Prints another observation: a fault, or a line of a rank. */
static void put_other(struct buf *out, const char *heading, const char *what, const struct doc *found,
                      const char *key)
{
    struct buf line BUF_CLEANUP = {0};
    struct str evidence = doc_text(found, "evidence");
    buf_printf(&line, "%s" STR_FORMAT, what, STR_ARG(doc_text(found, key)));
    put_place(&line, found);
    if (evidence.len)
        buf_printf(&line, ": " STR_FORMAT, STR_ARG(evidence));
    put_line(out, heading, buf_str(&line));
}

static void put_cause(struct buf *out, const struct doc *found)
{
    struct buf line BUF_CLEANUP = {0};
    struct str cause = doc_text(found, "cause");
    const struct doc *supporting = doc_get(found, "supporting"), *signatures = doc_get(found, "signatures"),
                     *later = doc_get(found, "later");
    buf_add_str(&line, cause);
    put_place(&line, found);
    if (!str_is(cause, "unattributed"))
        buf_printf(&line, " (" STR_FORMAT ")", STR_ARG(doc_text(found, "domain")));
    put_line(out, "cause", buf_str(&line));
    put_line(out, "evidence", doc_text(found, "evidence"));
    put_line(out, "fault", doc_text(found, "fault"));
    for (size_t i = 0; i < doc_len(supporting); i++)
        put_other(out, "also", "fault ", doc_at(supporting, i), "cause");
    for (size_t i = 0; i < doc_len(signatures); i++)
        put_other(out, "also", "", doc_at(signatures, i), "kind");
    for (size_t i = 0; i < doc_len(later); i++)
        put_other(out, "later", "fault ", doc_at(later, i), "cause");
}

static void put_duration(struct buf *out, int64_t ns)
{
    char text[24];
    duration_format(ns, text);
    buf_printf(out, "%s", text);
}

static void put_restart(struct buf *out, const struct doc *phalanx, size_t index)
{
    const struct doc *record = doc_at(doc_get(phalanx, "restarts"), index);
    int64_t down = down_ns(phalanx, index), steps = steps_lost(record);
    int64_t number = doc_number(record, "number", 0), attempt = doc_number(record, "attempt", 0);
    buf_printf(out, "restart %lld", (long long)number);
    if (attempt != number)
        buf_printf(out, " (attempt %lld)", (long long)attempt);
    buf_printf(out, ", " STR_FORMAT ": " STR_FORMAT "\n", STR_ARG(doc_text(record, "faultTime")),
               STR_ARG(doc_text(record, "cause")));
    put_cause(out, doc_get(record, "attribution"));
    put_line(out, "first sign", doc_text(record, "detail"));
    struct str rung = doc_text(record, "rung"), passed = doc_text(record, "passedOver");
    struct buf answer BUF_CLEANUP = {0};
    buf_add_str(&answer, rung);
    if (rung.len && passed.len)
        buf_printf(&answer, " (" STR_FORMAT ")", STR_ARG(passed));
    put_line(out, "answer", buf_str(&answer));
    buf_printf(out, "  cost       ");
    if (down >= 0)
        put_duration(out, down);
    else
        buf_printf(out, "not over yet");
    if (down >= 0 && !doc_get(record, "steppedTime") && !doc_get(record, "startedTime"))
        buf_printf(out, ", until the next restart or the end: no step was made");
    if (steps >= 0) {
        buf_add_str(out, STR(", "));
        put_count(out, steps, "step");
        buf_printf(out, " repeated (from %lld back to %lld)", (long long)doc_number(record, "stepAtFault", 0),
                   (long long)doc_number(record, "resumedFrom", 0));
    }
    buf_add_char(out, '\n');
}

/* Appends the shares, with numbers aligned to the right. */
static void put_shares(struct buf *out, const struct doc *shares)
{
    size_t widest = 0;
    double all = 0;
    if (!shares || shares->kind != DOC_OBJECT)
        return;
    for (size_t i = 0; i < shares->object.len; i++) {
        const struct doc_member *share = &shares->object.members[i];
        widest = share->key.len > widest ? share->key.len : widest;
        all += doc_real(share->value, 0);
    }
    for (size_t i = 0; i < shares->object.len; i++) {
        const struct doc_member *share = &shares->object.members[i];
        double value = doc_real(share->value, 0);
        buf_printf(out, "  " STR_FORMAT "%*s %12.1f chip-seconds %6.2f %%\n", STR_ARG(share->key),
                   (int)(widest - share->key.len), "", value, all > 0 ? 100 * value / all : 0);
    }
}

static void put_sum(struct buf *out, const struct doc *phalanx)
{
    const struct doc *ledger = doc_get(phalanx, "ledger");
    struct cost cost = cost_of(phalanx);
    int64_t ettr_ppm = doc_number(ledger, "ettrPpm", -1);
    if (cost.restarts > 0) {
        buf_add_str(out, STR("in all "));
        put_count(out, cost.restarts, "restart");
        buf_add_str(out, STR(", "));
        put_duration(out, cost.down_ns);
        buf_add_str(out, STR(" without steps"));
        if (cost.steps >= 0) {
            buf_add_str(out, STR(", "));
            put_count(out, cost.steps, "step");
            buf_add_str(out, STR(" repeated"));
        }
    } else {
        buf_add_str(out, STR("no restarts"));
    }
    if (ettr_ppm >= 0)
        buf_printf(out, ", ETTR %.2f %%", (double)ettr_ppm / 10000);
    buf_add_char(out, '\n');
    put_shares(out, doc_get(ledger, "chipSeconds"));
}

static void explain(struct explaining *explaining, const struct doc *object)
{
    const struct doc *phalanx = doc_dotted(object, "status.phalanx");
    const struct doc *restarts = doc_get(phalanx, "restarts");
    struct buf *out = &explaining->out;
    buf_printf(out, "jobset " STR_FORMAT "/" STR_FORMAT ": " STR_FORMAT "\n",
               STR_ARG(doc_text(object, "metadata.namespace")), STR_ARG(doc_text(object, "metadata.name")),
               STR_ARG(doc_text(phalanx, "state")));
    if (!doc_text(object, "status.terminalState").len)
        put_line(out, "waits", doc_text(phalanx, "why"));
    for (size_t i = 0; i < doc_len(restarts); i++)
        put_restart(out, phalanx, i);
    if (doc_get(phalanx, "end")) {
        buf_printf(out, "end, " STR_FORMAT "\n", STR_ARG(doc_text(phalanx, "finishedTime")));
        put_cause(out, doc_path(phalanx, "end", "attribution", NULL));
    }
    put_sum(out, phalanx);
}

/* --- JSON ---------------------------------------------------------------------------------------------- */

static void put_optional(struct json_writer *writer, const char *key, const struct doc *value)
{
    if (!value)
        return;
    json_key(writer, key);
    json_put_doc(writer, value);
}

static void put_json(struct explaining *explaining, const struct doc *object)
{
    const struct doc *phalanx = doc_dotted(object, "status.phalanx");
    const struct doc *restarts = doc_get(phalanx, "restarts");
    struct json_writer writer = {.out = &explaining->out};
    struct cost cost = cost_of(phalanx);
    json_begin_object(&writer);
    json_pair_str(&writer, "namespace", doc_text(object, "metadata.namespace"));
    json_pair_str(&writer, "name", doc_text(object, "metadata.name"));
    json_pair_str(&writer, "state", doc_text(phalanx, "state"));
    put_optional(&writer, "why", doc_get(phalanx, "why"));
    json_key(&writer, "restarts");
    json_begin_array(&writer);
    for (size_t i = 0; i < doc_len(restarts); i++) {
        const struct doc *record = doc_at(restarts, i);
        int64_t down = down_ns(phalanx, i), steps = steps_lost(record);
        json_begin_object(&writer);
        put_optional(&writer, "number", doc_get(record, "number"));
        put_optional(&writer, "attempt", doc_get(record, "attempt"));
        put_optional(&writer, "trigger", doc_get(record, "cause"));
        put_optional(&writer, "time", doc_get(record, "faultTime"));
        put_optional(&writer, "attribution", doc_get(record, "attribution"));
        if (down >= 0) {
            json_key(&writer, "downSeconds");
            json_put_fixed(&writer, down / NS_PER_US, 6);
        }
        if (steps >= 0)
            json_pair_int(&writer, "stepsLost", steps);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    put_optional(&writer, "end", doc_path(phalanx, "end", "attribution", NULL));
    json_key(&writer, "downSeconds");
    json_put_fixed(&writer, cost.down_ns / NS_PER_US, 6);
    json_pair_int(&writer, "restartCount", cost.restarts);
    if (cost.steps >= 0)
        json_pair_int(&writer, "stepsLost", cost.steps);
    put_optional(&writer, "ledger", doc_get(phalanx, "ledger"));
    json_end_object(&writer);
    buf_add_char(&explaining->out, '\n');
}

/* --- the command --------------------------------------------------------------------------------------- */

static int explain_one(struct explaining *explaining, struct str name)
{
    struct buf path BUF_CLEANUP = {0};
    struct client_reply reply;
    const char *namespace_ = client_namespace(&explaining->options);
    kind_path(&path, kind_find(STR("jobset")), namespace_ ? namespace_ : "default", name);
    int rc = client_get(&explaining->client, buf_str(&path), &reply);
    if (rc == EXIT_OK && explaining->json)
        put_json(explaining, reply.doc);
    else if (rc == EXIT_OK)
        explain(explaining, reply.doc);
    client_reply_done(&reply);
    output_write(&explaining->out);
    return rc;
}

static int explain_all(struct explaining *explaining, char **args, int count)
{
    const struct resource *kind = NULL;
    int result = EXIT_OK;
    if (count > 1 && !strchr(args[0], '/') && !kind_leading(&args, &count, &kind))
        return EXIT_USAGE;
    for (int i = 0; i < count && result == EXIT_OK; i++) {
        struct str name = str_from(args[i]);
        const struct resource *one = kind ? kind : kind_find(STR("jobset"));
        if (!kind && strchr(args[i], '/') && !kind_split(args[i], &one, &name))
            return EXIT_USAGE;
        if (strcmp(one->kind, "JobSet") != 0) {
            say("only jobsets can be explained, not %s", one->plural);
            return EXIT_USAGE;
        }
        result = explain_one(explaining, name);
    }
    return result;
}

int cmd_explain(int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, CLIENT_LONG_OPTIONS, {0}};
    struct explaining explaining = {0};
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, "o:" CLIENT_SHORT_OPTIONS, options, NULL)) != -1) {
        if (letter == 'o') {
            usable = usage_json(optarg, &explaining.json) && usable;
        } else {
            usable = client_option(&explaining.options, letter, optarg) && usable;
        }
    }
    if (explaining.options.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    if (!usable || optind == argc) {
        return usage_wrong(usage, usable ? "jobset/NAME is missing" : NULL);
    }
    client_open(&explaining.client, &explaining.options);
    int rc = explain_all(&explaining, argv + optind, argc - optind);
    client_close(&explaining.client);
    buf_done(&explaining.out);
    return rc;
}
