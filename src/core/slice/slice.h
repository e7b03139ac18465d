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
 * A reading is as old as its request: a switch may have restarted since, and lost its circuits unseen. A
 * slice of whole cubes is connected by readings that were asked for after it began (`reads_from`): a switch
 * that seems to hold all of its circuits is read once more. A part of a cube has no circuits, so it does not
 * wait.
 *
 * A switch that fails SWITCH_TRIES_MAX requests in a row, or is reported SWITCH_DOWN, is out. A slice may do
 * without `out_max` switches (routes lead around them, fabric/route.h); a slice that is short of more is
 * FAILED while it is being connected, and `lost` when it was connected: its owner then takes other cubes.
 *
 * Routing tables. The ranks of a slice route around the switches that it does without. Their tables are
 * named by the shape and these switches alone (fabric/route.h makes the same tables of both everywhere), so a
 * change is one message to each rank: `tables_out` is the set that the newest tables avoid, `tables` counts
 * them. A slice that `moves` keeps its first tables, also when a switch comes back; so does a part of a cube.
 * Agents and ranks know them by `tables_number`, and take larger numbers alone.
 *
 * Numbers of tables are never given twice, also when the log is restored from a backup, and its lost part has
 * given some that agents and ranks still know: each is above all others in the log, and not below the epoch
 * of the controller that gives it, times 2^SLICE_TABLES_EPOCH_BITS. The epoch is the time in ms, so the lost
 * part would have had to give 2^SLICE_TABLES_EPOCH_BITS of them in every ms of its life to reach it. After
 * a boot on a backup, and when a rank names tables that this log has not given, the tables of the log get a
 * new number (slice_renumber_tables): all ranks then load these, whatever the lost part has told them. After
 * such a boot the requests to switches go on from there too, and every switch is read anew: the lost part may
 * have given the cubes of a slice to another one (`unread`).
 *
 * Wrong wires. A rank says over which switches its chips see other chips than the circuits join (struct
 * rank_routes, gang/slice_tables.c). The slice's `wrong` has the switches that ranks with an open session
 * name: each is a fault of the switch, and the slice does without the switch, as without one that is out,
 * until no rank says so any more.
 *
 * Planned maintenance. A switch or cube whose drain was asked for takes no new slices:
 *
 *     switch:  drain  --every slice of the pod can do without it-->  leaving: slices route around it
 *              leaving  --no rank's chips have tables that may use it-->  Drained
 *     cube:    drain  --there are other cubes-->  its slices save and move (react/slices.c)  -->  Drained
 *     end of the drain: the switch is read before it counts as Ready again (`verify`)
 *
 * Ranks say which tables their chips have loaded (struct rank_routes, gang/slice_tables.c). While a switch
 * leaves, the ranks whose tables may use it are its `users`, counted anew in each step in which a rank has
 * said something or has ended. Users that are left after SLICE_ANSWER_MAX_NS are overdue: the condition says
 * so and names the first of them, and the drain goes on waiting.
 *
 * API objects (kinds Cube, Switch, Slice, FabricSession) are views of the state here. `struct shown` has the
 * metadata that a view needs, and a sum of what watchers were told last: slices_show, called at the end of a
 * step, tells them of each object whose sum has changed.
 *
 * Invariants (slices_check): a cube is in one whole-cube slice at most; parts of a cube in different slices
 * do not overlap; no request breaks a circuit that a slice needs; operations grow; a switch that leaves has a
 * drain, and no slice depends on it.
 *
 *   choose.c    cubes for a shape, or the reason why there are none
 *   store.c     slices and switches; reports, health, timers
 *   connect.c   the difference between intent and state
 *   drain.c     planned maintenance of switches and cubes
 *   shown.c     views: conditions, and which objects have changed
 */
#ifndef PHX_CORE_SLICE_SLICE_H
#define PHX_CORE_SLICE_SLICE_H

#include "base/vec.h"
#include "core/effect.h"
#include "core/fabric/crossconnect.h"
#include "core/model/model.h"
#include "core/words/switch.h"

