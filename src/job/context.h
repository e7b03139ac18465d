/* context.h - the inside of a phx_context, and who does what in the library.
 *
 *     calls.c, checkpoint.c, join.c    the public functions, in the caller's thread
 *     rejoin.c                         from one attempt to the next within the process
 *     steps.c                          the loop that does all of it, with the public functions
 *     auto.c                           the steps at which it keeps the state, where nobody has set them
 *     notice.c                         the step at which all ranks save after a notice
 *     service.c                        the context's thread: polls all descriptors, runs the timers
 *     link.c                           the connection to the agent
 *     spoke.c                          this rank's side of the star: its messages to and from the hub
 *     hub.c                            rank 0's other side: the meeting point of all ranks, itself included
 *     agree.c, council.c               both sides of the question which checkpoint the gang restores
 *     store.c                          slots that the agent moves to and from an object store
 *     keep.c                           checkpoints in memory, and the thread that seals them
 *     adopt.c                          a shard that came from elsewhere gets its slot
 *     dump.c                           a dying checkpoint: survivors write what all had
 *     cut.c                            the shards that another world has kept, wherever they lie
 *     peer.c                           copies of what is held on other machines
 *     load.c                           regions from a checkpoint, also one that was cut otherwise
 *     import.c                         regions from a file of other programs
 *     conn, star, shard, recut, held, offer, plan, keys, machine, transfer, server, copies, pack, regions,
 *     safetensors, reshard, crc, interval, settings, flight, pace, error:   without a context
 *
 * One mutex covers everything below "state". The service thread holds it except in poll() and in name
 * resolution. Sending never blocks, so callers send under the mutex too, and wake the thread only when a
 * socket didn't take all. Whatever a caller may wait for ends with job_changed().
 *
 * Failure is sticky: the first lost rank (or the fence, which beats it) is what every later call reports,
 * until the process goes on under the next attempt. That change is made by the context's thread between two
 * polls, when nobody waits for anything of the old attempt any more.
 */
#ifndef PHX_JOB_CONTEXT_H
#define PHX_JOB_CONTEXT_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "job/conn.h"
#include "job/delta.h"
#include "job/flight.h"
#include "job/held.h"
#include "job/keys.h"
#include "job/machine.h"
#include "job/offer.h"
#include "job/pace.h"
#include "job/pack.h"
#include "job/plan.h"
#include "job/regions.h"
#include "job/retention.h"
#include "job/settings.h"
#include "job/star.h"
#include "job/wire.h"
#include "phalanx/phalanx.h"

#define JOB_NEVER     INT64_MAX /* a time that doesn't come */
#define JOB_SAVED_MAX 16        /* shards that may wait for their commit */

struct job_hub;
struct job_council;
struct transfer_server;

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

struct job_link {
    enum link_state state;
    struct job_conn conn;
    int64_t retry_ns, backoff_ns;
    bool leaving; /* LEAVE is to be sent, or was */
    bool leave_sent;
};

enum spoke_state {
    SPOKE_OFF,  /* this rank is the hub, or the gang is over */
    SPOKE_DOWN, /* connects at retry_ns */
    SPOKE_CONNECTING,
    SPOKE_JOINING, /* HELLO sent */
    SPOKE_READY,   /* TABLE received */
};

struct job_spoke {
    enum spoke_state state;
    struct job_conn conn;
    int64_t retry_ns, backoff_ns;
};

enum member_state { MEMBER_ABSENT, MEMBER_PRESENT, MEMBER_LEFT, MEMBER_GONE };

struct job_checkpoint_ref {
    bool valid;
    uint64_t step;
    uint32_t attempt;
};

/* What rank 0 asks this rank; the thread in phx_join answers. */
enum job_asked { AGREE_NOTHING, AGREE_OFFER, AGREE_SOURCE, AGREE_CUT, AGREE_DUMP };

