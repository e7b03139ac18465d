/* world.h - a real controller, fake agents on real connections, and an HTTP client, all on one loop:
 *
 *     struct world w; world_init(&w);                            // 4 machines of 4 chips, the last a spare
 *     struct fake *agent = fake_new(&w, "m-1"); fake_join(agent);    // tether, hello, welcome
 *     assert_int_equal(world_create(&w, "train", 2), 201);       // a JobSet of 2 whole machines
 *     RUN_UNTIL(&w, fake_count(agent, FROM_CONTROLLER_START) == 1);
 *     world_restart(&w);                                         // as after kill -9: nothing is said
 *     world_done(&w);                                            // replays the log and compares digests
 *
 * Agents beat by themselves while `beats`, and obey (report starts, end what they are told to stop) while
 * `obeys`. However long the process stands still, the controller finds fresh beats when it listens again:
 * agents are on machines of their own, and those did not stand still.
 */
#ifndef PHX_TESTS_HOST_CONTROLLER_WORLD_H
#define PHX_TESTS_HOST_CONTROLLER_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "drive/internal.h"
#include "host/controller/internal.h"
#include "host/patience.h"

/* The short lease is for tests in which one runs out; all others take the patient one (world_pass). */
enum { BEAT_MS = 40, STALL_MS = 40, FAKES_MAX = 8, LEASE_MS = 500, PATIENT_LEASE_MS = 30000 };

struct heard {
    enum from_controller_kind kind;
    obj_id task;
    uint64_t number;
};
struct fake {
    struct world *world;
    struct wire_conn *conn, *tether;
    char name[32], refused[128];
    uint64_t incarnation, connection, report_number;
    bool conn_open, tether_open, beats, obeys;
    uint64_t epoch, acked;
    int64_t ack_sent_ns;
    int welcomes, acks, closes;
    VEC(struct heard) heard;
    VEC(obj_id) running;
    struct buf exec_input; /* of commands, all of it */
    bool exec_input_end;
    uint64_t exec_credit; /* given and not used */
};
struct world {
    uv_loop_t loop;
    struct patience patience;
    uv_prepare_t turn;
    int64_t beat_ns, turned_ns,
        stalled_ns; /* last beats and turn of the loop; all that passed between two turns */
    struct controller *controller;
    struct controller_options options;
    struct wire *wire; /* the agents' */
    char dir[64];
    char cluster[1024];
    struct fake fakes[FAKES_MAX];
    size_t fake_count;
    /* The answer to the last request. */
    int code;
    struct buf answer;
};

#define RUN_UNTIL(w, condition) PATIENT_UNTIL(&(w)->patience, condition)

/* --- agents ----------------------------------------------------------------------------------- */

static inline void fake_report_all(struct fake *fake, struct task_report *items, size_t count)
{
    struct from_agent message = {
        .kind = FROM_AGENT_REPORTS,
        .reports = {.number = ++fake->report_number, .items = items, .count = count}};
    wire_send_agent(fake->conn, &message);
}

static inline void fake_report(struct fake *fake, enum report_kind kind, obj_id task, int signal)
{
    struct task_report report = {.kind = kind, .task = task, .signal = signal, .exit_code = signal ? -1 : 0};
    fake_report_all(fake, &report, 1);
}

static inline void fake_beat(struct fake *fake, int64_t sent_ns)
{
    struct from_agent message = {.kind = FROM_AGENT_HEARTBEAT, .heartbeat = {.sent_ns = sent_ns}};
    wire_send_agent(fake->conn, &message);
}

static inline bool fake_runs(const struct fake *fake, obj_id task)
{
    for (size_t i = 0; i < fake->running.len; i++)
        if (fake->running.items[i] == task)
            return true;
    return false;
}

static inline void fake_obey(struct fake *fake, const struct from_controller *message)
{
    if (message->kind == FROM_CONTROLLER_START && !fake_runs(fake, message->start.task)) {
        vec_push(&fake->running, message->start.task);
        fake_report(fake, REPORT_STARTED, message->start.task, 0);
    }
    for (size_t i = 0; message->kind == FROM_CONTROLLER_STOP && i < fake->running.len; i++)
        if (fake->running.items[i] == message->stop.task) {
            vec_remove(&fake->running, i);
            fake_report(fake, REPORT_EXITED, message->stop.task, 15);
        }
}

