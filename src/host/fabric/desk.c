#include "host/fabric/desk.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/list.h"
#include "base/vec.h"
#include "host/fabric/internal.h"
#include "host/fabric/member.h"

enum { DESK_ATTEMPTS = 1000, DESK_ANSWER_MS = 2000, DESK_BACKOFF_MS = 50, DESK_STACK_BYTES = 512 * 1024 };

/* A request on its way to a thread, or its answer on the way back; or the result of an inspection. */
struct order {
    struct list_node node;
    struct clerk *clerk;
    bool is_health;
    uint64_t operation;
    int64_t timeout_ns;
    struct switch_work work;
    enum switch_state state;
    struct switch_alarms {
        char text[SWITCH_ALARMS_MAX][SWITCH_TEXT_MAX];
        size_t count;
    } alarms;
    uint16_t bad_ports[2 * POD_CUBES_MAX];
    size_t bad_port_count;
};

/* How a switch is reached. */
struct reach {
    struct switch_entry entry;
    uint32_t cubes; /* as in struct crew_terms */
};

/* The thread of one switch. */
struct clerk {
    struct desk *desk;
    char name[SWITCH_TEXT_MAX];
    struct reach wanted; /* from the newest request or cluster file; under desk->lock */
    bool moved;          /* `wanted` differs from `entry` and `terms`; under desk->lock */
    struct switch_entry entry;
    struct crew_terms terms;
    bool unseen; /* it moved: this may be another switch than at the last inspection */
    struct member member;
    pthread_t thread;
    struct list_node inbox; /* orders; under desk->lock */
    pthread_cond_t wake;    /* uses the monotonic clock */
    bool running;
    struct order *last_look;           /* the last reported health; NULL: none yet */
    uint16_t peers[2 * POD_CUBES_MAX]; /* by port, from 1, at the last successful inspection */
};

struct desk {
    struct desk_calls calls;
    uv_async_t async;
    pthread_mutex_t lock;
    struct list_node outbox;    /* under lock */
    bool closing;               /* under lock */
    atomic_bool stop;           /* `closing`, for requests under way */
    VEC(struct clerk *) clerks; /* used only by the loop's thread */
};

/* --- a clerk's thread ------------------------------------------------------------------------------ */

static void post(struct desk *desk, struct order *order)
{
    pthread_mutex_lock(&desk->lock);
    list_append(&desk->outbox, &order->node);
    pthread_mutex_unlock(&desk->lock);
    uv_async_send(&desk->async);
}

/* Waits for a request or a move, at most one period. Returns NULL if no request came. *ret_closing is set if
 * the desk closes. */
static struct order *next_order(struct clerk *clerk, bool *ret_closing)
{
    struct desk *desk = clerk->desk;
    struct order *order = NULL;
    int64_t until_ns = member_clock_ns() + (int64_t)desk->calls.period_ms * 1000000;
    struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    pthread_mutex_lock(&desk->lock);
    while (list_empty(&clerk->inbox) && !desk->closing && !clerk->moved)
        if (pthread_cond_timedwait(&clerk->wake, &desk->lock, &until) != 0)
            break;
    *ret_closing = desk->closing;
    if (!list_empty(&clerk->inbox)) {
        order = container_of(clerk->inbox.next, struct order, node);
        list_remove(&order->node);
    }
    pthread_mutex_unlock(&desk->lock);
    return order;
}

static void put_alarm(struct order *look, const char *text)
{
    if (look->alarms.count < SWITCH_ALARMS_MAX)
        snprintf(look->alarms.text[look->alarms.count++], SWITCH_TEXT_MAX, "%s", text);
}

/* Reads the alarms. A switch that refuses to list them counts as having none; one that does not answer is an
 * error. */
static int look_at_alarms(struct clerk *clerk, struct order *look, bool *bad, struct phx_switch_error *error)
{
    struct phx_switch_alarm alarms[SWITCH_ALARMS_MAX];
    uint32_t count = 0;
    char text[SWITCH_TEXT_MAX];
    if (!clerk->member.driver->alarms)
        return PHX_SWITCH_OK;
    int rc = clerk->member.driver->alarms(clerk->member.session, alarms, SWITCH_ALARMS_MAX, &count, error);
    if (rc < 0)
        return rc == PHX_SWITCH_LOST || rc == PHX_SWITCH_TIMEOUT ? rc : PHX_SWITCH_OK;
    for (uint32_t i = 0; i < count && i < SWITCH_ALARMS_MAX; i++) {
        if (alarms[i].port && alarms[i].port <= 2 * POD_CUBES_MAX)
            bad[alarms[i].port] = true;
        alarm_describe(&alarms[i], text, sizeof text);
        put_alarm(look, text);
    }
    return PHX_SWITCH_OK;
}

