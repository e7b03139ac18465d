/* tables.c - ensures that all ranks use the same routing tables, even if some tables come from caches.
 *
 * Every rank builds the same tables from the same links. A cache (cache.h) saves that time, and its tables
 * are proved when they are loaded. But they may differ from those that this library builds, and be as valid,
 * if another version of the library or another program has written them. Therefore, if any rank has a cache,
 * rank 0 puts the digest of its tables, and each rank compares its own digest before it loads a chip:
 *
 *     equal                      continues
 *     different                  asks for another generation, in which no rank uses its cache: all ranks
 *                                build their tables, compare them, and replace those in their caches
 *     different again            fails, and names both: the ranks have different versions of the library
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "job/fabric/internal.h"

enum { DIGEST_BYTES = 8 };

uint8_t fabric_cache_word(const struct phx_fabric *fabric)
{
    return (uint8_t)((fabric->cache.folder != NULL ? FABRIC_CACHES : 0) |
                     (fabric->cache.distrusted ? FABRIC_DISTRUSTS : 0));
}

void fabric_cache_agree(struct phx_fabric *fabric)
{
    uint8_t all = 0;
    for (uint32_t rank = 0; rank < fabric->world; rank++)
        all |= fabric->words[rank].cache;
    fabric->cache.used = (all & FABRIC_CACHES) != 0;
    fabric->cache.is_off = (all & FABRIC_DISTRUSTS) != 0;
}

void fabric_cache_note(struct phx_fabric *fabric, const struct error *why)
{
    snprintf(fabric->cache.note, sizeof fabric->cache.note, "%.250s", why->text);
}

void fabric_cache_find(struct phx_fabric *fabric, const struct torus *torus, struct buf *ret_pattern)
{
    struct error error = {0};
    fabric->cache.note[0] = '\0';
    if (fabric->cache.keeper != NULL && route_cache_failure(fabric->cache.keeper) != NULL) {
        route_cache_end(fabric->cache.keeper, true);
        fabric->cache.keeper = NULL;
    }
    if (fabric->cache.is_off && fabric->cache.folder != NULL)
        snprintf(fabric->cache.note, sizeof fabric->cache.note,
                 "the ranks' folders had different tables: all ranks have built theirs anew");
    if (fabric->cache.folder == NULL || fabric->cache.is_off)
        return;
    int status = route_cache_read(fabric->cache.folder, torus, ret_pattern, &error);
    if (status < 0 && status != ERROR_NOT_FOUND)
        fabric_cache_note(fabric, &error);
}

void fabric_cache_keep(struct phx_fabric *fabric, const struct torus *torus, const struct route *route)
{
    if (fabric->cache.folder == NULL)
        return;
    route_cache_end(fabric->cache.keeper, false);
    fabric->cache.keeper = route_cache_begin(fabric->cache.folder, torus, route);
}

void fabric_cache_done(struct phx_fabric *fabric, bool hurry)
{
    route_cache_end(fabric->cache.keeper, hurry);
    mem_free(fabric->cache.folder);
    fabric->cache.keeper = NULL;
    fabric->cache.folder = NULL;
}

/* --- the same on all ranks ------------------------------------------------------------------------------ */

uint64_t fabric_tables_digest(const struct route *route)
{
    size_t bytes = (size_t)route->chips * route->chips;
    uint64_t digest = hash_words(route->chips, route->transit, bytes);
    return route->inject != NULL ? hash_words(digest, route->inject, bytes) : digest;
}

/* Puts this rank's digest on rank 0; gets rank 0's digest on the others. */
static int exchange(struct phx_fabric *fabric, uint64_t own, uint64_t *ret_first, struct phx_error *error)
{
    char key[FABRIC_KEY_MAX];
    uint8_t bytes[DIGEST_BYTES];
    size_t len = 0;
    fabric_key(fabric, "tables", fabric->generation, -1, key);
    *ret_first = own;
    for (uint32_t i = 0; i < DIGEST_BYTES; i++)
        bytes[i] = (uint8_t)(own >> 8 * i);
    if (fabric->rank == 0)
        return phx_kv_put(fabric->ctx, key, bytes, sizeof bytes, error);
    int status = phx_kv_get(fabric->ctx, key, bytes, sizeof bytes, &len, -1, error);
    if (status == PHX_ERROR_SPACE || (status == 0 && len != sizeof bytes))
        return fabric_fail(error, PHX_ERROR_INVALID,
                           "rank 0 speaks of its tables in another version of the library");
    *ret_first = 0;
    for (uint32_t i = 0; i < DIGEST_BYTES; i++)
        *ret_first |= (uint64_t)bytes[i] << 8 * i;
    return status;
}

int fabric_tables_agree(struct phx_fabric *fabric, uint64_t digest, struct phx_error *error)
{
    uint64_t first;
    if (!fabric->cache.used)
        return 0;
    int status = exchange(fabric, digest, &first, error);
    if (status != 0 || digest == first)
        return status;
    if (fabric->cache.is_off)
        return fabric_fail(error, PHX_ERROR_INVALID,
                           "rank %u built routing tables %016llx and rank 0 %016llx of the same links: do "
                           "all ranks have the same version of libphalanx_fabric?",
                           fabric->rank, (unsigned long long)digest, (unsigned long long)first);
    fabric->cache.distrusted = true;
    return fabric_ask_again(fabric, error);
}
