/* up.h - a flow runtime of real processes for tests: `phalanx flow up` in a folder of its own. */
#ifndef PHX_TESTS_FLOW_CLIENT_UP_H
#define PHX_TESTS_FLOW_CLIENT_UP_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UP_WORKERS_MAX = 16 };

struct up {
    pid_t pid, workers[UP_WORKERS_MAX];
    FILE *out;
    char address[256];
};

/* Starts and waits until it is ready; false: it did not start. `memory` and `islands` NULL: defaults. */
/* --work-limit of the workers that up_start starts. */
static const char *up_work_limit = "0";
/* --host-memory; NULL: the default. */
static const char *up_host_memory = NULL;
/* --pjrt: a file of the build; NULL: none. */
static const char *up_pjrt = NULL;

static inline bool up_start(struct up *up, const char *hosts, const char *devices, const char *memory,
                            const char *islands)
{
    int out[2];
    *up = (struct up){0};
    if (pipe(out) < 0)
        return false;
    up->pid = fork();
    if (up->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* a test that is killed leaves nothing behind */
        char program[512], pjrt[512];
        const char *build = getenv("PHX_BUILD");
        build = build ? build : "build";
        snprintf(program, sizeof program, "%s/phalanx-full", build);
        snprintf(pjrt, sizeof pjrt, "%s/%s", build, up_pjrt ? up_pjrt : "");
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        const char *arguments[24] = {"phalanx",
                                     "flow",
                                     "up",
                                     "--hosts",
                                     hosts,
                                     "--devices",
                                     devices,
                                     "--memory",
                                     memory ? memory : "1G",
                                     "--islands",
                                     islands ? islands : "1",
                                     "--functions",
                                     build,
                                     "--work-limit",
                                     up_work_limit};
        size_t count = 15;
        if (up_host_memory) {
            arguments[count++] = "--host-memory";
            arguments[count++] = up_host_memory;
        }
        if (up_pjrt) {
            arguments[count++] = "--pjrt";
            arguments[count++] = pjrt;
        }
        execv(program, (char *const *)arguments);
        _exit(127);
    }
    close(out[1]);
    up->out = fdopen(out[0], "r");
    char line[512];
    while (fgets(line, sizeof line, up->out)) {
        int worker, pid;
        if (sscanf(line, "worker %d process %d", &worker, &pid) == 2 && worker < UP_WORKERS_MAX)
            up->workers[worker] = pid;
        else if (sscanf(line, "ready %255s", up->address) == 1)
            return true;
    }
    return false;
}

static inline void up_stop(struct up *up)
{
    kill(up->pid, SIGTERM);
    waitpid(up->pid, NULL, 0);
    fclose(up->out);
}

#endif
