/* exec.c - commands that run beside the task, each on a connection to the launcher (host/launch/shim.h). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/parts.h"

static void say(int fd, struct shim_exec_reply reply)
{
    reply.magic = SHIM_EXEC_MAGIC;
    ssize_t ignored = write(fd, &reply, sizeof reply); /* no reader is left: the kill is on its way */
    (void)ignored;
}

static void slot_free(struct exec_slot *slot)
{
    close(slot->fd);
    *slot = (struct exec_slot){0};
}

/* Makes the abstract address, which begins with a NUL, and returns its length. */
static socklen_t address_of(uint64_t token, struct sockaddr_un *ret_address)
{
    static const char digits[] = "0123456789abcdef";
    const size_t prefix = sizeof SHIM_EXEC_ADDRESS - 1;
    memset(ret_address, 0, sizeof *ret_address);
    ret_address->sun_family = AF_UNIX;
    memcpy(ret_address->sun_path + 1, SHIM_EXEC_ADDRESS, prefix);
    for (size_t i = 0; i < 16; i++)
        ret_address->sun_path[1 + prefix + i] = digits[token >> (60 - 4 * i) & 15];
    return (socklen_t)(sizeof ret_address->sun_family + 1 + prefix + 16);
}

static bool is_our_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

/* Connects to the launcher. If there is no free slot or no connection, the launcher's time-out is the
 * answer. */
void exec_connect(struct shim *shim, uint64_t token)
{
    struct exec_slot *slot = NULL;
    for (int i = 0; i < SHIM_EXECS_MAX; i++)
        if (shim->execs[i].fd == 0)
            slot = &shim->execs[i];
    struct sockaddr_un address;
    socklen_t len = address_of(token, &address);
    int fd = slot ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    if (fd < 0)
        return;
    if (connect(fd, (struct sockaddr *)&address, len) < 0 || !is_our_user(fd))
        close(fd);
    else
        *slot = (struct exec_slot){.fd = fd};
}

/* Takes `count` strings of the request, and adds a NULL. Returns false if the request is shorter than it
 * claims. */
static bool take_strings(const char **at, const char *end, uint32_t count, const char **ret_strings)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *stop = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;
        if (!stop)
            return false;
        ret_strings[i] = *at;
        *at = stop + 1;
    }
    ret_strings[count] = NULL;
    return true;
}

static void run_request(struct shim *shim, struct exec_slot *slot, const char *bytes, size_t len,
                        const int fds[3])
{
    struct shim_exec_request request;
    struct shim_exec_reply reply = {.kind = SHIM_EXEC_FAILED, .stage = SHIM_STAGE_PROCESS, .value = EBADMSG};
    memcpy(&request, bytes, sizeof request);
    const char *at = bytes + sizeof request, *end = bytes + len;
    bool sane = request.magic == SHIM_EXEC_MAGIC && request.argc > 0 && request.argc <= len &&
                request.envc <= len && !shim->task_dead;
    size_t room = sane ? ((size_t)request.argc + request.envc + shim->header->envc + 3) * sizeof(char *) : 0;
    const char **strings =
        sane ? mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    if (strings != MAP_FAILED) {
        const char **envp = strings + request.argc + 1;
        if (take_strings(&at, end, request.argc, strings) && take_strings(&at, end, request.envc, envp)) {
            memcpy(envp + request.envc, shim->envp, ((size_t)shim->header->envc + 1) * sizeof(char *));
            struct exec_command command = {
                strings, envp, {fds[0], fds[1], fds[2]}, request.flags & SHIM_EXEC_TTY};
            enum shim_stage stage = SHIM_STAGE_NONE;
            pid_t pid = start_exec(shim, &command, &stage);
            slot->pid = pid > 0 ? pid : 0;
            reply.kind = pid > 0 ? SHIM_EXEC_STARTED : SHIM_EXEC_FAILED;
            reply.stage = stage;
            reply.value = pid > 0 ? pid : -pid;
        }
        munmap(strings, room);
    }
    say(slot->fd, reply);
    if (reply.kind == SHIM_EXEC_FAILED)
        slot_free(slot);
}

/* Receives the request with its three descriptors, and runs it. */
static void take_request(struct shim *shim, struct exec_slot *slot)
{
    static char bytes[SHIM_EXEC_BYTES_MAX];
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(3 * sizeof(int))];
    } control;
    struct iovec part = {bytes, sizeof bytes};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t len = recvmsg(slot->fd, &message, MSG_CMSG_CLOEXEC);
    if (len < 0 && errno == EAGAIN)
        return;
    int fds[3] = {-1, -1, -1};
    size_t count = 0;
    if (len > 0 && message.msg_controllen >= sizeof control.header &&
        control.header.cmsg_level == SOL_SOCKET && control.header.cmsg_type == SCM_RIGHTS) {
        count = (control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(&control.header), (count < 3 ? count : 3) * sizeof(int));
    }
    if (count == 3 && len >= (ssize_t)sizeof(struct shim_exec_request) && !(message.msg_flags & MSG_TRUNC))
        run_request(shim, slot, bytes, (size_t)len, fds);
    else
        slot_free(slot);
    for (size_t i = 0; i < count && i < 3; i++)
        close(fds[i]);
}

void exec_poll_set(const struct shim *shim, struct pollfd *ret_fds)
{
    for (int i = 0; i < SHIM_EXECS_MAX; i++)
        ret_fds[i] = (struct pollfd){shim->execs[i].fd ? shim->execs[i].fd : -1, POLLIN, 0};
}

void exec_poll_done(struct shim *shim, const struct pollfd *fds)
{
    for (int i = 0; i < SHIM_EXECS_MAX; i++) {
        struct exec_slot *slot = &shim->execs[i];
        if (!slot->fd || !fds[i].revents || slot->fd != fds[i].fd)
            continue;
        if (slot->pid == 0 && fds[i].revents & POLLIN) {
            take_request(shim, slot);
            continue;
        }
        if (slot->pid > 0) /* the launcher sends nothing more: it has closed */
            kill(-slot->pid, SIGKILL);
        slot_free(slot);
    }
}

void exec_reaped(struct shim *shim, pid_t pid, int status)
{
    for (int i = 0; i < SHIM_EXECS_MAX && pid > 0; i++) {
        struct exec_slot *slot = &shim->execs[i];
        if (slot->fd == 0 || slot->pid != pid)
            continue;
        bool signaled = WIFSIGNALED(status);
        say(slot->fd, (struct shim_exec_reply){.kind = SHIM_EXEC_ENDED,
                                               .value = signaled ? WTERMSIG(status) : WEXITSTATUS(status),
                                               .signal = signaled});
        slot_free(slot);
    }
}