/* Status of STAR_AGREED. */
enum job_agreed {
    AGREED_BROKEN = 0,
    AGREED_FOUND = 1,
    AGREED_NONE = 2,
    AGREED_STORED = 3,
    AGREED_REFUSED = 4
};

/* A shard that a survivor writes: of this rank of the whole world. */
struct job_dump_item {
    uint32_t rank;
    struct offer offer;
};
#define DUMP_ITEM_SIZE (4 + OFFER_SIZE)

/* Who gives the shard of one rank of another world, and from where. */
struct job_part {
    uint32_t holder;
    struct offer offer;
};
#define PART_SIZE (4 + OFFER_SIZE)

/* The checkpoint is of another world, and each rank takes what it needs from its shards. */
struct job_cut {
    uint32_t world;         /* 0: there is none */
    struct job_part *parts; /* [world] */
};

/* Which checkpoint all ranks restore (agree.c). */
struct job_agreement {
    struct job_checkpoint_ref committed; /* the newest commit, as the table says */
    enum job_asked asked;
    uint32_t round; /* of the source, from 1 */
    struct offer source;
    uint32_t holder;
    struct job_checkpoint_ref older; /* what all can go back to without the source's; never overwritten */
    bool taken;   /* the source's shard is here, whole */
    bool settled; /* constant from here on; ctx->restore is set */
    bool broken;  /* no checkpoint is whole for every rank; the text says what is wrong */
    char text[240];
    /* A dying checkpoint: what to write, and the bytes that were written. */
    struct job_dump_item *dump;
    size_t dump_count;
    uint64_t dumped;
    uint8_t *data; /* a shard from elsewhere that has no slot yet; NULL: it has, or is there itself */
    int readers;   /* of it, at the moment */
    struct job_cut cut;
};

/* The way to the next attempt (rejoin.c). */
struct job_rejoin {
    bool told; /* by the agent, and not gone there yet: */
    struct jobwire_rejoin to;
    bool due;                /* the context's thread is to make the change */
    bool asked;              /* by this rank, of this attempt: */
    struct jobwire_retry why;
    uint32_t waiters;        /* threads in job_wait: they have to leave before anything changes */
    struct star_name *names; /* of the attempt before: callers of phx_peer may still read them */
};

/* Copies on another machine (peer.c). */
struct job_peer {
    bool used; /* this process has sent copies, or is told to */
    bool looked;
    uint32_t buddy; /* MACHINE_NONE: there is no other machine */
    int sending;    /* slot that goes to the buddy once it is sealed; -1: none */
    bool any;       /* this attempt has sent something, last: */
    uint64_t step;
    uint64_t holds; /* of this attempt, for every n-th */
    bool any_told;  /* all ranks have said of this step whether their copy is there: */
    uint64_t told;
    bool any_by_all; /* every rank's is, newest: */
    uint64_t by_all;
    struct delta_history history; /* of the thread, of what the buddy has got in this attempt */
    struct pack *pack;            /* of the thread; NULL: copies are not packed */
    bool unpacked;                /* they can't be, in this attempt; why, until somebody was told: */
    char notice[200];
    pthread_t thread;
    bool thread_started;
    atomic_bool stop;
};

/* The step at which all ranks save, after a notice that one of them got (notice.c). */
struct job_pact {
    bool running; /* phx_run_steps makes steps: */
    uint64_t made;
    bool asked;        /* rank 0 knows of the notice that stands, or a named step answers it */
    bool open, agreed; /* a step is named; every rank can still save at it */
    uint64_t at;
    /* rank 0 */
    bool under_way;        /* a step is named, and not every rank has saved at it; asking: nor is it agreed */
    bool asking, again;    /* again: somebody who has saved at it asks for another one */
    bool late;             /* a rank was past it */
    uint32_t answers;      /* to the step named last */
    uint32_t saved;        /* ranks that have saved at it */
    uint64_t most, margin; /* steps that the furthest rank has made; how far ahead of it the step was */
};

