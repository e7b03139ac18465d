/* Conversion of the types of the public header. */
#include "flow/ir/public.h"

_Static_assert((int)PHX_FLOW_RANK_MAX == (int)IR_RANK_MAX, "ranks have one limit");
_Static_assert((int)PHX_FLOW_MESH_RANK_MAX == (int)PROGRAM_MESH_RANK_MAX, "meshes have one limit");

static const enum ir_element ir_public_elements[] = {
    [PHX_FLOW_BOOL] = IR_I1,       [PHX_FLOW_INT8] = IR_I8,       [PHX_FLOW_INT16] = IR_I16,
    [PHX_FLOW_INT32] = IR_I32,     [PHX_FLOW_INT64] = IR_I64,     [PHX_FLOW_UINT8] = IR_U8,
    [PHX_FLOW_UINT16] = IR_U16,    [PHX_FLOW_UINT32] = IR_U32,    [PHX_FLOW_UINT64] = IR_U64,
    [PHX_FLOW_BFLOAT16] = IR_BF16, [PHX_FLOW_FLOAT16] = IR_F16,   [PHX_FLOW_FLOAT32] = IR_F32,
    [PHX_FLOW_FLOAT64] = IR_F64,   [PHX_FLOW_COMPLEX64] = IR_C64, [PHX_FLOW_COMPLEX128] = IR_C128,
};
enum { IR_PUBLIC_ELEMENTS = sizeof ir_public_elements / sizeof *ir_public_elements };

bool ir_type_of_public(const struct phx_flow_type *type, struct ir_type *ret)
{
    if ((unsigned)type->element >= IR_PUBLIC_ELEMENTS || type->rank < 0 || type->rank > IR_RANK_MAX)
        return false;
    struct ir_type made = {.element = ir_public_elements[type->element], .rank = type->rank};
    int64_t elements = 1;
    for (int32_t d = 0; d < type->rank; d++) {
        if (type->dims[d] < 0 || (type->dims[d] > 0 && elements > IR_ELEMENTS_MAX / type->dims[d]))
            return false;
        made.dims[d] = type->dims[d];
        elements *= type->dims[d];
    }
    *ret = made;
    return true;
}

bool ir_type_to_public(const struct ir_type *type, struct phx_flow_type *ret)
{
    for (int element = 0; element < IR_PUBLIC_ELEMENTS; element++) {
        if (ir_public_elements[element] != type->element)
            continue;
        *ret = (struct phx_flow_type){.element = (enum phx_flow_element)element, .rank = type->rank};
        for (int32_t d = 0; d < type->rank; d++)
            ret->dims[d] = type->dims[d];
        return true;
    }
    return false;
}

struct flow_sharding flow_sharding_of_public(const struct phx_flow_sharding *sharding)
{
    struct flow_sharding made = {.mesh = sharding->mesh};
    memcpy(made.axes, sharding->axes, sizeof made.axes);
    return made;
}
