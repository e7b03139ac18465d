/* user.h - functions in a shared object of the user (phalanx/flow_user.h). */
#ifndef PHX_FLOW_EXEC_USER_H
#define PHX_FLOW_EXEC_USER_H

#include "flow/exec/executor.h"

/* An executor for the shared objects of `folder`, named by the module's `file`. The executor lives for ever;
 * compile refuses names with a slash. */
const struct executor *executor_user(const char *folder);

#endif
