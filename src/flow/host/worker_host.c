/* A worker's process: carries out what its machine says. */
#include "flow/host/host.h"

#include <pthread.h>
#include <unistd.h>

#include "base/map.h"
#include "flow/host/gang.h"
#include "flow/wire/loop.h"
#include "flow/host/runner.h"
#include "flow/island/machine.h"

/* Where another host is, and what to say first. */
struct worker_meeting {
    uint64_t peer;
    struct flow_entry hello;
    char address[512];
};

/* An entry that a running function sends: the loop's thread passes it on. */
struct worker_post {
    uint32_t host;
    struct flow_entry entry;
    struct buf tail;
};

struct worker_process {
    struct loop *loop;
    struct worker *worker;
    struct runners *runners;
    struct gang_table *gangs;
    struct flow_effects effects;
    const struct flow_worker_options *options;
    VEC(struct worker_meeting *) meetings;
    struct u64_map meeting_index;
    pthread_mutex_t mutex;
    VEC(struct worker_post) posts;
    bool head_lost;
};

static void worker_meet_host(struct worker_process *process, const struct flow_effect *effect)
{
    struct worker_meeting *meeting = u64_map_get(&process->meeting_index, effect->as);
    if (!meeting) {
        meeting = mem_alloc(sizeof *meeting);
        vec_push(&process->meetings, meeting);
        u64_map_put(&process->meeting_index, effect->as, meeting);
    }
    meeting->peer = effect->as;
    meeting->hello = effect->entry;
    snprintf(meeting->address, sizeof meeting->address, STR_FORMAT, STR_ARG(buf_str(&effect->tail)));
}

/* Sends to a peer; another host is connected to when there is something to send for the first time. What a
 * host that cannot be reached misses is the head's business, which sees it lost. */
static void worker_send(struct worker_process *process, uint64_t peer, const struct flow_entry *entry,
                        struct str tail, struct tensor *payload)
{
    uint64_t out = peer;
    if (peer == peer_host((uint32_t)peer)) {
        out = UINT64_C(4) << 32 | (uint32_t)peer; /* connections to hosts carry one way */
        const struct worker_meeting *meeting = u64_map_get(&process->meeting_index, peer);
        struct wire *wire;
        if (!loop_has(process->loop, out) && meeting &&
            flow_wire_connect(meeting->address, &wire, NULL) == 0) {
            loop_add(process->loop, wire, out);
            loop_send(process->loop, out, &meeting->hello, (struct str){0}, NULL);
        }
    }
    loop_send(process->loop, out, entry, tail, payload);
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
        runners_compile(process->runners, effect->client, effect->handle, buf_str(&effect->tail));
        break;
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
        gang_forget(process->gangs, effect->run.client, effect->run.launch);
        break;
    }
}

static void worker_feed(struct worker_process *process, const struct flow_event *event)
{
    worker_step(process->worker, event, &process->effects);
    for (size_t i = 0; i < process->effects.list.len; i++)
        worker_carry_out(process, &process->effects.list.items[i]);
    flow_effects_clear(&process->effects);
}

static void worker_opened(void *context, uint64_t peer)
{
    worker_feed(context, &(struct flow_event){.kind = FLOW_OPENED, .peer = peer});
}

static void worker_took(void *context, uint64_t peer, const struct flow_entry *entry, struct str tail)
{
    struct worker_process *process = context;
    if (entry->kind == ENTRY_GATHER && peer == peer_host((uint32_t)peer)) {
        if (worker_expects(process->worker, entry->client, entry->launch))
            gang_take(process->gangs, entry, tail);
        return;
    }
    if (entry->kind == ENTRY_WELCOME && peer == PEER_HEAD) {
        gang_table_set_host(process->gangs, entry->node);
        if (process->options->ready) {
            fprintf(process->options->ready, "ready %u\n", entry->node);
            fflush(process->options->ready);
        }
    }
    worker_feed(process,
                &(struct flow_event){.kind = FLOW_ENTRY, .peer = peer, .entry = entry, .tail = tail});
}

