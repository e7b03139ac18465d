/* flow.h - the actions of `phalanx flow`; each is in its own file, flow_<action>.c.
 *
 * An action gets argv with its own name at argv[0] and returns an exit code of cmd.h. The table is in
 * cmd_flow.c.
 */
#ifndef PHX_CMD_FLOW_H
#define PHX_CMD_FLOW_H

#include "flow/ir/ir.h"

int flow_check(int argc, char **argv);
int flow_head(int argc, char **argv);
int flow_up(int argc, char **argv);
int flow_worker(int argc, char **argv);
int flow_run(int argc, char **argv);
int flow_show(int argc, char **argv);
int flow_top(int argc, char **argv);
int flow_trace(int argc, char **argv);
int flow_suspend(int argc, char **argv);
int flow_resume(int argc, char **argv); /* in flow_suspend.c */

/* Returns a descriptor that becomes readable after SIGINT or SIGTERM, which have no other effect from then
 * on. */
int flow_stop_signals(void);

/* flow_file.c: reads a file ("-": standard input) of StableHLO text, with one or more modules, or of a module
 * in flow's binary form, and calls `each` with one module after another. A module lives until `each` returns.
 * Returns the first non-zero result of `each`, which ends the walk, or an error that names the file. Modules
 * from text are not verified yet. */
int flow_modules(const char *path, int (*each)(struct ir_module *module, void *arg), void *arg,
                 struct error *error);

#endif
