/* slice.h - slices: the cubes of running jobs, and the cross-connects that make each of them one network.
 *
 * A slice is the chips of one JobSet that asks for a shape (fabric/shape.h). It is either whole cubes of one
 * pod, joined by the pod's optical switches, or a part of one cube. The life of a slice:
 *
 *     slice_choose(...)     finds cubes: healthy, not drained, in no other slice; or explains what is missing
 *     slice_begin(...)      takes their machines: SLICE_CONNECTING; requests go to the switches
 *       slices_report(...)  each switch answers with the circuits that it holds
 *     SLICE_CONNECTED       all circuits were read back: tasks may start
 *     slice_end(...)        the circuits stay until another slice needs their ports
 *
 * Intent and state. The slices determine the intent of a switch: each plus end of their cubes is joined with
 * the minus end of the next cube along the switch's axis, and no end of their cubes with anything else. The
 * state is the switch's last report. The next request is the difference of the two. A request that was
 * carried out already is therefore empty, and a switch that lost circuits is asked for them again. Each
 * switch has at most one request under way, which serves all slices of its pod.
 *
 *     UNKNOWN  --read-->  KNOWN  --difference-->  request  --report-->  KNOWN
 *        ^                                           |
 *        +------ no answer, or an impossible one ----+  retry after a back-off that doubles
 *
 * A reading is as old as its request, because a switch may since have restarted and lost its circuits. A
 * slice of whole cubes is connected only by readings that were requested after the slice began
 * (`reads_from`). A switch that seems to hold all of the slice's circuits already is therefore read once
 * more. A part of a cube has no circuits, so any earlier reading counts.
 *
 * A switch is out if it is DOWN or leaves for a drain. A switch is DOWN if its health report says so, or if
 * SWITCH_TRIES_MAX requests in a row have failed and its circuits are unknown. A slice may do without
 * SLICE_OUT_MAX switches, and routes lead around them (fabric/route.h). If more are missing, a slice that is
 * being connected is FAILED, and a connected slice is `lost`: its JobSet then takes other cubes.
 *
 * Routing tables. The ranks of a slice route around the switches that the slice does without. The name of the
 * tables consists of the shape and these switches. The same name gives the same tables on every machine
 * (fabric/route.h), so a change is one message to each rank. `tables_out` holds the switches that the newest
 * tables avoid, and `tables` counts the tables given. A slice that `moves` keeps its first tables, even when
 * a switch returns, and so does a part of a cube. Agents and ranks know tables by `tables_number` and accept
 * only larger numbers.
 *
 * A number of tables is never given twice. This holds even if the log is restored from a backup and its lost
 * part gave numbers that agents and ranks still know. Each number is larger than all others in the log, and
 * at least the epoch of the controller that gives it, times 2^SLICE_TABLES_EPOCH_BITS. The epoch is a time in
 * ms, so the lost part would have to give 2^SLICE_TABLES_EPOCH_BITS numbers in every ms of its life to reach
 * the next epoch's. The tables of the log get a new number after a boot on a backup, and when a rank reports
 * a number that this log has not given (slice_renumber_tables). All ranks then load these tables, whatever
 * the lost part told them. After such a boot, the numbers of requests to switches also start at the new
 * epoch, and every switch is read again, because the lost part may have given the cubes of a slice to another
 * one (`unread`).
 *
 * Wrong wires. A rank reports the switches over which its chips see other chips than the circuits join
 * (struct rank_routes, gang/slice_tables.c). `wrong` in struct slice holds the switches that ranks with an
 * open session report. Each is a fault of the switch. The slice does without the switch, as without one that
 * is out, until no rank reports it any more.
 *
 * Planned maintenance. A switch or cube with a requested drain takes no new slices:
 *
 *     switch:  drain  --every slice of the pod can do without it-->  leaving: slices route around it
 *              leaving  --no rank's chips have tables that may use it-->  Drained
 *     cube:    drain  --other cubes are free-->  its slices save and move (react/slices.c)  -->  Drained
 *     end of the drain: the switch is read before it counts as Ready again (`verify`)
 *
 * Ranks report the tables that their chips have loaded (struct rank_routes, gang/slice_tables.c). The `users`
 * of a leaving switch are the ranks whose tables may use it. They are counted again in each step in which a
 * rank has reported tables or has ended. Users that remain after SLICE_ANSWER_MAX_NS are overdue: the
 * switch's condition says so and names the first of them, and the drain keeps waiting.
 *
 * API objects (kinds Cube, Switch, Slice, FabricSession) are views of the state here. `struct shown` has the
 * metadata of such a view and a checksum of the view that watchers last received. slices_show(), called at
 * the end of a step, notifies watchers of each object whose checksum has changed.
 *
 * Invariants: a cube belongs to at most one slice of whole cubes, and then to no other; parts of a cube in
 * different slices do not overlap; no request breaks a circuit that a slice needs; operation numbers grow; a
 * switch that leaves has a drain, and no slice depends on it.
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
/* The largest number that a snapshot may hold; a notice can carry more. */
#define SLICE_TABLES_NUMBER_MAX (UINT64_C(1) << 62)
#define SWITCH_BACKOFF_NS     (250 * NS_PER_MS)
#define SWITCH_BACKOFF_MAX_NS (30 * NS_PER_SECOND)
/* How long ranks may take to load tables around a drained switch before its condition reports them as
 * late. */
