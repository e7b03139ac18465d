/* internal.h - what the files of slice/ say to each other. See slice.h. */
#ifndef PHX_CORE_SLICE_INTERNAL_H
#define PHX_CORE_SLICE_INTERNAL_H

#include "base/check.h"
#include "core/slice/slice.h"
#include "core/step.h"

/* The circuits that the slices of a pod need, alike for the 16 switches of an axis. */
struct intent {
    uint16_t next[AXES][POD_CUBES_MAX]; /* by plus end; CUBE_NONE: free of the slices' wishes */
    bool owned[POD_CUBES_MAX]; /* the cube is in a slice: its ends are joined as said, or not at all */
};

void intent_of_pod(const struct slices *slices, uint32_t pod, struct intent *ret);
/* Whether the switch holds all circuits of the slice, and no others at its cubes, by a reading that was asked
 * for after the slice began. */
bool slice_is_set(const struct slice *slice, const struct pod_now *pod, uint32_t number);
/* Whether the slice can use the switch. */
bool slice_can_use(const struct slice *slice, const struct pod_now *pod, uint32_t number);
/* Whether the slice may do without all of these switches, one bit for each number. */
bool slice_can_lack(const struct slice *slice, uint64_t switches);
/* Whether the switch takes no part in new circuits: it is down, or leaves. */
static inline bool switch_is_out(const struct switch_now *now)
{
    return now->health == SWITCH_DOWN || now->leaving;
}
/* Lets the drains take effect that every slice of the pod can do without; before slices are judged. */
void drains_settle(struct step *step, struct pod_now *pod);
/* Forgets the circuits of the switch: it is read before the next change. */
void forget_circuits(struct pod_now *pod, uint32_t number);
/* When ranks count as late that have no tables without the switch, which leaves. */
static inline int64_t switch_answer_due_ns(const struct switch_now *now)
{
    return now->leaving_ns + SLICE_ANSWER_MAX_NS;
}
/* Derives `tables_name`. */
void slice_name_tables(struct slice *slice);
void shown_done(struct shown *shown);
void shown_name(struct shown *shown, struct str namespace_, struct str name); /* copies */
struct pod_now *pod_now_new(const struct cluster *cluster, uint32_t pod);
void pod_now_free(struct pod_now *pod);
/* A request has failed; the next one waits. `reason` is copied. */
void switch_failed(struct step *step, struct pod_now *pod, struct switch_now *now, struct str reason);

#endif
