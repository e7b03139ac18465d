/* Bytes of a client, in pieces: frames, entries, and what the head makes of them. The first byte says how
 * long the pieces are, the second where reading pauses. */
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "flow/island/machine.h"
#include "flow/wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORKER = 1, CLIENT = 2 };

struct world {
    struct head *head;
    struct flow_effects effects;
    uint32_t pauses, entries;
    bool closed;
};

struct input {
    const uint8_t *data;
    size_t left, piece;
};

static ssize_t input_read(struct wire *wire, void *data, size_t len)
{
    struct input *input = wire->carrier;
    if (input->left == 0)
        return -1;
    len = len < input->piece ? len : input->piece;
    len = len < input->left ? len : input->left;
    memcpy(data, input->data, len);
    input->data += len;
    input->left -= len;
    return (ssize_t)len;
}

static ssize_t input_write(struct wire *wire, const void *data, size_t len)
{
    return (ssize_t)len;
}

static void input_close(struct wire *wire)
{
}

/* A step to another carrier: refused, taken, or the last word on this one, as its first byte says. */
static int input_step(struct wire *wire, enum wire_step step, struct str data, struct str rest)
{
    struct input *input = wire->carrier;
    CHECK(step != WIRE_ANNOUNCE && step < WIRE_END && data.len <= WIRE_STEP_MAX);
    int how = data.len ? data.data[0] % 3 : 0;
    if (how == 1)
        input->left = 0;
    return how == 2 ? -1 : how;
}

static const struct wire_ops input_ops = {
    .name = "input", .read = input_read, .write = input_write, .close = input_close, .step = input_step};

static void world_feed(struct world *world, const struct flow_event *event)
{
    head_step(world->head, event, &world->effects);
    for (size_t i = 0; i < world->effects.list.len; i++) {
        const struct flow_effect *effect = &world->effects.list.items[i];
        world->closed |= effect->kind == FLOW_CLOSE && effect->peer == CLIENT;
        CHECK(effect->kind == FLOW_CLOSE || effect->kind == FLOW_SEND);
    }
    flow_effects_clear(&world->effects);
}

static void world_say(struct world *world, uint64_t peer, struct flow_entry entry, struct str tail)
{
    entry.tail_bytes = (uint32_t)tail.len;
    world_feed(world, &(struct flow_event){.kind = FLOW_OPENED, .peer = peer, .token = 7});
    world_feed(world, &(struct flow_event){.kind = FLOW_ENTRY, .peer = peer, .entry = &entry, .tail = tail});
}

static bool take_entry(void *context, const struct flow_entry *entry, struct str tail)
{
    struct world *world = context;
    world_feed(world, &(struct flow_event){.kind = FLOW_ENTRY, .peer = CLIENT, .entry = entry, .tail = tail});
    return !world->closed && ++world->entries % world->pauses != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct world world = {.head = head_new(&(struct head_options){.secret = 1}), .pauses = 1 + data[1] % 7};
    world_say(&world, WORKER, (struct flow_entry){.kind = ENTRY_HELLO_WORKER, .count = 4, .args = {1 << 20}},
              (struct str){"main\0address", 12});
    world_say(&world, CLIENT, (struct flow_entry){.kind = ENTRY_HELLO_CLIENT, .count = 1}, STR("client"));
    struct input input = {data + 2, size - 2, 1 + data[0]};
    struct wire *wire = mem_alloc(sizeof *wire);
    wire->ops = &input_ops;
    wire->carrier = &input;
    while (!world.closed && flow_wire_read(wire, take_entry, &world, NULL) == 0)
        ;
    flow_wire_free(wire);
    world_feed(&world, &(struct flow_event){.kind = FLOW_CLOSED, .peer = CLIENT});
    struct head_counts counts = head_count(world.head);
    CHECK(counts.clients == 0 && counts.objects == 0 && counts.meshes == 0);
    flow_effects_done(&world.effects);
    head_free(world.head);
    return 0;
}
