/* The queue: its order, backfill, and that the head is not starved. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/rng.h"
#include "core/sched/sched.h"

enum { GANGS = 400, MACHINES = 32, WINDOW = 100 };

/* A toy cluster: two kinds of machines; a gang takes `need` of its kind. */
struct toy_gang {
    struct queued_gang queued;
    uint32_t need;
    uint32_t kind;
    bool running, done;
    int64_t started_at;
    uint64_t started_order;
};
struct toy {
    struct sched_queue queue;
    struct toy_gang gangs[GANGS];
    size_t arrived;
    uint32_t free[2];
    int64_t now;
    uint64_t started;
    size_t tries;
};

static struct toy_gang *toy_of(const struct queued_gang *gang)
{
    return container_of(gang, struct toy_gang, queued);
}

static bool try_place(void *context, struct queued_gang *queued)
{
    struct toy *toy = context;
    struct toy_gang *gang = toy_of(queued);
    toy->tries++;
    if (toy->free[gang->kind] < gang->need)
        return false;
    toy->free[gang->kind] -= gang->need;
    gang->running = true;
    gang->started_at = toy->now;
    gang->started_order = ++toy->started;
    return true;
}

static bool competes(void *context, const struct queued_gang *gang, const struct queued_gang *head)
{
    return toy_of(gang)->kind == toy_of(head)->kind;
}

static size_t run_pass(struct toy *toy, size_t attempts_max)
{
    struct sched_pass pass = {.try_place = try_place,
                              .competes = competes,
                              .context = toy,
                              .now_ns = toy->now,
                              .backfill_window_ns = WINDOW,
                              .attempts_max = attempts_max};
    toy->tries = 0;
    return sched_queue_pass(&toy->queue, &pass);
}

static struct toy_gang *arrive(struct toy *toy, uint32_t need, uint32_t kind, int32_t priority)
{
    struct toy_gang *gang = &toy->gangs[toy->arrived++];
    *gang = (struct toy_gang){.need = need, .kind = kind};
    gang->queued.priority = priority;
    gang->queued.submitted_ns = toy->now;
    gang->queued.id = toy->arrived;
    sched_queue_add(&toy->queue, &gang->queued);
    return gang;
}

static void leave(struct toy *toy, struct toy_gang *gang)
{
    gang->running = false;
    gang->done = true;
    toy->free[gang->kind] += gang->need;
}

static struct toy *new_toy(void)
{
    struct toy *toy = calloc(1, sizeof *toy);
    toy->free[0] = toy->free[1] = MACHINES;
    toy->now = 1;
    return toy;
}

static void free_toy(struct toy *toy)
{
    sched_queue_done(&toy->queue);
    free(toy);
}

static bool comes_before(const struct queued_gang *a, const struct queued_gang *b)
{
    return a->priority > b->priority ||
           (a->priority == b->priority &&
            (a->submitted_ns < b->submitted_ns || (a->submitted_ns == b->submitted_ns && a->id < b->id)));
}

/* Whatever is added and removed, the queue is ordered and holds what it should. */
static void test_order(void **state)
{
    struct rng rng;
    rng_seed(&rng, 1);
    struct toy *toy = new_toy();
    size_t held = 0;
    for (int i = 0; i < GANGS; i++) {
        toy->now += (int64_t)rng_below(&rng, 2);
        arrive(toy, 1, 0, (int32_t)rng_range(&rng, -2, 2));
        held++;
        if (rng_below(&rng, 3) == 0) {
            sched_queue_remove(&toy->queue, toy->queue.gangs.items[rng_below(&rng, held)]);
            held--;
        }
        assert_int_equal(toy->queue.gangs.len, held);
        for (size_t k = 1; k < held; k++)
            assert_true(comes_before(toy->queue.gangs.items[k - 1], toy->queue.gangs.items[k]));
    }
    free_toy(toy);
}

/* Gangs of one shape start strictly by priority and, among equals, first come first served. */
static void test_fifo(void **state)
{
    struct rng rng;
    rng_seed(&rng, 2);
    struct toy *toy = new_toy();
    while (toy->arrived < GANGS || toy->queue.gangs.len) {
        toy->now++;
        while (toy->arrived < GANGS && rng_below(&rng, 3))
            arrive(toy, 8, 0, (int32_t)rng_below(&rng, 3));
        size_t waiting = toy->queue.gangs.len, room = toy->free[0] / 8;
        struct queued_gang *first = waiting ? toy->queue.gangs.items[0] : NULL;
        size_t started = run_pass(toy, 1);
        assert_int_equal(started, waiting < room ? waiting : room);
        assert_true(!started || toy_of(first)->running);
        for (size_t i = 0; i < toy->arrived; i++)
            if (toy->gangs[i].running && rng_below(&rng, 4) == 0)
                leave(toy, &toy->gangs[i]);
    }
    for (size_t a = 0; a < GANGS; a++)
        for (size_t b = 0; b < GANGS; b++)
            if (toy->gangs[a].queued.priority == toy->gangs[b].queued.priority &&
                comes_before(&toy->gangs[a].queued, &toy->gangs[b].queued))
                assert_true(toy->gangs[a].started_order < toy->gangs[b].started_order);
    free_toy(toy);
}

