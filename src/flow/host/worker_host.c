/* A worker's process: carries out the effects of its machine. */
#include "flow/host/host.h"

#include <pthread.h>
#include <unistd.h>

#include "base/map.h"
#include "base/units.h"
#include "flow/host/disk.h"
#include "flow/host/gang.h"
#include "flow/wire/clock.h"
#include "flow/wire/loop.h"
#include "flow/wire/token.h"
#include "flow/host/runner.h"
#include "flow/pjrt/host.h"
#include "flow/island/machine.h"

enum { WORKER_BACKLOG_MAX = 65536 }; /* shards in flight to one client */

/* The address of another host, and the first message to it. */
struct worker_meeting {
    uint64_t peer;
    struct flow_entry hello;
    char address[512];
    int64_t failed_ns; /* when the host could not be reached; 0: it could */
};

/* A message of a device's thread, which the loop's thread passes on. */
struct worker_post {
    uint64_t peer;
    struct flow_entry entry;
    struct buf tail;
    struct tensor *payload;
};

/* The connection for messages to a host. Connections between hosts are used in one direction only. */
#define WORKER_OUT(host) (UINT64_C(4) << 32 | (uint32_t)(host))

/* DONE may wait for so many others, or for so long, while its device has short runs ahead. */
enum { WORKER_POSTS_LAZY = 32 };
#define WORKER_LAZY_NS  (1 * NS_PER_MS)
#define WORKER_SHORT_NS (500 * NS_PER_US)
/* The time between two tries to reach a host. */
#define WORKER_RETRY_NS NS_PER_SECOND
#define WORKER_SEEK_NS  (20 * NS_PER_MS) /* between two attempts to reach another head */

struct worker_process {
    struct loop *loop;
    struct worker *worker;
    struct runners *runners;
    struct gang_table *gangs;
    struct disk *disk;
    struct flow_effects effects;
    const struct flow_worker_options *options;
    struct board *board; /* NULL: none on this machine */
    VEC(struct worker_meeting *) meetings;
    struct u64_map meeting_index;
    pthread_mutex_t machine; /* protects `worker`, `effects`, `ended`; taken before `mutex` and gang locks */
    bool ended;              /* the machine has had its last event */
    pthread_mutex_t mutex;   /* protects the posts */
    VEC(struct worker_post) posts;
    _Atomic uint32_t waiting; /* posts, DONEs counted before they were joined; read without the mutex too */
    int64_t posted_ns; /* when the oldest was posted */
    bool urgent;       /* one of the posts may not wait */
    bool waking;       /* the loop has been woken for the posts */
    struct flow_token token; /* for the head */
    bool denied;             /* a head has refused the token */
    bool head_lost;          /* for good */
    bool refused;            /* a head counts this host as lost */
    int64_t away_ns;         /* when the head was lost; 0: a head is connected */
};

static void worker_meet_host(struct worker_process *process, const struct flow_effect *effect)
{
    struct worker_meeting *meeting = u64_map_get(&process->meeting_index, effect->as);
    if (!meeting) {
        meeting = mem_alloc(sizeof *meeting);
        vec_push(&process->meetings, meeting);
        u64_map_put(&process->meeting_index, effect->as, meeting);
    }
    if (meeting->hello.args[0] != effect->entry.args[0]) /* from another head, which has its own numbers */
        loop_close(process->loop, WORKER_OUT(effect->as));
    meeting->failed_ns = 0;
    meeting->peer = effect->as;
    meeting->hello = effect->entry;
    snprintf(meeting->address, sizeof meeting->address, STR_FORMAT, STR_ARG(buf_str(&effect->tail)));
    gang_table_meet(process->gangs, (uint32_t)effect->as, effect->handle);
}

/* Connects to a host that the head has introduced, unless a try failed just now: a try may block for seconds.
 * Returns whether there is a connection. */
