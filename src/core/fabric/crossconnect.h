/* crossconnect.h - the planner of cross-connects: which switches join which cubes, so that they form a slice.
 *
 * A switch joins plus ends with minus ends of cubes (wiring.h). Its state is a partial permutation: each end
 * is in at most one cross-connect. A slice of m whole cubes needs m cross-connects on each of the 48
 * switches: for the switches of an axis, from the plus end of every cube to the minus end of the next one
 * along that axis. A sub-cube slice needs none: its plan parts its cube from others, so that no old light
 * reaches a tenant.
 *
 *     crossconnect_arrange(now, &shape, cubes, count, &slice, error)    gives each cube its place
 *     crossconnect_plan(now, ports, &slice, arena, &plan, error)        what to remove and to add
 *     ... the switches carry it out, or crossconnect_apply(&now, &plan, error) does in a model
 *     crossconnect_undo(&plan, arena, &back)                            the plan that leads back
 *
 * Invariants of every plan:
 *   - A plan touches no port of a running slice, and refuses rather than to steal one.
 *   - A plan is the smallest change: cross-connects that are right stay. The plan for a state that is right
 *     already is empty.
 *   - On each switch all removals come before all additions, and their order is that of port numbers.
 * A refusal names the shape, cube, switch or port, so that the scheduler can offer other cubes.
 *
 * Pure; plans and their arrays are in the caller's arena.
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

/* Cubes, switches and link ends that may not be used. Zeroed: everything may. */
struct crossconnect_limits {
    uint32_t slice_of[POD_CUBES_MAX];             /* number of the running slice that owns a cube; 0: free */
    bool cube_out[POD_CUBES_MAX];                 /* faulty or drained */
    bool switch_out[POD_SWITCHES];                /* does not answer, or is drained */
    bool end_out[POD_SWITCHES][2][POD_CUBES_MAX]; /* faulty link ends, by switch and polarity */
    uint32_t switches_out_max; /* a slice may do without so many of its switches: routes lead around them */
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
    uint32_t first[POD_SWITCHES + 1]; /* a switch's changes begin here */
    uint32_t kept;                    /* cross-connects of the slice that exist already */
    uint32_t left_out;                /* cross-connects of the slice on switches that are out */
};

void crossconnects_init(struct crossconnects *connects, uint32_t cubes);
/* Whether next and prior agree and name cubes of the pod. */
bool crossconnects_valid(const struct crossconnects *connects);

/* The place that follows along an axis in a slice of whole cubes, by the rules of torus.h. */
uint32_t slice_next_place(const struct slice_shape *shape, uint32_t place, uint32_t axis);

/* The place of the cube that has a chip of the slice, and the chip's number in that cube, by the chip's
 * coordinates (of a part of a cube: those in the cube). */
uint32_t slice_chip_place(const struct slice_shape *shape, const uint32_t at[AXES], uint32_t *ret_inside);

/* Gives each cube a place, such that many cross-connects that exist can stay; cubes that form the slice
 * already keep their places. ERROR_INVALID if number or cubes do not fit. */
int crossconnect_arrange(const struct crossconnects *now, const struct slice_shape *shape,
                         const uint16_t *cubes, uint32_t count, struct cube_slice *ret_slice,
                         struct error *error);

/* The changes that form the slice. ERROR_INVALID: the slice itself is wrong. ERROR_CONFLICT: a cube or port
 * is in use by a running slice. ERROR_UNAVAILABLE: a cube, switch or port is out. */
int crossconnect_plan(const struct crossconnects *now, const struct crossconnect_limits *limits,
                      const struct cube_slice *slice, struct arena *arena, struct crossconnect_plan *ret_plan,
                      struct error *error);
/* The changes that take away all cross-connects of these cubes. */
int crossconnect_plan_clear(const struct crossconnects *now, const struct crossconnect_limits *limits,
                            const uint16_t *cubes, uint32_t count, struct arena *arena,
                            struct crossconnect_plan *ret_plan, struct error *error);

/* Carries a plan out, whole or not at all. ERROR_CONFLICT names the first change that does not fit the
 * state. */
int crossconnect_apply(struct crossconnects *connects, const struct crossconnect_plan *plan,
                       struct error *error);
/* The plan that leads back to the state before. */
void crossconnect_undo(const struct crossconnect_plan *plan, struct arena *arena,
                       struct crossconnect_plan *ret_plan);

#endif
