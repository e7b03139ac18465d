/* phalanx log: shows, verifies, replays, copies and restores the controller's log. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doc/json.h"
#include "cmd/client.h"
#include "cmd/usage.h"
#include "cmd/cmd.h"
#include "cmd/log_place.h"
#include "core/log/record.h"
#include "host/controller/controller.h"
#include "os/file.h"

enum { RESTORE_LEASE_S = 600 };

static const char usage[] =
    "Usage: phalanx log show|verify|replay [options] DIR|FILE|--etcd URL[,URL...]\n"
    "       phalanx log backup [options] DIR|FILE|--etcd URL[,URL...] COPY\n"
    "       phalanx log restore [options] COPY DIR|--etcd URL[,URL...]\n"
    "\n"
    "Reads the log of a controller, named by its data directory or its log.db, or that of several\n"
    "controllers, on etcd; also while they run.\n"
    "  show     print records, one a line: number, time, what happened\n"
    "  verify   check every record, snapshot and key, and the file itself\n"
    "  replay   apply the log to an empty core, then once more from its newest snapshot (without one:\n"
    "           from the beginning again), and compare the digests of the two states\n"
    "  backup   copy all records and the newest snapshot into the new file COPY\n"
    "  restore  copy them from COPY to where no log is: into DIR, or to etcd while no controller leads;\n"
    "           with backup before it, this moves a log from SQLite to etcd or back\n"
    "\n"
    "Options:\n"
    "  --from N      show: first record (default: the oldest kept)\n"
    "  --until N     show, replay: last record (default: the newest)\n"
    "  --effects     replay: print every event with the effects that it had\n"
    "  -o json       show: one JSON object a line\n" LOG_PLACE_HELP "  --help        this text\n"
    "\n"
    "Exit status: 0 fine, 1 damaged or different, 2 usage, 3 no such log.\n";

struct command {
    const char *what;
    struct log_place place;
    const char *copy; /* of backup and restore */
    uint64_t from, until;
    bool effects, json;
};

static bool is_action(const struct command *command, const char *action)
{
    return strcmp(command->what, action) == 0;
}

/* Reads the action and its arguments. */
static int parse_words(struct command *command, int count, char **words)
{
    static const char *const actions[] = {"show", "verify", "replay", "backup", "restore"};
    bool on_etcd = command->place.etcd.options.endpoints != NULL, known = false;
    command->what = count > 0 ? words[0] : "";
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        known |= is_action(command, actions[i]);
    if (count > 0 && !known) {
        usage_unknown("action", str_from(command->what), actions, sizeof actions / sizeof *actions);
        usage_wrong(usage, NULL);
        return -1;
    }
    bool copies = is_action(command, "backup") || is_action(command, "restore");
    if (count != 1 + !on_etcd + copies) {
        usage_wrong(usage,
                    copies ? "the log and its copy are needed" : "an action and DIR or FILE are needed");
        return -1;
    }
    if (copies)
        command->copy = words[is_action(command, "restore") ? 1 : count - 1];
    if (!on_etcd)
        command->place.path = words[is_action(command, "restore") ? 2 : 1];
    return 0;
}

