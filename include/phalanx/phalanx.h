/* phalanx.h - the in-job library: a training program's side of Phalanx.
 *
 * The library gives a program its rank, world, peers and attempt, a barrier, a key-value exchange, a
 * heartbeat with the step and the loss, checkpoints that a whole gang commits together or not at all, and
 * notice before the machine is taken. A program that does not use the library still runs, restarts and is
 * accounted for.
 *
 *     struct phx_error error;
 *     phx_context *ctx;
 *     if (phx_join(NULL, &ctx, &error) != 0)
 *         return fprintf(stderr, "%s\n", error.message), 1;
 *     uint64_t step = 0;
 *     size_t len;
 *     int found = phx_checkpoint_restore(ctx, state, sizeof *state, &len, &step, &error);
 *     if (found != 0 && found != PHX_ERROR_NONE)
 *         return fprintf(stderr, "%s\n", error.message), 1;
 *     while (step < total) {
 *         train(state, step++);
 *         phx_step(ctx, step, NULL, 0, &error);
 *         if (step % 100 == 0)
 *             phx_checkpoint_save(ctx, step, state, sizeof *state, &error);
 *     }
 *     return phx_leave(ctx, &error) == 0 ? 0 : 1;
 *
 * Environment. Phalanx sets PHX_AGENT_SOCKET, PHX_TASK_UID, PHX_JOBSET, PHX_ATTEMPT, PHX_RANK,
 * PHX_WORLD_SIZE, PHX_RENDEZVOUS, PHX_CHECKPOINT_DIR, PHX_MEMORY_DIR and PHX_RESTORE_STEP. Without
 * PHX_AGENT_SOCKET the library works stand-alone: rank and world come from PHX_RANK / RANK and
 * PHX_WORLD_SIZE / WORLD_SIZE (0 and 1 when absent), the rendezvous from PHX_RENDEZVOUS or MASTER_ADDR and
 * MASTER_PORT + 1 (the port itself is often taken by torch), checkpoints from PHX_CHECKPOINT_DIR; then rank
 * 0 commits checkpoints and chooses the attempt. See docs/libphalanx.md.
 *
 * Results. Functions that can fail return 0 or a negative enum phx_code and describe it in *error, which
 * may be NULL. Result parameters are untouched on failure. The library prints nothing, installs no signal
 * handler and never exits the process.
 *
 * Ownership. Arguments are copied before a function returns, unless its comment says otherwise. Strings and
 * descriptors that the library returns belong to the context.
 *
 * Threads. A context has a thread of its own that serves the connections, and further ones while it keeps
 * checkpoints in memory. All of them block all signals. Unless a comment says otherwise, any thread may call
 * any function of a context at any time; no call may run during or after phx_leave or phx_close. Functions
 * with a timeout block, and so do phx_join, phx_leave, phx_close, phx_kv_put, phx_run_steps and the functions
 * that keep, find or load checkpoints. All others return at once. A child made by fork() must not use the
 * context (its descriptors are closed on exec).
 *
 * Timeouts are in milliseconds. A negative timeout waits without a limit, and 0 does not wait.
 */
#ifndef PHALANX_PHALANX_H
#define PHALANX_PHALANX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default) /* the library itself is built with hidden symbols */

enum phx_code {
    PHX_OK = 0,
    PHX_ERROR_INVALID = -1, /* wrong argument or environment: fix the program */
    PHX_ERROR_MEMORY = -2,
    PHX_ERROR_IO = -3,      /* a system call failed; the message has its reason */
    PHX_ERROR_TIMEOUT = -4, /* call again to continue waiting */
    /* A rank is lost, so this attempt cannot continue: call phx_rejoin, or end; Phalanx restarts the gang. */
    PHX_ERROR_PEER = -5,
    PHX_ERROR_FENCED = -6,  /* a newer attempt exists: end the process at once */
    PHX_ERROR_NONE = -7,    /* the checkpoint, key or file does not exist; often not a failure */
    PHX_ERROR_CORRUPT = -8, /* a stored shard differs from what was saved */
    /* The caller's buffer is too small, and *ret_len is the size needed; or the memory or the key-value store
     * that was to take the data is full. */
    PHX_ERROR_SPACE = -9,
    PHX_ERROR_REJOIN = -10, /* the membership has changed: call phx_rejoin */
    PHX_ERROR_RETRY = -11,  /* from a step: this rank's state is bad, repeat the step (phx_retry) */
};

