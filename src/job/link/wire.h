/* wire.h - the protocol between a task (libphalanx) and the agent of its machine. Both sides include this
 * header.
 *
 * Transport: a stream socket of the Unix family, at the path in PHX_AGENT_SOCKET. The task connects, sends
 * JOIN as its first frame and receives WELCOME or FENCED. Then each side sends whenever it has a message;
 * only STORE and FETCH are answered. A task may hold one connection. It connects and sends JOIN again after
 * the agent was restarted.
 *
 * Frame (all integers little-endian):
 *     u32 length     of the payload alone, at most JOBWIRE_PAYLOAD_MAX
 *     u16 type       enum jobwire_type
 *     u16 version    JOBWIRE_VERSION of the sender
 *     payload
 * A payload is its fields in the order of the struct below, without padding; a bool is a u8 of 0 or 1; a
 * double is its IEEE 754 bits as u64; a name is u8 length and that many bytes (1..JOBWIRE_NAME_MAX - 1,
 * printable ASCII). A stream is valid if and only if each frame's length is within the limit and each frame
 * of a known type decodes.
 *
 * Versions: a later version may append fields to a payload and may add types. A decoder therefore ignores
 * bytes after the fields that it knows, and a receiver ignores a frame of an unknown type (jobwire_decode
 * returns 1 for it too).
 *
 * Fencing: JOIN names the attempt. An agent that knows a newer attempt of the task, or no such task, answers
 * FENCED; it may send FENCED at any later time. A fenced task cannot save checkpoints and ends. The agent
 * accepts reports of a connection only for the attempt of its JOIN.
 *
 * Evidence: each container has a socket of its own, and the agent accepts connections only from that task's
 * processes (host/agent/sockets.c). If JOIN names another task, the agent ends the connection. In a pid
 * namespace `pid` differs from the peer credentials of the socket, so a difference is not an error.
 *
 * Header-only and without state: any thread may call anything here.
 */
#ifndef PHX_JOB_LINK_WIRE_H
#define PHX_JOB_LINK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JOBWIRE_VERSION     1
#define JOBWIRE_HEADER_SIZE 8
#define JOBWIRE_PAYLOAD_MAX 4096 /* more than any message of this version needs, for later versions */
#define JOBWIRE_FRAME_MAX   1024 /* the largest frame that jobwire_encode of this version makes */
#define JOBWIRE_METRICS_MAX 16
#define JOBWIRE_NAME_MAX    32 /* with the NUL */

#define JOBWIRE_REASON_MAX     200 /* with the NUL */
#define JOBWIRE_KEY_SIZE       32
#define JOBWIRE_RENDEZVOUS_MAX 272 /* with the NUL: a host name, a colon, a port */

enum jobwire_type {
    /* task -> agent */
    JOBWIRE_JOIN = 1,
    JOBWIRE_STEP = 2,
    JOBWIRE_SHARD_SAVED = 3,
    JOBWIRE_PEER_GONE = 4,
    JOBWIRE_LEAVE = 5,
    JOBWIRE_STORE = 6,
    JOBWIRE_FETCH = 7,
    JOBWIRE_RETRY = 8,
    JOBWIRE_ROUTES = 9,
    /* agent -> task */
    JOBWIRE_WELCOME = 64,
    JOBWIRE_FENCED = 65,
    JOBWIRE_CHECKPOINT_COMMITTED = 66,
    JOBWIRE_DRAIN = 67,
    JOBWIRE_REJOIN = 68,
    JOBWIRE_STORED = 69,
    JOBWIRE_FETCHED = 70,
    JOBWIRE_TABLES = 71,
};

enum jobwire_join_flags {
    JOBWIRE_JOIN_CAN_REJOIN = 1, /* the process can join a later attempt */
    JOBWIRE_JOIN_SPARE = 2,      /* a spare: without a rank (rank and world are 0), waits for its REJOIN */
};

/* Sent as the first frame of a connection, and again for each attempt that the process joins. The pid is the
 * task's own view of it. */
