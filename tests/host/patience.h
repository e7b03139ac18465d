/* patience.h - how tests wait on a libuv loop: until a condition holds, and never for ever.
 *
 *     struct patience patience;
 *     patience_init(&patience, &loop);
 *     PATIENT_UNTIL(&patience, answered == 3);
 *     patience_done(&patience);                  // its handle closes when the loop runs again
 *
 * A bare UV_RUN_ONCE would not do: it runs what timers are due and then blocks for the next event, although
 * what is waited for has just come true in one of them. A pulse ends each such turn; it also lets a condition
 * be met of which no event of the loop tells, as the end of a process that is not ours.
 *
 * The limit holds for each wait by itself. It is there for what never comes: no test may depend on its
 * length.
 */
#ifndef PHX_TESTS_HOST_PATIENCE_H
#define PHX_TESTS_HOST_PATIENCE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <uv.h>

enum { PATIENCE_S = 120, PATIENCE_PULSE_MS = 10 };

struct patience {
    uv_timer_t pulse;
    uint64_t until_ns; /* uv_hrtime */
};

static inline void patience_pulse(uv_timer_t *timer)
{
    (void)timer;
}

static inline void patience_init(struct patience *patience, uv_loop_t *loop)
{
    assert_int_equal(uv_timer_init(loop, &patience->pulse), 0);
    uv_timer_start(&patience->pulse, patience_pulse, PATIENCE_PULSE_MS, PATIENCE_PULSE_MS);
    uv_unref((uv_handle_t *)&patience->pulse); /* it keeps no loop going */
}

static inline void patience_done(struct patience *patience)
{
    uv_close((uv_handle_t *)&patience->pulse, NULL);
}

static inline void patience_renew(struct patience *patience)
{
    patience->until_ns = uv_hrtime() + PATIENCE_S * UINT64_C(1000000000);
}

/* One turn of the loop; fails the test, saying what was waited for, when the limit is over. */
static inline void patience_turn(struct patience *patience, const char *condition)
{
    uv_run(patience->pulse.loop, UV_RUN_ONCE);
    if (uv_hrtime() > patience->until_ns)
        fail_msg("not within %d s: %s", PATIENCE_S, condition);
}

#define PATIENT_UNTIL(patience, condition)                                                                   \
    for (patience_renew(patience); !(condition);)                                                            \
    patience_turn((patience), #condition)

#endif
