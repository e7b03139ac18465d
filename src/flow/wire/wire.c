/* Frames over a carrier. */
#include "flow/wire/wire.h"

void flow_wire_free(struct wire *wire)
{
    if (!wire)
        return;
    wire->ops->close(wire);
    for (size_t i = wire->out_first; i < wire->out.len; i++) {
        buf_done(&wire->out.items[i].bytes);
        tensor_unref(wire->out.items[i].payload);
    }
    vec_done(&wire->out);
    buf_done(&wire->in);
    buf_done(&wire->spare);
    mem_free(wire);
}

static void wire_close_frame(struct wire *wire)
{
    if (wire->frame_entries == 0)
        return;
    uint64_t bytes = 0;
    size_t last = wire->out.len - 1;
    struct wire_chunk *chunk = &wire->out.items[last];
    if (chunk->payload) { /* the frame ends with a payload, so its header is in the chunk before */
        bytes = (uint64_t)ir_type_bytes(&chunk->payload->type);
        chunk = &wire->out.items[last - 1];
    }
    bytes += chunk->bytes.len - wire->frame_at - sizeof(struct wire_header);
    struct wire_header header = {{'P', 'H', 'X', 'F'}, wire->frame_entries, bytes};
    memcpy(chunk->bytes.data + wire->frame_at, &header, sizeof header);
    wire->frame_entries = 0;
}

void flow_wire_put(struct wire *wire, const struct flow_entry *entry, struct str tail, struct tensor *payload)
{
    if (wire->frame_entries == WIRE_FRAME_ENTRIES)
        wire_close_frame(wire);
    if (wire->frame_entries == 0) {
        bool fresh = wire->out.len == wire->out_first || vec_last(&wire->out).payload ||
                     vec_last(&wire->out).is_step || vec_last(&wire->out).bytes.len > WIRE_READ_MAX;
        if (fresh) {
            vec_push(&wire->out, ((struct wire_chunk){.bytes = wire->spare}));
            wire->spare = (struct buf){0};
        }
        struct buf *bytes = &vec_last(&wire->out).bytes;
        wire->frame_at = bytes->len;
        buf_add(bytes, &(struct wire_header){0}, sizeof(struct wire_header));
    }
    wire->frame_entries++;
    size_t extra = payload ? (size_t)ir_type_bytes(&payload->type) : 0;
    struct flow_entry sent = *entry;
    sent.tail_bytes = (uint32_t)(tail.len + extra);
    struct buf *bytes = &vec_last(&wire->out).bytes;
    buf_add(bytes, &sent, sizeof sent);
    buf_add_str(bytes, tail);
    if (extra <= WIRE_INLINE_MAX) {
        if (extra)
            buf_add(bytes, payload->data, extra);
        return;
    }
    vec_push(&wire->out, ((struct wire_chunk){.payload = tensor_ref(payload)}));
    wire_close_frame(wire);
}

void flow_wire_put_step(struct wire *wire, enum wire_step step, struct str data, bool moves)
{
    struct wire_header header = {{'P', 'H', 'X', 'U'}, step, data.len};
    struct wire_chunk chunk = {.is_step = true, .moves = moves};
    CHECK(data.len <= WIRE_STEP_MAX);
    wire_close_frame(wire);
    buf_add(&chunk.bytes, &header, sizeof header);
    buf_add_str(&chunk.bytes, data);
    vec_push(&wire->out, chunk);
}

bool flow_wire_is_pending(const struct wire *wire)
{
    return wire->out_first < wire->out.len;
}

/* Writes the rest of a chunk of `len` bytes, or a part of it. */
static ssize_t wire_write_chunk(struct wire *wire, struct wire_chunk *chunk, size_t len)
{
    if (chunk->payload && wire->ops->write_tensor)
        return wire->ops->write_tensor(wire, chunk->payload, wire->out_done);
    const char *data = chunk->payload ? chunk->payload->data : chunk->bytes.data;
    return wire->ops->write(wire, data + wire->out_done, len - wire->out_done);
}

int flow_wire_flush(struct wire *wire)
{
    wire_close_frame(wire);
    while (wire->out_first < wire->out.len) {
        struct wire_chunk *chunk = &wire->out.items[wire->out_first];
        size_t len = chunk->payload ? (size_t)ir_type_bytes(&chunk->payload->type) : chunk->bytes.len;
        while (wire->out_done < len) {
            ssize_t moved = wire_write_chunk(wire, chunk, len);
            if (moved <= 0)
                return moved == 0 ? 1 : ERROR_UNAVAILABLE;
            wire->out_done += (size_t)moved;
        }
        if (chunk->moves)
            wire->ops->moved(wire);
        tensor_unref(chunk->payload);
        wire->out_done = 0;
        if (!wire->spare.data && chunk->bytes.data) { /* keep the memory for the next frames */
            wire->spare = chunk->bytes;
            buf_clear(&wire->spare);
        } else {
            buf_done(&chunk->bytes);
        }
        wire->out_first++;
    }
    wire->out_first = 0;
    vec_clear(&wire->out);
    return 0;
}

