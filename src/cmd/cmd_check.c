/* phalanx check: runs the probes on this machine, once or for several rounds. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "doc/json.h"
#include "base/vec.h"
#include "cmd/client.h"
#include "cmd/usage.h"
#include "cmd/cmd.h"
#include "cmd/settings_file.h"
#include "core/health/table.h"
#include "host/controller/controller.h"
#include "host/probes/probes.h"

static const char usage[] =
    "Usage: phalanx check [OPTIONS]\n"
    "\n"
    "Runs the agent's probes on this machine and prints what each one found.\n"
    "  --root DIR        below DIR instead of / (a copy of /sys, /proc and /dev/kmsg)\n"
    "  --settings FILE   limits, and what the machine should have (docs/probes.md)\n"
    "  --faults FILE     judge by this fault table, as the controller's option does\n"
    "  --probe NAME      only that one; may be repeated\n"
    "  --rounds N        look N times: from the second on, growth of counters is seen (1)\n"
    "  --every DURATION  between rounds (10s)\n"
    "  --since-boot      the kernel's log from its oldest record, not from now\n"
    "  -o json           one JSON object (also --json)\n"
    "  --help            this text\n"
    "\n"
    "Exit status, by the convention of monitoring plug-ins and the levels that the fault table (the\n"
    "built-in one, without --faults) gives to the findings: 0 well (NotHandle, or the job restarts and\n"
    "no more), 1 warning (SubHealth, PreSeparate, FreeReset), 2 critical (Reset and more), 3 unknown: a\n"
    "probe or an external check gave no answer, or the command line is wrong. Codes that the table does\n"
    "not know, such as those of external checks, count by their severity.\n";

enum { STATUS_OK = 0, STATUS_WARNING = 1, STATUS_CRITICAL = 2, STATUS_UNKNOWN = 3 };
enum { SETTINGS_BYTES_MAX = 4 * 1024 * 1024, ROUNDS_MAX = 1000000 };

struct found { /* a signal, with copies of its strings */
    const char *probe;
    int64_t round;
    char code[SIGNAL_CODE_MAX + 1], place[SIGNAL_PLACE_MAX + 1], evidence[SIGNAL_EVIDENCE_MAX + 1];
    enum signal_assertion assertion;
    enum signal_severity severity;
    uint32_t count;
    int64_t last_ns;
};
struct check {
    const char *root, *settings, *faults;
    struct arena arena; /* owns what `table` points to */
    struct buf only;
    int64_t rounds, every_ns, round;
    bool json, since_boot;
    struct probes *probes;
    struct fault_table *table;
    VEC(struct found) found;
    int worst; /* STATUS_OK ... STATUS_CRITICAL, of events and of conditions that last at the end */
    bool unknown;
};

static int64_t mono_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

static const char *severity_name(enum signal_severity severity)
{
    static const char *const names[] = {"none", "notice", "minor", "major", "critical"};
    return names[severity];
}

static const char *assertion_name(enum signal_assertion assertion)
{
    return assertion == SIGNAL_OCCUR ? "occur" : assertion == SIGNAL_RECOVER ? "recover" : "once";
}

static int status_of_level(enum fault_level level)
{
    switch (level) {
    case LEVEL_SUB_HEALTH:
    case LEVEL_PRE_SEPARATE:
    case LEVEL_FREE_RESET:
        return STATUS_WARNING;
    case LEVEL_RESET:
    case LEVEL_SEPARATE:
    case LEVEL_MANUALLY_SEPARATE:
        return STATUS_CRITICAL;
    case LEVEL_NOT_HANDLE:
    case LEVEL_RESTART_REQUEST:
    case LEVEL_RESTART_BUSINESS:
    case LEVELS:
        break;
    }
    return STATUS_OK;
}

/* Judges a signal. A condition that lasts until the end of the check is judged as if it continued: the check
 * does not wait for the duration in the table. */
static int status_of_signal(const struct check *check, const struct signal *signal)
{
    const struct fault_rule *rule = fault_table_rule(check->table, signal->code, signal->severity);
    bool lasts = signal->assertion == SIGNAL_OCCUR && rule->settle_ns > 0 && rule->lasting > rule->level;
    int status = status_of_level(lasts ? rule->lasting : rule->level);
    return rule->code.len == 0 && signal->severity == SEVERITY_MINOR ? STATUS_WARNING : status;
}

static void weigh(struct check *check, const struct signal *signal)
{
    int status = status_of_signal(check, signal);
    bool is_check = str_starts(signal->code, STR("check/")) || str_is(signal->code, "os/probe-hung") ||
                    str_is(signal->code, "os/probe-cost");
    if (is_check && (signal->severity == SEVERITY_NOTICE || !str_starts(signal->code, STR("check/"))))
        check->unknown = true;
    else if (status > check->worst)
        check->worst = status;
}

