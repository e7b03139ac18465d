#include "cmd/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "cmd/client.h"
#include "cmd/local.h"
#include "cmd/processes.h"
#include "os/file.h"
#include "os/folder.h"

/* How long processes of a cluster may live after the end of its `phalanx up`, before they are killed. Longer
 * than the usual grace period of a task. */
#define PATIENCE_NS (60 * NS_PER_SECOND)

enum { PATH_BYTES = 4096 };

/* --- the cluster's processes ---------------------------------------------------------------------- */

static void collect(void *context, pid_t pid)
{
    VEC(pid_t) *pids = context;
    vec_push(pids, pid);
}

/* Waits for the end of one process. Returns false if it still runs at the deadline. */
static bool await_process(pid_t pid, int64_t deadline_ns)
{
    int fd = process_watch(pid);
    if (fd < 0)
        return true;
    bool ended = process_await(fd, deadline_ns);
    close(fd);
    return ended;
}

/* Waits for the end of all processes of the cluster, and sends the signal `number` (0: none) to each. Returns
 * false if one still runs at the deadline. */
static bool await_all(const char *data, int number, int64_t deadline_ns)
{
    VEC(pid_t) pids = {0};
    bool gone = true;
    do {
        vec_clear(&pids);
        processes_of_cluster(data, collect, &pids);
        for (size_t i = 0; number && i < pids.len; i++)
            (void)kill(pids.items[i], number);
        for (size_t i = 0; gone && i < pids.len; i++)
            gone = await_process(pids.items[i], deadline_ns);
    } while (gone && pids.len > 0);
    vec_done(&pids);
    return gone;
}

/* --- cleaning up ---------------------------------------------------------------------------------- */

bool keeper_memory(const char *data, char ret_path[64], struct error *error)
{
    char path[PATH_BYTES + 16];
    uint64_t seed = 0;
    snprintf(path, sizeof path, "%s/memory.seed", data);
    if (os_file_seed(path, &seed, error) < 0)
        return false;
    snprintf(ret_path, 64, "/dev/shm/phalanx-up-%08x", (unsigned)seed);
    return true;
}

bool keeper_groups(const char *data, char ret_own[INJECT_PATH_MAX], char ret_path[KEEPER_GROUPS_BYTES])
{
    if (!inject_cgroup_of(getpid(), ret_own))
        return false;
    snprintf(ret_path, KEEPER_GROUPS_BYTES, "%s/phalanx-up-%08x", ret_own,
             (unsigned)hash64(0, data, strlen(data)));
    return true;
}

/* Removes the control groups. A group with a dying process stays; the next cluster of this folder uses it. */
static void remove_groups(const char *data)
{
    char own[INJECT_PATH_MAX], groups[KEEPER_GROUPS_BYTES];
    if (!keeper_groups(data, own, groups))
        return;
    DIR *folder = opendir(groups);
    struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            (void)unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
    if (folder)
        closedir(folder);
    rmdir(groups);
}

