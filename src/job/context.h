/* context.h - the inside of a phx_context, and who does what in the library.
 *
 *     calls.c, checkpoint.c, join.c    the public functions, in the caller's thread
 *     service.c                        the context's thread: polls all descriptors, runs the timers
 *     link.c                           the connection to the agent
 *     spoke.c                          this rank's side of the star: its messages to and from the hub
 *     hub.c                            rank 0's other side: the meeting point of all ranks, itself included
 *     agree.c                          both sides of the question which checkpoint the gang restores
 *     keep.c                           checkpoints in memory, and the thread that seals them
 *     conn, star, shard, held, crc, settings, flight, pace, error: without a context
 *
 * One mutex covers everything below "state". The service thread holds it except in poll() and in name
 * resolution. Sending never blocks, so callers send under the mutex too, and wake the thread only when a
 * socket didn't take all. Whatever a caller may wait for ends with job_changed().
 *
 * Failure is sticky: the first lost rank (or the fence, which beats it) is what every later call reports.
 */
#ifndef PHX_JOB_CONTEXT_H
#define PHX_JOB_CONTEXT_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "job/conn.h"
#include "job/flight.h"
#include "job/held.h"
#include "job/pace.h"
#include "job/regions.h"
#include "job/settings.h"
#include "job/star.h"
#include "job/wire.h"
#include "phalanx/phalanx.h"

#define JOB_NEVER     INT64_MAX /* a time that doesn't come */
#define JOB_SAVED_MAX 16        /* shards that may wait for their commit */

struct job_hub;

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

/* Which checkpoint all ranks restore (agree.c). */
struct job_agreement {
    struct job_checkpoint_ref proposal;
    uint32_t round; /* of the proposal, from 1 */
    bool asked;     /* it waits for this rank's answer, which the thread in phx_join gives */
    bool settled;   /* constant from here on; ctx->restore is set */
    bool broken;    /* no checkpoint is whole on every rank; the text says what is wrong */
    char text[240];
    /* rank 0: the answers to the proposal */
    uint32_t *answered; /* [world] the last round that each has answered */
    uint32_t answers, culprit;
    bool refused, exhausted;        /* somebody can't read it; somebody knows nothing older */
    struct job_checkpoint_ref next; /* the oldest that was named */
};

enum keep_state { KEEP_IDLE, KEEP_COPYING, KEEP_COPIED };

/* Checkpoints in memory (keep.c). */
struct job_keep {
    bool open;
    struct held held;
    pthread_t thread;
    bool thread_started, stop;
    enum keep_state state;
    int busy;           /* slot of the state */
    int newest, before; /* slots that were sealed last in this attempt; -1: none */
    bool any;           /* this attempt has held something, or could not, last: */
    uint64_t step;
    size_t len;
    /* A slot that is being written to storage, -1: none; its thread writes when the slot is sealed. */
    int storing;
    uint64_t store_step;
    size_t store_len;
    pthread_t store_thread;
    bool store_thread_started;
    bool any_told; /* all ranks have said of this step whether they hold it: */
    uint64_t told;
    bool any_by_all; /* every rank of this attempt has sealed, newest: */
    uint64_t by_all;
    struct phx_error failure; /* code not 0: sealing or storing failed, nobody was told yet */
};

struct phx_context {
    /* set before the thread starts or before join returns, constant after that */
    struct job_settings settings;
    uint32_t attempt;
    struct job_checkpoint_ref restore; /* the same on all ranks */
    struct star_name *names;           /* [world] */
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

    struct job_agreement agreement;

    int failure; /* 0, PHX_ERROR_PEER, PHX_ERROR_FENCED */
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
    struct job_checkpoint_ref last, committed, before; /* last saved here; last two committed */
    uint64_t deleted_before;                           /* shards of lower steps are gone already */

    struct job_keep keep;
    struct job_regions regions;

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

/* Waits, with the mutex held, for the next change; false when the deadline is over. */
bool job_wait(struct phx_context *ctx, int64_t deadline_ns);

/* 0, or the sticky failure described in *error. Mutex held. */
int job_failure(const struct phx_context *ctx, struct phx_error *error);

/* A rank is lost: sticky failure, evidence to the agent. Mutex held, as for all below. */
void job_lose(struct phx_context *ctx, uint32_t rank);
void job_fence(struct phx_context *ctx);
void job_join_failed(struct phx_context *ctx, int code, const char *text);
void job_committed(struct phx_context *ctx, uint64_t step, uint32_t attempt);

/* Doubles a back-off up to its limit and returns the time of the next try. */
int64_t job_backoff(int64_t *backoff_ns);

/* ---- link.c ---- */

void job_link_start(struct phx_context *ctx);
void job_link_stop(struct phx_context *ctx);
short job_link_events(const struct phx_context *ctx);
void job_link_ready(struct phx_context *ctx, short events); /* poll said so */
int64_t job_link_timer(const struct phx_context *ctx);      /* when job_link_tick has something to do */
void job_link_tick(struct phx_context *ctx, int64_t now_ns);
void job_link_step(struct phx_context *ctx); /* a new step is in ctx->step */
void job_link_send(struct phx_context *ctx, const struct jobwire_message *message);
void job_link_leave(struct phx_context *ctx);
bool job_link_drained(const struct phx_context *ctx); /* everything, LEAVE included, is with the kernel */

/* ---- spoke.c ---- */

void job_spoke_start(struct phx_context *ctx);
void job_spoke_stop(struct phx_context *ctx);
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
bool job_hub_alone(const struct phx_context *ctx); /* no other member is connected */
bool job_hub_missing(const struct phx_context *ctx, char *text, size_t cap); /* who hasn't joined */

/* ---- keep.c ---- */

/* Looks at what the rank's folder holds, once; later calls do nothing. Needs ctx->attempt. `make`: as in
 * held.h. Mutex held, or nobody else there yet. */
int job_keep_open(struct phx_context *ctx, bool make, struct phx_error *error);
/* False: nothing is held. */
bool job_keep_newest(const struct phx_context *ctx, struct job_checkpoint_ref *ret_ref);
/* Its slot; -1: it is not held here. */
int job_keep_find(const struct phx_context *ctx, const struct job_checkpoint_ref *ref);
/* Every rank holds it, or at least one could not; mutex held. */
void job_keep_told(struct phx_context *ctx, uint64_t step, bool by_all);
void job_keep_stop(struct phx_context *ctx, bool discard); /* without the mutex */
/* Holds these parts as `step`; with `store` they are written to storage from there. Without the mutex. */
int job_keep_hold(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count, bool store,
                  struct phx_error *error);
void job_keep_finish(struct phx_context *ctx); /* waits until nothing is under way; mutex held */

/* ---- checkpoint.c ---- */

/* May this rank save `step` now? Mutex held. */
int job_save_check(struct phx_context *ctx, uint64_t step, struct phx_error *error);
/* Writes it and reports it. Without the mutex. */
int job_save(struct phx_context *ctx, uint64_t step, const struct iovec *parts, size_t count,
             struct phx_error *error);

/* ---- agree.c: mutex held ---- */

/* Both are valid. */
bool job_ref_older(const struct job_checkpoint_ref *ref, const struct job_checkpoint_ref *than);
void job_agree_start(struct phx_context *ctx, struct job_checkpoint_ref proposal); /* from the table */
void job_agree_stop(struct phx_context *ctx);
void job_agree_answer(struct phx_context *ctx); /* reads a shard, without the mutex meanwhile */
void job_agree_receive(struct phx_context *ctx, uint32_t rank, const struct star_message *message);
void job_agree_told(struct phx_context *ctx, const struct star_message *message);

#endif