/* What makes a blocked collective return when the attempt is over (phx_loop.abort). */
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
    int busy;           /* slot of the state */
    bool prepared;      /* since the last hold: the next one finds its memory made */
    int newest, before; /* slots that were sealed last in this attempt; -1: none */
    bool any;           /* this attempt has held something, or could not, last: */
    uint64_t step, key;
    size_t len;
    /* A slot that is being written to storage, -1: none; its thread writes when the slot is sealed. */
    int storing;
    uint64_t store_step;
    pthread_t store_thread;
    bool store_thread_started;
    pthread_t adopt_thread;
    bool adopt_thread_started;
    pthread_t delete_thread;
    bool delete_thread_started, delete_due;
    bool any_told; /* all ranks have said of this step whether they hold it: */
    uint64_t told;
    bool any_by_all; /* every rank of this attempt has sealed, newest: */
    uint64_t by_all;
    uint32_t by_all_count; /* of this attempt */
    bool swept;            /* what ranks that are no more here have left is gone */
    struct job_peer peer;
    struct phx_error failure; /* code not 0: sealing or storing failed, nobody was told yet */
};

/* What the agent was asked to move; once more after each reconnect, until it has answered. */
struct job_move {
    bool asked, answered;
    struct jobwire_slot slot;
    struct jobwire_moved answer;
};
enum job_move_kind { JOB_MOVE_STORE, JOB_MOVE_FETCH, JOB_MOVE_KINDS };

struct phx_context {
    /* set before the thread starts or before join returns, constant within an attempt; rank, world,
     * full_world, host and port of the settings, too */
    struct job_settings settings;
    uint32_t attempt;
    struct job_checkpoint_ref restore; /* the same on all ranks */
    struct star_name *names;           /* [world] */
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
    bool stop;          /* the thread ends */
    bool welcomed, met; /* by the agent (or stand-alone); by the gang */
    int join_code;      /* joining failed: why */
    char join_text[200];
    struct job_link link;
    struct job_spoke spoke;
    struct job_hub *hub; /* rank 0 only */
    uint8_t *members;    /* [world] enum member_state, as far as this rank knows */

    bool dumping; /* this attempt writes a dying checkpoint, and nothing else */
    struct job_agreement agreement;
    struct job_council *council; /* rank 0 only */
    struct keys keys;            /* of all ranks, as far as known */
    bool keys_saved;             /* in the folder in memory, by this rank or a neighbour */

    int failure; /* 0, PHX_ERROR_PEER, PHX_ERROR_REJOIN, PHX_ERROR_FENCED */
    struct job_rejoin rejoin;
    uint32_t lost_rank, left_rank;
    bool any_left;
    bool leaving; /* in phx_leave: an end of the star is no loss */

    uint64_t barrier_arrived, barrier_released;
    struct job_flight flight;
    struct job_call *calls;
    uint64_t next_call;

    struct jobwire_step step;
    bool step_known, step_dirty, step_timer;
    int64_t step_sent_ns;
    struct job_pace pace;

    struct jobwire_shard_saved saved[JOB_SAVED_MAX]; /* not yet known to be committed, oldest first */
    size_t saved_count;
    struct job_checkpoint_ref last, committed; /* newest saved here; newest committed */
    struct retention retention;                /* what is kept of what was committed */
    uint64_t deleted_before;                   /* shards of lower steps are gone already */

    struct job_keep keep;
    struct job_move moves[JOB_MOVE_KINDS];
    struct job_regions regions;
    struct job_pact pact;
    struct job_abort abort;

    bool drain;
    uint32_t drain_reason;
    int64_t drain_deadline_ns;
};

/* ---- service.c ---- */

int64_t job_now_ns(void); /* monotonic */

/* The time at which a timeout ends; JOB_NEVER for a negative one. */
int64_t job_deadline_ns(int64_t timeout_ms);

void *job_service(void *ctx); /* the thread */
/* Starts one of the context's threads unless *started; it blocks all signals. Its owner joins it. */
int job_thread_start(struct phx_context *ctx, void *(*serve)(void *ctx), pthread_t *thread, bool *started,
                     struct phx_error *error);
