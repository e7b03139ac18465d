/* phalanx: the one command. `phalanx COMMAND [ARGUMENTS]`; see cmd.h. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cmd/client.h"
#include "cmd/full.h"
#include "cmd/usage.h"
#include "core/words/release.h"

/* `phalanx` has the commands that only need plain HTTP; `phalanx-full` has all (full.h). */
#pragma weak cmd_agent
#pragma weak cmd_apply
#pragma weak cmd_certs
#pragma weak cmd_check
#pragma weak cmd_checkpoint
#pragma weak cmd_cluster
#pragma weak cmd_controller
#pragma weak cmd_cordon
#pragma weak cmd_delete
#pragma weak cmd_describe
#pragma weak cmd_diagnose
#pragma weak cmd_down
#pragma weak cmd_drain
#pragma weak cmd_ettr
#pragma weak cmd_events
#pragma weak cmd_explain
#pragma weak cmd_fabric
#pragma weak cmd_chip_sim
#pragma weak cmd_figure
#pragma weak cmd_flow
#pragma weak cmd_get
#pragma weak cmd_inject
#pragma weak cmd_lemons
#pragma weak cmd_maintenance
#pragma weak cmd_migrate
#pragma weak cmd_mindcluster
#pragma weak cmd_model
#pragma weak cmd_report
#pragma weak cmd_rerun
#pragma weak cmd_sim
#pragma weak cmd_log
#pragma weak cmd_exec
#pragma weak cmd_logs
#pragma weak cmd_qualify
#pragma weak cmd_switch_sim
#pragma weak cmd_top
#pragma weak cmd_torture
#pragma weak cmd_replay
#pragma weak cmd_trace
#pragma weak cmd_uncordon
#pragma weak cmd_up
#pragma weak cmd_upgrade
#pragma weak cmd_version
#pragma weak cmd_wait
#pragma weak cmd_watch

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};
static const struct command commands[] = {
    {"up", cmd_up, "run a whole cluster on this machine"},
    {"down", cmd_down, "end the cluster that `up` runs"},
    {"controller", cmd_controller, "run the controller"},
    {"agent", cmd_agent, "run the agent of a machine"},
    {"apply", cmd_apply, "create or change the objects that files describe"},
    {"get", cmd_get, "list jobsets, jobs, pods, nodes, events and other objects"},
    {"describe", cmd_describe, "show one object with its events"},
    {"watch", cmd_watch, "follow a jobset's progress until it finishes"},
    {"exec", cmd_exec, "run a command in a pod's environment"},
    {"logs", cmd_logs, "print the output of pods"},
    {"events", cmd_events, "list events, oldest first"},
    {"delete", cmd_delete, "delete objects"},
    {"wait", cmd_wait, "wait for a condition"},
    {"rerun", cmd_rerun, "rerun a job that has ended, from its last checkpoint"},
    {"top", cmd_top, "show chips, steps per second and ETTR of jobs and machines"},
    {"lemons", cmd_lemons, "list machines that fail again and again"},
    {"cordon", cmd_cordon, "keep new work away from a machine"},
    {"drain", cmd_drain, "empty a machine: its ranks save, stop and move; or a switch or cube"},
    {"uncordon", cmd_uncordon, "let a machine, switch or cube take work again"},
    {"undrain", cmd_uncordon, "the same as uncordon"},
    {"maintenance", cmd_maintenance, "hold the leases for a planned restart of the controller"},
    {"migrate", cmd_migrate, "empty a machine while its jobs run on"},
    {"check", cmd_check, "check the health of this machine"},
    {"qualify", cmd_qualify, "test this machine, or a pair, against thresholds"},
    {"checkpoint", cmd_checkpoint, "list, show, verify, export or clean up checkpoints"},
    {"cluster", cmd_cluster, "check a cluster file, or show the running cluster"},
    {"certs", cmd_certs, "make the cluster's certificates, tokens and kubeconfig files"},
    {"inject", cmd_inject, "break parts of a cluster on purpose"},
    {"mindcluster", cmd_mindcluster, "print and read the JSON objects of MindCluster"},
    {"report", cmd_report, "show what chips did and failures cost; report a fault"},
    {"diagnose", cmd_diagnose, "find the rank that made a job's collectives hang"},
    {"explain", cmd_explain, "explain why a jobset waits, restarted or failed, and the cost"},
    {"ettr", cmd_ettr, "estimate what failures cost a job, and how often to save"},
    {"sim", cmd_sim, "simulate months of a cluster that fails, in seconds"},
    {"model", cmd_model, "compute ETTR, failures, spares and availability by models"},
    {"figure", cmd_figure, "draw a paper's figure from the models, with the values it quotes"},
    {"fabric", cmd_fabric, "plan cross-connects of a slice, and prove routes around failures"},
    {"flow", cmd_flow, "run programs over many chips from one controller"},
    {"switch-sim", cmd_switch_sim, "emulate optical switches on real sockets"},
    {"chip-sim", cmd_chip_sim, "emulate the chips of a machine, or of many"},
    {"log", cmd_log, "show, verify or replay the controller's log"},
    {"replay", cmd_replay, "step through the controller's log: each decision with its reason"},
    {"trace", cmd_trace, "take the outside causes out of a log, for other policies"},
    {"upgrade", cmd_upgrade, "check whether a rolling upgrade may go on"},
    {"torture", cmd_torture, "test the control plane under simulated failures"},
    {"version", cmd_version, "print the versions of client and server"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void usage(FILE *out)
{
    fprintf(out, "Usage: phalanx COMMAND [ARGUMENTS]\n\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].help);
    fputs("\n`phalanx COMMAND --help` explains a command. The controller is --server URL, $PHALANX_SERVER,\n"
          "that of the kubeconfig file $PHALANX_CONFIG or $KUBECONFIG, or 127.0.0.1:7070.\n",
          out);
}

static int unknown(const char *name)
{
    struct nearest nearest = nearest_to(str_from(name));
    for (int i = 0; i < COMMANDS; i++)
        nearest_offer(&nearest, str_from(commands[i].name));
    if (nearest.best.len)
        say("unknown command \"%s\"; did you mean \"" STR_FORMAT "\"?", name, STR_ARG(nearest.best));
    else
        say("unknown command \"%s\"", name);
    fputs("`phalanx --help` lists the commands.\n", stderr);
    return EXIT_USAGE;
}

static int run(const struct command *command, int argc, char **argv)
{
    usage_begin(command->name);
    return command->run ? command->run(argc, argv) : full_run();
}

int main(int argc, char **argv)
{
    /* When the reader of a pipe ends (`phalanx get pods | head`), write() returns an error instead of a
     * signal. */
    signal(SIGPIPE, SIG_IGN);
    full_begin(argv);
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 && argc > 2) {
        static char help[] = "--help";
        char *asked[] = {argv[2], help, NULL};
        for (int i = 0; i < COMMANDS; i++)
            if (strcmp(argv[2], commands[i].name) == 0)
                return run(&commands[i], 2, asked);
        return unknown(argv[2]);
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        usage(stdout);
        return EXIT_OK;
    }
    if (strcmp(name, "--version") == 0) {
        printf("phalanx %s\n", this_release.version);
        return EXIT_OK;
    }
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        return run(&commands[i], argc - 1, argv + 1);
    }
    return unknown(name);
}
