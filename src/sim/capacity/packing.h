/* packing.h - a stream of random slices through a pod with broken hosts: how much of the pod works, and how
 * much is stranded, with switches and with static boxes.
 *
 * Slices arrive in one order, with the distribution of Google's pods (docs/fabric.md has the mix): 29 % are
 * parts of a cube, the others 1 to 16 cubes. Each runs for a random time with mean 1. The next one is placed
 * as soon as it fits, and no slice overtakes another. Each host is down from the beginning with probability 1
 * - host_up. All placement methods see the same slices, times and hosts.
 *
 *     PACKING_SWITCHED   any whole cubes, and parts of cubes: slice_choose() of the controller
 *     PACKING_MOVING     the same; if the next slice does not fit, small slices move (fabric/defrag.h)
 *     PACKING_BOXES      contiguous boxes by the rules of Slurm's topology/torus3d (torus3d.h), anchors at
 *                        multiples of the box; every orientation of a shape is allowed
 *     PACKING_BOXES_FREE the same, with an anchor at every cube
 *
 * Chips are stranded while they are healthy and idle although the next slice asks for no more than there are.
 * Pure; uses floating point, so not for the core.
 */
#ifndef PHX_SIM_CAPACITY_PACKING_H
#define PHX_SIM_CAPACITY_PACKING_H

#include <stdint.h>

enum packing_way { PACKING_SWITCHED, PACKING_MOVING, PACKING_BOXES, PACKING_BOXES_FREE, PACKING_WAYS };
extern const char *const packing_names[PACKING_WAYS]; /* such as "any cubes" */

enum { PACKING_SLICES_MAX = 1000000 };
struct packing_order {
    uint32_t slices;
    double host_up;
    uint64_t seed;
    uint32_t moves_max;        /* PACKING_MOVING: moves for one slice, at most DEFRAG_MOVES_MAX */
    int64_t (*clock_ns)(void); /* clock for choose_ns; NULL: not measured */
};
struct packing_result {
    uint32_t placed;
    uint32_t refused;   /* slices that would not fit even if no other ran */
    uint32_t moved_for; /* slices for which small ones moved */
    uint32_t moves;
    double time;       /* time until the last slice was placed, in units of the mean run time */
    double busy;       /* mean share of the healthy chips that are in use */
    double stranded;   /* mean share of the healthy chips that are stranded */
    uint64_t choices;  /* calls of the placement, successful or not */
    int64_t choose_ns; /* time of these calls */
};

/* Runs the stream through a pod of 64 cubes, 4 along each axis. */
void packing_run(const struct packing_order *order, enum packing_way way, struct packing_result *ret_result);

#endif