#define SLICE_ANSWER_MAX_NS (30 * NS_PER_SECOND)

struct step;

/* An API object that is a view of the state here. */
enum shown_truth { SHOWN_UNKNOWN, SHOWN_FALSE, SHOWN_TRUE };
struct shown {
    struct str namespace_, name; /* owned */
    obj_id uid;                  /* 0: not announced to watchers yet */
    uint64_t changed_seq;
    uint64_t sum; /* checksum of the view that watchers last received */
    int64_t created_ns;
    uint8_t ready, drained; /* enum shown_truth: conditions */
    int64_t ready_ns, drained_ns;
};

/* The cubes, or the part of a cube, that a slice holds. */
struct slice_place {
    uint32_t pod;
    struct cube_slice cubes;
    uint8_t origin[AXES]; /* sub-cube: its first machine within the cube, in machines along X, Y, Z */
};

enum slice_phase { SLICE_CONNECTING, SLICE_CONNECTED, SLICE_FAILED, SLICE_PHASES };
extern const struct lifecycle slice_lifecycle;

struct slice {
    obj_id jobset; /* owner; a JobSet has at most one slice */
    struct slice_place place;
    uint8_t phase;      /* enum slice_phase */
    bool lost;          /* CONNECTED, but short of more switches than it may do without */
    bool told;          /* the JobSet has acted on `phase` and `lost` */
    bool unread;        /* CONNECTED by readings that the log's lost part may have made wrong */
    uint64_t connected; /* switches whose circuits were read back, one bit for each number */
    uint64_t left_out;  /* switches that the slice does without */
    uint64_t wrong;     /* switches over which ranks see other chips than the circuits join */
    int64_t begun_ns, connected_ns;
    uint64_t reads_from; /* older readings of its switches do not count; number of a request; 0: all count */
    bool moves;      /* never gets new tables: lost as soon as it must do without a switch that they use */
    uint32_t tables; /* number of times that its ranks were given tables; 0: none yet */
    uint64_t tables_number;      /* number by which agents and ranks know the newest tables; 0: none yet */
    uint64_t tables_out;         /* switches that the newest tables avoid */
    int64_t tables_ns;           /* when its ranks were told of the newest tables */
    struct buf tables_name;      /* name of the newest tables, see slice_give_tables(); derived */
    int64_t leave_ns;            /* deadline for leaving a drained cube; 0: not leaving */
    int64_t noticed_ns;          /* when its ranks got notice of the move */
    struct shown shown, session; /* its views as a Slice and as a FabricSession */
};