static bool worker_reach_host(struct worker_process *process, struct worker_meeting *meeting, uint64_t out)
{
    if (meeting->failed_ns && flow_now_ns() - meeting->failed_ns < WORKER_RETRY_NS)
        return false;
    bool reached = loop_connect(process->loop, meeting->address, out, NULL) == 0;
    meeting->failed_ns = reached ? 0 : flow_now_ns();
    if (reached)
        loop_send(process->loop, out, &meeting->hello, (struct str){0}, NULL);
    return reached;
}

/* Sends to a peer. Connects to another host when the first message is to be sent. If the host cannot be
 * reached, the message is lost, and the head is told as if a connection had broken. */
static void worker_send(struct worker_process *process, uint64_t peer, const struct flow_entry *entry,
                        struct str tail, struct tensor *payload)
{
    uint64_t out = peer;
    if (peer == peer_host((uint32_t)peer)) {
        out = WORKER_OUT(peer);
        struct worker_meeting *meeting = u64_map_get(&process->meeting_index, peer);
        if (!loop_has(process->loop, out) && meeting && !worker_reach_host(process, meeting, out)) {
            struct flow_entry down = {.kind = ENTRY_HOST, .flags = ENTRY_IS_DOWN, .node = (uint32_t)peer};
            loop_send(process->loop, PEER_HEAD, &down, (struct str){0}, NULL);
            return;
        }
    }
    if (entry->kind == ENTRY_HELLO_WORKER) {
        struct flow_entry hello = *entry;
        struct buf signed_tail BUF_CLEANUP = {0};
        buf_add_str(&signed_tail, tail);
        flow_token_sign(&process->token, &hello, &signed_tail);
        loop_send(process->loop, out, &hello, buf_str(&signed_tail), NULL);
        return;
    }
    loop_send(process->loop, out, entry, tail, payload);
}

/* Sends the entries that device threads have posted. On the loop's thread. */
static void worker_send_posts(struct worker_process *process)
{
    if (process->waiting == 0)
        return;
    pthread_mutex_lock(&process->mutex);
    struct worker_post *posts = process->posts.items;
    size_t count = process->posts.len;
    memset(&process->posts, 0, sizeof process->posts);
    process->urgent = process->waking = false;
    process->waiting = 0;
    pthread_mutex_unlock(&process->mutex);
    for (size_t i = 0; i < count; i++) {
        worker_send(process, posts[i].peer, &posts[i].entry, buf_str(&posts[i].tail), posts[i].payload);
        buf_done(&posts[i].tail);
        tensor_unref(posts[i].payload);
    }
    mem_free(posts);
}

/* Posts an entry for the loop's thread. Takes over the tail and the payload. */
static void worker_post(struct worker_process *process, struct worker_post *post)
{
    bool lazy = process->board && post->entry.kind == ENTRY_DONE;
    pthread_mutex_lock(&process->mutex);
    if (process->posts.len == 0)
        process->posted_ns = flow_now_ns();
    process->waiting++;
    if (process->posts.len == 0 || !entry_join(&vec_last(&process->posts).entry, &post->entry))
        vec_push(&process->posts, *post);
    process->urgent = process->urgent || !lazy;
    pthread_mutex_unlock(&process->mutex);
}

/* Wakes the loop's thread for posts. With `may_wait`, because the device has a short run ahead, DONE may be
 * delayed. */
static void worker_wake(struct worker_process *process, bool may_wait)
{
    if (process->waiting == 0) /* the usual case: most steps of a chain post nothing */
        return;
    pthread_mutex_lock(&process->mutex);
    bool waits = may_wait && !process->urgent && process->waiting < WORKER_POSTS_LAZY;
    bool wakes = process->posts.len > 0 && !process->waking &&
                 (!waits || flow_now_ns() - process->posted_ns > WORKER_LAZY_NS);
    process->waking = process->waking || wakes;
    pthread_mutex_unlock(&process->mutex);
    if (wakes)
        loop_wake(process->loop);
}

static void worker_is_slow(void *context)
{
    worker_wake(context, false);
}

