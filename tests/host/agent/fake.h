/* fake.h - a controller that is only a few answers, for tests of agents. */
#ifndef PHX_TESTS_HOST_AGENT_FAKE_H
#define PHX_TESTS_HOST_AGENT_FAKE_H

#include <stdio.h>

#include "base/check.h"
#include "base/units.h"
#include "base/vec.h"
#include "host/patience.h"
#include "host/wire/wire.h"

#define FAKE_CLUSTER UINT64_C(0xfa4e)

struct told { /* what the agents said about one task */
    uint64_t task;
    int started, exited, start_failed, joined, shards;
    int64_t pid, step, saved_step;
    int32_t exit_code, signal;
    bool fenced;
    char message[200];
    int preparing, notes;
    bool not_ready;
    struct rank_routes routes;
    size_t containers;
    uint32_t restarts; /* of the first one */
    uint8_t phases[8]; /* enum container_phase of each */
};

struct heard_errand { /* its end */
    obj_id errand;
    enum errand_outcome outcome;
    int32_t exit_code;
    char output[ERRAND_OUTPUT_MAX + 1];
};

struct fake {
    uv_loop_t loop;
    struct patience patience;
    struct wire *wire;
    struct wire_listener *listener;
    uint16_t port;
    bool silent; /* acknowledges no heartbeats */
    /* Too long to run out where no test is about that; one that is sets its own. */
    int64_t lease_ns, heartbeat_ns;
    uint64_t acked_ns, longest_gap_ns; /* uv_hrtime of the last heartbeat; the longest time between two */
    uint64_t cluster;                  /* identity of the cluster that it is of */
    uint64_t cluster_said;             /* that of the machine, by the last Hello */
    struct wire_conn *agent;           /* the last that said Hello */
    int hellos, tethers, closed, tethers_closed, heartbeats;
    size_t last_inventory;
    VEC(struct told) told;
    VEC(struct heard_errand *) errands;
    struct buf log;
    bool log_ended;
    char log_error[200];
    void (*on_hello)(struct fake *fake, struct wire_conn *conn);
    void (*on_exec)(struct fake *fake, const struct from_agent *message); /* EXEC_DATA and EXEC_END */
    void *context;
};

static struct told *told(struct fake *fake, uint64_t task)
{
    for (size_t i = 0; i < fake->told.len; i++)
        if (fake->told.items[i].task == task)
            return &fake->told.items[i];
    struct told fresh = {.task = task, .step = -1, .saved_step = -1};
    vec_push(&fake->told, fresh);
    return &vec_last(&fake->told);
}

/* NULL: not yet. */
static inline const struct heard_errand *heard_errand(const struct fake *fake, obj_id errand)
{
    for (size_t i = 0; i < fake->errands.len; i++)
        if (fake->errands.items[i]->errand == errand)
            return fake->errands.items[i];
    return NULL;
}

static void take_errand_end(struct fake *fake, const struct errand_end *end)
{
    struct heard_errand *heard = mem_alloc(sizeof *heard);
    *heard = (struct heard_errand){end->errand, end->outcome, end->exit_code, ""};
    snprintf(heard->output, sizeof heard->output, STR_FORMAT, STR_ARG(end->output));
    vec_push(&fake->errands, heard);
}

static void take_report(struct fake *fake, const struct task_report *report)
{
    struct told *entry = told(fake, report->task);
    entry->containers = report->container_count > 0 ? report->container_count : entry->containers;
    for (size_t i = 0; i < report->container_count && i < 8; i++)
        entry->phases[i] = (uint8_t)report->containers[i].phase;
    if (report->container_count > 0)
        entry->restarts = report->containers[0].restarts;
    switch (report->kind) {
    case REPORT_STARTED:
        entry->not_ready = report->not_ready;
        entry->started++;
        entry->pid = report->pid;
        break;
    case REPORT_EXITED:
        entry->exited++;
        entry->exit_code = report->exit_code;
        entry->signal = report->signal;
        entry->fenced = report->fenced;
        break;
    case REPORT_START_FAILED:
        entry->start_failed++;
        snprintf(entry->message, sizeof entry->message, STR_FORMAT, STR_ARG(report->message));
        break;
    case REPORT_JOINED:
        entry->joined++;
        break;
    case REPORT_SHARD_SAVED:
        entry->shards++;
        entry->saved_step = report->step;
        break;
    case REPORT_ROUTES:
        entry->routes = report->routes;
        break;
    case REPORT_PEER_GONE:
    case REPORT_RETRY:
        break;
    case REPORT_PREPARING:
        entry->preparing++;
        break;
    case REPORT_NOTE:
        entry->notes++;
        break;
    }
}

