#include "host/fabric/member.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/backoff.h"
#include "base/check.h"
#include "base/hash.h"
#include "host/fabric/line.h"

_Static_assert(2 * POD_CUBES_MAX <= PHX_SWITCH_PORTS_MAX, "a driver holds every port of a pod's switch");

enum { MEMBER_BACKOFF_MAX_MS = 5000, MEMBER_NAP_MS = 50 };

int64_t member_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void member_leave(struct member *member)
{
    if (member->session)
        member->driver->close(member->session);
    member->session = NULL;
}

static void keep_reason(struct switch_work *work, const struct phx_switch_error *error)
{
    if (!work->why[0] && error->message[0])
        snprintf(work->why, sizeof work->why, "%s", error->message);
}

/* Returns the time limit for one answer: that of the terms, but not beyond the deadline. */
static uint32_t time_left_ms(const struct member *member)
{
    int64_t left_ms = member->deadline_ns ? (member->deadline_ns - member_clock_ns()) / 1000000 : INT32_MAX;
    if (left_ms >= member->terms->timeout_ms)
        return member->terms->timeout_ms;
    return left_ms > 1 ? (uint32_t)left_ms : 1;
}

static uint64_t hash_of_login(const struct switch_entry *entry, const char *secret)
{
    uint64_t hash = hash64(0, entry->address, strlen(entry->address));
    hash = hash64(hash, entry->user, strlen(entry->user));
    return hash64(hash, secret, strlen(secret));
}

/* Returns whether this login must wait. A switch may lock an account after a few wrong passwords, so a login
 * that it refused is not repeated for a while. */
static bool login_is_held_back(const struct member *member, uint64_t login)
{
    int64_t since_ns = member_clock_ns() - member->refused.at_ns;
    return member->refused.error.status && member->refused.login == login &&
           since_ns < (int64_t)MEMBER_REFUSED_MS * 1000000;
}

static void note_refusal(struct member *member, uint64_t login, struct phx_switch_error *error)
{
    size_t length = strlen(error->message);
    if (member->entry->secret_file[0])
        snprintf(error->message + length, sizeof error->message - length,
                 "; its password is that of " STR_FORMAT,
                 STR_ARG(str_head_utf8(str_from(member->entry->secret_file), 128)));
    member->refused.error = *error;
    member->refused.login = login;
    member->refused.at_ns = member_clock_ns();
}

int member_enter(struct member *member, struct phx_switch_error *error)
{
    const struct switch_entry *entry = member->entry;
    char read[SWITCH_SECRET_MAX];
    struct error why;
    if (member->session)
        return PHX_SWITCH_OK;
    if (entry->secret_file[0] && switch_secret_read(entry->secret_file, read, &why) < 0)
        return switch_fail(error, PHX_SWITCH_DENIED, "%.250s", why.text);
    const char *secret = entry->secret_file[0] ? read : entry->secret;
    uint64_t login = hash_of_login(entry, secret);
    if (login_is_held_back(member, login)) {
        *error = member->refused.error;
        return error->status;
    }
    uint32_t cubes = member->terms->cubes;
    uint32_t side = !cubes ? 0 : cubes <= SMALL_POD_CUBES ? SMALL_POD_CUBES : SLICE_CUBES_MAX;
    struct phx_switch_config config = {
        .address = entry->address,
        .user = entry->user[0] ? entry->user : NULL,
        .secret = secret[0] ? secret : NULL,
        .timeout_ms = time_left_ms(member),
        .a_ports = side,
        .b_ports = side,
    };
    member->work->tries++;
    int rc = member->driver->open(&config, &member->session, error);
    if (rc == PHX_SWITCH_DENIED)
        note_refusal(member, login, error);
    return rc;
}

static int read_switch(struct member *member, struct phx_switch_error *error)
{
    struct phx_crossconnect pairs[POD_CUBES_MAX];
    struct switch_work *work = member->work;
    uint32_t count, ports = sizeof work->peer / sizeof *work->peer;
    int rc = member->driver->list(member->session, pairs, POD_CUBES_MAX, &count, error);
    work->answers = rc == PHX_SWITCH_OK;
    if (rc < 0)
        return rc;
    memset(work->peer, 0, sizeof work->peer);
    for (uint32_t i = 0; i < count; i++) {
        if (pairs[i].a >= ports || pairs[i].b >= ports) {
            work->answers = false;
            snprintf(error->message, sizeof error->message,
                     "the switch joins %u with %u: no pod has such ports", pairs[i].a, pairs[i].b);
            return error->status = PHX_SWITCH_GARBLED;
        }
        work->peer[pairs[i].a] = (uint16_t)pairs[i].b;
        work->peer[pairs[i].b] = (uint16_t)pairs[i].a;
    }
    return PHX_SWITCH_OK;
}

static bool change_is_in_place(const struct switch_work *work, const struct switch_change *change)
{
    return (work->peer[change->a] == change->b) == change->add;
}

/* Marks the changes that the listed state shows to be in place as applied. */
static void end_applied(struct switch_work *work, bool first)
{
    for (uint32_t i = 0; i < work->count; i++) {
        struct switch_change *change = &work->changes[i];
        bool there = change_is_in_place(work, change);
        if (first)
            change->already = there;
        if (change->end == CHANGE_WAITS && there)
            change->end = CHANGE_APPLIED;
    }
}

