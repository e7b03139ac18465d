/* context.h - the inside of a phx_context, and what each file of the library does.
 *
 *     calls.c, checkpoint.c, join.c    the public functions, in the caller's thread
 *     rejoin.c                         from one attempt to the next within the process
 *     steps.c                          phx_run_steps, a loop made of the public functions
 *     auto.c                           the checkpoint intervals of the loop when the program sets none
 *     notice.c                         the step at which all ranks save after a notice
 *     service.c                        the context's thread: polls all descriptors, runs the timers
 *     link.c                           the connection to the agent
 *     member.c                         this rank's messages to and from the coordinator
 *     coordinator.c                    rank 0's part: all ranks connect to it, rank 0 included
 *     negotiate.c, restore_coordinator.c   both sides of the negotiation of the checkpoint to restore
 *     store.c                          slots that the agent moves to and from an object store
 *     keep.c                           checkpoints in memory, and the thread that seals them
 *     adopt.c                          moves a shard that came from elsewhere into a slot
 *     dump.c                           a dying checkpoint: survivors write the newest common state
 *     old_world.c                      reads the shards of another world from memory, peers or storage
 *     peer.c                           copies of checkpoints on other machines
 *     load.c                           fills regions from a checkpoint, even one of another world
 *     import.c                         fills regions from a safetensors file
 *     conn, rendezvous, shard, old_share, held, offer, plan, keys, machine, transfer, server, copies, pack,
 *     seal, regions, safetensors, reshard, crc, interval, settings, flight, pace, error:   without a context
 *
 * One mutex covers everything below "state". The service thread holds it except in poll() and in name
 * resolution. Sending never blocks, so callers send under the mutex too, and wake the thread only when a
 * socket did not take all bytes. Every event that a caller may wait for calls job_changed().
 *
 * Failure is sticky: every later call reports the first lost rank (or the fence, which takes precedence)
 * until the process joins the next attempt. The context's thread makes that change between two polls, when no
 * caller waits for anything of the old attempt.
 */
#ifndef PHX_JOB_CONTEXT_H
#define PHX_JOB_CONTEXT_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "job/link/conn.h"
#include "job/checkpoint/delta.h"
#include "job/loop/flight.h"
#include "job/checkpoint/held.h"
#include "job/gang/keys.h"
#include "job/link/machine.h"
#include "job/gang/offer.h"
#include "job/loop/pace.h"
#include "job/checkpoint/pack.h"
#include "job/gang/plan.h"
#include "job/checkpoint/regions.h"
#include "job/gang/rendezvous.h"
#include "job/checkpoint/retention.h"
#include "job/gang/seal.h"
#include "job/link/settings.h"
#include "job/link/wire.h"
#include "phalanx/phalanx.h"

#define JOB_NEVER     INT64_MAX /* as a deadline: none */
#define JOB_SAVED_MAX 16        /* shards that may wait for their commit */

struct job_coordinator;
struct job_restore_coordinator;
struct transfer_server;
struct transfer_self;

/* A caller in phx_kv_put or phx_kv_get, on its stack. */
struct job_call {
    struct job_call *next;
    uint64_t id;
    bool done;
    int status; /* phx_code */
    void *buf;
    size_t cap, len;
};

enum link_state {
    LINK_OFF,        /* stand-alone */
    LINK_DOWN,       /* connects at retry_ns */
    LINK_CONNECTING, /* waits for the socket */
    LINK_JOINING,    /* JOIN sent */
    LINK_READY,      /* WELCOME received */
};

/* How long a connection is kept while its other end owes an answer. The other end may have died, or may be a
 * foreign process. After due_ns the connection is closed and made again, and the next wait is twice as
 * long. */
struct job_patience {
    int64_t due_ns, limit_ns;
};

struct job_link {
    enum link_state state;
    struct job_conn conn;
    int64_t retry_ns, backoff_ns;
    struct job_patience patience; /* CONNECTING, JOINING */
    bool leaving; /* LEAVE has been sent, or will be */
    bool leave_sent;
};

enum member_link_state {
    MEMBER_LINK_OFF,  /* this rank is the coordinator, or the connection has ended */
    MEMBER_LINK_DOWN, /* connects at retry_ns */
    MEMBER_LINK_CONNECTING,
    MEMBER_LINK_CONNECTED, /* the coordinator's nonce is awaited */
    MEMBER_LINK_JOINING,   /* HELLO sent */
    MEMBER_LINK_READY,     /* TABLE received */
};

