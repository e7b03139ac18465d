/* print.c - a module as text: functions as MLIR's printer writes them, operations in the generic form.
 *
 * Values are named by their numbers. Floats are written as their bits, long constants as the bytes of their
 * elements, so that nothing is rounded. The attributes are in print_attributes.c.
 */
#include "flow/ir/print.h"

static void print_type(struct buf *out, const struct ir_type *type)
{
    char text[IR_TYPE_TEXT_MAX];
    ir_type_text(type, text);
    buf_add(out, text, strlen(text));
}

/* Writes an integer, a truth value, or the bits of a float. */
static void print_element(struct buf *out, enum ir_element element, const unsigned char *data)
{
    unsigned size = ir_element_size(element);
    uint64_t bits = 0;
    if (element >= IR_C64) {
        enum ir_element part = element == IR_C64 ? IR_F32 : IR_F64;
        buf_add_char(out, '(');
        print_element(out, part, data);
        buf_add_str(out, STR(", "));
        print_element(out, part, data + ir_element_size(part));
        buf_add_char(out, ')');
        return;
    }
    memcpy(&bits, data, size); /* little-endian */
    if (element >= IR_F8E4M3FN)
        buf_printf(out, "0x%0*llX", (int)size * 2, (unsigned long long)bits);
    else if (element == IR_I1)
        buf_add_str(out, bits ? STR("true") : STR("false"));
    else if (element >= IR_U2)
        buf_printf(out, "%llu", (unsigned long long)bits);
    else
        buf_printf(out, "%lld", (long long)((int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size)));
}

/* Writes truth values in lists according to the shape; *at counts elements. */
static void print_truths(struct buf *out, const struct ir_literal *literal, int32_t dimension, int64_t *at)
{
    if (dimension == literal->type.rank) {
        print_element(out, IR_I1, (const unsigned char *)literal->data + (*at)++);
        return;
    }
    buf_add_char(out, '[');
    for (int64_t i = 0; i < literal->type.dims[dimension]; i++) {
        if (i > 0)
            buf_add_str(out, STR(", "));
        print_truths(out, literal, dimension + 1, at);
    }
    buf_add_char(out, ']');
}

void print_literal(struct buf *out, const struct ir_literal *literal)
{
    static const char digits[] = "0123456789ABCDEF";
    int64_t elements = ir_type_elements(&literal->type), at = 0;
    const unsigned char *data = literal->data;
    buf_add_str(out, STR("dense<"));
    if (literal->splat) {
        print_element(out, literal->type.element, data);
    } else if (elements > 0 && literal->type.element == IR_I1) {
        print_truths(out, literal, 0, &at);
    } else if (elements > 0) {
        size_t bytes = (size_t)ir_type_bytes(&literal->type);
        buf_add_str(out, STR("\"0x"));
        buf_reserve(out, bytes * 2);
        for (size_t i = 0; i < bytes; i++) {
            buf_add_char(out, digits[data[i] >> 4]);
            buf_add_char(out, digits[data[i] & 15]);
        }
        buf_add_char(out, '"');
    }
    buf_add_str(out, STR("> : "));
    print_type(out, &literal->type);
}

void print_symbol(struct buf *out, struct str name)
{
    bool plain = (*name.data >= 'a' && *name.data <= 'z') || (*name.data >= 'A' && *name.data <= 'Z') ||
                 *name.data == '_';
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        plain =
            plain && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_');
    }
    buf_add_char(out, '@');
    if (!plain)
        buf_add_char(out, '"');
    buf_add_str(out, name);
    if (!plain)
        buf_add_char(out, '"');
}

static void print_indent(struct buf *out, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++)
        buf_add_str(out, STR("  "));
}

static void print_args(struct buf *out, const struct ir_block *block)
{
    buf_add_char(out, '(');
    for (uint32_t i = 0; i < block->arg_count; i++) {
        buf_printf(out, "%s%%%u: ", i ? ", " : "", block->args[i].number);
        print_type(out, &block->args[i].type);
    }
    buf_add_char(out, ')');
}

static void print_block(struct buf *out, const struct ir_block *block, unsigned depth);

static void print_regions(struct buf *out, const struct ir_op *op, unsigned depth)
{
    for (uint32_t i = 0; i < op->region_count; i++) {
        buf_add_str(out, i ? STR(", {\n") : STR(" ({\n"));
        if (op->regions[i].arg_count > 0) {
            print_indent(out, depth);
            buf_add_str(out, STR("^bb0"));
            print_args(out, &op->regions[i]);
            buf_add_str(out, STR(":\n"));
        }
        print_block(out, &op->regions[i], depth + 1);
        print_indent(out, depth);
        buf_add_char(out, '}');
    }
    if (op->region_count > 0)
        buf_add_char(out, ')');
}

static void print_op(struct buf *out, const struct ir_op *op, unsigned depth)
{
    const char *name = op->kind == IR_OP_RETURN ? "func.return" : ir_op_name(op->kind);
    print_indent(out, depth);
    for (uint32_t i = 0; i < op->result_count; i++)
        buf_printf(out, "%s%%%u", i ? ", " : "", op->results[i].number);
    buf_printf(out, "%s\"%s%s\"(", op->result_count ? " = " : "", strchr(name, '.') ? "" : "stablehlo.",
               name);
    for (uint32_t i = 0; i < op->operand_count; i++)
        buf_printf(out, "%s%%%u", i ? ", " : "", op->operands[i]->number);
    buf_add_char(out, ')');
    print_attributes(out, op);
    print_regions(out, op, depth);
    buf_add_str(out, STR(" : ("));
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (i)
            buf_add_str(out, STR(", "));
        print_type(out, &op->operands[i]->type);
    }
    buf_add_str(out, STR(") -> ("));
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (i)
            buf_add_str(out, STR(", "));
        print_type(out, &op->results[i].type);
    }
    buf_add_str(out, STR(")\n"));
}

static void print_block(struct buf *out, const struct ir_block *block, unsigned depth)
{
    for (const struct ir_op *op = block->first; op; op = op->next)
        print_op(out, op, depth);
}

static void print_function(struct buf *out, const struct ir_function *function)
{
    buf_add_str(out, STR("  func.func "));
    print_symbol(out, function->name);
    print_args(out, &function->body);
    buf_add_str(out, STR(" -> ("));
    for (uint32_t i = 0; i < function->result_count; i++) {
        if (i)
            buf_add_str(out, STR(", "));
        print_type(out, &function->results[i]);
    }
    buf_add_str(out, STR(") {\n"));
    print_block(out, &function->body, 2);
    buf_add_str(out, STR("  }\n"));
}

struct str ir_print(const struct ir_module *module, struct arena *arena)
{
    struct buf BUF_CLEANUP out = {0};
    buf_add_str(&out, STR("module "));
    if (module->name.len > 0) {
        print_symbol(&out, module->name);
        buf_add_char(&out, ' ');
    }
    buf_printf(&out, "attributes {mhlo.num_partitions = %u : i32, mhlo.num_replicas = %u : i32} {\n",
               module->partitions, module->replicas);
    for (const struct ir_function *function = module->functions; function; function = function->next)
        print_function(&out, function);
    buf_add_str(&out, STR("}\n"));
    return arena_str(arena, buf_str(&out));
}