static void keep_refusal(struct switch_work *work, bool add, struct phx_crossconnect pair, int status,
                         const struct phx_switch_error *error)
{
    const char *reason = error->message[0] ? error->message : "the mirrors did not settle";
    if (status == PHX_SWITCH_BUSY)
        reason = "a port is in another cross-connect";
    else if (status == PHX_SWITCH_INVALID)
        reason = "the switch has no such ports";
    if (!work->why[0])
        snprintf(work->why, sizeof work->why, "%s %u-%u: %.200s", add ? "add" : "remove", pair.a, pair.b,
                 reason);
}

/* Sends the removals, or the additions, that are still missing. Returns the status of the session. */
static int send_batch(struct member *member, bool add, struct phx_switch_error *error)
{
    struct phx_crossconnect pairs[SWITCH_CHANGES_MAX];
    int statuses[SWITCH_CHANGES_MAX];
    struct switch_work *work = member->work;
    uint32_t count = 0;
    for (uint32_t i = 0; i < work->count; i++)
        if (work->changes[i].end == CHANGE_WAITS && work->changes[i].add == add)
            pairs[count++] = (struct phx_crossconnect){work->changes[i].a, work->changes[i].b};
    if (!count)
        return PHX_SWITCH_OK;
    int rc = add ? member->driver->add(member->session, pairs, count, PHX_SWITCH_SAFE, statuses, error)
                 : member->driver->remove(member->session, pairs, count, statuses, error);
    for (uint32_t i = 0; rc == PHX_SWITCH_OK && i < count; i++)
        if (statuses[i] < 0 && (add || statuses[i] != PHX_SWITCH_ABSENT))
            keep_refusal(work, add, pairs[i], statuses[i], error);
    return rc;
}

/* Makes one attempt at all changes, in one session. */
static int try_changes(struct member *member, bool *first, bool *sent, struct phx_switch_error *error)
{
    int rc = member_enter(member, error);
    if (rc == PHX_SWITCH_OK)
        rc = read_switch(member, error);
    if (rc < 0)
        return rc;
    end_applied(member->work, *first);
    *first = false;
    *sent = true;
    rc = send_batch(member, false, error);
    if (rc == PHX_SWITCH_OK)
        rc = send_batch(member, true, error);
    if (rc == PHX_SWITCH_OK)
        rc = read_switch(member, error);
    if (rc < 0)
        return rc;
    end_applied(member->work, false);
    return PHX_SWITCH_OK;
}

static bool worth_another_try(int status)
{
    return status == PHX_SWITCH_LOST || status == PHX_SWITCH_TIMEOUT || status == PHX_SWITCH_GARBLED;
}

static bool member_is_stopped(const struct member *member)
{
    return member->stop && atomic_load(member->stop);
}

/* Waits before every attempt except the first. Returns false if the deadline leaves no time for another, or
 * the member must stop. */
static bool wait_before(const struct member *member, uint32_t attempt)
{
    int64_t wait_ms =
        attempt ? backoff_wait(member->terms->backoff_ms, MEMBER_BACKOFF_MAX_MS, attempt - 1) : 0;
    if (attempt && member->deadline_ns && member_clock_ns() + wait_ms * 1000000 >= member->deadline_ns)
        return false;
    for (; wait_ms > 0 && !member_is_stopped(member); wait_ms -= MEMBER_NAP_MS)
        poll(NULL, 0, (int)(wait_ms < MEMBER_NAP_MS ? wait_ms : MEMBER_NAP_MS));
    return !attempt || !member_is_stopped(member);
}

void member_carry_out(struct member *member)
{
    struct switch_work *work = member->work;
    bool first = true, sent = false;
    int rc = PHX_SWITCH_TIMEOUT;
    for (uint32_t attempt = 0; attempt < member->terms->attempts && worth_another_try(rc); attempt++) {
        struct phx_switch_error error = {0};
        if (!wait_before(member, attempt))
            break;
        rc = try_changes(member, &first, &sent, &error);
        if (rc < 0) {
            work->answers = false;
            keep_reason(work, &error);
            member_leave(member);
        }
    }
    member->good = true;
    for (uint32_t i = 0; i < work->count; i++) {
        struct switch_change *change = &work->changes[i];
        if (!work->answers && change->end == CHANGE_APPLIED)
            change->end = change->already ? CHANGE_APPLIED : CHANGE_UNKNOWN;
        if (change->end == CHANGE_WAITS)
            change->end = work->answers || !sent ? CHANGE_NOT_APPLIED : CHANGE_UNKNOWN;
        member->good = member->good && change->end == CHANGE_APPLIED;
    }
}

void member_ask(struct member *member, int (*ask)(struct member *member, struct phx_switch_error *error))
{
    int rc = PHX_SWITCH_TIMEOUT;
    for (uint32_t attempt = 0; attempt < member->terms->attempts && worth_another_try(rc); attempt++) {
        struct phx_switch_error error = {0};
        if (!wait_before(member, attempt))
            break;
        rc = member_enter(member, &error);
        if (rc == PHX_SWITCH_OK)
            rc = ask(member, &error);
        if (rc < 0) {
            keep_reason(member->work, &error);
            member_leave(member);
        }
    }
    member->good = rc == PHX_SWITCH_OK;
}

void member_read(struct member *member)
{
    member_ask(member, read_switch);
}
