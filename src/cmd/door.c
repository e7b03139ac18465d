#include "cmd/door.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "doc/json.h"

enum { ANSWER_MAX = 64 * 1024, PATIENCE_S = 15 };

static void write_request(const struct door_report *report, struct buf *out)
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
        json_pair_str(&json, "evidence", report->evidence);
    json_end_object(&json);
    buf_printf(out,
               "POST /v1/faults HTTP/1.1\r\nHost: agent\r\nContent-Type: application/json\r\n"
               "Connection: close\r\nContent-Length: %zu\r\n\r\n",
               body.len);
    buf_add_str(out, buf_str(&body));
}

void door_path(const char *state, char ret_path[AGENT_SOCKET_PATH_MAX + 1])
{
    char real[PATH_MAX];
    agent_socket_path(realpath(state, real) ? real : state, "faults.sock", ret_path);
}

/* Returns a connected socket, or -1 with `error`. */
static int reach(const char *path, struct error *error)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    snprintf(place.sun_path, sizeof place.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    }
    if (fd >= 0 && connect(fd, (struct sockaddr *)&place, sizeof place) == 0)
        return fd;
    error_set(error, ERROR_UNAVAILABLE, "no agent at %s: %s", path, strerror(errno));
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

int door_report(const char *path, const struct door_report *report, struct error *error)
{
    struct buf request BUF_CLEANUP = {0}, answer BUF_CLEANUP = {0};
    write_request(report, &request);
    int fd = reach(path, error);
    if (fd < 0)
        return ERROR_UNAVAILABLE;
    bool answered = talk(fd, buf_str(&request), &answer);
    close(fd);
    struct str head, rest, version, status, body = {0};
    int64_t code = 0;
    if (!answered || !str_cut(buf_str(&answer), ' ', &version, &rest) ||
        !str_cut(rest, ' ', &status, &head) || !str_to_i64(status, 100, 599, &code))
        return error_set(error, ERROR_UNAVAILABLE, "the agent does not answer");
    const char *end = strstr(answer.data, "\r\n\r\n");
    if (end)
        body = str_trim(str_from(end + 4));
    return code < 300 ? 0 : error_set(error, ERROR_INVALID, "refused: " STR_FORMAT, STR_ARG(body));
}