static inline void fake_hears(struct wire_conn *conn, const struct from_controller *message)
{
    struct fake *fake = wire_conn_context(conn);
    struct heard heard = {.kind = message->kind};
    switch (message->kind) {
    case FROM_CONTROLLER_WELCOME:
        fake->welcomes++;
        fake->epoch = message->welcome.epoch;
        break;
    case FROM_CONTROLLER_REFUSED:
        snprintf(fake->refused, sizeof(fake->refused), STR_FORMAT, STR_ARG(message->text));
        break;
    case FROM_CONTROLLER_HEARTBEAT_ACK:
        fake->acks++;
        fake->ack_sent_ns = message->sent_ns;
        return;
    case FROM_CONTROLLER_REPORTS_ACK:
        fake->acked = message->number;
        break;
    case FROM_CONTROLLER_START:
        heard.task = message->start.task;
        break;
    case FROM_CONTROLLER_STOP:
        heard.task = message->stop.task;
        break;
    case FROM_CONTROLLER_FORGET:
        heard.task = message->task;
        break;
    case FROM_CONTROLLER_LOG_OPEN:
        heard.number = message->log_open.stream;
        break;
    case FROM_CONTROLLER_EXEC_OPEN:
        heard.number = message->exec_open.stream;
        fake->exec_credit = message->exec_open.credit;
        break;
    case FROM_CONTROLLER_EXEC_INPUT:
        heard.number = message->exec_data.stream;
        fake->exec_credit += message->exec_data.credit;
        fake->exec_input_end |= message->exec_data.end;
        buf_add_str(&fake->exec_input, message->exec_data.bytes);
        break;
    case FROM_CONTROLLER_EXEC_RESIZE:
        heard.number = message->exec_resize.stream;
        break;
    default:
        heard.number = message->number;
    }
    vec_push(&fake->heard, heard);
    if (fake->obeys)
        fake_obey(fake, message);
}

static inline void fake_opened(struct wire_conn *conn)
{
    struct fake *fake = wire_conn_context(conn);
    fake->conn_open |= conn == fake->conn;
    fake->tether_open |= conn == fake->tether;
}

static inline void fake_closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    struct fake *fake = wire_conn_context(conn);
    fake->closes++;
    if (conn == fake->conn)
        fake->conn = NULL, fake->conn_open = false;
    if (conn == fake->tether)
        fake->tether = NULL, fake->tether_open = false;
}

static const struct wire_handlers fake_handlers = {
    .opened = fake_opened, .from_controller = fake_hears, .closed = fake_closed};

static inline struct wire_conn *fake_dial(struct fake *fake)
{
    struct wire_target target = {.host = "127.0.0.1",
                                 .port = controller_agent_port(fake->world->controller),
                                 .timeout_ms = PATIENCE_S * 1000};
    struct wire_conn *conn;
    struct error error;
    assert_int_equal(wire_connect(fake->world->wire, &target, &fake_handlers, fake, &conn, &error), 0);
    return conn;
}

static inline struct fake *fake_new(struct world *w, const char *name)
{
    assert_true(w->fake_count < FAKES_MAX);
    struct fake *fake = &w->fakes[w->fake_count++];
    *fake = (struct fake){.world = w, .incarnation = 1, .beats = true, .obeys = true};
    snprintf(fake->name, sizeof(fake->name), "%s", name);
    return fake;
}

static inline void fake_say(struct fake *fake, struct wire_conn *conn, enum from_agent_kind kind,
                            uint32_t version)
{
    struct task_report *reports = mem_alloc((fake->running.len + 1) * sizeof(*reports));
    for (size_t i = 0; i < fake->running.len; i++)
        reports[i] = (struct task_report){.kind = REPORT_STARTED, .task = fake->running.items[i], .pid = 1};
    struct from_agent message = {.kind = kind,
                                 .hello = {.version = version,
                                           .machine = str_from(fake->name),
                                           .incarnation = fake->incarnation,
                                           .connection = fake->connection,
                                           .chips = 4,
                                           .software = STR("test"),
                                           .reports = reports,
                                           .report_count = kind == FROM_AGENT_HELLO ? fake->running.len : 0}};
    wire_send_agent(conn, &message);
    mem_free(reports);
}

