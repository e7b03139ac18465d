/* cmd.h - the subcommands of `phalanx`; each is in its own file, cmd_<name>.c.
 *
 * A subcommand gets argv with its own name at argv[0] and returns the exit code of the process.
 */
#ifndef PHX_CMD_CMD_H
#define PHX_CMD_CMD_H

/* Exit codes of every subcommand that talks to a controller; docs/cli.md has them for users. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,      /* the request failed, or the answer is no */
    EXIT_USAGE = 2,       /* the command line is wrong */
    EXIT_NOT_FOUND = 3,   /* the object named does not exist */
    EXIT_UNREACHABLE = 4, /* no controller answers at the server address */
    EXIT_TIMEOUT = 5,     /* the time allowed ran out */
};

int cmd_agent(int argc, char **argv);
int cmd_apply(int argc, char **argv);
int cmd_certs(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_checkpoint(int argc, char **argv);
int cmd_cluster(int argc, char **argv);
int cmd_controller(int argc, char **argv);
int cmd_cordon(int argc, char **argv);
int cmd_delete(int argc, char **argv);
int cmd_describe(int argc, char **argv);
int cmd_diagnose(int argc, char **argv);
int cmd_down(int argc, char **argv);
int cmd_drain(int argc, char **argv);
int cmd_ettr(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_fabric(int argc, char **argv);
int cmd_figure(int argc, char **argv);
int cmd_flow(int argc, char **argv);
int cmd_get(int argc, char **argv);
int cmd_inject(int argc, char **argv);
int cmd_lemons(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_maintenance(int argc, char **argv);
int cmd_migrate(int argc, char **argv);
int cmd_mindcluster(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_qualify(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_rerun(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_switch_sim(int argc, char **argv);
int cmd_chip_sim(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_torture(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_uncordon(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_upgrade(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_wait(int argc, char **argv);
int cmd_watch(int argc, char **argv);

#endif
