/* client.c - clients that create, replace and delete ConfigMaps and JobSets at any controller, one write at a
 * time. A write without an answer is repeated at the next controller until there is one, with the same id, so
 * that it is applied once. Acknowledged writes are remembered for the oracle. */
#include "sim/ha/world.h"

#include "core/receipt/receipt.h"
#include "core/log/record.h"

#define ANSWER_NS (2 * NS_PER_SECOND) /* how long a client waits */

/* --- what a client wants ------------------------------------------------------------------------ */

static void put_body(const struct ha_client *client, const struct ha_slot *slot, struct buf *body)
{
    if (slot->kind == OBJECT_CONFIG_MAP) {
        buf_printf(body,
                   "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\"},"
                   "\"data\":{\"n\":\"%llu\",\"text\":\"",
                   slot->name, (unsigned long long)client->sent);
        for (uint64_t i = 0; i < client->sent % 7 * 40; i++)
            buf_add_char(body, 'x');
        buf_printf(body, "\"}}");
        return;
    }
    buf_printf(
        body,
        "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"%s\"},"
        "\"spec\":{\"failurePolicy\":{\"maxRestarts\":30},\"suspend\":%s,\"replicatedJobs\":[{\"name\":\"w\","
        "\"replicas\":1,\"template\":{"
        "\"spec\":{\"parallelism\":%llu,\"completions\":%llu,\"template\":{\"spec\":{"
        "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"none\",\"command\":"
        "[\"sim\",\"%llu\"],\"resources\":{\"limits\":{\"google.com/tpu\":2}}}]}}}}}]}}",
        slot->name, client->sent % 3 == 0 ? "true" : "false", (unsigned long long)(slot->name[0] % 3 + 1),
        (unsigned long long)(slot->name[0] % 3 + 1),
        (unsigned long long)(client->sent % 4 == 0 ? 500 : 3000 + client->sent % 11 * 4000));
}

static void choose_write(struct ha_world *world, struct ha_client *client)
{
    uint32_t index = (uint32_t)(client - world->clients);
    client->slot = (uint32_t)ha_draw(world, 0, HA_SLOTS - 1);
    struct ha_slot *slot = &client->slots[client->slot];
    client->tries = 0;
    client->sent++;
    if (!slot->name[0]) {
        *slot = (struct ha_slot){.kind = ha_chance(world, 700000) ? OBJECT_CONFIG_MAP : OBJECT_JOBSET};
        client->made++;
        snprintf(slot->name, sizeof(slot->name), "%c%u-%llu", 'a' + (char)(client->made % 3), index,
                 (unsigned long long)client->made);
        client->verb = WRITE_CREATE;
    } else if (ha_chance(world, 250000)) {
        client->verb = WRITE_DELETE;
        slot->promised = false;
    } else if (slot->kind == OBJECT_CONFIG_MAP) {
        client->verb = WRITE_REPLACE;
    }
}

/* Returns whether any controller has the log's level with receipts. Then every leader has it, or can append
 * nothing. */
static bool receipts_are_kept(const struct ha_world *world)
{
    for (uint32_t i = 0; i < world->swarm.controllers; i++)
        if (world->controllers[i].core && core_level(world->controllers[i].core) >= LEVEL_RECEIPTS)
            return true;
    return false;
}

/* Gives the write its id: the client and the number of its write. */
static void put_id(const struct ha_world *world, const struct ha_client *client, struct ha_message *message)
{
    char id[REQUEST_ID_BYTES] = {0};
    uint64_t number = (uint64_t)(client - world->clients) << 32 | client->sent;
    if (world->options.plant == PLANT_NEW_IDS)
        number = UINT64_MAX - message->number;
    memcpy(id, &number, sizeof number);
    message->write.request = arena_str(&message->arena, (struct str){id, sizeof id});
    message->write.content = client->sent;
}

static void send_write(struct ha_world *world, uint32_t index)
{
    struct ha_client *client = &world->clients[index];
    const struct ha_slot *slot = &client->slots[client->slot];
    struct ha_message *message = ha_message_new();
    struct buf body BUF_CLEANUP = {0};
    if (client->verb != WRITE_DELETE)
        put_body(client, slot, &body);
    message->client = index;
    message->number = client->number;
    message->controller = client->at;
    message->write = (struct write_event){.verb = client->verb,
                                          .object = slot->kind,
                                          .namespace_ = STR("default"),
                                          .name = arena_str(&message->arena, str_from(slot->name)),
                                          .body = arena_str(&message->arena, buf_str(&body)),
                                          .grace_s = -1,
                                          .user = STR("torture")};
    put_id(world, client, message);
    if (client->tries++ > 0)
        ha_reach(world, HA_REPEATED);
    else
        client->noted = receipts_are_kept(world);
    if (client->tries == 1)
        client->first_ns = world->now_ns;
    if (!ha_passes(world, HA_PLACE_CLIENT + index, client->at, true)) {
        ha_message_free(message);
        return;
    }
    ha_after(world, ha_delay(world), HA_WRITE, client->at, 0, 0)->message = message;
}