static int look_at_ports(struct clerk *clerk, bool *bad, uint16_t *ret_peers, struct phx_switch_error *error)
{
    struct phx_switch_port ports[2 * POD_CUBES_MAX];
    struct phx_switch_identity identity;
    int rc = clerk->member.driver->identify(clerk->member.session, &identity, error);
    uint32_t count = identity.a_ports + identity.b_ports;
    if (rc == PHX_SWITCH_OK && count > 2 * POD_CUBES_MAX)
        count = 2 * POD_CUBES_MAX;
    if (rc == PHX_SWITCH_OK)
        rc = clerk->member.driver->ports(clerk->member.session, 1, count, ports, error);
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++) {
        const struct phx_switch_port *at = &ports[i];
        uint32_t port = 1 + i;
        ret_peers[i] = (uint16_t)at->peer;
        bool dark = at->peer && port > identity.a_ports && at->power_mdbm != PHX_POWER_UNKNOWN &&
                    at->power_mdbm < DESK_DARK_MDBM;
        if (at->state == PHX_PORT_FAILED || (at->peer && at->shutter_closed) || dark)
            bad[port] = true;
    }
    return rc;
}

static bool looks_equal(const struct order *a, const struct order *b)
{
    if (a->state != b->state || a->alarms.count != b->alarms.count || a->bad_port_count != b->bad_port_count)
        return false;
    for (size_t i = 0; i < a->alarms.count; i++)
        if (strcmp(a->alarms.text[i], b->alarms.text[i]) != 0)
            return false;
    return memcmp(a->bad_ports, b->bad_ports, a->bad_port_count * sizeof *a->bad_ports) == 0;
}

/* Fills in the alarms and bad ports of *seen. In a new session the switch must show the same circuits as
 * before, because it may have forgotten them in a restart. */
static int look_in_session(struct clerk *clerk, bool same_session, struct order *seen,
                           struct phx_switch_error *error)
{
    bool bad[2 * POD_CUBES_MAX + 1] = {false};
    uint16_t peers[2 * POD_CUBES_MAX] = {0};
    int rc = clerk->member.driver ? member_enter(&clerk->member, error) : PHX_SWITCH_UNSUPPORTED;
    if (rc == PHX_SWITCH_OK)
        rc = look_at_ports(clerk, bad, peers, error);
    if (rc == PHX_SWITCH_OK)
        rc = look_at_alarms(clerk, seen, bad, error);
    if (rc < 0) {
        member_leave(&clerk->member);
        return rc;
    }
    bool others = !same_session && memcmp(peers, clerk->peers, sizeof peers) != 0;
    memcpy(clerk->peers, peers, sizeof peers);
    if (others) {
        snprintf(error->message, sizeof error->message,
                 "its cross-connects changed while its session was lost");
        return error->status = PHX_SWITCH_LOST;
    }
    for (uint32_t port = 1; port <= 2 * POD_CUBES_MAX; port++)
        if (bad[port])
            seen->bad_ports[seen->bad_port_count++] = (uint16_t)port;
    return PHX_SWITCH_OK;
}

/* Returns whether to inspect the switch again in a new session. A session that broke since the last request,
 * or one late answer, does not mean that the switch is down. */
static bool is_worth_a_second_look(const struct clerk *clerk, int rc, bool was_open)
{
    bool was_up = clerk->last_look && clerk->last_look->state != SWITCH_DOWN;
    return (rc == PHX_SWITCH_LOST && was_open) || (rc == PHX_SWITCH_TIMEOUT && was_up);
}

