/* internal.h - what the files of slice/ share. See slice.h. */
#ifndef PHX_CORE_SLICE_INTERNAL_H
#define PHX_CORE_SLICE_INTERNAL_H

#include "base/check.h"
#include "core/slice/slice.h"
#include "core/step.h"

/* The circuits that the slices of a pod need. They are the same for the 16 switches of an axis. */
struct intent {
    /* the minus end's cube, by plus end; CUBE_NONE: no slice needs a circuit here */
    uint16_t next[AXES][POD_CUBES_MAX];
    bool owned[POD_CUBES_MAX]; /* the cube is in a slice: its ends may have no other circuits */
};

void intent_of_pod(const struct slices *slices, uint32_t pod, struct intent *ret);
/* Returns whether the switch holds all circuits of the slice, and no others at its cubes, by a reading that
 * was requested after the slice began. */
bool slice_is_set(const struct slice *slice, const struct pod_now *pod, uint32_t number);
/* Returns whether the switch is in service for the slice: not out, no wrong wires, and no bad port at the
 * slice's cubes. */
bool slice_can_use(const struct slice *slice, const struct pod_now *pod, uint32_t number);
/* Returns whether the slice may do without all of these switches, one bit for each number. */
bool slice_can_lack(const struct slice *slice, uint64_t switches);
/* Returns whether the switch takes no part in new circuits: it is down, or leaves. */
static inline bool switch_is_out(const struct switch_now *now)
{
    return now->health == SWITCH_DOWN || now->leaving;
}
/* Starts at most one drain that every slice of the pod can do without, and marks the pod `dirty` if it did:
 * slices must be judged before the next drain. */
void drains_settle(struct step *step, struct pod_now *pod);
/* Forgets the circuits of the switch, which must be read before its next change. */
void forget_circuits(struct pod_now *pod, uint32_t number);
/* Returns the time after which ranks without tables that avoid the leaving switch are overdue. */
static inline int64_t switch_answer_due_ns(const struct switch_now *now)
{
    return now->leaving_ns + SLICE_ANSWER_MAX_NS;
}
/* Sets `tables_name` from the shape and `tables_out`. */
void slice_name_tables(struct slice *slice);
void shown_done(struct shown *shown);
void shown_name(struct shown *shown, struct str namespace_, struct str name); /* copies */
struct pod_now *pod_now_new(const struct cluster *cluster, uint32_t pod);
void pod_now_free(struct pod_now *pod);
/* Counts a failed request and sets the back-off of the next. Copies `reason`. */
void switch_failed(struct step *step, struct pod_now *pod, struct switch_now *now, struct str reason);

#endif