/* Takes a step from the front of `in`. Returns 1, 0 if more bytes are needed, or an error. */
static int wire_take_step(struct wire *wire, const struct wire_header *header, struct error *error)
{
    struct str in = {wire->in.data + wire->in_used, wire->in.len - wire->in_used};
    bool announces = header->entries == WIRE_ANNOUNCE;
    if (header->bytes > WIRE_STEP_MAX || header->entries >= WIRE_END || (announces && header->bytes > 0) ||
        (!announces && !wire->ops->step))
        return error_set(error, ERROR_CORRUPT, "the peer's step to another carrier is damaged");
    size_t size = sizeof *header + (size_t)header->bytes;
    if (in.len < size)
        return 0;
    wire->in_used += size;
    if (announces) {
        wire->announced = true;
        return 1;
    }
    struct str data = {in.data + sizeof *header, size - sizeof *header},
               rest = {in.data + size, in.len - size};
    int rc = wire->ops->step(wire, header->entries, data, rest);
    if (rc < 0)
        return error_set(error, ERROR_CORRUPT, "the peer's step to another carrier is refused");
    if (rc > 0)
        wire->in.len = wire->in_used;
    return 1;
}

/* Delivers the whole entries of `in`. Returns 0 if more bytes are needed, 1 if `on_entry` has stopped, or an
 * error. */
static int wire_parse(struct wire *wire,
                      bool (*on_entry)(void *context, const struct flow_entry *entry, struct str tail),
                      void *context, struct error *error)
{
    for (;;) {
        const char *data = wire->in.data + wire->in_used;
        size_t left = wire->in.len - wire->in_used;
        if (wire->frame_left == 0) {
            struct wire_header header;
            if (left < sizeof header)
                return 0;
            memcpy(&header, data, sizeof header);
            if (memcmp(header.magic, "PHXU", 4) == 0) {
                int rc = wire_take_step(wire, &header, error);
                if (rc <= 0)
                    return rc;
                continue;
            }
            if (memcmp(header.magic, "PHXF", 4) != 0 || header.entries == 0 ||
                header.entries > WIRE_FRAME_ENTRIES ||
                header.bytes < header.entries * sizeof(struct flow_entry) ||
                header.bytes > header.entries * (sizeof(struct flow_entry) + (uint64_t)ENTRY_TAIL_MAX))
                return error_set(error, ERROR_CORRUPT, "the peer's bytes are no frame");
            wire->frame_left = header.bytes;
            wire->entries_left = header.entries;
            wire->in_used += sizeof header;
            continue;
        }
        struct flow_entry entry;
        if (left < sizeof entry)
            return 0;
        memcpy(&entry, data, sizeof entry);
        uint64_t size = sizeof entry + (uint64_t)entry.tail_bytes;
        if (size > wire->frame_left || !entry_valid(&entry))
            return error_set(error, ERROR_CORRUPT, "the peer's entry of kind %u is damaged", entry.kind);
        if (left < size) { /* allocate for the bytes that have arrived, not for the announced size */
            size_t more = left > WIRE_READ_MAX ? left : WIRE_READ_MAX;
            buf_reserve(&wire->in, (size - left < more ? (size_t)(size - left) : more) + 1);
            return 0;
        }
        wire->frame_left -= size;
        wire->entries_left--;
        wire->in_used += (size_t)size;
        if (wire->frame_left < wire->entries_left * sizeof entry ||
            (wire->frame_left == 0) != (wire->entries_left == 0))
            return error_set(error, ERROR_CORRUPT, "the peer's frame is damaged");
        if (!on_entry(context, &entry, (struct str){data + sizeof entry, entry.tail_bytes}))
            return 1;
    }
}

int flow_wire_read(struct wire *wire,
                   bool (*on_entry)(void *context, const struct flow_entry *entry, struct str tail),
                   void *context, struct error *error)
{
    int rc = wire->in.len > wire->in_used ? wire_parse(wire, on_entry, context, error) : 0;
    while (rc == 0) {
        if (wire->in_used) {
            buf_drop_front(&wire->in, wire->in_used);
            wire->in_used = 0;
        }
        if (wire->in.cap - wire->in.len < WIRE_READ_MAX / 4)
            buf_reserve(&wire->in, WIRE_READ_MAX);
        size_t room = wire->in.cap - wire->in.len - 1;
        ssize_t got = wire->ops->read(wire, wire->in.data + wire->in.len, room);
        if (got < 0)
            return error_set(error, ERROR_UNAVAILABLE, "the peer has closed the connection");
        if (got == 0)
            return 0;
        wire->in.len += (size_t)got;
        rc = wire_parse(wire, on_entry, context, error);
        if ((size_t)got < room && rc == 0 && !wire->ops->is_ready) /* rings are read until they sleep */
            return 0;
    }
    return rc > 0 ? 0 : rc;
}
