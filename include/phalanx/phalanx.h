/* phalanx.h - the in-job library: a training program's side of Phalanx.
 *
 * What it gives a program: who am I (rank, world, peers, attempt), a barrier, a key-value exchange, a
 * heartbeat with the step and the loss, checkpoints that a whole gang commits together or not at all, and
 * notice before the machine is taken. A program that doesn't use it still runs, restarts and is accounted
 * for.
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
 * Threads. A context has one thread of its own, which holds the connections; it blocks all signals. Any
 * thread may call any function of a context at any time, except that nothing may run in or after phx_leave
 * / phx_close. Calls with a timeout block; everything else returns at once, apart from the file operations
 * of phx_checkpoint_save / _restore. A child made by fork() must not use the context (its descriptors are
 * closed on exec).
 *
 * Timeouts are in milliseconds; a negative one waits for ever, 0 doesn't wait.
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
    PHX_ERROR_INVALID = -1, /* wrong argument or environment: mend the program */
    PHX_ERROR_MEMORY = -2,
    PHX_ERROR_IO = -3,      /* a system call failed; the message has its reason */
    PHX_ERROR_TIMEOUT = -4, /* call again to go on waiting */
    PHX_ERROR_PEER =
        -5, /* a rank is lost: this attempt can't go on. phx_rejoin, or end; Phalanx restarts the gang */
    PHX_ERROR_FENCED = -6,  /* a newer attempt exists: end the process at once */
    PHX_ERROR_NONE = -7,    /* there is no such checkpoint or key; often not a failure at all */
    PHX_ERROR_CORRUPT = -8, /* a stored shard is not what was saved */
    PHX_ERROR_SPACE = -9,   /* the caller's buffer is too small; *ret_len says what is needed */
    PHX_ERROR_REJOIN = -10, /* the membership has changed: call phx_rejoin */
    PHX_ERROR_RETRY = -11,  /* from a step: what this rank has is no good, make it again (phx_retry) */
};

/* Static text for a code ("peer lost"), never NULL. */
const char *phx_code_name(int code);

struct phx_error {
    int code;          /* enum phx_code */
    int rank;          /* PHX_ERROR_PEER: the lost rank; otherwise -1 */
    char message[248]; /* one line without a newline */
};

typedef struct phx_context phx_context;

/* Zero means the default for each field, so `struct phx_options options = {.size = sizeof options}` is
 * enough. */
struct phx_options {
    size_t size;                /* sizeof(struct phx_options): lets later versions append fields */
    const char *checkpoint_dir; /* instead of PHX_CHECKPOINT_DIR; shared by all ranks; copied */
    const char *address;        /* where peers reach this rank, instead of what the rendezvous sees; copied */
    int64_t join_timeout_ms;    /* default 120 s: agent found and every rank of the gang present */
    int64_t leave_timeout_ms; /* default 10 s: last reports sent; rank 0 also waits for the others to leave */
    /* not 0: the program calls phx_rejoin (or phx_run_steps) instead of ending with its attempt */
    int rejoins;
};

/* ---- membership ---- */

/* Connects to the agent and to the other ranks; returns when the whole gang is present and has agreed on the
 * checkpoint to restore, for which each rank reads its shard once. options may be NULL.
 * A spare (PHX_SPARE is 1, PHX_RANK absent) first waits, without a limit, until it is given a rank; it finds
 * its environment changed as by phx_rejoin then.
 * On success *ret_ctx must be given to phx_leave or phx_close. */
int phx_join(const struct phx_options *options, phx_context **ret_ctx, struct phx_error *error);

/* Ends cleanly: sends what is still to be reported, says goodbye to agent and peers, and frees the context,
 * whatever it returns. Rank 0 is the meeting point of the gang, so it waits for the others, at most
 * leave_timeout_ms. */
int phx_leave(phx_context *ctx, struct phx_error *error);

/* Drops everything without a goodbye, as a crash would: the peers see this rank as lost. NULL is allowed. */
void phx_close(phx_context *ctx);

uint32_t phx_rank(const phx_context *ctx);
uint32_t phx_world_size(const phx_context *ctx);
uint32_t phx_attempt(const phx_context *ctx); /* number of restarts before this run of the gang */

/* How many ranks the job has when none is missing; more than phx_world_size while whole replicas are away
 * for want of machines. For what depends on all of them, as the scale of a sum of gradients. */
