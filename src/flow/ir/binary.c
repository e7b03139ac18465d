/* binary.c - a module as bytes.
 *
 * Numbers are unsigned and have seven bits a byte, low bits first ("n"); signed ones are zigzag ("z"); texts
 * are n and their bytes.
 *
 *     "PHXF", version byte 1
 *     n and texts     names of the operations used: a kind below is an index in this list
 *     n and texts     names of element types, in the order of enum ir_element of the writer
 *     text text n n   name, file, replicas, partitions
 *     n               functions, each: text name, n line, n column, n and types of results
 *     bodies          of all functions, in that order: block
 *
 *     block           n and types of arguments, n operations
 *     operation       n kind, z difference of the line to the operation before, n column,
 *                     n and operands (n: distance back from the next value), n and blocks, n and types of
 *                     results, attributes (codec_attributes.c)
 *     type            n element, n rank, n dimensions
 *
 * Values are counted in the order of ir_number. The element types of a reader must begin with the writer's.
 */
#include <stdio.h>

#include "flow/ir/codec.h"
#include "flow/ir/parse.h"

enum { BINARY_VERSION = 1 };
static const char binary_magic[4] = {'P', 'H', 'X', 'F'};

/* --- writing */

static void encode_types(struct codec *codec, const struct ir_type *types, size_t stride, uint32_t count)
{
    codec_u32(codec, &count, UINT32_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct ir_type type = *(const struct ir_type *)((const char *)types + i * stride);
        codec_type(codec, &type);
    }
}

static void encode_block(struct codec *codec, const struct ir_block *block, uint32_t *next);

static void encode_op(struct codec *codec, const struct ir_op *op, uint32_t *next)
{
    uint32_t kind = codec->numbers[op->kind] - 1, count = op->operand_count, column = op->place.column;
    int64_t lines = (int64_t)op->place.line - codec->line;
    union ir_attributes attributes = op->attributes;
    codec_u32(codec, &kind, UINT32_MAX);
    codec_int(codec, &lines);
    codec_u32(codec, &column, UINT32_MAX);
    codec->line = op->place.line;
    codec_u32(codec, &count, UINT32_MAX);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        uint32_t back = *next - op->operands[i]->number;
        codec_u32(codec, &back, UINT32_MAX);
    }
    count = op->region_count;
    codec_u32(codec, &count, UINT32_MAX);
    for (uint32_t i = 0; i < op->region_count; i++)
        encode_block(codec, &op->regions[i], next);
    encode_types(codec, op->result_count ? &op->results->type : NULL, sizeof *op->results, op->result_count);
    *next += op->result_count;
    codec_attributes(codec, op->kind, &attributes);
}

static void encode_block(struct codec *codec, const struct ir_block *block, uint32_t *next)
{
    uint32_t count = 0;
    encode_types(codec, block->arg_count ? &block->args->type : NULL, sizeof *block->args, block->arg_count);
    *next += block->arg_count;
    for (const struct ir_op *op = block->first; op; op = op->next)
        count++;
    codec_u32(codec, &count, UINT32_MAX);
    for (const struct ir_op *op = block->first; op; op = op->next)
        encode_op(codec, op, next);
}

/* Numbers the kinds of operations in the block that have no number yet. Numbers begin with 1. */
static void encode_find_kinds(const struct ir_block *block, uint32_t numbers[IR_OP_KINDS], uint32_t *count)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (numbers[op->kind] == 0)
            numbers[op->kind] = ++*count;
        for (uint32_t i = 0; i < op->region_count; i++)
            encode_find_kinds(&op->regions[i], numbers, count);
    }
}

/* Writes the tables of names. */
static void encode_names(struct codec *codec)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < codec->function_count; i++)
        encode_find_kinds(&codec->functions[i]->body, codec->numbers, &count);
    codec_u32(codec, &count, UINT32_MAX);
    for (uint32_t number = 1; number <= count; number++) {
        uint32_t kind = 0;
        while (codec->numbers[kind] != number)
            kind++;
        struct str name = str_from(ir_op_name(kind));
        codec_str(codec, &name);
    }
    count = IR_ELEMENTS;
    codec_u32(codec, &count, UINT32_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct str name = str_from(ir_element_name(i));
        codec_str(codec, &name);
    }
}

