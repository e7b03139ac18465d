/* Writes and their packets: cut at the writer, routed at each chip, put together at the destination.
 *
 * The written chip counts the packets of a write that have arrived. The writer learns of a dropped packet
 * from its own net or by a notice (struct chips_lost), and reports the write as lost once. */
#include <string.h>

#include "sim/fabric/chips_private.h"

/* writes of a chip that have arrived in part; more are refused */
enum { PARTS_MAX = 1 << 16 };

/* A write of several packets that has arrived in part. */
struct assembly {
    uint64_t key;
    uint32_t left; /* packets */
    size_t place;  /* index in the chip's assemblies */
};

/* --- cargo and queues --------------------------------------------------------------------------------- */

struct cargo *cargo_new(uint32_t bytes)
{
    return mem_alloc(sizeof(struct cargo) + bytes);
}

void cargo_release(struct cargo *cargo)
{
    CHECK(cargo->refs > 0);
    if (--cargo->refs == 0)
        mem_free(cargo);
}

void packet_put(struct packet_queue *queue, const struct packet *packet)
{
    if (queue->count == queue->cap) {
        uint32_t cap = queue->cap ? 2 * queue->cap : 4;
        struct packet *items = mem_alloc(cap * sizeof *items);
        for (uint32_t i = 0; i < queue->count; i++)
            items[i] = queue->items[(queue->first + i) % queue->cap];
        mem_free(queue->items);
        *queue = (struct packet_queue){items, 0, queue->count, cap};
    }
    queue->items[(queue->first + queue->count++) % queue->cap] = *packet;
}

struct packet packet_take(struct packet_queue *queue)
{
    CHECK(queue->count > 0);
    struct packet packet = queue->items[queue->first];
    queue->first = (queue->first + 1) % queue->cap;
    queue->count--;
    return packet;
}

/* --- what becomes of packets -------------------------------------------------------------------------- */

static void drop_packet(struct chips *net, const struct packet *packet)
{
    const struct cargo *cargo = packet->cargo;
    struct chips_lost lost = {
        .from = cargo->from, .serial = cargo->serial, .session = cargo->session, .tag = cargo->tag};
    CHECK(net->counts.waiting > 0);
    net->counts.waiting--;
    if (chip_here(net, cargo->from)) {
        chips_put_lost(net, &lost);
        return;
    }
    if (net->notices.len > net->notices_taken) { /* one notice for neighbouring packets of a write */
        const struct chips_lost *last = &vec_last(&net->notices);
        if (last->from == lost.from && last->serial == lost.serial)
            return;
    }
    vec_push(&net->notices, lost);
}

void packet_refuse(struct chips *net, const struct packet *packet)
{
    net->counts.refused++;
    drop_packet(net, packet);
}

void packet_lose(struct chips *net, const struct packet *packet)
{
    net->counts.lost++;
    drop_packet(net, packet);
}

void chips_put_lost(struct chips *net, const struct chips_lost *lost)
{
    if (lost->from >= net->chip_count || !chip_here(net, lost->from))
        return; /* a notice for another writer */
    struct chip *writer = &net->chips[lost->from];
    if (writer->session != lost->session || u64_map_get(&writer->lost, 1 + (uint64_t)lost->serial))
        return;
    if (writer->lost.len == PARTS_MAX)
        u64_map_done(&writer->lost);
    u64_map_put(&writer->lost, 1 + (uint64_t)lost->serial, writer);
    struct chips_done done = {.tag = lost->tag,
                              .from = lost->from,
                              .at = CHIPS_NONE,
                              .session = lost->session,
                              .at_ns = net->now_ns};
    vec_push(&net->done, done);
}

bool chips_take_lost(struct chips *net, struct chips_lost *ret_lost)
{
    if (net->notices_taken == net->notices.len) {
        vec_clear(&net->notices);
        net->notices_taken = 0;
        return false;
    }
    *ret_lost = net->notices.items[net->notices_taken++];
    return true;
}

static void forget_assembly(struct chip *chip, struct assembly *assembly)
{
    struct assembly *last = vec_pop(&chip->assemblies);
    if (last != assembly)
        chip->assemblies.items[assembly->place] = last;
    last->place = assembly->place;
    u64_map_remove(&chip->assembly_of, assembly->key);
    mem_free(assembly);
}

void chip_forget_writes(struct chip *chip)
{
    for (size_t i = 0; i < chip->assemblies.len; i++)
        mem_free(chip->assemblies.items[i]);
    vec_done(&chip->assemblies);
    u64_map_done(&chip->assembly_of);
    u64_map_done(&chip->lost);
}