uint32_t phx_full_world_size(const phx_context *ctx);

/* Goes on under the next attempt within this process, with all of its memory: after PHX_ERROR_PEER, where a
 * rank is lost and its place is taken by a new process, and after PHX_ERROR_REJOIN. Only with
 * phx_options.rejoins.
 *
 * Leaves the other ranks, waits until the agent says where and as which rank this process goes on, meets the
 * others there, and agrees with them on the checkpoint to restore, as phx_join. Returns 0 when the gang is
 * whole; rank, world, attempt and peers may all be other ones, and barriers, keys and notices begin anew.
 * What was registered stays registered. More losses on the way prolong it. PHX_ERROR_TIMEOUT: call again, or
 * end. PHX_ERROR_NONE: all of the job begins anew, and a dying checkpoint was refused; the message says what
 * is missing. End. (One that was written lets nobody return: the process is stopped.)
 *
 * On success the environment of this process says the new place: PHX_RANK, RANK, PHX_WORLD_SIZE, WORLD_SIZE,
 * PHX_FULL_WORLD_SIZE, PHX_ATTEMPT, TORCHELASTIC_RESTART_COUNT, PHX_RENDEZVOUS, MASTER_ADDR and MASTER_PORT
 * are set by setenv(), so no other thread may be in getenv() meanwhile. Other threads may ask for rank,
 * world, attempt and peers and may be blocked in calls of the old attempt, which fail; they may not begin to
 * save or restore. One thread calls phx_rejoin. */
int phx_rejoin(phx_context *ctx, int64_t timeout_ms, struct phx_error *error);

/* Ends the attempt, though no process is lost: what this rank has is not to be trusted (a page of memory is
 * gone, a collective failed and every rank lives, a result can't be right). All ranks hear PHX_ERROR_REJOIN
 * and go back, by phx_rejoin, to the newest step of which every rank's part is held; this rank loads, it
 * doesn't rescue. The reason goes to the events of the job; NULL: none is given. Where the job's annotations
 * allow no rung `retry`, or it is used up, this process is stopped and started again instead.
 * 0: it is asked for, or the attempt is over anyway: call phx_rejoin. PHX_ERROR_INVALID without an agent or
 * without phx_options.rejoins: end. */
int phx_retry(phx_context *ctx, const char *reason, struct phx_error *error);

struct phx_peer {
    const char *name;    /* host name as that rank sees it */
    const char *address; /* numeric */
};

/* The strings live until the context ends or phx_rejoin is called twice. rank may be one's own. */
int phx_peer(const phx_context *ctx, uint32_t rank, struct phx_peer *ret_peer, struct phx_error *error);

/* 0 while the attempt is whole, else PHX_ERROR_PEER, PHX_ERROR_REJOIN or PHX_ERROR_FENCED. Cheap: call it as
 * often as you like.
 */
int phx_check(phx_context *ctx, struct phx_error *error);

/* A descriptor that becomes readable, and stays so until phx_rejoin, when phx_check stops to give 0: for a
 * poll() beside the program's own sockets. Belongs to the context; don't read or close it. */
int phx_failure_fd(const phx_context *ctx);

/* ---- together ---- */

/* Returns when every rank has called it. After PHX_ERROR_TIMEOUT the next call waits for the same barrier. */
int phx_barrier(phx_context *ctx, int64_t timeout_ms, struct phx_error *error);

#define PHX_KEY_MAX   256                /* bytes, with the NUL */
#define PHX_VALUE_MAX (1024 * 1024)      /* bytes of one value */
#define PHX_KV_MAX    (64 * 1024 * 1024) /* bytes of all keys and values together */

/* Publishes a value for the whole gang, for the life of this attempt; a second put replaces the first. When
 * it returns 0 the value is visible to all ranks. */
int phx_kv_put(phx_context *ctx, const char *key, const void *value, size_t len, struct phx_error *error);

/* Copies the value of key into buf; waits up to timeout_ms for somebody to put it. PHX_ERROR_NONE when it is
 * absent and timeout_ms is 0. With PHX_ERROR_SPACE *ret_len is the length needed. */
int phx_kv_get(phx_context *ctx, const char *key, void *buf, size_t cap, size_t *ret_len, int64_t timeout_ms,
               struct phx_error *error);