/* Carries out effects that any thread may carry out. */
static void worker_carry_out_anywhere(struct worker_process *process, struct flow_effect *effect)
{
    switch (effect->kind) {
    case FLOW_DROP:
        runners_drop(effect->executable);
        break;
    case FLOW_RUN:
        runners_run(process->runners, effect);
        break;
    case FLOW_ABORT:
        gang_abort(process->gangs, &effect->run, &effect->fault);
        break;
    case FLOW_FORGET:
        gang_forget(process->gangs, &effect->run);
        break;
    case FLOW_SAVE:
        disk_save(process->disk, effect);
        break;
    case FLOW_LOAD:
        disk_load(process->disk, effect);
        break;
    case FLOW_SCRAP:
        disk_scrap(process->disk, effect->executable);
        break;
    case FLOW_EVICT:
        runners_evict(process->runners, effect->payload);
        break;
    default:
        CHECK_UNREACHABLE();
    }
}

static void worker_carry_out(struct worker_process *process, struct flow_effect *effect)
{
    switch (effect->kind) {
    case FLOW_SEND:
        worker_send(process, effect->peer, &effect->entry, buf_str(&effect->tail), effect->payload);
        break;
    case FLOW_CLOSE:
        loop_close(process->loop, effect->peer);
        break;
    case FLOW_BIND:
        loop_bind(process->loop, effect->peer, effect->as);
        break;
    case FLOW_MEET:
        worker_meet_host(process, effect);
        break;
    case FLOW_COMPILE:
        runners_compile(process->runners, effect->as, buf_str(&effect->tail));
        break;
    default:
        worker_carry_out_anywhere(process, effect);
    }
}

/* Steps the machine on the loop's thread. Sends the earlier posts of device threads before the new
 * effects. */
static void worker_feed(struct worker_process *process, struct flow_event *event)
{
    pthread_mutex_lock(&process->machine);
    event->now_ns = flow_now_ns();
    worker_step(process->worker, event, &process->effects);
    worker_send_posts(process);
    for (size_t i = 0; i < process->effects.list.len; i++)
        worker_carry_out(process, &process->effects.list.items[i]);
    flow_effects_clear(&process->effects);
    pthread_mutex_unlock(&process->machine);
}

/* Steps the machine on a device's thread, whose run is over. */
static bool worker_device_ran(void *context, const struct flow_event *event, struct flow_effect *ret_next)
{
    struct worker_process *process = context;
    bool next = false;
    pthread_mutex_lock(&process->machine);
    if (process->ended) {
        for (uint32_t i = 0; i < event->result_count; i++)
            tensor_unref(event->results[i]);
        pthread_mutex_unlock(&process->machine);
        return false;
    }
    worker_step(process->worker, event, &process->effects);
    for (size_t i = 0; i < process->effects.list.len; i++) {
        struct flow_effect *effect = &process->effects.list.items[i];
        if (effect->kind == FLOW_SEND) {
            struct worker_post post = {effect->peer, effect->entry, effect->tail, effect->payload};
            effect->tail = (struct buf){0};
            effect->payload = NULL;
            worker_post(process, &post);
        } else if (effect->kind == FLOW_RUN && effect->device == event->device) {
            CHECK(!next);
            next = true;
            *ret_next = *effect;
            effect->args = NULL;
            effect->arg_count = 0;
            effect->gang_hosts = NULL;
        } else {
            worker_carry_out_anywhere(process, effect);
        }
    }
    flow_effects_clear(&process->effects);
    bool is_short = next && runners_last_ns(ret_next->executable) < WORKER_SHORT_NS;
    pthread_mutex_unlock(&process->machine);
    worker_wake(process, is_short);
    return next;
}

static void worker_opened(void *context, uint64_t peer)
{
    worker_feed(context, &(struct flow_event){.kind = FLOW_OPENED, .peer = peer});
}

