/* spin.h - decides whether a thread that waits for shared memory may poll it for a while before it sleeps.
 *
 * Waking a thread on another core costs more than a message does (4 us on the same core, 30 us across cores
 * of a virtual machine, 0.2 us for a thread that polls), but a polling thread occupies a core. Threads
 * therefore spin only while the machine has no more runnable threads than cores, and at most SPIN_NS. A
 * launch passes through client, head, worker and device, which are more threads than small machines have
 * cores. A polling thread therefore yields its core between two polls, so that the next thread in the chain
 * need not wait for it.
 */
#ifndef PHX_FLOW_WIRE_SPIN_H
#define PHX_FLOW_WIRE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_NS (INT64_C(20) * 1000)

struct spin {
    int fd, cores;
    bool may;
    int64_t asked_ns; /* when `may` was determined */
};

/* Opens /proc/loadavg until spin_done. Without that file no thread may spin. */
void spin_init(struct spin *spin);
void spin_done(struct spin *spin);
/* Returns whether to spin now; measures the load again after 5 ms. `now_ns` is of the monotonic clock. For
 * one thread at a time. */
bool spin_may(struct spin *spin, int64_t now_ns);
/* Yields the core between two polls. Returns false when `end_ns` of the monotonic clock has come. Any
 * thread. */
bool spin_lasts(int64_t end_ns);
/* Returns the number of runnable threads in a line of /proc/loadavg, or INT32_MAX if the line is
 * malformed. */
int32_t spin_runnable(const char *line);

#endif
