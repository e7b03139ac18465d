/* phalanx down: ends the cluster that `phalanx up` runs in a folder, or its remaining processes. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/client.h"
#include "cmd/keeper.h"
#include "cmd/usage.h"

static const char usage[] =
    "Usage: phalanx down [--data DIR] [--timeout DURATION]\n"
    "\n"
    "Ends the cluster that `phalanx up` runs in DIR, as a SIGTERM to it does: tasks have their grace.\n"
    "Returns when the last process of the cluster is gone. Also ends what is left of a cluster whose\n"
    "`phalanx up` was killed. The log, checkpoints and task output stay in DIR.\n"
    "\n"
    "  --data DIR          the folder (default ./phalanx-data)\n"
    "  --timeout DURATION  give up waiting after this long (default: never)\n"
    "  --help              this text\n"
    "\n"
    "Exit status: 0 nothing runs any more, 1 failed, 2 usage, 3 no such folder, 5 timed out.\n";

int cmd_down(int argc, char **argv)
{
    static const struct option options[] = {{"data", required_argument, NULL, 'd'},
                                            {"timeout", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *data = "phalanx-data";
    int64_t timeout_ns = 0;
    bool usable = true;
    int letter;
    while ((letter = usage_option(argc, argv, "h", options, NULL)) != -1) {
        if (letter == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (letter == 'd')
            data = optarg;
        else
            usable = usage_value(letter == 't' && duration_parse(str_from(optarg), &timeout_ns)) && usable;
    }
    if (!usable)
        return usage_wrong(usage, NULL);
    if (optind < argc)
        return usage_wrong(usage, "unexpected argument \"%s\"", argv[optind]);
    char real[PATH_MAX];
    if (!realpath(data, real)) {
        say("%s: %s; --data DIR names the folder of `phalanx up`", data, strerror(errno));
        return errno == ENOENT ? EXIT_NOT_FOUND : EXIT_FAILED;
    }
    return keeper_down(real, timeout_ns > 0 ? client_clock() + timeout_ns : INT64_MAX);
}