struct job_member {
    enum member_link_state state;
    struct job_conn conn;
    struct seal in, out; /* from JOINING on */
    int64_t retry_ns, backoff_ns;
    struct job_patience patience; /* CONNECTING, CONNECTED */
};

enum member_state { MEMBER_ABSENT, MEMBER_PRESENT, MEMBER_LEFT, MEMBER_GONE };

struct job_checkpoint_ref {
    bool valid;
    uint64_t step;
    uint32_t attempt;
};

/* The question that rank 0 asked this rank; the thread in phx_join answers it. */
enum job_asked { NEGOTIATE_NOTHING, NEGOTIATE_OFFER, NEGOTIATE_SOURCE, NEGOTIATE_RESHARD, NEGOTIATE_DUMP };

/* Status of RENDEZVOUS_AGREED. */
enum job_agreed {
    AGREED_BROKEN = 0,
    AGREED_FOUND = 1,
    AGREED_NONE = 2,
    AGREED_STORED = 3,
    AGREED_REFUSED = 4
};

/* A shard that a survivor writes for a rank of the whole world. */
struct job_dump_item {
    uint32_t rank;
    struct offer offer;
};
#define DUMP_ITEM_SIZE (4 + OFFER_SIZE)

/* The rank that provides one shard of a checkpoint of another world, and where it has the shard. */
struct job_part {
    uint32_t holder;
    struct offer offer;
};
#define PART_SIZE (4 + OFFER_SIZE)

/* A checkpoint of another world, from whose shards each rank takes the parts that it needs. */
struct job_old_world {
    uint32_t world;         /* 0: the checkpoint is of this world */
    struct job_part *parts; /* [world] */
};

/* The state of the negotiation of the checkpoint that all ranks restore (negotiate.c). */
struct job_negotiation {
    struct job_checkpoint_ref committed; /* the newest commit according to the table of ranks */
    enum job_asked asked;
    uint32_t round; /* counts the sources that rank 0 has named, from 1 */
    struct offer source;
    uint32_t holder;
    struct job_checkpoint_ref older; /* an older checkpoint that all ranks have; never overwritten */
    bool taken;                      /* this rank has the source's shard, whole */
    bool settled;                    /* the negotiation has ended, and ctx->restore is set */
    bool broken;                     /* no checkpoint is whole for every rank; `text` says why */
    char text[240];
    /* A dying checkpoint: what to write, and the bytes that were written. */
    struct job_dump_item *dump;
    size_t dump_count;
    uint64_t dumped;
    uint8_t *data; /* the shard, fetched from another rank or storage, while it has no slot; else NULL */
    int readers;   /* number of calls that are reading `data` */
    struct job_old_world old_world;
};

/* The transition to the next attempt (rejoin.c). */
struct job_rejoin {
    bool told; /* the agent has named an attempt, `to`, which this process has not joined */
    struct jobwire_rejoin to;
    bool due;   /* the context's thread must change to that attempt */
    bool asked; /* this rank has asked for a retry of this attempt, for the reason `why` */
    struct jobwire_retry why;
    uint32_t waiters;              /* threads in job_wait, which must leave before the attempt changes */
    struct rendezvous_name *names; /* of the previous attempt: callers of phx_peer may still read them */
};

/* Copies on another machine (peer.c). */
struct job_peer {
    bool used;      /* this process has sent copies, or will */
    bool looked;    /* `buddy` is known */
    uint32_t buddy; /* the rank that gets the copies; MACHINE_NONE: there is no other machine */
    int sending;    /* the slot to send to the buddy once it is sealed; -1: none */
    bool any;       /* this attempt has sent a copy; the last one is of `step` */
    uint64_t step;
    uint64_t holds; /* number of holds in this attempt; every n-th goes to the buddy */
    bool any_told;  /* for the step `told`, every rank has said whether its copy has arrived */
    uint64_t told;
    bool any_by_all; /* every rank's copy of the step `by_all` has arrived; none newer has */
    uint64_t by_all;
    struct delta_history history; /* copies that the buddy has received in this attempt; `thread` owns it */
    struct pack *pack;            /* NULL: copies are sent uncompressed; `thread` owns it */
    bool unpacked;                /* this attempt cannot compress copies, for the reason in `notice` */
    char notice[200];             /* emptied once it has been reported */
    pthread_t thread;
    bool thread_started;
    atomic_bool stop;
};

