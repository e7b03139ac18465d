/* exec.c - the launcher's side of a command beside a task; shim.h describes the protocol. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "host/launch/state.h"

enum { ANSWER_TIMEOUT_MS = 10000 }; /* of a shim; a stopped machine takes long to answer */

struct launch_exec {
    struct launcher *launcher;
    void (*on_event)(void *context, enum launch_exec_kind kind, int value, const char *why);
    void *context;
    pid_t shim_pid;
    int listen_fd, conn_fd; /* -1: none */
    int fds[3];
    struct buf request;
    bool started, closing;
    uv_poll_t listening, connected;
    uv_timer_t timer;
    int handles;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_files(struct launch_exec *exec)
{
    close_fd(&exec->listen_fd);
    close_fd(&exec->conn_fd);
    for (int i = 0; i < 3; i++)
        close_fd(&exec->fds[i]);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct launch_exec *exec = handle->data;
    struct launcher *launcher = exec->launcher;
    if (--exec->handles > 0)
        return;
    buf_done(&exec->request);
    mem_free(exec);
    handle_closed(launcher);
}

void launch_exec_close(struct launch_exec *exec)
{
    if (exec->closing)
        return;
    exec->closing = true;
    if (exec->conn_fd >= 0)
        uv_close((uv_handle_t *)&exec->connected, on_handle_closed);
    if (exec->listen_fd >= 0)
        uv_close((uv_handle_t *)&exec->listening, on_handle_closed);
    uv_close((uv_handle_t *)&exec->timer, on_handle_closed);
    close_files(exec); /* the shim takes it for the sign to kill */
}

static void finish(struct launch_exec *exec, enum launch_exec_kind kind, int value, const char *why)
{
    void (*on_event)(void *, enum launch_exec_kind, int, const char *) = exec->on_event;
    void *context = exec->context;
    launch_exec_close(exec);
    on_event(context, kind, value, why);
}

/* --- what the shim says --------------------------------------------------------------------------- */

static void say_failure(struct launch_exec *exec, const struct shim_exec_reply *reply)
{
    struct error error;
    bool at_exec = reply->stage == SHIM_STAGE_EXEC;
    error_set_errno(&error, reply->value, "%s", at_exec ? "executing the command" : stage_text(reply->stage));
    finish(exec, LAUNCH_EXEC_FAILED, !at_exec ? -1 : reply->value == ENOENT ? 127 : 126, error.text);
}

static void on_reply(uv_poll_t *poll, int status, int events)
{
    struct launch_exec *exec = poll->data;
    struct shim_exec_reply reply;
    (void)status;
    (void)events;
    ssize_t got = recv(exec->conn_fd, &reply, sizeof reply, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got != sizeof reply || reply.magic != SHIM_EXEC_MAGIC)
        finish(exec, LAUNCH_EXEC_FAILED, -1, "the task has ended");
    else if (reply.kind == SHIM_EXEC_STARTED && !exec->started) {
        exec->started = true;
        uv_timer_stop(&exec->timer);
        exec->on_event(exec->context, LAUNCH_EXEC_STARTED, reply.value, "");
    } else if (reply.kind == SHIM_EXEC_ENDED && exec->started)
        finish(exec, LAUNCH_EXEC_ENDED, reply.signal ? 128 + reply.value : reply.value, "");
    else
        say_failure(exec, &reply);
}

/* --- the connection ------------------------------------------------------------------------------- */

static bool send_request(struct launch_exec *exec)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof exec->fds)];
    } control = {0};
    struct iovec part = {exec->request.data, exec->request.len};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof exec->fds);
    memcpy(CMSG_DATA(&control.header), exec->fds, sizeof exec->fds);
    return sendmsg(exec->conn_fd, &message, MSG_NOSIGNAL) == (ssize_t)exec->request.len;
}

/* Accepts only this task's shim: no other process may get the descriptors. */
static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct launch_exec *exec = poll->data;
    struct ucred peer = {0};
    socklen_t len = sizeof peer;
    (void)status;
    (void)events;
    int fd = accept4(exec->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    fd = fd < 0 ? fd : fd_raise(fd);
    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || peer.pid != exec->shim_pid) {
        close(fd);
        return;
    }
    exec->conn_fd = fd;
    CHECK(uv_poll_init(exec->launcher->loop, &exec->connected, fd) == 0);
    exec->connected.data = exec;
    exec->handles++;
    /* Closed at once, not stopped now and closed at the end: uv_close removes the descriptor's number from
     * the loop's epoll set, and later the number may be that of another command's connection. */
    uv_close((uv_handle_t *)&exec->listening, on_handle_closed);
    close_fd(&exec->listen_fd);
    bool sent = send_request(exec);
    for (int i = 0; i < 3; i++)
        close_fd(&exec->fds[i]);
    if (sent)
        uv_poll_start(&exec->connected, UV_READABLE | UV_DISCONNECT, on_reply);
    else
        finish(exec, LAUNCH_EXEC_FAILED, -1, "the task has ended");
}