/* Inspects ports and alarms, and posts the health of the switch if it has changed. */
static void look(struct clerk *clerk)
{
    struct phx_switch_error error = {0};
    struct order *seen = mem_alloc(sizeof *seen);
    seen->clerk = clerk;
    seen->is_health = true;
    clerk->member.work = &seen->work;
    clerk->member.deadline_ns = 0;
    bool was_open = clerk->member.session != NULL;
    int rc = look_in_session(clerk, !clerk->unseen, seen, &error);
    clerk->unseen = false;
    if (is_worth_a_second_look(clerk, rc, was_open)) {
        error = (struct phx_switch_error){0};
        rc = look_in_session(clerk, false, seen, &error);
    }
    if (rc < 0)
        seen->alarms.count = 0;
    seen->state = rc < 0                                       ? SWITCH_DOWN
                  : seen->alarms.count || seen->bad_port_count ? SWITCH_DEGRADED
                                                               : SWITCH_UP;
    snprintf(seen->work.why, sizeof seen->work.why, "%s", rc < 0 ? error.message : "");
    if (clerk->last_look && looks_equal(clerk->last_look, seen)) {
        mem_free(seen);
        return;
    }
    mem_free(clerk->last_look);
    clerk->last_look = mem_alloc(sizeof *seen);
    *clerk->last_look = *seen;
    post(clerk->desk, seen);
}

static bool reach_equal(const struct reach *a, const struct reach *b)
{
    return strcmp(a->entry.driver, b->entry.driver) == 0 && strcmp(a->entry.address, b->entry.address) == 0 &&
           strcmp(a->entry.user, b->entry.user) == 0 &&
           strcmp(a->entry.secret_file, b->entry.secret_file) == 0 && a->cubes == b->cubes;
}

/* Closes the session of a clerk that has moved; the next one is opened as `wanted` says. */
static void follow_move(struct clerk *clerk)
{
    struct reach reach;
    pthread_mutex_lock(&clerk->desk->lock);
    bool moved = clerk->moved;
    clerk->moved = false;
    reach = clerk->wanted;
    pthread_mutex_unlock(&clerk->desk->lock);
    if (!moved)
        return;
    member_leave(&clerk->member);
    clerk->entry = reach.entry;
    clerk->terms.cubes = reach.cubes;
    clerk->member.driver = NULL;
    (void)driver_find(clerk->entry.driver, &clerk->member.driver, NULL); /* reports say that there is none */
    clerk->unseen = clerk->last_look && clerk->last_look->state != SWITCH_DOWN;
}

static void carry_order_out(struct clerk *clerk, struct order *order)
{
    clerk->member.work = &order->work;
    clerk->member.deadline_ns = member_clock_ns() + order->timeout_ns;
    clerk->unseen = false; /* the report contains the circuits */
    if (!clerk->member.driver) {
        for (uint32_t i = 0; i < order->work.count; i++)
            order->work.changes[i].end = CHANGE_NOT_APPLIED;
        snprintf(order->work.why, sizeof order->work.why, "no driver speaks %.64s", clerk->entry.driver);
    } else if (order->work.count) {
        member_carry_out(&clerk->member);
    } else {
        member_read(&clerk->member);
        order->work.answers = clerk->member.good;
    }
    post(clerk->desk, order);
}

static void *clerk_run(void *context)
{
    struct clerk *clerk = context;
    for (bool closing = false; !closing;) {
        struct order *order = next_order(clerk, &closing);
        follow_move(clerk);
        if (order && closing)
            mem_free(order); /* the core asks again after a boot */
        else if (order)
            carry_order_out(clerk, order);
        if (!closing)
            look(clerk);
    }
    member_leave(&clerk->member);
    return NULL;
}

/* --- the loop's side ------------------------------------------------------------------------------- */

static enum switch_outcome outcome_of(const struct switch_work *work)
{
    uint32_t applied = 0, changed = 0;
    for (uint32_t i = 0; i < work->count; i++) {
        applied += work->changes[i].end == CHANGE_APPLIED;
        changed += work->changes[i].end == CHANGE_APPLIED && !work->changes[i].already;
    }
    if (!work->answers)
        return SWITCH_UNREACHABLE;
    return applied == work->count ? SWITCH_DONE : changed ? SWITCH_PARTLY : SWITCH_REFUSED;
}