static void worker_peer_closed(void *context, uint64_t peer)
{
    struct worker_process *process = context;
    worker_feed(process, &(struct flow_event){.kind = FLOW_CLOSED, .peer = peer});
    if (peer == PEER_HEAD) {
        process->head_lost = true;
        loop_stop(process->loop);
    }
}

static void worker_woken(void *context)
{
    struct worker_process *process = context;
    pthread_mutex_lock(&process->mutex);
    struct worker_post *posts = process->posts.items;
    size_t count = process->posts.len;
    memset(&process->posts, 0, sizeof process->posts);
    pthread_mutex_unlock(&process->mutex);
    for (size_t i = 0; i < count; i++) {
        worker_send(process, peer_host(posts[i].host), &posts[i].entry, buf_str(&posts[i].tail), NULL);
        buf_done(&posts[i].tail);
    }
    mem_free(posts);
    struct flow_event event;
    while (runners_next(process->runners, &event))
        worker_feed(process, &event);
}

static void worker_tick(void *context)
{
}

static void worker_post(void *context, uint32_t host, const struct flow_entry *entry, struct str tail)
{
    struct worker_process *process = context;
    struct worker_post post = {.host = host, .entry = *entry};
    buf_add_str(&post.tail, tail);
    pthread_mutex_lock(&process->mutex);
    vec_push(&process->posts, post);
    pthread_mutex_unlock(&process->mutex);
    loop_wake(process->loop);
}

static int worker_connect(struct worker_process *process, struct error *error)
{
    const struct flow_worker_options *options = process->options;
    int fd;
    struct wire *head;
    int rc = flow_wire_listen(options->listen, &fd, error);
    if (rc < 0)
        return rc;
    loop_listen(process->loop, fd);
    rc = flow_wire_connect(options->head, &head, error);
    if (rc < 0)
        return rc;
    char name[512];
    flow_wire_name(fd, options->listen, name, sizeof name);
    process->worker = worker_new(options->island, name, options->devices, options->device_bytes);
    process->gangs = gang_table_new(worker_post, process);
    process->runners = runners_new(options->devices, options->functions, process->gangs, process->loop);
    loop_add(process->loop, head, PEER_HEAD);
    loop_stop_at(process->loop, options->stop_fd);
    worker_opened(process, PEER_HEAD);
    return 0;
}

int flow_worker_run(const struct flow_worker_options *options, struct error *error)
{
    struct worker_process process = {.options = options, .mutex = PTHREAD_MUTEX_INITIALIZER};
    struct loop_handler handler = {&process,     worker_opened, worker_took, worker_peer_closed,
                                   worker_woken, worker_tick,   true};
    int rc = loop_new(&handler, &process.loop, error);
    if (rc < 0)
        return rc;
    rc = worker_connect(&process, error);
    if (rc == 0) {
        loop_run(process.loop);
        if (process.head_lost)
            rc = error_set(error, ERROR_UNAVAILABLE, "the head at %s is gone", options->head);
        /* A run may wait in a collective for members that will not come: the process ends without it. */
        gang_abort_all(process.gangs);
        runners_free(process.runners);
        worker_free(process.worker, &process.effects);
        for (size_t i = 0; i < process.effects.list.len; i++)
            if (process.effects.list.items[i].kind == FLOW_DROP)
                runners_drop(process.effects.list.items[i].executable);
        gang_table_free(process.gangs);
    }
    for (size_t i = 0; i < process.meetings.len; i++)
        mem_free(process.meetings.items[i]);
    for (size_t i = 0; i < process.posts.len; i++)
        buf_done(&process.posts.items[i].tail);
    vec_done(&process.posts);
    vec_done(&process.meetings);
    u64_map_done(&process.meeting_index);
    flow_effects_done(&process.effects);
    loop_free(process.loop);
    return rc;
}