struct pod_now;

/* Bits for the ends of a cube at a switch. */
enum { LINK_BAD_PLUS = 1, LINK_BAD_MINUS = 2 };

/* A switch as the core knows it. */
struct switch_now {
    struct pod_now *pod;
    uint32_t number;
    uint8_t health;                    /* enum switch_state; DOWN also after failed requests */
    bool known;                        /* the pod's `connects` have its circuits, as last read */
    uint64_t read;                     /* the request whose answer gave these circuits; 0: none */
    uint32_t failures;                 /* requests in a row that failed */
    uint64_t operation;                /* the request under way; 0: none */
    int64_t due_ns;                    /* deadline of that request */
    int64_t retry_ns;                  /* no request before this time; 0: no wait */
    VEC(struct circuit) breaks, makes; /* of the request under way */
    uint8_t bad[POD_CUBES_MAX];        /* by cube: LINK_BAD_... for each end that cannot be used */
    struct buf reason;                 /* of the last failure, for people */
    struct buf alarms;                 /* in the switch's own words, one alarm a line */
    bool faulty;                       /* a fault of the switch or of a link at it may be open; derived */
    bool lies;    /* it reported circuits that no switch can hold; cleared when a request succeeds */
    bool drain;   /* API: spec.unschedulable */
    bool leaving; /* `drain`, and no slice depends on it; ranks' tables may still use it */
    bool verify;  /* must be read before it counts as Ready: after a drain, an outage or a restored log */
    int64_t leaving_ns; /* when it began to leave; 0: not leaving */
    uint32_t users;     /* while leaving: ranks whose chips have tables that may use it */
    uint32_t user_rank; /* the first of these ranks, by JobSet and rank */
    obj_id user_jobset;
    bool overdue; /* users remain SLICE_ANSWER_MAX_NS after it began to leave */
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
    uint32_t index;  /* index in the cluster's pods */
    uint32_t cubes;
    struct cube_now *all_cubes;    /* [cubes]; NULL if `switches` is NULL */
    struct crossconnects connects; /* circuits of the switches that are `known` */
    struct switch_now *switches;   /* [POD_SWITCHES]; NULL: no switches are managed */
    bool dirty;                    /* its switches must be compared with the intent before the step ends */
    bool stale; /* views of its objects may have changed since watchers were last notified */
    bool recount;                  /* the users of its switches may have changed; derived */
};

struct slices {
    VEC(struct slice *) list; /* sorted by jobset */
    struct pod_now **pods;    /* [pod_count] of the cluster */
    size_t pod_count;
    uint64_t operations; /* number of the last request */
    uint64_t tables_number;   /* the largest number of tables given to any slice */
    uint64_t closings_seen;   /* health_closings when faults were compared with the state last; derived */
    uint64_t machines_seen;   /* number of the next machine change to process; derived */
    /* ended, but effects of this step may point to them; freed when the next step begins */
    VEC(struct slice *) dead;
    VEC(struct pod_now *) dead_pods;
};

struct slices *slices_new(void);
void slices_free(struct slices *slices); /* NULL is allowed */

/* Returns the switches of a pod over which ranks of some slice see other chips than the circuits join. */
uint64_t pod_wrong(const struct slices *slices, const struct pod_now *pod);

/* --- choice --------------------------------------------------------------------------------------------- */