/* Returns a static text for a code, such as "peer lost"; never NULL. */
const char *phx_code_name(int code);

struct phx_error {
    int code;          /* enum phx_code */
    int rank;          /* PHX_ERROR_PEER: the lost rank; otherwise -1 */
    char message[248]; /* one line without a newline */
};

typedef struct phx_context phx_context;

/* Zero selects the default of each field, so `struct phx_options options = {.size = sizeof options}` is
 * enough. The strings are copied. */
struct phx_options {
    size_t size;                /* sizeof(struct phx_options): lets later versions append fields */
    const char *checkpoint_dir; /* overrides PHX_CHECKPOINT_DIR; shared by all ranks */
    const char *address;        /* where peers reach this rank; default: as the rendezvous sees it */
    int64_t join_timeout_ms;    /* default 120 s: to find the agent and every rank of the gang */
    int64_t leave_timeout_ms;   /* default 10 s: to send the last reports; rank 0 waits for other ranks too */
    /* Not 0: the program calls phx_rejoin (or phx_run_steps) instead of ending with its attempt. */
    int rejoins;
};

/* ---- membership ---- */

/* Connects to the agent and to the other ranks. Returns when the whole gang is present and has agreed on
 * the checkpoint to restore, for which each rank reads its shard once. options may be NULL.
 *
 * A spare (PHX_SPARE is 1, PHX_RANK absent) first waits, without a limit, until it is given a rank; its
 * environment is then changed as by phx_rejoin.
 *
 * On success the caller owns *ret_ctx and must pass it to phx_leave or phx_close. Errors: PHX_ERROR_TIMEOUT
 * if the agent or a rank did not answer in time (on rank 0 the message names the missing ranks);
 * PHX_ERROR_INVALID with the name of the wrong option or environment variable; PHX_ERROR_FENCED if a newer
 * attempt exists; PHX_ERROR_PEER if a rank is lost and phx_options.rejoins is 0. */
int phx_join(const struct phx_options *options, phx_context **ret_ctx, struct phx_error *error);

/* Ends cleanly: waits for checkpoints on their way to storage or to a peer, sends the remaining reports, says
 * goodbye to agent and peers, and frees the context, whatever it returns. All ranks connect to rank 0, so
 * rank 0 waits for the others, at most leave_timeout_ms. On success the checkpoints in memory are deleted.
 * Returns PHX_ERROR_TIMEOUT if the agent did not take the last reports, or the failure of the attempt as
 * phx_check does. */
int phx_leave(phx_context *ctx, struct phx_error *error);

/* Frees the context without saying goodbye, as a crash would: the peers see this rank as lost. NULL is
 * allowed. */
void phx_close(phx_context *ctx);

/* Return this rank's number, from 0; the number of ranks; and the number of restarts before this run of the
 * gang. The values change only in phx_rejoin. */
uint32_t phx_rank(const phx_context *ctx);
uint32_t phx_world_size(const phx_context *ctx);
uint32_t phx_attempt(const phx_context *ctx);

/* Returns the number of ranks that the job has when none is missing: more than phx_world_size while whole
 * replicas wait for machines. Use it for values that depend on all ranks, such as the scale of a sum of
 * gradients. */
uint32_t phx_full_world_size(const phx_context *ctx);

