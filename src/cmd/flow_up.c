/* phalanx flow up: runs a head and workers on this machine. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/flow.h"
#include "cmd/usage.h"
#include "flow/host/host.h"
#include "os/folder.h"

static const char flow_up_usage[] =
    "Usage: phalanx flow up [--hosts N] [--devices N] [options]\n"
    "\n"
    "Runs a head and N workers on this machine until SIGINT or SIGTERM, or until the head ends. A worker\n"
    "that ends is not started again. Prints the process of each worker, and \"ready ADDRESS\" when all\n"
    "are there. The folder is this user's alone, and a new token lies in it (\"token\"), which clients\n"
    "of ADDRESS find there.\n"
    "\n"
    "Options:\n"
    "  --dir DIR          folder of the sockets (default: a new one in $XDG_RUNTIME_DIR or /tmp)\n"
    "  --hosts N          workers (default 2)\n"
    "  --devices N        devices of each (default 1)\n"
    "  --islands N        islands, to which the hosts belong in turn (default 1)\n"
    "  --memory BYTES     of one device (default 1G)\n"
    "  --host-memory BYTES\n"
    "                     of each host, for values that leave the devices' memory when it is short\n"
    "                     (default: as much as all its devices have together)\n"
    "  --functions DIR    shared objects that programs may name\n"
    "  --pjrt FILE        a PJRT plugin, which runs what it can; the processor does the rest\n"
    "  --work-limit N     operations on elements that one call of StableHLO may take (default 0: no limit)\n"
    "  --transport NAME   of head and workers: socket (default), ucx or auto, as for flow worker\n"
    "  --help             this text\n";

struct flow_up {
    int64_t hosts, devices, islands;
    const char *dir, *memory, *host_memory, *functions, *pjrt, *work_limit, *transport;
    char made[64], token[300]; /* empty: not made */
    pid_t *pids; /* the head, then workers; 0: has ended */
};

static bool flow_up_option(struct flow_up *up, int letter)
{
    switch (letter) {
    case 'd':
        return usage_value(str_to_i64(str_from(optarg), 1, 256, &up->devices));
    case 'n':
        return usage_value(str_to_i64(str_from(optarg), 1, 1024, &up->hosts));
    case 'i':
        return usage_value(str_to_i64(str_from(optarg), 1, 1024, &up->islands));
    case 'D':
        up->dir = optarg;
        return true;
    case 'm':
        up->memory = optarg;
        return true;
    case 'M':
        up->host_memory = optarg;
        return true;
    case 'f':
        up->functions = optarg;
        return true;
    case 'p':
        up->pjrt = optarg;
        return true;
    case 'w':
        up->work_limit = optarg;
        return true;
    case 'T':
        up->transport = optarg;
        return usage_value(wire_transport_parse(optarg, &(enum wire_transport){0}));
    }
    return false;
}

static int flow_up_folder(struct flow_up *up, struct error *error)
{
    if (up->dir)
        return os_folder_private(up->dir, 0700, error);
    const char *top = getenv("XDG_RUNTIME_DIR");
    snprintf(up->made, sizeof up->made, "%.40s/flow-XXXXXX",
             top && top[0] == '/' && strlen(top) < 40 ? top : "/tmp");
    if (!mkdtemp(up->made))
        return error_set_errno(error, errno, "making a folder %s", up->made);
    up->dir = up->made;
    return 0;
}

/* Starts this program with other arguments, and waits for its line "ready ...". Returns the process, or -1
 * after the process has printed the reason. */
static pid_t flow_up_launch(char *const *arguments)
{
    int ready[2];
    if (pipe(ready) < 0)
        return -1;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (getppid() == parent && dup2(ready[1], STDOUT_FILENO) >= 0) {
            close(ready[0]);
            close(ready[1]);
            execv("/proc/self/exe", arguments);
        }
        _exit(127);
    }
    close(ready[1]);
    char line[512];
    size_t len = 0;
    ssize_t got = 1;
    while (pid > 0 && len < sizeof line && !memchr(line, '\n', len) && got > 0) {
        got = read(ready[0], line + len, sizeof line - len);
        len += got > 0 ? (size_t)got : 0;
    }
    close(ready[0]);
    if (pid > 0 && len >= 5 && memcmp(line, "ready", 5) == 0)
        return pid;
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return -1;
}

static pid_t flow_up_worker(const struct flow_up *up, int64_t number)
{
    char head[300], listen[300], devices[24], island[40];
    snprintf(head, sizeof head, "unix:%s/head.sock", up->dir);
    snprintf(listen, sizeof listen, "unix:%s/worker-%lld.sock", up->dir, (long long)number);
    snprintf(devices, sizeof devices, "%lld", (long long)up->devices);
    snprintf(island, sizeof island, "island-%lld", (long long)(number % up->islands));
    char *arguments[] = {"phalanx",
                         "flow",
                         "worker",
                         "--head",
                         head,
                         "--listen",
                         listen,
                         "--token-file",
                         (char *)up->token,
                         "--devices",
                         devices,
                         "--island",
                         island,
                         "--memory",
                         (char *)up->memory,
                         "--work-limit",
                         (char *)up->work_limit,
                         "--transport",
                         (char *)up->transport,
                         NULL, /* places for optional arguments */
                         NULL,
                         NULL,
                         NULL,
                         NULL,
                         NULL,
                         NULL};
    size_t at = sizeof arguments / sizeof *arguments - 7;
    if (up->host_memory) {
        arguments[at++] = "--host-memory";
        arguments[at++] = (char *)up->host_memory;
    }
    if (up->functions) {
        arguments[at++] = "--functions";
        arguments[at++] = (char *)up->functions;
    }
    if (up->pjrt) {
        arguments[at++] = "--pjrt";
        arguments[at++] = (char *)up->pjrt;
    }
    return flow_up_launch(arguments);
}