static enum circuit_status circuit_status_of(enum change_end end)
{
    switch (end) {
    case CHANGE_APPLIED:
        return CIRCUIT_APPLIED;
    case CHANGE_UNDONE:
        return CIRCUIT_UNDONE;
    case CHANGE_UNKNOWN:
        return CIRCUIT_UNKNOWN;
    case CHANGE_WAITS:
    case CHANGE_NOT_APPLIED:
        break;
    }
    return CIRCUIT_NOT_APPLIED;
}

static void tell_report(struct desk *desk, const struct order *order)
{
    const struct switch_work *work = &order->work;
    struct circuit_result results[SWITCH_CHANGES_MAX];
    struct circuit present[SWITCH_CIRCUITS_MAX];
    struct switch_report report = {.name = str_from(order->clerk->name),
                                   .operation = order->operation,
                                   .outcome = outcome_of(work),
                                   .results = results,
                                   .result_count = work->count,
                                   .read = work->answers,
                                   .present = present};
    for (uint32_t i = 0; i < work->count; i++)
        results[i] =
            (struct circuit_result){.circuit = {(uint16_t)work->changes[i].a, (uint16_t)work->changes[i].b},
                                    .make = work->changes[i].add,
                                    .status = circuit_status_of(work->changes[i].end)};
    for (uint32_t port = 1; work->answers && port < 2 * POD_CUBES_MAX + 2; port++)
        if (work->peer[port] > port && report.present_count < SWITCH_CIRCUITS_MAX)
            present[report.present_count++] = (struct circuit){(uint16_t)port, work->peer[port]};
    if (report.outcome != SWITCH_DONE)
        report.reason = str_from(work->why[0] ? work->why : "the switch does not answer");
    desk->calls.report(desk->calls.context, &report);
}

static void tell_health(struct desk *desk, struct order *order)
{
    struct str alarms[SWITCH_ALARMS_MAX];
    struct switch_health health = {.name = str_from(order->clerk->name),
                                   .state = order->state,
                                   .alarms = alarms,
                                   .alarm_count = order->alarms.count,
                                   .bad_ports = order->bad_ports,
                                   .bad_port_count = order->bad_port_count,
                                   .reason = str_from(order->work.why)};
    for (size_t i = 0; i < order->alarms.count; i++)
        alarms[i] = str_from(order->alarms.text[i]);
    desk->calls.health(desk->calls.context, &health);
}

static struct order *take_posted(struct desk *desk)
{
    struct order *order = NULL;
    pthread_mutex_lock(&desk->lock);
    if (!list_empty(&desk->outbox)) {
        order = container_of(desk->outbox.next, struct order, node);
        list_remove(&order->node);
    }
    pthread_mutex_unlock(&desk->lock);
    return order;
}

static void on_posted(uv_async_t *async)
{
    struct desk *desk = async->data;
    for (struct order *order; (order = take_posted(desk));) {
        if (order->is_health)
            tell_health(desk, order);
        else
            tell_report(desk, order);
        mem_free(order);
    }
}

struct desk *desk_new(uv_loop_t *loop, const struct desk_calls *calls)
{
    struct desk *desk = mem_alloc(sizeof *desk);
    desk->calls = *calls;
    if (!desk->calls.period_ms)
        desk->calls.period_ms = DESK_PERIOD_MS;
    pthread_mutex_init(&desk->lock, NULL);
    list_init(&desk->outbox);
    desk->async.data = desk;
    CHECK(uv_async_init(loop, &desk->async, on_posted) == 0);
    uv_unref((uv_handle_t *)&desk->async);
    return desk;
}

static void reach_of(const struct switch_apply *apply, struct reach *ret_reach)
{
    *ret_reach = (struct reach){.entry = switch_entry_of(apply->protocol, apply->address, apply->login)};
    if (str_is(apply->protocol, "sai")) /* SAI's user creates the ports; other switches know their size */
        ret_reach->cubes = apply->cubes;
}

