/* runner.h - the threads that run and compile functions; private to src/flow/host. */
#ifndef PHX_FLOW_HOST_RUNNER_H
#define PHX_FLOW_HOST_RUNNER_H

#include "flow/host/gang.h"
#include "flow/wire/loop.h"

struct runners;
/* Takes the results of a run that is over. Called by the device's thread; the event's results, its arrays and
 * `fault` are valid during the call, and the receiver takes over the references. True: *ret_next is a RUN of
 * the same device, which the thread carries out at once. */
typedef bool runner_ran(void *context, const struct flow_event *event, struct flow_effect *ret_next);

struct runners_options {
    uint32_t devices;
    const char *functions; /* folder of shared objects; NULL: none */
    const struct executor *pjrt; /* runs StableHLO, but for what it refuses; NULL: none */
    uint64_t work_limit;   /* of a run; 0: no limit */
    struct gang_table *gangs;
    struct loop *loop;
    runner_ran *ran;
    void *context;
};
/* Starts a thread for each device and one that compiles. Compiled functions wait in a list, and `loop` is
 * woken. */
struct runners *runners_new(const struct runners_options *options);
/* Waits for what runs. The caller has aborted the gangs that are under way. */
void runners_free(struct runners *runners);

/* Takes over the effect's args and gang hosts (they are NULL afterwards). A device has one run at a time. */
void runners_run(struct runners *runners, struct flow_effect *effect);
/* Texts that are equal share one executable, whoever brings them (compiled.h). */
void runners_compile(struct runners *runners, uint32_t client, uint64_t handle, struct str tail);
/* Frees what devices hold of the tensor beside its data (exec/executor.h). */
void runners_evict(const struct runners *runners, struct tensor *tensor);
/* Also after runners_free. */
void runners_drop(void *executable);

/* How long an executable's last run took; INT64_MAX: it has not run. */
int64_t runners_last_ns(const void *executable);

/* Hands out one compiled function; false: none. The event's `fault` lives until the next call. */
bool runners_next(struct runners *runners, struct flow_event *ret_event);

#endif
