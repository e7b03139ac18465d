/* fabric_cache.h - tables from a folder of solved route patterns, one file for each shape and set of dead
 * links (job/fabric/cache.h).
 *
 * If a file is missing, damaged or of another pattern, the tables are built and the file is written again.
 * Tables from a file are used only after their proof.
 */
#ifndef PHX_CMD_FABRIC_CACHE_H
#define PHX_CMD_FABRIC_CACHE_H

#include "core/fabric/prove.h"

/* Makes tables for the torus and their proof: reads them from `folder` (NULL: none), or else builds them and
 * writes them there. *ret_source describes which, in words (static). ret_load is as in route_prove(). */
int fabric_cache_routes(const char *folder, const struct torus *torus, struct route *ret_route,
                        struct proof *ret_proof, uint32_t *ret_load, const char **ret_source,
                        struct error *error);

#endif