static void remove_ready(const char *data)
{
    char path[PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/ready", data);
    unlink(path);
}

static void clean(const char *data)
{
    char memory[64];
    struct stat info;
    struct error error;
    remove_ready(data);
    local_forget(data);
    if (keeper_memory(data, memory, &error) && lstat(memory, &info) == 0 && info.st_uid == geteuid())
        os_folder_remove(AT_FDCWD, memory); /* a file that cannot be removed does no harm */
    remove_groups(data);
}

/* --- the lock ------------------------------------------------------------------------------------- */

static int open_lock(const char *data, int flags)
{
    char path[PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/up.lock", data);
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (fd < 0 && !(errno == ENOENT && !flags))
        say("%s: %s", path, strerror(errno));
    return fd;
}

/* Returns the `phalanx up` that wrote the lock file; 0 if it does not live. */
static pid_t holder(int lock)
{
    char text[32] = "";
    int64_t pid;
    ssize_t got = pread(lock, text, sizeof text - 1, 0);
    text[got > 0 ? strcspn(text, "\n") : 0] = 0;
    return str_to_i64(str_from(text), 1, INT32_MAX, &pid) && kill((pid_t)pid, 0) == 0 ? (pid_t)pid : 0;
}

static int take_lock(int lock, int how)
{
    int rc;
    do
        rc = flock(lock, how);
    while (rc < 0 && errno == EINTR);
    return rc;
}

static bool take(int lock, const char *data)
{
    if (take_lock(lock, LOCK_EX | LOCK_NB) < 0) {
        pid_t pid = holder(lock);
        if (pid) {
            say("%s is in use by the `phalanx up` of process %d; `phalanx down --data %s` ends it", data,
                (int)pid, data);
            return false;
        }
        remove_ready(data);
        (void)take_lock(lock, LOCK_EX); /* the keeper of a killed `phalanx up` is cleaning up */
    }
    if (ftruncate(lock, 0) < 0 || dprintf(lock, "%d\n", (int)getpid()) < 0)
        say("%s/up.lock: %s", data, strerror(errno));
    return true;
}

/* --- the keeper ----------------------------------------------------------------------------------- */

static _Noreturn void keep(const char *data, int tether)
{
    char byte;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd); /* readers of `phalanx up`'s output need not wait for the keeper */
    setsid();
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    prctl(PR_SET_NAME, "phalanx-keeper");
    while (read(tether, &byte, 1) < 0 && errno == EINTR)
        continue;
    if (!await_all(data, 0, client_clock() + PATIENCE_NS))
        (void)await_all(data, SIGKILL, INT64_MAX);
    clean(data);
    _exit(0);
}

bool keeper_start(struct keeper *keeper, const char *data)
{
    int tether[2] = {-1, -1};
    keeper->lock = open_lock(data, O_CREAT);
    if (keeper->lock < 0)
        return false;
    if (!take(keeper->lock, data)) {
        close(keeper->lock);
        return false;
    }
    if (pipe2(tether, O_CLOEXEC) < 0 || (keeper->pid = fork()) < 0) {
        say("starting the keeper: %s", strerror(errno));
        for (int i = 0; i < 2 && tether[i] >= 0; i++)
            close(tether[i]);
        close(keeper->lock);
        return false;
    }
    if (keeper->pid == 0) {
        close(tether[1]);
        keep(data, tether[0]);
    }
    close(tether[0]);
    keeper->tether = tether[1];
    return true;
}

void keeper_end(struct keeper *keeper)
{
    close(keeper->tether);
    while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(keeper->lock);
}

bool keeper_follow(const char *parent)
{
    int64_t pid;
    return str_to_i64(str_from(parent), 1, INT32_MAX, &pid) && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 &&
           getppid() == (pid_t)pid;
}

/* --- phalanx down --------------------------------------------------------------------------------- */

static void wake(int number)
{
    (void)number; /* flock() ends with EINTR */
}

/* Waits for the lock. Returns false at the deadline. */
static bool await_lock(int lock, int64_t deadline_ns)
{
    struct sigaction action = {.sa_handler = wake};
    sigaction(SIGALRM, &action, NULL);
    for (;;) {
        int64_t left_ns = deadline_ns - client_clock();
        if (left_ns <= 0)
            return flock(lock, LOCK_EX | LOCK_NB) == 0;
        if (deadline_ns != INT64_MAX) { /* repeats every 100 ms: an alarm just before flock() would be lost */
            struct itimerval timer = {.it_interval = {0, 100000},
                                      .it_value = {left_ns / NS_PER_SECOND,
                                                   left_ns % NS_PER_SECOND / NS_PER_US + 1}};
            setitimer(ITIMER_REAL, &timer, NULL);
        }
        if (flock(lock, LOCK_EX) == 0)
            return true;
    }
}

int keeper_down(const char *data, int64_t deadline_ns)
{
    VEC(pid_t) pids = {0};
    int lock = open_lock(data, 0);
    bool taken = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0;
    pid_t up = lock >= 0 && !taken ? holder(lock) : 0;
    if (up && kill(up, SIGTERM) < 0) {
        say("process %d: %s", (int)up, strerror(errno));
        close(lock);
        return EXIT_FAILED;
    }
    bool gone = lock < 0 || taken || await_lock(lock, deadline_ns);
    processes_of_cluster(data, collect, &pids); /* in case the keeper was killed too, or there was none */
    bool any = (lock >= 0 && !taken) || pids.len > 0;
    vec_done(&pids);
    gone = gone && await_all(data, SIGTERM, deadline_ns);
    if (gone)
        clean(data);
    if (lock >= 0)
        close(lock);
    if (!gone)
        say("processes of the cluster in %s still run; its tasks have their grace", data);
    else
        printf(any ? "the cluster in %s is down\n" : "no cluster runs in %s\n", data);
    return gone ? EXIT_OK : EXIT_TIMEOUT;
}
