/* fabric_drawings.h - draws slices and switches as SVG: the cubes of a slice at their places, and the mirrors
 * of the switches, that is, which ends they join. fabric_report.h draws the loads of links. */
#ifndef PHX_CMD_FABRIC_DRAWINGS_H
#define PHX_CMD_FABRIC_DRAWINGS_H

#include "core/fabric/crossconnect.h"

/* Draws a slice of whole cubes: a box for each cube, with its number in the pod or, with `places`, its
 * place. */
void fabric_draw_slice(struct buf *out, const struct cube_slice *slice, bool places);

/* Draws a panel for each group of switches with equal mirrors: plus ends of cubes to the left, minus ends to
 * the right. Cross-connects of `after` alone are marked as new, those of `before` alone as removed. Cubes
 * without cross-connects are left out. */
void fabric_draw_mirrors(struct buf *out, const struct crossconnects *before,
                         const struct crossconnects *after);

#endif