static void worker_took(void *context, uint64_t peer, const struct flow_entry *entry, struct str tail)
{
    struct worker_process *process = context;
    if (entry->kind == ENTRY_GATHER && peer == peer_host((uint32_t)peer)) {
        pthread_mutex_lock(&process->machine);
        if (worker_expects(process->worker, entry->client, entry->launch, entry->ticket))
            gang_take(process->gangs, entry, tail);
        pthread_mutex_unlock(&process->machine);
        return;
    }
    if (entry->kind == ENTRY_WELCOME && peer == PEER_HEAD && entry->flags & ENTRY_IS_FAILED) {
        process->denied = !(entry->flags & ENTRY_IS_DOWN);
        process->refused = !process->denied; /* the head closes the connection */
        if (process->denied)
            loop_stop(process->loop);
        return;
    }
    if (entry->kind == ENTRY_WELCOME && peer == PEER_HEAD) {
        gang_table_set_host(process->gangs, entry->node);
        bool first = process->away_ns == 0;
        process->away_ns = 0;
        loop_set_tick(process->loop, NS_PER_SECOND);
        if (process->options->ready && first) {
            fprintf(process->options->ready, "ready %u\n", entry->node);
            fflush(process->options->ready);
        }
    }
    worker_feed(process,
                &(struct flow_event){.kind = FLOW_ENTRY, .peer = peer, .entry = entry, .tail = tail});
}

/* Tries to connect to a head that replaces the lost one. Ends the worker when the grace period has
 * expired. */
static void worker_seek_head(struct worker_process *process)
{
    int64_t grace_ns = process->options->head_grace_s * NS_PER_SECOND;
    if (process->refused || flow_now_ns() - process->away_ns >= grace_ns) {
        process->head_lost = true;
        loop_stop(process->loop);
    } else if (loop_connect(process->loop, process->options->head, PEER_HEAD, NULL) == 0) {
        worker_opened(process, PEER_HEAD);
    }
}

static void worker_peer_closed(void *context, uint64_t peer)
{
    struct worker_process *process = context;
    if (peer == WORKER_OUT(peer)) /* the last messages to the host may not have arrived */
        peer = peer_host((uint32_t)peer);
    worker_feed(process, &(struct flow_event){.kind = FLOW_CLOSED, .peer = peer});
    if (peer != PEER_HEAD)
        return;
    if (process->away_ns != 0)
        return; /* a replacement was lost too: the tick tries again */
    process->away_ns = flow_now_ns();
    loop_set_tick(process->loop, WORKER_SEEK_NS);
    worker_seek_head(process);
}

static void worker_woken(void *context)
{
    struct worker_process *process = context;
    worker_send_posts(process);
    struct flow_event event;
    while (runners_next(process->runners, &event))
        worker_feed(process, &event);
    while (disk_next(process->disk, &event))
        worker_feed(process, &event);
}

static bool worker_process_expects(void *context, uint32_t client, uint64_t launch, uint64_t head)
{
    struct worker_process *process = context;
    return worker_expects(process->worker, client, launch, head);
}

static void worker_tick(void *context)
{
    struct worker_process *process = context;
    pthread_mutex_lock(&process->machine);
    gang_sweep(process->gangs, worker_process_expects);
    pthread_mutex_unlock(&process->machine);
    worker_send_posts(process);
    worker_feed(process, &(struct flow_event){.kind = FLOW_TICK});
    if (process->away_ns != 0 && !loop_has(process->loop, PEER_HEAD))
        worker_seek_head(process);
}

/* Sends parts of a collective to a host that is not on the board. */
static void worker_send_parts(void *context, uint32_t host, const struct flow_entry *entry, struct str tail)
{
    struct worker_process *process = context;
    struct worker_post post = {.peer = peer_host(host), .entry = *entry};
    buf_add_str(&post.tail, tail);
    worker_post(process, &post);
    worker_wake(process, false);
}