#define ALL_SWITCHES ((UINT64_C(1) << POD_SWITCHES) - 1)
enum { SWITCH_TRIES_MAX = 4, SLICE_OUT_MAX = 1, SLICE_MACHINE_CHIPS = 4, SLICE_TABLES_EPOCH_BITS = 10 };
#define SLICE_TABLES_NUMBER_MAX (UINT64_C(1) << 62) /* of a snapshot; a notice has room for more */
#define SWITCH_BACKOFF_NS     (250 * NS_PER_MS)
#define SWITCH_BACKOFF_MAX_NS (30 * NS_PER_SECOND)
/* The time in which ranks load tables around a drained switch, before its condition says they are late. */
#define SLICE_ANSWER_MAX_NS (30 * NS_PER_SECOND)

struct step;

/* An API object that is a view of the state here. */
enum shown_truth { SHOWN_UNKNOWN, SHOWN_FALSE, SHOWN_TRUE };
struct shown {
    struct str namespace_, name; /* owned */
    obj_id uid;                  /* 0: watchers do not know of it yet */
    uint64_t changed_seq;
    uint64_t sum; /* of the view as watchers were told last */
    int64_t created_ns;
    uint8_t ready, drained; /* enum shown_truth: conditions */
    int64_t ready_ns, drained_ns;
};

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
    bool unread;        /* connected, by readings that the log's lost part may have made wrong */
    uint64_t connected; /* switches whose circuits were read back, one bit for each number */
    uint64_t left_out;  /* switches that it does without */
    uint64_t wrong;     /* switches over which its ranks see other chips than the circuits join */
    int64_t begun_ns, connected_ns;
    uint64_t reads_from; /* what its switches held before this request does not count; 0: all counts */
    bool moves;          /* it keeps its tables: lost with the first switch that these do not avoid */
    uint32_t tables;     /* routing tables that its ranks were given, one after another; 0: none yet */
    uint64_t tables_number; /* the newest of them is known by it to agents and ranks; 0: none yet */
    uint64_t tables_out; /* switches that the newest of them avoid */
    int64_t tables_ns;   /* when its ranks were told of them */
    struct buf tables_name; /* slice_tables_name of them; derived */
    int64_t leave_ns;    /* it moves from a drained cube, at this time at the latest; 0: it does not */
    int64_t noticed_ns;  /* when its ranks were told so */
    struct shown shown, session; /* as a Slice and as a FabricSession */
};

struct pod_now;

/* Bits for the ends of a cube at a switch. */
enum { LINK_BAD_PLUS = 1, LINK_BAD_MINUS = 2 };

/* A switch as the core knows it. */
struct switch_now {
    struct pod_now *pod;
    uint32_t number;
    uint8_t health;                    /* enum switch_state; DOWN also by its own failures */
    bool known;                        /* the pod's crossconnects have its circuits as they were read last */
    uint64_t read;                     /* the request whose answer they are from; 0: none */
    uint32_t failures;                 /* requests in a row that failed */
    uint64_t operation;                /* the request under way; 0: none */
    int64_t due_ns;                    /* when that request counts as unanswered */
    int64_t retry_ns;                  /* no request before */
    VEC(struct circuit) breaks, makes; /* of the request under way */
    uint8_t bad[POD_CUBES_MAX];        /* cubes one of whose ends cannot be used: LINK_BAD_... */
    struct buf reason;                 /* of the last failure, for people */
    struct buf alarms;                 /* as the switch words them, one a line */
    bool faulty;                       /* a fault of it or of a link at it may be open; derived */
    bool lies;    /* it reported what no switch can hold, or holds other circuits than it says */
    bool drain;   /* API: spec.unschedulable */
    bool leaving; /* `drain`, and every slice can do without it: no slice depends on it */
    bool verify;  /* it came back from a drain, and has not been read since */
    int64_t leaving_ns; /* since when it leaves; 0: it does not */
    uint32_t users;     /* while it leaves: ranks whose chips have tables that may use it */
    uint32_t user_rank; /* the first of them */
    obj_id user_jobset;
    bool overdue; /* there are users, SLICE_ANSWER_MAX_NS after it began to leave */
    struct shown shown;
};
struct cube_now {
    struct pod_now *pod;
    uint32_t number;
    bool drain; /* API: spec.unschedulable */
    struct shown shown;
};
struct pod_now {
    struct str name; /* owned */
    uint32_t index;  /* in the cluster's pods */
    uint32_t cubes;
    struct cube_now *all_cubes;    /* [cubes]; NULL as `switches` */
    struct crossconnects connects; /* of switches that are known */
    struct switch_now *switches;   /* [POD_SWITCHES]; NULL: no switches are managed */
    bool dirty;                    /* its switches are to be compared with the intent before the step ends */
    bool stale;                    /* views of its objects may have changed since watchers were told */
    bool recount;                  /* the users of its switches may have changed; derived */
};

