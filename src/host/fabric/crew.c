/* Runs a thread for each switch, because drivers block and the switches of a pod change at the same time. */
#include <pthread.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/check.h"
#include "host/fabric/internal.h"
#include "host/fabric/member.h"

enum { CREW_STACK_BYTES = 256 * 1024 };

struct crew {
    struct switches switches;
    struct crew_terms terms;
    struct member members[POD_SWITCHES];
};

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

void crew_close(struct crew *crew)
{
    for (uint32_t i = 0; i < POD_SWITCHES; i++)
        member_leave(&crew->members[i]);
    mem_free(crew);
}

static void *do_task(void *context)
{
    struct member *member = context;
    int64_t begin_ns = member_clock_ns();
    member->task(member);
    member->work->took_ns = member_clock_ns() - begin_ns;
    return NULL;
}

/* Runs `task` for each listed switch with changes, or with `idle_too` for each listed switch. Returns how
 * many did not succeed. If a thread cannot be created, its task runs in the caller's thread. */
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
    return run_tasks(crew, work, member_read, true);
}

uint32_t crew_look(struct crew *crew, uint32_t frequency_ghz, struct switch_work *work,
                   struct switch_optics *optics)
{
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        crew->members[i].optics = &optics[i];
        crew->members[i].frequency_ghz = frequency_ghz;
    }
    return run_tasks(crew, work, member_look, true);
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
    return bad + run_tasks(crew, work, member_carry_out, false);
}

uint32_t crew_undo(struct crew *crew, struct switch_work *work)
{
    struct switch_work *back = mem_alloc(POD_SWITCHES * sizeof *back);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < POD_SWITCHES; i++)
        for (uint32_t pass = 0; pass < 2; pass++) /* removals first: they revert additions */
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
