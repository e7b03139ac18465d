/* phalanx version: prints the versions of this program and of the controller. */
#include <stdio.h>

#include "cmd/usage.h"
#include "cmd/client.h"
#include "core/words/release.h"

static const char usage[] = "Usage: phalanx version [options]\n"
                            "\n"
                            "Prints the version of this program, and of the controller if one answers.\n"
                            "\n"
                            "      --client           this program's alone\n"
                            "  -o, --output json      one JSON object\n" CLIENT_HELP CLIENT_EXIT_HELP;

int cmd_version(int argc, char **argv)
{
    static const struct option options[] = {{"client", no_argument, NULL, 'c'},
                                            {"output", required_argument, NULL, 'o'},
                                            CLIENT_LONG_OPTIONS,
                                            {0}};
    struct client_options common = {0};
    bool alone = false, json = false;
    int letter;
    while ((letter = usage_option(argc, argv, CLIENT_SHORT_OPTIONS "o:", options, NULL)) != -1) {
        if (letter == 'c') {
            alone = true;
        } else if (letter == 'o') {
            if (!usage_json(optarg, &json))
                return usage_wrong(usage, NULL);
        } else if (!client_option(&common, letter, optarg)) {
            return usage_wrong(usage, NULL);
        }
    }
    if (common.help) {
        fputs(usage, stdout);
        return EXIT_OK;
    }
    struct client_reply reply = {0};
    struct client client;
    struct buf out BUF_CLEANUP = {0};
    struct json_writer writer = {.out = &out};
    int rc = EXIT_OK;
    if (!alone) {
        client_open(&client, &common);
        rc = client_get(&client, STR("/version"), &reply);
    }
    struct str server = doc_text(reply.doc, "gitVersion");
    if (json) {
        json_begin_object(&writer);
        json_pair_text(&writer, "client", this_release.version);
        if (server.len)
            json_pair_str(&writer, "server", server);
        json_end_object(&writer);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "client: phalanx %s\n", this_release.version);
        if (server.len)
            buf_printf(&out, "server: " STR_FORMAT "\n", STR_ARG(server));
    }
    output_write(&out);
    if (!alone) {
        client_reply_done(&reply);
        client_close(&client);
    }
    return rc;
}
