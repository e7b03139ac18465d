/* tensor.c - values in memory. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/executor.h"

enum { TENSOR_ALIGNMENT = 64 };

struct tensor *tensor_new(const struct ir_type *type)
{
    int64_t bytes = ir_type_bytes(type);
    size_t head = (sizeof(struct tensor) + TENSOR_ALIGNMENT - 1) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
    size_t size = head + (size_t)bytes + TENSOR_ALIGNMENT - 1;
    struct tensor *tensor = aligned_alloc(TENSOR_ALIGNMENT, size / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT);
    if (!tensor)
        return NULL;
    *tensor = (struct tensor){.type = *type, .references = 1, .data = (char *)tensor + head};
    return tensor;
}

struct tensor *tensor_ref(struct tensor *tensor)
{
    uint32_t before = atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    CHECK(before > 0 && before < UINT32_MAX);
    return tensor;
}

void tensor_unref(struct tensor *tensor)
{
    if (!tensor || atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) > 1)
        return;
    if (tensor->release)
        tensor->release(tensor);
    else
        free(tensor);
}

struct tensor *tensor_of_literal(const struct ir_literal *literal)
{
    struct tensor *tensor = tensor_new(&literal->type);
    if (!tensor)
        return NULL;
    size_t bytes = (size_t)ir_type_bytes(&literal->type), size = ir_element_size(literal->type.element);
    if (!literal->splat) {
        memcpy(tensor->data, literal->data, bytes);
        return tensor;
    }
    for (size_t at = 0; at < bytes; at += size)
        memcpy((char *)tensor->data + at, literal->data, size);
    return tensor;
}
