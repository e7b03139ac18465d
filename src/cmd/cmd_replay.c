/* phalanx replay: shows a controller's log, decision by decision, with the reasons; see docs/replay.md. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/log_place.h"
#include "cmd/log_walk.h"
#include "cmd/usage.h"
#include "core/log/record.h"
#include "doc/json.h"
#include "sim/replay/decisions.h"
#include "sim/replay/outline.h"

enum { REPLAY_WHAT_COLUMNS = 18 };

static const char usage[] =
    "Usage: phalanx replay [OPTIONS] DIR|FILE|--etcd URL[,URL...]\n"
    "\n"
    "Applies a controller's log, named by its data directory or its log.db, to an empty core, also while\n"
    "the controller runs, and prints every record by which it decided something: when, what happened, and\n"
    "each decision with its reason. Nothing is carried out. docs/replay.md explains it.\n"
    "  --from T      print from this record, or this time (2026-03-01T12:00:00Z) on\n"
    "  --until T     end behind this record or time\n"
    "  --about TEXT  only decisions whose object or reason has TEXT, such as default/train or m-17\n"
    "  --all         print records without a decision as well\n"
    "  --decisions   the decisions alone, without times, numbers and random names: two logs of one\n"
    "                story, as of a cluster and of `phalanx sim --log`, can be compared with diff\n"
    "  -q, --quiet   only the sum at the end\n"
    "  -o json       one JSON object a line, and one with the sum\n" LOG_PLACE_HELP
    "  --help        this text\n"
    "\n"
    "Exit status: 0 done, 1 the log is damaged, 2 wrong usage, 3 no such log.\n";

struct replay {
    struct log_place place;
    struct log_limits from, until;
    struct str about;
    bool all, quiet, json, reduced; /* reduced: to the decisions */
    /* decisions so far */
    struct decisions decisions;
    struct outline *outline; /* with `reduced`, from the first requested record on */
    int64_t began_ns; /* stamp of the first record */
    uint64_t first, records, made[DECISION_KINDS], warnings;
};

/* Parses the command line. Returns 0, 1 if help was printed, or -1 if it is wrong. */
static int replay_parse(struct replay *replay, int argc, char **argv)
{
    static const struct option options[] = {
        {"from", required_argument, NULL, 'f'},
        {"until", required_argument, NULL, 'u'},
        {"about", required_argument, NULL, 'b'},
        {"all", no_argument, NULL, 'a'},
        {"decisions", no_argument, NULL, 'd'},
        {"quiet", no_argument, NULL, 'q'},
        LOG_PLACE_OPTIONS,
        {"output", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    bool usable = true;
    for (int letter; (letter = usage_option(argc, argv, "hqo:", options, NULL)) != -1;) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return 1;
        }
        if (letter == 'f')
            usable = usage_value(log_limits_parse(optarg, &replay->from)) && usable;
        else if (letter == 'u')
            usable = usage_value(log_limits_parse(optarg, &replay->until)) && usable;
        else if (letter == 'b')
            replay->about = str_from(optarg);
        else if (letter == 'a')
            replay->all = true;
        else if (letter == 'd')
            replay->reduced = true;
        else if (letter == 'q')
            replay->quiet = true;
        else if (letter == 'o')
            usable = usage_json(optarg, &replay->json) && usable;
        else if (!log_place_option(&replay->place, letter, optarg))
            usable = false;
    }
    int wanted = replay->place.etcd.options.endpoints ? 0 : 1;
    bool clash = replay->reduced && (replay->all || replay->quiet);
    if (!usable || clash || argc - optind != wanted) {
        usage_wrong(usage, !usable ? NULL
                           : clash ? "--decisions excludes --all and --quiet"
                                   : "DIR or FILE is needed, or --etcd");
        return -1;
    }
    replay->place.path = wanted ? argv[optind] : NULL;
    return 0;
}