void job_wake(struct phx_context *ctx);
void job_changed(struct phx_context *ctx);

/* Waits, with the mutex held, for the next change; false when the deadline is over. Who calls it looks for
 * job_failure then: the attempt may have changed behind it otherwise. */
bool job_wait(struct phx_context *ctx, int64_t deadline_ns);
/* The same for who changes the attempt. */
bool job_wait_apart(struct phx_context *ctx, int64_t deadline_ns);

/* 0, or the sticky failure described in *error. Mutex held. */
int job_failure(const struct phx_context *ctx, struct phx_error *error);

/* A rank is lost: sticky failure, evidence to the agent. Mutex held, as for all below. */
void job_lose(struct phx_context *ctx, uint32_t rank);
void job_fence(struct phx_context *ctx);
/* The membership changes: sticky failure of a process that can go on. */
void job_end_attempt(struct phx_context *ctx);
/* From here on, and for a failure that stands, the context's thread calls it once; NULL: no more, and it
 * doesn't run. Not from within it. */
void job_abort_set(struct phx_context *ctx, void (*call)(void *job), void *job);
void job_join_failed(struct phx_context *ctx, int code, const char *text);
void job_committed(struct phx_context *ctx, uint64_t step, uint32_t attempt);

/* Doubles a back-off up to its limit and returns the time of the next try. */
int64_t job_backoff(int64_t *backoff_ns);

/* ---- join.c ---- */

/* Waits until the gang is whole and has agreed on the checkpoint. 0 or what came in between. */
int job_wait_for_gang(struct phx_context *ctx, int64_t deadline_ns, struct phx_error *error);
/* What this rank finds for its attempt on storage and in memory. */
int job_take_stock(struct phx_context *ctx, struct phx_error *error);

/* ---- rejoin.c ---- */

/* The agent's word; mutex held. */
void job_rejoin_told(struct phx_context *ctx, const struct jobwire_rejoin *rejoin);
/* By the context's thread, mutex held: makes the change that is due. */
void job_rejoin_change(struct phx_context *ctx);
/* Waits for the agent's word until the deadline, and goes where it says: there the gang has join_ms to come
 * together, negative: until the deadline too. Without the mutex. */
int job_rejoin(struct phx_context *ctx, int64_t deadline_ns, int64_t join_ms, struct phx_error *error);

/* To the agent, once more: what phx_retry asked for. Mutex held. */
void job_rejoin_ask(struct phx_context *ctx);

/* ---- notice.c: mutex held ---- */

void job_pact_notice(struct phx_context *ctx); /* this rank has got one, or begins to make steps */
void job_pact_asked(struct phx_context *ctx);  /* rank 0: by a member */
void job_pact_answered(struct phx_context *ctx, const struct star_message *message); /* rank 0 */
void job_pact_told(struct phx_context *ctx, const struct star_message *message);
/* So many steps are made: is this the one at which all save? Waits while that is being found out; 0 or the
 * failure. */
int job_pact_step(struct phx_context *ctx, uint64_t made, bool *ret_save, struct phx_error *error);

/* ---- link.c ---- */

void job_link_start(struct phx_context *ctx);
void job_link_stop(struct phx_context *ctx);
short job_link_events(const struct phx_context *ctx);
void job_link_ready(struct phx_context *ctx, short events); /* poll said so */
int64_t job_link_timer(const struct phx_context *ctx);      /* when job_link_tick has something to do */
void job_link_tick(struct phx_context *ctx, int64_t now_ns);
void job_link_join(struct phx_context *ctx); /* JOIN again: the attempt is another one */
void job_link_step(struct phx_context *ctx); /* a new step is in ctx->step */
void job_link_send(struct phx_context *ctx, const struct jobwire_message *message);
void job_link_leave(struct phx_context *ctx);
bool job_link_drained(const struct phx_context *ctx); /* everything, LEAVE included, is with the kernel */

