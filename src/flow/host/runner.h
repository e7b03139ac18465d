/* runner.h - the threads that run and compile functions; private to src/flow/host. */
#ifndef PHX_FLOW_HOST_RUNNER_H
#define PHX_FLOW_HOST_RUNNER_H

#include "flow/host/gang.h"
#include "flow/wire/loop.h"

struct runners;
/* Receives the results of a completed run, on the device's thread. The event's arrays and `fault` are valid
 * during the call; the receiver takes over the references to results. Returns true if *ret_next is a RUN of
 * the same device, which the thread then carries out at once. */
typedef bool runner_ran(void *context, const struct flow_event *event, struct flow_effect *ret_next);

struct runners_options {
    uint32_t devices;
    const char *functions;       /* folder of shared objects; NULL: none */
    const struct executor *pjrt; /* runs the StableHLO functions that it does not refuse; NULL: none */
    uint64_t work_limit;         /* of a run; 0: no limit */
    struct gang_table *gangs;
    struct loop *loop;
    runner_ran *ran;
    void *context;
};
/* Starts a thread for each device and one that compiles. Compiled functions wait for runners_next, and `loop`
 * is woken for them. */
struct runners *runners_new(const struct runners_options *options);
/* Waits for current runs and frees the runners. The caller has aborted the gangs of those runs. NULL
 * allowed. */
void runners_free(struct runners *runners);

/* Starts a RUN, and takes over the effect's args and gang hosts, which are NULL afterwards. A device has one
 * run at a time. */
void runners_run(struct runners *runners, struct flow_effect *effect);
/* Queues a COMPILE with the number of its order, which COMPILED repeats. Equal texts share one executable,
 * whichever client sends them (compiled.h). */
void runners_compile(struct runners *runners, uint64_t number, struct str tail);
/* Frees the copies of the tensor in the memory of devices (exec/executor.h). */
void runners_evict(const struct runners *runners, struct tensor *tensor);
/* Carries out DROP. Allowed also after runners_free. */
void runners_drop(void *executable);

/* Returns the duration of an executable's last run, or INT64_MAX if it has not run. */
int64_t runners_last_ns(const void *executable);

/* Returns one COMPILED event in *ret_event, or false if there is none. The event's `fault` is valid until the
 * next call. */
bool runners_next(struct runners *runners, struct flow_event *ret_event);

#endif
