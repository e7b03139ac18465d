/* pattern.h - a solved pattern of dead links as bytes, for a cache, and tables from such bytes.
 *
 * The search for first hops takes most of route_build()'s time. Its result is kept; everything else is made
 * anew. A cache keeps one pattern under each key; a job whose switch dies finds its tables there.
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
 * Valid if and only if the length is exact, the CRC right, shape and live ports are those of the slice, every
 * hop is a port or one of the two marks, and the proof of the tables holds. A file is therefore never
 * trusted, and a cache may lie on any disk.
 */
#ifndef PHX_CORE_FABRIC_PATTERN_H
#define PHX_CORE_FABRIC_PATTERN_H

#include "core/fabric/prove.h"

enum { PATTERN_KEY_MAX = SHAPE_TEXT_MAX + 40 };

/* A name for shape and dead links, such as "4x4x8-twisted-0123456789abcdef": fit for a file's name. Different
 * patterns may share one, which pattern_routes() notices. */
void pattern_key(const struct torus *torus, char key[PATTERN_KEY_MAX]);
/* Appends the bytes for tables that route_build() made for this torus. */
void pattern_pack(const struct torus *torus, const struct route *route, struct buf *out);
/* The tables, proved; ret_load as route_prove()'s. ERROR_CORRUPT: damaged, or no proof. ERROR_NOT_FOUND: of
 * another shape or pattern. */
int pattern_routes(struct str bytes, const struct torus *torus, struct route *ret_route,
                   struct proof *ret_proof, uint32_t *ret_load, struct error *error);
/* At most so many bytes belong to a pattern of this slice. */
size_t pattern_size_max(const struct torus *torus);

#endif
