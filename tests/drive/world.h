/* world.h - a driver between fake ports, and the story of what it does with them:
 *
 *     struct world w; world_init(&w, 0);                        // 4 machines of 4 chips; open
 *     world_join(&w, 1, "m-1");                                 // session 1: hello, welcome
 *     world_create(&w, 77, "train", 1); driver_turn(w.driver);
 *     STORY(&w, "append 1; step write; reply 77 201; send 1 start; ");
 *     world_done(&w);                                           // replays the log and compares digests
 *
 * The log is as `w.log_says`: APPEND_DONE, APPEND_LATER or an error. Clocks stand still until they are moved.
 */
#ifndef PHX_TESTS_DRIVE_WORLD_H
#define PHX_TESTS_DRIVE_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "core/agent/agent.h"
#include "drive/internal.h"

enum { LEASE_MS = 3000, SESSIONS_MAX = 64 };
static const uint8_t world_secret[GANG_KEY_BYTES] = "known to this test";

struct world {
    struct driver *driver;
    struct core *core;
    int64_t mono_ns, wall_ns;
    int log_says;
    VEC(struct buf) log; /* durable, by seq - 1 */
    VEC(int64_t) stamps;
    const struct drive_record *under_way;
    size_t under_way_count;
    struct buf story;
    size_t longest_append;
    obj_id started[SESSIONS_MAX]; /* the last task that each session was told to start */
    char refusal[200];            /* the last */
    uint64_t cluster;             /* that machines say they belong to */
    uint64_t told_cluster;        /* by the last Welcome or refusal */
};

#define STORY(w, ...)                                                                                        \
    do {                                                                                                     \
        assert_string_equal((w)->story.data ? (w)->story.data : "", __VA_ARGS__);                            \
        buf_clear(&(w)->story);                                                                              \
    } while (0)

/* --- ports ------------------------------------------------------------------------------------ */

static void keep_records(struct world *w, const struct drive_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct buf bytes = {0};
        assert_true(records[i].seq == w->log.len + 1);
        assert_true(w->stamps.len == 0 || vec_last(&w->stamps) <= records[i].stamp_ns);
        buf_add_str(&bytes, records[i].bytes);
        vec_push(&w->log, bytes);
        vec_push(&w->stamps, records[i].stamp_ns);
    }
}

static int fake_append(void *context, const struct drive_record *records, size_t count, struct error *error)
{
    struct world *w = context;
    assert_null(w->under_way);
    buf_printf(&w->story, "append %zu; ", count);
    w->longest_append = count > w->longest_append ? count : w->longest_append;
    if (w->log_says < 0)
        return error_set(error, w->log_says, "so it goes");
    if (w->log_says == APPEND_DONE)
        keep_records(w, records, count);
    else
        w->under_way = records, w->under_way_count = count;
    return w->log_says;
}

/* The append that is under way ends so. */
static inline void world_appended(struct world *w, int rc)
{
    struct error error = {0};
    assert_non_null(w->under_way);
    if (rc == APPEND_DONE)
        keep_records(w, w->under_way, w->under_way_count);
    else
        error_set(&error, rc, "so it goes");
    w->under_way = NULL;
    driver_appended(w->driver, rc, &error);
}

static bool fake_snapshot(void *context, uint64_t seq, int64_t stamp_ns, struct buf *bytes)
{
    struct world *w = context;
    buf_printf(&w->story, "snapshot %u; ", (unsigned)seq);
    buf_done(bytes);
    return true;
}

static void fake_refuses(void *context, const struct error *why)
{
    buf_printf(&((struct world *)context)->story, "log refuses; ");
}

static void fake_takes(void *context, int64_t refused_ns)
{
    buf_printf(&((struct world *)context)->story, "log takes; ");
}

static void fake_lost(void *context, const struct error *why)
{
    buf_printf(&((struct world *)context)->story, "log lost; ");
}

