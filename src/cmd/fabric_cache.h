/* fabric_cache.h - a folder of solved route patterns, one file for each shape and set of dead links.
 *
 * Files are core/fabric/pattern.h's, named by its key. A file that is missing, damaged or of another pattern
 * is made anew; tables from a file are used only after their proof.
 */
#ifndef PHX_CMD_FABRIC_CACHE_H
#define PHX_CMD_FABRIC_CACHE_H

#include "core/fabric/prove.h"

/* Tables for the torus and their proof: from `folder` (NULL: none) if they are there, else built and left
 * there. *ret_source says which, in words. ret_load is route_prove()'s. */
int fabric_cache_routes(const char *folder, const struct torus *torus, struct route *ret_route,
                        struct proof *ret_proof, uint32_t *ret_load, const char **ret_source,
                        struct error *error);

#endif
