/* phalanx version: of this program and of the controller. */
#include <stdio.h>

#include "cmd/usage.h"
#include "cmd/client.h"

static const char usage[] = "Usage: phalanx version [options]\n"
                            "\n"
                            "Prints the version of this program, and of the controller where one answers.\n"
                            "\n"
                            "      --client           this program's alone\n" CLIENT_HELP CLIENT_EXIT_HELP;

int cmd_version(int argc, char **argv)
{
    static const struct option options[] = {{"client", no_argument, NULL, 'c'}, CLIENT_LONG_OPTIONS, {0}};
    struct client_options common = {0};
    bool alone = false;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS, options, NULL)) != -1) {
        if (letter == 'c') {
            alone = true;
        } else if (!client_option(&common, letter, optarg)) {
            return usage_wrong(usage, NULL);
        }
    }
    if (common.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    printf("client: phalanx %s\n", PHX_VERSION);
    if (alone)
        return EXIT_OK;
    struct client client;
    struct client_reply reply;
    client_open(&client, &common);
    int rc = client_get(&client, STR("/version"), &reply);
    if (rc == EXIT_OK) {
        printf("server: " STR_FORMAT "\n", STR_ARG(doc_text(reply.doc, "gitVersion")));
        client_reply_done(&reply);
    }
    client_close(&client);
    return rc;
}
