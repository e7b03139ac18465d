/* phalanx flow head: the one process that orders the launches of all clients. */
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>

#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/usage.h"
#include "flow/host/host.h"

static const char flow_head_usage[] =
    "Usage: phalanx flow head --listen ADDRESS\n"
    "\n"
    "Runs the head of a flow runtime until SIGINT or SIGTERM. Prints \"ready ADDRESS\" once it listens.\n"
    "\n"
    "Options:\n"
    "  --listen ADDRESS   unix:PATH or HOST:PORT, for workers and clients. A unix socket is for its user\n"
    "                     alone; HOST:PORT needs a token\n"
    "  --token-file FILE  64 hexadecimal digits, which workers and clients have to show (default: of\n"
    "                     PHX_FLOW_TOKEN, or the file PHX_FLOW_TOKEN_FILE)\n"
    "  --insecure         without a token, whoever reaches HOST:PORT may use the devices\n"
    "  --help             this text\n";

int flow_stop_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

int flow_head(int argc, char **argv)
{
    static const struct option options[] = {{"listen", required_argument, NULL, 'l'},
                                            {"token-file", required_argument, NULL, 't'},
                                            {"insecure", no_argument, NULL, 'i'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct flow_head_options head = {.ready = stdout};
    int letter;
    while ((letter = usage_option(argc, argv, "h", options, NULL)) != -1) {
        if (letter == 'h') {
            fputs(flow_head_usage, stdout);
            return EXIT_OK;
        }
        if (letter == 'l')
            head.listen = optarg;
        else if (letter == 't')
            head.token_file = optarg;
        else if (letter == 'i')
            head.insecure = true;
        else
            return usage_wrong(flow_head_usage, NULL);
    }
    if (!head.listen || optind < argc)
        return usage_wrong(flow_head_usage, head.listen ? "too many arguments" : "--listen is missing");
    struct error error;
    head.stop_fd = flow_stop_signals();
    if (flow_head_run(&head, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    return EXIT_OK;
}
