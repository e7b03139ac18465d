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
    {"up", flow_up, "run a head and workers here: --hosts, --devices, --memory, --host-memory, ..."},
    {"head", flow_head, "run the head: --listen, --transport, --metrics"},
    {"worker", flow_worker, "run the worker of a host: --head, --listen, --devices, --pjrt, ..."},
    {"top", flow_top, "show tenants, devices and programs of a head: ADDRESS"},
    {"trace", flow_trace, "record what devices do: ADDRESS -o FILE, --time"},
    {"suspend", flow_suspend, "save a tenant's values and free its devices: ADDRESS TENANT, --grace"},
    {"resume", flow_resume, "run a suspended tenant again: ADDRESS TENANT"},
    {"check", flow_check, "parse and verify StableHLO programs"},
    {"show", flow_show, "draw a function as an SVG picture: -o PICTURE.svg"},
    {"run", flow_run, "run StableHLO programs on this machine (--executor NAME, -o json)"},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const char usage[] = "Usage: phalanx flow ACTION [ARGUMENTS]\n"
                            "\n"
                            "Runs programs over many chips from one controller.\n";

static int flow_help(void)
{
    fputs(usage, stdout);
    for (int i = 0; i < ACTIONS; i++)
        printf("  %-12s %s\n", actions[i].name, actions[i].help);
    puts("\n`phalanx flow ACTION --help` explains an action.\n"
         "\n"
         "Example: phalanx flow up --hosts 4 --devices 2\n"
         "\n"
         "Exit status: 0 done, 1 it failed, 2 the command line is wrong.");
    return EXIT_OK;
}

int cmd_flow(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    const char *known[ACTIONS];
    int letter = usage_option(argc, argv, "+h", options, NULL); /* the action parses the options after it */
    if (letter == 'h')
        return flow_help();
    if (letter != -1)
        return usage_wrong(usage, NULL);
    if (optind == argc)
        return usage_wrong(usage, "expected an action, such as check");
    int first = optind;
    for (int i = 0; i < ACTIONS; i++) {
        known[i] = actions[i].name;
        if (strcmp(argv[first], actions[i].name) == 0) {
            optind = 0; /* glibc: restarts the parser */
            return actions[i].run(argc - first, argv + first);
        }
    }
    usage_unknown("action", str_from(argv[first]), known, ACTIONS);
    return EXIT_USAGE;
}
