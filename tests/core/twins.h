/* twins.h - cores restored from snapshots that go along with a live one: after every event each must have
 * the same deadline, effects and digest. One is made anew after every event, the next after every fourth, and
 * so on: so a snapshot is read at every point of a life, and what a restored core derives has time to show.
 * harness.h has them in every test of the core.
 *
 *     struct twins twins = {0};
 *     twins_step(&twins, core, &event, &effects);     // after core_step(core, &event, &effects)
 *     twins_done(&twins);
 *
 * Whatever the core derives (indexes, counts, what was told last) and no snapshot holds must come back equal
 * from core_snapshot_read: where it steers a later step, a twin goes another way. */
#ifndef PHX_TESTS_CORE_TWINS_H
#define PHX_TESTS_CORE_TWINS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "core/core.h"

enum { TWINS = 4, DIGEST_EVERY = 4 /* where effects would have shown it */ };

struct twins {
    struct core *cores[TWINS]; /* NULL: not yet */
    uint64_t since[TWINS];     /* the record of its snapshot */
    struct effects effects;
    uint64_t seed; /* of the test, for people; 0: it has none */
    bool off;      /* for tests that change the core between events */
};

static inline void twins_differ(const struct twins *twins, int i, const struct event *event, const char *what)
{
    fail_msg("seed %llu: a core from the snapshot at record %llu gives another %s at record %llu (event %d)",
             (unsigned long long)twins->seed, (unsigned long long)twins->since[i], what,
             (unsigned long long)event->seq, (int)event->kind);
}

static inline bool twins_same_effect(const struct effect *a, const struct effect *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == EFFECT_REPLY)
        return a->reply.code == b->reply.code && str_equal(a->reply.message, b->reply.message);
    if (a->kind == EFFECT_CHANGED) {
        struct object_name x = object_name(a->changed.object), y = object_name(b->changed.object);
        return a->changed.type == b->changed.type && x.kind == y.kind && x.uid == y.uid &&
               x.version == y.version;
    }
    if (a->kind == EFFECT_ERRAND_START)
        return a->errand_start.start.errand == b->errand_start.start.errand &&
               a->errand_start.machine == b->errand_start.machine &&
               str_equal(a->errand_start.start.body, b->errand_start.start.body) &&
               a->errand_start.start.timeout_ns == b->errand_start.start.timeout_ns;
    return a->kind != EFFECT_TASK_START || a->start->uid == b->start->uid;
}

static inline void twins_compare(struct twins *twins, int i, const struct core *core,
                                 const struct event *event, const struct effects *effects, uint64_t digest)
{
    struct core *twin = twins->cores[i];
    core_step(twin, event, &twins->effects);
    if (twins->effects.list.len != effects->list.len)
        twins_differ(twins, i, event, "number of effects");
    for (size_t e = 0; e < effects->list.len; e++)
        if (!twins_same_effect(&effects->list.items[e], &twins->effects.list.items[e]))
            twins_differ(twins, i, event, "effect");
    if (core_deadline(twin) != core_deadline(core))
        twins_differ(twins, i, event, "deadline");
    if ((i == 0 || event->seq % DIGEST_EVERY == 0) && core_digest(twin) != digest)
        twins_differ(twins, i, event, "digest");
}

static inline void twins_renew(struct twins *twins, int i, const struct event *event, struct str snapshot,
                               const struct core *core, uint64_t digest)
{
    struct error error = {0};
    core_free(twins->cores[i]);
    twins->cores[i] = core_new();
    twins->since[i] = event->seq;
    if (core_snapshot_read(twins->cores[i], snapshot, &error) < 0)
        fail_msg("the snapshot at record %llu: %s", (unsigned long long)event->seq, error.text);
    if (core_deadline(twins->cores[i]) != core_deadline(core))
        twins_differ(twins, i, event, "deadline as it is read");
    if (i == 0 && event->seq % DIGEST_EVERY)
        return; /* the next event shows it */
    if (core_digest(twins->cores[i]) != digest)
        twins_differ(twins, i, event, "digest as it is read");
    core_check_invariants(twins->cores[i]);
}

static inline void twins_step(struct twins *twins, const struct core *core, const struct event *event,
                              const struct effects *effects)
{
    if (twins->off)
        return;
    struct buf snapshot BUF_CLEANUP = {0};
    core_snapshot_write(core, &snapshot);
    uint64_t digest = core_snapshot_digest(buf_str(&snapshot));
    if (core_digest(core) != digest)
        fail_msg("the digest at record %llu is not that of the snapshot", (unsigned long long)event->seq);
    for (int i = 0; i < TWINS; i++) {
        if (twins->cores[i])
            twins_compare(twins, i, core, event, effects, digest);
        if (event->seq % (UINT64_C(1) << 2 * i) == 0)
            twins_renew(twins, i, event, buf_str(&snapshot), core, digest);
    }
}

static inline void twins_done(struct twins *twins)
{
    for (int i = 0; i < TWINS; i++)
        core_free(twins->cores[i]);
    vec_done(&twins->effects.list);
}

#endif