/* Joins the next attempt within this process, which keeps all of its memory. Call it after PHX_ERROR_PEER,
 * when a new process takes the place of a lost rank, and after PHX_ERROR_REJOIN. Needs
 * phx_options.rejoins.
 *
 * Leaves the other ranks, waits until the agent names this process's next rank and rendezvous, meets the
 * other ranks there, and agrees with them on the checkpoint to restore, as phx_join does. Returns 0 when
 * the gang is whole. Rank, world, attempt and peers may have changed; barriers, keys and notices start
 * afresh; registered regions stay registered. Further losses prolong the call.
 *
 * Errors: PHX_ERROR_TIMEOUT (call again, or end); PHX_ERROR_FENCED (end); PHX_ERROR_INVALID if there is no
 * agent or phx_options.rejoins was not set. PHX_ERROR_NONE means that the whole job restarts and a dying
 * checkpoint was refused for the reason in the message: end. If a dying checkpoint was written, the call does
 * not return: the process is stopped.
 *
 * On success the environment describes the new attempt: setenv() sets PHX_RANK, RANK, PHX_WORLD_SIZE,
 * WORLD_SIZE, PHX_FULL_WORLD_SIZE, PHX_ATTEMPT, TORCHELASTIC_RESTART_COUNT, PHX_RENDEZVOUS, MASTER_ADDR
 * and MASTER_PORT, so no other thread may call getenv() during the call. Other threads may ask for rank,
 * world, attempt and peers, and may be blocked in calls of the old attempt, which fail. They must not begin
 * to save or restore. Only one thread may call phx_rejoin at a time. */
int phx_rejoin(phx_context *ctx, int64_t timeout_ms, struct phx_error *error);

/* Ends the attempt although no process is lost, because this rank's state cannot be trusted (a page of
 * memory is lost, a collective failed while every rank lives, a result cannot be right). All ranks get
 * PHX_ERROR_REJOIN and return, by phx_rejoin, to the newest step of which every rank's part is held; this
 * rank loads its part. `reason` is one line of ASCII for the events of the job, cut after 199 bytes; NULL:
 * none. If the job's annotations do not allow the rung `retry`, or its budget is used up, this process is
 * stopped and started again instead.
 *
 * Returns 0 when the retry was requested or the attempt has already ended: call phx_rejoin. Returns
 * PHX_ERROR_INVALID if there is no agent or phx_options.rejoins was not set, and PHX_ERROR_FENCED if a newer
 * attempt exists: end. */
int phx_retry(phx_context *ctx, const char *reason, struct phx_error *error);

struct phx_peer {
    const char *name;    /* host name as that rank sees it */
    const char *address; /* numeric */
};

/* Describes a rank, which may be this one. The strings live until the context ends or its attempt has changed
 * twice; one call of phx_rejoin may change it more than once. Returns PHX_ERROR_INVALID if there is no such
 * rank. */
int phx_peer(const phx_context *ctx, uint32_t rank, struct phx_peer *ret_peer, struct phx_error *error);

/* Returns 0 while the attempt is whole, otherwise PHX_ERROR_PEER, PHX_ERROR_REJOIN or PHX_ERROR_FENCED.
 * Costs less than a microsecond and never blocks. */
int phx_check(phx_context *ctx, struct phx_error *error);

/* Returns a descriptor that becomes readable when phx_check no longer returns 0, and stays readable until
 * phx_rejoin: for a poll() together with the program's own sockets. The descriptor belongs to the context; do
 * not read or close it. */
int phx_failure_fd(const phx_context *ctx);

/* ---- together ---- */

/* Returns when every rank has called it. After PHX_ERROR_TIMEOUT the next call waits for the same barrier.
 * Returns PHX_ERROR_PEER if a rank is lost or has left. */
int phx_barrier(phx_context *ctx, int64_t timeout_ms, struct phx_error *error);

#define PHX_KEY_MAX   256                /* bytes, with the NUL */
#define PHX_VALUE_MAX (1024 * 1024)      /* bytes of one value */
#define PHX_KV_MAX    (64 * 1024 * 1024) /* bytes of all keys and values together */