/* The step at which all ranks save after one of them has received a notice (notice.c). */
struct job_save_agreement {
    bool running; /* phx_run_steps makes steps, and has made `made` */
    uint64_t made;
    bool asked;  /* this rank has asked rank 0 for a step, or rank 0 has already named one */
    bool open;   /* rank 0 has named the step `at`, and this rank can save at it */
    bool agreed; /* every rank can save at the step `at` */
    uint64_t at;
    /* rank 0 only */
    bool under_way;   /* a step is named, and not every rank has saved at it */
    bool asking;      /* a step is named, and not every rank has answered */
    bool again;       /* a rank that has saved at the step asks for another step */
    bool late;        /* a rank had already passed the named step */
    uint32_t answers; /* ranks that have answered the step named last */
    uint32_t saved;   /* ranks that have saved at it */
    uint64_t most;    /* steps that the furthest rank has made */
    uint64_t margin;  /* how many steps ahead of `most` the step was named */
};

/* The program's function that makes a blocked collective return when the attempt has ended
 * (phx_loop.abort). */
struct job_abort {
    void (*call)(void *job);
    void *job;
    bool due, running;
};

enum keep_state { KEEP_IDLE, KEEP_COPYING, KEEP_COPIED, KEEP_ADOPTING, KEEP_PREPARING };

/* Checkpoints in memory (keep.c). */
struct job_keep {
    bool open;
    struct held held;
    pthread_t thread;
    bool thread_started, stop;
    enum keep_state state;
    int busy;           /* the slot that `state` is about */
    bool prepared;      /* the slot of the next hold has its memory already */
    int newest, before; /* the two slots sealed last in this attempt; -1: none */
    bool any;           /* this attempt has held the step `step`, or has tried to */
    uint64_t step, key;
    size_t len;
    int storing; /* the slot that the storing thread writes once it is sealed; -1: none */
    uint64_t store_step;
    pthread_t store_thread;
    bool store_thread_started;
    pthread_t adopt_thread;
    bool adopt_thread_started;
    pthread_t delete_thread;
    bool delete_thread_started, delete_due;
    bool any_told; /* for the step `told`, every rank has said whether it holds it */
    uint64_t told;
    bool any_by_all; /* every rank of this attempt holds the step `by_all`, and none newer */
    uint64_t by_all;
    uint32_t by_all_count; /* how many steps of this attempt every rank has held */
    bool swept;            /* slots of ranks that have left this machine are deleted */
    struct job_peer peer;
    struct phx_error failure; /* code not 0: sealing or storing failed, which no call has returned yet */
};

/* A transfer that the agent was asked to make. The request is repeated after each reconnect until it is
 * answered. */
struct job_move {
    bool asked, answered;
    struct jobwire_slot slot;
    struct jobwire_moved answer;
};
enum job_move_kind { JOB_MOVE_STORE, JOB_MOVE_FETCH, JOB_MOVE_KINDS };

struct phx_context {
    /* Set before the thread starts or before join returns, and constant within an attempt, as are rank,
     * world, full_world, host and port of the settings. */
    struct job_settings settings;
    uint32_t attempt;
    struct job_checkpoint_ref restore; /* equal on all ranks */
    struct rendezvous_name *names;     /* [world] */
    struct machine machine;
    struct transfer_server *server; /* NULL: this rank has no folder in memory to serve */
    pthread_t server_thread;
    bool server_started;
    int wake_fd, failure_fd;
    pthread_t thread;
    bool thread_started;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* ---- state ---- */
    bool stop;     /* the thread must end */
    bool welcomed; /* the agent has answered, or the program stands alone */
    bool keyed;    /* `key` is this attempt's; other ranks are not contacted before */
    uint8_t key[SEAL_KEY_SIZE];
    bool met;      /* the gang is whole */
    int join_code; /* the error with which joining failed; 0: none */
    char join_text[200];
    struct job_link link;
    struct job_member member;
    struct job_coordinator *coordinator; /* rank 0 only */
    uint8_t *members;                    /* [world] enum member_state, as far as this rank knows */

    bool dumping; /* this attempt writes a dying checkpoint, and nothing else */
    struct job_negotiation negotiation;
    struct job_restore_coordinator *restore_coordinator; /* rank 0 only */
    struct keys keys;                                    /* keys of all ranks that are known */
    bool keys_saved; /* this rank or a neighbour has saved them in the folder in memory */

