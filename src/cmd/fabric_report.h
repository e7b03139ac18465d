/* fabric_report.h - the output of `phalanx fabric`: text or JSON for shapes, plans and routes, and a picture.
 *
 * All functions append to `out`, and do no I/O.
 */
#ifndef PHX_CMD_FABRIC_REPORT_H
#define PHX_CMD_FABRIC_REPORT_H

#include "core/fabric/bound.h"
#include "core/fabric/crossconnect.h"
#include "core/fabric/prove.h"

void fabric_report_shape(struct buf *out, const struct torus *torus, bool json);
void fabric_report_plan(struct buf *out, uint32_t pod_cubes, const struct cube_slice *slice,
                        const struct crossconnect_plan *plan, bool json);
/* load: units by link, from the proof; source: where the tables come from, in words. */
void fabric_report_route(struct buf *out, const struct torus *torus, const struct route *route,
                         const struct proof *proof, const uint32_t *load, const char *source, bool json);

/* Draws an SVG with one board of chips for each Z. Lines are links along X and Y; the colour of a chip is the
 * load of its link to the next Z; dead links are dashed. A link shows the larger load of its two
 * directions. */
void fabric_picture(struct buf *out, const struct torus *torus, const uint32_t *load, uint32_t load_max);

#endif