/* Publishes a value of at most PHX_VALUE_MAX bytes for the whole gang, for the life of this attempt; a second
 * put replaces the first. Waits for rank 0, which stores the value. Once the call has returned 0, all ranks
 * see it. `key` is a string of 1 to PHX_KEY_MAX - 1 bytes. Returns PHX_ERROR_SPACE if the store is full. */
int phx_kv_put(phx_context *ctx, const char *key, const void *value, size_t len, struct phx_error *error);

/* Copies the value of key into buf (cap bytes) and its length into *ret_len. Waits up to timeout_ms until a
 * rank puts the value. With timeout_ms 0 the call still waits for rank 0's answer, and returns PHX_ERROR_NONE
 * if the key is absent. After PHX_ERROR_SPACE *ret_len is the length needed. */
int phx_kv_get(phx_context *ctx, const char *key, void *buf, size_t cap, size_t *ret_len, int64_t timeout_ms,
               struct phx_error *error);

/* ---- progress ---- */

#define PHX_METRICS_MAX     16
#define PHX_METRIC_NAME_MAX 32 /* bytes, with the NUL; printable ASCII without spaces */

struct phx_metric {
    const char *name;
    double value;
};

/* Sets how many steps the job is going to make, for progress bars; sent with the next step. */
void phx_set_total_steps(phx_context *ctx, uint64_t total);

/* Reports that `step` steps of the job are done. Never blocks and costs about a microsecond: at most 20
 * reports a second go to the agent, but always the first and the last. Returns PHX_ERROR_INVALID if a metric
 * is wrong, and PHX_ERROR_FENCED if a newer attempt exists. */
int phx_step(phx_context *ctx, uint64_t step, const struct phx_metric *metrics, size_t metric_count,
             struct phx_error *error);

/* The activities of a rank within a step. In a synchronous job every rank takes the same time for a step, so
 * only a rank's own work (the time that is neither COMMUNICATE nor SAVE) tells a slow machine from the
 * machines that wait for it. Time in phx_barrier counts as COMMUNICATE and time in the calls that save
 * checkpoints as SAVE, without a mark. A program that marks nothing else should mark its collectives. */
enum phx_phase {
    PHX_PHASE_NONE = 0,
    PHX_PHASE_COMPUTE = 1,
    PHX_PHASE_LOAD = 2,        /* loading data */
    PHX_PHASE_COMMUNICATE = 3, /* and waiting for other ranks */
    PHX_PHASE_SAVE = 4,        /* saving checkpoints */
};

/* Begins a phase, which lasts until the next phx_phase_begin or phx_phase_end: phases do not nest. Costs
 * about as much as reading the clock. If several threads call it, the last call counts. An unknown phase
 * counts as PHX_PHASE_NONE. */
void phx_phase_begin(phx_context *ctx, enum phx_phase phase);
void phx_phase_end(phx_context *ctx);

/* ---- checkpoints ---- */

/* Writes this rank's part of the state after `step` steps durably to storage, and reports it. The
 * checkpoint exists once every rank has saved the same step in this attempt; an incomplete step is never
 * restored. Steps must rise within an attempt, from the restored step on. Also deletes this rank's shards of
 * committed checkpoints that are no longer kept: all but the last two, unless PHX_CHECKPOINT_KEEP says
 * otherwise. Returns PHX_ERROR_INVALID if the step is too low or there is no checkpoint directory,
 * PHX_ERROR_IO if the shard could not be written, and PHX_ERROR_FENCED if a newer attempt exists. */
int phx_checkpoint_save(phx_context *ctx, uint64_t step, const void *data, size_t len,
                        struct phx_error *error);

/* Waits until a checkpoint of `step`, or of a newer step, is committed. Not needed for correctness. */
int phx_checkpoint_wait(phx_context *ctx, uint64_t step, int64_t timeout_ms, struct phx_error *error);