    int failure; /* 0, PHX_ERROR_PEER, PHX_ERROR_REJOIN, PHX_ERROR_FENCED */
    struct job_rejoin rejoin;
    uint32_t lost_rank, left_rank;
    bool any_left;
    bool leaving; /* in phx_leave: the end of a connection is not a loss */

    uint64_t barrier_arrived, barrier_released;
    uint64_t barrier_left; /* a call for it timed out: the next call waits for it again; 0: none */
    struct job_flight flight;
    struct job_call *calls;
    uint64_t next_call;

    struct jobwire_step step;
    bool step_known, step_dirty, step_timer;
    bool from_known; /* step.first is settled: the attempt resumed from the step before it */
    int64_t step_sent_ns;
    struct job_pace pace;

    struct jobwire_shard_saved saved[JOB_SAVED_MAX]; /* not yet known to be committed, oldest first */
    size_t saved_count;
    struct job_checkpoint_ref last;      /* the newest that this rank has saved */
    struct job_checkpoint_ref committed; /* the newest commit */
    struct retention retention;          /* the committed checkpoints that are kept */
    uint64_t deleted_before;             /* this rank's shards of lower steps are deleted */

    struct job_keep keep;
    struct job_move moves[JOB_MOVE_KINDS];
    struct job_regions regions;
    struct job_save_agreement save_agreement;
    struct job_abort abort;

    bool drain;
    uint32_t drain_reason;
    int64_t drain_deadline_ns;
    struct jobwire_tables tables; /* number 0: none yet */
    struct jobwire_routes routes; /* of this rank's chips; session 0: no session was opened */
};

/* ---- service.c ---- */

int64_t job_now_ns(void); /* monotonic */

/* Returns the monotonic time at which a timeout ends; JOB_NEVER for a negative one. */
int64_t job_deadline_ns(int64_t timeout_ms);

void *job_service(void *ctx); /* the main function of the context's thread */
/* Starts one of the context's threads unless *started. The thread blocks all signals; its owner joins it. */
int job_thread_start(struct phx_context *ctx, void *(*serve)(void *ctx), pthread_t *thread, bool *started,
                     struct phx_error *error);
void job_wake(struct phx_context *ctx);    /* makes the context's thread leave poll() */
void job_changed(struct phx_context *ctx); /* wakes all callers in job_wait; mutex held */

/* Waits for the next change. Returns false if the deadline has passed. Mutex held; released while it waits.
 * The caller must check job_failure afterwards, because the attempt may have changed. */
bool job_wait(struct phx_context *ctx, int64_t deadline_ns);
/* As job_wait, for threads that a change of the attempt does not wait for. */
bool job_wait_apart(struct phx_context *ctx, int64_t deadline_ns);

/* Returns 0, or the sticky failure with its description in *error. Mutex held. */
int job_failure(const struct phx_context *ctx, struct phx_error *error);

/* Records the loss of a rank: sets the sticky failure, and reports the loss to the agent and, on rank 0, to
 * the other ranks. Does nothing for a rank that has left. Mutex held, as for all below but job_abort_set. */
void job_lose(struct phx_context *ctx, uint32_t rank);
/* Sets PHX_ERROR_FENCED as the sticky failure. */
void job_fence(struct phx_context *ctx);
/* Sets PHX_ERROR_REJOIN as the sticky failure, unless another one is set: the membership changes. */
void job_end_attempt(struct phx_context *ctx);
/* Sets the function that the context's thread calls once for each failure, including the present one. NULL:
 * none; the previous function no longer runs when this returns. Takes the mutex. Must not be called from
 * within that function. */
void job_abort_set(struct phx_context *ctx, void (*call)(void *job), void *job);
/* Makes joining fail with this error; the first one counts. */
void job_join_failed(struct phx_context *ctx, int code, const char *text);
/* Records a commit; older ones than the newest known are ignored. */
void job_committed(struct phx_context *ctx, uint64_t step, uint32_t attempt);

/* Doubles a back-off up to its limit and returns the time of the next try. */
int64_t job_backoff(int64_t *backoff_ns);
void job_patience_begin(struct job_patience *patience); /* call it when an answer is owed */
void job_patience_end(struct job_patience *patience);   /* call it when the answer has arrived */

/* ---- join.c ---- */

