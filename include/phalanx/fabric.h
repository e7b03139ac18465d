/* fabric.h - the chip network of a slice, for the tasks of a job (libphalanx_fabric, on libphalanx).
 *
 * A job that asks for a slice of an optically switched pod (docs/fabric.md) gets chips that are linked as a
 * torus. Its ranks bring the network up together, sum over it, and go on when a link or a switch is lost:
 *
 *     phx_fabric *fabric;
 *     if (phx_fabric_open(ctx, NULL, &fabric, &error) != 0)
 *         return fprintf(stderr, "%s\n", error.message), 1;
 *     for (...)
 *         phx_fabric_sum(fabric, gradients, count, PHX_F32, &error);
 *     phx_fabric_close(fabric, &error);
 *
 * Bringing up. Every rank looks at its machine's chips and tells all others what they see. Each then checks
 * the whole slice: that every link leads where the shape says (a wrong wire is named), and that tables which
 * avoid links without light, and switches that the controller takes out of use, reach every chip without a
 * circle of waiting packets. All ranks come to the same result, load their own chips, and start together.
 *
 * Tables are proved before they are loaded. To solve them anew takes most of the time of a loss in a large
 * slice; where the ranks have a folder for solved tables (route_cache), they find there what any of them has
 * solved before. A file is used only after its proof, and all ranks load the same tables whatever their
 * folders have.
 *
 * Losses. When light goes, or the controller names other routing tables, all ranks bring the network up again
 * under a new session number, and the call under way begins again by itself with what its caller gave it. No
 * packet of the old session is delivered in the new one. The sums have the same bits with any tables.
 *
 * Threads. One thread at a time uses a fabric. Calls are collective: all ranks make the same calls in the
 * same order. They wait for the other ranks, and at the opening for the controller (answer_ms), without a
 * limit, and end with PHX_ERROR_PEER, PHX_ERROR_REJOIN or PHX_ERROR_FENCED when the attempt is over: abandon
 * the fabric, call phx_rejoin, and open another one.
 *
 * Results, ownership and errors are as in phalanx.h.
 */
#ifndef PHALANX_FABRIC_H
#define PHALANX_FABRIC_H

#include "phalanx/phalanx.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef struct phx_fabric phx_fabric;

/* Zero selects the default of each field. */
struct phx_fabric_options {
    size_t size; /* sizeof(struct phx_fabric_options) */
    /* The machine's chips: "emulated:PATH" (the socket of phalanx switch-sim), or "LIBRARY:ADDRESS", the path
     * of a driver with a '/' (phalanx/chips.h) and what it expects. Default: PHX_CHIP_NETWORK. */
    const char *chips;
    int keeps_routes; /* not 0: a link without light ends the calls with an error; all ranks say the same */
    /* The time in which the controller has to answer that it knows of this rank's chips (phx_slice_enter):
     * above 0, phx_fabric_open ends with PHX_ERROR_TIMEOUT after it, and the message says who has not
     * answered. Default: no limit, as long as the attempt lives. */
    int64_t answer_ms;
    /* A folder for solved tables, which is there; any ranks of any jobs may share it. Default:
     * PHX_ROUTE_CACHE. "": none, and all tables are built. */
    const char *route_cache;
};

/* Brings the network of the job's slice up. Waits for the routing tables that the agent tells
 * (phx_slice_wait). On success the caller owns *ret_fabric and must pass it to phx_fabric_close or
 * phx_fabric_abandon. PHX_ERROR_INVALID: the slice does not fit the ranks, PHX_CHIP_NETWORK is wrong, or
 * the wiring is, and the controller has named no tables that avoid it: the message names the first wrong
 * wire; PHX_ERROR_IO: the chips cannot be reached; PHX_ERROR_TIMEOUT: see answer_ms. */
int phx_fabric_open(phx_context *ctx, const struct phx_fabric_options *options, phx_fabric **ret_fabric,
                    struct phx_error *error);

/* Replaces values[count] on every rank by the sums over all ranks, with the same bits everywhere. All ranks
 * give the same count and dtype: PHX_I64 (the sum wraps around), PHX_F32 or PHX_F64. Undefined values after a
 * failure. */
int phx_fabric_sum(phx_fabric *fabric, void *values, size_t count, int dtype, struct phx_error *error);

struct phx_fabric_about {
    uint32_t session;  /* its number now */
    uint32_t chips;    /* of the slice */
    uint32_t links;    /* with data; each counted once */
    uint32_t dark;     /* links that the tables avoid */
    uint32_t reroutes; /* since phx_fabric_open */
    uint64_t tables;   /* number of the routing tables that the controller has named (phx_slice_tables) */
    int32_t cached;    /* 1: the tables came from this rank's folder for solved ones */
    /* Why that folder did not serve at the newest bringing-up: a damaged file, no room, or tables that are
     * not those of the other ranks. One line; "": it served, had none yet, or there is no folder. */
    char cache_note[256];
    /* Switches over which some rank's chips see other chips than the slice has there, as the bits of
     * phx_slice.without; also those that the tables avoid. 0: all wires are right. */
    uint64_t wrong;
};
void phx_fabric_get(const phx_fabric *fabric, struct phx_fabric_about *ret_about);

/* Waits until no rank needs this one's chips any more and new tables are in route_cache, unloads the chips,
 * and frees the fabric whatever it returns. It does not wait when the attempt is over. NULL is allowed. */
int phx_fabric_close(phx_fabric *fabric, struct phx_error *error);

/* Frees the fabric without waiting: other ranks cannot go on without this one's chips. For the end of an
 * attempt (phx_loop.end), and after a failure, before phx_leave. NULL is allowed. */
void phx_fabric_abandon(phx_fabric *fabric);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