/* Copies this rank's part of the state after `step` steps into memory that the agent of this machine owns
 * (PHX_MEMORY_DIR). The program waits for the copy only, and for other ranks if this one is a whole hold
 * ahead. A step that every rank holds can be restored after the loss of any process, as if it were saved.
 * The loss of a machine takes its part away, and the gang returns to a saved step. Two steps are kept;
 * phx_leave deletes them. Steps must rise within an attempt, from the restored step on. The first two calls,
 * and calls with a larger state than before, take longer, because they allocate the memory.
 *
 * Returns PHX_ERROR_INVALID if the step is too low, there is no PHX_MEMORY_DIR, or the job set has several
 * gangs, and PHX_ERROR_SPACE if there is not enough memory. A failure after the copy is returned by the next
 * call. */
int phx_checkpoint_hold(phx_context *ctx, uint64_t step, const void *data, size_t len,
                        struct phx_error *error);

/* Waits until every rank's copy of `step` (PHX_IN_PEER), or of a newer step, is on another machine. Not
 * needed for correctness. Returns PHX_ERROR_INVALID if there is no other machine. If compression was
 * requested (PHX_PEER_ZSTD) and is not available, copies are sent uncompressed, and one call returns 0 with
 * the reason in error->message (code 0). */
int phx_checkpoint_copied(phx_context *ctx, uint64_t step, int64_t timeout_ms, struct phx_error *error);

/* Waits until every rank holds `step`, or a newer step. Not needed for correctness. */
int phx_checkpoint_held(phx_context *ctx, uint64_t step, int64_t timeout_ms, struct phx_error *error);

/* Returns the size of this rank's shard of the checkpoint that phx_checkpoint_restore loads, and its step.
 * Errors are those of phx_checkpoint_restore. */
int phx_checkpoint_find(phx_context *ctx, size_t *ret_len, uint64_t *ret_step, struct phx_error *error);

/* Loads this rank's part of the newest checkpoint that every rank held, or that was committed before this
 * attempt began. If some rank's part of it is damaged, loads the newest older checkpoint that is whole on
 * every rank. All ranks get the same step. Call it before the first hold. The contents are verified; buf
 * is undefined after a failure.
 *
 * Errors: PHX_ERROR_NONE if there is no checkpoint (start from the beginning); PHX_ERROR_CORRUPT if there are
 * checkpoints, but none is whole; PHX_ERROR_SPACE if the part has more than cap bytes; PHX_ERROR_INVALID if
 * another number of ranks saved the checkpoint (only phx_checkpoint_load can reshard it). */
int phx_checkpoint_restore(phx_context *ctx, void *buf, size_t cap, size_t *ret_len, uint64_t *ret_step,
                           struct phx_error *error);

/* ---- checkpoints of named regions ---- */

enum phx_dtype {
    PHX_BOOL,
    PHX_U8,
    PHX_I8,
    PHX_U16,
    PHX_I16,
    PHX_F16,
    PHX_BF16,
    PHX_U32,
    PHX_I32,
    PHX_F32,
    PHX_U64,
    PHX_I64,
    PHX_F64,
    PHX_DTYPES
};

#define PHX_REGION_NAME_MAX                                                                                  \
    128 /* bytes, with the NUL; printable ASCII without blanks, quotes and backslashes */
#define PHX_REGION_DIMS_MAX 8
#define PHX_REGIONS_MAX     4096

/* A named part of the state. `data` points to this rank's elements, as many as the product of `shape`, in
 * row-major order; with dims 0 there is a single element. A region of which several ranks hold parts has a
 * shard_count above 1: this rank has part shard_index along axis shard_axis. Otherwise every rank has the
 * whole region (the region is replicated). */
struct phx_region {
    const char *name;
    void *data;
    int dtype; /* enum phx_dtype */
    uint32_t dims;
    uint64_t shape[PHX_REGION_DIMS_MAX];
    uint32_t shard_axis, shard_index, shard_count;
};

