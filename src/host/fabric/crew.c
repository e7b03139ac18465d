/* A thread for each switch: drivers block, and a pod's switches change at the same time. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/arena.h"
#include "base/backoff.h"
#include "base/check.h"
#include "host/fabric/internal.h"
#include "host/fabric/switches.h"

_Static_assert(2 * POD_CUBES_MAX <= PHX_SWITCH_PORTS_MAX, "a driver holds every port of a pod's switch");

enum { CREW_BACKOFF_MAX_MS = 5000, CREW_STACK_BYTES = 256 * 1024 };

struct member {
    const struct switch_entry *entry; /* NULL: not listed */
    const struct phx_switch_driver *driver;
    struct phx_switch *session; /* NULL: none is open */
    const struct crew_terms *terms;
    struct switch_work *work;
    void (*task)(struct member *member);
    bool good; /* the task reached what it was for */
};
struct crew {
    struct switches switches;
    struct crew_terms terms;
    struct member members[POD_SWITCHES];
};

static int64_t crew_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int switches_open(const struct switches *switches, const struct crew_terms *terms, struct crew **ret_crew,
                  struct error *error)
{
    CHECK(terms->attempts >= 1 && terms->timeout_ms >= 1);
    struct crew *crew = mem_alloc(sizeof *crew);
    crew->switches = *switches;
    crew->terms = *terms;
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        struct member *member = &crew->members[i];
        if (!switches->entry[i].listed)
            continue;
        member->entry = &crew->switches.entry[i];
        member->terms = &crew->terms;
        int rc = driver_find(member->entry->driver, &member->driver, error);
        if (rc < 0) {
            mem_free(crew);
            return error ? error_wrap(error, "switch %s", pod_switch_name(pod_switch_at(i))) : rc;
        }
    }
    *ret_crew = crew;
    return 0;
}

static void leave_session(struct member *member)
{
    if (member->session)
        member->driver->close(member->session);
    member->session = NULL;
}

void crew_close(struct crew *crew)
{
    for (uint32_t i = 0; i < POD_SWITCHES; i++)
        leave_session(&crew->members[i]);
    mem_free(crew);
}

/* --- one switch ----------------------------------------------------------------------------------- */

static void keep_reason(struct switch_work *work, const struct phx_switch_error *error)
{
    if (!work->why[0] && error->message[0])
        snprintf(work->why, sizeof work->why, "%s", error->message);
}