/* ---- spoke.c ---- */

void job_spoke_start(struct phx_context *ctx);
void job_spoke_stop(struct phx_context *ctx);
void job_spoke_give_up(struct phx_context *ctx); /* tells the other side that the end is no loss */
short job_spoke_events(const struct phx_context *ctx);
void job_spoke_ready(struct phx_context *ctx, short events);
int64_t job_spoke_timer(const struct phx_context *ctx);
void job_spoke_tick(struct phx_context *ctx, int64_t now_ns);

/* To the hub, by its connection or directly on rank 0. */
void job_spoke_send(struct phx_context *ctx, const struct star_message *message);

/* From the hub, likewise. */
void job_spoke_receive(struct phx_context *ctx, const struct star_message *message);

/* Resolves the rendezvous; with the mutex held, which it gives up meanwhile. NULL: not now. */
struct addrinfo *job_resolve(struct phx_context *ctx);

/* ---- hub.c ---- */

int job_hub_new(struct phx_context *ctx, struct phx_error *error);
void job_hub_free(struct phx_context *ctx);
size_t job_hub_poll_size(const struct phx_context *ctx);
size_t job_hub_poll_fill(const struct phx_context *ctx, struct pollfd *fds);
void job_hub_ready(struct phx_context *ctx, const struct pollfd *fds, size_t count);
int64_t job_hub_timer(const struct phx_context *ctx);
void job_hub_tick(struct phx_context *ctx, int64_t now_ns);
void job_hub_receive(struct phx_context *ctx, uint32_t rank, const struct star_message *message);
void job_hub_announce(struct phx_context *ctx, uint16_t type, uint32_t rank); /* to all members */
void job_hub_broadcast(struct phx_context *ctx, const struct star_message *message);
void job_hub_send(struct phx_context *ctx, uint32_t rank, const struct star_message *message);
bool job_hub_alone(const struct phx_context *ctx); /* no other member is connected */
bool job_hub_missing(const struct phx_context *ctx, char *text, size_t cap); /* who hasn't joined */

/* ---- keep.c ---- */

/* Looks at what the rank's folder holds, once; later calls do nothing. Needs ctx->attempt. `make`: as in
 * held.h. Mutex held, or nobody else there yet. */
int job_keep_open(struct phx_context *ctx, bool make, struct phx_error *error);
/* Its slot; -1: it is not held here. */
int job_keep_find(const struct phx_context *ctx, const struct job_checkpoint_ref *ref);
/* Every rank holds it, or at least one could not; mutex held. */
void job_keep_told(struct phx_context *ctx, uint64_t step, bool by_all);
/* The threads end; what is open stays so. Without the mutex. */
void job_keep_rest(struct phx_context *ctx);
/* After it, and when settings and attempt are the new ones: begins anew; what is mapped stays so where the
 * rank does. */
void job_keep_renew(struct phx_context *ctx);
/* Rests and closes. Without the mutex. */
void job_keep_stop(struct phx_context *ctx, bool discard);
/* Holds these parts, of regions with this key (0: bytes), as `step`; `where`: PHX_IN_STORAGE and PHX_IN_PEER
 * say where they go on to from there. Without the mutex. */
int job_keep_hold(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
                  uint64_t key, unsigned where, struct phx_error *error);
/* The attempt is over: holds these parts where nothing as new is held, and tells nobody; what is sure stays.
 * The next agreement finds it (agree.c). The threads of this attempt end. Without the mutex. */
int job_keep_rescue(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
                    uint64_t key, struct phx_error *error);
/* Waits until what was held last is in storage too; without the mutex. */
int job_keep_stored(struct phx_context *ctx, struct phx_error *error);
void job_keep_finish(struct phx_context *ctx); /* waits until nothing is under way; mutex held */

/* ---- retain.c ---- */

/* After a commit: has a thread delete what is not kept any more. Mutex held. */
void job_retain(struct phx_context *ctx);