/* ---- progress ---- */

#define PHX_METRICS_MAX     16
#define PHX_METRIC_NAME_MAX 32 /* bytes, with the NUL; printable ASCII without spaces */

struct phx_metric {
    const char *name;
    double value;
};

/* How many steps the job wants to make, for progress bars; sent with the next step. */
void phx_set_total_steps(phx_context *ctx, uint64_t total);

/* Says that `step` steps of the job are done. Doesn't block and costs about a microsecond: at most 20 per
 * second go to the agent, but always the first and the last. Fails only for wrong metrics or a fenced
 * attempt. */
int phx_step(phx_context *ctx, uint64_t step, const struct phx_metric *metrics, size_t metric_count,
             struct phx_error *error);

/* The activities of a rank within a step. In a synchronous job every rank takes the same time for a step, so
 * only a rank's own work tells a slow machine from those that wait for it: the time that is neither
 * COMMUNICATE nor SAVE. Time in phx_barrier and in the calls that save checkpoints counts as waiting by
 * itself. A program that marks nothing else should mark its collectives. */
enum phx_phase {
    PHX_PHASE_NONE = 0,
    PHX_PHASE_COMPUTE = 1,
    PHX_PHASE_LOAD = 2,        /* of data */
    PHX_PHASE_COMMUNICATE = 3, /* and waiting for others */
    PHX_PHASE_SAVE = 4,        /* checkpoints */
};

/* From here on the rank does this, until the next phx_phase_begin or phx_phase_end: phases don't nest. Costs
 * about as much as reading the clock. Of several threads the last word counts; unknown phases are NONE. */
void phx_phase_begin(phx_context *ctx, enum phx_phase phase);
void phx_phase_end(phx_context *ctx);

/* ---- checkpoints ---- */

/* Writes this rank's part of the state after `step` steps, durably, and reports it. The checkpoint exists
 * once every rank has saved the same step in this attempt; a step that isn't complete is never restored.
 * Steps must rise within an attempt. Shards older than the last two committed checkpoints are deleted on the
 * way. */
int phx_checkpoint_save(phx_context *ctx, uint64_t step, const void *data, size_t len,
                        struct phx_error *error);

/* Waits until a checkpoint of `step`, or a newer one, is committed. Not needed for correctness. */
int phx_checkpoint_wait(phx_context *ctx, uint64_t step, int64_t timeout_ms, struct phx_error *error);

/* Copies this rank's part of the state after `step` steps into memory that the agent of this machine owns
 * (PHX_MEMORY_DIR), and returns: the program waits for the copy alone, and, where it is a whole hold ahead
 * of another rank, for that one. What every rank holds can be restored after the loss of any process, as if
 * it were saved; the loss of a machine takes its part away, and the gang goes back to what is saved. Two
 * steps are kept; phx_leave lets go of them. Steps must rise within an attempt. The first two calls, and a
 * state that has grown, take longer: the memory is made then. PHX_ERROR_INVALID without PHX_MEMORY_DIR, or
 * in a job set of several gangs; PHX_ERROR_SPACE without memory. */
int phx_checkpoint_hold(phx_context *ctx, uint64_t step, const void *data, size_t len,
                        struct phx_error *error);

/* Waits until every rank's copy of `step` (PHX_IN_PEER), or of a newer one, lies on another machine.
 * PHX_ERROR_INVALID: there is no other machine. 0 with a message in *error (code 0), once: what was asked for
 * (PHX_PEER_ZSTD) can't be had, and why; copies go without it. Not needed for correctness. */
int phx_checkpoint_copied(phx_context *ctx, uint64_t step, int64_t timeout_ms, struct phx_error *error);

/* Waits until every rank holds `step`, or a newer one. Not needed for correctness. */
int phx_checkpoint_held(phx_context *ctx, uint64_t step, int64_t timeout_ms, struct phx_error *error);

/* Size of this rank's shard of the checkpoint that phx_checkpoint_restore loads, and its step; PHX_ERROR_NONE
 * when there is none. */
int phx_checkpoint_find(phx_context *ctx, size_t *ret_len, uint64_t *ret_step, struct phx_error *error);