static void on_timeout(uv_timer_t *timer)
{
    finish(timer->data, LAUNCH_EXEC_FAILED, -1,
           "the task's shim does not answer: it runs too many commands already, or is of an earlier version");
}

static int listen_for_shim(struct launch_exec *exec, uint64_t *ret_token, struct error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint64_t token;
    if (getrandom(&token, sizeof token, 0) != sizeof token)
        return error_set_errno(error, errno, "taking a random number");
    int len = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s%016llx", SHIM_EXEC_ADDRESS,
                       (unsigned long long)token);
    socklen_t size = (socklen_t)(sizeof address.sun_family + 1 + (size_t)len);
    exec->listen_fd = fd_raise(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (exec->listen_fd < 0 || bind(exec->listen_fd, (struct sockaddr *)&address, size) < 0 ||
        listen(exec->listen_fd, 4) < 0)
        return error_set_errno(error, errno, "listening for the task's shim");
    *ret_token = token;
    return 0;
}

/* --- the command ---------------------------------------------------------------------------------- */

static uint32_t add_strings(struct buf *request, const char *const *strings)
{
    uint32_t count = 0;
    for (; strings && strings[count] && request->len <= SHIM_EXEC_BYTES_MAX; count++)
        buf_add(request, strings[count], strlen(strings[count]) + 1);
    return count;
}

static int compose_request(struct buf *request, const struct launch_exec_options *options,
                           struct error *error)
{
    struct shim_exec_request header = {.magic = SHIM_EXEC_MAGIC, .flags = options->tty ? SHIM_EXEC_TTY : 0};
    buf_add(request, &header, sizeof header);
    header.argc = add_strings(request, options->argv);
    header.envc = add_strings(request, options->env);
    if (header.argc == 0)
        return error_set(error, ERROR_INVALID, "no command");
    if (request->len > SHIM_EXEC_BYTES_MAX)
        return error_set(error, ERROR_LIMIT, "the command is longer than %d bytes", SHIM_EXEC_BYTES_MAX);
    memcpy(request->data, &header, sizeof header);
    return 0;
}

static int prepare(struct launch_exec *exec, uint64_t uid, const struct launch_exec_options *options,
                   struct error *error)
{
    uint64_t token = 0;
    int rc = compose_request(&exec->request, options, error);
    for (int i = 0; i < 3 && rc == 0; i++) {
        exec->fds[i] = fcntl(options->fds[i], F_DUPFD_CLOEXEC, FD_LOW);
        if (exec->fds[i] < 0)
            rc = error_set_errno(error, errno, "duplicating the command's files");
    }
    if (rc == 0)
        rc = listen_for_shim(exec, &token, error);
    return rc < 0 ? rc : exec_signal(exec->launcher, uid, token, &exec->shim_pid, error);
}

int launch_exec(struct launcher *launcher, uint64_t uid, const struct launch_exec_options *options,
                struct launch_exec **ret_exec, struct error *error)
{
    struct launch_exec *exec = mem_alloc(sizeof *exec);
    *exec = (struct launch_exec){.launcher = launcher,
                                 .on_event = options->on_event,
                                 .context = options->context,
                                 .listen_fd = -1,
                                 .conn_fd = -1,
                                 .fds = {-1, -1, -1}};
    int rc = prepare(exec, uid, options, error);
    if (rc < 0) {
        close_files(exec);
        buf_done(&exec->request);
        mem_free(exec);
        return rc;
    }
    CHECK(uv_poll_init(launcher->loop, &exec->listening, exec->listen_fd) == 0);
    CHECK(uv_timer_init(launcher->loop, &exec->timer) == 0);
    exec->listening.data = exec->timer.data = exec;
    exec->handles = 2;
    launcher->handles++;
    uv_poll_start(&exec->listening, UV_READABLE, on_connection);
    uv_timer_start(&exec->timer, on_timeout, ANSWER_TIMEOUT_MS, 0);
    *ret_exec = exec;
    return 0;
}
