/* flow_up.h - a flow runtime of its own for a bench: head and workers on this machine. */
#ifndef PHX_BENCH_FLOW_UP_H
#define PHX_BENCH_FLOW_UP_H

#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phalanx/flow.h"

struct runtime {
    pid_t pid;
    FILE *out;
    char address[256];
    phx_flow *flow;
    struct phx_flow_mesh mesh; /* all devices */
    struct phx_flow_type type; /* a float of each */
    struct phx_flow_sharding cut;
    uint64_t function;
    struct phx_error error;
};

static void bench_must(int rc, const struct runtime *runtime)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "bench: %s\n", runtime->error.message);
    kill(runtime->pid, SIGTERM);
    exit(1);
}

/* Connects a client to the runtime at the address, with a mesh of all of its devices. */
static void runtime_join(struct runtime *runtime, unsigned devices)
{
    bench_must(phx_flow_connect(runtime->address, NULL, &runtime->flow, &runtime->error), runtime);
    struct phx_flow_mesh_options options = {.rank = 1, .dims = {devices}};
    bench_must(phx_flow_mesh_new(runtime->flow, &options, &runtime->mesh, &runtime->error), runtime);
    runtime->type = (struct phx_flow_type){PHX_FLOW_FLOAT32, 1, {devices}};
    runtime->cut = (struct phx_flow_sharding){runtime->mesh.id, {1}};
}

/* Starts a runtime and connects to it. Functions are looked for beside the bench's program. */
static void runtime_start(struct runtime *runtime, unsigned hosts, unsigned devices)
{
    char self[PATH_MAX] = "", program[PATH_MAX + 16], count[16], each[16], line[512];
    int out[2];
    *runtime = (struct runtime){0};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || pipe(out) < 0)
        exit(1);
    const char *folder = dirname(self);
    snprintf(program, sizeof program, "%s/phalanx-full", folder);
    snprintf(count, sizeof count, "%u", hosts);
    snprintf(each, sizeof each, "%u", devices);
    runtime->pid = fork();
    if (runtime->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        execl(program, "phalanx", "flow", "up", "--hosts", count, "--devices", each, "--functions", folder,
              NULL);
        _exit(127);
    }
    close(out[1]);
    runtime->out = fdopen(out[0], "r");
    bool ready = false;
    while (!ready && fgets(line, sizeof line, runtime->out))
        ready = sscanf(line, "ready %255s", runtime->address) == 1;
    if (!ready)
        exit(1);
    runtime_join(runtime, hosts * devices);
}

static void runtime_stop(struct runtime *runtime)
{
    phx_flow_close(runtime->flow);
    kill(runtime->pid, SIGTERM);
    waitpid(runtime->pid, NULL, 0);
    fclose(runtime->out);
}

#endif