static int worker_connect(struct worker_process *process, struct error *error)
{
    const struct flow_worker_options *options = process->options;
    struct wire_hub *hub;
    int fd;
    int rc = flow_token_find(options->token_file, options->head, &process->token, error);
    if (rc == 0)
        rc = wire_hub_new(options->transport, &hub, error);
    if (rc < 0)
        return rc;
    loop_use(process->loop, hub);
    rc = flow_wire_listen(options->listen, &fd, error);
    if (rc < 0)
        return rc;
    loop_listen(process->loop, fd);
    rc = loop_connect(process->loop, options->head, PEER_HEAD, error);
    if (rc < 0)
        return rc;
    const struct executor *pjrt = options->pjrt ? executor_pjrt(options->pjrt, error) : NULL;
    if (options->pjrt && !pjrt)
        return (int)error->code;
    char name[512];
    flow_wire_name(fd, options->listen, name, sizeof name);
    process->worker = worker_new(options->island, name, options->devices, options->device_bytes);
    worker_set_clock(process->worker, flow_day_ns());
    worker_set_host_memory(process->worker, options->host_bytes);
    process->gangs = gang_table_new(worker_send_parts, process);
    int board = board_find(options->head);
    process->board = board >= 0 ? board_join(board, options->devices) : NULL;
    if (board >= 0)
        close(board);
    if (process->board) {
        gang_table_use(process->gangs, process->board, worker_is_slow);
        worker_set_place(process->worker, board_place(process->board));
    }
    process->runners = runners_new(&(struct runners_options){.devices = options->devices,
                                                             .functions = options->functions,
                                                             .pjrt = pjrt,
                                                             .work_limit = options->work_limit,
                                                             .gangs = process->gangs,
                                                             .loop = process->loop,
                                                             .ran = worker_device_ran,
                                                             .context = process});
    process->disk = disk_new(options->save_dir, process->loop);
    loop_stop_at(process->loop, options->stop_fd);
    worker_opened(process, PEER_HEAD);
    return 0;
}

int flow_worker_run(const struct flow_worker_options *options, struct error *error)
{
    struct worker_process process = {
        .options = options, .machine = PTHREAD_MUTEX_INITIALIZER, .mutex = PTHREAD_MUTEX_INITIALIZER};
    struct loop_handler handler = {&process,     worker_opened, worker_took, worker_peer_closed,
                                   worker_woken, worker_tick,   true,        WORKER_BACKLOG_MAX};
    int rc = loop_new(&handler, &process.loop, error);
    if (rc < 0)
        return rc;
    rc = worker_connect(&process, error);
    if (rc == 0) {
        loop_run(process.loop);
        if (process.denied)
            rc = error_set(error, ERROR_DENIED, "the head at %s refuses the token of this worker%s",
                           options->head, process.token.set ? "" : ", which has none: give --token-file");
        else if (process.head_lost)
            rc = error_set(error, ERROR_UNAVAILABLE,
                           process.refused ? "the head at %s counts this host as lost"
                                           : "the head at %s is gone",
                           options->head);
        /* A run may wait in a collective for members that will never arrive: the abort below ends it. */
        pthread_mutex_lock(&process.machine);
        process.ended = true;
        pthread_mutex_unlock(&process.machine);
        gang_abort_all(process.gangs);
        runners_free(process.runners);
        disk_stop(process.disk);
        worker_free(process.worker, &process.effects);
        for (size_t i = 0; i < process.effects.list.len; i++)
            if (process.effects.list.items[i].kind == FLOW_DROP)
                runners_drop(process.effects.list.items[i].executable);
            else if (process.effects.list.items[i].kind == FLOW_SCRAP)
                disk_scrap(process.disk, process.effects.list.items[i].executable);
        disk_free(process.disk);
        gang_table_free(process.gangs);
        board_leave(process.board);
    }
    for (size_t i = 0; i < process.meetings.len; i++)
        mem_free(process.meetings.items[i]);
    for (size_t i = 0; i < process.posts.len; i++) {
        buf_done(&process.posts.items[i].tail);
        tensor_unref(process.posts.items[i].payload);
    }
    vec_done(&process.posts);
    vec_done(&process.meetings);
    u64_map_done(&process.meeting_index);
    flow_effects_done(&process.effects);
    loop_free(process.loop);
    return rc;
}
