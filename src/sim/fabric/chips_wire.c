/* Frames between link ends as bytes, for links that lead out of a process.
 *
 * All integers are little-endian; nothing is padded. A frame is a u8 kind (enum link_frame_kind), and then
 *     TRAIN       u64 number, u32 label, u8 port, u8 credits[ROUTE_VCS]
 *     ECHO        u64 number
 *     ASK         u8 0 or 1
 *     DATA        u64 number, u8 vc, u16 to, u32 from, u32 serial, u32 session, u64 tag, u32 packets,
 *                 u32 address of the packet, bytes: 1 to CHIPS_PACKET_BYTES
 *     ACK, NACK   u64 number
 *     CREDIT      u8 vc
 *     START       u32 label
 * Bytes are a frame if and only if the kind is one of these and they hold its fields exactly. Whether a frame
 * makes sense at its link is the link end's to judge: link_take(). */
#include <string.h>

#include "base/error.h"
#include "job/link/wire.h"
#include "sim/fabric/chips_private.h"

enum { FRAME_HEAD_MAX = 64 };

static void write_data(const struct link_frame *frame, struct jobwire_writer *writer)
{
    const struct packet *packet = &frame->packet;
    const struct cargo *cargo = packet->cargo;
    jobwire_put(writer, frame->number, 8);
    jobwire_put(writer, frame->vc, 1);
    jobwire_put(writer, packet->to, 2);
    jobwire_put(writer, cargo->from, 4);
    jobwire_put(writer, cargo->serial, 4);
    jobwire_put(writer, cargo->session, 4);
    jobwire_put(writer, cargo->tag, 8);
    jobwire_put(writer, cargo->packets, 4);
    jobwire_put(writer, cargo->address + packet->offset, 4);
}

void frame_write(const struct link_frame *frame, struct buf *out)
{
    uint8_t head[FRAME_HEAD_MAX];
    struct jobwire_writer writer = {.data = head, .cap = sizeof head};
    jobwire_put(&writer, frame->kind, 1);
    switch ((enum link_frame_kind)frame->kind) {
    case LINK_TRAIN:
        jobwire_put(&writer, frame->number, 8);
        jobwire_put(&writer, frame->label, 4);
        jobwire_put(&writer, frame->port, 1);
        jobwire_put_bytes(&writer, frame->credits, ROUTE_VCS);
        break;
    case LINK_ECHO:
    case LINK_ACK:
    case LINK_NACK:
        jobwire_put(&writer, frame->number, 8);
        break;
    case LINK_ASK:
        jobwire_put(&writer, frame->label, 1);
        break;
    case LINK_CREDIT:
        jobwire_put(&writer, frame->vc, 1);
        break;
    case LINK_START:
        jobwire_put(&writer, frame->label, 4);
        break;
    case LINK_DATA:
        write_data(frame, &writer);
        break;
    }
    CHECK(!writer.full);
    buf_add(out, head, writer.len);
    if (frame->kind == LINK_DATA)
        buf_add(out, frame->packet.cargo->bytes + frame->packet.offset, frame->packet.len);
}

static bool read_data(struct jobwire_reader *reader, struct link_frame *frame)
{
    struct cargo head = {0};
    frame->number = jobwire_get(reader, 8);
    frame->vc = (uint8_t)jobwire_get(reader, 1);
    frame->packet.to = (uint16_t)jobwire_get(reader, 2);
    head.from = (uint32_t)jobwire_get(reader, 4);
    head.serial = (uint32_t)jobwire_get(reader, 4);
    head.session = (uint32_t)jobwire_get(reader, 4);
    head.tag = jobwire_get(reader, 8);
    head.packets = (uint32_t)jobwire_get(reader, 4);
    head.address = (uint32_t)jobwire_get(reader, 4);
    size_t len = reader->len - reader->pos;
    const uint8_t *bytes = jobwire_get_bytes(reader, len);
    if (reader->broken || len == 0 || len > CHIPS_PACKET_BYTES || head.packets == 0 ||
        head.packets > CHIPS_WRITE_PACKETS_MAX)
        return false;
    struct cargo *cargo = cargo_new((uint32_t)len);
    *cargo = head;
    cargo->refs = 1;
    memcpy(cargo->bytes, bytes, len);
    frame->packet.cargo = cargo;
    frame->packet.len = (uint32_t)len;
    return true;
}

int frame_read(const uint8_t *bytes, size_t len, struct link_frame *ret_frame)
{
    struct jobwire_reader reader = {.data = bytes, .len = len};
    struct link_frame frame = {.kind = (uint8_t)jobwire_get(&reader, 1)};
    bool good = true;
    switch (frame.kind) {
    case LINK_TRAIN:
        frame.number = jobwire_get(&reader, 8);
        frame.label = (uint32_t)jobwire_get(&reader, 4);
        frame.port = (uint8_t)jobwire_get(&reader, 1);
        for (uint32_t vc = 0; vc < ROUTE_VCS; vc++)
            frame.credits[vc] = (uint8_t)jobwire_get(&reader, 1);
        break;
    case LINK_ECHO:
    case LINK_ACK:
    case LINK_NACK:
        frame.number = jobwire_get(&reader, 8);
        break;
    case LINK_ASK:
        frame.label = (uint32_t)jobwire_get(&reader, 1);
        break;
    case LINK_CREDIT:
        frame.vc = (uint8_t)jobwire_get(&reader, 1);
        break;
    case LINK_START:
        frame.label = (uint32_t)jobwire_get(&reader, 4);
        break;
    case LINK_DATA:
        good = read_data(&reader, &frame);
        break;
    default:
        good = false;
    }
    *ret_frame = frame;
    return good && !reader.broken && reader.pos == reader.len ? 0 : ERROR_CORRUPT;
}