static int parse(struct command *command, int argc, char **argv)
{
    static const struct option options[] = {
        {"from", required_argument, NULL, 'f'},
        {"until", required_argument, NULL, 'u'},
        {"effects", no_argument, NULL, 'e'},
        LOG_PLACE_OPTIONS,
        {"output", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int option;
    int64_t number;
    while ((option = usage_option(argc, argv, "o:h", options, NULL)) != -1) {
        switch (option) {
        case 'f':
        case 'u':
            if (!str_to_i64(str_from(optarg), 1, INT64_MAX, &number)) {
                say("\"%s\" is not a record number", optarg);
                return -1;
            }
            *(option == 'f' ? &command->from : &command->until) = (uint64_t)number;
            break;
        case 'e':
            command->effects = true;
            break;
        case 'o':
            if (!usage_json(optarg, &command->json))
                return -1;
            break;
        case 'h':
            fputs(usage, stdout);
            return 1;
        default:
            if (log_place_option(&command->place, option, optarg))
                break;
            usage_wrong(usage, NULL);
            return -1;
        }
    }
    return parse_words(command, argc - optind, argv + optind);
}

/* --- show ----------------------------------------------------------------------------------------------- */

static void print_record(const struct command *command, const struct store_record *record,
                         const struct event *event, const struct error *error, const struct core *core)
{
    struct buf text BUF_CLEANUP = {0}, line BUF_CLEANUP = {0};
    char time[40];
    time_format_micro(record->stamp_ns, time);
    if (event)
        record_describe_named(&text, event, core);
    else
        buf_printf(&text, "? %s", error->text);
    if (!command->json) {
        buf_printf(&line, "%8" PRIu64 "  %s  " STR_FORMAT "\n", record->seq, time, STR_ARG(buf_str(&text)));
        output_write(&line);
        return;
    }
    struct json_writer writer = {.out = &line};
    json_begin_object(&writer);
    json_pair_int(&writer, "seq", (int64_t)record->seq);
    json_pair_text(&writer, "time", time);
    json_pair_int(&writer, "bytes", (int64_t)record->bytes.len);
    json_pair_str(&writer, "event", buf_str(&text));
    json_end_object(&writer);
    buf_add_char(&line, '\n');
    output_escape(&line);
    output_write(&line);
}

/* Returns the state before record `from`, which has the tasks' names; NULL if the log begins later or is
 * damaged there. */
static struct core *state_before(const struct log_store *log, uint64_t from)
{
    struct core *core = core_new();
    if (controller_replay(log, from - 1, from > 1, core, NULL, NULL, NULL) == 0 && core_seq(core) == from - 1)
        return core;
    core_free(core);
    return NULL;
}

/* Applies the printed record. After a record that cannot be applied, the list continues without names. */
static void follow(struct core **core, struct event *event, const struct store_record *record,
                   struct effects *effects)
{
    if (*core && event && record->seq == core_seq(*core) + 1 && record->stamp_ns >= core_now(*core)) {
        event->seq = record->seq;
        event->stamp_ns = record->stamp_ns;
        core_step(*core, event, effects);
    } else if (*core) {
        core_free(*core);
        *core = NULL;
    }
}

static int show(const struct command *command, const struct log_store *log, struct error *error)
{
    void *cursor;
    uint64_t from = command->from ? command->from : log->ends(log->context).base + 1;
    int rc = log->read(log->context, from, &cursor, error);
    if (rc < 0)
        return rc;
    struct store_record record;
    struct effects effects = {0};
    struct core *core = state_before(log, from ? from : 1);
    while ((rc = log->next(cursor, &record, error)) > 0 && record.seq <= command->until) {
        struct arena arena ARENA_CLEANUP = {0};
        struct error why = {0};
        struct event event;
        bool known = record_decode(&arena, record.bytes, &event, &why) == 0;
        print_record(command, &record, known ? &event : NULL, &why, core);
        follow(&core, known ? &event : NULL, &record, &effects);
    }
    if (core)
        core_free(core);
    vec_done(&effects.list);
    log->cursor_free(cursor);
    return rc < 0 ? rc : 0;
}

/* --- verify --------------------------------------------------------------------------------------------- */

static void print_problem(void *context, const struct store_problem *problem)
{
    output_print("%s %" PRIu64 ": %s\n", problem->table, problem->seq, problem->text);
}

static int verify(const struct log_store *log, struct error *error)
{
    struct store_verify_result result = {0};
    int rc = log->verify(log->context, print_problem, NULL, &result, error);
    printf("%" PRIu64 " records, %" PRIu64 " snapshots, %" PRIu64 " problems\n", result.records,
           result.snapshots, result.problems);
    return rc;
}

/* --- replay --------------------------------------------------------------------------------------------- */

static void print_step(void *context, struct core *core, const struct event *event,
                       const struct effects *effects)
{
    struct buf text BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
    char time[40];
    time_format_micro(event->stamp_ns, time);
    record_describe_named(&text, event, core);
    buf_printf(&out, "%8" PRIu64 "  %s  " STR_FORMAT "\n", event->seq, time, STR_ARG(buf_str(&text)));
    for (size_t i = 0; i < effects->list.len; i++) {
        buf_add_str(&out, STR("            "));
        effect_describe(&out, &effects->list.items[i]);
        buf_add_char(&out, '\n');
    }
    output_write(&out);
}

static int digest(const struct command *command, const struct log_store *log, bool from_snapshot, bool again,
                  uint64_t *ret_digest, struct error *error)
{
    struct core *core = core_new();
    int rc = controller_replay(log, command->until, from_snapshot, core,
                               command->effects && !again ? print_step : NULL, NULL, error);
    if (rc == 0) {
        *ret_digest = core_digest(core);
        printf("from the %s%s: record %" PRIu64 ", digest %016" PRIx64 "\n",
               from_snapshot ? "snapshot" : "beginning", again ? " again" : "", core_seq(core), *ret_digest);
    }
    core_free(core);
    return rc;
}

/* Replays the log in two ways, which must end in the same state: from its first record, and from its newest
 * snapshot. If one of them is missing, replays the other twice. */
static int replay(const struct command *command, const struct log_store *log, struct error *error)
{
    struct store_stats stats = {0};
    uint64_t first = 0, second = 0;
    int rc = log->stats(log->context, &stats, error);
    bool trimmed = stats.first_seq > 1;
    bool snapshot = stats.snapshots > 0 && stats.snapshot_seq <= command->until;
    if (rc == 0)
        rc = digest(command, log, trimmed, false, &first, error);
    if (rc == 0)
        rc = digest(command, log, trimmed || snapshot, trimmed || !snapshot, &second, error);
    if (rc == 0 && first != second)
        return error_set(error, ERROR_CORRUPT, "the two states differ");
    if (rc == 0)
        puts("the same state");
    return rc;
}

/* --- backup and restore --------------------------------------------------------------------------------- */

static int copy_log(const struct log_store *from, const struct log_store *to, struct error *error)
{
    struct log_ends ends;
    int rc = log_store_copy(from, to, &ends, error);
    if (rc == 0)
        printf("records %" PRIu64 " to %" PRIu64 " are copied\n", ends.base + 1, ends.last);
    return rc;
}

static int backup(const struct command *command, const struct log_store *log, struct error *error)
{
    struct store *copy;
    int rc = store_open(command->copy, &(struct store_options){.keys = command->place.keys}, &copy, error);
    if (rc < 0)
        return rc;
    struct log_store to = log_store_sqlite(copy);
    rc = copy_log(log, &to, error);
    to.close(to.context);
    return rc;
}

/* Copies a log to etcd. Holds the lead meanwhile, under a lease that is long enough not to need renewal. */
static int restore_to_etcd(struct command *command, const struct log_store *from, struct error *error)
{
    struct etcd_options options = command->place.etcd.options;
    struct etcd_lease *lease;
    struct etcd_log *log;
    options.lease_s = RESTORE_LEASE_S;
    command->place.etcd.options.restores = true;
    int rc = log_place_open_etcd(&command->place, &log, error);
    if (rc < 0)
        return rc;
    struct log_store to = etcd_log_store(log);
    rc = etcd_lease_new(&options, &lease, error);
    if (rc == 0) {
        rc = etcd_log_lead(log, lease, STR("phalanx log restore"), NULL, error);
        if (rc == 0)
            rc = error_set(error, ERROR_CONFLICT, "a controller leads: stop all of them first");
        if (rc > 0)
            rc = copy_log(from, &to, error);
        if (rc == 0)
            rc = etcd_log_resign(log, NULL, error);
        etcd_lease_end(lease);
    }
    to.close(to.context);
    return rc;
}

static int restore(struct command *command, struct error *error)
{
    char path[4096];
    struct buf lock BUF_CLEANUP = {0};
    struct store *copy, *store;
    int rc = store_open(
        command->copy, &(struct store_options){.read_only = true, .keys = command->place.keys}, &copy, error);
    if (rc < 0)
        return rc;
    struct log_store from = log_store_sqlite(copy);
    if (!command->place.path) {
        rc = restore_to_etcd(command, &from, error);
    } else if ((rc = os_folder_own(command->place.path, 0700, error)) == 0) {
        snprintf(path, sizeof path, "%s/log.db", command->place.path);
        rc = store_open(path, &(struct store_options){.keys = command->place.keys}, &store, error);
        if (rc == 0) {
            struct log_store to = log_store_sqlite(store);
            rc = copy_log(&from, &to, error);
            to.close(to.context);
            /* without the lock file, a controller treats the log as a restored one */
            buf_printf(&lock, "%s-lock", path);
            if (rc == 0 && unlink(lock.data) < 0 && errno != ENOENT)
                rc = error_set_errno(error, errno, "removing %s", lock.data);
        }
    }
    from.close(from.context);
    return rc;
}

int cmd_log(int argc, char **argv)
{
    struct command command = {.until = UINT64_MAX};
    int parsed = parse(&command, argc, argv);
    if (parsed != 0)
        return parsed > 0 ? EXIT_OK : EXIT_USAGE;
    struct error error = {0};
    bool missing = false;
    struct log_store log = {0};
    int rc = log_place_keys(&command.place, &error);
    if (rc == 0 && is_action(&command, "restore")) {
        rc = restore(&command, &error);
    } else if (rc == 0 && (rc = log_place_open(&command.place, &log, &error)) == 0) {
        if (is_action(&command, "show"))
            rc = show(&command, &log, &error);
        else if (is_action(&command, "verify"))
            rc = verify(&log, &error);
        else if (is_action(&command, "backup"))
            rc = backup(&command, &log, &error);
        else
            rc = replay(&command, &log, &error);
        log.close(log.context);
    } else if (rc == ERROR_NOT_FOUND) {
        missing = true;
    }
    log_place_done(&command.place);
    if (rc < 0)
        say("%s", error.text);
    return rc == 0 ? EXIT_OK : missing ? EXIT_NOT_FOUND : EXIT_FAILED;
}