/* Waits until the gang is whole and has agreed on the checkpoint. Returns 0 or the failure. */
int job_wait_for_gang(struct phx_context *ctx, int64_t deadline_ns, struct phx_error *error);
/* Lists the checkpoints that this rank finds for its attempt in storage and in memory. */
int job_take_stock(struct phx_context *ctx, struct phx_error *error);

/* ---- rejoin.c ---- */

/* Takes the agent's order to join another attempt. Mutex held. */
void job_rejoin_told(struct phx_context *ctx, const struct jobwire_rejoin *rejoin);
/* Changes to the attempt that the agent has named. For the context's thread; mutex held. */
void job_rejoin_change(struct phx_context *ctx);
/* Waits until the deadline for the agent's order, and joins the attempt that it names. The gang must then be
 * whole within join_ms; negative: by the deadline. Without the mutex. */
int job_rejoin(struct phx_context *ctx, int64_t deadline_ns, int64_t join_ms, struct phx_error *error);

/* Repeats to the agent what phx_retry asked for. Mutex held. */
void job_rejoin_ask(struct phx_context *ctx);

/* ---- notice.c: mutex held ---- */

void job_save_agreement_notice(struct phx_context *ctx); /* this rank has a notice, or begins to make steps */
void job_save_agreement_asked(struct phx_context *ctx);  /* rank 0: a member has a notice */
/* Rank 0: takes a member's answer to the named step. */
void job_save_agreement_answered(struct phx_context *ctx, const struct rendezvous_message *message);
/* Takes rank 0's message that names a step, or that confirms the named step for all ranks. */
void job_save_agreement_told(struct phx_context *ctx, const struct rendezvous_message *message);
/* Called after `made` steps. *ret_save: all ranks save at this step. Waits while the step is being agreed.
 * Returns 0 or the failure. */
int job_save_agreement_step(struct phx_context *ctx, uint64_t made, bool *ret_save, struct phx_error *error);

/* ---- link.c ----
 *
 * The context's thread calls four functions of each connection around poll(): _events returns the events to
 * poll for, _ready handles the events that have occurred, _timer returns the monotonic time at which _tick is
 * due (JOB_NEVER: none). In this section and the next two the mutex is held, or no other thread runs. */

void job_link_start(struct phx_context *ctx); /* initialises the link, which then connects by its timer */
void job_link_stop(struct phx_context *ctx);  /* closes the connection */
short job_link_events(const struct phx_context *ctx);
void job_link_ready(struct phx_context *ctx, short events);
int64_t job_link_timer(const struct phx_context *ctx);
void job_link_tick(struct phx_context *ctx, int64_t now_ns);
void job_link_join(struct phx_context *ctx); /* sends JOIN for a new attempt */
void job_link_step(struct phx_context *ctx); /* sends ctx->step, now or with the next heartbeat */
/* calls.c: records that the attempt resumes from `step`. Takes the mutex. */
void job_step_from(struct phx_context *ctx, uint64_t step);
/* Sends a message if the agent has answered JOIN; otherwise drops it (WELCOME repeats what matters). */
void job_link_send(struct phx_context *ctx, const struct jobwire_message *message);
void job_link_leave(struct phx_context *ctx); /* sends the last step and LEAVE */
/* slice.c: reports which tables this rank's chips have loaded, if a session of them was ever opened. */
void job_routes_say(struct phx_context *ctx);
bool job_link_drained(const struct phx_context *ctx); /* the kernel has taken everything, LEAVE included */

/* ---- member.c ---- */

void job_member_start(struct phx_context *ctx);
void job_member_stop(struct phx_context *ctx);
void job_member_give_up(struct phx_context *ctx); /* tells rank 0 that the end of the connection is no loss */
short job_member_events(const struct phx_context *ctx);
void job_member_ready(struct phx_context *ctx, short events);
int64_t job_member_timer(const struct phx_context *ctx);
void job_member_tick(struct phx_context *ctx, int64_t now_ns);

/* Sends a message to the coordinator: by the connection, or by a call on rank 0. */
void job_member_send(struct phx_context *ctx, const struct rendezvous_message *message);

/* Takes a message from the coordinator: from the connection, or by a call on rank 0. */
void job_member_receive(struct phx_context *ctx, const struct rendezvous_message *message);

/* Resolves the rendezvous. Mutex held; released in the meantime. The caller frees the result (freeaddrinfo).
 * Returns NULL if it cannot be resolved now. */
struct addrinfo *job_resolve(struct phx_context *ctx);

/* ---- coordinator.c ---- */