static inline const struct machine *fake_machine(const struct fake *fake)
{
    return cluster_find(core_cluster(fake->world->controller->core), str_from(fake->name));
}

static inline const struct machine_sessions *fake_sessions(const struct fake *fake)
{
    return &fake->world->controller->driver->machines[fake_machine(fake)->id];
}

static inline void fake_hello(struct fake *fake)
{
    fake->conn = fake_dial(fake);
    fake_say(fake, fake->conn, FROM_AGENT_HELLO, WIRE_VERSION);
}

static inline void fake_tether(struct fake *fake)
{
    uint32_t before = fake_sessions(fake)->evidence.tethers;
    fake->tether = fake_dial(fake);
    fake_say(fake, fake->tether, FROM_AGENT_TETHER, WIRE_VERSION);
    RUN_UNTIL(fake->world, fake_sessions(fake)->evidence.tethers == before + 1);
}

/* As a live agent does: tether first, both under one number. */
static inline void fake_join(struct fake *fake)
{
    fake->connection++;
    int welcomes = fake->welcomes;
    fake_tether(fake);
    fake_hello(fake);
    RUN_UNTIL(fake->world, fake->welcomes > welcomes);
}

/* The kernel closes it: with FIN, or with RST. */
static inline void fake_cut(struct fake *fake, struct wire_conn **conn, bool reset)
{
    struct linger now = {.l_onoff = 1};
    if (reset)
        assert_int_equal(setsockopt(wire_conn_fd(*conn), SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    wire_close(*conn);
    *conn = NULL;
    fake->conn_open = fake->conn != NULL;
}

static inline size_t fake_count(const struct fake *fake, enum from_controller_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < fake->heard.len; i++)
        count += fake->heard.items[i].kind == kind;
    return count;
}

static inline const struct heard *fake_last(const struct fake *fake, enum from_controller_kind kind)
{
    for (size_t i = fake->heard.len; i-- > 0;)
        if (fake->heard.items[i].kind == kind)
            return &fake->heard.items[i];
    return NULL;
}

/* Before the loop listens: so the beats lie in the controller's sockets when it does. */
static void on_turn(uv_prepare_t *turn)
{
    struct world *w = turn->data;
    int64_t now_ns = controller_mono_ns(), since_ns = now_ns - w->turned_ns;
    w->stalled_ns += since_ns > STALL_MS * NS_PER_MS ? since_ns : 0;
    w->turned_ns = now_ns;
    if (now_ns - w->beat_ns < BEAT_MS * NS_PER_MS)
        return;
    w->beat_ns = now_ns;
    for (size_t i = 0; i < w->fake_count; i++)
        if (w->fakes[i].beats && w->fakes[i].conn_open && w->fakes[i].conn)
            fake_beat(&w->fakes[i], now_ns);
    wire_flush(w->wire);
}

/* --- HTTP ------------------------------------------------------------------------------------- */

struct http {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct buf request, answer;
    bool ended, closed;
    char block[65536];
};

static inline void http_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct http *http = handle->data;
    *buffer = uv_buf_init(http->block, sizeof(http->block));
}

static inline void http_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct http *http = stream->data;
    if (count > 0)
        buf_add(&http->answer, buffer->base, (size_t)count);
    http->ended |= count < 0;
}

static inline void http_connected(uv_connect_t *connect, int status)
{
    struct http *http = connect->data;
    http->ended = status < 0;
    if (status < 0)
        return;
    uv_buf_t buffer = uv_buf_init(http->request.data, (unsigned)http->request.len);
    uv_write(&http->write, (uv_stream_t *)&http->tcp, &buffer, 1, NULL);
    uv_read_start((uv_stream_t *)&http->tcp, http_alloc, http_read);
}

static inline void http_closed(uv_handle_t *handle)
{
    ((struct http *)handle->data)->closed = true;
}

static inline struct http *http_begin(struct world *w, const char *method, const char *path, const char *body)
{
    struct http *http = mem_alloc(sizeof(*http));
    buf_printf(&http->request,
               "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n%s",
               method, path, strlen(body), body);
    struct sockaddr_in address;
    uv_ip4_addr("127.0.0.1", controller_api_port(w->controller), &address);
    uv_tcp_init(&w->loop, &http->tcp);
    http->tcp.data = http->connect.data = http;
    assert_int_equal(uv_tcp_connect(&http->connect, &http->tcp, (struct sockaddr *)&address, http_connected),
                     0);
    return http;
}

