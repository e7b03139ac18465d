/* shape.h - the shape of a slice: its number of chips along X, Y and Z, and whether its rings are twisted.
 *
 * A shape is written "4x4x8", a twisted one "4x4x8-twisted". There are three families:
 *   sub-cube    2 or 4 chips along X and Y, 1, 2 or 4 along Z, less than a cube: part of one cube, whose
 *               copper links do not wrap around (a mesh)
 *   whole-cube  multiples of 4 along each axis, at most SLICE_CUBES_MAX cubes: a torus
 *   twisted     (4k, 4k, 8k) or (4k, 8k, 8k): a wrap of a short axis also shifts along the long ones
 *               (torus.h)
 *
 * Pure functions on values.
 */
#ifndef PHX_CORE_FABRIC_SHAPE_H
#define PHX_CORE_FABRIC_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"

enum {
    AXES = 3,              /* X, Y, Z */
    CUBE_SIDE = 4,         /* chips along each axis of a cube */
    CUBE_CHIPS = 64,       /* of one cube */
    SLICE_CUBES_MAX = 150, /* cubes of the largest pod */
    SLICE_CHIPS_MAX = SLICE_CUBES_MAX * CUBE_CHIPS,
    SHAPE_TEXT_MAX = 32, /* bytes of a shape's text, including its NUL */
};
_Static_assert(SLICE_CHIPS_MAX < 0xffff, "a chip of a slice has a 16-bit number");

struct slice_shape {
    uint16_t extent[AXES]; /* chips along X, Y, Z */
    bool twisted;
};

/* Reads "AxBxC" or "AxBxC-twisted". Returns ERROR_INVALID, which says which part is wrong and what is
 * allowed. */
int slice_shape_parse(struct str text, struct slice_shape *ret_shape, struct error *error);
/* Checks that the extents belong to a family. Returns ERROR_INVALID, which names the extent or rule. */
int slice_shape_check(const struct slice_shape *shape, struct error *error);
void slice_shape_format(const struct slice_shape *shape, char text[SHAPE_TEXT_MAX]);

uint32_t slice_shape_chips(const struct slice_shape *shape);
bool slice_shape_is_whole(const struct slice_shape *shape); /* false for a sub-cube */
/* Returns the number of cubes that the slice occupies: 1 for a sub-cube. */
uint32_t slice_shape_cubes(const struct slice_shape *shape);

#endif