/* Registers the regions that phx_checkpoint_take and phx_checkpoint_load work on, in place of any earlier
 * ones. The description is copied. The memory stays the program's and must live until other regions are
 * registered or the context is freed. Must not run while another thread keeps or loads the regions.
 * PHX_ERROR_INVALID names the region that is wrong. */
int phx_checkpoint_register(phx_context *ctx, const struct phx_region *regions, size_t count,
                            struct phx_error *error);

#define PHX_IN_MEMORY  1u /* as phx_checkpoint_hold */
#define PHX_IN_STORAGE 2u /* as phx_checkpoint_save */
#define PHX_IN_PEER    4u /* in memory, with a copy in the memory of another machine */

/* Keeps the registered regions as they are after `step` steps. `where` is one or more of PHX_IN_..., joined
 * by |. Steps and errors are as in phx_checkpoint_hold and phx_checkpoint_save.
 *
 * With PHX_IN_MEMORY | PHX_IN_STORAGE the program waits for the copy into memory only. A thread of the
 * library writes it from there to storage, and the next call returns the error if that fails. Without
 * PHX_MEMORY_DIR both mean storage.
 *
 * With PHX_IN_PEER a thread of the library sends the copy in memory to a rank on another machine, so the loss
 * of one machine loses nothing. Only one copy is sent at a time. On a single machine PHX_IN_PEER means
 * memory. */
int phx_checkpoint_take(phx_context *ctx, uint64_t step, unsigned where, struct phx_error *error);

/* Holds the registered regions as they are after `step` steps of an attempt that has ended. Call it after
 * PHX_ERROR_PEER or PHX_ERROR_REJOIN and before phx_rejoin. The next attempt, or a dying checkpoint, can
 * use them if every other rank, or a replica of it, has kept the same step. No rank waits for another. If
 * this rank already holds that step or a newer one, the call does nothing. Returns PHX_ERROR_INVALID if the
 * attempt has not ended; other errors are as in phx_checkpoint_hold. phx_run_steps calls this function if it
 * makes holds. */
int phx_checkpoint_rescue(phx_context *ctx, uint64_t step, struct phx_error *error);

/* Loads the registered regions as phx_checkpoint_restore does; their memory is undefined after a failure.
 * The checkpoint may come from another number of ranks, or from a program that splits its regions
 * differently: each part is then put together from the old parts that overlap it, all of one step. Old
 * parts may have any length. New part i of n of an axis of L elements begins at i * (L / n) + min(i, L % n).
 * Regions of the checkpoint that are not registered are ignored. PHX_ERROR_INVALID names a region that the
 * checkpoint lacks, or has with another dtype or shape; other errors are as in phx_checkpoint_restore. */
int phx_checkpoint_load(phx_context *ctx, uint64_t *ret_step, struct phx_error *error);

/* Fills the registered regions that a safetensors file contains, each rank its own part of them, for
 * example with initial weights. The other regions stay as they are. *ret_count (may be NULL) is the number
 * of regions filled. Each rank reads the file on its own. Returns PHX_ERROR_NONE if the file does not exist,
 * PHX_ERROR_INVALID if it contains none of the regions or one with another dtype or shape, and
 * PHX_ERROR_CORRUPT if it is not a safetensors file. After an error the regions are undefined. */
int phx_checkpoint_import(phx_context *ctx, const char *path, size_t *ret_count, struct phx_error *error);

/* ---- notice ---- */

struct phx_drain {
    int64_t remaining_ms; /* until the deadline; negative after it */
    uint32_t reason;      /* enum phx_drain_reason */
};

enum phx_drain_reason {
    PHX_DRAIN_MAINTENANCE = 1,
    /* For this reason and those below, the task is stopped as soon as a checkpoint is committed, so
     * phx_run_steps waits after the save, at most 30 s. */
    PHX_DRAIN_PREEMPTION = 2,
    PHX_DRAIN_FAULT = 3,
    /* A machine of the job is being replaced; the other ranks continue in the next attempt. */
    PHX_DRAIN_MOVE = 4,
};

