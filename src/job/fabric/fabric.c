/* fabric.c - opens and closes the network of a slice, and repeats calls after the network was brought up
 * again. */
#include "phalanx/fabric.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "job/fabric/internal.h"

enum { ARRIVAL_WORDS = 64, BYE_MS = 50 };

int fabric_fail(struct phx_error *error, int code, const char *format, ...)
{
    va_list args;
    if (error == NULL)
        return code;
    *error = (struct phx_error){.code = code, .rank = -1};
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

void fabric_key(const struct phx_fabric *fabric, const char *name, uint32_t generation, int64_t rank,
                char key[FABRIC_KEY_MAX])
{
    fabric_gather_key(fabric->opened, name, generation, rank, key);
}

/* --- open ---------------------------------------------------------------------------------------------- */

static int take_slice(struct phx_fabric *fabric, struct phx_error *error)
{
    struct error why = {0};
    int status = phx_slice_wait(fabric->ctx, 0, -1, &fabric->slice, error);
    if (status < 0)
        return status;
    for (int axis = 0; axis < AXES; axis++)
        fabric->shape.extent[axis] = (uint16_t)fabric->slice.extent[axis];
    fabric->shape.twisted = fabric->slice.twisted;
    if (slice_shape_check(&fabric->shape, &why) < 0)
        return fabric_fail(error, PHX_ERROR_INVALID, "the job's slice: %s", why.text);
    if (slice_shape_chips(&fabric->shape) != fabric->world * PHX_SLICE_CHIPS)
        return fabric_fail(error, PHX_ERROR_INVALID, "the job's slice has %u chips, and the job %u ranks",
                           slice_shape_chips(&fabric->shape), fabric->world);
    torus_init(&fabric->torus, &fabric->shape);
    return 0;
}

/* Counts the fabrics opened earlier in this attempt, which are as many on all ranks, and records this one. */
static int count_opens(struct phx_fabric *fabric, struct phx_error *error)
{
    char key[FABRIC_KEY_MAX], value;
    size_t len;
    int status;
    for (;; fabric->opened++) {
        fabric_key(fabric, "open", 0, fabric->rank, key);
        status = phx_kv_get(fabric->ctx, key, &value, 1, &len, 0, error);
        if (status != 0)
            break;
    }
    return status == PHX_ERROR_NONE ? phx_kv_put(fabric->ctx, key, "1", 1, error) : status;
}

static int open_chips(struct phx_fabric *fabric, const char *text, struct phx_error *error)
{
    const char *address;
    text = text != NULL ? text : getenv("PHX_CHIP_NETWORK");
    if (text == NULL || text[0] == '\0')
        return fabric_fail(
            error, PHX_ERROR_INVALID,
            "PHX_CHIP_NETWORK is not set: the job asks for no slice, or the cluster file names no "
            "chips for the pod");
    int status = fabric_driver(text, &fabric->driver, &address, error);
    if (status == 0)
        status = fabric->driver->open(address, &fabric->chips, error);
    if (status == 0 && fabric->driver->count(fabric->chips) != PHX_SLICE_CHIPS)
        status = fabric_fail(error, PHX_ERROR_INVALID, "%.100s: expected a machine with %d chips", text,
                             PHX_SLICE_CHIPS);
    return status;
}

/* Returns a copy of the folder's name; NULL if there is none. */
static char *folder_of(const char *asked)
{
    const char *folder = asked != NULL ? asked : getenv("PHX_ROUTE_CACHE");
    if (folder == NULL || folder[0] == '\0')
        return NULL;
    char *copy = mem_alloc(strlen(folder) + 1);
    return memcpy(copy, folder, strlen(folder) + 1);
}

static void free_fabric(struct phx_fabric *fabric)
{
    if (fabric->chips != NULL)
        fabric->driver->close(fabric->chips);
    for (uint32_t slot = 0; slot < 2; slot++)
        for (uint32_t chip = 0; chip < PHX_SLICE_CHIPS; chip++)
            mem_free(fabric->arrivals.bits[slot][chip]);
    torus_done(&fabric->torus);
    mem_free(fabric->words);
    fabric_cache_done(fabric, true);
    mem_free(fabric->last.values);
    mem_free(fabric);
}

/* Unloads this machine's chips, closes their session, and frees the fabric. */
static void leave_chips(struct phx_fabric *fabric)
{
    for (uint32_t index = 0; index < PHX_SLICE_CHIPS && fabric->chips != NULL; index++)
        fabric->driver->unload(fabric->chips, index, NULL);
    phx_slice_leave(fabric->ctx);
    free_fabric(fabric);
}

/* Brings the network up, again and again until nothing interrupts it. */
static int bring_up(struct phx_fabric *fabric, struct phx_error *error)
{
    int status;
    do
        status = fabric_bring_up(fabric, error);
    while (status == FABRIC_AGAIN);
    return status;
}

int phx_fabric_open(phx_context *ctx, const struct phx_fabric_options *options, phx_fabric **ret_fabric,
                    struct phx_error *error)
{
    struct phx_fabric_options asked = {0};
    if (options != NULL)
        memcpy(&asked, options, options->size < sizeof asked ? options->size : sizeof asked);
    struct phx_fabric *fabric = mem_alloc(sizeof *fabric);
    fabric->ctx = ctx;
    fabric->rank = phx_rank(ctx);
    fabric->world = phx_world_size(ctx);
    fabric->keeps_routes = asked.keeps_routes != 0;
    fabric->cache.folder = folder_of(asked.route_cache);
    fabric->words = mem_alloc(fabric->world * sizeof *fabric->words);
    fabric->arrivals.words = ARRIVAL_WORDS;
    for (uint32_t slot = 0; slot < 2; slot++)
        for (uint32_t chip = 0; chip < PHX_SLICE_CHIPS; chip++)
            fabric->arrivals.bits[slot][chip] = mem_alloc(ARRIVAL_WORDS * sizeof(uint64_t));
    int status = open_chips(fabric, asked.chips, error);
    if (status == 0)
        status = take_slice(fabric, error);
    if (status == 0)
        status = phx_slice_enter(ctx, asked.answer_ms > 0 ? asked.answer_ms : -1, error);
    if (status == 0)
        status = count_opens(fabric, error);
    if (status == 0)
        status = bring_up(fabric, error);
    if (status != 0) {
        leave_chips(fabric);
        return status;
    }
    *ret_fabric = fabric;
    return 0;
}

void phx_fabric_get(const phx_fabric *fabric, struct phx_fabric_about *ret_about)
{
    *ret_about = (struct phx_fabric_about){.session = fabric->session,
                                           .chips = fabric->summary.chips,
                                           .links = fabric->summary.links - fabric->summary.dark,
                                           .dark = fabric->summary.dark,
                                           .reroutes = fabric->bring_ups - 1,
                                           .tables = fabric->slice.tables,
                                           .cached = fabric->summary.from_pattern,
                                           .wrong = fabric->wrong};
    const struct error *failure =
        fabric->cache.keeper != NULL ? route_cache_failure(fabric->cache.keeper) : NULL;
    memcpy(ret_about->cache_note, fabric->cache.note, sizeof ret_about->cache_note);
    if (failure != NULL)
        snprintf(ret_about->cache_note, sizeof ret_about->cache_note, "%.250s", failure->text);
}

/* --- sums ---------------------------------------------------------------------------------------------- */

static int repeat_last(struct phx_fabric *fabric, struct phx_error *error)
{
    ARENA_CLEANUP struct arena arena = {0};
    CHECK(fabric->done > 0 && fabric->last.values != NULL);
    size_t bytes = fabric->last.count * fabric_dtype_size(fabric->last.dtype);
    void *values = ARENA_ARRAY(&arena, uint8_t, bytes);
    memcpy(values, fabric->last.values, bytes);
    return fabric_sum_once(fabric, values, fabric->last.count, fabric->last.dtype, fabric->done - 1, error);
}

/* Repeats the last sum for ranks that have not finished it, until it succeeds. */
static int help_behind(struct phx_fabric *fabric, struct phx_error *error)
{
    int status = 0;
    while (status == 0 && fabric->behind) {
        status = repeat_last(fabric, error);
        if (status == 0)
            fabric->behind = false;
        else if (status == FABRIC_AGAIN)
            status = bring_up(fabric, error);
    }
    return status;
}

static int try_sum(struct phx_fabric *fabric, void *values, uint32_t count, int dtype,
                   struct phx_error *error)
{
    int status = help_behind(fabric, error);
    return status == 0 ? fabric_sum_once(fabric, values, count, dtype, fabric->done, error) : status;
}

/* Makes one operation, and repeats it until it succeeds. */
static int sum_part(struct phx_fabric *fabric, void *values, uint32_t count, int dtype,
                    struct phx_error *error)
{
    size_t bytes = count * fabric_dtype_size(dtype);
    void *before = mem_alloc(bytes);
    int status;
    memcpy(before, values, bytes);
    while ((status = try_sum(fabric, values, count, dtype, error)) == FABRIC_AGAIN)
        if ((status = bring_up(fabric, error)) != 0)
            break;
    if (status != 0) {
        mem_free(before);
        return status;
    }
    mem_free(fabric->last.values);
    fabric->last.values = before;
    fabric->last.count = count;
    fabric->last.dtype = dtype;
    fabric->done++;
    return 0;
}

int phx_fabric_sum(phx_fabric *fabric, void *values, size_t count, int dtype, struct phx_error *error)
{
    size_t size = fabric_dtype_size(dtype);
    if (size == 0)
        return fabric_fail(error, PHX_ERROR_INVALID,
                           "a sum of dtype %d: expected PHX_I64, PHX_F32 or PHX_F64", dtype);
    uint32_t most = fabric_sum_max(fabric, dtype);
    if (most == 0)
        return fabric_fail(error, PHX_ERROR_INVALID, "chips with %u bytes of memory are too small for sums",
                           fabric->memory_bytes);
    int status = 0;
    for (size_t at = 0; at < count && status == 0;) {
        uint32_t part = count - at < most ? (uint32_t)(count - at) : most;
        status = sum_part(fabric, (uint8_t *)values + at * size, part, dtype, error);
        at += part;
    }
    return status;
}

/* --- close --------------------------------------------------------------------------------------------- */

/* Returns 1 if all ranks are done, 0 if not yet, or an error. Rank 0 reads the keys of all ranks, from *first
 * on, and then puts one more key after theirs; the other ranks wait for that key alone. */
static int all_are_done(struct phx_fabric *fabric, uint32_t *first, struct phx_error *error)
{
    char key[FABRIC_KEY_MAX], value;
    size_t len;
    if (fabric->rank > 0 && *first == 0)
        *first = fabric->world;
    for (; *first < fabric->world + (fabric->rank > 0); ++*first) {
        fabric_key(fabric, "bye", 0, *first, key);
        int status = phx_kv_get(fabric->ctx, key, &value, 1, &len, BYE_MS, error);
        if (status == PHX_ERROR_TIMEOUT || status == PHX_ERROR_NONE)
            return 0;
        if (status != 0)
            return status;
    }
    fabric_key(fabric, "bye", 0, fabric->world, key);
    int status = fabric->rank == 0 ? phx_kv_put(fabric->ctx, key, "1", 1, error) : 0;
    return status == 0 ? 1 : status;
}

/* Waits for ranks that are not done, because they may need this rank's chips. Does not ask for a new
 * generation: ranks that have seen that all are done have left. */
static int stay(struct phx_fabric *fabric, struct phx_error *error)
{
    char key[FABRIC_KEY_MAX];
    uint32_t first = 0;
    int status;
    fabric_key(fabric, "bye", 0, fabric->rank, key);
    status = help_behind(fabric, error);
    if (status == 0)
        status = phx_kv_put(fabric->ctx, key, "1", 1, error);
    while (status == 0 && (status = all_are_done(fabric, &first, error)) == 0) {
        status = fabric_is_asked(fabric, error);
        if (status == FABRIC_AGAIN)
            status = bring_up(fabric, error);
        if (status == 0)
            status = help_behind(fabric, error);
    }
    return status < 0 ? status : 0;
}

int phx_fabric_close(phx_fabric *fabric, struct phx_error *error)
{
    if (fabric == NULL)
        return 0;
    bool stays = phx_check(fabric->ctx, NULL) == 0;
    int status = stays ? stay(fabric, error) : 0;
    fabric_cache_done(fabric, !stays || status != 0);
    phx_fabric_abandon(fabric);
    return status;
}

void phx_fabric_abandon(phx_fabric *fabric)
{
    if (fabric != NULL)
        leave_chips(fabric);
}
