/* gang_threads.h - a gang whose members are threads of one process. Private to src/flow/exec.
 *
 * Used for interpreter.run_parallel and by tests. When a member fails, everybody who waits for it, or will,
 * gets ERROR_UNAVAILABLE: no member of a broken gang waits for ever.
 */
#ifndef PHX_FLOW_EXEC_GANG_THREADS_H
#define PHX_FLOW_EXEC_GANG_THREADS_H

#include "flow/exec/interpret.h"

/* Runs each program of a run_parallel on a thread of its own. The operands are the programs' arguments and
 * the results their results, one program after another. */
int gang_threads_run(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                     struct tensor **results);

#endif
