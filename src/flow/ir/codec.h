/* codec.h - one description of the byte format for both directions. Private to flow/ir.
 *
 * A codec either writes the values passed to its functions, or sets them from bytes. In both directions a
 * function does nothing once the codec has failed, so callers check codec->failed only at the end.
 */
#ifndef PHX_FLOW_IR_CODEC_H
#define PHX_FLOW_IR_CODEC_H

#include "flow/ir/ir.h"
#include "flow/ir/scope.h"

struct codec {
    bool writing;
    struct buf out;                 /* writing */
    const char *at, *end;           /* reading */
    struct arena *arena;            /* reading: owns the values read; nothing points into the bytes */
    const char *failed;             /* why reading has failed; NULL: it has not */
    uint32_t numbers[IR_OP_KINDS];  /* writing: numbers of the kinds used, from 1; 0: not used */
    uint32_t line;                  /* of the previous operation */
    struct ir_function **functions; /* by number */
    uint32_t function_count;
    struct scope index; /* writing: function names; the function's number is the name's `count` */
};

void codec_fail(struct codec *codec, const char *why);
/* An unsigned number of at most `most`, with seven bits a byte, low bits first. */
void codec_count(struct codec *codec, uint64_t *value, uint64_t most);
void codec_u32(struct codec *codec, uint32_t *value, uint32_t most);
void codec_int(struct codec *codec, int64_t *value); /* zigzag: small magnitudes are short */
void codec_bool(struct codec *codec, bool *value);
void codec_double(struct codec *codec, double *value); /* finite */
void codec_str(struct codec *codec, struct str *text);
void codec_ints(struct codec *codec, struct ir_ints *ints);
void codec_literal(struct codec *codec, struct ir_literal *literal);
void codec_type(struct codec *codec, struct ir_type *type);
/* A function, as its number in the codec's list. */
void codec_function(struct codec *codec, const struct ir_function **function);

/* The attributes of an operation of that kind. */
void codec_attributes(struct codec *codec, enum ir_op_kind kind, union ir_attributes *attributes);

#endif