static int flow_up_start_all(struct flow_up *up)
{
    char listen[300];
    struct error error;
    snprintf(listen, sizeof listen, "unix:%s/head.sock", up->dir);
    if (flow_head_make_token(up->dir, up->token, sizeof up->token, &error) < 0) {
        say("%s", error.text);
        return -1;
    }
    char *arguments[] = {"phalanx",  "flow",        "head",
                         "--listen", listen,        "--token-file",
                         up->token,  "--transport", (char *)up->transport,
                         NULL};
    up->pids[0] = flow_up_launch(arguments);
    for (int64_t i = 0; i < up->hosts && up->pids[0] > 0; i++) {
        up->pids[1 + i] = flow_up_worker(up, i);
        if (up->pids[1 + i] <= 0)
            return -1;
        printf("worker %lld process %d\n", (long long)i, (int)up->pids[1 + i]);
    }
    if (up->pids[0] <= 0)
        return -1;
    printf("ready %s\n", listen);
    fflush(stdout);
    return 0;
}

/* Waits until a signal arrives or the head ends. */
static void flow_up_watch(struct flow_up *up, int stop_fd)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    for (;;) {
        struct pollfd polled = {.fd = stop_fd, .events = POLLIN};
        sigset_t during;
        sigprocmask(SIG_SETMASK, NULL, &during);
        sigdelset(&during, SIGCHLD);
        pid_t ended = 0;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
            for (int64_t i = 0; i <= up->hosts; i++)
                if (up->pids[i] == ended) {
                    up->pids[i] = 0;
                    if (i > 0)
                        printf("worker %lld has ended\n", (long long)(i - 1));
                }
        fflush(stdout);
        if (up->pids[0] == 0 || ppoll(&polled, 1, NULL, &during) > 0)
            return;
    }
}

/* Ends the processes, workers first: a worker reports an error if the head ends before it. */
static void flow_up_end(struct flow_up *up)
{
    for (int64_t i = up->hosts; i >= 0; i--)
        if (up->pids[i] > 0)
            kill(up->pids[i], i > 0 ? SIGTERM : 0);
    for (int64_t i = up->hosts; i >= 0; i--) {
        if (i == 0 && up->pids[0] > 0)
            kill(up->pids[0], SIGTERM);
        if (up->pids[i] > 0)
            waitpid(up->pids[i], NULL, 0);
    }
    if (up->token[0])
        unlink(up->token);
    if (up->made[0])
        os_folder_remove(AT_FDCWD, up->made);
}

static void flow_up_child_ended(int signal)
{
}

int flow_up(int argc, char **argv)
{
    static const struct option options[] = {{"dir", required_argument, NULL, 'D'},
                                            {"hosts", required_argument, NULL, 'n'},
                                            {"devices", required_argument, NULL, 'd'},
                                            {"islands", required_argument, NULL, 'i'},
                                            {"memory", required_argument, NULL, 'm'},
                                            {"host-memory", required_argument, NULL, 'M'},
                                            {"functions", required_argument, NULL, 'f'},
                                            {"pjrt", required_argument, NULL, 'p'},
                                            {"work-limit", required_argument, NULL, 'w'},
                                            {"transport", required_argument, NULL, 'T'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    struct flow_up up = {
        .hosts = 2, .devices = 1, .islands = 1, .memory = "1G", .work_limit = "0", .transport = "socket"};
    int letter;
    while ((letter = usage_option(argc, argv, "h", options, NULL)) != -1) {
        if (letter == 'h') {
            fputs(flow_up_usage, stdout);
            return EXIT_OK;
        }
        if (!flow_up_option(&up, letter))
            return usage_wrong(flow_up_usage, NULL);
    }
    if (optind < argc)
        return usage_wrong(flow_up_usage, "too many arguments");
    struct error error;
    if (flow_up_folder(&up, &error) < 0) {
        say("%s", error.text);
        return EXIT_FAILED;
    }
    int stop_fd = flow_stop_signals();
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = flow_up_child_ended}, NULL);
    up.pids = mem_alloc(((size_t)up.hosts + 1) * sizeof *up.pids);
    int code = EXIT_OK;
    if (flow_up_start_all(&up) == 0)
        flow_up_watch(&up, stop_fd);
    else
        code = EXIT_FAILED;
    flow_up_end(&up);
    mem_free(up.pids);
    return code;
}