void ha_client_act(struct ha_world *world, const struct ha_event *event)
{
    struct ha_client *client = &world->clients[event->who];
    if (event->number != client->number)
        return; /* the write was answered meanwhile */
    if (client->tries > 0)
        client->at = (client->at + 1) % world->swarm.controllers;
    client->number++;
    if (!client->verb)
        choose_write(world, client);
    if (client->verb)
        send_write(world, event->who);
    ha_after(world, client->verb ? ANSWER_NS : NS_PER_SECOND, HA_CLIENT, event->who, 0, client->number);
}

/* --- answers ------------------------------------------------------------------------------------ */

void ha_client_answer(struct ha_world *world, struct ha_message *message, uint32_t from)
{
    uint32_t place = HA_PLACE_CLIENT + message->client;
    prepared_write_free(message->write.prepared);
    message->write.prepared = NULL;
    bool comes = ha_passes(world, from, place, true);
    if (message->forwarded) /* through the standby that received it */
        comes = ha_passes(world, from, message->controller, true) &&
                ha_passes(world, message->controller, place, true);
    if (!comes) {
        ha_message_free(message);
        return;
    }
    ha_after(world, ha_delay(world), HA_REPLY, message->client, 0, 0)->message = message;
}

/* Updates what the client knows of its object from the reply. */
static void learn(struct ha_world *world, struct ha_client *client, const struct ha_message *reply)
{
    struct ha_slot *slot = &client->slots[client->slot];
    bool again = client->tries > 1; /* an earlier attempt may have succeeded */
    bool done = reply->code == 200 || reply->code == 201;
    bool remembered = client->noted && world->now_ns - client->first_ns < RECEIPT_AGE_NS;
    if (again && remembered && (reply->code == 404 || reply->code == 409)) {
        ha_fail(world, TORTURE_SAFETY, "the %s of %s came again and is answered with %d",
                client->verb == WRITE_CREATE ? "create" : "delete", slot->name, reply->code);
    } else if (client->verb == WRITE_DELETE) {
        if (done || reply->code == 202 || reply->code == 404)
            *slot = (struct ha_slot){0};
    } else if (done || (client->verb == WRITE_CREATE && again && reply->code == 409)) {
        slot->promised = true;
        world->outcome->jobsets += slot->kind == OBJECT_JOBSET && client->verb == WRITE_CREATE;
        if (reply->version > 0 && reply->version < slot->version)
            ha_fail(world, TORTURE_SAFETY, "%s was acknowledged as of record %llu, and later as of %llu",
                    slot->name, (unsigned long long)slot->version, (unsigned long long)reply->version);
        slot->version = reply->version > slot->version ? reply->version : slot->version;
    } else {
        ha_fail(world, TORTURE_SAFETY, "the %s of %s is answered with %d",
                client->verb == WRITE_CREATE ? "create" : "update", slot->name, reply->code);
    }
    ha_reach(world, HA_ACKNOWLEDGED);
    world->written += world->healing;
}

void ha_client_hears(struct ha_world *world, const struct ha_event *event)
{
    struct ha_client *client = &world->clients[event->who];
    const struct ha_message *reply = event->message;
    if (reply->number != client->number)
        return; /* the client has abandoned that connection */
    client->number++;
    int64_t pause_ns = ha_draw(world, NS_PER_MS, 50 * NS_PER_MS);
    if (reply->stale)
        ha_reach(world, HA_STALE);
    if (reply->code != 0 && reply->code != 503 && reply->code != 507 && !reply->stale) {
        learn(world, client, reply);
        client->verb = 0;
        client->tries = 0;
        pause_ns = ha_draw_about(world, world->swarm.client_every_ns);
    } else if (client->tries > 20) {
        pause_ns = NS_PER_SECOND;
    }
    ha_after(world, pause_ns, HA_CLIENT, event->who, 0, client->number);
}
