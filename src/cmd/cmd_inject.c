/* phalanx inject: failures on purpose, in a cluster that runs on this computer (`phalanx up`). */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/processes.h"

static const char usage[] =
    "Usage: phalanx inject kill|stop|continue|kill-agent MACHINE --data DIR\n"
    "\n"
    "Makes a machine of a local cluster fail (`phalanx up --data DIR`):\n"
    "  kill        SIGKILL to every process of it, agent and tasks, all standing still: power loss\n"
    "  kill-agent  SIGKILL to its agent alone\n"
    "  stop        SIGSTOP to every process of it: it goes silent\n"
    "  continue    SIGCONT: it comes back\n"
    "\n"
    "Prints how many processes were hit, and when, in seconds since 1970.\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 usage, 3 no process of that machine runs.\n";

enum { PIDS_MAX = 4096 };

struct victims {
    pid_t pids[PIDS_MAX];
    size_t count;
    bool agent_only;
};

static bool is_agent(pid_t pid)
{
    char path[64], line[64] = {0};
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(line, 1, sizeof(line) - 1, file) : 0;
    if (file)
        fclose(file);
    size_t first = strnlen(line, got);
    return first + 1 < got && strcmp(line + first + 1, "agent") == 0;
}

static void choose(void *context, pid_t pid)
{
    struct victims *victims = context;
    if (victims->count < PIDS_MAX && (!victims->agent_only || is_agent(pid)))
        victims->pids[victims->count++] = pid;
}

/* To all of them; agents come last. -1: not allowed. */
static int signal_all(const struct victims *victims, int number)
{
    for (int agents = 0; agents < 2; agents++)
        for (size_t i = 0; i < victims->count; i++) {
            pid_t pid = victims->pids[i];
            if (is_agent(pid) == agents && kill(pid, number) < 0 && errno != ESRCH) {
                fprintf(stderr, "phalanx inject: process %d: %s\n", (int)pid, strerror(errno));
                return -1;
            }
        }
    return 0;
}

/* The power of a machine fails for all of its processes in one moment: none lives to see another one's end
 * and tell of it. So they all stand still before the first is killed, those too that are born meanwhile. */
static int stop_all(const char *state, struct victims *victims)
{
    size_t before;
    do {
        before = victims->count;
        if (signal_all(victims, SIGSTOP) < 0)
            return -1;
        victims->count = 0;
        processes_visit(state, choose, victims);
    } while (victims->count > before);
    return 0;
}

static int hit(const char *state, bool agent_only, int number)
{
    struct victims victims = {.agent_only = agent_only};
    processes_visit(state, choose, &victims);
    if (number == SIGKILL && !agent_only && stop_all(state, &victims) < 0)
        return EXIT_FAILED;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (signal_all(&victims, number) < 0)
        return EXIT_FAILED;
    printf("%zu processes at %lld.%09ld\n", victims.count, (long long)now.tv_sec, now.tv_nsec);
    return victims.count ? EXIT_OK : EXIT_NOT_FOUND;
}

int cmd_inject(int argc, char **argv)
{
    static const struct option options[] = {
        {"data", required_argument, NULL, 'd'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *data = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return EXIT_OK;
        }
        if (option != 'd')
            return EXIT_USAGE;
        data = optarg;
    }
    static const struct {
        const char *name;
        int number;
        bool agent_only;
    } actions[] = {{"kill", SIGKILL, false},
                   {"kill-agent", SIGKILL, true},
                   {"stop", SIGSTOP, false},
                   {"continue", SIGCONT, false}};
    if (!data || argc - optind != 2) {
        fprintf(stderr, "phalanx inject: an action, a machine and --data are needed; see --help\n");
        return EXIT_USAGE;
    }
    char folder[4096], state[4400];
    if (!realpath(data, folder)) {
        fprintf(stderr, "phalanx inject: %s: %s\n", data, strerror(errno));
        return EXIT_FAILED;
    }
    struct stat found;
    snprintf(state, sizeof(state), "%s/machines/%s", folder, argv[optind + 1]);
    if (strchr(argv[optind + 1], '/') || stat(state, &found) < 0) {
        fprintf(stderr, "phalanx inject: no machine \"%s\" below %s\n", argv[optind + 1], folder);
        return EXIT_NOT_FOUND;
    }
    for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
        if (strcmp(argv[optind], actions[i].name) == 0)
            return hit(state, actions[i].agent_only, actions[i].number);
    fprintf(stderr, "phalanx inject: \"%s\" is not an action; see --help\n", argv[optind]);
    return EXIT_USAGE;
}