/* ---- store.c: settings.store ---- */

/* Has the agent store a sealed slot, waits, and reports it. Without the mutex. */
int job_store_put(struct phx_context *ctx, int slot, uint64_t step, struct phx_error *error);
/* Has the agent bring the shard into a slot, which then holds it. PHX_ERROR_CORRUPT: it is missing or
 * damaged; PHX_ERROR_IO: the store can't be reached. Without the mutex; for the thread in phx_join. */
int job_store_fetch(struct phx_context *ctx, const struct job_checkpoint_ref *ref, struct phx_error *error);
/* Where the shard in the store is no shard of this world: brings this rank's share of what another world has
 * saved (the old ranks that are its own modulo this world) into its machine's folder. *ret_offers: they are,
 * not verified; the caller's. 0 with a message that says whose they are; PHX_ERROR_CORRUPT: it is of this
 * world after all, and a part is missing. Without the mutex; for the thread in phx_join. */
int job_store_share(struct phx_context *ctx, const struct job_checkpoint_ref *ref, struct offer **ret_offers,
                    size_t *ret_count, struct phx_error *error);
/* Mutex held: the agent's answer; a new connection to it. */
void job_store_moved(struct phx_context *ctx, enum job_move_kind kind, const struct jobwire_moved *moved);
void job_store_again(struct phx_context *ctx);

/* ---- adopt.c: mutex held ---- */

/* Gets the shard from its holder: into a slot that has memory for it and does not hold `older`, else into
 * agreement.data. Without the mutex. */
int job_adopt_fetch(struct phx_context *ctx, const struct offer *offer, uint32_t holder,
                    const struct job_checkpoint_ref *older, struct phx_error *error);
/* When the gang has agreed: agreement.data gets a slot, by and by. */
void job_adopt_start(struct phx_context *ctx);
/* 1: somebody reads agreement.data from here on without the mutex; -1: no more. */
void job_adopt_read(struct phx_context *ctx, int change);

/* ---- peer.c: mutex held, but for start and stop ---- */

/* Serves this rank's folder in memory to the ranks of other machines, for the life of the context. */
int job_serve_start(struct phx_context *ctx, struct phx_error *error);
void job_serve_stop(struct phx_context *ctx);
/* Fills in where this rank is and what it serves. */
void job_own_place(const struct phx_context *ctx, struct star_name *name);
bool job_peer_exists(struct phx_context *ctx);                        /* there is another machine */
int job_peer_start(struct phx_context *ctx, struct phx_error *error); /* the thread that sends */
void job_peer_stop(struct phx_context *ctx);
/* The copy of `step` is there, or never will be. */
void job_peer_done(struct phx_context *ctx, uint64_t step, bool there);
/* Every rank's copy is there, or at least one's is not. */
void job_peer_told(struct phx_context *ctx, uint64_t step, bool by_all);

/* ---- checkpoint.c ---- */

/* It is durable: to be reported until it is committed. Mutex held. */
void job_saved(struct phx_context *ctx, uint64_t step, uint64_t bytes);

/* May this rank save `step` now? Mutex held. */
int job_save_check(struct phx_context *ctx, uint64_t step, struct phx_error *error);
/* Writes a sealed slot of this attempt to storage as it is, and reports it. Without the mutex. */
int job_save_slot(struct phx_context *ctx, uint64_t step, const struct held_slot *slot,
                  struct phx_error *error);

/* ---- load.c ---- */

struct shard_id;
/* Fills the registered regions from the shard that this rank was given, `len` bytes of data in memory (NULL:
 * it is in storage, as `id` says), and, where that is of other parts, from the others of its checkpoint: with
 * `ctx`, where the gang has agreed on that, from those that its ranks hold, else (ctx may be NULL) from
 * storage. Without the mutex. */
int job_load(struct phx_context *ctx, const struct job_regions *regions, const uint8_t *held, size_t len,
             const struct shard_id *id, struct phx_error *error);

/* ---- agree.c: mutex held ---- */

