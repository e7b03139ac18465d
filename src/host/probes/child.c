/* child.c - runs looks that may hang, each in its own child, and the commands of external checks.
 *
 *   RUNNING --last line read, exited--> reaped: judged
 *      | late                          (another exit status, or no last line: failed)
 *      v
 *   KILLED  --reaped--> gone           the time-out is reported at the kill; while a child that does not die
 *                                      lives, no other of its key is started
 *
 * A look ends its output with a line ".", which proves it complete even if another process reaped the child.
 */
#include "host/probes/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_FD = 3 };
#define REAP_AGAIN_NS (20 * NS_PER_MS) /* if there is no pidfd to wait for */
#define HUNG_AGAIN_NS (1 * NS_PER_SECOND)

struct child {
    struct probe *probe;
    char *key;
    pid_t pid;
    int fd, pidfd;                         /* the answer, -1: at its end; -1: the kernel has no pidfds */
    bool resident, command, killed, spoke; /* spoke: a resident one, once */
    int64_t begun_ns, deadline_ns, timeout_ns, reap_ns;
    struct buf text;
};

/* --- the child's side ----------------------------------------------------------------------------- */

static void close_from(unsigned first)
{
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
    long max = sysconf(_SC_OPEN_MAX);
    for (long fd = first; fd < (max > 0 && max < 65536 ? max : 65536); fd++)
        close((int)fd);
}

/* Resets all that the parent leaves to a child: handlers, masks, files. The answer goes to `fd`. */
static void become_child(pid_t parent, int answer_fd, int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null_fd = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++)
        if (null_fd != i)
            dup2(null_fd, i);
    if (answer_fd != fd)
        dup2(answer_fd, fd);
    fcntl(fd, F_SETFD, 0);
}

static bool say(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t count = write(ANSWER_FD, data, len);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        data += count;
        len -= (size_t)count;
    }
    return true;
}

void child_say_block(struct buf *facts)
{
    buf_add(facts, ".\n", 2);
    if (!say(facts->data, facts->len))
        _exit(0);
    buf_clear(facts);
}

void child_say_part(struct buf *facts)
{
    if (!say(facts->data, facts->len))
        _exit(0);
    buf_clear(facts);
}

static _Noreturn void be_look(const struct child *child, pid_t parent, int answer_fd)
{
    struct buf facts = {0};
    become_child(parent, answer_fd, ANSWER_FD);
    close_from(ANSWER_FD + 1);
    child->probe->kind->look(child->probe, child->key, &facts);
    child_say_block(&facts);
    _exit(0);
}

static _Noreturn void be_command(char *const *argv, pid_t parent, int answer_fd)
{
    become_child(parent, answer_fd, 1);
    dup2(1, 2);
    setpgid(0, 0);
    close_from(3);
    execvp(argv[0], argv);
    static const char refused[] = "the command cannot be started\n";
    if (write(1, refused, sizeof refused - 1) < 0)
        _exit(126);
    _exit(127);
}

/* --- the owner's side ----------------------------------------------------------------------------- */

static struct child *find(const struct probe *probe, const char *key)
{
    for (size_t i = 0; i < probe->all->children.len; i++) {
        struct child *child = probe->all->children.items[i];
        if (child->probe == probe && strcmp(child->key, key) == 0)
            return child;
    }
    return NULL;
}

bool child_lives(const struct probe *probe, const char *key)
{
    return find(probe, key) != NULL;
}

bool child_running(const struct probe *probe)
{
    for (size_t i = 0; i < probe->all->children.len; i++) {
        const struct child *child = probe->all->children.items[i];
        if (child->probe == probe && !child->killed && !child->spoke)
            return true;
    }
    return false;
}