static struct clerk *clerk_new(struct desk *desk, const struct switch_apply *apply)
{
    struct clerk *clerk = mem_alloc(sizeof *clerk);
    pthread_condattr_t monotonic;
    pthread_attr_t attributes;
    clerk->desk = desk;
    snprintf(clerk->name, sizeof clerk->name, STR_FORMAT, STR_ARG(apply->name));
    reach_of(apply, &clerk->wanted);
    clerk->entry = clerk->wanted.entry;
    clerk->terms = (struct crew_terms){.cubes = clerk->wanted.cubes,
                                       .timeout_ms = DESK_ANSWER_MS,
                                       .attempts = DESK_ATTEMPTS,
                                       .backoff_ms = DESK_BACKOFF_MS};
    clerk->member = (struct member){.entry = &clerk->entry, .terms = &clerk->terms, .stop = &desk->stop};
    (void)driver_find(clerk->entry.driver, &clerk->member.driver, NULL); /* reports say that there is none */
    list_init(&clerk->inbox);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&clerk->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, DESK_STACK_BYTES);
    clerk->running = pthread_create(&clerk->thread, &attributes, clerk_run, clerk) == 0;
    pthread_attr_destroy(&attributes);
    vec_push(&desk->clerks, clerk);
    return clerk;
}

static struct clerk *clerk_find(struct desk *desk, struct str name)
{
    for (size_t i = 0; i < desk->clerks.len; i++)
        if (str_is(name, desk->clerks.items[i]->name))
            return desk->clerks.items[i];
    return NULL;
}

void desk_follow(struct desk *desk, const struct switch_apply *apply)
{
    struct clerk *clerk = clerk_find(desk, apply->name);
    struct reach reach;
    if (!clerk)
        return;
    reach_of(apply, &reach);
    pthread_mutex_lock(&desk->lock);
    if (!reach_equal(&reach, &clerk->wanted)) {
        clerk->wanted = reach;
        clerk->moved = true;
        pthread_cond_signal(&clerk->wake);
    }
    pthread_mutex_unlock(&desk->lock);
}

void desk_apply(struct desk *desk, const struct switch_apply *apply)
{
    CHECK(apply->break_count + apply->make_count <= SWITCH_CHANGES_MAX);
    struct clerk *clerk = clerk_find(desk, apply->name);
    if (clerk)
        desk_follow(desk, apply);
    else
        clerk = clerk_new(desk, apply);
    struct order *order = mem_alloc(sizeof *order);
    order->clerk = clerk;
    order->operation = apply->operation;
    order->timeout_ns = apply->timeout_ns;
    for (size_t i = 0; i < apply->break_count + apply->make_count; i++) {
        bool add = i >= apply->break_count;
        struct circuit circuit = add ? apply->makes[i - apply->break_count] : apply->breaks[i];
        order->work.changes[order->work.count++] =
            (struct switch_change){.add = add, .a = circuit.plus, .b = circuit.minus};
    }
    if (!clerk->running) {
        for (uint32_t i = 0; i < order->work.count; i++)
            order->work.changes[i].end = CHANGE_NOT_APPLIED;
        snprintf(order->work.why, sizeof order->work.why, "the controller can start no thread");
        post(desk, order);
        return;
    }
    pthread_mutex_lock(&desk->lock);
    list_append(&clerk->inbox, &order->node);
    pthread_cond_signal(&clerk->wake);
    pthread_mutex_unlock(&desk->lock);
}

static void free_orders(struct list_node *box)
{
    while (!list_empty(box)) {
        struct order *order = container_of(box->next, struct order, node);
        list_remove(&order->node);
        mem_free(order);
    }
}

static void on_desk_closed(uv_handle_t *handle)
{
    struct desk *desk = handle->data;
    pthread_mutex_destroy(&desk->lock);
    mem_free(desk);
}

void desk_close(struct desk *desk)
{
    atomic_store(&desk->stop, true);
    pthread_mutex_lock(&desk->lock);
    desk->closing = true;
    for (size_t i = 0; i < desk->clerks.len; i++)
        pthread_cond_signal(&desk->clerks.items[i]->wake);
    pthread_mutex_unlock(&desk->lock);
    for (size_t i = 0; i < desk->clerks.len; i++) {
        struct clerk *clerk = desk->clerks.items[i];
        if (clerk->running)
            pthread_join(clerk->thread, NULL);
        free_orders(&clerk->inbox);
        pthread_cond_destroy(&clerk->wake);
        mem_free(clerk->last_look);
        mem_free(clerk);
    }
    vec_done(&desk->clerks);
    free_orders(&desk->outbox);
    uv_close((uv_handle_t *)&desk->async, on_desk_closed);
}
