/* phalanx flow: programs over many chips; its actions are in flow_*.c. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/usage.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} actions[] = {
    {"up", flow_up, "run a head and workers on this machine: --hosts, --devices, ..."},
    {"head", flow_head, "run the head: --listen"},
    {"worker", flow_worker, "run the worker of a host: --head, --listen, --devices, ..."},
    {"check", flow_check, "parse and verify StableHLO programs"},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static void flow_usage(FILE *out)
{
    fputs("Usage: phalanx flow ACTION [ARGUMENTS]\n\n", out);
    for (int i = 0; i < ACTIONS; i++)
        fprintf(out, "  %-12s %s\n", actions[i].name, actions[i].help);
    fputs("\n`phalanx flow ACTION --help` explains an action.\n", out);
}

int cmd_flow(int argc, char **argv)
{
    const char *known[ACTIONS];
    if (argc < 2) {
        flow_usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        flow_usage(stdout);
        return EXIT_OK;
    }
    for (int i = 0; i < ACTIONS; i++) {
        known[i] = actions[i].name;
        if (strcmp(argv[1], actions[i].name) == 0)
            return actions[i].run(argc - 1, argv + 1);
    }
    usage_unknown("action", str_from(argv[1]), known, ACTIONS);
    return EXIT_USAGE;
}