/* --- records -------------------------------------------------------------------------------------- */

static bool replay_is_wanted(const struct replay *replay, const struct decision *decision)
{
    return replay->about.len == 0 ||
           memmem(decision->subject.data, decision->subject.len, replay->about.data, replay->about.len) ||
           memmem(decision->reason.data, decision->reason.len, replay->about.data, replay->about.len);
}

static void replay_put_text(const struct replay *replay, struct buf *out, const struct event *event,
                            struct str what)
{
    char time[40];
    time_format_micro(event->stamp_ns, time);
    buf_printf(out, "%8" PRIu64 "  %s  +%.6f s  " STR_FORMAT "\n", event->seq, time,
               (double)(event->stamp_ns - replay->began_ns) / 1e9, STR_ARG(what));
    for (size_t i = 0; i < replay->decisions.list.len; i++) {
        const struct decision *decision = &replay->decisions.list.items[i];
        if (!replay_is_wanted(replay, decision))
            continue;
        buf_printf(out, "          %s %-*.*s " STR_FORMAT, decision->warning ? "!" : " ", REPLAY_WHAT_COLUMNS,
                   STR_ARG(decision->what), STR_ARG(decision->subject));
        if (decision->count > 1)
            buf_printf(out, " (and %u more)", decision->count - 1);
        buf_printf(out, decision->reason.len ? ": " STR_FORMAT "\n" : STR_FORMAT "\n",
                   STR_ARG(decision->reason));
    }
}

static void replay_put_json(const struct replay *replay, struct buf *out, const struct event *event,
                            struct str what)
{
    struct json_writer json = {.out = out};
    char time[40];
    time_format_micro(event->stamp_ns, time);
    json_begin_object(&json);
    json_pair_int(&json, "seq", (int64_t)event->seq);
    json_pair_text(&json, "time", time);
    json_pair_float(&json, "seconds", (double)(event->stamp_ns - replay->began_ns) / 1e9);
    json_pair_str(&json, "event", what);
    json_key(&json, "decisions");
    json_begin_array(&json);
    for (size_t i = 0; i < replay->decisions.list.len; i++) {
        const struct decision *decision = &replay->decisions.list.items[i];
        if (!replay_is_wanted(replay, decision))
            continue;
        json_begin_object(&json);
        json_pair_text(&json, "kind", decision_kind_names[decision->kind]);
        json_pair_str(&json, "what", decision->what);
        json_pair_str(&json, "subject", decision->subject);
        json_pair_int(&json, "count", decision->count);
        json_pair_str(&json, "reason", decision->reason);
        json_pair_bool(&json, "warning", decision->warning);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    buf_add_char(out, '\n');
}

static bool replay_is_before(const struct replay *replay, const struct event *event)
{
    return (replay->from.until_seq != UINT64_MAX && event->seq < replay->from.until_seq) ||
           (replay->from.until_ns != INT64_MAX && event->stamp_ns < replay->from.until_ns);
}

static void replay_see(void *context, struct core *core, const struct event *event,
                       const struct effects *effects)
{
    struct replay *replay = context;
    struct buf what BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
    size_t wanted = 0;
    if (!replay->first) {
        replay->first = event->seq;
        replay->began_ns = event->stamp_ns;
    }
    if (replay_is_before(replay, event))
        return;
    if (replay->reduced && !replay->outline)
        replay->outline = outline_new(core);
    if (replay->reduced) {
        outline_event(replay->outline, core, event, effects);
        return;
    }
    decisions_of(&replay->decisions, core, effects);
    replay->records++;
    for (size_t i = 0; i < replay->decisions.list.len; i++) {
        const struct decision *decision = &replay->decisions.list.items[i];
        if (!replay_is_wanted(replay, decision))
            continue;
        wanted++;
        replay->made[decision->kind] += decision->count;
        replay->warnings += decision->warning ? decision->count : 0;
    }
    if (replay->quiet || (wanted == 0 && !replay->all))
        return;
    record_describe_named(&what, event, core);
    if (replay->json)
        replay_put_json(replay, &out, event, buf_str(&what));
    else
        replay_put_text(replay, &out, event, buf_str(&what));
    if (replay->json)
        output_escape(&out);
    output_write(&out);
}

/* --- the whole ------------------------------------------------------------------------------------ */

static void replay_put_sum(const struct replay *replay, const struct core *core)
{
    struct buf out BUF_CLEANUP = {0};
    char digest[24];
    double seconds = (double)(core_now(core) - replay->began_ns) / 1e9;
    snprintf(digest, sizeof digest, "%016" PRIx64, core_digest(core));
    if (replay->json) {
        struct json_writer json = {.out = &out};
        json_begin_object(&json);
        json_pair_int(&json, "first", (int64_t)replay->first);
        json_pair_int(&json, "last", (int64_t)core_seq(core));
        json_pair_int(&json, "records", (int64_t)replay->records);
        json_pair_float(&json, "seconds", replay->first ? seconds : 0);
        json_key(&json, "made");
        json_begin_object(&json);
        for (int kind = 0; kind < DECISION_KINDS; kind++)
            json_pair_int(&json, decision_kind_names[kind], (int64_t)replay->made[kind]);
        json_end_object(&json);
        json_pair_int(&json, "warnings", (int64_t)replay->warnings);
        json_pair_text(&json, "digest", digest);
        json_end_object(&json);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "records %" PRIu64 " to %" PRIu64 ", %.3f s; decisions:", replay->first,
                   core_seq(core), replay->first ? seconds : 0);
        for (int kind = 0; kind < DECISION_KINDS; kind++)
            buf_printf(&out, "%s %s %" PRIu64, kind ? "," : "", decision_kind_names[kind],
                       replay->made[kind]);
        buf_printf(&out, "; warnings %" PRIu64 "; digest %s\n", replay->warnings, digest);
    }
    output_write(&out);
}

