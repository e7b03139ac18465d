/* flow.h - the actions of `phalanx flow`, each in a file of its own: flow_<action>.c.
 *
 * An action gets argv with its own name at argv[0] and returns an exit code of cmd.h. The table is in
 * cmd_flow.c.
 */
#ifndef PHX_CMD_FLOW_H
#define PHX_CMD_FLOW_H

int flow_check(int argc, char **argv);
int flow_head(int argc, char **argv);
int flow_up(int argc, char **argv);
int flow_worker(int argc, char **argv);

/* A descriptor that is readable after SIGINT or SIGTERM, which have no other effect from now on. */
int flow_stop_signals(void);

#endif