struct str ir_encode(const struct ir_module *module, struct arena *arena)
{
    struct codec codec = {.writing = true};
    struct str name = module->name, file = module->file;
    uint32_t replicas = module->replicas, partitions = module->partitions;
    VEC(struct ir_function *) functions = {0};
    for (struct ir_function *function = module->functions; function; function = function->next) {
        scope_push(&codec.index, function->name, NULL, (uint32_t)functions.len);
        vec_push(&functions, function);
    }
    codec.functions = functions.items;
    codec.function_count = (uint32_t)functions.len;
    buf_add(&codec.out, binary_magic, sizeof binary_magic);
    buf_add_char(&codec.out, BINARY_VERSION);
    encode_names(&codec);
    codec_str(&codec, &name);
    codec_str(&codec, &file);
    codec_u32(&codec, &replicas, UINT32_MAX);
    codec_u32(&codec, &partitions, UINT32_MAX);
    codec_u32(&codec, &codec.function_count, UINT32_MAX);
    for (size_t i = 0; i < functions.len; i++) {
        struct str text = functions.items[i]->name;
        struct ir_place place = functions.items[i]->place;
        codec_str(&codec, &text);
        codec_u32(&codec, &place.line, UINT32_MAX);
        codec_u32(&codec, &place.column, UINT32_MAX);
        encode_types(&codec, functions.items[i]->results, sizeof(struct ir_type),
                     functions.items[i]->result_count);
    }
    for (size_t i = 0; i < functions.len; i++) {
        uint32_t next = 0;
        encode_block(&codec, &functions.items[i]->body, &next);
    }
    struct str bytes = arena_str(arena, buf_str(&codec.out));
    buf_done(&codec.out);
    scope_done(&codec.index);
    vec_done(&functions);
    return bytes;
}

/* --- reading */

struct decoder {
    struct codec codec;
    struct ir_module *module;
    VEC(struct ir_value *) values;      /* of the current function, by number */
    enum ir_op_kind kinds[IR_OP_KINDS]; /* by the writer's number; IR_OP_KINDS: unknown here */
    uint32_t kind_count;
    struct str unknown; /* the name of an operation that this build does not support */
    uint32_t depth;
};

/* Reads a count of items of at least one byte each. */
static uint32_t decode_count(struct decoder *d, uint32_t most)
{
    uint32_t count = 0;
    codec_u32(&d->codec, &count, most);
    if (!d->codec.failed && count > (uint64_t)(d->codec.end - d->codec.at))
        codec_fail(&d->codec, "a list is longer than its bytes");
    return d->codec.failed ? 0 : count;
}

/* Reads values and their types. Their numbers are their indexes in d->values. */
static struct ir_value *decode_values(struct decoder *d, uint32_t *count, struct ir_op *op)
{
    *count = decode_count(d, IR_OPERANDS_MAX);
    struct ir_value *values = ARENA_ARRAY(d->codec.arena, struct ir_value, *count);
    if (d->values.len + *count > IR_VALUES_MAX)
        codec_fail(&d->codec, "too many values");
    for (uint32_t i = 0; i < *count; i++) {
        codec_type(&d->codec, &values[i].type);
        values[i].op = op;
        vec_push(&d->values, &values[i]);
    }
    return values;
}

static void decode_block(struct decoder *d, struct ir_block *block);

static void decode_op(struct decoder *d, struct ir_op *op)
{
    struct codec *codec = &d->codec;
    uint32_t kind = 0, back = 0;
    int64_t lines = 0;
    codec_u32(codec, &kind, d->kind_count ? d->kind_count - 1 : 0);
    if (!codec->failed && (d->kind_count == 0 || d->kinds[kind] == IR_OP_KINDS))
        codec_fail(codec, "an operation of another version");
    op->kind = codec->failed ? IR_OP_RETURN : d->kinds[kind];
    codec_int(codec, &lines);
    codec_u32(codec, &op->place.column, UINT32_MAX);
    codec->line = op->place.line = (uint32_t)((uint64_t)codec->line + (uint64_t)lines);
    op->operand_count = decode_count(d, IR_OPERANDS_MAX);
    op->operands = ARENA_ARRAY(codec->arena, struct ir_value *, op->operand_count);
    for (uint32_t i = 0; i < op->operand_count && !codec->failed; i++) {
        codec_u32(codec, &back, (uint32_t)d->values.len);
        if (back == 0)
            codec_fail(codec, "an operand that is not there yet");
        else
            op->operands[i] = d->values.items[d->values.len - back];
    }
    op->region_count = decode_count(d, IR_OPERANDS_MAX);
    op->regions = ARENA_ARRAY(codec->arena, struct ir_block, op->region_count);
    for (uint32_t i = 0; i < op->region_count && !codec->failed; i++)
        decode_block(d, &op->regions[i]);
    op->results = decode_values(d, &op->result_count, op);
    if (!codec->failed)
        codec_attributes(codec, op->kind, &op->attributes);
}

static void decode_block(struct decoder *d, struct ir_block *block)
{
    if (++d->depth > IR_DEPTH_MAX)
        codec_fail(&d->codec, "regions are nested too deep");
    block->args = decode_values(d, &block->arg_count, NULL);
    uint32_t count = decode_count(d, UINT32_MAX);
    for (uint32_t i = 0; i < count && !d->codec.failed; i++) {
        struct ir_op *op = ARENA_NEW(d->codec.arena, struct ir_op);
        decode_op(d, op);
        if (block->last)
            block->last->next = op;
        else
            block->first = op;
        block->last = op;
    }
    d->depth--;
}