struct jobwire_join {
    uint64_t task_uid; /* PHX_TASK_UID */
    uint32_t attempt;  /* PHX_ATTEMPT, or that of the last REJOIN */
    uint32_t rank;
    uint32_t world;
    uint32_t pid;
    uint32_t flags; /* enum jobwire_join_flags; absent in frames of the first version: 0 */
};

struct jobwire_metric {
    char name[JOBWIRE_NAME_MAX];
    double value; /* any double; NaN means that the metric itself is not a number */
};

/* Sums since the first step of this process, after a step's metrics: the number of steps whose time is known,
 * that time, and the rank's own work within it. */
struct jobwire_pace {
    uint64_t steps, elapsed_us, own_us;
};

/* Heartbeat: `step` steps of the job are done. At most about 20 a second; the first after JOIN and the last
 * before LEAVE are always sent. Steps can fall (a restart from a checkpoint). total is 0 until the program
 * sets it. */
struct jobwire_step {
    uint64_t step;
    uint64_t total;
    uint64_t first;        /* first step of this attempt: one above the step that the rank resumed from */
    uint16_t metric_count; /* <= JOBWIRE_METRICS_MAX */
    struct jobwire_metric metrics[JOBWIRE_METRICS_MAX];
    struct jobwire_pace pace; /* absent in frames of the first version: zeros */
};

/* The rank's shard of `step` is durable in PHX_CHECKPOINT_DIR under this attempt's name. Sent again after a
 * reconnect until the task knows that the step is committed. The controller commits the step when every rank
 * of the attempt has reported it. */
struct jobwire_shard_saved {
    uint64_t step;
    uint64_t bytes; /* of the file */
};

/* Evidence, not a verdict: the connection to the peer broke without a goodbye. Sent once per connection and
 * rank. */
struct jobwire_peer_gone {
    uint32_t rank;
};

/* The rank's state is bad although every process lives: asks that all ranks return to a held step, as another
 * attempt (REJOIN). Sent again after a reconnect until the REJOIN arrives. */
struct jobwire_retry {
    char reason[JOBWIRE_REASON_MAX]; /* printable ASCII; on the wire u16 length and the bytes */
};

/* The routing tables of the job's slice that this rank's chips use. Session numbers of a rank grow, even
 * across its processes: CLOCK_BOOTTIME at the opening, in ns. A newly opened session has no tables; the rank
 * waits for TABLES with its session before it loads any. Sent at each change, and after a reconnect if it was
 * ever sent. */
struct jobwire_routes {
    uint64_t session; /* never 0 */
    bool open;        /* false: the chips have no tables any longer */
    uint64_t tables;  /* number of the tables that the chips have loaded; 0: none yet */
    uint64_t without; /* optical switches that these tables avoid: bit 16 * axis + index */
    uint64_t wrong;   /* switches over which the chips see other chips than they should; the same bits */
};

/* Answer to JOIN. restore_step and restore_attempt name the newest committed checkpoint; both name the
 * shard's file. */
struct jobwire_welcome {
    uint32_t attempt;
    bool has_restore;
    uint64_t restore_step;    /* 0 without has_restore */
    uint32_t restore_attempt; /* 0 without has_restore */
    /* The key by which the ranks of the attempt authenticate each other (seal.h); absent in frames of the
     * first version, and zeros if the controller makes none. */
    uint8_t key[JOBWIRE_KEY_SIZE];
};

struct jobwire_fenced {
    uint32_t attempt; /* the attempt that is valid now */
};

struct jobwire_checkpoint_committed {
    uint64_t step;
    uint32_t attempt; /* the attempt whose shards make up the checkpoint */
};

enum jobwire_drain_reason {
    JOBWIRE_DRAIN_MAINTENANCE = 1,
    JOBWIRE_DRAIN_PREEMPTION = 2,
    JOBWIRE_DRAIN_FAULT = 3,
    JOBWIRE_DRAIN_MOVE = 4,
};

/* The task will be stopped: save what matters. May be sent again with another deadline. */
struct jobwire_drain {
    uint64_t deadline_ms; /* time left when the message was sent */
    uint32_t reason;      /* enum jobwire_drain_reason; unknown values are kept as they are */
};

/* The routing tables of the job's slice. Equal names mean equal tables on all ranks. Tables with a larger
 * number replace those with a smaller one. */
