/* Entries: validation, joining, and faults as bytes. */
#include "flow/island/entry.h"

#include <stdio.h>

struct fault fault_make(enum fault_reason reason, uint64_t launch, uint32_t node, const char *format, ...)
{
    struct fault fault = {.reason = reason, .island = UINT32_MAX, .device = UINT32_MAX};
    fault.incarnation = UINT32_MAX;
    fault.launch = launch;
    fault.node = node;
    fault.lost = reason == FAULT_DEVICE_LOST;
    va_list args;
    va_start(args, format);
    vsnprintf(fault.text, sizeof fault.text, format, args);
    va_end(args);
    return fault;
}

void fault_encode(const struct fault *fault, struct buf *out)
{
    pack_u32(out, fault->reason);
    pack_u32(out, fault->island);
    pack_u32(out, fault->device);
    pack_u32(out, fault->incarnation);
    pack_u64(out, fault->launch);
    pack_u32(out, fault->node);
    pack_u32(out, fault->lost);
    buf_add_str(out, str_from(fault->text));
}

bool fault_decode(struct str bytes, struct fault *ret)
{
    struct unpack in = {bytes.data, bytes.len, false};
    struct fault fault = {.reason = unpack_u32(&in, FAULT_REASONS - 1)};
    fault.island = unpack_u32(&in, UINT32_MAX);
    fault.device = unpack_u32(&in, UINT32_MAX);
    fault.incarnation = unpack_u32(&in, UINT32_MAX);
    fault.launch = unpack_u64(&in, UINT64_MAX);
    fault.node = unpack_u32(&in, UINT32_MAX);
    fault.lost = unpack_u32(&in, 1) != 0;
    if (in.bad || fault.reason == FAULT_NONE || in.left >= FAULT_TEXT_MAX) {
        *ret = fault_make(FAULT_CANCELLED, 0, 0, "the peer's failure cannot be read");
        return false;
    }
    mem_copy(fault.text, in.data, in.left);
    *ret = fault;
    return true;
}

bool entry_valid(const struct flow_entry *entry)
{
    if (entry->kind == ENTRY_NONE || entry->kind >= ENTRY_KINDS || entry->tail_bytes > ENTRY_TAIL_MAX)
        return false;
    if (entry->kind == ENTRY_LAUNCH) {
        bool is_list = entry->count > ENTRY_ARGS_INLINE && !(entry->flags & ENTRY_IS_RANGE);
        return entry->tail_bytes == (is_list ? entry->count * 8u : 0);
    }
    bool is_handles = entry->kind == ENTRY_RELEASE || entry->kind == ENTRY_SPILL || entry->kind == ENTRY_FILL;
    return !is_handles || entry->tail_bytes % 8 == 0;
}

bool entry_join(struct flow_entry *done, const struct flow_entry *next)
{
    uint32_t count = done->count ? done->count : 1, more = next->count ? next->count : 1;
    if (done->kind != ENTRY_DONE || next->kind != ENTRY_DONE || done->client != next->client ||
        done->launch + more != next->launch || count + more > UINT16_MAX ||
        next->args[0] > UINT64_MAX - done->args[0])
        return false;
    done->launch = next->launch;
    done->count = (uint16_t)(count + more);
    done->args[0] += next->args[0];
    return true;
}

uint64_t entry_arg(const struct flow_entry *entry, struct str tail, uint32_t i)
{
    if (entry->flags & ENTRY_IS_RANGE)
        return entry->args[0] + i;
    if (entry->count <= ENTRY_ARGS_INLINE)
        return entry->args[i];
    uint64_t handle;
    memcpy(&handle, tail.data + 8 * (size_t)i, sizeof handle);
    return handle;
}
