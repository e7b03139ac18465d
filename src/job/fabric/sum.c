/* sum.c - an all-reduce over the chips of the slice, by the plans of core/fabric/collective.h.
 *
 * The first chip of a machine begins with its rank's values, the other chips with zeros. In each step a chip
 * writes into its neighbour's memory, at a place that no other write of the operation uses, because chips may
 * be some steps ahead of each other. Chips are at most one operation ahead of each other, so operations use
 * the halves of the memory in turn. */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/fabric/collective.h"
#include "job/fabric/internal.h"

enum { SLACK = 4096 /* elements: parts of an array are rounded up */ };

struct exchange {
    struct phx_fabric *fabric;
    uint64_t operation;
    int dtype;
    size_t size; /* of an element */
    struct collective_plan plan;
    struct collective_transfer *transfers;
    uint8_t *work[PHX_SLICE_CHIPS]; /* the arrays of this machine's chips */
    uint8_t *scratch;
    uint32_t *place, *number; /* [chips] bytes and writes that have gone to each chip */
    uint32_t *at, *which;     /* of the step's transfers: their place and number */
};

size_t fabric_dtype_size(int dtype)
{
    return dtype == PHX_F32 ? 4 : dtype == PHX_I64 || dtype == PHX_F64 ? 8 : 0;
}

uint32_t fabric_sum_max(const struct phx_fabric *fabric, int dtype)
{
    size_t half = fabric->memory_bytes / 2 / fabric_dtype_size(dtype);
    return half > 2 * SLACK ? (uint32_t)((half - SLACK) / 2) : 0;
}

static void add_values(void *to, const void *from, uint32_t count, int dtype)
{
    uint64_t *whole = to;
    float *single = to;
    double *twice = to;
    for (uint32_t i = 0; i < count; i++)
        if (dtype == PHX_I64)
            whole[i] += ((const uint64_t *)from)[i];
        else if (dtype == PHX_F32)
            single[i] += ((const float *)from)[i];
        else
            twice[i] += ((const double *)from)[i];
}

/* Returns the index of a chip of this machine; PHX_SLICE_CHIPS if the chip is another machine's. */
static uint32_t own_chip(const struct phx_fabric *fabric, uint16_t number)
{
    uint32_t index = 0;
    while (index < PHX_SLICE_CHIPS && fabric->slice.chips[index].number != number)
        index++;
    return index;
}

static int send_step(struct exchange *exchange, uint32_t count, struct phx_error *error)
{
    struct phx_fabric *fabric = exchange->fabric;
    uint32_t half = (uint32_t)(exchange->operation & 1) * (fabric->memory_bytes / 2);
    int status = 0;
    for (uint32_t i = 0; i < count && status == 0; i++) {
        const struct collective_transfer *transfer = &exchange->transfers[i];
        uint32_t bytes = transfer->count * (uint32_t)exchange->size, index = own_chip(fabric, transfer->from);
        exchange->at[i] = half + exchange->place[transfer->to];
        exchange->which[i] = exchange->number[transfer->to]++;
        exchange->place[transfer->to] += bytes;
        CHECK(exchange->place[transfer->to] <= fabric->memory_bytes / 2);
        if (index < PHX_SLICE_CHIPS)
            status =
                fabric->driver->write(fabric->chips, index, transfer->to, exchange->at[i],
                                      exchange->work[index] + transfer->from_first * exchange->size, bytes,
                                      exchange->operation << TAG_NUMBER_BITS | exchange->which[i], error);
    }
    return status;
}

static int take_transfer(struct exchange *exchange, uint32_t i, uint32_t index, struct phx_error *error)
{
    struct phx_fabric *fabric = exchange->fabric;
    const struct collective_transfer *transfer = &exchange->transfers[i];
    int status = 0;
    while (status == 0 && !fabric_arrived(fabric, exchange->operation, index, exchange->which[i]))
        status = fabric_watch(fabric, true, error);
    if (status == 0)
        status = fabric->driver->read(fabric->chips, index, exchange->at[i], exchange->scratch,
                                      transfer->count * (uint32_t)exchange->size, error);
    if (status != 0)
        return status;
    uint8_t *to = exchange->work[index] + transfer->to_first * exchange->size;
    if (transfer->add)
        add_values(to, exchange->scratch, transfer->count, exchange->dtype);
    else
        memcpy(to, exchange->scratch, transfer->count * exchange->size);
    return 0;
}

static int run_steps(struct exchange *exchange, struct phx_error *error)
{
    struct phx_fabric *fabric = exchange->fabric;
    int status = fabric_watch(fabric, false, error);
    for (uint32_t step = 0; step < exchange->plan.steps && status == 0; step++) {
        uint32_t count = collective_transfers(&exchange->plan, step, exchange->transfers);
        status = send_step(exchange, count, error);
        for (uint32_t i = 0; i < count && status == 0; i++) {
            uint32_t index = own_chip(fabric, exchange->transfers[i].to);
            if (index < PHX_SLICE_CHIPS)
                status = take_transfer(exchange, i, index, error);
        }
    }
    /* A chip that only sends in the last steps, as in a sum of one element, waits for no event after them. */
    return status == 0 ? fabric_flush(fabric, error) : status;
}

int fabric_sum_once(struct phx_fabric *fabric, void *values, uint32_t count, int dtype, uint64_t operation,
                    struct phx_error *error)
{
    ARENA_CLEANUP struct arena arena = {0};
    size_t size = fabric_dtype_size(dtype);
    uint32_t chips = fabric->torus.chips;
    CHECK(count > 0 && count <= fabric_sum_max(fabric, dtype));
    struct exchange exchange = {
        .fabric = fabric,
        .operation = operation,
        .dtype = dtype,
        .size = size,
        .plan = collective_plan(&fabric->torus, COLLECTIVE_ALL_REDUCE, COLLECTIVE_ONE_WAY, count)};
    uint32_t most = collective_transfers_max(&exchange.plan);
    if (exchange.plan.steps > 64 * fabric->arrivals.words)
        return fabric_fail(error, PHX_ERROR_INVALID, "a sum of %u steps: expected at most %u",
                           exchange.plan.steps, 64 * fabric->arrivals.words);
    exchange.transfers = ARENA_ARRAY(&arena, struct collective_transfer, most);
    exchange.at = ARENA_ARRAY(&arena, uint32_t, most);
    exchange.which = ARENA_ARRAY(&arena, uint32_t, most);
    exchange.place = ARENA_ARRAY(&arena, uint32_t, chips);
    exchange.number = ARENA_ARRAY(&arena, uint32_t, chips);
    exchange.scratch = ARENA_ARRAY(&arena, uint8_t, count * size);
    for (uint32_t index = 0; index < PHX_SLICE_CHIPS; index++)
        exchange.work[index] = ARENA_ARRAY(&arena, uint8_t, count * size);
    memcpy(exchange.work[0], values, count * size);
    int status = run_steps(&exchange, error);
    if (status == 0)
        memcpy(values, exchange.work[0], count * size);
    return status;
}
