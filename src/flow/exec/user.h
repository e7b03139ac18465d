/* user.h - functions in a shared object of the user (phalanx/flow_user.h). */
#ifndef PHX_FLOW_EXEC_USER_H
#define PHX_FLOW_EXEC_USER_H

#include "flow/exec/executor.h"

/* Sets the folder of the shared objects, which is borrowed, and returns the one executor for them. The
 * module's `file` names the object. With folder NULL, or a name with a slash, compile fails with
 * ERROR_DENIED. */
const struct executor *executor_user(const char *folder);

#endif
