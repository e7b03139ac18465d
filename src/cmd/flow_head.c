/* phalanx flow head: runs the single process that orders the launches of all clients. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <uv.h>

#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/usage.h"
#include "flow/host/host.h"
#include "flow/host/metrics.h"
#include "host/http/door.h"

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
    "  --transport NAME   with workers: socket (default), ucx or auto, as for flow worker\n"
    "  --metrics ADDR:PORT  answer GET /metrics there, in the clear (docs/flow-runtime.md)\n"
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

/* The thread that answers GET /metrics, with its own loop. */
struct head_scrapes {
    uv_loop_t loop;
    uv_async_t stop;
    struct door *door;
    struct flow_desk *desk;
    pthread_t thread;
};

static void head_scrape(void *context, const struct door_request *request, struct door_answer *answer)
{
    struct head_scrapes *scrapes = context;
    if (!str_is(request->path, "/metrics") || !str_is(request->method, "GET")) {
        answer->code = str_is(request->path, "/metrics") ? 405 : 404;
        buf_printf(&answer->body, "there is GET /metrics\n");
        return;
    }
    answer->type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    if (!flow_desk_ask(scrapes->desk, &answer->body))
        answer->code = 503;
}

static void head_scrapes_stop(uv_async_t *stop)
{
    struct head_scrapes *scrapes = stop->data;
    door_close(scrapes->door, NULL, NULL);
    uv_close((uv_handle_t *)stop, NULL);
}

static void *head_scrapes_main(void *arg)
{
    struct head_scrapes *scrapes = arg;
    uv_run(&scrapes->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* Listens at "ADDR:PORT", such as "[::1]:9090", and starts the thread. */
static int head_scrapes_begin(struct head_scrapes *scrapes, const char *place, struct error *error)
{
    uint16_t port;
    char address[64];
    if (!usage_place(place, address, sizeof address, &port))
        return error_set(error, ERROR_INVALID, "--metrics: expected ADDR:PORT, got %s", place);
    CHECK(uv_loop_init(&scrapes->loop) == 0);
    int rc = door_open_tcp(&scrapes->loop, address, port, head_scrape, scrapes, &scrapes->door, NULL, error);
    if (rc < 0) {
        uv_run(&scrapes->loop, UV_RUN_DEFAULT); /* closes what was opened */
        uv_loop_close(&scrapes->loop);
        return error_wrap(error, "--metrics");
    }
    CHECK(uv_async_init(&scrapes->loop, &scrapes->stop, head_scrapes_stop) == 0);
    scrapes->stop.data = scrapes;
    scrapes->desk = flow_desk_new();
    CHECK(pthread_create(&scrapes->thread, NULL, head_scrapes_main, scrapes) == 0);
    return 0;
}

static void head_scrapes_end(struct head_scrapes *scrapes)
{
    if (!scrapes->desk)
        return;
    uv_async_send(&scrapes->stop);
    pthread_join(scrapes->thread, NULL);
    CHECK(uv_loop_close(&scrapes->loop) == 0);
    flow_desk_free(scrapes->desk);
}

int flow_head(int argc, char **argv)
{
    static const struct option options[] = {{"listen", required_argument, NULL, 'l'},
                                            {"token-file", required_argument, NULL, 't'},
                                            {"insecure", no_argument, NULL, 'i'},
                                            {"metrics", required_argument, NULL, 'm'},
                                            {"transport", required_argument, NULL, 'T'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct flow_head_options head = {.ready = stdout};
    struct head_scrapes scrapes = {0};
    const char *metrics = NULL;
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
        else if (letter == 'm')
            metrics = optarg;
        else if (letter != 'T' || !usage_value(wire_transport_parse(optarg, &head.transport)))
            return usage_wrong(flow_head_usage, NULL);
    }
    if (!head.listen || optind < argc)
        return usage_wrong(flow_head_usage, head.listen ? "too many arguments" : "--listen is missing");
    struct error error;
    head.stop_fd = flow_stop_signals();
    int rc = metrics ? head_scrapes_begin(&scrapes, metrics, &error) : 0;
    head.desk = scrapes.desk;
    if (rc == 0)
        rc = flow_head_run(&head, &error);
    head_scrapes_end(&scrapes);
    if (rc < 0)
        say("%s", error.text);
    return rc < 0 ? EXIT_FAILED : EXIT_OK;
}