/* Loads this rank's part of the newest checkpoint that every rank held or that was committed before this
 * attempt began, or, when some rank's part of that is damaged, of the newest older one that is whole on
 * every rank; all ranks get the same step. Call it before the first hold. The contents are verified; buf is
 * undefined after a failure. PHX_ERROR_NONE when there is no checkpoint: start from the beginning.
 * PHX_ERROR_CORRUPT when there are, but none is whole. */
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

/* A part of the state: `data` has the product of `shape` elements of the dtype, rows first; no dimension is
 * one element. What several ranks hold parts of says so with shard_count above 1: this rank has part
 * shard_index along axis shard_axis; otherwise every rank has the whole (it is replicated). */
struct phx_region {
    const char *name;
    void *data;
    int dtype; /* enum phx_dtype */
    uint32_t dims;
    uint64_t shape[PHX_REGION_DIMS_MAX];
    uint32_t shard_axis, shard_index, shard_count;
};

/* From here on phx_checkpoint_take and _load are of these regions, in the place of any before. The
 * description is copied; the memory stays the program's and must live until other regions are registered or
 * the context is gone. */
int phx_checkpoint_register(phx_context *ctx, const struct phx_region *regions, size_t count,
                            struct phx_error *error);

#define PHX_IN_MEMORY  1u /* as phx_checkpoint_hold */
#define PHX_IN_STORAGE 2u /* as phx_checkpoint_save */
#define PHX_IN_PEER    4u /* in memory, and a copy in that of another machine */

/* Keeps the registered regions as they are after `step` steps. With both places the program waits for the
 * copy into memory alone, and a thread of the library writes it from there; where that fails, the next call
 * says so. Where there is no PHX_MEMORY_DIR both mean storage.
 * PHX_IN_PEER holds in memory, and a thread of the library sends the copy to a rank on another machine, so
 * that the loss of a machine loses nothing; two copies can't be on their way at once. On a single machine
 * it means memory. */
int phx_checkpoint_take(phx_context *ctx, uint64_t step, unsigned where, struct phx_error *error);

/* After PHX_ERROR_PEER or PHX_ERROR_REJOIN and before phx_rejoin: holds the registered regions as they are
 * after `step` steps of the attempt that is over, so that the next one, or a dying checkpoint, can have them
 * where every other rank, or a replica of it, has kept the same step. No rank waits for another. Nothing is
 * done where something as new is held. PHX_ERROR_INVALID before; else as phx_checkpoint_hold. phx_run_steps
 * calls it where it holds. */
int phx_checkpoint_rescue(phx_context *ctx, uint64_t step, struct phx_error *error);

/* As phx_checkpoint_restore, into the registered regions, whose memory is undefined after a failure. Another
 * number of ranks, or a program that cuts its regions otherwise, may have kept them: then each part is put
 * together from the old parts that have something of it, all of the one step. Old parts may be of any
 * lengths; of an axis of L elements the new part i of n begins at i * (L / n) + min(i, L % n). Regions that
 * are not registered are passed over. PHX_ERROR_INVALID names a region that the checkpoint has not, or has
 * with another dtype or shape. */
int phx_checkpoint_load(phx_context *ctx, uint64_t *ret_step, struct phx_error *error);

/* Fills those of the registered regions that a safetensors file has, each rank its own part of them: weights
 * to begin from. The others stay as they are. *ret_count (may be NULL): how many it had. The file is read by
 * each rank; nobody agrees on anything. PHX_ERROR_NONE: there is none; PHX_ERROR_INVALID: it has no region,
 * or names one that has another dtype or shape; PHX_ERROR_CORRUPT. After an error the regions are undefined.
 */
int phx_checkpoint_import(phx_context *ctx, const char *path, size_t *ret_count, struct phx_error *error);

/* ---- notice ---- */

struct phx_drain {
    int64_t remaining_ms; /* until the deadline; negative behind it */
    uint32_t reason;      /* enum phx_drain_reason */
};

enum phx_drain_reason {
    PHX_DRAIN_MAINTENANCE = 1,
    /* From here on: it follows as soon as a checkpoint is committed, so phx_run_steps stands where it has
     * saved, at most 30 s. */
    PHX_DRAIN_PREEMPTION = 2,
    PHX_DRAIN_FAULT = 3,
    /* A machine of the job is replaced: the others are told where they go on. */
    PHX_DRAIN_MOVE = 4,
};