struct jobwire_tables {
    uint64_t number;               /* never 0 */
    char name[JOBWIRE_REASON_MAX]; /* "4x4x8-twisted without x5" */
    uint64_t session;              /* the newest open session that the controller knows; 0, or absent: none */
};

enum jobwire_rejoin_flags {
    JOBWIRE_REJOIN_DUMP = 1, /* the ranks only write a dying checkpoint to storage */
};

/* Orders the process to become this rank of a later attempt: it leaves its peers and sends JOIN with the new
 * attempt. Only for a process whose JOIN had CAN_REJOIN or SPARE. May be repeated; the process ignores an
 * attempt that is not above its own (a spare: that is below its own). */
struct jobwire_rejoin {
    uint32_t attempt, rank, world;
    uint32_t full_world; /* ranks of the job when no machine is missing; >= world */
    uint32_t flags;      /* enum jobwire_rejoin_flags */
    bool has_restore;
    uint64_t restore_step;    /* 0 without has_restore */
    uint32_t restore_attempt; /* 0 without has_restore */
    /* host:port of rank 0, printable ASCII without blanks; on the wire u16 length and the bytes. May be empty
     * in a world of one. */
    char rendezvous[JOBWIRE_RENDEZVOUS_MAX];
    uint8_t key[JOBWIRE_KEY_SIZE]; /* as in WELCOME, of `attempt` */
};

/* With an object store (PHX_CHECKPOINT_STORE) the agent copies shards between the store and the rank's slots
 * in PHX_MEMORY_DIR (job/checkpoint/held.h), so the library only handles files.
 *     STORE   copies the sealed slot to the store as the shard (step, attempt) of this rank. The task leaves
 *             the slot unchanged until STORED.
 *     FETCH   copies the shard (step, attempt) of this rank from the store into the slot, sealed; or, with
 *             copy_of, the shard of another rank into the file of its copy (job/gang/offer.h), which the task
 *             has made. The task does not read the slot until FETCHED.
 * Each request is answered once. The task repeats an unanswered request after a reconnect, and a restarted
 * agent resumes the transfer where its predecessor stopped. One STORE and one FETCH at a time. */
struct jobwire_slot {
    uint64_t step;
    uint32_t attempt, slot;
    uint32_t copy_of; /* FETCH: 0, or 1 + the rank of the shard; absent in frames of the first version */
};

enum jobwire_moved_status {
    JOBWIRE_MOVED = 0,
    JOBWIRE_MOVE_FAILED = 1,  /* for the given reason; unknown values mean this too */
    JOBWIRE_MOVE_MISSING = 2, /* FETCH: there is no such shard */
    JOBWIRE_MOVE_DAMAGED = 3, /* the checksums of the shard are wrong */
};

/* The answer to the request with the same numbers. After STORED the shard is durable, and the task reports it
 * with SHARD_SAVED. */
struct jobwire_moved {
    uint64_t step;
    uint32_t attempt, slot;
    uint32_t status;                 /* enum jobwire_moved_status */
    uint64_t bytes;                  /* of the shard */
    char reason[JOBWIRE_REASON_MAX]; /* printable ASCII; on the wire u16 length and the bytes */
    uint32_t copy_of;                /* absent in frames of the first version, whose sender cannot do it */
};

/* A message in either direction. LEAVE has no body: the task ends cleanly after it. */
struct jobwire_message {
    uint16_t type; /* enum jobwire_type, or a later one */
    union {
        struct jobwire_join join;
        struct jobwire_step step;
        struct jobwire_shard_saved shard_saved;
        struct jobwire_peer_gone peer_gone;
        struct jobwire_retry retry;
        struct jobwire_routes routes;
        struct jobwire_welcome welcome;
        struct jobwire_fenced fenced;
        struct jobwire_checkpoint_committed committed;
        struct jobwire_drain drain;
        struct jobwire_rejoin rejoin;
        struct jobwire_tables tables;
        struct jobwire_slot slot;   /* STORE, FETCH */
        struct jobwire_moved moved; /* STORED, FETCHED */
    };
};

