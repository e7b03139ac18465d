/* runner.h - the threads that run and compile functions; private to src/flow/host. */
#ifndef PHX_FLOW_HOST_RUNNER_H
#define PHX_FLOW_HOST_RUNNER_H

#include "flow/host/gang.h"
#include "flow/wire/loop.h"

struct runners;
/* Starts a thread for each device and one that compiles. Results wait in a list, and `loop` is woken. */
struct runners *runners_new(uint32_t devices, const char *functions, struct gang_table *gangs,
                            struct loop *loop);
/* Waits for what runs. The caller has aborted the gangs that are under way. */
void runners_free(struct runners *runners);

/* Takes over the effect's args and gang hosts (they are NULL afterwards). A device has one run at a time. */
void runners_run(struct runners *runners, struct flow_effect *effect);
void runners_compile(struct runners *runners, uint32_t client, uint64_t handle, struct str tail);
void runners_drop(void *executable);

/* Hands out one finished thing; false: none. The event's results belong to the receiver; its arrays, and
 * `fault`, live until the next call. */
bool runners_next(struct runners *runners, struct flow_event *ret_event);

#endif
