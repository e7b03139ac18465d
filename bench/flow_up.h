/* flow_up.h - a flow runtime of its own for a bench: head and workers on this machine. */
#ifndef PHX_BENCH_FLOW_UP_H
#define PHX_BENCH_FLOW_UP_H

#include "flow_process.h"
#include "phalanx/flow.h"

struct runtime {
    struct process up;
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
    kill(runtime->up.pid, SIGTERM);
    exit(1);
}

/* Connects a client to the runtime, with a mesh of all of its devices. */
static void runtime_join(struct runtime *runtime, unsigned devices)
{
    bench_must(phx_flow_connect(runtime->up.address, NULL, &runtime->flow, &runtime->error), runtime);
    struct phx_flow_mesh_options options = {.rank = 1, .dims = {devices}};
    bench_must(phx_flow_mesh_new(runtime->flow, &options, &runtime->mesh, &runtime->error), runtime);
    runtime->type = (struct phx_flow_type){PHX_FLOW_FLOAT32, 1, {devices}};
    runtime->cut = (struct phx_flow_sharding){runtime->mesh.id, {1}};
}

/* Starts a runtime and connects to it. Functions are looked for beside the bench's program. */
static void runtime_start(struct runtime *runtime, unsigned hosts, unsigned devices)
{
    char folder[PATH_MAX], count[16], each[16];
    *runtime = (struct runtime){0};
    process_folder(folder);
    snprintf(count, sizeof count, "%u", hosts);
    snprintf(each, sizeof each, "%u", devices);
    const char *const up[] = {"phalanx",   "flow", "up",          "--hosts", count,
                              "--devices", each,   "--functions", folder,    NULL};
    process_start(&runtime->up, up);
    runtime_join(runtime, hosts * devices);
}

static void runtime_stop(struct runtime *runtime)
{
    phx_flow_close(runtime->flow);
    process_stop(&runtime->up, SIGTERM);
}

#endif
