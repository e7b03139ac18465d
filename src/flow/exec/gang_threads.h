/* gang_threads.h - a gang whose members are threads of one process. Private to src/flow/exec.
 *
 * Used for interpreter.run_parallel and by tests. When a member fails, all members that wait for it, now or
 * later, receive ERROR_UNAVAILABLE. When all members wait in different collectives, they receive
 * ERROR_INVALID. No member of a broken gang waits for ever.
 */
#ifndef PHX_FLOW_EXEC_GANG_THREADS_H
#define PHX_FLOW_EXEC_GANG_THREADS_H

#include "flow/exec/interpret.h"

/* Runs each program of a run_parallel in its own thread. The operands are the arguments of the first program,
 * followed by those of the next, and so on; the results have the same order. */
int gang_threads_run(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                     struct tensor **results);

#endif