/* Two of one agent came so far apart, or the last so long ago. */
static uint64_t longest_gap(const struct fake *fake)
{
    uint64_t now_gap_ns = uv_hrtime() - fake->acked_ns;
    return now_gap_ns > fake->longest_gap_ns ? now_gap_ns : fake->longest_gap_ns;
}

static void on_hello(struct fake *fake, struct wire_conn *conn, const struct hello *hello)
{
    fake->agent = conn;
    fake->hellos++;
    fake->acked_ns = uv_hrtime();
    fake->last_inventory = hello->report_count;
    fake->cluster_said = hello->cluster;
    for (size_t i = 0; i < hello->report_count; i++)
        take_report(fake, &hello->reports[i]);
    struct welcome welcome = {.epoch = 1,
                              .lease_ns = fake->lease_ns,
                              .heartbeat_ns = fake->heartbeat_ns,
                              .cluster = fake->cluster,
                              .version = WIRE_VERSION};
    wire_send_controller(conn,
                         &(struct from_controller){.kind = FROM_CONTROLLER_WELCOME, .welcome = welcome});
    if (fake->on_hello)
        fake->on_hello(fake, conn);
}

static void from_agent(struct wire_conn *conn, const struct from_agent *message)
{
    struct fake *fake = wire_conn_context(conn);
    switch (message->kind) {
    case FROM_AGENT_HELLO:
        on_hello(fake, conn, &message->hello);
        break;
    case FROM_AGENT_TETHER:
        fake->tethers++;
        break;
    case FROM_AGENT_HEARTBEAT:
        fake->heartbeats++;
        fake->longest_gap_ns = longest_gap(fake);
        fake->acked_ns = uv_hrtime();
        if (!fake->silent)
            wire_send_controller(conn, &(struct from_controller){.kind = FROM_CONTROLLER_HEARTBEAT_ACK,
                                                                 .sent_ns = message->heartbeat.sent_ns});
        /* fallthrough */
    case FROM_AGENT_STEPS:
        for (size_t i = 0; i < message->heartbeat.step_count; i++)
            told(fake, message->heartbeat.steps[i].task)->step = message->heartbeat.steps[i].step;
        break;
    case FROM_AGENT_REPORTS:
        for (size_t i = 0; i < message->reports.count; i++)
            take_report(fake, &message->reports.items[i]);
        for (size_t i = 0; i < message->reports.errand_count; i++)
            take_errand_end(fake, &message->reports.errands[i]);
        wire_send_controller(conn, &(struct from_controller){.kind = FROM_CONTROLLER_REPORTS_ACK,
                                                             .number = message->reports.number});
        break;
    case FROM_AGENT_LOG_DATA:
        buf_add_str(&fake->log, message->log_data.bytes);
        fake->log_ended = fake->log_ended || message->log_data.end;
        if (message->log_data.error.len > 0)
            snprintf(fake->log_error, sizeof fake->log_error, STR_FORMAT, STR_ARG(message->log_data.error));
        break;
    case FROM_AGENT_EXEC_DATA:
    case FROM_AGENT_EXEC_END:
        if (fake->on_exec)
            fake->on_exec(fake, message);
        break;
    }
}

static void on_closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    struct fake *fake = wire_conn_context(conn);
    fake->closed++;
    if (fake->agent == conn)
        fake->agent = NULL;
}

static const struct wire_handlers handlers = {.from_agent = from_agent, .closed = on_closed};

static void fake_init(struct fake *fake)
{
    *fake = (struct fake){
        .lease_ns = 60 * NS_PER_SECOND, .heartbeat_ns = 200 * NS_PER_MS, .cluster = FAKE_CLUSTER};
    assert_int_equal(uv_loop_init(&fake->loop), 0);
    patience_init(&fake->patience, &fake->loop);
    fake->wire = wire_new(&fake->loop);
    struct error error;
    assert_int_equal(
        wire_listen(fake->wire, "127.0.0.1", 0, &handlers, fake, &fake->listener, &fake->port, &error), 0);
}

static void fake_done(struct fake *fake)
{
    wire_shutdown(fake->wire);
    patience_done(&fake->patience);
    while (uv_run(&fake->loop, UV_RUN_DEFAULT) != 0)
        ;
    assert_int_equal(uv_loop_close(&fake->loop), 0);
    vec_done(&fake->told);
    for (size_t i = 0; i < fake->errands.len; i++)
        mem_free(fake->errands.items[i]);
    vec_done(&fake->errands);
    buf_done(&fake->log);
}

#define RUN_UNTIL(fake, condition) PATIENT_UNTIL(&(fake)->patience, condition)

#endif