/* Makes the coordinator of this attempt, which context.coordinator owns. Returns 0 or PHX_ERROR_MEMORY. */
int job_coordinator_new(struct phx_context *ctx, struct phx_error *error);
void job_coordinator_free(struct phx_context *ctx);
/* Fills in the descriptors to poll, and returns their number, job_coordinator_poll_size; 0 without a
 * coordinator. */
size_t job_coordinator_poll_size(const struct phx_context *ctx);
size_t job_coordinator_poll_fill(const struct phx_context *ctx, struct pollfd *fds);
void job_coordinator_ready(struct phx_context *ctx, const struct pollfd *fds, size_t count);
int64_t job_coordinator_timer(const struct phx_context *ctx);
void job_coordinator_tick(struct phx_context *ctx, int64_t now_ns);
/* Takes a message of a member. */
void job_coordinator_receive(struct phx_context *ctx, uint32_t rank,
                             const struct rendezvous_message *message);
/* Send a message to all members, rank 0 included, or to one. _announce sends a type and a rank alone. */
void job_coordinator_announce(struct phx_context *ctx, uint16_t type, uint32_t rank);
void job_coordinator_broadcast(struct phx_context *ctx, const struct rendezvous_message *message);
void job_coordinator_send(struct phx_context *ctx, uint32_t rank, const struct rendezvous_message *message);
bool job_coordinator_alone(const struct phx_context *ctx); /* no other member is connected */
/* Writes the numbers of the ranks that have not joined into `text`; returns false if all have. */
bool job_coordinator_missing(const struct phx_context *ctx, char *text, size_t cap);

/* ---- keep.c ---- */

/* Opens the slots of the rank's folder; later calls do nothing. Needs ctx->attempt. `make`: as in held.h.
 * Mutex held, or no other thread runs yet. */
int job_keep_open(struct phx_context *ctx, bool make, struct phx_error *error);
/* Returns the slot that holds the checkpoint; -1: no slot here does. */
int job_keep_find(const struct phx_context *ctx, const struct job_checkpoint_ref *ref);
/* Records that every rank holds `step` (by_all), or that at least one could not. Mutex held. */
void job_keep_told(struct phx_context *ctx, uint64_t step, bool by_all);
/* Ends the threads; open slots stay open. Without the mutex. */
void job_keep_rest(struct phx_context *ctx);
/* Begins a new attempt, after job_keep_rest and when ctx has its settings. Slots stay mapped if the rank is
 * the same. */
void job_keep_renew(struct phx_context *ctx);
/* Ends the threads and closes all slots. `discard` also deletes them, and this rank's share of the folder's
 * other files. Without the mutex. */
void job_keep_stop(struct phx_context *ctx, bool discard);
/* Holds the parts, of regions with this key (0: bytes), as `step`. `where`: PHX_IN_STORAGE and PHX_IN_PEER
 * name the tiers to which the slot is then sent. Without the mutex. */
int job_keep_hold(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
                  uint64_t key, unsigned where, struct phx_error *error);
/* After the end of an attempt: holds the parts, unless the rank already holds `step` or a newer one. Tells no
 * other rank. Never overwrites a checkpoint that the gang may need. The next negotiation finds the slot
 * (negotiate.c). Ends the threads of this attempt. Without the mutex. */
int job_keep_rescue(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
                    uint64_t key, struct phx_error *error);
/* Waits until the newest held checkpoint is in storage too. Without the mutex. */
int job_keep_stored(struct phx_context *ctx, struct phx_error *error);
/* Waits until nothing is being sealed, stored or sent to a peer, or the attempt fails. Mutex held. */
void job_keep_finish(struct phx_context *ctx);

/* ---- retain.c ---- */

/* After a commit: has a thread delete the checkpoints that are no longer kept. Mutex held. */
void job_retain(struct phx_context *ctx);

/* ---- store.c: settings.store ---- */

/* Has the agent copy a sealed slot to the object store, waits, and reports the shard as saved. Without the
 * mutex. */
int job_store_put(struct phx_context *ctx, int slot, uint64_t step, struct phx_error *error);
/* Has the agent copy the shard from the store into a slot, which then holds it. Returns PHX_ERROR_CORRUPT if
 * the shard is missing or damaged, PHX_ERROR_IO if the store cannot be reached. Without the mutex; for the
 * thread in phx_join. */
