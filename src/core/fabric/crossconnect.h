/* crossconnect.h - the planner of cross-connects: which switches join which cubes to form a slice.
 *
 * A switch joins plus ends with minus ends of cubes (wiring.h). Its state is a partial permutation: each end
 * is in at most one cross-connect. A slice of m whole cubes needs m cross-connects on each of the 48
 * switches: on the switches of an axis, from the plus end of every cube to the minus end of the next one
 * along that axis. A sub-cube slice needs none. Its plan removes the cross-connects of its cube, so that no
 * link from another slice reaches it.
 *
 *     crossconnect_arrange(now, &shape, cubes, count, &slice, error)    gives each cube its place
 *     crossconnect_plan(now, &limits, &slice, arena, &plan, error)      what to remove and to add
 *     ... the switches carry the plan out, or crossconnect_apply(&now, &plan, error) does in a model
 *     crossconnect_undo(&plan, arena, &back)                            the plan that leads back
 *
 * Invariants of every plan:
 *   - A plan touches no port of a running slice. The planner refuses instead of taking one.
 *   - A plan is the smallest change: cross-connects that are right stay. The plan for a state that is right
 *     already is empty.
 *   - On each switch all removals come before all additions, each in the order of port numbers.
 * A refusal names the shape, cube, switch or port, so that the scheduler can offer other cubes.
 *
 * Pure functions. Plans and their arrays live in the caller's arena. On an error, result parameters are
 * unchanged.
 */
#ifndef PHX_CORE_FABRIC_CROSSCONNECT_H
#define PHX_CORE_FABRIC_CROSSCONNECT_H

#include "base/arena.h"
#include "core/fabric/wiring.h"

enum { CUBE_NONE = 0xffff };

/* The cross-connects of a pod. */
struct crossconnects {
    uint32_t cubes;                              /* of the pod */
    uint16_t next[POD_SWITCHES][POD_CUBES_MAX];  /* the cube whose minus end is joined with this plus end */
    uint16_t prior[POD_SWITCHES][POD_CUBES_MAX]; /* the cube whose plus end is joined with this minus end */
};

/* Cubes, switches and link ends that may not be used. A zeroed struct allows everything. */
struct crossconnect_limits {
    uint32_t slice_of[POD_CUBES_MAX];             /* running slice that owns the cube; 0: free */
    bool cube_out[POD_CUBES_MAX];                 /* faulty or drained */
    bool switch_out[POD_SWITCHES];                /* does not answer, or is drained */
    bool end_out[POD_SWITCHES][2][POD_CUBES_MAX]; /* faulty link ends, by switch and polarity */
    uint32_t switches_out_max; /* number of switches that a slice may do without: routes lead around them */
};

struct cube_slice {
    struct slice_shape shape;
    uint32_t count;                 /* of cubes */
    uint16_t cube[SLICE_CUBES_MAX]; /* by place: x + X (y + Y z), in cubes */
};

struct crossconnect_change {
    uint8_t switch_number;
    bool add;             /* else remove */
    uint16_t plus, minus; /* cubes whose ends are joined */
};
struct crossconnect_plan {
    struct crossconnect_change *changes; /* by switch; removals first */
    uint32_t count;
    uint32_t first[POD_SWITCHES + 1]; /* index of a switch's first change; the last element is `count` */
    uint32_t kept;                    /* cross-connects of the slice that exist already */
    uint32_t left_out;                /* cross-connects of the slice on switches that are out */
};

void crossconnects_init(struct crossconnects *connects, uint32_t cubes);
/* Returns whether `next` and `prior` agree and name only cubes of the pod. */
bool crossconnects_valid(const struct crossconnects *connects);

/* Returns the place that follows `place` along an axis in a slice of whole cubes, by the rules of torus.h. */
uint32_t slice_next_place(const struct slice_shape *shape, uint32_t place, uint32_t axis);

/* Returns the place of the cube that contains a chip of the slice, and writes the chip's number within that
 * cube. `at` has the chip's coordinates in the slice, or in the cube if the slice is part of one. */
uint32_t slice_chip_place(const struct slice_shape *shape, const uint32_t at[AXES], uint32_t *ret_inside);

/* Gives each cube a place in the slice so that many existing cross-connects can stay. Cubes that already form
 * the slice keep their places. Returns ERROR_INVALID if the shape, the number of cubes or a cube does not
 * fit. */
int crossconnect_arrange(const struct crossconnects *now, const struct slice_shape *shape,
                         const uint16_t *cubes, uint32_t count, struct cube_slice *ret_slice,
                         struct error *error);

/* Plans the changes that form the slice. Returns ERROR_INVALID if the slice itself is wrong, ERROR_CONFLICT
 * if a running slice uses a cube or port, and ERROR_UNAVAILABLE if a cube or port, or too many switches, are
 * out. */
int crossconnect_plan(const struct crossconnects *now, const struct crossconnect_limits *limits,
                      const struct cube_slice *slice, struct arena *arena, struct crossconnect_plan *ret_plan,
                      struct error *error);
/* Plans the removal of all cross-connects of these cubes, except on switches that are out. Returns
 * ERROR_INVALID for a cube outside the pod, and ERROR_CONFLICT if a running slice uses a cube or port. */
int crossconnect_plan_clear(const struct crossconnects *now, const struct crossconnect_limits *limits,
                            const uint16_t *cubes, uint32_t count, struct arena *arena,
                            struct crossconnect_plan *ret_plan, struct error *error);

/* Carries a plan out, whole or not at all. Returns ERROR_CONFLICT and names the first change that does not
 * fit the state. */
int crossconnect_apply(struct crossconnects *connects, const struct crossconnect_plan *plan,
                       struct error *error);
/* Makes the plan that leads back to the state before `plan`. */
void crossconnect_undo(const struct crossconnect_plan *plan, struct arena *arena,
                       struct crossconnect_plan *ret_plan);

#endif
