/* phalanx report: says to this machine's agent that something is wrong with the machine, or well again. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "cmd/cmd.h"
#include "host/agent/agent_host.h"

#define STATE_DEFAULT "/var/lib/phalanx/agent"
enum { ANSWER_MAX = 64 * 1024, PATIENCE_S = 15 };

static const char usage[] =
    "Usage: phalanx report CODE [options] [EVIDENCE...]\n"
    "\n"
    "Reports a fault of this machine to its agent, as daemons do that watch fans, pumps or links\n"
    "(docs/faults.md). CODE is a family and a name, fan/slow; EVIDENCE is what was seen.\n"
    "\n"
    "  --place P        where below the machine: fan/2\n"
    "  --severity S     notice, minor, major (default) or critical: for codes that the table does not know\n"
    "  --chip N         the chip that it is about\n"
    "  --recover        it is over\n"
    "  --once           it happened, and has no end of its own\n"
    "  --state DIR      the agent's state directory (default " STATE_DEFAULT ")\n"
    "  --socket PATH    its faults.sock instead\n"
    "  --help           this text\n"
    "\n"
    "Exit status: 0 the agent has it, 1 refused or failed, 2 usage, 4 no agent answers.\n";

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
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        const char **const texts[] = {['p'] = &report->place,
                                      ['s'] = &report->severity,
                                      ['d'] = &report->state,
                                      ['k'] = &report->socket};
        if (option == 'h') {
            fputs(usage, stdout);
            exit(EXIT_OK);
        }
        if (option == '?')
            return -1;
        if (option == 'c' && !str_to_i64(str_from(optarg), 0, INT32_MAX, &report->chip)) {
            fprintf(stderr, "phalanx report: --chip: \"%s\" is no number\n", optarg);
            return -1;
        }
        if ((option == 'r' || option == 'o') && report->assertion) {
            fprintf(stderr, "phalanx report: --recover and --once exclude each other\n");
            return -1;
        }
        if (option == 'r' || option == 'o')
            report->assertion = option == 'r' ? "recover" : "once";
        else if (option != 'c')
            *texts[option] = optarg;
    }
    if (optind >= argc) {
        fprintf(stderr, "phalanx report: a code is needed; see --help\n");
        return -1;
    }
    report->code = argv[optind++];
    for (; optind < argc; optind++)
        buf_printf(&report->evidence, "%s%s", report->evidence.len ? " " : "", argv[optind]);
    return 0;
}

static void write_request(const struct report *report, struct buf *out)
{
    struct buf body BUF_CLEANUP = {0};
    struct json_writer json = {.out = &body};
    json_begin_object(&json);
    json_pair_text(&json, "code", report->code);
    if (report->place)
        json_pair_text(&json, "place", report->place);
    if (report->severity)
        json_pair_text(&json, "severity", report->severity);
    if (report->assertion)
        json_pair_text(&json, "assertion", report->assertion);
    if (report->chip >= 0)
        json_pair_int(&json, "chip", report->chip);
    if (report->evidence.len)
        json_pair_str(&json, "evidence", buf_str(&report->evidence));
    json_end_object(&json);
    buf_printf(out,
               "POST /v1/faults HTTP/1.1\r\nHost: agent\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n",
               body.len);
    buf_add_str(out, buf_str(&body));
}

/* Connected; -1: it was said why. */
static int reach(const struct report *report)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    char path[AGENT_SOCKET_PATH_MAX + 1], real[PATH_MAX];
    if (report->socket)
        snprintf(path, sizeof path, "%s", report->socket);
    else
        agent_socket_path(realpath(report->state, real) ? real : report->state, "faults.sock", path);
    if (report->socket && strlen(report->socket) > AGENT_SOCKET_PATH_MAX) {
        fprintf(stderr, "phalanx report: %s: the path is too long\n", report->socket);
        return -1;
    }
    snprintf(place.sun_path, sizeof place.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    }
    if (fd >= 0 && connect(fd, (struct sockaddr *)&place, sizeof place) == 0)
        return fd;
    fprintf(stderr, "phalanx report: no agent at %s: %s\n", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool talk(int fd, struct str request, struct buf *answer)
{
    while (request.len) {
        ssize_t len = send(fd, request.data, request.len, MSG_NOSIGNAL);
        if (len <= 0)
            return false;
        request = (struct str){request.data + len, request.len - (size_t)len};
    }
    char chunk[4096];
    ssize_t len;
    while (answer->len < ANSWER_MAX && (len = recv(fd, chunk, sizeof chunk, 0)) > 0)
        buf_add(answer, chunk, (size_t)len);
    return answer->len > 0;
}

int cmd_report(int argc, char **argv)
{
    struct report report = {.state = STATE_DEFAULT, .chip = -1};
    struct buf request BUF_CLEANUP = {0}, answer BUF_CLEANUP = {0};
    if (parse(&report, argc, argv) < 0)
        return EXIT_USAGE;
    write_request(&report, &request);
    buf_done(&report.evidence);
    int fd = reach(&report);
    if (fd < 0)
        return EXIT_UNREACHABLE;
    bool answered = talk(fd, buf_str(&request), &answer);
    close(fd);
    struct str head, rest, version, status, body = {0};
    int64_t code = 0;
    if (!answered || !str_cut(buf_str(&answer), ' ', &version, &rest) ||
        !str_cut(rest, ' ', &status, &head) || !str_to_i64(status, 100, 599, &code)) {
        fprintf(stderr, "phalanx report: the agent gives no answer\n");
        return EXIT_UNREACHABLE;
    }
    const char *end = strstr(answer.data, "\r\n\r\n");
    if (end)
        body = str_trim(str_from(end + 4));
    if (code < 300)
        return EXIT_OK;
    fprintf(stderr, "phalanx report: refused: " STR_FORMAT "\n", STR_ARG(body));
    return EXIT_FAILED;
}