static void decode_names(struct decoder *d)
{
    struct str name = {0};
    d->kind_count = decode_count(d, IR_OP_KINDS);
    for (uint32_t i = 0; i < d->kind_count; i++) {
        codec_str(&d->codec, &name);
        d->kinds[i] = 0;
        while (d->kinds[i] < IR_OP_KINDS && !str_is(name, ir_op_name(d->kinds[i])))
            d->kinds[i]++;
        if (d->kinds[i] == IR_OP_KINDS && ir_name_is_valid(name))
            d->unknown = name;
    }
    uint32_t elements = decode_count(d, IR_ELEMENTS);
    for (uint32_t i = 0; i < elements && !d->codec.failed; i++) {
        codec_str(&d->codec, &name);
        if (!d->codec.failed && !str_is(name, ir_element_name(i)))
            codec_fail(&d->codec, "element types of another version");
    }
}

/* Reads names, places and results of all functions. */
static void decode_heads(struct decoder *d)
{
    struct codec *codec = &d->codec;
    struct scope names = {0};
    struct ir_function **end = &d->module->functions;
    codec->function_count = decode_count(d, IR_VALUES_MAX);
    codec->functions = ARENA_ARRAY(codec->arena, struct ir_function *, codec->function_count);
    for (uint32_t i = 0; i < codec->function_count && !codec->failed; i++) {
        struct ir_function *function = ARENA_NEW(codec->arena, struct ir_function);
        codec_str(codec, &function->name);
        codec_u32(codec, &function->place.line, UINT32_MAX);
        codec_u32(codec, &function->place.column, UINT32_MAX);
        function->result_count = decode_count(d, IR_OPERANDS_MAX);
        function->results = ARENA_ARRAY(codec->arena, struct ir_type, function->result_count);
        for (uint32_t k = 0; k < function->result_count; k++)
            codec_type(codec, &function->results[k]);
        if (!codec->failed && (!ir_name_is_valid(function->name) || scope_find(&names, function->name)))
            codec_fail(codec, "a function's name is not valid, or given twice");
        scope_push(&names, function->name, NULL, 1);
        codec->functions[i] = *end = function;
        end = &function->next;
    }
    scope_done(&names);
}

static void decode_module(struct decoder *d)
{
    struct codec *codec = &d->codec;
    struct ir_module *module = d->module;
    decode_names(d);
    codec_str(codec, &module->name);
    codec_str(codec, &module->file);
    codec_u32(codec, &module->replicas, 1 << 20);
    codec_u32(codec, &module->partitions, 1 << 20);
    if (!codec->failed && ((module->name.len > 0 && !ir_name_is_valid(module->name)) ||
                           module->replicas == 0 || module->partitions == 0))
        codec_fail(codec, "the module's head is not valid");
    if (module->file.len > 0) /* messages begin with it; codec_str has copied it */
        ir_make_printable((char *)module->file.data, module->file.len);
    decode_heads(d);
    for (uint32_t i = 0; i < codec->function_count && !codec->failed; i++) {
        vec_clear(&d->values);
        decode_block(d, &codec->functions[i]->body);
        if (!codec->failed)
            codec->functions[i]->value_count = ir_number(codec->functions[i]);
    }
    if (!codec->failed && codec->at != codec->end)
        codec_fail(codec, "bytes are left at the end");
}

int ir_decode(struct str bytes, struct ir_module **ret_module, struct error *error)
{
    size_t head = sizeof binary_magic + 1;
    int result = 0;
    if (bytes.len < head || memcmp(bytes.data, binary_magic, sizeof binary_magic) != 0)
        return error_set(error, ERROR_CORRUPT, "the bytes are no module of flow");
    if (bytes.data[head - 1] != BINARY_VERSION)
        return error_set(error, ERROR_UNSUPPORTED, "module of version %d, this build reads version %d",
                         bytes.data[head - 1], BINARY_VERSION);
    struct ir_module *module = mem_alloc(sizeof *module);
    struct decoder d = {
        .module = module,
        .codec = {.at = bytes.data + head, .end = bytes.data + bytes.len, .arena = &module->arena}};
    decode_module(&d);
    vec_done(&d.values);
    if (d.codec.failed && d.unknown.len > 0)
        result = error_set(error, ERROR_UNSUPPORTED,
                           "module with the operation " STR_FORMAT ", which this build "
                           "does not know",
                           STR_ARG(str_head_utf8(d.unknown, 60)));
    else if (d.codec.failed)
        result = error_set(error, ERROR_CORRUPT, "module: %s", d.codec.failed);
    else if (ir_verify(module, error) < 0) {
        error_wrap(error, "module");
        result = ERROR_CORRUPT;
        if (error)
            error->code = ERROR_CORRUPT;
    }
    if (result < 0) {
        ir_module_free(module);
        return result;
    }
    *ret_module = module;
    return 0;
}