struct slices {
    VEC(struct slice *) list; /* by jobset */
    struct pod_now **pods;    /* [pod_count] of the cluster */
    size_t pod_count;
    uint64_t operations; /* number of the last request */
    uint64_t tables_number;   /* the last one that was given, to any slice */
    uint64_t closings_seen;   /* health_closings when faults were compared with the state last; derived */
    uint64_t machines_seen;   /* number of the next change of machines to look at; derived */
    VEC(struct slice *) dead; /* freed when the next step begins; likewise: */
    VEC(struct pod_now *) dead_pods;
};

struct slices *slices_new(void);
void slices_free(struct slices *slices); /* NULL is allowed */

/* The switches of a pod over which the ranks of some slice see other chips than the circuits join. */
uint64_t pod_wrong(const struct slices *slices, const struct pod_now *pod);

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
    bool moves; /* as in struct slice_owner */
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
struct slice_owner {
    obj_id jobset;
    struct str namespace_, name;
    bool moves; /* struct slice */
};
/* Replaces the JobSet's earlier slice; copies. */
void slice_begin(struct step *step, const struct slice_owner *owner, const struct slice_place *place);
void slice_end(struct step *step, obj_id jobset);
/* Sends what the switches lack, and moves slices to their phases. Called before the step ends. */
void slices_settle(struct step *step);
/* "31 of 48 switches are set; pod-1-x5: no answer for 5 s"; for people. */
void slice_describe(const struct slices *slices, const struct cluster *cluster, const struct slice *slice,
                    struct buf *out);

/* Whether the tables of a connected slice avoid other switches than it does without, and may be replaced. */
bool slice_wants_tables(const struct slice *slice);
/* Gives the slice new tables: around the switches that it does without. Their name is "4x4x8-twisted", and
 * " without x5" if there is a switch that they avoid. */
void slice_give_tables(struct step *step, struct slice *slice);
/* Gives the slice's tables another number, so that ranks take them for newer than all that they know. */
void slice_renumber_tables(struct step *step, struct slice *slice);
/* Whether a rank can have tables of this number only from a controller whose log is lost: it is above that
 * of the slice's, and no controller will give it any more. */
bool slice_tables_are_lost(const struct step *step, const struct slice *slice, uint64_t number);

/* --- planned maintenance -------------------------------------------------------------------------------- */

/* Asks for the drain of a switch or cube, or ends it. Nothing happens if that was asked for already. */
void switch_set_drain(struct step *step, struct switch_now *now, bool drain);
void cube_set_drain(struct step *step, struct cube_now *cube, bool drain);
/* Whether a drain of one of the slice's cubes, or of the machine's cube, was asked for. */
bool slice_on_drained_cube(const struct slices *slices, const struct slice *slice);
bool slices_drain_machine(const struct slices *slices, const struct cluster *cluster, machine_id machine);
/* Whether the drain of the switch waits: then `why` names the slice that cannot spare the switch, or the rank
 * whose tables may still use it. */
