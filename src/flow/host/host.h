/* host.h - head and workers as processes: START HERE for src/flow/host.
 *
 *     flow_head_run(&(struct flow_head_options){.listen = "unix:/run/flow/head.sock"}, &error);
 *     flow_worker_run(&(struct flow_worker_options){.head = ..., .devices = 2}, &error);
 *
 * Both run a machine of island/ on a thread that holds the connections, and return when they are told to
 * stop. A worker has one more thread for each device, which runs functions, and one that compiles; never a
 * process per device. A thread that has run a function steps the worker's machine itself, under its lock, and
 * goes on with its device's next run at once: a chain costs no hand-over. Messages of the machine wait for
 * the loop's thread; DONE alone does not wake it while the device has short runs ahead (32 of them, or 1 ms),
 * and one entry speaks for all of them that follow each other.
 *
 * Files.
 *     head_host.c    the head's process
 *     gate.c         who may say HELLO to it
 *     worker_host.c  a worker's process: carries out effects
 *     runner.c       the threads that run and compile functions
 *     compiled.c     compiled functions, one for each text
 *     disk.c         tensors of suspended clients in a file
 *     gang.c         collectives among the devices of one host and between hosts
 *     board.c        shared memory between the workers of one machine
 *     watch.c        looking at a head from another process: its status, traces
 *     metrics.c      the head's numbers for Prometheus
 */
#ifndef PHX_FLOW_HOST_HOST_H
#define PHX_FLOW_HOST_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "flow/wire/hub.h"

struct flow_desk;
struct flow_head_options {
    const char *listen;
    const char *token_file; /* NULL: of the environment (wire/token.h) */
    bool insecure;          /* without a token an address that others reach is not refused */
    enum wire_transport transport; /* of connections with workers that have it too (wire/hub.h) */
    FILE *ready; /* one line "ready ADDRESS" once it listens; NULL: none */
    int stop_fd; /* readable: end; -1: never */
    struct flow_desk *desk; /* answers those who ask for metrics (metrics.h); NULL: none */
};
/* Makes a new token for a head whose unix socket is in this folder: a file of this user alone, which workers
 * and clients of the socket find. *ret_path has `len` bytes for its name. */
int flow_head_make_token(const char *folder, char *ret_path, size_t len, struct error *error);
/* ERROR_DENIED: it has no token, and others would reach it. Also the errors of wire_hub_new. */
int flow_head_run(const struct flow_head_options *options, struct error *error);

struct flow_worker_options {
    const char *head, *listen, *island;
    const char *token_file; /* NULL: beside the head's unix socket, or of the environment (wire/token.h) */
    enum wire_transport transport; /* with the head and other workers (wire/hub.h) */
    uint32_t devices;
    uint64_t device_bytes; /* memory of one */
    uint64_t host_bytes;   /* host memory for values that leave the devices' memory; 0: none leaves */
    int64_t head_grace_s;  /* how long to seek a head that is lost, before the end */
    const char *save_dir;  /* folder for the values of suspended clients */
    const char *functions; /* folder of shared objects that programs may name; NULL: none */
    const char *pjrt;      /* a PJRT plugin that runs StableHLO (pjrt/host.h); NULL: the processor does */
    uint64_t work_limit;   /* of one call (exec/executor.h); 0: no limit */
    FILE *ready;           /* one line "ready HOST" once the head knows it; NULL: none */
    int stop_fd;
};
/* ERROR_UNAVAILABLE: the head is gone, and none has come in its place. ERROR_DENIED: it has refused the
 * token. Also the errors of executor_pjrt and wire_hub_new. */
int flow_worker_run(const struct flow_worker_options *options, struct error *error);

#endif
