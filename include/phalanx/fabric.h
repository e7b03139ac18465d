/* fabric.h - the chip network of a slice, for the tasks of a job (libphalanx_fabric, on libphalanx).
 *
 * A job that asks for a slice of an optically switched pod (docs/fabric.md) gets chips that are linked as a
 * torus. Its ranks bring the network up together, sum over it, and continue when a link or a switch is lost:
 *
 *     phx_fabric *fabric;
 *     if (phx_fabric_open(ctx, NULL, &fabric, &error) != 0)
 *         return fprintf(stderr, "%s\n", error.message), 1;
 *     for (...)
 *         phx_fabric_sum(fabric, gradients, count, PHX_F32, &error);
 *     phx_fabric_close(fabric, &error);
 *
 * Bringing up. Every rank reads which neighbours its machine's chips see, and sends that to all other ranks.
 * Each rank then checks the whole slice. Every link must lead where the shape requires; the first wrong wire
 * is named. The routing tables must reach every chip, without links that have no light, without switches that
 * the controller takes out of use, and without deadlock. All ranks reach the same result, load their own
 * chips, and start together.
 *
 * Tables are proved before they are loaded. In a large slice, most of the time after a loss goes into solving
 * new tables. Ranks with a folder for solved tables (route_cache) find there the tables that any of them has
 * solved before. A file is used only after its proof, and all ranks load the same tables whatever their
 * folders contain.
 *
 * Losses. When a link loses its light, or the controller names other routing tables, all ranks bring the
 * network up again under a new session number. The call in progress starts again by itself with its original
 * input. No packet of the old session is delivered in the new one. The sums have the same bits with any
 * tables.
 *
 * Threads. One thread at a time uses a fabric. phx_fabric_open, phx_fabric_sum and phx_fabric_close are
 * collective: all ranks call them in the same order. They wait for the other ranks, and the opening for the
 * controller (answer_ms), without a limit. They return PHX_ERROR_PEER, PHX_ERROR_REJOIN or PHX_ERROR_FENCED
 * when the attempt has ended: abandon the fabric, call phx_rejoin, and open another one.
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
    /* Not 0: a link without light ends the calls with an error instead of a detour. Must be equal on all
     * ranks. */
    int keeps_routes;
    /* How long phx_fabric_open waits until the controller knows of this rank's chips (phx_slice_enter). Then
     * it returns PHX_ERROR_TIMEOUT, with a message that says whether the agent or the controller has not
     * answered. Default: no limit while the attempt lives. */
    int64_t answer_ms;
    /* An existing folder for solved tables; any ranks of any jobs may share it. Default: PHX_ROUTE_CACHE. "":
     * none, and all tables are built. */
    const char *route_cache;
};

/* Brings the network of the job's slice up. First waits until the agent has reported routing tables for the
 * slice (phx_slice_wait). options may be NULL. On success the caller owns *ret_fabric and must pass it to
 * phx_fabric_close or phx_fabric_abandon.
 *
 * Returns PHX_ERROR_INVALID if the slice does not fit the ranks, if PHX_CHIP_NETWORK is wrong, or if a wire
 * is wrong and the controller has named no tables that avoid it within 30 s; the message names the first
 * wrong wire. Returns PHX_ERROR_IO if the chips cannot be reached, and PHX_ERROR_TIMEOUT after answer_ms. */
int phx_fabric_open(phx_context *ctx, const struct phx_fabric_options *options, phx_fabric **ret_fabric,
                    struct phx_error *error);

/* Replaces values[count] on every rank by the sums over all ranks, with the same bits everywhere. All ranks
 * must pass the same count and dtype: PHX_I64 (the sum wraps around), PHX_F32 or PHX_F64. The values are
 * undefined after a failure. */
int phx_fabric_sum(phx_fabric *fabric, void *values, size_t count, int dtype, struct phx_error *error);

struct phx_fabric_about {
    uint32_t session;  /* number of the current session */
    uint32_t chips;    /* of the slice */
    uint32_t links;    /* links that carry data; each counted once */
    uint32_t dark;     /* links that the tables avoid */
    uint32_t reroutes; /* how often the network was brought up again since phx_fabric_open */
    uint64_t tables;   /* number of the routing tables that the controller has named (phx_slice_tables) */
    int32_t cached;    /* 1: the tables came from this rank's folder for solved tables */
    /* Why that folder was of no use when the network was last brought up: a damaged file, a full disk, or
     * tables that differ from those of the other ranks. One line; "": the folder was used, had no such tables
     * yet, or there is no folder. */
    char cache_note[256];
    /* Switches over which some rank's chips see other chips than the slice requires, as the bits of
     * phx_slice.without, including switches that the tables avoid. 0: all wires are right. */
    uint64_t wrong;
};
/* Describes the network as it was last brought up. Not collective, and never blocks. */
void phx_fabric_get(const phx_fabric *fabric, struct phx_fabric_about *ret_about);

/* Waits until no rank needs this rank's chips any longer and new tables are in route_cache, unloads the
 * chips, and frees the fabric, whatever it returns. Does not wait if the attempt has ended. NULL is
 * allowed. */
int phx_fabric_close(phx_fabric *fabric, struct phx_error *error);

/* Unloads the chips and frees the fabric without waiting: other ranks cannot continue without this rank's
 * chips. For the end of an attempt (phx_loop.end), and after a failure, before phx_leave. NULL is allowed. */
void phx_fabric_abandon(phx_fabric *fabric);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
