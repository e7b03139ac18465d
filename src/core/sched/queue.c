#include "core/sched/sched.h"

#include "base/check.h"

/* Orders gangs by priority, then by waiting time, then by age of the object. */
static bool before(const struct queued_gang *a, const struct queued_gang *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->submitted_ns != b->submitted_ns)
        return a->submitted_ns < b->submitted_ns;
    return a->id < b->id;
}

/* Returns the index of the first gang that does not come before `gang`. */
static size_t find_place(const struct sched_queue *queue, const struct queued_gang *gang)
{
    size_t low = 0, high = queue->gangs.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (before(queue->gangs.items[middle], gang))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void sched_queue_add(struct sched_queue *queue, struct queued_gang *gang)
{
    CHECK(!heap_has(&gang->node));
    size_t place = find_place(queue, gang);
    vec_reserve(&queue->gangs, queue->gangs.len + 1);
    memmove(&queue->gangs.items[place + 1], &queue->gangs.items[place],
            (queue->gangs.len - place) * sizeof *queue->gangs.items);
    queue->gangs.items[place] = gang;
    queue->gangs.len++;
    gang->node.position = 1; /* marks it as queued */
    CHECK(place == 0 || before(queue->gangs.items[place - 1], gang));
    CHECK(place + 1 == queue->gangs.len || !before(queue->gangs.items[place + 1], gang));
}

void sched_queue_remove(struct sched_queue *queue, struct queued_gang *gang)
{
    size_t place = find_place(queue, gang);
    CHECK(place < queue->gangs.len && queue->gangs.items[place] == gang && heap_has(&gang->node));
    vec_remove(&queue->gangs, place);
    gang->node.position = 0;
    gang->head_since_ns = 0;
}

void sched_queue_done(struct sched_queue *queue)
{
    for (size_t i = 0; i < queue->gangs.len; i++)
        queue->gangs.items[i]->node.position = 0;
    vec_done(&queue->gangs);
}

/* Gangs that have been the head for a whole window: later gangs may not take their machines. There can be
 * several, because a gang of higher priority may become the head later. */
enum { PROTECTED_MAX = 8 };
struct protected
{
    const struct queued_gang *gangs[PROTECTED_MAX];
    size_t len;
};

static bool in_the_way(const struct sched_pass *pass, const struct queued_gang *gang,
                       const struct protected *protected)
{
    for (size_t i = 0; i < protected->len; i++)
        if (pass->competes(pass->context, gang, protected->gangs[i]))
            return true;
    return false;
}

size_t sched_queue_pass(struct sched_queue *queue, const struct sched_pass *pass)
{
    CHECK(pass->try_place && pass->competes && pass->backfill_window_ns >= 0);
    struct protected protected = {0};
    size_t started = 0, failed = 0, i = 0;
    bool head_met = false;
    while (i < queue->gangs.len && failed < pass->attempts_max && protected.len < PROTECTED_MAX) {
        struct queued_gang *gang = queue->gangs.items[i];
        size_t len = queue->gangs.len;
        bool waits = in_the_way(pass, gang, &protected);
        if (!waits && pass->try_place(pass->context, gang)) {
            /* try_place must not change the queue. */
            CHECK(queue->gangs.len == len && queue->gangs.items[i] == gang);
            sched_queue_remove(queue, gang);
            started++;
            continue;
        }
        i++;
        if (pass->feasible && !pass->feasible(pass->context, gang))
            continue;
        failed += !waits;
        if (!head_met && !gang->head_since_ns)
            gang->head_since_ns = pass->now_ns ? pass->now_ns : 1;
        head_met = true;
        if (gang->head_since_ns && pass->now_ns - gang->head_since_ns >= pass->backfill_window_ns)
            protected.gangs[protected.len++] = gang;
    }
    CHECK(failed <= pass->attempts_max && protected.len <= PROTECTED_MAX);
    return started;
}
