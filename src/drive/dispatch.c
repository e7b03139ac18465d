/* dispatch.c - turns effects into messages, replies and changes, after their record is durable. Messages to a
 * machine without a session are sent again when the machine says Hello. */
#include "drive/internal.h"

#include "base/hash.h"
#include "core/agent/codec.h"
#include "core/agent/rank_table.h"
#include "core/launch/launch.h"

drive_session driver_session(const struct driver *driver, machine_id machine)
{
    if (!driver->machines)
        return 0; /* the records of a start are applied before any agent's message */
    const struct machine_sessions *sessions = &driver->machines[machine];
    return sessions->welcomed ? sessions->session : 0;
}

static void send(struct driver *driver, drive_session session, const struct from_controller *message)
{
    driver->ports.net.send(driver->ports.net.context, session, message);
}

static void send_to(struct driver *driver, machine_id machine, const struct from_controller *message)
{
    drive_session session = driver_session(driver, machine);
    if (session)
        send(driver, session, message);
}

/* --- starts ----------------------------------------------------------------------------------- */

/* The starts of one event. A gang's rank table is packed with the first of them and sent once to each
 * machine: a copy in each START would be N times N entries. */
struct starts {
    struct arena arena; /* of the parts that they share */
    struct launch_common common;
    const struct rank_table_entry *packed_of; /* entries that `rank_table` was packed from */
    struct buf bytes;                    /* of it */
    struct packed_rank_table rank_table;
    obj_id key_of; /* the JobSet and attempt whose key `gang_key` is; 0: none yet */
    int32_t key_attempt;
    uint8_t gang_key[GANG_KEY_BYTES];
};

/* Copies the key of the attempt's gang, which is made for the first of its messages. */
static void copy_gang_key(const struct driver *driver, struct starts *starts, obj_id jobset, int32_t attempt,
                          uint8_t ret_key[GANG_KEY_BYTES])
{
    CHECK(jobset != 0);
    if (starts->key_of != jobset || starts->key_attempt != attempt)
        core_gang_key(driver->core, jobset, attempt, starts->gang_key);
    starts->key_of = jobset;
    starts->key_attempt = attempt;
    memcpy(ret_key, starts->gang_key, GANG_KEY_BYTES);
}

static void pack_rank_table(struct starts *starts, const struct gang_rank_table *rank_table)
{
    if (starts->packed_of == rank_table->entries)
        return;
    buf_clear(&starts->bytes);
    codec_pack_rank_table(&starts->bytes, rank_table);
    uint64_t hash = hash64(0, starts->bytes.data, starts->bytes.len);
    starts->rank_table = (struct packed_rank_table){hash > 0 ? hash : 1, buf_str(&starts->bytes)};
    starts->packed_of = rank_table->entries;
}

static void send_rank_table(struct driver *driver, struct starts *starts, struct machine_sessions *sessions,
                            struct task_launch *launch)
{
    if (!sessions->takes_rank_tables || launch->rank_table.count <= driver->options.rank_table_inside_max)
        return;
    pack_rank_table(starts, &launch->rank_table);
    if (sessions->rank_table != starts->rank_table.number) {
        struct from_controller message = {.kind = FROM_CONTROLLER_RANK_TABLE,
                                          .rank_table = starts->rank_table};
        send(driver, sessions->session, &message);
        sessions->rank_table = starts->rank_table.number;
        driver->stats.rank_tables++;
    }
    rank_table_take_out(launch, starts->rank_table.number);
}

static void send_start(struct driver *driver, struct starts *starts, const struct task *task)
{
    drive_session session = driver_session(driver, task->machine);
    if (!session)
        return;
    struct from_controller message = {.kind = FROM_CONTROLLER_START};
    if (starts->common.machine_mttf_s == 0)
        starts->common.machine_mttf_s = core_machine_mttf_s(driver->core);
    task_launch_build_next(&starts->common, task, core_cluster(driver->core), &driver->start_scratch,
                           &message.start);
    copy_gang_key(driver, starts, message.start.jobset, message.start.attempt, message.start.gang_key);
    send_rank_table(driver, starts, &driver->machines[task->machine], &message.start);
    send(driver, session, &message);
    arena_clear(&driver->start_scratch);
}

static void send_rejoin(struct driver *driver, struct starts *starts, const struct task *task)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct from_controller message = {.kind = FROM_CONTROLLER_REJOIN};
    task_rejoin_build(task, core_cluster(driver->core), &arena, &message.rejoin);
    copy_gang_key(driver, starts, task->job->jobset->uid, message.rejoin.attempt, message.rejoin.gang_key);
    send_to(driver, task->machine, &message);
}

