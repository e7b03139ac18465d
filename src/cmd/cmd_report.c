/* phalanx report CODE: reports to this machine's agent that the machine has a fault, or has it no longer.
 * Without a CODE: the use of chips (report_costs.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/client.h"
#include "cmd/usage.h"
#include "cmd/cmd.h"
#include "cmd/door.h"
#include "cmd/report_costs.h"

#define STATE_DEFAULT "/var/lib/phalanx/agent"

const char report_fault_usage[] =
    "Usage: phalanx report CODE [options] [EVIDENCE...]\n"
    "\n"
    "Reports a fault of this machine to its agent, for daemons that watch fans, pumps or links\n"
    "(docs/faults.md). CODE is a family and a name, such as fan/slow; EVIDENCE is what was seen.\n"
    "\n"
    "  --place P        where below the machine: fan/2\n"
    "  --severity S     notice, minor, major (default) or critical, for codes not in the fault table\n"
    "  --chip N         the chip concerned\n"
    "  --recover        report recovery: the fault is over\n"
    "  --once           report an event that has no end of its own\n"
    "  --state DIR      the agent's state directory (default " STATE_DEFAULT ")\n"
    "  --socket PATH    its faults.sock instead\n"
    "  --help           this text\n"
    "\n"
    "Exit status: 0 reported, 1 refused or failed, 2 usage, 4 no agent answers.\n";

struct report {
    const char *code, *place, *severity, *assertion, *state, *socket;
    int64_t chip; /* -1: none */
    struct buf evidence;
};

static int parse(struct report *report, int argc, char **argv)
{
    static const struct option options[] = {{"place", required_argument, NULL, 'p'},
                                            {"severity", required_argument, NULL, 's'},
                                            {"chip", required_argument, NULL, 'c'},
                                            {"recover", no_argument, NULL, 'r'},
                                            {"once", no_argument, NULL, 'o'},
                                            {"state", required_argument, NULL, 'd'},
                                            {"socket", required_argument, NULL, 'k'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    int option;
    while ((option = usage_option(argc, argv, "h", options, NULL)) != -1) {
        const char **const texts[] = {['p'] = &report->place,
                                      ['s'] = &report->severity,
                                      ['d'] = &report->state,
                                      ['k'] = &report->socket};
        if (option == 'h') {
            fputs(report_fault_usage, stdout);
            exit(EXIT_OK);
        }
        if (option == '?') {
            usage_wrong(report_fault_usage, NULL);
            return -1;
        }
        if (option == 'c' && !str_to_i64(str_from(optarg), 0, INT32_MAX, &report->chip)) {
            say("--chip: \"%s\" is not a number", optarg);
            return -1;
        }
        if ((option == 'r' || option == 'o') && report->assertion) {
            say("--recover and --once exclude each other");
            return -1;
        }
        if (option == 'r' || option == 'o')
            report->assertion = option == 'r' ? "recover" : "once";
        else if (option != 'c')
            *texts[option] = optarg;
    }
    if (optind >= argc) {
        usage_wrong(report_fault_usage, "CODE is missing");
        return -1;
    }
    report->code = argv[optind++];
    for (; optind < argc; optind++)
        buf_printf(&report->evidence, "%s%s", report->evidence.len ? " " : "", argv[optind]);
    return 0;
}

int cmd_report(int argc, char **argv)
{
    struct report report = {.state = STATE_DEFAULT, .chip = -1};
    struct error error;
    char path[AGENT_SOCKET_PATH_MAX + 1];
    if (report_asks_costs(argc - 1, argv + 1))
        return report_costs(argc, argv);
    if (parse(&report, argc, argv) < 0)
        return EXIT_USAGE;
    if (report.socket && strlen(report.socket) > AGENT_SOCKET_PATH_MAX) {
        say("%s: the path is too long", report.socket);
        buf_done(&report.evidence);
        return EXIT_UNREACHABLE;
    }
    if (report.socket)
        snprintf(path, sizeof path, "%s", report.socket);
    else
        door_path(report.state, path);
    int rc = door_report(path,
                         &(struct door_report){.code = report.code,
                                               .place = report.place,
                                               .severity = report.severity,
                                               .assertion = report.assertion,
                                               .evidence = buf_str(&report.evidence),
                                               .chip = report.chip},
                         &error);
    buf_done(&report.evidence);
    if (rc < 0)
        say("%s", error.text);
    return rc == 0 ? EXIT_OK : rc == ERROR_UNAVAILABLE ? EXIT_UNREACHABLE : EXIT_FAILED;
}
