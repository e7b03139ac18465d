/* codec.h - one description of the bytes for both directions. Private to flow/ir.
 *
 * A codec either writes what its functions are given, or fills it from bytes. In both directions a function
 * does nothing once the codec has failed, so that callers ask codec->failed at the end alone.
 */
#ifndef PHX_FLOW_IR_CODEC_H
#define PHX_FLOW_IR_CODEC_H

#include "flow/ir/ir.h"
#include "flow/ir/scope.h"

struct codec {
    bool writing;
    struct buf out;                 /* writing */
    const char *at, *end;           /* reading */
    struct arena *arena;            /* reading: what is read lives there, and nothing points into the bytes */
    const char *failed;             /* why reading has failed; NULL: it has not */
    uint32_t numbers[IR_OP_KINDS];  /* writing: of the kinds used, from 1 */
    uint32_t line;                  /* of the operation before */
    struct ir_function **functions; /* by number */
    uint32_t function_count;
    struct scope index; /* writing: function names to numbers, as counts */
};

void codec_fail(struct codec *codec, const char *why);
/* An unsigned number, seven bits a byte, low bits first; at most `most`. */
void codec_count(struct codec *codec, uint64_t *value, uint64_t most);
void codec_u32(struct codec *codec, uint32_t *value, uint32_t most);
void codec_int(struct codec *codec, int64_t *value); /* zigzag: small magnitudes are short */
void codec_bool(struct codec *codec, bool *value);
void codec_double(struct codec *codec, double *value); /* finite */
void codec_str(struct codec *codec, struct str *text);
void codec_ints(struct codec *codec, struct ir_ints *ints);
void codec_literal(struct codec *codec, struct ir_literal *literal);
void codec_type(struct codec *codec, struct ir_type *type);
/* A number of the codec's functions. */
void codec_function(struct codec *codec, const struct ir_function **function);

/* The attributes of an operation of that kind. */
void codec_attributes(struct codec *codec, enum ir_op_kind kind, union ir_attributes *attributes);

#endif