/* --- each effect ------------------------------------------------------------------------------ */

static void tell_changed(struct driver *driver, const struct event *cause, const struct effect *effect)
{
    const struct sink_port *sinks = &driver->ports.sinks;
    if (sinks->changed)
        sinks->changed(sinks->context, cause, effect);
    if (effect->changed.type == CHANGE_DELETED && effect->changed.object.kind == OBJECT_JOBSET)
        job_steps_forget(driver, effect->changed.object.jobset->uid);
}

static void tell_reply(struct driver *driver, const struct pending *pending, const struct effect *effect)
{
    const struct sink_port *sinks = &driver->ports.sinks;
    if (pending->request && sinks->reply)
        sinks->reply(sinks->context, pending->request, effect);
}

static void apply_to_switch(struct driver *driver, const struct effect *effect)
{
    const struct switch_port *switches = &driver->ports.switches;
    if (switches->apply)
        switches->apply(switches->context, &effect->switch_apply);
}

/* Sends an order exactly as the core has made it. */
static void send_order(struct driver *driver, const struct effect *effect)
{
    struct from_controller message = {0};
    switch (effect->kind) {
    case EFFECT_TASK_STOP:
        message.kind = FROM_CONTROLLER_STOP;
        message.stop = effect->stop.stop;
        send_to(driver, effect->stop.machine, &message);
        break;
    case EFFECT_TASK_NOTICE:
        message.kind = FROM_CONTROLLER_NOTICE;
        message.notice = effect->notice.notice;
        send_to(driver, effect->notice.machine, &message);
        break;
    case EFFECT_TASK_FORGET:
        message.kind = FROM_CONTROLLER_FORGET;
        message.task = effect->forget.task;
        send_to(driver, effect->forget.machine, &message);
        break;
    case EFFECT_ERRAND_START:
        message.kind = FROM_CONTROLLER_ERRAND_START;
        message.errand_start = effect->errand_start.start;
        send_to(driver, effect->errand_start.machine, &message);
        break;
    case EFFECT_ERRAND_STOP:
        message.kind = FROM_CONTROLLER_ERRAND_STOP;
        message.number = effect->errand_stop.errand;
        send_to(driver, effect->errand_stop.machine, &message);
        break;
    case EFFECT_SAY_AGAIN:
        message.kind = FROM_CONTROLLER_SAY_AGAIN;
        send_to(driver, effect->say_again.machine, &message);
        break;
    default:
        CHECK_UNREACHABLE();
    }
}

static void carry_out(struct driver *driver, struct starts *starts, const struct pending *pending,
                      const struct effect *effect)
{
    switch (effect->kind) {
    case EFFECT_REPLY:
        tell_reply(driver, pending, effect);
        break;
    case EFFECT_WARNING: /* of a check, which has no step */
        break;
    case EFFECT_CHANGED:
        tell_changed(driver, &pending->event, effect);
        break;
    case EFFECT_TASK_START:
        send_start(driver, starts, effect->start);
        break;
    case EFFECT_TASK_REJOIN:
        send_rejoin(driver, starts, effect->rejoin);
        break;
    case EFFECT_SWITCH_APPLY:
        apply_to_switch(driver, effect);
        break;
    case EFFECT_TASK_STOP:
    case EFFECT_TASK_NOTICE:
    case EFFECT_TASK_FORGET:
    case EFFECT_ERRAND_START:
    case EFFECT_ERRAND_STOP:
    case EFFECT_SAY_AGAIN:
        send_order(driver, effect);
        break;
    }
}

void dispatch(struct driver *driver, const struct pending *pending)
{
    /* Before the effects, because their messages must follow the Welcome. */
    if (pending->event.kind == EVENT_MACHINE_HELLO)
        sessions_hello_applied(driver, pending);
    struct starts starts = {0};
    starts.common.arena = &starts.arena;
    starts.common.objects = core_objects(driver->core);
    for (size_t i = 0; i < driver->effects.list.len; i++)
        carry_out(driver, &starts, pending, &driver->effects.list.items[i]);
    buf_done(&starts.bytes);
    arena_done(&starts.arena);
    if (pending->event.kind == EVENT_REPORTS && pending->session) {
        struct from_controller ack = {.kind = FROM_CONTROLLER_REPORTS_ACK,
                                      .number = pending->event.reports.reports.number};
        send(driver, pending->session, &ack);
    }
}
