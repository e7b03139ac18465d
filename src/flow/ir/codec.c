/* codec.c - numbers, texts, types and literals as bytes. */
#include "flow/ir/codec.h"

#include <math.h>

#include "base/check.h"
#include "flow/ir/parse.h"

void codec_fail(struct codec *codec, const char *why)
{
    CHECK(!codec->writing);
    if (!codec->failed)
        codec->failed = why;
}

void codec_count(struct codec *codec, uint64_t *value, uint64_t most)
{
    if (codec->writing) {
        uint64_t rest = *value;
        CHECK(rest <= most);
        for (; rest >= 0x80; rest >>= 7)
            buf_add_char(&codec->out, (char)(0x80 | (rest & 0x7F)));
        buf_add_char(&codec->out, (char)rest);
        return;
    }
    *value = 0;
    for (unsigned shift = 0; !codec->failed; shift += 7) {
        if (codec->at == codec->end || shift > 63) {
            codec_fail(codec, codec->at == codec->end ? "the bytes end too early" : "a number is too long");
            break;
        }
        uint64_t byte = (unsigned char)*codec->at++;
        if (shift == 63 && byte > 1)
            codec_fail(codec, "a number is too large");
        *value |= (byte & 0x7F) << shift;
        if (!(byte & 0x80))
            break;
    }
    if (*value > most)
        codec_fail(codec, "a number is too large");
    if (codec->failed)
        *value = 0;
}

void codec_u32(struct codec *codec, uint32_t *value, uint32_t most)
{
    uint64_t wide = *value;
    codec_count(codec, &wide, most);
    *value = (uint32_t)wide;
}

void codec_int(struct codec *codec, int64_t *value)
{
    uint64_t zigzag = ((uint64_t)*value << 1) ^ (uint64_t)(*value >> 63);
    codec_count(codec, &zigzag, UINT64_MAX);
    *value = (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
}

void codec_bool(struct codec *codec, bool *value)
{
    uint64_t number = *value;
    codec_count(codec, &number, 1);
    *value = number == 1;
}

/* Writes or reads `len` bytes unchanged. Returns NULL if reading has failed. */
static const char *codec_bytes(struct codec *codec, const void *bytes, size_t len)
{
    if (codec->writing) {
        buf_add(&codec->out, bytes, len);
        return bytes;
    }
    if (!codec->failed && (size_t)(codec->end - codec->at) < len)
        codec_fail(codec, "the bytes end too early");
    if (codec->failed)
        return NULL;
    char *copy = arena_alloc(codec->arena, len);
    mem_copy(copy, codec->at, len);
    codec->at += len;
    return copy;
}

void codec_double(struct codec *codec, double *value)
{
    const char *bytes = codec_bytes(codec, value, sizeof *value);
    if (codec->writing || !bytes)
        return;
    memcpy(value, bytes, sizeof *value);
    if (!isfinite(*value))
        codec_fail(codec, "a number is not finite");
}

void codec_str(struct codec *codec, struct str *text)
{
    uint64_t len = text->len;
    codec_count(codec, &len, SIZE_MAX);
    const char *bytes = codec_bytes(codec, text->data, len);
    if (!codec->writing)
        *text = bytes ? (struct str){bytes, len} : (struct str){0};
}

void codec_ints(struct codec *codec, struct ir_ints *ints)
{
    uint32_t count = ints->count;
    codec_u32(codec, &count, UINT32_MAX);
    if (codec->writing) {
        for (uint32_t i = 0; i < count; i++) {
            int64_t item = ints->items[i];
            codec_int(codec, &item);
        }
        return;
    }
    *ints = (struct ir_ints){0};
    if (!codec->failed && count > (uint64_t)(codec->end - codec->at)) /* each takes at least a byte */
        codec_fail(codec, "a list is longer than its bytes");
    if (codec->failed)
        return;
    int64_t *items = ARENA_ARRAY(codec->arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++)
        codec_int(codec, &items[i]);
    *ints = (struct ir_ints){items, count};
}

void codec_type(struct codec *codec, struct ir_type *type)
{
    uint32_t element = type->element, rank = (uint32_t)type->rank;
    int64_t elements = 1;
    codec_u32(codec, &element, IR_ELEMENTS - 1);
    codec_u32(codec, &rank, element == IR_TOKEN ? 0 : IR_RANK_MAX);
    if (!codec->writing)
        *type = (struct ir_type){.element = element, .rank = (int32_t)rank};
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t dim = (uint64_t)type->dims[i];
        codec_count(codec, &dim, IR_ELEMENTS_MAX);
        type->dims[i] = (int64_t)dim;
        if (dim > 0 && elements > IR_ELEMENTS_MAX / (int64_t)dim)
            codec_fail(codec, "a type has more than 2^40 elements");
        else if (dim > 0)
            elements *= (int64_t)dim;
    }
}

void codec_literal(struct codec *codec, struct ir_literal *literal)
{
    codec_type(codec, &literal->type);
    codec_bool(codec, &literal->splat);
    int64_t elements = codec->failed ? 0 : ir_type_elements(&literal->type);
    size_t size = ir_element_size(literal->type.element);
    size_t bytes = literal->splat ? size : (size_t)elements * size;
    const char *data = codec_bytes(codec, literal->data, bytes);
    if (codec->writing || !data)
        return;
    literal->data = data;
    if (literal->type.element == IR_TOKEN || (literal->splat && elements == 0))
        codec_fail(codec, "a literal without elements");
    literal->splat = literal->splat || elements == 1;
    literal_normalise(&literal->type, (unsigned char *)data, bytes / (size ? size : 1));
}

void codec_function(struct codec *codec, const struct ir_function **function)
{
    uint32_t number = 0;
    if (codec->writing) {
        const struct scope_name *name = scope_find(&codec->index, (*function)->name);
        CHECK(name && codec->functions[name->count] == *function);
        number = name->count;
    }
    codec_u32(codec, &number, codec->function_count ? codec->function_count - 1 : 0);
    if (codec->writing)
        return;
    if (codec->function_count == 0)
        codec_fail(codec, "a call without functions");
    *function = codec->failed ? NULL : codec->functions[number];
}