/* ---- cursors: past the end they set `full` or `broken` and do nothing, so a codec checks once ---- */

struct jobwire_writer {
    uint8_t *data;
    size_t len, cap;
    bool full;
};

struct jobwire_reader {
    const uint8_t *data;
    size_t pos, len;
    bool broken;
};

static inline void jobwire_put_bytes(struct jobwire_writer *writer, const void *bytes, size_t len)
{
    if (writer->full || len > writer->cap - writer->len) {
        writer->full = true;
        return;
    }
    if (len > 0)
        memcpy(writer->data + writer->len, bytes, len);
    writer->len += len;
}

/* Appends the `size` low bytes of the value, the lowest first. */
static inline void jobwire_put(struct jobwire_writer *writer, uint64_t value, size_t size)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    jobwire_put_bytes(writer, bytes, size);
}

/* Returns the next `len` bytes, or NULL past the end. */
static inline const uint8_t *jobwire_get_bytes(struct jobwire_reader *reader, size_t len)
{
    if (reader->broken || len > reader->len - reader->pos) {
        reader->broken = true;
        return NULL;
    }
    const uint8_t *bytes = reader->data + reader->pos;
    reader->pos += len;
    return bytes;
}

/* Returns the next number of `size` bytes, or 0 past the end. */
static inline uint64_t jobwire_get(struct jobwire_reader *reader, size_t size)
{
    const uint8_t *bytes = jobwire_get_bytes(reader, size);
    uint64_t value = 0;
    for (size_t i = 0; bytes != NULL && i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* ---- bodies ---- */

static inline bool jobwire_name_valid(const uint8_t *name, size_t len)
{
    if (len == 0 || len >= JOBWIRE_NAME_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (name[i] <= ' ' || name[i] > '~')
            return false;
    return true;
}

static inline void jobwire_put_step(struct jobwire_writer *writer, const struct jobwire_step *step)
{
    jobwire_put(writer, step->step, 8);
    jobwire_put(writer, step->total, 8);
    jobwire_put(writer, step->first, 8);
    jobwire_put(writer, step->metric_count, 2);
    if (step->metric_count > JOBWIRE_METRICS_MAX)
        writer->full = true;
    for (size_t i = 0; i < step->metric_count && !writer->full; i++) {
        const struct jobwire_metric *metric = &step->metrics[i];
        size_t len = strnlen(metric->name, JOBWIRE_NAME_MAX);
        if (!jobwire_name_valid((const uint8_t *)metric->name, len))
            writer->full = true;
        uint64_t bits;
        memcpy(&bits, &metric->value, sizeof bits);
        jobwire_put(writer, len, 1);
        jobwire_put_bytes(writer, metric->name, len);
        jobwire_put(writer, bits, 8);
    }
    jobwire_put(writer, step->pace.steps, 8);
    jobwire_put(writer, step->pace.elapsed_us, 8);
    jobwire_put(writer, step->pace.own_us, 8);
}

static inline void jobwire_get_step(struct jobwire_reader *reader, struct jobwire_step *ret_step)
{
    ret_step->step = jobwire_get(reader, 8);
    ret_step->total = jobwire_get(reader, 8);
    ret_step->first = jobwire_get(reader, 8);
    ret_step->metric_count = (uint16_t)jobwire_get(reader, 2);
    if (ret_step->metric_count > JOBWIRE_METRICS_MAX)
        reader->broken = true;
    for (size_t i = 0; i < ret_step->metric_count && !reader->broken; i++) {
        struct jobwire_metric *metric = &ret_step->metrics[i];
        size_t len = (size_t)jobwire_get(reader, 1);
        const uint8_t *name = jobwire_get_bytes(reader, len);
        uint64_t bits = jobwire_get(reader, 8);
        if (name == NULL || reader->broken || !jobwire_name_valid(name, len)) {
            reader->broken = true;
            return;
        }
        memcpy(metric->name, name, len);
        metric->name[len] = '\0';
        memcpy(&metric->value, &bits, sizeof bits);
    }
    if (reader->broken || reader->pos == reader->len)
        return;
    ret_step->pace.steps = jobwire_get(reader, 8);
    ret_step->pace.elapsed_us = jobwire_get(reader, 8);
    ret_step->pace.own_us = jobwire_get(reader, 8);
}

static inline bool jobwire_get_bool(struct jobwire_reader *reader)
{
    uint64_t value = jobwire_get(reader, 1);
    if (value > 1)
        reader->broken = true;
    return value == 1;
}

static inline bool jobwire_rendezvous_valid(const uint8_t *text, size_t len)
{
    if (len >= JOBWIRE_RENDEZVOUS_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return true;
}

static inline void jobwire_put_rejoin(struct jobwire_writer *writer, const struct jobwire_rejoin *rejoin)
{
    size_t len = strnlen(rejoin->rendezvous, JOBWIRE_RENDEZVOUS_MAX);
    jobwire_put(writer, rejoin->attempt, 4);
    jobwire_put(writer, rejoin->rank, 4);
    jobwire_put(writer, rejoin->world, 4);
    jobwire_put(writer, rejoin->full_world, 4);
    jobwire_put(writer, rejoin->flags, 4);
    jobwire_put(writer, rejoin->has_restore, 1);
    jobwire_put(writer, rejoin->restore_step, 8);
    jobwire_put(writer, rejoin->restore_attempt, 4);
    jobwire_put(writer, len, 2);
    if (!jobwire_rendezvous_valid((const uint8_t *)rejoin->rendezvous, len))
        writer->full = true;
    jobwire_put_bytes(writer, rejoin->rendezvous, len);
    jobwire_put_bytes(writer, rejoin->key, JOBWIRE_KEY_SIZE);
}

/* The key ends a payload; an agent of the first version sends none. */
static inline void jobwire_get_key(struct jobwire_reader *reader, uint8_t ret_key[JOBWIRE_KEY_SIZE])
{
    const uint8_t *key = NULL;
    if (!reader->broken && reader->pos < reader->len)
        key = jobwire_get_bytes(reader, JOBWIRE_KEY_SIZE);
    if (key != NULL)
        memcpy(ret_key, key, JOBWIRE_KEY_SIZE);
}

/* Reads a REJOIN. A rank outside its world makes the message invalid. */
static inline void jobwire_get_rejoin(struct jobwire_reader *reader, struct jobwire_rejoin *ret_rejoin)
{
    ret_rejoin->attempt = (uint32_t)jobwire_get(reader, 4);
    ret_rejoin->rank = (uint32_t)jobwire_get(reader, 4);
    ret_rejoin->world = (uint32_t)jobwire_get(reader, 4);
    ret_rejoin->full_world = (uint32_t)jobwire_get(reader, 4);
    ret_rejoin->flags = (uint32_t)jobwire_get(reader, 4);
    ret_rejoin->has_restore = jobwire_get_bool(reader);
    ret_rejoin->restore_step = jobwire_get(reader, 8);
    ret_rejoin->restore_attempt = (uint32_t)jobwire_get(reader, 4);
    size_t len = (size_t)jobwire_get(reader, 2);
    const uint8_t *text = jobwire_get_bytes(reader, len);
    if (text == NULL || !jobwire_rendezvous_valid(text, len) || ret_rejoin->rank >= ret_rejoin->world ||
        ret_rejoin->full_world < ret_rejoin->world) {
        reader->broken = true;
        return;
    }
    memcpy(ret_rejoin->rendezvous, text, len);
    ret_rejoin->rendezvous[len] = '\0';
    jobwire_get_key(reader, ret_rejoin->key);
}

static inline bool jobwire_reason_valid(const uint8_t *text, size_t len)
{
    if (len >= JOBWIRE_REASON_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return true;
}

static inline void jobwire_put_reason(struct jobwire_writer *writer, const char *reason)
{
    size_t len = strnlen(reason, JOBWIRE_REASON_MAX);
    jobwire_put(writer, len, 2);
    if (!jobwire_reason_valid((const uint8_t *)reason, len))
        writer->full = true;
    jobwire_put_bytes(writer, reason, len);
}

static inline void jobwire_get_reason(struct jobwire_reader *reader, char ret_reason[JOBWIRE_REASON_MAX])
{
    size_t len = (size_t)jobwire_get(reader, 2);
    const uint8_t *text = jobwire_get_bytes(reader, len);
    if (text == NULL || !jobwire_reason_valid(text, len)) {
        reader->broken = true;
        return;
    }
    memcpy(ret_reason, text, len);
    ret_reason[len] = '\0';
}

static inline void jobwire_put_moved(struct jobwire_writer *writer, const struct jobwire_moved *moved)
{
    jobwire_put(writer, moved->step, 8);
    jobwire_put(writer, moved->attempt, 4);
    jobwire_put(writer, moved->slot, 4);
    jobwire_put(writer, moved->status, 4);
    jobwire_put(writer, moved->bytes, 8);
    jobwire_put_reason(writer, moved->reason);
    jobwire_put(writer, moved->copy_of, 4);
}

static inline void jobwire_get_moved(struct jobwire_reader *reader, struct jobwire_moved *ret_moved)
{
    ret_moved->step = jobwire_get(reader, 8);
    ret_moved->attempt = (uint32_t)jobwire_get(reader, 4);
    ret_moved->slot = (uint32_t)jobwire_get(reader, 4);
    ret_moved->status = (uint32_t)jobwire_get(reader, 4);
    ret_moved->bytes = jobwire_get(reader, 8);
    jobwire_get_reason(reader, ret_moved->reason);
    if (!reader->broken && reader->pos < reader->len)
        ret_moved->copy_of = (uint32_t)jobwire_get(reader, 4);
}

static inline void jobwire_put_routes(struct jobwire_writer *writer, const struct jobwire_routes *routes)
{
    jobwire_put(writer, routes->session, 8);
    jobwire_put(writer, routes->open, 1);
    jobwire_put(writer, routes->tables, 8);
    jobwire_put(writer, routes->without, 8);
    jobwire_put(writer, routes->wrong, 8);
}

static inline void jobwire_get_routes(struct jobwire_reader *reader, struct jobwire_routes *ret_routes)
{
    ret_routes->session = jobwire_get(reader, 8);
    ret_routes->open = jobwire_get_bool(reader);
    ret_routes->tables = jobwire_get(reader, 8);
    ret_routes->without = jobwire_get(reader, 8);
    if (!reader->broken && reader->pos < reader->len)
        ret_routes->wrong = jobwire_get(reader, 8);
    if (ret_routes->session == 0)
        reader->broken = true;
}

static inline void jobwire_get_tables(struct jobwire_reader *reader, struct jobwire_tables *ret_tables)
{
    ret_tables->number = jobwire_get(reader, 8);
    jobwire_get_reason(reader, ret_tables->name);
    if (!reader->broken && reader->pos < reader->len)
        ret_tables->session = jobwire_get(reader, 8);
}

static inline void jobwire_put_body(struct jobwire_writer *writer, const struct jobwire_message *message)
{
    switch (message->type) {
    case JOBWIRE_JOIN:
        jobwire_put(writer, message->join.task_uid, 8);
        jobwire_put(writer, message->join.attempt, 4);
        jobwire_put(writer, message->join.rank, 4);
        jobwire_put(writer, message->join.world, 4);
        jobwire_put(writer, message->join.pid, 4);
        jobwire_put(writer, message->join.flags, 4);
        break;
    case JOBWIRE_STEP:
        jobwire_put_step(writer, &message->step);
        break;
    case JOBWIRE_SHARD_SAVED:
        jobwire_put(writer, message->shard_saved.step, 8);
        jobwire_put(writer, message->shard_saved.bytes, 8);
        break;
    case JOBWIRE_PEER_GONE:
        jobwire_put(writer, message->peer_gone.rank, 4);
        break;
    case JOBWIRE_RETRY:
        jobwire_put_reason(writer, message->retry.reason);
        break;
    case JOBWIRE_ROUTES:
        jobwire_put_routes(writer, &message->routes);
        break;
    case JOBWIRE_LEAVE:
        break;
    case JOBWIRE_WELCOME:
        jobwire_put(writer, message->welcome.attempt, 4);
        jobwire_put(writer, message->welcome.has_restore, 1);
        jobwire_put(writer, message->welcome.restore_step, 8);
        jobwire_put(writer, message->welcome.restore_attempt, 4);
        jobwire_put_bytes(writer, message->welcome.key, JOBWIRE_KEY_SIZE);
        break;
    case JOBWIRE_FENCED:
        jobwire_put(writer, message->fenced.attempt, 4);
        break;
    case JOBWIRE_CHECKPOINT_COMMITTED:
        jobwire_put(writer, message->committed.step, 8);
        jobwire_put(writer, message->committed.attempt, 4);
        break;
    case JOBWIRE_DRAIN:
        jobwire_put(writer, message->drain.deadline_ms, 8);
        jobwire_put(writer, message->drain.reason, 4);
        break;
    case JOBWIRE_REJOIN:
        jobwire_put_rejoin(writer, &message->rejoin);
        break;
    case JOBWIRE_TABLES:
        jobwire_put(writer, message->tables.number, 8);
        jobwire_put_reason(writer, message->tables.name);
        jobwire_put(writer, message->tables.session, 8);
        break;
    case JOBWIRE_STORE:
    case JOBWIRE_FETCH:
        jobwire_put(writer, message->slot.step, 8);
        jobwire_put(writer, message->slot.attempt, 4);
        jobwire_put(writer, message->slot.slot, 4);
        jobwire_put(writer, message->slot.copy_of, 4);
        break;
    case JOBWIRE_STORED:
    case JOBWIRE_FETCHED:
        jobwire_put_moved(writer, &message->moved);
        break;
    default: /* only a known type has a body to write */
        writer->full = true;
    }
}

static inline void jobwire_get_body(struct jobwire_reader *reader, struct jobwire_message *message)
{
    switch (message->type) {
    case JOBWIRE_JOIN:
        message->join.task_uid = jobwire_get(reader, 8);
        message->join.attempt = (uint32_t)jobwire_get(reader, 4);
        message->join.rank = (uint32_t)jobwire_get(reader, 4);
        message->join.world = (uint32_t)jobwire_get(reader, 4);
        message->join.pid = (uint32_t)jobwire_get(reader, 4);
        if (!reader->broken && reader->pos < reader->len)
            message->join.flags = (uint32_t)jobwire_get(reader, 4);
        break;
    case JOBWIRE_STEP:
        jobwire_get_step(reader, &message->step);
        break;
    case JOBWIRE_SHARD_SAVED:
        message->shard_saved.step = jobwire_get(reader, 8);
        message->shard_saved.bytes = jobwire_get(reader, 8);
        break;
    case JOBWIRE_PEER_GONE:
        message->peer_gone.rank = (uint32_t)jobwire_get(reader, 4);
        break;
    case JOBWIRE_RETRY:
        jobwire_get_reason(reader, message->retry.reason);
        break;
    case JOBWIRE_ROUTES:
        jobwire_get_routes(reader, &message->routes);
        break;
    case JOBWIRE_WELCOME:
        message->welcome.attempt = (uint32_t)jobwire_get(reader, 4);
        message->welcome.has_restore = jobwire_get_bool(reader);
        message->welcome.restore_step = jobwire_get(reader, 8);
        message->welcome.restore_attempt = (uint32_t)jobwire_get(reader, 4);
        jobwire_get_key(reader, message->welcome.key);
        break;
    case JOBWIRE_FENCED:
        message->fenced.attempt = (uint32_t)jobwire_get(reader, 4);
        break;
    case JOBWIRE_CHECKPOINT_COMMITTED:
        message->committed.step = jobwire_get(reader, 8);
        message->committed.attempt = (uint32_t)jobwire_get(reader, 4);
        break;
    case JOBWIRE_DRAIN:
        message->drain.deadline_ms = jobwire_get(reader, 8);
        message->drain.reason = (uint32_t)jobwire_get(reader, 4);
        break;
    case JOBWIRE_REJOIN:
        jobwire_get_rejoin(reader, &message->rejoin);
        break;
    case JOBWIRE_TABLES:
        jobwire_get_tables(reader, &message->tables);
        break;
    case JOBWIRE_STORE:
    case JOBWIRE_FETCH:
        message->slot.step = jobwire_get(reader, 8);
        message->slot.attempt = (uint32_t)jobwire_get(reader, 4);
        message->slot.slot = (uint32_t)jobwire_get(reader, 4);
        if (!reader->broken && reader->pos < reader->len)
            message->slot.copy_of = (uint32_t)jobwire_get(reader, 4);
        break;
    case JOBWIRE_STORED:
    case JOBWIRE_FETCHED:
        jobwire_get_moved(reader, &message->moved);
        break;
    default: /* LEAVE has no body; a later type is passed on by its number alone */
        break;
    }
}

/* ---- frames ---- */

/* Writes one frame; returns its size, or 0 when it doesn't fit into cap or the message breaks a limit above.
 * JOBWIRE_FRAME_MAX bytes are always enough. */
static inline size_t jobwire_encode(const struct jobwire_message *message, uint8_t *out, size_t cap)
{
    struct jobwire_writer writer = {.data = out, .cap = cap};
    jobwire_put(&writer, 0, 4);
    jobwire_put(&writer, message->type, 2);
    jobwire_put(&writer, JOBWIRE_VERSION, 2);
    jobwire_put_body(&writer, message);
    if (writer.full)
        return 0;
    struct jobwire_writer length = {.data = out, .cap = 4};
    jobwire_put(&length, writer.len - JOBWIRE_HEADER_SIZE, 4);
    return writer.len;
}

/* Reads one frame from the start of a stream's bytes. Returns 1 and fills both results; 0 when the frame is
 * not whole yet (read more); -1 when the stream is invalid (close it). The results are untouched unless it
 * returns 1. */
static inline int jobwire_decode(const uint8_t *data, size_t len, struct jobwire_message *ret_message,
                                 size_t *ret_used)
{
    struct jobwire_reader header = {.data = data, .len = len};
    uint64_t payload_len = jobwire_get(&header, 4);
    uint16_t type = (uint16_t)jobwire_get(&header, 2);
    jobwire_get(&header, 2); /* version: only ever appends (see above), so it decides nothing here */
    if (header.broken)
        return 0;
    if (payload_len > JOBWIRE_PAYLOAD_MAX)
        return -1;
    if (payload_len > len - JOBWIRE_HEADER_SIZE)
        return 0;
    struct jobwire_reader body = {.data = data + JOBWIRE_HEADER_SIZE, .len = (size_t)payload_len};
    struct jobwire_message message;
    memset(&message, 0, sizeof message);
    message.type = type;
    jobwire_get_body(&body, &message);
    if (body.broken)
        return -1;
    *ret_message = message;
    *ret_used = JOBWIRE_HEADER_SIZE + (size_t)payload_len;
    return 1;
}

/* --- the flight segment -------------------------------------------------------------------------------- */

/* The flight record: the barriers that a rank has passed, in memory that stays readable when the rank no
 * longer answers. The memory is a memfd of this name, which the agent reads through /proc/PID/fd even while
 * the process is stopped or stuck in the kernel. The rank writes without a lock, so a reader may rarely see
 * an entry that is half old and half new. Native byte order, which must be little-endian. A reader accepts
 * the record if and only if it knows the magic number, which includes the version. */
#define JOBWIRE_FLIGHT_NAME    "phalanx-flight"
#define JOBWIRE_FLIGHT_MAGIC   UINT64_C(0x54484c4658485001)
#define JOBWIRE_FLIGHT_ENTRIES 64 /* barriers kept */

struct jobwire_flight_entry {
    int64_t begun_ns, ended_ns; /* wall-clock time; 0: not yet */
};
struct jobwire_flight {
    uint64_t magic; /* JOBWIRE_FLIGHT_MAGIC, written last */
    uint32_t rank, world, attempt, pid;
    uint64_t begun, ended; /* the last barrier begun, and the last one ended; numbered from 1 */
    uint64_t step;
    int64_t step_ns; /* wall-clock time of the last phx_step; 0: none */
    struct jobwire_flight_entry entries[JOBWIRE_FLIGHT_ENTRIES]; /* of barrier n at n % ENTRIES */
};

#endif
