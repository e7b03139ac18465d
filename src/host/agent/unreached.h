/* unreached.h - when an agent reports that it reaches no controller: a second after the first failure since a
 * welcome, ten seconds after it, then every minute. Every failure is noted here; most are not reported.
 *
 *     if (unreached_says(&unreached, now_ns))      // a connection failed
 *         ...                                      // for now_ns - unreached.since_ns
 *     unreached = (struct unreached){0};           // the controller has welcomed this machine
 *
 * Pure: the caller reads the clock, which never falls and is above 0.
 */
#ifndef PHX_HOST_AGENT_UNREACHED_H
#define PHX_HOST_AGENT_UNREACHED_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing has failed. */
struct unreached {
    int64_t since_ns; /* the first failure; 0: none */
    int64_t say_ns;   /* the first failure from here on is reported */
};

/* Notes a failure. Returns whether to report it; the first one is never reported. */
bool unreached_says(struct unreached *unreached, int64_t now_ns);

#endif
