/* phalanx flow suspend, resume: takes the clients of a tenant off their devices, and puts them back. */
#include <stdio.h>

#include "base/units.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/usage.h"
#include "flow/host/watch.h"

static const char flow_suspend_usage[] =
    "Usage: phalanx flow suspend ADDRESS TENANT [--grace TIME] [--token-file FILE]\n"
    "\n"
    "Suspends the clients named TENANT (as `phalanx flow top` shows it) of the head at ADDRESS:\n"
    "launches that have a ticket run to their end, the others wait; workers save all values to files;\n"
    "the devices and their memory are free for other clients. Handles stay, and calls that need a value\n"
    "wait. Returns once all is saved. A client that is not through within the grace runs on, as if\n"
    "nothing had been asked.\n"
    "\n"
    "      --grace TIME       how long it may take (default 30s)\n"
    "      --token-file FILE  the head's token (default: as for clients)\n"
    "      --help             this text\n";

static const char flow_resume_usage[] =
    "Usage: phalanx flow resume ADDRESS TENANT [--token-file FILE]\n"
    "\n"
    "Resumes the suspended clients named TENANT of the head at ADDRESS, on the devices that carry\n"
    "least by then. A client for whose values they have no memory stays suspended.\n"
    "\n"
    "      --token-file FILE  the head's token (default: as for clients)\n"
    "      --help             this text\n";

static int flow_suspend_ask(const char *address, const char *token_file, const char *tenant, bool resumes,
                            int64_t grace_ns)
{
    struct flow_watch *watch;
    struct flow_suspension done;
    struct error error;
    if (flow_watch_open(address, token_file, &watch, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    int rc = resumes ? flow_watch_resume(watch, tenant, &done, &error)
                     : flow_watch_suspend(watch, tenant, grace_ns, flow_stop_signals(), &done, &error);
    flow_watch_close(watch);
    if (rc < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    char saved[24];
    bytes_format(done.bytes, saved);
    if (resumes)
        printf("%s: resumed, %u client%s\n", tenant, done.clients, done.clients == 1 ? "" : "s");
    else
        printf("%s: suspended, %u client%s, %s saved\n", tenant, done.clients, done.clients == 1 ? "" : "s",
               saved);
    return EXIT_OK;
}

static int flow_suspend_main(int argc, char **argv, bool resumes)
{
    static const struct option options[] = {{"grace", required_argument, NULL, 'g'},
                                            {"token-file", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *usage = resumes ? flow_resume_usage : flow_suspend_usage, *token_file = NULL;
    int64_t grace_ns = 30 * NS_PER_SECOND;
    int letter;
    while ((letter = usage_option(argc, argv, "h", options + resumes /* resume has no --grace */, NULL)) !=
           -1) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (letter == 't')
            token_file = optarg;
        else if (letter != 'g' || !usage_value(duration_parse(str_from(optarg), &grace_ns) && grace_ns > 0))
            return usage_wrong(usage, NULL);
    }
    if (optind + 2 != argc)
        return usage_wrong(usage, optind + 2 < argc ? "too many arguments" : "ADDRESS and TENANT are needed");
    return flow_suspend_ask(argv[optind], token_file, argv[optind + 1], resumes, grace_ns);
}

int flow_suspend(int argc, char **argv)
{
    return flow_suspend_main(argc, argv, false);
}

int flow_resume(int argc, char **argv)
{
    return flow_suspend_main(argc, argv, true);
}
