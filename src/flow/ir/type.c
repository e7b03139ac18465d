/* type.c - element types, shapes, and the names of operations. */
#include "flow/ir/parse.h"

#include <stdio.h>

const char *ir_element_name(enum ir_element element)
{
    static const char *const names[] = {
#define IR_ELEMENT(id, name, size) [IR_##id] = name,
        IR_TYPES(IR_ELEMENT)
#undef IR_ELEMENT
    };
    CHECK(element < IR_ELEMENTS);
    return names[element];
}

unsigned ir_element_size(enum ir_element element)
{
    static const unsigned char sizes[] = {
#define IR_ELEMENT(id, name, size) [IR_##id] = size,
        IR_TYPES(IR_ELEMENT)
#undef IR_ELEMENT
    };
    CHECK(element < IR_ELEMENTS);
    return sizes[element];
}

const char *ir_op_name(enum ir_op_kind kind)
{
    static const char *const names[] = {
#define IR_OP(id, name, least, most, regions) [IR_OP_##id] = name,
        IR_OPS(IR_OP)
#undef IR_OP
    };
    CHECK(kind < IR_OP_KINDS);
    return names[kind];
}

bool ir_name_is_valid(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.data[i];
        if (c < ' ' || c == '"' || c == '\\' || c == 0x7F)
            return false;
    }
    return name.len > 0 && str_is_utf8(name);
}

void ir_make_printable(char *text, size_t left)
{
    while (left > 0) {
        size_t len = str_utf8_len(text, left);
        if (len == 0 || (unsigned char)*text < ' ' || *text == 0x7F)
            *text = '?';
        len = len ? len : 1;
        text += len;
        left -= len;
    }
}

bool ir_type_equal(const struct ir_type *a, const struct ir_type *b)
{
    return a->element == b->element && a->rank == b->rank &&
           memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)a->rank) == 0;
}

int64_t ir_type_elements(const struct ir_type *type)
{
    int64_t elements = 1;
    for (int32_t i = 0; i < type->rank; i++)
        elements *= type->dims[i];
    return elements;
}

int64_t ir_type_bytes(const struct ir_type *type)
{
    return ir_type_elements(type) * ir_element_size(type->element);
}

const char *ir_type_text(const struct ir_type *type, char text[IR_TYPE_TEXT_MAX])
{
    if (type->element == IR_TOKEN) {
        snprintf(text, IR_TYPE_TEXT_MAX, "%s", ir_element_name(type->element));
        return text;
    }
    int len = snprintf(text, IR_TYPE_TEXT_MAX, "tensor<");
    for (int32_t i = 0; i < type->rank; i++)
        len += snprintf(text + len, IR_TYPE_TEXT_MAX - (size_t)len, "%lldx", (long long)type->dims[i]);
    snprintf(text + len, IR_TYPE_TEXT_MAX - (size_t)len, "%s>", ir_element_name(type->element));
    return text;
}

unsigned ir_element_bits(enum ir_element element)
{
    switch (element) {
    case IR_I1:
        return 1;
    case IR_I2:
    case IR_U2:
        return 2;
    case IR_I4:
    case IR_U4:
        return 4;
    default:
        return ir_element_size(element) * 8;
    }
}
