/* backoff.h - the wait after repeated failures: a first wait, doubled each time, up to a limit.
 *
 *     due_ns = now_ns + backoff_wait(10 * NS_PER_SECOND, 300 * NS_PER_SECOND, failures - 1);
 *
 * The caller counts the failures and decides which of them are consecutive. The unit of time is the caller's.
 */
#ifndef PHX_BASE_BACKOFF_H
#define PHX_BASE_BACKOFF_H

#include "base/check.h"

#include <stdint.h>

/* Returns `first`, doubled `doublings` times, but at most `most`. A first wait of 0 stays 0. */
static inline int64_t backoff_wait(int64_t first, int64_t most, uint32_t doublings)
{
    CHECK(first >= 0 && most >= 0);
    int64_t wait = first < most ? first : most;
    for (uint32_t i = 0; i < doublings && wait > 0 && wait < most; i++)
        wait = wait <= most - wait ? 2 * wait : most;
    CHECK(wait >= 0 && wait <= most);
    return wait;
}

#endif