/* Counts an arrived packet of a write. Returns whether the write is whole. *ret_room is false if the chip has
 * too many incomplete writes. */
static bool completes(struct chip *chip, const struct cargo *cargo, bool *ret_room)
{
    uint64_t key = (uint64_t)cargo->from << 32 | cargo->serial;
    struct assembly *assembly = u64_map_get(&chip->assembly_of, key);
    *ret_room = true;
    if (cargo->packets == 1)
        return true;
    if (!assembly) {
        *ret_room = chip->assemblies.len < PARTS_MAX;
        if (!*ret_room)
            return false;
        assembly = mem_alloc(sizeof *assembly);
        *assembly = (struct assembly){.key = key, .left = cargo->packets, .place = chip->assemblies.len};
        vec_push(&chip->assemblies, assembly);
        u64_map_put(&chip->assembly_of, key, assembly);
    }
    bool whole = --assembly->left == 0;
    if (whole)
        forget_assembly(chip, assembly);
    return whole;
}

/* Puts a packet into the memory of its destination chip. */
static void packet_deliver(struct chips *net, uint32_t index, const struct packet *packet)
{
    struct chip *chip = &net->chips[index];
    const struct cargo *cargo = packet->cargo;
    uint64_t at = (uint64_t)cargo->address + packet->offset;
    bool fits = at <= net->settings.memory_bytes && packet->len <= net->settings.memory_bytes - at;
    bool whole = fits && completes(chip, cargo, &fits);
    if (!fits) {
        packet_refuse(net, packet);
        return;
    }
    memcpy(chip->memory + at, cargo->bytes + packet->offset, packet->len);
    CHECK(net->counts.waiting > 0);
    net->counts.waiting--;
    net->counts.delivered++;
    if (!whole)
        return;
    struct chips_done done = {.tag = cargo->tag,
                              .from = cargo->from,
                              .at = index,
                              .session = cargo->session,
                              .delivered = true,
                              .at_ns = net->now_ns};
    vec_push(&net->done, done);
}

bool packet_route(struct chips *net, uint32_t index, struct packet *packet, bool born)
{
    const struct chip *chip = &net->chips[index];
    if (chip->session != packet->cargo->session || packet->to >= chip->table_chips) {
        packet_refuse(net, packet);
        return false;
    }
    if (packet->to == chip->number) {
        packet_deliver(net, index, packet);
        return false;
    }
    packet->entry = (born ? chip->inject : chip->transit)[packet->to * chip->stride];
    if (packet->entry >= ROUTE_NONE || route_port(packet->entry) >= CHIP_PORTS ||
        route_vc(packet->entry) >= ROUTE_VCS) {
        packet_refuse(net, packet);
        return false;
    }
    return true;
}

/* --- writes ------------------------------------------------------------------------------------------- */

void chips_write(struct chips *net, uint32_t index, uint16_t to, uint32_t address, const void *bytes,
                 uint32_t len, uint64_t tag)
{
    CHECK(index < net->chip_count && chip_here(net, index) && len > 0 && len <= CHIPS_MEMORY_MAX);
    struct chip *chip = &net->chips[index];
    struct cargo *cargo = cargo_new(len);
    memcpy(cargo->bytes, bytes, len);
    cargo->refs = 1; /* this function's reference */
    cargo->from = index;
    cargo->serial = chip->serial++;
    cargo->session = chip->session;
    cargo->tag = tag;
    cargo->address = address;
    cargo->packets = (len + CHIPS_PACKET_BYTES - 1) / CHIPS_PACKET_BYTES;
    net->counts.waiting += cargo->packets;
    for (uint32_t offset = 0; offset < len; offset += CHIPS_PACKET_BYTES) {
        uint32_t rest = len - offset;
        struct packet packet = {.cargo = cargo,
                                .offset = offset,
                                .len = rest < CHIPS_PACKET_BYTES ? rest : CHIPS_PACKET_BYTES,
                                .to = to};
        if (!packet_route(net, index, &packet, true))
            continue;
        cargo->refs++;
        packet_put(&chip->born, &packet);
        if (chip->born.count == 1)
            link_try(net, index * CHIP_PORTS + route_port(packet.entry));
    }
    cargo_release(cargo);
}

const uint8_t *chips_memory(const struct chips *net, uint32_t chip)
{
    CHECK(chip < net->chip_count && chip_here(net, chip));
    return net->chips[chip].memory;
}

bool chips_take_done(struct chips *net, struct chips_done *ret_done)
{
    if (net->done_taken == net->done.len) {
        vec_clear(&net->done);
        net->done_taken = 0;
        return false;
    }
    *ret_done = net->done.items[net->done_taken++];
    return true;
}