static void on_signal(void *context, const struct signal *signal)
{
    struct check *check = context;
    struct found found = {.probe = probes_speaking(check->probes),
                          .round = check->round,
                          .assertion = signal->assertion,
                          .severity = signal->severity,
                          .count = signal->count,
                          .last_ns = signal->last_ns};
    snprintf(found.code, sizeof found.code, STR_FORMAT, STR_ARG(signal->code));
    snprintf(found.place, sizeof found.place, STR_FORMAT, STR_ARG(signal->place));
    snprintf(found.evidence, sizeof found.evidence, STR_FORMAT, STR_ARG(signal->evidence));
    vec_push(&check->found, found);
    if (signal->assertion == SIGNAL_ONCE)
        weigh(check, signal);
}

static void on_condition(void *context, const struct signal *signal)
{
    weigh(context, signal);
}

/* Runs rounds until `until_ns`, or (INT64_MAX) until every probe has answered. */
static void run_until(struct check *check, int64_t until_ns)
{
    for (;;) {
        int64_t now_ns = mono_ns();
        probes_round(check->probes, now_ns, on_signal, check);
        if (until_ns == INT64_MAX ? !probes_busy(check->probes) : now_ns >= until_ns)
            return;
        int64_t next_ns = probes_next_ns(check->probes);
        int64_t wait_ns = (next_ns < until_ns ? next_ns : until_ns) - mono_ns();
        struct pollfd ready = {probes_fd(check->probes), POLLIN, 0};
        poll(&ready, 1, wait_ns < 0 ? 0 : wait_ns > NS_PER_SECOND ? 1000 : (int)(wait_ns / NS_PER_MS) + 1);
    }
}

static void run_rounds(struct check *check)
{
    int64_t start_ns = mono_ns();
    for (check->round = 1; check->round <= check->rounds; check->round++) {
        probes_hurry(check->probes);
        run_until(check, INT64_MAX);
        if (check->round < check->rounds)
            run_until(check, start_ns + check->round * check->every_ns);
    }
    probes_conditions(check->probes, on_condition, check);
}

static int status_of(const struct check *check)
{
    return check->worst == STATUS_OK && check->unknown ? STATUS_UNKNOWN : check->worst;
}