/* Both are valid. */
bool job_ref_older(const struct job_checkpoint_ref *ref, const struct job_checkpoint_ref *than);
/* From the table; committed: the newest commit. */
void job_agree_start(struct phx_context *ctx, struct job_checkpoint_ref committed);
/* Back to before the table, for another attempt or the end. What was restored to lies in ctx->restore. */
void job_agree_reset(struct phx_context *ctx);
/* [world] equal for ranks of one machine; the caller's. NULL: no memory. */
uint64_t *job_list_machines(const struct phx_context *ctx);
/* What rank 0 says of a source (STAR_SOURCE): the bytes of its value. */
#define SOURCE_SIZE_MAX (OFFER_SIZE + 12)
size_t job_agree_put_source(const struct offer *offer, const struct plan_choice *choice,
                            uint8_t ret_bytes[SOURCE_SIZE_MAX]);
void job_agree_answer(struct phx_context *ctx); /* reads a shard, without the mutex meanwhile */
/* The data of an offer in memory, whole, from its holder. Without the mutex. */
int job_agree_fetch(struct phx_context *ctx, const struct offer *offer, uint32_t holder, uint8_t *to,
                    struct phx_error *error);
void job_agree_told(struct phx_context *ctx, const struct star_message *message);
/* The keys of all ranks (keys.h): this rank's own to the hub, all to the hub, all from the hub. */
void job_keys_told_own(struct phx_context *ctx);
void job_keys_asked(struct phx_context *ctx);
void job_keys_told(struct phx_context *ctx, const struct star_message *message);

/* ---- cut.c ---- */

/* Which shards there are; mutex held. */
void job_cut_told(struct phx_context *ctx, const struct star_message *message);
/* Are those that this rank gives whole? Mutex held, but not meanwhile. */
void job_cut_answer(struct phx_context *ctx);
void job_cut_drop(struct job_cut *cut);
size_t job_cut_put(const struct job_part *part, uint8_t ret_bytes[PART_SIZE]);
/* Is the old rank's shard on another machine, or in storage? */
bool job_cut_far(const struct phx_context *ctx, uint32_t rank);
/* The first bytes of the shard's data, at most `cap`, not verified; *ret_len: of all of it. Both without the
 * mutex, after the agreement. */
int job_cut_front(struct phx_context *ctx, uint32_t rank, uint8_t *buf, size_t cap, size_t *ret_got,
                  uint64_t *ret_len, struct phx_error *error);
int job_cut_length(struct phx_context *ctx, uint32_t rank, size_t *ret_len, struct phx_error *error);
/* All of it, verified; `len` as job_cut_length has said. */
int job_cut_read(struct phx_context *ctx, uint32_t rank, uint8_t *buf, size_t len, struct phx_error *error);

/* ---- dump.c: mutex held ---- */

void job_dump_put(const struct job_dump_item *item, uint8_t ret_bytes[DUMP_ITEM_SIZE]);
/* What this rank writes; false: the list is invalid, and joining has failed. */
bool job_dump_told(struct phx_context *ctx, const struct star_message *message);
void job_dump_answer(struct phx_context *ctx); /* writes it, without the mutex meanwhile */
/* All is agreed: reports it (PHX_ERROR_REJOIN: there is nothing to go on with), or says why nothing was
 * written (PHX_ERROR_NONE). */
int job_dump_end(struct phx_context *ctx, struct phx_error *error);

/* ---- council.c: rank 0; mutex held ---- */

bool job_council_start(struct phx_context *ctx); /* false: no memory */
void job_council_stop(struct phx_context *ctx);
void job_council_offers(struct phx_context *ctx, uint32_t rank, const struct star_message *message);
void job_council_keys(struct phx_context *ctx, uint32_t rank, const struct star_message *message);
void job_council_answer(struct phx_context *ctx, uint32_t rank, const struct star_message *message);
void job_council_key(struct phx_context *ctx, uint32_t rank, uint64_t key);

#endif
