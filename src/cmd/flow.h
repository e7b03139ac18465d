/* flow.h - the subcommands of `phalanx flow`; each lives in a file of its own, flow_<name>.c. */
#ifndef PHX_CMD_FLOW_H
#define PHX_CMD_FLOW_H

/* argv[0] is the subcommand's name. Each returns an exit code. */
int flow_head_command(int argc, char **argv);
int flow_worker_command(int argc, char **argv);
int flow_up_command(int argc, char **argv);

/* A descriptor that is readable after SIGINT or SIGTERM, which have no other effect from now on. */
int flow_stop_signals(void);

#endif
