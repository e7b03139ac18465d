/* defrag.h - which small jobs of a pod to move, so that a whole cube or a part of one becomes free.
 *
 * Jobs smaller than a cube hold boxes of machines (wiring.h: 2x2x4 machines a cube). Over time they spread
 * over many cubes, and a job that needs a whole cube waits although enough machines are free. The planner
 * finds the fewest jobs to move:
 *
 *     a plan frees one place of the requested shape; each job moves at most once, to a place of its shape
 *     whose machines are free when the job moves; no plan with fewer moves exists (`proved`)
 *
 * The search allows one more move at a time. A place of the requested shape obliges the jobs on it to move.
 * Each obliged job tries every place of its shape, and in turn obliges the jobs on that place. The search
 * ends with the first number of moves that suffices, or after DEFRAG_STEPS_MAX tries. In the latter case
 * neither a plan nor the absence of one is `proved`. Ties go to the place whose jobs hold the fewest
 * machines, then to the cube with the lowest number.
 *
 * A machine is a bit of a mask: bit x + 2 y + 4 z of its cube. The functions keep no state between calls, and
 * equal pods get equal plans.
 */
#ifndef PHX_CORE_FABRIC_DEFRAG_H
#define PHX_CORE_FABRIC_DEFRAG_H

#include "core/fabric/wiring.h"

enum {
    DEFRAG_PARTS_MAX = POD_CUBES_MAX * CUBE_MACHINES,
    DEFRAG_MOVES_MAX = 8,
    DEFRAG_STEPS_MAX = 500000,
};
#define DEFRAG_CUBE_FULL 0xffffu /* the mask of a whole cube */

/* A job that holds a part of a cube. */
struct defrag_part {
    uint16_t cube;
    uint16_t mask;
    uint8_t extent[AXES]; /* in machines: 1 or 2, 1 or 2, 1, 2 or 4 */
    bool fixed;           /* may not move */
};
struct defrag_pod {
    uint32_t cubes;
    uint16_t blocked[POD_CUBES_MAX]; /* machines that cannot be used: out of service, or held by other jobs */
    struct defrag_part *parts;
    uint32_t part_count;
};
struct defrag_move {
    uint32_t part; /* index in the pod's `parts` */
    uint16_t from_cube, from_mask, cube, mask;
};
struct defrag_plan {
    struct defrag_move moves[DEFRAG_MOVES_MAX]; /* in the order in which they must be made */
    uint32_t count;
    uint16_t cube, mask; /* the place that the moves free */
    bool proved;         /* no plan has fewer moves */
};

/* Returns the mask of a box of machines with its lowest corner at `at`. The box must be within the cube. */
uint16_t defrag_mask(const uint8_t at[AXES], const uint8_t extent[AXES]);
/* Returns the extents in machines of a shape of at most one cube. */
void defrag_extent(const struct slice_shape *shape, uint8_t ret_extent[AXES]);

/* Returns whether a mask is a box of these extents at a multiple of them. */
bool defrag_is_place(uint16_t mask, const uint8_t extent[AXES]);

/* Finds a plan with at most `moves_max` moves, at most DEFRAG_MOVES_MAX, for a shape of at most one cube. The
 * plan has no moves if a place is free already. Returns false if there is no plan; ret_plan->proved then says
 * whether that is certain. Parts must not overlap each other or blocked machines. */
bool defrag_find(const struct defrag_pod *pod, const struct slice_shape *shape, uint32_t moves_max,
                 struct defrag_plan *ret_plan);
/* Space for a shape of any size: places for all of its cubes, and the moves that free them. */
struct defrag_room {
    struct defrag_move moves[DEFRAG_MOVES_MAX]; /* in order; a job may occur more than once */
    uint32_t move_count;
    struct {
        uint16_t cube, mask;
    } places[POD_CUBES_MAX];
    uint32_t place_count;
    bool proved; /* one place: no plan has fewer moves; several: each has the fewest, one after the other */
};
/* Finds a place for each cube of the shape, free places first. Updates `pod`: parts move, and the places
 * become blocked. Returns false if that needs more than `moves_max` moves; `pod` is then between two states,
 * and the caller discards it. */
bool defrag_make_room(struct defrag_pod *pod, const struct slice_shape *shape, uint32_t moves_max,
                      struct defrag_room *ret_room);
/* Returns whether the plan's moves are possible one after the other and free its place. Independent of the
 * search. */
bool defrag_check(const struct defrag_pod *pod, const struct slice_shape *shape,
                  const struct defrag_plan *plan);

#endif