static int enter_session(struct member *member, struct phx_switch_error *error)
{
    uint32_t cubes = member->terms->cubes;
    uint32_t side = !cubes ? 0 : cubes <= SMALL_POD_CUBES ? SMALL_POD_CUBES : SLICE_CUBES_MAX;
    struct phx_switch_config config = {
        .address = member->entry->address,
        .user = member->entry->user[0] ? member->entry->user : NULL,
        .secret = member->entry->secret[0] ? member->entry->secret : NULL,
        .timeout_ms = member->terms->timeout_ms,
        .a_ports = side,
        .b_ports = side,
    };
    if (member->session)
        return PHX_SWITCH_OK;
    member->work->tries++;
    return member->driver->open(&config, &member->session, error);
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

/* Ends the changes that the state of the switch shows to be in place. */
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

/* Sends the removals, or the additions, that are still missing. The result is that of the session. */
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

/* One try: everything in one session. */
static int try_changes(struct member *member, bool *first, bool *sent, struct phx_switch_error *error)
{
    int rc = enter_session(member, error);
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

static void wait_before(const struct member *member, uint32_t attempt)
{
    if (attempt)
        poll(NULL, 0, (int)backoff_wait(member->terms->backoff_ms, CREW_BACKOFF_MAX_MS, attempt - 1));
}

static void carry_out(struct member *member)
{
    struct switch_work *work = member->work;
    bool first = true, sent = false;
    int rc = PHX_SWITCH_TIMEOUT;
    for (uint32_t attempt = 0; attempt < member->terms->attempts && worth_another_try(rc); attempt++) {
        struct phx_switch_error error = {0};
        wait_before(member, attempt);
        rc = try_changes(member, &first, &sent, &error);
        if (rc < 0) {
            work->answers = false;
            keep_reason(work, &error);
            leave_session(member);
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

static void read_only(struct member *member)
{
    int rc = PHX_SWITCH_TIMEOUT;
    for (uint32_t attempt = 0; attempt < member->terms->attempts && worth_another_try(rc); attempt++) {
        struct phx_switch_error error = {0};
        wait_before(member, attempt);
        rc = enter_session(member, &error);
        if (rc == PHX_SWITCH_OK)
            rc = read_switch(member, &error);
        if (rc < 0) {
            keep_reason(member->work, &error);
            leave_session(member);
        }
    }
    member->good = rc == PHX_SWITCH_OK;
}

/* --- all of them ---------------------------------------------------------------------------------- */

static void *do_task(void *context)
{
    struct member *member = context;
    int64_t begin_ns = crew_clock_ns();
    member->task(member);
    member->work->took_ns = crew_clock_ns() - begin_ns;
    return NULL;
}

/* Runs `task` for each listed switch with changes (or each listed one, if `idle_too`); returns how many did
 * not succeed. A thread that cannot be made does its task here. */
static uint32_t run_tasks(struct crew *crew, struct switch_work *work, void (*task)(struct member *member),
                          bool idle_too)
{
    pthread_t threads[POD_SWITCHES];
    bool started[POD_SWITCHES] = {false};
    pthread_attr_t attributes;
    uint32_t bad = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, CREW_STACK_BYTES);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        struct member *member = &crew->members[i];
        if (!member->entry || (!idle_too && !work[i].count))
            continue;
        member->work = &work[i];
        member->task = task;
        work[i].tries = 0;
        started[i] = pthread_create(&threads[i], &attributes, do_task, member) == 0;
        if (!started[i])
            do_task(member);
    }
    pthread_attr_destroy(&attributes);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
        if (crew->members[i].entry && (idle_too || work[i].count))
            bad += !crew->members[i].good;
    }
    return bad;
}

uint32_t crew_read(struct crew *crew, struct switch_work *work)
{
    return run_tasks(crew, work, read_only, true);
}

uint32_t crew_carry_out(struct crew *crew, struct switch_work *work)
{
    uint32_t bad = 0;
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        bool listed = crew->members[i].entry;
        for (uint32_t k = 0; k < work[i].count; k++) {
            const struct switch_change *change = &work[i].changes[k];
            CHECK(change->a < 2 * POD_CUBES_MAX + 2 && change->b < 2 * POD_CUBES_MAX + 2);
            work[i].changes[k].end = listed ? CHANGE_WAITS : CHANGE_NOT_APPLIED;
        }
        if (work[i].count && !listed) {
            snprintf(work[i].why, sizeof work[i].why, "the switch is not listed");
            bad++;
        }
    }
    return bad + run_tasks(crew, work, carry_out, false);
}

uint32_t crew_undo(struct crew *crew, struct switch_work *work)
{
    struct switch_work *back = mem_alloc(POD_SWITCHES * sizeof *back);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < POD_SWITCHES; i++)
        for (uint32_t pass = 0; pass < 2; pass++) /* removals first: what was added */
            for (uint32_t k = work[i].count; k > 0; k--) {
                struct switch_change change = work[i].changes[k - 1];
                bool done = change.end == CHANGE_APPLIED || change.end == CHANGE_UNKNOWN;
                if (!done || change.already || change.add != (pass == 0))
                    continue;
                change.add = !change.add;
                back[i].changes[back[i].count++] = change;
            }
    crew_carry_out(crew, back);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        bool good = true;
        for (uint32_t k = 0; k < work[i].count; k++)
            for (uint32_t m = 0; m < back[i].count; m++) {
                struct switch_change *change = &work[i].changes[k];
                if (back[i].changes[m].a != change->a || back[i].changes[m].b != change->b)
                    continue;
                if (back[i].changes[m].end == CHANGE_APPLIED)
                    change->end = CHANGE_UNDONE;
                else
                    good = false;
            }
        wrong += !good;
    }
    mem_free(back);
    return wrong;
}