enum machine_fit {
    MACHINE_FITS,
    MACHINE_FITS_LAST, /* a spare, or one to avoid: taken only if no other fits */
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
/* Returns the machine of a rank. Ranks count machines along X first, then Y, then Z, as chips are counted. */
machine_id slice_machine(const struct cluster *cluster, const struct slice_place *place, uint32_t rank);
/* Finds a place for the shape, preferably cubes of the JobSet's current slice. Changes no state. Returns
 * false if there is none, and appends one sentence with numbers to `why`, such as "needs 2 whole cubes of one
 * pod for 4x4x8; pod-1 has 1 free: cube-2 has machine m-17 out of service". */
bool slice_choose(const struct slices *slices, const struct cluster *cluster, const struct slice_want *want,
                  struct slice_place *ret_place, struct buf *why);
/* Returns whether some pod could hold the shape if the whole pod were free. If not, appends the limit to
 * `why`. */
bool slice_is_feasible(const struct cluster *cluster, const struct slice_shape *shape, struct buf *why);

/* --- the life of a slice -------------------------------------------------------------------------------- */

/* Returns NULL if the JobSet has no slice. */
struct slice *slice_find(const struct slices *slices, obj_id jobset);
struct slice_owner {
    obj_id jobset;
    struct str namespace_, name;
    bool moves; /* as in struct slice */
};
/* Begins to connect the place for a JobSet, whose earlier slice ends. Copies all arguments. */
void slice_begin(struct step *step, const struct slice_owner *owner, const struct slice_place *place);
/* Ends the JobSet's slice and frees its cubes. Does nothing if the JobSet has none. */
void slice_end(struct step *step, obj_id jobset);
/* Sends requests to the switches that differ from the intent, and moves slices to their phases. Called before
 * a step ends. */
void slices_settle(struct step *step);
/* Appends a description for people, such as "31 of 48 switches of pod-1 are set; x5: it does not answer". */
void slice_describe(const struct slices *slices, const struct cluster *cluster, const struct slice *slice,
                    struct buf *out);

/* Returns whether the slice's tables avoid other switches than the slice does without, and may be
 * replaced. */
bool slice_wants_tables(const struct slice *slice);
/* Gives the slice new tables, around the switches that it does without. Their name is the shape, as in
 * "4x4x8-twisted", followed by " without x5" or " without x5,y3" if they avoid switches. */
void slice_give_tables(struct step *step, struct slice *slice);
/* Gives the slice's tables a new number, so that ranks take them as newer than all that they know. */
void slice_renumber_tables(struct step *step, struct slice *slice);
/* Returns whether only a controller whose log is lost can have given this number: the number is larger than
 * that of the slice's tables, and too small for any controller to give in future. */
bool slice_tables_are_lost(const struct step *step, const struct slice *slice, uint64_t number);

/* --- planned maintenance -------------------------------------------------------------------------------- */

/* Requests the drain of a switch or cube, or ends it. Does nothing if `drain` is already so. */
void switch_set_drain(struct step *step, struct switch_now *now, bool drain);
void cube_set_drain(struct step *step, struct cube_now *cube, bool drain);
/* Returns whether one of the slice's cubes, or the machine's cube, has a requested drain. */
bool slice_on_drained_cube(const struct slices *slices, const struct slice *slice);
bool slices_drain_machine(const struct slices *slices, const struct cluster *cluster, machine_id machine);
/* Returns whether the drain of the switch waits. If so, `why` names the slice that cannot spare the switch,
 * or the rank whose tables may still use it. */
bool switch_drain_waits(const struct slices *slices, const struct switch_now *now, struct buf *why);
/* Returns whether the switch has left for a drain and no rank's tables use it. */
static inline bool switch_is_drained(const struct switch_now *now)
{
    return now->leaving && now->users == 0;
}

/* Returns whether the users of the pod's leaving switches must be counted: they may have changed, or have
 * just become overdue. */
bool pod_wants_count(const struct step *step, const struct pod_now *pod);
/* Count the users of leaving switches: begin, then one call for each rank of the pod with an open session of
 * its chips, then end. `without` has the switches that the rank's tables avoid. */
void pod_count_begin(struct pod_now *pod);
void pod_count_rank(struct pod_now *pod, obj_id jobset, uint32_t rank, uint64_t without);
/* Returns the switches with users that have just become overdue, one bit for each switch number. */
uint64_t pod_count_end(struct step *step, struct pod_now *pod);

/* --- views ---------------------------------------------------------------------------------------------- */

/* Return the object with this API name, or NULL. */
struct switch_now *switch_find(const struct slices *slices, struct str name);
struct cube_now *cube_find(const struct slices *slices, struct str name);
const struct slice *slice_named(const struct slices *slices, struct str namespace_, struct str name);
const struct block *cube_block(const struct cluster *cluster, const struct cube_now *cube);
const struct optical_switch *switch_config(const struct cluster *cluster, const struct switch_now *now);
/* Returns the state of the slice in one word: "Connecting", "Connected", "Moving", "Lost" or "Failed". */
const char *slice_word(const struct slice *slice);
/* Iterates over the slices that have the cube or a part of it. `*at` is the position in the list, 0 at first.
 * Returns NULL after the last one. */
const struct slice *slice_on_cube(const struct slices *slices, const struct cube_now *cube, size_t *at);
/* Returns the number of machines of the cube that are ready for work, and how many of the cube's chips tasks
 * hold. */
uint32_t cube_ready_machines(const struct cluster *cluster, const struct cube_now *cube, uint32_t *ret_busy);
/* Marks the pods of the machines that have changed since the last call, by the cluster's journal: views of
 * their cubes may have changed. */
void slices_machines_changed(struct slices *slices, const struct cluster *cluster);
/* Returns the metadata of a Cube, Switch, Slice or FabricSession. */
static inline const struct shown *shown_of(struct object_ref object)
{
    return object.kind == OBJECT_CUBE     ? &object.cube->shown
           : object.kind == OBJECT_SWITCH ? &object.optical_switch->shown
           : object.kind == OBJECT_SLICE  ? &object.slice->shown
                                          : &object.slice->session;
}
/* Notifies watchers of each object whose view has changed. Called last in a step. */
void slices_show(struct step *step);
/* Frees slices that ended, and pods that were removed, in the last step. */
void slices_bury(struct slices *slices);

/* --- a log that was restored from a backup -------------------------------------------------------------- */

/* Forgets all circuits, so that every switch is read again: the lost part of the log may have changed them.
 * Connected slices stay CONNECTED but are `unread`: no rank starts on them until all of their switches have
 * answered. */
void slices_read_anew(struct step *step);
/* Returns whether the circuits of every switch that connects the slice are known. */
bool slice_is_read(const struct slices *slices, const struct slice *slice);

/* --- for core.c ----------------------------------------------------------------------------------------- */

/* Repeats the requests under way and reads each switch that was seen before: while no controller ran, the
 * switch may have lost circuits and its ports their light. `restored` means that the log is from a backup. */
void slices_boot(struct step *step, bool restored);
/* Adapts to a changed set of pods and switches: state of pods that no longer exist is dropped, and their
 * slices end. `step` is NULL while a snapshot is read, before it has any slice. */
void slices_cluster(struct step *step, struct slices *slices, const struct cluster *cluster);
/* Takes a switch's answer. Ignores reports on operations other than the request under way. */
void slices_report(struct step *step, const struct switch_report *report);
/* Takes a change of a switch's health, bad ports or alarms. */
void slices_health(struct step *step, const struct switch_health *health);
/* Fails requests whose deadline has passed, and ends the waits that are over. */
void slices_tick(struct step *step);
/* Returns the time of the next slices_tick(), or INT64_MAX. */
int64_t slices_deadline(const struct slices *slices);
/* Restores a slice from a snapshot; call in the order of JobSets. Copies `saved` and its names. Returns false
 * if the slice is invalid or does not fit the cluster. */
bool slice_restore(struct slices *slices, const struct cluster *cluster, const struct slice *saved);
void slices_check(const struct slices *slices, const struct cluster *cluster); /* aborts through CHECK */

#endif
