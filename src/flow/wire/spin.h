/* spin.h - whether a thread that waits for shared memory may look at it for a while before it sleeps.
 *
 * To wake a thread on another core costs more than a message does (4 us on the same core, 30 us across cores
 * of a virtual machine, 0.2 us for a thread that looks), but a thread that looks keeps a core busy. Threads
 * therefore spin only while the machine has no more runnable threads than cores, and at most SPIN_NS. A
 * launch passes client, head, worker and device, more threads than small machines have cores: a thread that
 * looks offers its core to others between two looks, lest the next one in the chain waits for it.
 */
#ifndef PHX_FLOW_WIRE_SPIN_H
#define PHX_FLOW_WIRE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_NS (INT64_C(20) * 1000)

struct spin {
    int fd, cores;
    bool may;
    int64_t asked_ns; /* when `may` was found out */
};

/* Keeps a descriptor of /proc/loadavg until spin_done; without that file nobody may spin. */
void spin_init(struct spin *spin);
void spin_done(struct spin *spin);
/* Whether to spin now; looks at the machine again after 5 ms. `now_ns` is of the monotonic clock. For one
 * thread at a time. */
bool spin_may(struct spin *spin, int64_t now_ns);
/* Between two looks: gives the core to a thread that waits for it. False: `end_ns` of the monotonic clock has
 * come. Any thread. */
bool spin_lasts(int64_t end_ns);
/* The runnable threads in a line of /proc/loadavg, or INT32_MAX: it has none. */
int32_t spin_runnable(const char *line);

#endif