/* Status; the whole answer is in w->answer. 0: the connection broke. */
static inline int http_end(struct world *w, struct http *http)
{
    RUN_UNTIL(w, http->ended);
    uv_close((uv_handle_t *)&http->tcp, http_closed);
    RUN_UNTIL(w, http->closed);
    buf_done(&w->answer);
    w->answer = http->answer;
    w->code = 0;
    if (w->answer.len > 12 && strncmp(w->answer.data, "HTTP/1.1 ", 9) == 0)
        w->code = (int)strtol(w->answer.data + 9, NULL, 10);
    buf_done(&http->request);
    mem_free(http);
    return w->code;
}

static inline int world_http(struct world *w, const char *method, const char *path, const char *body)
{
    return http_end(w, http_begin(w, method, path, body));
}

#define JOBSETS "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"

/* `tasks` tasks of four chips each: one a machine. */
static inline void jobset_text(struct buf *out, const char *name, int tasks)
{
    buf_printf(
        out,
        "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"%s\"},"
        "\"spec\":{\"failurePolicy\":{\"maxRestarts\":5},\"replicatedJobs\":[{\"name\":\"w\",\"replicas\":1,"
        "\"template\":{\"spec\":{\"parallelism\":%d,\"completions\":%d,\"completionMode\":\"Indexed\","
        "\"backoffLimit\":0,\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":"
        "\"c\","
        "\"image\":\"i\",\"command\":[\"true\"],\"resources\":{\"limits\":{\"google.com/tpu\":4}}}]}}}}}]}}",
        name, tasks, tasks);
}

static inline int world_create(struct world *w, const char *name, int tasks)
{
    struct buf text = {0};
    jobset_text(&text, name, tasks);
    int code = world_http(w, "POST", JOBSETS, text.data);
    buf_done(&text);
    return code;
}

/* --- the world -------------------------------------------------------------------------------- */

static inline void world_start(struct world *w)
{
    struct error error = {0};
    if (controller_new(&w->loop, &w->options, &w->controller, &error) < 0)
        fail_msg("%s", error.text);
}

static inline int remove_one(const char *path, const struct stat *status, int flag, struct FTW *where)
{
    return remove(path);
}

/* Sets everything up but the controller: options may be changed before world_start. */
static inline void world_prepare(struct world *w, int lease_ms)
{
    memset(w, 0, sizeof(*w));
    snprintf(w->dir, sizeof(w->dir), "/tmp/phalanx-controller-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(
        w->cluster, sizeof(w->cluster),
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},\"spec\":{"
        "\"settings\":{\"lease\":\"%dms\",\"heartbeat\":\"100ms\"},\"machineNames\":\"m-{n}\","
        "\"addresses\":\"127.0.1.1\",\"pods\":[{\"racks\":[{\"machines\":4,\"chips\":4,\"spares\":1}]}]}}",
        lease_ms);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    patience_init(&w->patience, &w->loop);
    w->wire = wire_new(&w->loop);
    uv_prepare_init(&w->loop, &w->turn);
    w->turn.data = w;
    w->turned_ns = controller_mono_ns();
    uv_prepare_start(&w->turn, on_turn);
    uv_unref((uv_handle_t *)&w->turn);
    w->options = (struct controller_options){.data_dir = w->dir, .cluster_json = str_from(w->cluster)};
}

/* With the patient lease. */
static inline void world_init(struct world *w)
{
    world_prepare(w, PATIENT_LEASE_MS);
    world_start(w);
}

static inline void world_init_hasty(struct world *w)
{
    world_prepare(w, LEASE_MS);
    world_start(w);
}

/* Ends the controller without a word to anyone. */
static inline void world_stop(struct world *w)
{
    controller_stop(w->controller);
    for (size_t i = 0; i < w->fake_count; i++)
        RUN_UNTIL(w, !w->fakes[i].conn && !w->fakes[i].tether);
    for (int i = 0; i < 8; i++) /* the controller's handles close */
        uv_run(&w->loop, UV_RUN_NOWAIT);
    controller_free(w->controller);
    w->controller = NULL;
}