static void watch(const struct probes *all, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (fd >= 0)
        epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static bool start(struct probe *probe, const char *key, char *const *argv, int64_t timeout_ns, bool resident)
{
    struct probes *all = probe->all;
    int fds[2];
    if (find(probe, key) || all->children.len >= CHILDREN_MAX || pipe2(fds, O_CLOEXEC) < 0)
        return false;
    struct child *child = mem_alloc(sizeof *child);
    child->probe = probe;
    child->key = mem_alloc(strlen(key) + 1);
    memcpy(child->key, key, strlen(key));
    child->resident = resident;
    child->command = argv != NULL;
    pid_t parent = getpid();
    child->pid = fork();
    if (child->pid == 0) {
        if (argv)
            be_command(argv, parent, fds[1]);
        be_look(child, parent, fds[1]);
    }
    close(fds[1]);
    if (child->pid < 0) {
        close(fds[0]);
        mem_free(child->key);
        mem_free(child);
        return false;
    }
    if (argv)
        setpgid(child->pid, child->pid);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    child->fd = fds[0];
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    child->begun_ns = all->now_ns;
    child->timeout_ns = timeout_ns;
    child->deadline_ns = all->now_ns + timeout_ns;
    watch(all, child->fd);
    watch(all, child->pidfd);
    vec_push(&all->children, child);
    probe->running = true;
    return true;
}

bool child_look(struct probe *probe, const char *key, int64_t timeout_ns, bool resident)
{
    CHECK(probe->kind->look);
    return start(probe, key, NULL, timeout_ns, resident);
}

bool child_command(struct probe *probe, const char *key, char *const *argv, int64_t timeout_ns)
{
    return start(probe, key, argv, timeout_ns, false);
}

static void kill_child(struct child *child)
{
    if (child->command)
        kill(-child->pid, SIGKILL);
    kill(child->pid, SIGKILL);
    child->killed = true;
}

/* Removes the file from epoll before it is closed: a child that was just forked may hold it open a moment
 * longer, and would keep it watched. */
static void close_watched(const struct probes *all, int *fd)
{
    if (*fd >= 0) {
        epoll_ctl(all->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
        close(*fd);
    }
    *fd = -1;
}

static void close_answer(struct child *child)
{
    close_watched(child->probe->all, &child->fd);
}

static void take_answer(struct child *child)
{
    char chunk[65536];
    ssize_t count;
    while (child->fd >= 0) {
        count = read(child->fd, chunk, sizeof chunk);
        if (count > 0 && child->text.len < FACTS_BYTES_MAX && !child->killed)
            buf_add(&child->text, chunk, (size_t)count);
        else if (count < 0 && errno == EINTR)
            continue;
        else if (count < 0 && errno == EAGAIN)
            return;
        else if (count <= 0)
            close_answer(child);
    }
}

/* Judges the complete blocks of a resident child. */
static void judge_blocks(struct child *child)
{
    size_t start = 0;
    for (size_t i = 0; i + 1 < child->text.len; i++) {
        if (child->text.data[i] != '.' || child->text.data[i + 1] != '\n' ||
            (i > start && child->text.data[i - 1] != '\n'))
            continue;
        child->deadline_ns = child->probe->all->now_ns + child->timeout_ns;
        child->spoke = true;
        child->probe->running = child_running(child->probe);
        probe_answered(child->probe, child->key, (struct str){child->text.data + start, i - start});
        start = i + 2;
        i++;
    }
    if (start > 0)
        buf_drop_front(&child->text, start);
}

static void forget(struct child *child)
{
    struct probes *all = child->probe->all;
    for (size_t i = 0; i < all->children.len; i++)
        if (all->children.items[i] == child)
            vec_remove(&all->children, i);
    close_answer(child);
    close_watched(all, &child->pidfd);
    buf_done(&child->text);
    mem_free(child->key);
    mem_free(child);
}

static int64_t cost_of(const struct rusage *usage)
{
    return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * NS_PER_SECOND +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * NS_PER_US;
}

/* Handles the end of a child. */
static void reaped(struct child *child, bool known, int status, const struct rusage *usage)
{
    struct probe *probe = child->probe;
    struct str text = buf_str(&child->text);
    bool killed = child->killed, whole = text.len >= 2 && str_ends(text, STR(".\n"));
    struct buf kept = child->text;
    char *key = child->key;
    bool command = child->command, resident = child->resident;
    child->text = (struct buf){0};
    child->key = mem_alloc(1);
    forget(child); /* first, as a judge may start another look with the same key */
    if (killed) {
        probe->standing.hung--;
        probe_ended(probe, 0, true);
    } else {
        if (command) {
            struct buf facts BUF_CLEANUP = {0};
            buf_printf(&facts, "%d\n", known && WIFEXITED(status) ? WEXITSTATUS(status) : -1);
            buf_add_str(&facts, text);
            probe_answered(probe, key, buf_str(&facts));
        } else if (whole) {
            probe_answered(probe, key, (struct str){text.data, text.len - 2});
        } else if (!resident || !known || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            probe_failed(probe, key, false, text);
        }
        probe_ended(probe, known && !resident ? cost_of(usage) : 0, false);
    }
    buf_done(&kept);
    mem_free(key);
}

/* Advances a child. Returns false if it is freed. */
static bool child_step(struct child *child)
{
    struct probes *all = child->probe->all;
    take_answer(child);
    if (child->resident && !child->killed)
        judge_blocks(child);
    if (child->killed && child->fd >= 0)
        close_answer(child);
    if (child->fd < 0 || child->killed || child->command) {
        int status = 0;
        struct rusage usage = {0};
        pid_t pid = wait4(child->pid, &status, WNOHANG, &usage);
        if (pid != 0) {
            take_answer(child);
            reaped(child, pid > 0, status, &usage);
            return false;
        }
        child->reap_ns = all->now_ns + (child->killed ? HUNG_AGAIN_NS : REAP_AGAIN_NS);
    }
    if (!child->killed && all->now_ns >= child->deadline_ns) {
        kill_child(child);
        close_answer(child);
        child->reap_ns = all->now_ns + REAP_AGAIN_NS;
        child->probe->standing.timeouts++;
        child->probe->standing.hung++;
        struct buf text = child->text;
        child->text = (struct buf){0};
        probe_failed(child->probe, child->key, true, buf_str(&text)); /* may start others: `child` stays */
        buf_done(&text);
    }
    return true;
}

void child_round(struct probes *all)
{
    for (size_t i = 0; i < all->children.len;)
        if (child_step(all->children.items[i]))
            i++;
}

int64_t child_next_ns(const struct probes *all)
{
    int64_t next_ns = INT64_MAX;
    for (size_t i = 0; i < all->children.len; i++) {
        const struct child *child = all->children.items[i];
        int64_t due_ns = child->killed || child->fd < 0 ? child->reap_ns : child->deadline_ns;
        if (child->command && child->pidfd < 0 && child->reap_ns < due_ns)
            due_ns = child->reap_ns;
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    return next_ns;
}

void child_excuse(struct probes *all, int64_t late_ns)
{
    for (size_t i = 0; i < all->children.len; i++)
        all->children.items[i]->deadline_ns += late_ns;
}

void child_done(struct probes *all)
{
    for (size_t i = 0; i < all->children.len; i++)
        kill_child(all->children.items[i]);
    /* A child dies within moments unless the kernel holds it; init will reap such a one later. */
    for (size_t i = all->children.len; i-- > 0;) {
        struct child *child = all->children.items[i];
        struct pollfd dead = {child->pidfd, POLLIN, 0};
        for (int tries = 0; tries < 20 && waitpid(child->pid, NULL, WNOHANG) == 0; tries++)
            poll(&dead, child->pidfd >= 0, 10);
        forget(child);
    }
    vec_done(&all->children);
}