bool switch_drain_waits(const struct slices *slices, const struct switch_now *now, struct buf *why);
/* Whether a drain was asked for, and no rank's tables use the switch. */
static inline bool switch_is_drained(const struct switch_now *now)
{
    return now->leaving && now->users == 0;
}

/* Counting the users of a pod's switches. True: they may have changed while a switch leaves, or their time is
 * up. */
bool pod_wants_count(const struct step *step, const struct pod_now *pod);
/* The count: begin, one call for each rank of the pod that has an open session of its chips, and end. */
void pod_count_begin(struct pod_now *pod);
void pod_count_rank(struct pod_now *pod, obj_id jobset, uint32_t rank, uint64_t without);
/* Returns the switches whose users have just become overdue, one bit for each number. */
uint64_t pod_count_end(struct step *step, struct pod_now *pod);

/* --- views ---------------------------------------------------------------------------------------------- */

struct switch_now *switch_find(const struct slices *slices, struct str name); /* by API name; NULL: none */
struct cube_now *cube_find(const struct slices *slices, struct str name);     /* likewise */
const struct slice *slice_named(const struct slices *slices, struct str namespace_, struct str name);
const struct block *cube_block(const struct cluster *cluster, const struct cube_now *cube);
const struct optical_switch *switch_config(const struct cluster *cluster, const struct switch_now *now);
/* Returns the state of the slice in one word: "Connecting", "Connected", "Moving", "Lost", "Failed". */
const char *slice_word(const struct slice *slice);
/* The slice that has the cube or a part of it, from the list's position *at on, which moves behind it. NULL:
 * no more. */
const struct slice *slice_on_cube(const struct slices *slices, const struct cube_now *cube, size_t *at);
/* Machines of the cube that are ready for work, and chips that tasks hold. */
uint32_t cube_ready_machines(const struct cluster *cluster, const struct cube_now *cube, uint32_t *ret_busy);
/* Marks the pods of machines that the cluster's journal has as changed since the last call: views of their
 * cubes may have changed. */
void slices_machines_changed(struct slices *slices, const struct cluster *cluster);
/* Metadata of a Cube, Switch, Slice or FabricSession. */
static inline const struct shown *shown_of(struct object_ref object)
{
    return object.kind == OBJECT_CUBE     ? &object.cube->shown
           : object.kind == OBJECT_SWITCH ? &object.optical_switch->shown
           : object.kind == OBJECT_SLICE  ? &object.slice->shown
                                          : &object.slice->session;
}
/* Tells watchers of the objects whose views have changed. Called last in a step. */
void slices_show(struct step *step);
/* Frees the slices that ended in the last step. */
void slices_bury(struct slices *slices);

/* --- a log that was restored from a backup -------------------------------------------------------------- */

/* Reads every switch anew: the lost part of the log may have made other circuits. Slices that are connected
 * stay so, and are `unread` until all of their switches have answered; no rank is started on them before. */
void slices_read_anew(struct step *step);
/* Whether every switch that connects the slice was read since. */
bool slice_is_read(const struct slices *slices, const struct slice *slice);

/* --- for core.c ----------------------------------------------------------------------------------------- */

/* Repeats the requests under way, and reads each switch that was seen before: it may have lost circuits, and
 * its ports their light, while no controller was there. `restored`: the log is from a backup. */
void slices_boot(struct step *step, bool restored);
/* The cluster's pods and switches are others now: what does not fit them is forgotten. `step` NULL: while a
 * snapshot is read, before any slice is. */
void slices_cluster(struct step *step, struct slices *slices, const struct cluster *cluster);
void slices_report(struct step *step, const struct switch_report *report);
void slices_health(struct step *step, const struct switch_health *health);
void slices_tick(struct step *step);
int64_t slices_deadline(const struct slices *slices); /* stamp; INT64_MAX: none */
/* Restores a slice from a snapshot, in the order of JobSets; copies, also its names. False: it does not
 * fit. */
bool slice_restore(struct slices *slices, const struct cluster *cluster, const struct slice *saved);
void slices_check(const struct slices *slices, const struct cluster *cluster); /* aborts through CHECK */

#endif
