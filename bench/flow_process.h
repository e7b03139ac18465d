/* flow_process.h - processes of `phalanx flow` for benches: started from the folder of the bench's own
 * program, known to be up, and ended with it. */
#ifndef PHX_BENCH_FLOW_PROCESS_H
#define PHX_BENCH_FLOW_PROCESS_H

#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct process {
    pid_t pid;
    FILE *out;
    char address[256]; /* behind the word "ready"; empty: the process says none */
};

/* Writes the folder of the bench's program: the build folder, where functions of benches are as well. */
static void process_folder(char folder[PATH_MAX])
{
    char self[PATH_MAX] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        exit(1);
    snprintf(folder, PATH_MAX, "%s", dirname(self));
}

/* Starts the program with the arguments, and returns once it has printed "ready". */
static void process_start(struct process *process, const char *const *arguments)
{
    char folder[PATH_MAX], program[PATH_MAX + 16], line[512];
    int out[2];
    process_folder(folder);
    snprintf(program, sizeof program, "%s/phalanx-full", folder);
    if (pipe(out) < 0)
        exit(1);
    process->pid = fork();
    if (process->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        execv(program, (char *const *)arguments);
        _exit(127);
    }
    close(out[1]);
    process->out = fdopen(out[0], "r");
    bool ready = false;
    while (!ready && fgets(line, sizeof line, process->out)) {
        ready = strncmp(line, "ready", 5) == 0;
        sscanf(line, "ready %255s", process->address);
    }
    if (!ready) {
        fprintf(stderr, "bench: %s %s %s does not start\n", program, arguments[1], arguments[2]);
        exit(1);
    }
}

static void process_stop(struct process *process, int signal)
{
    kill(process->pid, signal);
    waitpid(process->pid, NULL, 0);
    fclose(process->out);
}

#endif
