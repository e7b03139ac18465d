/* Connections that broke between two parties that still live: the messages in flight on them are lost.
 *
 * Every party whose connection to a host ends reports this to the head, because its last messages may not
 * have arrived. Usually the host itself is lost, and the head sees that too within HEAD_BREAK_NS. Otherwise
 * the head ends the launches that had both hosts in their gang at the time of the break. Values that were
 * being put, or were moving between the two, fail as well. */
#include "flow/island/head.h"

static bool head_launch_has(const struct head_launch *launch, uint32_t host)
{
    for (uint32_t k = 0; k < launch->need_count; k++)
        if (launch->needs[k].host == host)
            return true;
    return false;
}

/* Whether a shard of the value is on its way between two hosts. */
static bool head_object_crosses(const struct head_object *object, uint32_t host, uint32_t other)
{
    for (uint32_t i = 0; object->from && !object->parked && i < object->places->count; i++) {
        uint32_t a = object->from->places[i].host, b = object->places->places[i].host;
        if (!object->there[i] && ((a == host && b == other) || (a == other && b == host)))
            return true;
    }
    return false;
}

static void head_moves_broke(const struct head *head, struct head_client *client, uint32_t host,
                             uint32_t other)
{
    for (size_t i = 0; i < client->object_list.len; i++) {
        struct head_object *object = client->object_list.items[i];
        if (object->broke_ns != 0 || !head_object_crosses(object, host, other))
            continue;
        object->broke_ns = head->now_ns + 1;
        client->broke = true;
    }
}

void head_hosts_broke(struct head *head, uint32_t host, uint32_t other)
{
    if (other >= head->hosts.len || !head->hosts.items[other].alive)
        return;
    head->tally.breaks++;
    for (size_t i = 0; i < head->running.len; i++) {
        struct head_launch *launch = head->running.items[i];
        if (launch->broke_ns == 0 && head_launch_has(launch, host) && head_launch_has(launch, other)) {
            launch->broke_ns = head->now_ns + 1;
            launch->broke[0] = host;
            launch->broke[1] = other;
        }
    }
    for (size_t c = 0; c < head->clients.len; c++)
        head_moves_broke(head, head->clients.items[c], host, other);
}

static bool head_object_awaits(const struct head_object *object, uint32_t host)
{
    for (uint32_t i = 0; object->missing > 0 && i < object->places->count; i++)
        if (object->places->places[i].host == host && !object->there[i])
            return true;
    return false;
}

void head_client_broke(struct head *head, struct head_client *client, uint32_t host)
{
    bool to_come = host >= head->hosts.len || head->hosts.items[host].vacant;
    if (!to_come && !head->hosts.items[host].alive)
        return;
    head->tally.breaks++;
    for (size_t i = 0; i < client->object_list.len; i++) {
        struct head_object *object = client->object_list.items[i];
        if (object->broke_ns == 0 && !object->from && head_object_awaits(object, host)) {
            object->broke_ns = head->now_ns + 1;
            client->broke = true;
        }
    }
}

static bool head_break_is_over(const struct head *head, int64_t broke_ns)
{
    return broke_ns != 0 && head->now_ns - broke_ns >= HEAD_BREAK_NS;
}

/* Whether a host of the value has yet to join this head, or to complete its report. */
static bool head_object_is_to_be_told(const struct head *head, const struct head_object *object)
{
    for (uint32_t i = 0; i < object->places->count && !object->births; i++)
        if (!object->there[i] && !head->hosts.items[object->places->places[i].host].told_all)
            return true;
    return object->births != NULL;
}

/* Fails the values whose connection broke HEAD_BREAK_NS ago and that are still incomplete; the shards that
 * have arrived are released. */
static void head_client_judge_broken(struct head *head, struct head_client *client,
                                     struct flow_effects *effects)
{
    client->broke = false;
    for (size_t i = client->object_list.len; i-- > 0;) {
        struct head_object *object = client->object_list.items[i];
        if (object->missing == 0 || object->broke_ns == 0)
            continue;
        if (!head_break_is_over(head, object->broke_ns) || head_object_is_to_be_told(head, object)) {
            client->broke = true;
            continue;
        }
        struct fault fault =
            fault_make(FAULT_CANCELLED, 0, 0,
                       object->from ? "the connection between two hosts broke while the value moved"
                                    : "the client's connection to a host broke while it put the value");
        fault.lost = true;
        head_object_fail(client, object, &fault, effects);
        head_object_try_release(head, client, object, effects);
    }
}

void head_judge_broken(struct head *head, struct flow_effects *effects)
{
    for (size_t i = 0; i < head->running.len; i++) {
        struct head_launch *launch = head->running.items[i];
        if (!head_break_is_over(head, launch->broke_ns))
            continue;
        struct fault fault =
            fault_make(FAULT_CANCELLED, launch->entry.launch, 0,
                       "the connection between hosts %u and %u broke during launch %llu", launch->broke[0],
                       launch->broke[1], (unsigned long long)launch->entry.launch);
        fault.lost = true;
        launch->broke_ns = 0;
        launch->lost = true;
        head_launch_tell_lost(head, launch, &fault, effects);
    }
    for (size_t c = 0; c < head->clients.len; c++)
        if (head->clients.items[c]->broke)
            head_client_judge_broken(head, head->clients.items[c], effects);
}
