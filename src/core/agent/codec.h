/* codec.h - messages as bytes, and frames around them (docs/formats/wire.md, proto/wire.proto).
 *
 *     frame = u32 length of the bytes, u32 crc32c of the bytes, the bytes; integers little-endian
 *
 * A stream is valid if and only if every frame's length is in 1..FRAME_BYTES_MAX, its checksum fits and
 * its bytes are one protobuf message. Versions only add: a message of an unknown kind is ERROR_UNSUPPORTED
 * (skip it), a report of an unknown kind is left out, unknown fields are ignored.
 *
 * Encoding appends a whole frame to `out`. ERROR_LIMIT (nothing appended) if the message would exceed
 * FRAME_BYTES_MAX. Strings must not contain NUL (text after it is lost); log_data.bytes may. Decoding
 * allocates everything from `arena`, strings included, so the message lives as long as the arena; memory
 * stays within arena->limit_bytes (ERROR_LIMIT). Malformed bytes are ERROR_CORRUPT, values outside of
 * message.h's ranges (attempts or times below their range, too many metrics ...) are ERROR_INVALID; both
 * name the field. Pure; threads may use it on objects of their own.
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

/* `bytes`: the contents of one frame. */
int codec_get_agent(struct arena *arena, struct str bytes, struct from_agent *ret_message,
                    struct error *error);
int codec_get_controller(struct arena *arena, struct str bytes, struct from_controller *ret_message,
                         struct error *error);

/* Appends the bytes of a RANK_TABLE: consecutive ranks that follow a rule take a few bytes together, so that
 * gangs on numbered machines have small ones. */
void codec_pack_rank_table(struct buf *out, const struct gang_rank_table *rank_table);
int codec_unpack_rank_table(struct arena *arena, struct str bytes, struct gang_rank_table *ret_rank_table,
                            struct error *error);

/* Reads the start of a stream. 1: the frame's bytes (inside `data`) and the size of the whole frame. 0:
 * more is needed; *ret_used is the size of the whole frame (FRAME_HEADER_BYTES while that is not known).
 * ERROR_CORRUPT: the stream is invalid. */
int codec_frame(const char *data, size_t len, struct str *ret_bytes, size_t *ret_used, struct error *error);

#endif
