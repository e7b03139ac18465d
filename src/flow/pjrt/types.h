/* types.h - element types of PJRT and of StableHLO (flow/ir). Both store an i1 in a byte. */
#ifndef PHX_FLOW_PJRT_TYPES_H
#define PHX_FLOW_PJRT_TYPES_H

#include "flow/ir/ir.h"
#include "flow/pjrt/abi.h"

/* Returns PJRT_TYPE_INVALID if PJRT has no type with the same layout. */
static inline enum pjrt_type pjrt_type_of(enum ir_element element)
{
    static const uint8_t TYPES[IR_ELEMENTS] = {
        [IR_I1] = PJRT_TYPE_PRED,           [IR_I8] = PJRT_TYPE_S8,
        [IR_I16] = PJRT_TYPE_S16,           [IR_I32] = PJRT_TYPE_S32,
        [IR_I64] = PJRT_TYPE_S64,           [IR_U8] = PJRT_TYPE_U8,
        [IR_U16] = PJRT_TYPE_U16,           [IR_U32] = PJRT_TYPE_U32,
        [IR_U64] = PJRT_TYPE_U64,           [IR_F16] = PJRT_TYPE_F16,
        [IR_F32] = PJRT_TYPE_F32,           [IR_F64] = PJRT_TYPE_F64,
        [IR_BF16] = PJRT_TYPE_BF16,         [IR_C64] = PJRT_TYPE_C64,
        [IR_C128] = PJRT_TYPE_C128,         [IR_F8E5M2] = PJRT_TYPE_F8E5M2,
        [IR_F8E4M3FN] = PJRT_TYPE_F8E4M3FN,
    };
    return (enum pjrt_type)TYPES[element];
}

/* Returns IR_ELEMENTS if the type is unknown. */
static inline enum ir_element pjrt_element_of(int type)
{
    for (int element = 0; element < IR_ELEMENTS; element++)
        if (type != PJRT_TYPE_INVALID && (int)pjrt_type_of((enum ir_element)element) == type)
            return (enum ir_element)element;
    return IR_ELEMENTS;
}

#endif
