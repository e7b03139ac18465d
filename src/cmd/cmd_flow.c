/* phalanx flow: the dataflow runtime; see docs/flow-runtime.md. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/usage.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} flow_commands[] = {
    {"up", flow_up_command, "run a head and workers on this machine"},
    {"head", flow_head_command, "run the head"},
    {"worker", flow_worker_command, "run the worker of a host"},
};
enum { FLOW_COMMANDS = sizeof flow_commands / sizeof *flow_commands };

int flow_stop_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void flow_print_usage(FILE *to)
{
    fputs("Usage: phalanx flow COMMAND [options]\n"
          "\n"
          "Runs programs over many devices from one process (include/phalanx/flow.h).\n"
          "\n"
          "Commands:\n",
          to);
    for (int i = 0; i < FLOW_COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", flow_commands[i].name, flow_commands[i].what);
    fputs("\n`phalanx flow COMMAND --help` has the options.\n", to);
}

int cmd_flow(int argc, char **argv)
{
    const char *names[FLOW_COMMANDS];
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        flow_print_usage(argc < 2 ? stderr : stdout);
        return argc < 2 ? EXIT_USAGE : EXIT_OK;
    }
    for (int i = 0; i < FLOW_COMMANDS; i++) {
        names[i] = flow_commands[i].name;
        if (strcmp(argv[1], names[i]) == 0)
            return flow_commands[i].run(argc - 1, argv + 1);
    }
    usage_unknown("command", str_from(argv[1]), names, FLOW_COMMANDS);
    return EXIT_USAGE;
}
