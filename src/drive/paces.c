/* paces.c - combines the time that ranks work on their steps into one event for each JobSet and window.
 *
 * Ranks report sums since they began. A window is the difference between two readings of the sums, so a lost
 * or late report does no harm. Ranks without a new report have made no step in the window.
 */
#include "drive/internal.h"

struct job_pace { /* of one JobSet */
    obj_id jobset;
    int32_t attempt;
    uint32_t slot_count;
    struct pace_sums *begun, *newest; /* [slot_count] at the window's beginning; now */
    bool moved;                       /* something was reported since the window's beginning */
    struct heap_node due;             /* in driver->paces_due while something was */
};

static void begin_attempt(struct job_pace *pace, const struct jobset *jobset)
{
    size_t size = (jobset->slots.count + 1) * sizeof(*pace->begun);
    pace->attempt = jobset->attempt;
    pace->slot_count = jobset->slots.count;
    pace->begun = mem_realloc(pace->begun, size);
    pace->newest = mem_realloc(pace->newest, size);
    memset(pace->begun, 0, size);
    memset(pace->newest, 0, size);
    pace->moved = false;
}

static struct job_pace *pace_of(struct driver *driver, const struct jobset *jobset)
{
    struct job_pace *pace = u64_map_get(&driver->paces, jobset->uid);
    if (!pace) {
        pace = mem_alloc(sizeof(*pace));
        pace->jobset = pace->due.tie = jobset->uid;
        u64_map_put(&driver->paces, jobset->uid, pace);
        begin_attempt(pace, jobset);
    } else if (pace->attempt != jobset->attempt || pace->slot_count != jobset->slots.count) {
        begin_attempt(pace, jobset);
    }
    return pace;
}

void paces_report(struct driver *driver, const struct task *task, const struct pace_sums *sums)
{
    struct job_pace *pace = pace_of(driver, task->job->jobset);
    uint32_t slot = task->job->first_slot + (uint32_t)task->index;
    CHECK(slot < pace->slot_count);
    if (sums->steps < pace->newest[slot].steps) /* the process was restarted */
        pace->begun[slot] = (struct pace_sums){0};
    pace->newest[slot] = *sums;
    pace->moved = true;
    if (heap_has(&pace->due))
        return;
    pace->due.key = driver_mono_ns(driver) + core_cluster(driver->core)->policy.pace_window_ns;
    heap_insert(&driver->paces_due, &pace->due);
}

/* Returns 0 if the rank made no step in the window. */
static uint32_t own_of(const struct pace_sums *begun, const struct pace_sums *newest)
{
    int64_t steps = newest->steps - begun->steps, own_us = newest->own_us - begun->own_us;
    if (steps <= 0 || own_us < 0)
        return 0;
    own_us = own_us / steps > 0 ? own_us / steps : 1;
    return own_us < UINT32_MAX ? (uint32_t)own_us : UINT32_MAX;
}

static void close_window(struct driver *driver, struct job_pace *pace)
{
    const struct jobset *jobset = jobs_find_uid(core_jobs(driver->core), pace->jobset);
    heap_remove(&driver->paces_due, &pace->due);
    if (!jobset || jobset->finished_ns || pace->attempt != jobset->attempt ||
        pace->slot_count != jobset->slots.count || !pace->moved)
        return;
    struct pending *pending = pending_new(EVENT_PACE);
    struct pace_event *event = &pending->event.pace;
    *event = (struct pace_event){.jobset = pace->jobset,
                                 .attempt = pace->attempt,
                                 .window_ns = core_cluster(driver->core)->policy.pace_window_ns,
                                 .own_us = ARENA_ARRAY(&pending->arena, uint32_t, pace->slot_count),
                                 .count = pace->slot_count};
    for (uint32_t i = 0; i < pace->slot_count; i++)
        event->own_us[i] = own_of(&pace->begun[i], &pace->newest[i]);
    memcpy(pace->begun, pace->newest, pace->slot_count * sizeof(*pace->begun));
    pace->moved = false;
    queue_put(driver, pending);
    pace->due.key = driver_mono_ns(driver) + event->window_ns;
    heap_insert(&driver->paces_due, &pace->due);
}

int64_t paces_deadline(const struct driver *driver)
{
    const struct heap_node *node = driver->blocked_since_ns ? NULL : heap_min(&driver->paces_due);
    return node ? node->key : INT64_MAX;
}

void paces_flush(struct driver *driver)
{
    int64_t now_ns = driver_mono_ns(driver);
    while (paces_deadline(driver) <= now_ns)
        close_window(driver, container_of(heap_min(&driver->paces_due), struct job_pace, due));
}

void paces_forget(struct driver *driver, obj_id jobset)
{
    struct job_pace *pace = u64_map_remove(&driver->paces, jobset);
    if (!pace)
        return;
    if (heap_has(&pace->due))
        heap_remove(&driver->paces_due, &pace->due);
    mem_free(pace->begun);
    mem_free(pace->newest);
    mem_free(pace);
}

void paces_done(struct driver *driver)
{
    heap_done(&driver->paces_due);
    u64_map_done(&driver->paces);
}