static void test_backfill(void **state)
{
    struct toy *toy = new_toy();
    struct toy_gang *running = arrive(toy, 20, 0, 0);
    assert_int_equal(run_pass(toy, 10), 1);
    struct toy_gang *head = arrive(toy, 30, 0, 0), *small = arrive(toy, 4, 0, 0);
    assert_int_equal(run_pass(toy, 10), 1); /* within the window the small one overtakes */
    assert_true(small->running && !head->running);
    assert_int_equal(head->queued.head_since_ns, toy->now);
    struct toy_gang *second = arrive(toy, 30, 0, 0);
    assert_int_equal(run_pass(toy, 10), 0);
    assert_int_equal(second->queued.head_since_ns, 0); /* its turn has not come */
    sched_queue_remove(&toy->queue, &second->queued);
    toy->now += WINDOW;
    struct toy_gang *late = arrive(toy, 4, 0, 0), *elsewhere = arrive(toy, 4, 1, 0);
    assert_int_equal(run_pass(toy, 10), 1); /* now only what the head cannot use */
    assert_true(!late->running && elsewhere->running);
    struct toy_gang *urgent = arrive(toy, 31, 0, 1); /* in front now, and does not fit either */
    assert_int_equal(run_pass(toy, 10), 0);
    assert_true(!late->running); /* the head of before is still protected */
    leave(toy, running);
    leave(toy, small);
    assert_int_equal(run_pass(toy, 10), 1);
    assert_true(urgent->running && !head->running);
    leave(toy, urgent);
    assert_int_equal(run_pass(toy, 10), 1);
    assert_true(head->running && !late->running); /* two chips are left; it needs four */
    assert_int_equal(head->queued.head_since_ns, 0);
    free_toy(toy);
}

/* A pass ends after so many failed tries. */
static void test_bounded(void **state)
{
    struct toy *toy = new_toy();
    for (int i = 0; i < 100; i++)
        arrive(toy, MACHINES + 1, 0, 0);
    assert_int_equal(run_pass(toy, 7), 0);
    assert_int_equal(toy->tries, 7);
    free_toy(toy);
}

/* Once a head's window has passed, no gang that competes with it starts before it: so it starts at the
 * latest when those that ran then have left. Arrivals never end here, and small gangs are many. */
static void test_no_starvation(void **state)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        struct toy *toy = new_toy();
        struct toy_gang *head = NULL;
        size_t departures = 0, bound = 0;
        int heads = 0;
        while (toy->arrived < GANGS - 4) {
            toy->now += 1 + (int64_t)rng_below(&rng, 10);
            for (uint64_t n = rng_below(&rng, 4); n; n--)
                arrive(toy, rng_below(&rng, 8) ? 1 + (uint32_t)rng_below(&rng, 3) : MACHINES,
                       (uint32_t)rng_below(&rng, 2), 0);
            run_pass(toy, 1000);
            if (head && !head->running && !head->done)
                assert_true(departures <= bound);
            else
                head = NULL;
            struct toy_gang *first = toy->queue.gangs.len ? toy_of(toy->queue.gangs.items[0]) : NULL;
            if (!head && first && toy->now - first->queued.head_since_ns >= WINDOW) {
                head = first; /* from now on nothing of its kind may start before it */
                departures = 0;
                bound = 0;
                for (size_t i = 0; i < toy->arrived; i++)
                    bound += toy->gangs[i].running && toy->gangs[i].kind == head->kind;
                bound -= bound > 0; /* after the last one it starts in the very next pass */
                heads++;
            }
            for (size_t i = 0; i < toy->arrived; i++)
                if (toy->gangs[i].running && rng_below(&rng, 30) == 0) {
                    leave(toy, &toy->gangs[i]);
                    departures += head && toy->gangs[i].kind == head->kind;
                }
        }
        assert_true(heads > 0);
        free_toy(toy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),   cmocka_unit_test(test_fifo),          cmocka_unit_test(test_backfill),
        cmocka_unit_test(test_bounded), cmocka_unit_test(test_no_starvation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
