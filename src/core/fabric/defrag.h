/* defrag.h - which small jobs of a pod to move, so that a whole cube or a part of one becomes free.
 *
 * Jobs below the size of a cube hold boxes of machines (wiring.h: 2x2x4 machines a cube). Over time they lie
 * in many cubes, and a job that needs a whole cube waits although as many machines are free. The planner
 * finds the fewest jobs to move:
 *
 *     a plan frees one place of the asked shape; each job moves once at most, into machines that are free
 *     when its turn comes, to a place of the same shape; no plan with fewer moves exists (`proved`)
 *
 * The search deepens one move at a time. A place of the asked shape obliges the jobs on it to move; each
 * obliged job tries every place of its shape, and obliges the jobs that it finds there in its turn. It ends
 * with the first number of moves that suffices, or after DEFRAG_STEPS_MAX tries: then a plan is not `proved`
 * to be the smallest, and the absence of one is not proved either. Ties go to the place whose jobs hold the
 * fewest machines, then to the cube with the lowest number.
 *
 * A machine is a bit of a mask: bit x + 2 y + 4 z of its cube. Pure; no memory is kept; equal pods have equal
 * plans.
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
    uint16_t blocked[POD_CUBES_MAX]; /* machines that nothing can use: out of service, or of other jobs */
    struct defrag_part *parts;
    uint32_t part_count;
};
struct defrag_move {
    uint32_t part; /* index */
    uint16_t from_cube, from_mask, cube, mask;
};
struct defrag_plan {
    struct defrag_move moves[DEFRAG_MOVES_MAX]; /* in the order in which they are possible */
    uint32_t count;
    uint16_t cube, mask; /* the place that is free then */
    bool proved;         /* no plan has fewer moves */
};

/* The mask of a box of machines whose first corner is `at`; it lies within the cube. */
uint16_t defrag_mask(const uint8_t at[AXES], const uint8_t extent[AXES]);
/* The extents in machines of a shape of at most one cube. */
void defrag_extent(const struct slice_shape *shape, uint8_t ret_extent[AXES]);

/* Whether a mask is a place of a box of these extents. */
bool defrag_is_place(uint16_t mask, const uint8_t extent[AXES]);

/* Finds a plan with at most `moves_max` moves (DEFRAG_MOVES_MAX at most) for a shape of at most one cube;
 * with count 0 if a place is free already. False: there is none; *ret_plan then only says whether that is
 * `proved`. Parts do not overlap each other nor blocked machines. */
bool defrag_find(const struct defrag_pod *pod, const struct slice_shape *shape, uint32_t moves_max,
                 struct defrag_plan *ret_plan);
/* Room for a shape of any size: places for all of its cubes, and the moves that free them. */
struct defrag_room {
    struct defrag_move moves[DEFRAG_MOVES_MAX]; /* in order; a job may occur more than once */
    uint32_t move_count;
    struct {
        uint16_t cube, mask;
    } places[POD_CUBES_MAX];
    uint32_t place_count;
    bool proved; /* of one place: fewest moves. Of several: each by the fewest, one after the other */
};
/* Finds a place for each cube of the shape, free ones first. The parts of `pod` move, and the places are
 * blocked in it. False: there is no room with so many moves; the pod is then between two states. */
bool defrag_make_room(struct defrag_pod *pod, const struct slice_shape *shape, uint32_t moves_max,
                      struct defrag_room *ret_room);
/* Whether the plan does what it says, one move after the other, whoever made it. */
bool defrag_check(const struct defrag_pod *pod, const struct slice_shape *shape,
                  const struct defrag_plan *plan);

#endif
