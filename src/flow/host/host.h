/* host.h - head and workers as processes: START HERE for src/flow/host.
 *
 *     flow_head_run(&(struct flow_head_options){.listen = "unix:/run/flow/head.sock"}, &error);
 *     flow_worker_run(&(struct flow_worker_options){.head = ..., .devices = 2}, &error);
 *
 * Both run a machine of island/ on the thread that owns the connections, and return when they are asked to
 * stop. A worker has one more thread for each device, which runs functions, and one that compiles; devices
 * never have processes of their own. A thread that has run a function steps the worker's machine itself,
 * under its lock, and starts the device's next run at once, so a chain of runs needs no hand-over. Messages
 * of the machine are sent by the loop's thread. DONE alone does not wake that thread while the device has
 * short runs ahead (32 of them, or 1 ms); one entry then covers all consecutive ones.
 *
 * Files.
 *     head_host.c    the head's process
 *     gate.c         admission of peers to the head
 *     worker_host.c  a worker's process: carries out effects
 *     runner.c       the threads that run and compile functions
 *     compiled.c     compiled functions, one for each text
 *     disk.c         tensors of suspended clients in a file
 *     gang.c         collectives among the devices of one host and between hosts
 *     board.c        shared memory between the workers of one machine
 *     watch.c        reads a head's status and traces from another process
 *     metrics.c      the head's metrics for Prometheus
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
    const char *token_file;        /* NULL: from the environment (wire/token.h) */
    bool insecure;                 /* listens without a token even where other machines can connect */
    enum wire_transport transport; /* of connections with workers that support it (wire/hub.h) */
    FILE *ready;                   /* gets one line "ready ADDRESS" once the head listens; NULL: none */
    int stop_fd;                   /* ends the head when readable; -1: never */
    struct flow_desk *desk;        /* answers requests for metrics (metrics.h); NULL: none */
};
/* Makes a new token for a head whose unix socket is in this folder: a file that only this user can read,
 * which workers and clients of the socket find. Writes the file's path to *ret_path, of `len` bytes. */
int flow_head_make_token(const char *folder, char *ret_path, size_t len, struct error *error);
/* Runs a head until stop_fd. Returns ERROR_DENIED if it has no token and other machines could connect, or the
 * errors of wire_hub_new. */
int flow_head_run(const struct flow_head_options *options, struct error *error);

struct flow_worker_options {
    const char *head, *listen, *island;
    /* NULL: next to the head's socket, or from the environment (wire/token.h) */
    const char *token_file;
    enum wire_transport transport; /* with the head and other workers (wire/hub.h) */
    uint32_t devices;
    uint64_t device_bytes; /* memory of one device */
    uint64_t host_bytes;   /* host memory for values that are spilled from devices; 0: none is spilled */
    int64_t head_grace_s;  /* how long the worker seeks a lost head before it ends */
    const char *save_dir;  /* folder for the values of suspended clients */
    const char *functions; /* folder of shared objects that programs may name; NULL: none */
    const char *pjrt;      /* a PJRT plugin that runs StableHLO (pjrt/host.h); NULL: the processor does */
    uint64_t work_limit;   /* steps of one call (exec/executor.h); 0: no limit */
    FILE *ready;           /* gets one line "ready HOST" once the head knows the worker; NULL: none */
    int stop_fd;
};
/* Runs a worker until stop_fd. Returns ERROR_UNAVAILABLE if the head was lost and none has replaced it in
 * time, or if a replacement counts this worker as lost; ERROR_DENIED if a head has refused the token; or the
 * errors of executor_pjrt and wire_hub_new. */
int flow_worker_run(const struct flow_worker_options *options, struct error *error);

#endif