/* 1 when the agent announced that this task will be stopped, else 0. ret_drain may be NULL. The ranks of a
 * gang hear of it at different times: let them agree on the step at which they save. */
int phx_notice(phx_context *ctx, struct phx_drain *ret_drain);

/* ---- the loop ---- */

/* For hold_every and save_every: the library chooses, by what it measures and how often machines fail
 * (docs/ettr.md), the same on all ranks; where there is no place for them, none are made. The environment's
 * PHX_CHECKPOINT_INTERVAL takes its place where that is a number. */
#define PHX_AUTO UINT64_MAX

/* A training loop that outlives the loss of other ranks. Its state is the registered regions; everything
 * else is made again by `begin`. Callbacks are called in the thread of phx_run_steps, but for `abort`, and
 * return 0 or a phx_code with its description in *error. Zero means the default for each field that may be
 * left out. */
struct phx_loop {
    size_t size;         /* sizeof(struct phx_loop) */
    uint64_t steps;      /* of the job, from its beginning */
    uint64_t hold_every; /* steps between checkpoints in memory; 0: none are made; or PHX_AUTO */
    uint64_t save_every; /* to storage, and after the last step; 0: only for a notice; or PHX_AUTO */
    void *job;           /* for the callbacks */

    /* May be NULL. Rank and world are known, nothing is loaded yet: the place to register regions whose parts
     * depend on them. Who registers the same ones at the same addresses says that they are what they were:
     * where that is what to go on from, nothing is loaded. */
    int (*arrange)(void *job, phx_context *ctx, struct phx_error *error);
    /* There is no checkpoint: sets the regions to what they are before the first step; at the start, and
     * when a rank was lost before the first checkpoint. NULL: they are so when phx_run_steps is called, and
     * such a loss ends the loop. */
    int (*reset)(void *job, phx_context *ctx, struct phx_error *error);
    /* May be NULL. The regions are those after `step` steps: make connections and communicators for this
     * attempt. */
    int (*begin)(void *job, phx_context *ctx, uint64_t step, struct phx_error *error);
    /* Makes one step, `step` being made before it. All ranks make the same ones. PHX_ERROR_PEER and
     * PHX_ERROR_REJOIN (from calls of this library, or of its own when a connection breaks) end the attempt;
     * PHX_ERROR_RETRY ends it for all ranks, as phx_retry with the message as reason;
     * any other failure does so too where word of a loss follows within seconds, as what a collective says
     * then is often about itself; otherwise it ends the loop. */
    int (*step)(void *job, phx_context *ctx, uint64_t step, struct phx_error *error);
    /* May be NULL. Undoes `begin`, also one that failed; not after the last step. */
    void (*end)(void *job, phx_context *ctx);
    /* May be NULL. The attempt is over: makes `begin` or `step` return, if it blocks in something that
     * doesn't hear of it, as a collective of NCCL or gloo. Called by the library's thread, at most once
     * between a `begin` and its `end`, never beside `end`; it may not call the library, but for phx_rank and
     * the like. */
    void (*abort)(void *job);

    /* Sent with each step, as they are when `step` has returned; at most PHX_METRICS_MAX. */
    const struct phx_metric *metrics;
    size_t metric_count;
    /* Not 0: a step that fails leaves the regions as they were before it. Then what they hold needn't be
     * loaded where the gang goes back to no earlier step. */
    int whole_steps;
    /* For regions that are copies in the host's memory of what lives elsewhere, as on a device. May be NULL.
     * fetch: they are about to be kept, bring there what the state is now; deliver: they were loaded. */
    int (*fetch)(void *job, phx_context *ctx, struct phx_error *error);
    int (*deliver)(void *job, phx_context *ctx, struct phx_error *error);
};

/* Loads the newest checkpoint, or starts from the beginning, and makes the steps; holds, saves, reports.
 * Where a rank is lost or the membership changes, it ends the attempt, goes on with phx_rejoin as soon as
 * the agent says so (a context without `rejoins` returns PHX_ERROR_PEER), and takes it from the newest step
 * that all ranks have. A notice is answered by one save, of a step on which the ranks agree. Returns 0 when
 * all steps are made and every rank knows it. */
int phx_run_steps(phx_context *ctx, const struct phx_loop *loop, struct phx_error *error);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif
#endif
