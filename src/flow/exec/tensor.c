/* tensor.c - values in memory. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/executor.h"
#include "flow/exec/kernels.h"

/* Small tensors and their elements share one malloc, which is faster than an aligned allocation. */
enum { TENSOR_ALIGNMENT = 64, TENSOR_SMALL = 512 };

static _Atomic int64_t tensor_bytes_now, tensor_bytes_most;

int64_t tensor_bytes(void)
{
    return atomic_load_explicit(&tensor_bytes_now, memory_order_relaxed);
}

int64_t tensor_bytes_peak(void)
{
    return atomic_load_explicit(&tensor_bytes_most, memory_order_relaxed);
}

void tensor_bytes_mark(void)
{
    atomic_store_explicit(&tensor_bytes_most, tensor_bytes(), memory_order_relaxed);
}

static void tensor_bytes_add(int64_t bytes)
{
    int64_t now = atomic_fetch_add_explicit(&tensor_bytes_now, bytes, memory_order_relaxed) + bytes;
    int64_t most = tensor_bytes_peak();
    while (now > most && !atomic_compare_exchange_weak_explicit(&tensor_bytes_most, &most, now,
                                                                memory_order_relaxed, memory_order_relaxed))
        continue;
}

struct tensor *tensor_new(const struct ir_type *type)
{
    int64_t bytes = ir_type_bytes(type);
    size_t head = (sizeof(struct tensor) + TENSOR_ALIGNMENT - 1) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
    size_t size = head + (size_t)bytes + TENSOR_ALIGNMENT - 1;
    CHECK(bytes >= 0);
    struct tensor *tensor = bytes <= TENSOR_SMALL
                                ? malloc(size)
                                : aligned_alloc(TENSOR_ALIGNMENT, size / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT);
    if (!tensor)
        return NULL;
    uintptr_t data = ((uintptr_t)(tensor + 1) + TENSOR_ALIGNMENT - 1) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
    *tensor = (struct tensor){.type = *type, .references = 1, .data = (void *)data};
    tensor_bytes_add(bytes);
    return tensor;
}

struct tensor *tensor_ref(struct tensor *tensor)
{
    uint32_t before = atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    CHECK(before > 0 && before < UINT32_MAX);
    return tensor;
}

/* Protects the copies of all tensors. Held for a few instructions, once for each argument and result of a
 * launch on a device with its own memory. */
static pthread_mutex_t tensor_copies = PTHREAD_MUTEX_INITIALIZER;

void tensor_copy_unref(struct tensor_copy *copy)
{
    if (copy && atomic_fetch_sub_explicit(&copy->references, 1, memory_order_acq_rel) == 1)
        copy->free(copy);
}

void tensor_copy_set(struct tensor *tensor, struct tensor_copy *copy)
{
    pthread_mutex_lock(&tensor_copies);
    struct tensor_copy *old = tensor->copy;
    tensor->copy = copy;
    pthread_mutex_unlock(&tensor_copies);
    tensor_copy_unref(old);
}

struct tensor_copy *tensor_copy_take(struct tensor *tensor, const void *device)
{
    pthread_mutex_lock(&tensor_copies);
    struct tensor_copy *copy = tensor->copy && tensor->copy->device == device ? tensor->copy : NULL;
    if (copy)
        atomic_fetch_add_explicit(&copy->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&tensor_copies);
    return copy;
}

void tensor_unref(struct tensor *tensor)
{
    if (!tensor || atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) > 1)
        return;
    tensor_copy_unref(tensor->copy);
    if (tensor->release)
        tensor->release(tensor);
    else {
        tensor_bytes_add(-ir_type_bytes(&tensor->type));
        free(tensor);
    }
}

struct tensor *tensor_of_literal(const struct ir_literal *literal)
{
    struct tensor *tensor = tensor_new(&literal->type);
    if (!tensor)
        return NULL;
    size_t bytes = (size_t)ir_type_bytes(&literal->type), size = ir_element_size(literal->type.element);
    if (literal->splat)
        kernel_copy(size, literal->data, 0, ir_type_elements(&literal->type), tensor->data);
    else if (bytes > 0)
        memcpy(tensor->data, literal->data, bytes);
    return tensor;
}
