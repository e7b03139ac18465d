/* The head's process. */
#include "flow/host/host.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "flow/host/board.h"
#include "flow/host/gate.h"
#include "flow/host/metrics.h"
#include "flow/wire/clock.h"
#include "flow/wire/loop.h"
#include "flow/island/machine.h"

enum { HEAD_BACKLOG_MAX = 4096 }; /* 1 GiB for a peer that does not read */

struct head_host_process {
    struct loop *loop;
    struct head *head;
    struct gate gate;
    struct flow_effects effects;
    struct flow_desk *desk; /* NULL: no metrics */
};

static void head_feed(struct head_host_process *process, struct flow_event *event)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->now_ns = now.tv_sec * NS_PER_SECOND + now.tv_nsec;
    head_step(process->head, event, &process->effects);
    for (size_t i = 0; i < process->effects.list.len; i++) {
        const struct flow_effect *effect = &process->effects.list.items[i];
        if (effect->kind == FLOW_SEND)
            loop_send(process->loop, effect->peer, &effect->entry, buf_str(&effect->tail), effect->payload);
        else if (effect->kind == FLOW_CLOSE)
            loop_close(process->loop, effect->peer);
        else
            CHECK_UNREACHABLE();
    }
    flow_effects_clear(&process->effects);
}

static uint64_t head_random(void)
{
    uint64_t number = 0;
    while (number == 0)
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            number = 0;
    return number;
}

static void head_opened(void *context, uint64_t peer)
{
    struct head_host_process *process = context;
    gate_opened(&process->gate, process->loop, peer);
    head_feed(context, &(struct flow_event){.kind = FLOW_OPENED, .peer = peer, .token = head_random()});
}

static void head_took(void *context, uint64_t peer, const struct flow_entry *entry, struct str tail)
{
    struct head_host_process *process = context;
    struct flow_entry heard = *entry;
    if (!gate_passes(&process->gate, process->loop, peer, &heard, &tail))
        return;
    head_feed(context, &(struct flow_event){.kind = FLOW_ENTRY, .peer = peer, .entry = &heard, .tail = tail});
    if (heard.kind == ENTRY_HELLO_WORKER)
        loop_trust(process->loop, peer);
}

static void head_peer_closed(void *context, uint64_t peer)
{
    struct head_host_process *process = context;
    gate_closed(&process->gate, peer);
    head_feed(context, &(struct flow_event){.kind = FLOW_CLOSED, .peer = peer});
}

static void head_woken(void *context)
{
    struct head_host_process *process = context;
    if (process->desk)
        flow_desk_answer(process->desk, process->head);
}

static void head_tick(void *context)
{
    struct head_host_process *process = context;
    gate_tick(&process->gate, process->loop);
    head_feed(context, &(struct flow_event){.kind = FLOW_TICK});
}

int flow_head_run(const struct flow_head_options *options, struct error *error)
{
    struct head_host_process process = {.desk = options->desk};
    struct loop_handler handler = {&process,   head_opened, head_took, head_peer_closed,
                                   head_woken, head_tick,   false,     HEAD_BACKLOG_MAX};
    struct wire_hub *hub = NULL;
    int fd, rc = gate_open(&process.gate, options->listen, options->token_file, options->insecure, error);
    if (rc == 0)
        rc = wire_hub_new(options->transport, &hub, error);
    if (rc == 0)
        rc = flow_wire_listen(options->listen, &fd, error);
    if (rc < 0) {
        wire_hub_free(hub);
        return rc;
    }
    rc = loop_new(&handler, &process.loop, error);
    if (rc < 0) {
        wire_hub_free(hub);
        close(fd);
        return rc;
    }
    loop_use(process.loop, hub);
    struct head_options machine = {.secret = head_random(), .day_ns = flow_day_ns()};
    /* Unlikely to repeat the numbers of clients of an earlier head. */
    machine.first_client = (uint32_t)(head_random() % (ENTRY_CLIENTS_MAX / 2));
    process.head = head_new(&machine);
    loop_listen(process.loop, fd);
    loop_stop_at(process.loop, options->stop_fd);
    int board = board_make();
    board_publish(board, options->listen);
    if (options->ready) {
        char name[512];
        flow_wire_name(fd, options->listen, name, sizeof name);
        fprintf(options->ready, "ready %s\n", name);
        fflush(options->ready);
    }
    if (process.desk)
        flow_desk_open(process.desk, process.loop);
    loop_run(process.loop);
    if (process.desk)
        flow_desk_close(process.desk);
    board_withdraw(options->listen);
    if (board >= 0)
        close(board);
    head_free(process.head);
    loop_free(process.loop);
    flow_effects_done(&process.effects);
    gate_done(&process.gate);
    return 0;
}
