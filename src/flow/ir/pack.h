/* pack.h - values as little-endian bytes, and their bounds-checked reading.
 *
 *     pack_u32(&out, count);
 *     ...
 *     struct unpack in = {bytes.data, bytes.len, false};
 *     uint32_t count = unpack_u32(&in, MAX);
 *     if (in.bad) return error_set(error, ERROR_CORRUPT, ...);
 *
 * A reader that runs out of bytes, or meets a number above its bound, sets `bad` and returns zeros from then
 * on. Loops then end, and the caller checks once, at the end. The machine's byte order is little-endian.
 */
#ifndef PHX_FLOW_IR_PACK_H
#define PHX_FLOW_IR_PACK_H

#include "base/str.h"
#include "flow/ir/ir.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bytes on the wire are little-endian");

static inline void pack_u32(struct buf *out, uint32_t value)
{
    buf_add(out, &value, sizeof value);
}

static inline void pack_u64(struct buf *out, uint64_t value)
{
    buf_add(out, &value, sizeof value);
}

struct unpack {
    const char *data;
    size_t left;
    bool bad;
};

/* Returns the next `len` bytes, which point into the data, or NULL. */
static inline const void *unpack_bytes(struct unpack *in, size_t len)
{
    if (in->bad || in->left < len) {
        in->bad = true;
        return NULL;
    }
    const char *bytes = in->data;
    in->data += len;
    in->left -= len;
    return bytes;
}

/* Reads a number of at most `max`. */
static inline uint32_t unpack_u32(struct unpack *in, uint32_t max)
{
    uint32_t value = 0;
    const void *bytes = unpack_bytes(in, sizeof value);
    if (bytes)
        memcpy(&value, bytes, sizeof value);
    if (value > max)
        in->bad = true;
    return in->bad ? 0 : value;
}

static inline uint64_t unpack_u64(struct unpack *in, uint64_t max)
{
    uint64_t value = 0;
    const void *bytes = unpack_bytes(in, sizeof value);
    if (bytes)
        memcpy(&value, bytes, sizeof value);
    if (value > max)
        in->bad = true;
    return in->bad ? 0 : value;
}

/* Reads a count of items that take at least `size` bytes each. It is bad if the remaining bytes cannot hold
 * them, which bounds the reader's allocations. */
static inline uint32_t unpack_count(struct unpack *in, uint32_t max, size_t size)
{
    uint32_t count = unpack_u32(in, max);
    if (count > in->left / size)
        in->bad = true;
    return in->bad ? 0 : count;
}

/* Writes, and reads, a type. A type that is read has dimensions and elements within the limits of ir.h. */
static inline void pack_type(struct buf *out, const struct ir_type *type)
{
    pack_u32(out, (uint32_t)type->element);
    pack_u32(out, (uint32_t)type->rank);
    for (int32_t d = 0; d < type->rank; d++)
        pack_u64(out, (uint64_t)type->dims[d]);
}

static inline struct ir_type unpack_type(struct unpack *in)
{
    struct ir_type type = {.element = unpack_u32(in, IR_TOKEN - 1)};
    type.rank = (int32_t)unpack_u32(in, IR_RANK_MAX);
    int64_t elements = 1;
    for (int32_t d = 0; d < type.rank; d++) {
        type.dims[d] = (int64_t)unpack_u64(in, (uint64_t)IR_ELEMENTS_MAX);
        if (type.dims[d] > 0 && elements > IR_ELEMENTS_MAX / type.dims[d])
            in->bad = true;
        elements = in->bad ? 0 : elements * type.dims[d];
    }
    return in->bad ? (struct ir_type){0} : type;
}

#endif