static inline void world_restart(struct world *w)
{
    world_stop(w);
    world_start(w);
}

/* The log from its first record gives the state that the controller has. */
static inline void world_check_replay(struct world *w)
{
    struct buf path = {0};
    struct error error = {0};
    struct store *store;
    buf_printf(&path, "%s/log.db", w->dir);
    if (store_open(path.data, &(struct store_options){.read_only = true}, &store, &error) < 0)
        fail_msg("%s", error.text);
    struct log_store log = log_store_sqlite(store);
    uint64_t digest = core_digest(w->controller->core), end = core_seq(w->controller->core);
    for (int snapshot = store_first_seq(store) > 1; snapshot < 2; snapshot++) {
        struct core *core = core_new();
        if (controller_replay(&log, end, snapshot, core, NULL, NULL, &error) < 0)
            fail_msg("%s", error.text);
        assert_true(core_seq(core) == end);
        assert_true(core_digest(core) == digest);
        core_free(core);
    }
    store_close(store);
    buf_done(&path);
}

static inline void world_done(struct world *w)
{
    world_check_replay(w);
    wire_shutdown(w->wire);
    controller_stop(w->controller);
    patience_done(&w->patience);
    uv_close((uv_handle_t *)&w->turn, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    controller_free(w->controller);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    for (size_t i = 0; i < w->fake_count; i++) {
        vec_done(&w->fakes[i].heard);
        vec_done(&w->fakes[i].running);
        buf_done(&w->fakes[i].exec_input);
    }
    buf_done(&w->answer);
    nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* --- what the core thinks --------------------------------------------------------------------- */

static inline int world_state(const struct world *w, const char *machine)
{
    return cluster_find(core_cluster(w->controller->core), str_from(machine))->state;
}

/* Living tasks in `state`. */
static inline size_t world_tasks(const struct world *w, enum task_state state)
{
    size_t count = 0;
    const struct job_store *store = core_jobs(w->controller->core);
    for (size_t i = 0; i < store->machine_count; i++)
        list_for_each(node, &store->machine_tasks[i]) count +=
            container_of(node, struct task, on_machine)->state == state;
    return count;
}

/* Lets `ms` pass. */
static inline void world_wait(struct world *w, int64_t ms)
{
    int64_t until_ns = controller_mono_ns() + ms * NS_PER_MS;
    RUN_UNTIL(w, controller_mono_ns() >= until_ns);
}

/* As if two thirds of a patient lease had passed without a word from anybody; then those who beat are heard.
 * So who does not beat is lost by the second time, and nobody else is. */
static inline void world_pass(struct world *w)
{
    const int64_t ns = PATIENT_LEASE_MS * NS_PER_MS * 2 / 3;
    int64_t now_ns = controller_mono_ns();
    for (size_t i = 0; i < core_cluster(w->controller->core)->machine_count; i++) {
        struct machine_sessions *sessions = &w->controller->driver->machines[i];
        sessions->evidence.renewed_ns -= ns;
        if (heap_has(&sessions->lease))
            sessions->lease.key -= ns; /* of all alike: the heap's order stays */
    }
    for (size_t i = 0; i < w->fake_count; i++)
        if (w->fakes[i].beats && w->fakes[i].conn)
            RUN_UNTIL(w, fake_sessions(&w->fakes[i])->evidence.renewed_ns >= now_ns);
}

/* Time since then in which the loop ran: what the machine took away does not count. */
static inline int64_t world_took_ns(const struct world *w, int64_t began_ns, int64_t stalled_ns)
{
    return controller_mono_ns() - began_ns - (w->stalled_ns - stalled_ns);
}

/* Agents of m-1 to m-3, welcome. */
static inline void world_join_three(struct world *w, struct fake **ret_agents)
{
    static const char *const names[] = {"m-1", "m-2", "m-3"};
    for (int i = 0; i < 3; i++) {
        ret_agents[i] = fake_new(w, names[i]);
        fake_join(ret_agents[i]);
    }
}

/* Adds the agents, and the JobSet "train" with a task running on each. */
static inline void world_train(struct world *w, struct fake **ret_agents)
{
    world_join_three(w, ret_agents);
    assert_int_equal(world_create(w, "train", 3), 201);
    RUN_UNTIL(w, world_tasks(w, TASK_RUNNING) == 3);
}

#endif