static void replay_put_outline(const struct replay *replay)
{
    struct buf out BUF_CLEANUP = {0};
    if (!replay->outline) /* no record was requested */
        return;
    if (replay->json) {
        outline_json(replay->outline, replay->about, &out);
        output_escape(&out);
    } else {
        outline_text(replay->outline, replay->about, &out);
    }
    output_write(&out);
}

static int replay_run(struct replay *replay, const struct log_store *log, struct error *error)
{
    struct core *core = core_new();
    bool bar = isatty(STDERR_FILENO) && (replay->quiet || !isatty(STDOUT_FILENO));
    int rc = log_walk_begin(log, &replay->until, core, error);
    if (rc == 0)
        rc = log_walk(log, &replay->until, bar, core, replay_see, replay, error);
    if (rc == 0 && replay->reduced)
        replay_put_outline(replay);
    else if (rc == 0)
        replay_put_sum(replay, core);
    decisions_done(&replay->decisions);
    core_free(core);
    return rc;
}

int cmd_replay(int argc, char **argv)
{
    struct replay replay = {.from = LOG_LIMITS_NONE, .until = LOG_LIMITS_NONE};
    struct error error = {0};
    struct log_store log = {0};
    int parsed = replay_parse(&replay, argc, argv);
    if (parsed != 0)
        return parsed > 0 ? EXIT_OK : EXIT_USAGE;
    int rc = log_place_open(&replay.place, &log, &error);
    bool missing = rc == ERROR_NOT_FOUND;
    if (rc == 0) {
        rc = replay_run(&replay, &log, &error);
        log.close(log.context);
    }
    log_place_done(&replay.place);
    if (replay.outline)
        outline_free(replay.outline);
    if (rc < 0)
        say("%s", error.text);
    return rc == 0 ? EXIT_OK : missing ? EXIT_NOT_FOUND : EXIT_FAILED;
}
