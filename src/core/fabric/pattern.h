/* pattern.h - a solved pattern of dead links as bytes, for a cache, and tables from such bytes.
 *
 * The search for first hops takes most of route_build()'s time. The bytes hold its result, and everything
 * else is computed again. A cache keeps one pattern under each key, where a job finds its tables when a
 * switch fails.
 *
 * The bytes, all numbers little-endian:
 *
 *   offset  size
 *   0       8     "PHXROUTE"
 *   8       4     version, 2
 *   12      4     CRC-32C of all bytes from offset 16
 *   16      6     chips along X, Y, Z
 *   22      1     1: twisted
 *   23      1     1: the dead links of all cubes are alike
 *   24      c     live ports, one bit each, of the chips of the canonical torus's first cube (alike) or of
 *                 all chips
 *   24+c    d*n   first hops of the canonical torus (route.h): for each destination solved (64 or all n; none
 *                 for one table) the port of each of the n chips, 254 for the up-down order, 255 for the
 *                 destination itself
 *
 * Patterns with the same canonical torus, such as those of all switches of an axis, have the same bytes.
 *
 * Bytes are valid if and only if the length is exact, the CRC is right, the shape and live ports are those of
 * the slice, every hop is a port or one of the two marks, and the proof of the tables holds. The contents of
 * a cache are thus never trusted, and it may be on any disk.
 */
#ifndef PHX_CORE_FABRIC_PATTERN_H
#define PHX_CORE_FABRIC_PATTERN_H

#include "core/fabric/prove.h"

enum { PATTERN_KEY_MAX = SHAPE_TEXT_MAX + 40 };

/* Writes a name for shape and dead links that is fit for a file name, such as
 * "4x4x8-twisted-0123456789abcdef". Different patterns may have the same name; pattern_routes() then returns
 * ERROR_NOT_FOUND. */
void pattern_key(const struct torus *torus, char key[PATTERN_KEY_MAX]);
/* Appends the bytes for tables that route_build() made for this torus. */
void pattern_pack(const struct torus *torus, const struct route *route, struct buf *out);
/* Makes and proves the tables of a pattern. `ret_load` is as for route_prove(). Returns ERROR_CORRUPT if the
 * bytes are damaged or the proof fails, ERROR_NOT_FOUND if they belong to another shape or pattern, and
 * ERROR_UNAVAILABLE if the live links do not connect all chips. Free the tables with route_done(). */
int pattern_routes(struct str bytes, const struct torus *torus, struct route *ret_route,
                   struct proof *ret_proof, uint32_t *ret_load, struct error *error);
/* Returns an upper bound for the bytes of a pattern of this slice. */
size_t pattern_size_max(const struct torus *torus);

#endif