/* Returns 1 if the agent has announced that this task will be stopped, otherwise 0. ret_drain may be NULL.
 * The ranks of a gang receive the notice at different times: let them agree on the step at which they
 * save. */
int phx_notice(phx_context *ctx, struct phx_drain *ret_drain);

/* ---- the slice of a pod ---- */

/* Returns the number of the routing tables now in use for the job's slice of a pod. Returns 0 if the job has
 * no slice or the agent has not reported the tables yet. Otherwise *ret_name, which may be NULL, receives
 * their name, at most size - 1 bytes and a NUL. The name is the shape and the optical switches that the
 * tables avoid, such as "4x4x8-twisted without x5", and denotes the same tables on every rank. Newer tables
 * have a larger number; no number is used twice. */
uint64_t phx_slice_tables(phx_context *ctx, char *ret_name, size_t size);

enum { PHX_SLICE_CHIPS = 4 }; /* chips of a machine: 2x2x1 */

/* The slice as this rank sees it. */
struct phx_slice {
    uint64_t tables;     /* number of the routing tables in use */
    uint64_t without;    /* optical switches that they avoid: bit 16 * axis + index, axes X, Y, Z from 0 */
    uint32_t extent[3];  /* X, Y, Z: chips along each axis */
    int32_t twisted;     /* 1: a twisted torus */
    uint32_t chip_count; /* of this rank's machine */
    struct {
        uint32_t number; /* in the slice: x + X (y + Y z) */
        uint32_t at[3];  /* x, y, z */
    } chips[PHX_SLICE_CHIPS];
};

/* Returns 1 with the slice of the job. Returns 0, with *ret_slice untouched, if the job has no slice, the
 * slice has no machine for this rank, or the agent has not reported the tables yet. */
int phx_slice_get(phx_context *ctx, struct phx_slice *ret_slice);
/* Waits until the slice has routing tables with a number above `seen` (0: any), as after the loss or the
 * return of an optical switch. Returns 0 with the slice, PHX_ERROR_TIMEOUT, or the failure of the attempt as
 * phx_check does. */
int phx_slice_wait(phx_context *ctx, uint64_t seen, int64_t timeout_ms, struct phx_slice *ret_slice,
                   struct phx_error *error);

/* The functions below are for a program that loads routing tables into this rank's chips itself. The
 * functions of phalanx/fabric.h call them. An optical switch counts as drained once every rank between
 * phx_slice_enter and phx_slice_leave has reported tables that avoid the switch. */

/* Opens a session of this rank's chips. Call it before reading phx_slice_get and loading tables. Waits until
 * the controller knows of the session and has named tables to load; while the controller is away, until it
 * returns. Without an agent, does not wait. Returns 0, PHX_ERROR_TIMEOUT with a message that says whether the
 * agent or the controller has not answered, or the failure of the attempt as phx_check does. After an error
 * the session is closed. */
int phx_slice_enter(phx_context *ctx, int64_t timeout_ms, struct phx_error *error);
/* Reports that the chips have loaded the tables with this number, which avoid the switches `without` (as in
 * struct phx_slice). Does nothing without a session. */
void phx_slice_loaded(phx_context *ctx, uint64_t tables, uint64_t without);
/* Reports the optical switches over which this rank's chips see other chips than the shape of the slice
 * requires (bits as in struct phx_slice; 0: none any longer). The controller then names tables that avoid
 * these switches, or gives the job other cubes. Does nothing without a session. */
void phx_slice_wrong(phx_context *ctx, uint64_t switches);
/* Closes the session: the chips no longer have any tables. Does nothing without a session. */
void phx_slice_leave(phx_context *ctx);

/* ---- the loop ---- */

/* For hold_every and save_every: the library chooses the interval from its measurements and the machines'
 * failure rate (docs/ettr.md), the same on all ranks. It makes no checkpoints in a tier (memory, storage)
 * that the job does not have. A number in PHX_CHECKPOINT_INTERVAL replaces PHX_AUTO. */
