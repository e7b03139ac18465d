/* effects.c - effects to sockets, after their event is durable. What has no connection now is said again when
 * its machine says hello. */
#include "host/controller/internal.h"

#include <stdio.h>

#include "base/hash.h"
#include "core/agent/codec.h"
#include "core/agent/sheet.h"

static struct wire_conn *conn_of(const struct controller *controller, machine_id machine)
{
    const struct link *link = &controller->links[machine];
    return link->welcomed ? link->conn : NULL;
}

/* The starts of one event. A gang's sheet is packed with the first of them and sent once to each machine: in
 * each START it would be N times N entries. */
struct starts {
    struct launch_common common;
    const struct sheet_entry *packed_of; /* entries that `sheet` was packed from */
    struct buf bytes;                    /* of it */
    struct packed_sheet sheet;
};

/* Up to here a sheet in the START itself costs no more than the message beside it. */
enum { SHEET_INSIDE_MAX = 16 };

static void pack_sheet(struct starts *starts, const struct gang_sheet *sheet)
{
    if (starts->packed_of == sheet->entries)
        return;
    buf_clear(&starts->bytes);
    codec_pack_sheet(&starts->bytes, sheet);
    uint64_t hash = hash64(0, starts->bytes.data, starts->bytes.len);
    starts->sheet = (struct packed_sheet){hash > 0 ? hash : 1, buf_str(&starts->bytes)};
    starts->packed_of = sheet->entries;
}

static void send_sheet(struct starts *starts, struct link *link, struct task_launch *launch)
{
    if (!link->knows_sheets || launch->sheet.count <= SHEET_INSIDE_MAX)
        return;
    pack_sheet(starts, &launch->sheet);
    if (link->sheet != starts->sheet.number) {
        struct from_controller message = {.kind = FROM_CONTROLLER_SHEET, .sheet = starts->sheet};
        wire_send_controller(link->conn, &message);
        link->sheet = starts->sheet.number;
    }
    sheet_take_out(launch, starts->sheet.number);
}

static void send_start(struct controller *controller, struct starts *starts, const struct task *task)
{
    struct wire_conn *conn = conn_of(controller, task->machine);
    if (!conn)
        return;
    struct arena arena ARENA_CLEANUP = {0};
    struct from_controller message = {.kind = FROM_CONTROLLER_START};
    if (starts->common.machine_mttf_s == 0)
        starts->common.machine_mttf_s = core_machine_mttf_s(controller->core);
    task_launch_build_next(&starts->common, task, core_cluster(controller->core), &arena, &message.start);
    send_sheet(starts, &controller->links[task->machine], &message.start);
    wire_send_controller(conn, &message);
}

static void send_to(struct controller *controller, machine_id machine, const struct from_controller *message)
{
    struct wire_conn *conn = conn_of(controller, machine);
    if (conn)
        wire_send_controller(conn, message);
}

static void send_rejoin(struct controller *controller, const struct task *task)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct from_controller message = {.kind = FROM_CONTROLLER_REJOIN};
    task_rejoin_build(task, core_cluster(controller->core), &arena, &message.rejoin);
    send_to(controller, task->machine, &message);
}

/* What the core thinks of a new cluster file is for whoever starts the controller with it, and so is a
 * machine that is not as the file says. */
static void tell_operator(const struct object_ref *object, bool of_file)
{
    if (object->kind == OBJECT_EVENT && object->note->warning &&
        (of_file || str_is(object->note->reason, "InventoryMismatch")))
        fprintf(stderr, "warning: " STR_FORMAT ": " STR_FORMAT "\n", STR_ARG(object->note->reason),
                STR_ARG(object->note->message));
}

static void carry_out(struct controller *controller, struct starts *starts, const struct pending *pending,
                      const struct effect *effect)
{
    struct from_controller message = {0};
    switch (effect->kind) {
    case EFFECT_REPLY:
        if (pending->request)
            api_reply(pending->request, effect);
        break;
    case EFFECT_WARNING: /* of a check, which has no step */
        break;
    case EFFECT_CHANGED:
        if (pending->event.kind == EVENT_CLUSTER || pending->event.kind == EVENT_MACHINE_HELLO)
            tell_operator(&effect->changed.object, pending->event.kind == EVENT_CLUSTER);
        if (controller->api)
            api_changed(controller->api, effect);
        if (effect->changed.type == CHANGE_DELETED && effect->changed.object.kind == OBJECT_JOBSET)
            steps_forget(controller, effect->changed.object.jobset->uid);
        break;
    case EFFECT_TASK_START:
        send_start(controller, starts, effect->start);
        break;
    case EFFECT_TASK_STOP:
        message.kind = FROM_CONTROLLER_STOP;
        message.stop = effect->stop.stop;
        send_to(controller, effect->stop.machine, &message);
        break;
    case EFFECT_TASK_NOTICE:
        message.kind = FROM_CONTROLLER_NOTICE;
        message.notice = effect->notice.notice;
        send_to(controller, effect->notice.machine, &message);
        break;
    case EFFECT_TASK_REJOIN:
        send_rejoin(controller, effect->rejoin);
        break;
    case EFFECT_TASK_FORGET:
        message.kind = FROM_CONTROLLER_FORGET;
        message.task = effect->forget.task;
        send_to(controller, effect->forget.machine, &message);
        break;
    case EFFECT_ERRAND_START:
        message.kind = FROM_CONTROLLER_ERRAND_START;
        message.errand_start = effect->errand_start.start;
        send_to(controller, effect->errand_start.machine, &message);
        break;
    case EFFECT_SAY_AGAIN:
        message.kind = FROM_CONTROLLER_SAY_AGAIN;
        send_to(controller, effect->say_again.machine, &message);
        break;
    case EFFECT_ERRAND_STOP:
        message.kind = FROM_CONTROLLER_ERRAND_STOP;
        message.number = effect->errand_stop.errand;
        send_to(controller, effect->errand_stop.machine, &message);
        break;
    }
}

void effects_carry_out(struct controller *controller, const struct pending *pending)
{
    /* Before the effects: what they send must come behind the Welcome. */
    if (pending->event.kind == EVENT_MACHINE_HELLO)
        machines_hello_applied(controller, pending);
    struct arena arena ARENA_CLEANUP = {0};
    struct starts starts = {.common = {.arena = &arena, .objects = core_objects(controller->core)}};
    for (size_t i = 0; i < controller->effects.list.len; i++)
        carry_out(controller, &starts, pending, &controller->effects.list.items[i]);
    buf_done(&starts.bytes);
    if (pending->event.kind == EVENT_REPORTS && pending->conn) {
        struct from_controller ack = {.kind = FROM_CONTROLLER_REPORTS_ACK,
                                      .number = pending->event.reports.reports.number};
        wire_send_controller(pending->conn, &ack);
    }
}