static const char *status_name(int status)
{
    static const char *const names[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
    return names[status];
}

/* --- output --------------------------------------------------------------------------------------- */

static void print_found(struct buf *out, const struct check *check, const struct found *found)
{
    buf_printf(out, "  %-8s %-8s %s", assertion_name(found->assertion), severity_name(found->severity),
               found->code);
    if (found->place[0])
        buf_printf(out, " %s", found->place);
    if (found->count > 1)
        buf_printf(out, " (%u times)", found->count);
    if (check->rounds > 1)
        buf_printf(out, " [round %lld]", (long long)found->round);
    buf_printf(out, ": %s\n", found->evidence);
}

static void print_text(struct buf *out, const struct check *check)
{
    char wall[24], cost[24];
    buf_printf(out, "%-12s %10s %10s  %s\n", "PROBE", "TIME", "PROCESSOR", "STATE");
    for (size_t i = 0; i < probes_count(); i++) {
        struct probes_standing standing;
        probes_standing(check->probes, i, &standing);
        if (!standing.enabled)
            continue;
        size_t signals = 0;
        for (size_t k = 0; k < check->found.len; k++)
            signals += strcmp(check->found.items[k].probe, standing.name) == 0;
        duration_format(standing.wall_ns, wall);
        duration_format(standing.cost_ns, cost);
        buf_printf(out, "%-12s %10s %10s  ", standing.name, wall, cost);
        if (standing.off)
            buf_printf(out, "off: too costly");
        else if (standing.hung > 0)
            buf_printf(out, "%u hung", standing.hung);
        else if (standing.note[0])
            buf_printf(out, "%s", standing.note);
        else
            buf_printf(out, "%s", signals ? "" : "-");
        buf_printf(out, "\n");
        for (size_t k = 0; k < check->found.len; k++)
            if (strcmp(check->found.items[k].probe, standing.name) == 0)
                print_found(out, check, &check->found.items[k]);
    }
    buf_printf(out, "%s\n", status_name(status_of(check)));
}

static void json_probes(const struct check *check, struct json_writer *writer)
{
    json_key(writer, "probes");
    json_begin_array(writer);
    for (size_t i = 0; i < probes_count(); i++) {
        struct probes_standing standing;
        probes_standing(check->probes, i, &standing);
        json_begin_object(writer);
        json_pair_text(writer, "name", standing.name);
        json_pair_bool(writer, "enabled", standing.enabled);
        json_pair_bool(writer, "off", standing.off);
        json_pair_int(writer, "runs", (int64_t)standing.runs);
        json_pair_int(writer, "wallNs", standing.wall_ns);
        json_pair_int(writer, "costNs", standing.cost_ns);
        json_pair_int(writer, "costMaxNs", standing.cost_max_ns);
        json_pair_int(writer, "periodNs", standing.period_ns);
        json_pair_int(writer, "conditions", standing.conditions);
        json_pair_int(writer, "hung", standing.hung);
        json_pair_int(writer, "timeouts", (int64_t)standing.timeouts);
        json_pair_text(writer, "note", standing.note);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static const char *level_name(const struct check *check, const struct found *found)
{
    return fault_level_names[fault_table_rule(check->table, str_from(found->code), found->severity)->level];
}

static void print_json(struct buf *out, const struct check *check)
{
    struct json_writer writer = {.out = out};
    json_begin_object(&writer);
    json_pair_text(&writer, "status", status_name(status_of(check)));
    json_probes(check, &writer);
    json_key(&writer, "signals");
    json_begin_array(&writer);
    for (size_t i = 0; i < check->found.len; i++) {
        const struct found *found = &check->found.items[i];
        char time[40];
        time_format_micro(found->last_ns, time);
        json_begin_object(&writer);
        json_pair_text(&writer, "probe", found->probe);
        json_pair_int(&writer, "round", found->round);
        json_pair_text(&writer, "assertion", assertion_name(found->assertion));
        json_pair_text(&writer, "severity", severity_name(found->severity));
        json_pair_text(&writer, "level", level_name(check, found));
        json_pair_text(&writer, "code", found->code);
        json_pair_text(&writer, "place", found->place);
        json_pair_int(&writer, "count", found->count);
        json_pair_text(&writer, "time", time);
        json_pair_text(&writer, "evidence", found->evidence);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_end_object(&writer);
    buf_add_char(out, '\n');
    output_escape(out);
}

/* --- the command line ----------------------------------------------------------------------------- */

static int complain(const char *what, const char *why)
{
    say("%s%s%s", what, why ? ": " : "", why ? why : "");
    return STATUS_UNKNOWN;
}

static int read_faults(struct check *check)
{
    struct buf why BUF_CLEANUP = {0};
    const struct doc *document = check->faults ? fault_table_read(check->faults, &check->arena, &why) : NULL;
    if (check->faults && !document)
        return complain(why.data, NULL);
    check->table = fault_table_new(document);
    return STATUS_OK;
}

static int begin(struct check *check)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *settings = NULL;
    struct error error;
    if (check->settings &&
        settings_file_read(check->settings, SETTINGS_BYTES_MAX, &arena, &settings, &error) < 0)
        return complain(error.text, NULL);
    struct probes_options options = {.root = check->root,
                                     .settings = settings,
                                     .only = check->only.len ? check->only.data : NULL,
                                     .log_from_start = check->since_boot};
    check->probes = probes_new(&options, &error);
    return check->probes ? STATUS_OK : complain(error.text, NULL);
}

static int parse(struct check *check, int argc, char **argv)
{
    static const struct option options[] = {
        {"root", required_argument, NULL, 'r'},  {"settings", required_argument, NULL, 's'},
        {"probe", required_argument, NULL, 'p'}, {"rounds", required_argument, NULL, 'n'},
        {"every", required_argument, NULL, 'e'}, {"since-boot", no_argument, NULL, 'b'},
        {"json", no_argument, NULL, 'j'},        {"output", required_argument, NULL, 'o'},
        {"faults", required_argument, NULL, 'f'}, {"help", no_argument, NULL, 'h'}, {0}};
    for (int option; (option = usage_option(argc, argv, "ho:", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            return -1;
        } else if (option == 'r') {
            check->root = optarg;
        } else if (option == 's') {
            check->settings = optarg;
        } else if (option == 'f') {
            check->faults = optarg;
        } else if (option == 'p') {
            buf_printf(&check->only, "%s%s", check->only.len ? "," : "", optarg);
        } else if (option == 'n' && !str_to_i64(str_from(optarg), 1, ROUNDS_MAX, &check->rounds)) {
            return complain("--rounds", "expected a number from 1");
        } else if (option == 'e' && !duration_parse(str_from(optarg), &check->every_ns)) {
            return complain("--every", "expected a duration such as 10s");
        } else if (option == 'b') {
            check->since_boot = true;
        } else if (option == 'j') {
            check->json = true;
        } else if (option == 'o' && !usage_json(optarg, &check->json)) {
            return STATUS_UNKNOWN;
        } else if (option == '?') {
            usage_wrong(usage, NULL);
            return STATUS_UNKNOWN;
        }
    }
    if (optind < argc)
        return usage_wrong(usage, "unexpected argument \"%s\"", argv[optind]), STATUS_UNKNOWN;
    return STATUS_OK;
}

int cmd_check(int argc, char **argv)
{
    struct check check = {.rounds = 1, .every_ns = 10 * NS_PER_SECOND};
    int status = parse(&check, argc, argv);
    if (status == STATUS_OK)
        status = read_faults(&check);
    if (status == STATUS_OK)
        status = begin(&check);
    if (check.probes) {
        struct buf out BUF_CLEANUP = {0};
        run_rounds(&check);
        if (check.json)
            print_json(&out, &check);
        else
            print_text(&out, &check);
        output_write(&out);
        status = status_of(&check);
        probes_free(check.probes);
    }
    if (check.table)
        fault_table_free(check.table);
    arena_done(&check.arena);
    vec_done(&check.found);
    buf_done(&check.only);
    return status < 0 ? STATUS_OK : status;
}
