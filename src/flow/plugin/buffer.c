/* buffer.c - values on devices. */
#include "flow/plugin/plugin.h"

#include <string.h>

#include "base/arena.h"

static struct pjrt_error *buffer_was_deleted(void)
{
    return plugin_error(PJRT_CODE_INVALID_ARGUMENT, "the buffer was deleted");
}

static bool host_is_dense(const struct pjrt_buffer_from_host *send, const struct ir_type *type)
{
    int64_t stride = (int64_t)ir_element_size(type->element);
    if (!send->byte_strides)
        return true;
    if (send->byte_stride_count != send->dim_count)
        return false;
    for (int32_t d = type->rank - 1; d >= 0; d--) {
        if (type->dims[d] > 1 && send->byte_strides[d] != stride)
            return false;
        stride *= type->dims[d];
    }
    return true;
}

static struct pjrt_error *host_type(const struct pjrt_buffer_from_host *send, struct ir_type *ret_type)
{
    struct ir_type type = {.element = pjrt_element_of(send->type), .rank = (int32_t)send->dim_count};
    if (type.element == IR_ELEMENTS)
        return plugin_error(PJRT_CODE_UNIMPLEMENTED, "elements of type %d are not supported", send->type);
    if (send->dim_count > IR_RANK_MAX)
        return plugin_error(PJRT_CODE_UNIMPLEMENTED, "%zu dimensions: at most %d are supported",
                            send->dim_count, IR_RANK_MAX);
    int64_t bytes = (int64_t)ir_element_size(type.element);
    for (size_t d = 0; d < send->dim_count; d++) {
        type.dims[d] = send->dims[d];
        if (send->dims[d] < 0 || __builtin_mul_overflow(bytes, send->dims[d], &bytes))
            return plugin_error(PJRT_CODE_INVALID_ARGUMENT, "dimension %zu of %lld elements", d,
                                (long long)send->dims[d]);
    }
    *ret_type = type;
    return NULL;
}

struct pjrt_error *plugin_buffer_from_host(void *args)
{
    struct pjrt_buffer_from_host *send = args;
    struct ir_type type;
    if (!PLUGIN_KNOWS(send, buffer))
        return plugin_too_small();
    struct pjrt_error *error = host_type(send, &type);
    if (error)
        return error;
    if (!host_is_dense(send, &type))
        return plugin_error(PJRT_CODE_UNIMPLEMENTED, "elements that are not dense and row-major");
    if (!send->device && !send->memory)
        return plugin_error(PJRT_CODE_INVALID_ARGUMENT, "neither a device nor a memory");
    struct tensor *tensor = tensor_new(&type);
    if (!tensor)
        return plugin_error(PJRT_CODE_RESOURCE_EXHAUSTED, "no memory for a buffer");
    mem_copy(tensor->data, send->data, (size_t)ir_type_bytes(&type));
    send->buffer = mem_alloc(sizeof *send->buffer);
    *send->buffer =
        (struct pjrt_buffer){.tensor = tensor, .device = send->device ? send->device : send->memory->device};
    send->done_with_host = plugin_event(NULL);
    return NULL;
}

struct pjrt_error *plugin_buffer_to_host(void *args)
{
    struct pjrt_buffer_to_host *fetch = args;
    if (!PLUGIN_KNOWS(fetch, event))
        return plugin_too_small();
    const struct tensor *tensor = fetch->buffer->tensor;
    if (!tensor)
        return buffer_was_deleted();
    size_t bytes = (size_t)ir_type_bytes(&tensor->type);
    if (!fetch->to) {
        fetch->to_len = bytes;
        return NULL;
    }
    if (fetch->to_len < bytes)
        return plugin_error(PJRT_CODE_INVALID_ARGUMENT, "%zu bytes do not fit into %zu", bytes,
                            fetch->to_len);
    mem_copy(fetch->to, tensor->data, bytes);
    fetch->event = plugin_event(NULL);
    return NULL;
}

struct pjrt_error *plugin_buffer_destroy(void *args)
{
    struct pjrt_buffer *buffer = ((struct pjrt_about *)args)->object;
    tensor_unref(buffer->tensor);
    mem_free(buffer);
    return NULL;
}

struct pjrt_error *plugin_buffer_delete(void *args)
{
    struct pjrt_buffer *buffer = ((struct pjrt_about *)args)->object;
    tensor_unref(buffer->tensor);
    buffer->tensor = NULL;
    return NULL;
}

struct pjrt_error *plugin_buffer_is_deleted(void *args)
{
    struct pjrt_about_bool *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = !((const struct pjrt_buffer *)about->object)->tensor;
    return NULL;
}

struct pjrt_error *plugin_buffer_is_on_cpu(void *args)
{
    struct pjrt_about_bool *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = true;
    return NULL;
}

struct pjrt_error *plugin_buffer_type(void *args)
{
    struct pjrt_about_int *about = args;
    const struct pjrt_buffer *buffer = about->object;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    if (!buffer->tensor)
        return buffer_was_deleted();
    about->answer = (int)pjrt_type_of(buffer->tensor->type.element);
    return NULL;
}

struct pjrt_error *plugin_buffer_dimensions(void *args)
{
    struct pjrt_about_list *about = args;
    const struct pjrt_buffer *buffer = about->object;
    if (!PLUGIN_KNOWS(about, count))
        return plugin_too_small();
    if (!buffer->tensor)
        return buffer_was_deleted();
    about->items = (void **)buffer->tensor->type.dims; /* this function returns a list of int64_t */
    about->count = (size_t)buffer->tensor->type.rank;
    return NULL;
}

struct pjrt_error *plugin_buffer_size(void *args)
{
    struct pjrt_about_size *about = args;
    const struct pjrt_buffer *buffer = about->object;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    if (!buffer->tensor)
        return buffer_was_deleted();
    about->answer = (size_t)ir_type_bytes(&buffer->tensor->type);
    return NULL;
}

struct pjrt_error *plugin_buffer_device(void *args)
{
    struct pjrt_about_object *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = ((const struct pjrt_buffer *)about->object)->device;
    return NULL;
}

struct pjrt_error *plugin_buffer_memory(void *args)
{
    struct pjrt_about_object *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    about->answer = &((const struct pjrt_buffer *)about->object)->device->memory;
    return NULL;
}

struct pjrt_error *plugin_buffer_ready_event(void *args)
{
    struct pjrt_about_object *about = args;
    if (!PLUGIN_KNOWS(about, answer))
        return plugin_too_small();
    if (!((const struct pjrt_buffer *)about->object)->tensor)
        return buffer_was_deleted();
    about->answer = plugin_event(NULL);
    return NULL;
}