static void fake_send(void *context, drive_session session, const struct from_controller *message)
{
    static const char *const names[] = {
        [FROM_CONTROLLER_WELCOME] = "welcome",    [FROM_CONTROLLER_REFUSED] = "refused",
        [FROM_CONTROLLER_HEARTBEAT_ACK] = "beat", [FROM_CONTROLLER_REPORTS_ACK] = "acked",
        [FROM_CONTROLLER_START] = "start",        [FROM_CONTROLLER_STOP] = "stop",
        [FROM_CONTROLLER_FORGET] = "forget",      [FROM_CONTROLLER_RANK_TABLE] = "rank table"};
    struct world *w = context;
    const char *name = message->kind < sizeof names / sizeof *names ? names[message->kind] : NULL;
    buf_printf(&w->story, "send %u %s; ", (unsigned)session, name ? name : "?");
    if (message->kind == FROM_CONTROLLER_START)
        w->started[session] = message->start.task;
    if (message->kind == FROM_CONTROLLER_WELCOME)
        w->told_cluster = message->welcome.cluster;
    if (message->kind != FROM_CONTROLLER_REFUSED)
        return;
    w->told_cluster = message->cluster;
    snprintf(w->refusal, sizeof w->refusal, STR_FORMAT, STR_ARG(message->text));
}

static void fake_close(void *context, drive_session session, const char *refused)
{
    buf_printf(&((struct world *)context)->story, "close %u; ", (unsigned)session);
}

static int64_t fake_mono_ns(void *context)
{
    return ((struct world *)context)->mono_ns;
}

static int64_t fake_wall_ns(void *context)
{
    return ((struct world *)context)->wall_ns;
}

static void fake_reply(void *context, drive_request request, const struct effect *effect)
{
    struct world *w = context;
    buf_printf(&w->story, "reply %u %d; ", (unsigned)request, effect->reply.code);
}

static void fake_refuse(void *context, drive_request request, int code, const char *reason, const char *why)
{
    struct world *w = context;
    buf_printf(&w->story, "refuse %u %d %s; ", (unsigned)request, code, reason);
}

static void fake_before_step(void *context, const struct event *event)
{
    static const char *const names[] = {"",     "boot", "cluster", "tick",    "write",    "hello",
                                        "away", "gone", "silent",  "reports", "progress", "pace"};
    struct world *w = context;
    assert_true(event->seq <= w->log.len); /* the log is ahead of the core */
    buf_printf(&w->story, "step %s; ", event->kind < sizeof names / sizeof *names ? names[event->kind] : "?");
}

static void fake_over(void *context, machine_id machine)
{
    buf_printf(&((struct world *)context)->story, "over m-%u; ", machine + 1);
}

static inline struct driver_ports world_ports(struct world *w)
{
    return (struct driver_ports){
        .log = {w, fake_append, fake_snapshot, fake_refuses, fake_takes, fake_lost},
        .net = {w, fake_send, fake_close},
        .clock = {w, fake_mono_ns, fake_wall_ns},
        .sinks = {.context = w,
                  .reply = fake_reply,
                  .refuse = fake_refuse,
                  .before_step = fake_before_step,
                  .session_over = fake_over},
    };
}

/* --- the world -------------------------------------------------------------------------------- */

/* Not started. */
static inline void world_prepare(struct world *w, const struct driver_options *options)
{
    struct driver_options own = options ? *options : (struct driver_options){0};
    *w = (struct world){
        .mono_ns = NS_PER_SECOND, .wall_ns = INT64_C(1700000000) * NS_PER_SECOND, .log_says = APPEND_DONE};
    struct driver_ports ports = world_ports(w);
    own.version = STR("test");
    w->core = core_new();
    w->driver = driver_new(&own, &ports, w->core);
}

#define CLUSTER                                                                                              \
    "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},\"spec\":{"    \
    "\"settings\":{\"lease\":\"3s\",\"heartbeat\":\"1s\"},\"machineNames\":\"m-{n}\","                       \
    "\"addresses\":\"127.0.1.1\",\"pods\":[{\"racks\":[{\"machines\":32,\"chips\":4}]}]}}"

/* The turn is over; nothing is said of it. */
static inline void world_listen(struct world *w)
{
    (void)driver_wait(w->driver, INT64_MAX);
    buf_clear(&w->story);
}

static inline void world_init(struct world *w, const struct driver_options *options)
{
    world_prepare(w, options);
    driver_start(w->driver, 4711, world_secret, STR(CLUSTER));
    driver_turn(w->driver);
    assert_true(driver_is_open(w->driver));
    world_listen(w);
}