int job_store_fetch(struct phx_context *ctx, const struct job_checkpoint_ref *ref, struct phx_error *error);
/* For a checkpoint of another world: has the agent copy this rank's share of its shards (the old ranks that
 * are equal to this rank modulo this world) into the machine's folder. *ret_offers receives those shards, not
 * verified; the caller frees them. Returns 0 with a message that names their world; PHX_ERROR_CORRUPT: the
 * checkpoint is of this world, and a part is missing. Without the mutex; for the thread in phx_join. */
int job_store_share(struct phx_context *ctx, const struct job_checkpoint_ref *ref, struct offer **ret_offers,
                    size_t *ret_count, struct phx_error *error);
/* Takes the agent's answer. Mutex held. */
void job_store_moved(struct phx_context *ctx, enum job_move_kind kind, const struct jobwire_moved *moved);
/* Repeats the unanswered requests on a new connection to the agent. Mutex held. */
void job_store_again(struct phx_context *ctx);

/* ---- adopt.c: mutex held ---- */

/* Fetches the shard from its holder into a slot that has memory for it and does not hold `older`; without
 * such a slot, into negotiation.data. Without the mutex. */
int job_adopt_fetch(struct phx_context *ctx, const struct offer *offer, uint32_t holder,
                    const struct job_checkpoint_ref *older, struct phx_error *error);
/* After the gang has agreed: moves negotiation.data into a slot, in a thread. */
void job_adopt_start(struct phx_context *ctx);
/* Counts the callers that read negotiation.data without the mutex: `change` is 1 before, -1 afterwards. */
void job_adopt_read(struct phx_context *ctx, int change);

/* ---- peer.c: mutex held, but for start and stop ---- */

/* Serves this rank's folder in memory to the ranks of other machines, for the life of the context. */
int job_serve_start(struct phx_context *ctx, struct phx_error *error);
void job_serve_stop(struct phx_context *ctx);
/* Names this rank to the server of another rank, and to its own clients, in this attempt. */
struct transfer_self job_transfer_self(const struct phx_context *ctx);
/* Fills in this rank's machine, rack, address and port. */
void job_own_place(const struct phx_context *ctx, struct rendezvous_name *name);
bool job_peer_exists(struct phx_context *ctx);                        /* another machine can keep copies */
int job_peer_start(struct phx_context *ctx, struct phx_error *error); /* the thread that sends */
void job_peer_stop(struct phx_context *ctx);
/* Reports that this rank's copy of `step` has arrived at its peer (there), or never will. */
void job_peer_done(struct phx_context *ctx, uint64_t step, bool there);
/* Records that every rank's copy of `step` has arrived (by_all), or that at least one has not. */
void job_peer_told(struct phx_context *ctx, uint64_t step, bool by_all);

/* ---- checkpoint.c ---- */

/* Records a durable shard and reports it until it is committed. Mutex held. */
void job_saved(struct phx_context *ctx, uint64_t step, uint64_t bytes);

/* Returns 0 if this rank may save `step` now. Mutex held. */
int job_save_check(struct phx_context *ctx, uint64_t step, struct phx_error *error);
/* Writes a sealed slot of this attempt to storage as it is, and reports it. Without the mutex. */
int job_save_slot(struct phx_context *ctx, uint64_t step, const struct held_slot *slot,
                  struct phx_error *error);

/* ---- load.c ---- */

struct shard_id;
/* Fills the registered regions from this rank's shard: `len` bytes at `held`, or, if `held` is NULL, the
 * file in storage that `id` names. If the shard has other parts than the regions, reads the checkpoint's
 * other shards too: those that the gang's ranks hold if the gang has agreed on that checkpoint, otherwise
 * (ctx may be NULL) those in storage. Without the mutex. */
int job_load(struct phx_context *ctx, const struct job_regions *regions, const uint8_t *held, size_t len,
             const struct shard_id *id, struct phx_error *error);

/* ---- negotiate.c: mutex held ---- */

/* Returns true if `ref` is older than `than`. Both must be valid. */
bool job_ref_older(const struct job_checkpoint_ref *ref, const struct job_checkpoint_ref *than);
/* Begins the negotiation when the table of ranks arrives. `committed`: the newest commit. */
void job_negotiate_start(struct phx_context *ctx, struct job_checkpoint_ref committed);
/* Resets the negotiation to its state before the table, for another attempt or the end. ctx->restore
 * stays. */
