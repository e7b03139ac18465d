/* slice.h - slices: the cubes of running jobs, and the cross-connects that make each of them one network.
 *
 * A slice is the chips of one JobSet with a shape (fabric/shape.h): whole cubes of one pod that the pod's
 * optical switches join, or part of one cube. The story of a slice:
 *
 *     slice_choose(...)     finds cubes: whole, healthy, of no other slice; or says what is missing
 *     slice_begin(...)      their machines are taken: SLICE_CONNECTING; requests go to the switches
 *       slices_report(...)  each switch answers with the circuits that it holds
 *     SLICE_CONNECTED       all of its circuits were read back: its tasks may start
 *     slice_end(...)        its circuits stay until another slice needs their ports
 *
 * Intent and state. The intent of a switch follows from the slices: each plus end of their cubes is joined
 * with the minus end of the next cube along the switch's axis, and no end of their cubes with anything else.
 * The state is what the switch reported last. Their difference is the next request, so a request that was
 * carried out already is empty, and a switch that lost circuits gets them again. One request at a time goes
 * to a switch, for all slices of its pod together.
 *
 *     UNKNOWN  --read-->  KNOWN  --difference-->  request  --report-->  KNOWN
 *        ^                                           |
 *        +------ no answer, or an impossible one ----+  again after a back-off that doubles
 *
 * A switch that fails SWITCH_TRIES_MAX requests in a row, or is reported SWITCH_DOWN, is out. A slice may do
 * without `out_max` switches (routes lead around them, fabric/route.h); a slice that is short of more is
 * FAILED while it is being connected, and `lost` when it was connected: its owner then takes other cubes.
 *
 * Invariants (slices_check): a cube is in one whole-cube slice at most; parts of a cube in different slices
 * do not overlap; no request breaks a circuit that a slice needs; operations grow.
 *
 *   choose.c    cubes for a shape, or the reason why there are none
 *   store.c     slices and switches; reports, health, timers
 *   connect.c   the difference between intent and state
 */
#ifndef PHX_CORE_SLICE_SLICE_H
#define PHX_CORE_SLICE_SLICE_H

#include "base/vec.h"
#include "core/fabric/crossconnect.h"
#include "core/model/model.h"
#include "core/switch.h"

enum { SWITCH_TRIES_MAX = 4, SLICE_OUT_MAX = 1, SLICE_MACHINE_CHIPS = 4 };
#define SWITCH_BACKOFF_NS     (250 * NS_PER_MS)
#define SWITCH_BACKOFF_MAX_NS (30 * NS_PER_SECOND)

struct step;

/* The cubes, or the part of a cube, that a slice holds. */
struct slice_place {
    uint32_t pod;
    struct cube_slice cubes;
    uint8_t origin[AXES]; /* of a sub-cube: its first machine within the cube, in machines along X, Y, Z */
};

enum slice_phase { SLICE_CONNECTING, SLICE_CONNECTED, SLICE_FAILED, SLICE_PHASES };
extern const struct lifecycle slice_lifecycle;

struct slice {
    obj_id jobset; /* its owner; a JobSet has one slice at most */
    struct slice_place place;
    uint8_t phase;      /* enum slice_phase */
    bool lost;          /* connected once, and short of more switches than it may do without */
    bool told;          /* its owner has acted on `phase` and `lost` */
    uint64_t connected; /* switches whose circuits were read back, one bit for each number */
    uint64_t left_out;  /* switches that it does without */
    int64_t begun_ns, connected_ns;
};

/* A switch as the core knows it. */
struct switch_now {
    uint8_t health;                    /* enum switch_state; DOWN also by its own failures */
    bool known;                        /* the pod's crossconnects have its circuits as they were read last */
    uint32_t failures;                 /* requests in a row that failed */
    uint64_t operation;                /* the request under way; 0: none */
    int64_t due_ns;                    /* when that request counts as unanswered */
    int64_t retry_ns;                  /* no request before */
    VEC(struct circuit) breaks, makes; /* of the request under way */
    bool bad[POD_CUBES_MAX];           /* cubes one of whose ends cannot be used */
    struct buf reason;                 /* of the last failure, for people */
};
struct pod_now {
    struct str name; /* owned */
    uint32_t cubes;
    struct crossconnects connects; /* of switches that are known */
    struct switch_now *switches;   /* [POD_SWITCHES]; NULL: no switches are managed */
    bool dirty;                    /* its switches are to be compared with the intent before the step ends */
};

struct slices {
    VEC(struct slice *) list; /* by jobset */
    struct pod_now **pods;    /* [pod_count] of the cluster */
    size_t pod_count;
    uint64_t operations; /* number of the last request */
};

struct slices *slices_new(void);
void slices_free(struct slices *slices); /* NULL is allowed */

/* --- choice --------------------------------------------------------------------------------------------- */

enum machine_fit {
    MACHINE_FITS,
    MACHINE_FITS_LAST, /* a spare, or to be avoided */
    MACHINE_IS_TAKEN,
    MACHINE_IS_OUT, /* not ready, cordoned, or not selected */
};
struct slice_want {
    const struct slice_shape *shape;
    obj_id jobset;
    enum machine_fit (*fit)(const void *context, machine_id machine);
    const void *context;
};
uint32_t slice_machine_count(const struct slice_shape *shape);
/* The machine of a rank: ranks count machines along X first, then Y, then Z, as chips are counted. */
machine_id slice_machine(const struct cluster *cluster, const struct slice_place *place, uint32_t rank);
/* False: `why` gets one sentence in numbers, such as "needs 2 whole cubes of one pod for 4x4x8; pod-1 has 1
 * free: cube-2 has machine m-17 out of service". */
bool slice_choose(const struct slices *slices, const struct cluster *cluster, const struct slice_want *want,
                  struct slice_place *ret_place, struct buf *why);
/* Whether some pod could hold the shape if all of it were free; false: `why` says the limit. */
bool slice_is_feasible(const struct cluster *cluster, const struct slice_shape *shape, struct buf *why);

/* --- the life of a slice -------------------------------------------------------------------------------- */

struct slice *slice_find(const struct slices *slices, obj_id jobset); /* NULL: it has none */
/* Replaces the JobSet's earlier slice. */
void slice_begin(struct step *step, obj_id jobset, const struct slice_place *place);
void slice_end(struct step *step, obj_id jobset);
/* Sends what the switches lack, and moves slices to their phases. Called before the step ends. */
void slices_settle(struct step *step);
/* "31 of 48 switches are set; pod-1-x5: no answer for 5 s"; for people. */
void slice_describe(const struct slices *slices, const struct cluster *cluster, const struct slice *slice,
                    struct buf *out);

/* --- for core.c ----------------------------------------------------------------------------------------- */

void slices_boot(struct step *step); /* repeats the requests under way */
/* The cluster's pods and switches are others now: what does not fit them is forgotten. */
void slices_cluster(struct slices *slices, const struct cluster *cluster);
void slices_report(struct step *step, const struct switch_report *report);
void slices_health(struct step *step, const struct switch_health *health);
void slices_tick(struct step *step);
int64_t slices_deadline(const struct slices *slices); /* stamp; INT64_MAX: none */
/* Restores a slice from a snapshot, in the order of JobSets; copies. False: it does not fit. */
bool slice_restore(struct slices *slices, const struct cluster *cluster, const struct slice *saved);
void slices_check(const struct slices *slices, const struct cluster *cluster); /* aborts through CHECK */

#endif