/* Time passes while the host waits, in steps that are no pause. */
static inline void world_pass(struct world *w, int64_t ms)
{
    for (; ms > 0; ms -= 100) {
        w->mono_ns += 100 * NS_PER_MS;
        w->wall_ns += 100 * NS_PER_MS;
        driver_timers(w->driver);
        do
            driver_turn(w->driver);
        while (driver_has_work(w->driver));
        (void)driver_wait(w->driver, w->mono_ns + 100 * NS_PER_MS);
    }
}

static inline void world_say(struct world *w, drive_session session, const char *name,
                             enum from_agent_kind kind, uint64_t connection)
{
    struct from_agent message = {.kind = kind,
                                 .hello = {.version = WIRE_VERSION,
                                           .machine = str_from(name),
                                           .incarnation = 1,
                                           .connection = connection,
                                           .chips = 4,
                                           .rank_tables = true,
                                           .cluster = w->cluster,
                                           .software = STR("test")}};
    driver_message(w->driver, session, &message);
}

static inline void world_hello(struct world *w, drive_session session, const char *name)
{
    world_say(w, session, name, FROM_AGENT_HELLO, session);
}

static inline void world_tether(struct world *w, drive_session tether, const char *name, uint64_t connection)
{
    world_say(w, tether, name, FROM_AGENT_TETHER, connection);
}

/* Welcome, and the story of it told. */
static inline void world_join(struct world *w, drive_session session, const char *name)
{
    world_hello(w, session, name);
    driver_turn(w->driver);
    world_listen(w);
}

static inline void world_beat(struct world *w, drive_session session)
{
    struct from_agent message = {.kind = FROM_AGENT_HEARTBEAT, .heartbeat = {.sent_ns = w->mono_ns}};
    driver_message(w->driver, session, &message);
}

static inline void world_report(struct world *w, drive_session session, uint64_t number,
                                enum report_kind kind, obj_id task)
{
    struct task_report report = {.kind = kind, .task = task};
    struct from_agent message = {.kind = FROM_AGENT_REPORTS,
                                 .reports = {.number = number, .items = &report, .count = 1}};
    driver_message(w->driver, session, &message);
}

/* `tasks` tasks of four chips each: one a machine. */
static inline void world_create(struct world *w, drive_request request, const char *name, int tasks)
{
    struct buf body BUF_CLEANUP = {0};
    buf_printf(
        &body,
        "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"%s\","
        "\"namespace\":\"default\"},\"spec\":{\"replicatedJobs\":[{\"name\":\"w\",\"replicas\":1,"
        "\"template\":{\"spec\":{\"parallelism\":%d,\"completions\":%d,\"completionMode\":\"Indexed\","
        "\"backoffLimit\":0,\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":"
        "\"c\",\"image\":\"i\",\"command\":[\"true\"],\"resources\":{\"limits\":{\"google.com/tpu\":4}}}]}}}"
        "}}]}}",
        name, tasks, tasks);
    struct write_event write = {.verb = WRITE_CREATE,
                                .object = OBJECT_JOBSET,
                                .namespace_ = STR("default"),
                                .body = buf_str(&body),
                                .grace_s = -1};
    driver_write(w->driver, &write, request);
}

static inline uint8_t world_state(const struct world *w, machine_id machine)
{
    return core_cluster(w->core)->machines[machine].state;
}

/* The log gives the state that the core has. */
static inline void world_done(struct world *w)
{
    struct core *again = core_new();
    struct effects effects = {0};
    struct error error = {0};
    for (size_t i = 0; i < w->log.len; i++) {
        struct drive_record record = {i + 1, w->stamps.items[i], buf_str(&w->log.items[i])};
        if (drive_replay(again, &record, &effects, NULL, NULL, &error) < 0)
            fail_msg("%s", error.text);
        buf_done(&w->log.items[i]);
    }
    assert_true(core_seq(again) == core_seq(w->core) && core_digest(again) == core_digest(w->core));
    vec_done(&effects.list);
    core_free(again);
    driver_free(w->driver);
    core_free(w->core);
    vec_done(&w->log);
    vec_done(&w->stamps);
    buf_done(&w->story);
}

#endif