#define PHX_AUTO UINT64_MAX

/* A training loop that survives the loss of other ranks. Its state is the registered regions; `begin`
 * makes everything else again. phx_run_steps calls the callbacks in its caller's thread, except `abort`.
 * Callbacks return 0 or a phx_code with its description in *error. Zero selects the default of each field
 * that may be left out. */
struct phx_loop {
    size_t size;         /* sizeof(struct phx_loop) */
    uint64_t steps;      /* of the job, from its beginning */
    uint64_t hold_every; /* steps between checkpoints in memory; 0: none; or PHX_AUTO */
    uint64_t save_every; /* as hold_every, to storage, and after the last step; 0: only after a notice */
    void *job;           /* passed to the callbacks */

    /* May be NULL. Called when rank and world are known and nothing is loaded yet: the place to register
     * regions whose parts depend on them. Registering the same regions at the same addresses again
     * declares that their contents are unchanged: if the gang resumes from that state, nothing is loaded. */
    int (*arrange)(void *job, phx_context *ctx, struct phx_error *error);
    /* Sets the regions to their state before the first step. Called when there is no checkpoint: at the
     * start, and after the loss of a rank before the first checkpoint. NULL means that the regions are in
     * that state when phx_run_steps is called, and that such a loss ends the loop. */
    int (*reset)(void *job, phx_context *ctx, struct phx_error *error);
    /* May be NULL. Makes connections and communicators for this attempt; the regions are those after `step`
     * steps. */
    int (*begin)(void *job, phx_context *ctx, uint64_t step, struct phx_error *error);
    /* Makes one step; `step` steps were made before it. All ranks make the same steps. Return
     * PHX_ERROR_PEER or PHX_ERROR_REJOIN (from this library, or when a connection of your own breaks) to
     * end the attempt, and PHX_ERROR_RETRY to end it for all ranks as phx_retry does, with the message as
     * the reason. Any other error ends the attempt if a loss becomes known within seconds, since the error
     * of a collective often has that cause; otherwise it ends the loop. */
    int (*step)(void *job, phx_context *ctx, uint64_t step, struct phx_error *error);
    /* May be NULL. Undoes `begin`, even a `begin` that failed. Not called when all steps are made. */
    void (*end)(void *job, phx_context *ctx);
    /* May be NULL. Makes `begin` or `step` return after the end of the attempt, if it blocks in a call
     * that does not notice the loss, such as a collective of NCCL or gloo. Called by the library's thread,
     * at most once between a `begin` and its `end`, never while `end` runs. It may call only phx_rank,
     * phx_world_size and other functions that return constants of the attempt. */
    void (*abort)(void *job);

    /* Metrics that are sent with each step, with the values when `step` returns; at most PHX_METRICS_MAX. */
    const struct phx_metric *metrics;
    size_t metric_count;
    /* Not 0: a step that fails leaves the regions as they were before it, unless it returns PHX_ERROR_RETRY.
     * Then the regions are loaded again only if the gang returns to an earlier step. */
    int whole_steps;
    /* For regions that are copies in the host's memory of a state elsewhere, for example on a device. May
     * be NULL. `fetch` copies the state into the regions before they are kept; `deliver` copies the regions
     * to the state after they were loaded. */
    int (*fetch)(void *job, phx_context *ctx, struct phx_error *error);
    int (*deliver)(void *job, phx_context *ctx, struct phx_error *error);
};

/* Loads the newest checkpoint, or starts from the beginning, and makes the steps: holds, saves and
 * reports. When a rank is lost or the membership changes, ends the attempt, joins the next with phx_rejoin
 * (without phx_options.rejoins the loop ends with the error instead), and resumes from the newest step that
 * all ranks have. After a notice all ranks save once, at a step on which they agree. Returns 0 when every
 * rank has made all steps; otherwise the error that ended the loop. */
int phx_run_steps(phx_context *ctx, const struct phx_loop *loop, struct phx_error *error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
