/* packing.h - a stream of random slices through a pod with broken hosts: how much of the pod works, and how
 * much is stranded, with switches and with static boxes.
 *
 * Slices come in one order, as those of Google's pods are distributed (docs/fabric.md has the mix): 29 % are
 * parts of a cube, the others 1 to 16 cubes. Each runs for a random time with mean 1 and the next one is
 * placed as soon as it fits; nothing overtakes. Hosts are down from the beginning, with probability
 * 1 - host_up each. All ways see the same slices, times and hosts.
 *
 *     PACKING_SWITCHED   any whole cubes, and parts of cubes: slice_choose() of the controller
 *     PACKING_MOVING     the same; where the next slice does not fit, small slices move (fabric/defrag.h)
 *     PACKING_BOXES      contiguous boxes by the rules of Slurm's topology/torus3d (torus3d.h), anchors at
 *                        multiples of the box; every orientation of a shape is allowed
 *     PACKING_BOXES_FREE the same, with an anchor at every cube
 *
 * Chips are stranded while they are healthy and idle, and the next slice asks for no more than there are.
 * Pure; nothing of it is for the core.
 */
#ifndef PHX_SIM_CAPACITY_PACKING_H
#define PHX_SIM_CAPACITY_PACKING_H

#include <stdint.h>

enum packing_way { PACKING_SWITCHED, PACKING_MOVING, PACKING_BOXES, PACKING_BOXES_FREE, PACKING_WAYS };
extern const char *const packing_names[PACKING_WAYS]; /* "any cubes", ... */

enum { PACKING_SLICES_MAX = 1000000 };
struct packing_order {
    uint32_t slices;
    double host_up;
    uint64_t seed;
    uint32_t moves_max;        /* of PACKING_MOVING, for one slice; DEFRAG_MOVES_MAX at most */
    int64_t (*clock_ns)(void); /* for choose_ns; NULL: not measured */
};
struct packing_result {
    uint32_t placed;
    uint32_t refused;   /* would not fit if the pod were empty */
    uint32_t moved_for; /* slices that small ones moved for */
    uint32_t moves;
    double time;       /* until the last slice was placed, in mean times of a slice */
    double busy;       /* mean share of the healthy chips that work */
    double stranded;   /* mean share that is stranded */
    uint64_t choices;  /* calls of the placement, with and without success */
    int64_t choose_ns; /* their time */
};

/* Runs the stream through a pod of 64 cubes, 4 along each axis. */
void packing_run(const struct packing_order *order, enum packing_way way, struct packing_result *ret_result);

#endif