void job_negotiate_reset(struct phx_context *ctx);
/* Returns an array [world] of numbers that are equal for ranks of one machine; the caller frees it. Returns
 * NULL if there is no memory. */
uint64_t *job_list_machines(const struct phx_context *ctx);
/* Writes the value of a RENDEZVOUS_SOURCE message, by which rank 0 names a source; returns its length. */
#define SOURCE_SIZE_MAX (OFFER_SIZE + 12)
size_t job_negotiate_put_source(const struct offer *offer, const struct plan_choice *choice,
                                uint8_t ret_bytes[SOURCE_SIZE_MAX]);
void job_negotiate_answer(struct phx_context *ctx); /* reads a shard; the mutex is released meanwhile */
/* Fetches the whole data of an offer in memory from its holder. Without the mutex. */
int job_negotiate_fetch(struct phx_context *ctx, const struct offer *offer, uint32_t holder, uint8_t *to,
                        struct phx_error *error);
/* Takes rank 0's messages of the negotiation: SOURCE, RESHARD, DUMP, AGREED. */
void job_negotiate_told(struct phx_context *ctx, const struct rendezvous_message *message);
/* The keys of all ranks (keys.h). */
void job_keys_told_own(struct phx_context *ctx); /* sends this rank's key to the coordinator */
void job_keys_asked(struct phx_context *ctx);    /* sends all keys that this rank knows to the coordinator */
void job_keys_told(struct phx_context *ctx,
                   const struct rendezvous_message *message); /* takes all keys from the coordinator */

/* ---- old_world.c ---- */

/* Takes the list of shards from rank 0's message. Mutex held. */
void job_old_world_told(struct phx_context *ctx, const struct rendezvous_message *message);
/* Verifies the shards that this rank provides, and answers rank 0. Mutex held; released while it reads. */
void job_old_world_answer(struct phx_context *ctx);
void job_old_world_drop(struct job_old_world *old_world);
size_t job_old_world_put(const struct job_part *part, uint8_t ret_bytes[PART_SIZE]);
/* Returns true if the shard of the other world's rank is on another machine or in storage. */
bool job_old_world_far(const struct phx_context *ctx, uint32_t rank);
/* Reads the first bytes of the shard's data, at most `cap`, not verified; *ret_len is the length of all
 * data. Call this and the next two functions without the mutex, after the negotiation. */
int job_old_world_front(struct phx_context *ctx, uint32_t rank, uint8_t *buf, size_t cap, size_t *ret_got,
                        uint64_t *ret_len, struct phx_error *error);
int job_old_world_length(struct phx_context *ctx, uint32_t rank, size_t *ret_len, struct phx_error *error);
/* Reads all data, verified; `len` is the length that job_old_world_length returned. */
int job_old_world_read(struct phx_context *ctx, uint32_t rank, uint8_t *buf, size_t len,
                       struct phx_error *error);

/* ---- dump.c: mutex held ---- */

void job_dump_put(const struct job_dump_item *item, uint8_t ret_bytes[DUMP_ITEM_SIZE]);
/* Takes from rank 0 the list of shards that this rank must write. Returns false if the list is invalid:
 * joining has then failed. */
bool job_dump_told(struct phx_context *ctx, const struct rendezvous_message *message);
void job_dump_answer(struct phx_context *ctx); /* writes the shards; the mutex is released meanwhile */
/* Ends a dying checkpoint. Returns PHX_ERROR_REJOIN if the checkpoint was written and reported (the process
 * then waits for its end), PHX_ERROR_NONE with the reason if not. */
int job_dump_end(struct phx_context *ctx, struct phx_error *error);

/* ---- restore_coordinator.c: rank 0; mutex held ---- */

bool job_restore_coordinator_start(struct phx_context *ctx); /* returns false if there is no memory */
void job_restore_coordinator_stop(struct phx_context *ctx);
/* Take a rank's messages: OFFERS, KEYS, ANSWER. */
void job_restore_coordinator_offers(struct phx_context *ctx, uint32_t rank,
                                    const struct rendezvous_message *message);
void job_restore_coordinator_keys(struct phx_context *ctx, uint32_t rank,
                                  const struct rendezvous_message *message);
void job_restore_coordinator_answer(struct phx_context *ctx, uint32_t rank,
                                    const struct rendezvous_message *message);
/* Takes the key of the regions that a rank has registered. */
void job_restore_coordinator_key(struct phx_context *ctx, uint32_t rank, uint64_t key);

#endif
