/* fabric_drawings.h - pictures of slices and switches, as SVG: the cubes of a slice at their places, and the
 * mirrors of the switches, that is, which ends they join. fabric_report.h has the loads of links. */
#ifndef PHX_CMD_FABRIC_DRAWINGS_H
#define PHX_CMD_FABRIC_DRAWINGS_H

#include "core/fabric/crossconnect.h"

/* A slice of whole cubes: a box for each cube, with its number in the pod, or its place if `places`. */
void fabric_draw_slice(struct buf *out, const struct cube_slice *slice, bool places);

/* A panel for each group of switches with equal mirrors: plus ends of cubes to the left, minus ends to the
 * right. Cross-connects of `after` that are not in `before` are new, those of `before` alone are removed;
 * cubes without any are left out. */
void fabric_draw_mirrors(struct buf *out, const struct crossconnects *before,
                         const struct crossconnects *after);

#endif
