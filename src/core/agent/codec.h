/* codec.h - messages as bytes, and frames around them (docs/formats/wire.md, proto/wire.proto).
 *
 *     frame = u32 length of the bytes, u32 crc32c of the bytes, the bytes; integers little-endian
 *
 * A stream is valid if and only if every frame's length is in 1..FRAME_BYTES_MAX, its checksum is right and
 * its bytes are one protobuf message. Newer versions only add: a message of an unknown kind is
 * ERROR_UNSUPPORTED (skip it), a report of an unknown kind is left out, unknown fields are ignored.
 *
 * Encoding appends a whole frame to `out`. It returns ERROR_LIMIT, and appends nothing, if the message would
 * exceed FRAME_BYTES_MAX. Strings must not contain NUL, because the text after it is lost; log_data.bytes
 * may. Decoding allocates everything from `arena`, strings included, so the message is valid as long as the
 * arena. It returns ERROR_LIMIT if that would exceed arena->limit_bytes, ERROR_CORRUPT for malformed bytes,
 * and ERROR_INVALID for values outside of message.h's ranges (attempts or times below their range, too many
 * metrics); the last names the field. Pure; several threads may use the codec at once on different objects.
 */
#ifndef PHX_CORE_AGENT_CODEC_H
#define PHX_CORE_AGENT_CODEC_H

#include "base/arena.h"
#include "base/error.h"
#include "core/agent/message.h"

enum {
    FRAME_HEADER_BYTES = 8,
    CODEC_ARENA_BYTES =
        128 * 1024 * 1024, /* a sane limit for the arena of a decoder: a gang of 65,536 ranks fits */
};

int codec_put_agent(struct buf *out, const struct from_agent *message, struct error *error);
int codec_put_controller(struct buf *out, const struct from_controller *message, struct error *error);

/* `bytes` are the contents of one frame, as codec_frame returns them. */
int codec_get_agent(struct arena *arena, struct str bytes, struct from_agent *ret_message,
                    struct error *error);
int codec_get_controller(struct arena *arena, struct str bytes, struct from_controller *ret_message,
                         struct error *error);

/* Appends the bytes of a RANK_TABLE. Consecutive ranks that follow a rule take a few bytes together, so the
 * tables of gangs on numbered machines are small. */
void codec_pack_rank_table(struct buf *out, const struct gang_rank_table *rank_table);
int codec_unpack_rank_table(struct arena *arena, struct str bytes, struct gang_rank_table *ret_rank_table,
                            struct error *error);

/* Reads the first frame of a stream. Returns 1 if it is complete: *ret_bytes are its bytes, inside `data`,
 * and *ret_used is the size of the whole frame. Returns 0 if more data is needed: *ret_used is the size of
 * the whole frame, or FRAME_HEADER_BYTES while that is not known. Returns ERROR_CORRUPT if the stream is
 * invalid. */
int codec_frame(const char *data, size_t len, struct str *ret_bytes, size_t *ret_used, struct error *error);

#endif
