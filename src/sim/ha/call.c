/* call.c - calls of a controller to etcd, made like those of host/store/etcd/client.c: members are asked in
 * turn until one answers or the time has expired. An abandoned attempt may still be carried out, so a call
 * that is given up has an unknown outcome. */
#include "sim/ha/world.h"

static void call_begin_attempt(struct ha_controller *controller, struct ha_call *call, bool keeper)
{
    struct ha_world *world = controller->world;
    struct ha_message *message = ha_message_new();
    call->id = ++world->next_id;
    message->controller = controller->index;
    message->life = controller->life;
    message->call = call->id;
    message->keeper = keeper;
    message->member = call->member;
    message->kind = call->kind;
    message->lease = call->lease;
    message->txn = call->txn;
    if (call->txn)
        call->txn->refs++;
    ha_after(world, world->swarm.call_timeout_ns, HA_SILENCE, controller->index, call->id, keeper);
    if (!ha_passes(world, controller->index, HA_PLACE_MEMBER + call->member, true)) {
        ha_message_free(message);
        return;
    }
    ha_after(world, ha_delay(world), HA_REQUEST, call->member, 0, 0)->message = message;
}

void call_drop(struct ha_call *call)
{
    uint32_t member = call->member;
    sim_txn_unref(call->txn);
    *call = (struct ha_call){.member = member};
}

static void call_begin(struct ha_controller *controller, bool keeper, enum ha_ask ask,
                       enum ha_request_kind kind, struct sim_txn *txn, int64_t lease, int64_t until_ns)
{
    struct ha_call *call = keeper ? &controller->keeper : &controller->main;
    CHECK(call->id == 0 && !call->txn);
    *call = (struct ha_call){.ask = ask,
                             .kind = kind,
                             .txn = txn,
                             .lease = lease,
                             .member = call->member,
                             .asked_ns = ha_mono(controller),
                             .until_ns = until_ns};
    call_begin_attempt(controller, call, keeper);
}

void call_txn(struct ha_controller *controller, enum ha_ask ask, struct sim_txn *txn, int64_t until_ns,
              bool while_leads)
{
    call_begin(controller, false, ask, CALL_TXN, txn, 0, until_ns);
    controller->main.while_leads = while_leads;
}

void call_lease(struct ha_controller *controller, bool keeper, enum ha_ask ask, enum ha_request_kind kind,
                int64_t lease, int64_t until_ns)
{
    call_begin(controller, keeper, ask, kind, NULL, lease, until_ns);
}

/* Ends a call, and hands on its answer, or `rc` without an answer. */
static void call_end(struct ha_controller *controller, bool keeper, int rc, const struct ha_message *answer)
{
    struct ha_call *call = keeper ? &controller->keeper : &controller->main;
    enum ha_ask ask = call->ask;
    int64_t asked_ns = call->asked_ns;
    if (call->while_leads && call->unsure && rc < 0)
        rc = ERROR_FENCED; /* an earlier attempt may have carried out what is refused now */
    call_drop(call);
    call->asked_ns = asked_ns;
    if (keeper)
        lead_kept(controller, rc, answer);
    else if (ask >= ASK_PART && ask <= ASK_TRIM)
        append_answered(controller, ask, rc, answer);
    else
        lead_answered(controller, ask, rc, answer);
}

/* Asks the next member after a missing answer, unless the time has expired. */
static void call_again(struct ha_controller *controller, bool keeper)
{
    struct ha_call *call = keeper ? &controller->keeper : &controller->main;
    int64_t until_ns = call->while_leads ? controller->lease_until_ns : call->until_ns;
    call->member = (call->member + 1) % HA_MEMBERS;
    if (ha_mono(controller) < until_ns)
        call_begin_attempt(controller, call, keeper);
    else
        call_end(controller, keeper, call->while_leads ? ERROR_FENCED : ERROR_UNAVAILABLE, NULL);
}

static struct ha_call *call_find(struct ha_controller *controller, const struct ha_event *event)
{
    struct ha_call *call = event->number ? &controller->keeper : &controller->main;
    return event->id && call->id == event->id ? call : NULL;
}

void call_answered(struct ha_world *world, struct ha_event *event)
{
    struct ha_controller *controller = &world->controllers[event->who];
    bool keeper = event->number;
    if (!call_find(controller, event) || ha_stands(controller, event, keeper))
        return;
    const struct ha_message *answer = event->message;
    if (answer->rc == ERROR_UNAVAILABLE)
        call_again(controller, keeper);
    else
        call_end(controller, keeper, answer->rc, answer);
}

void call_silence(struct ha_world *world, struct ha_event *event)
{
    struct ha_controller *controller = &world->controllers[event->who];
    struct ha_call *call = call_find(controller, event);
    if (!call || ha_stands(controller, event, event->number))
        return;
    call->unsure = true;
    call_again(controller, event->number);
}
