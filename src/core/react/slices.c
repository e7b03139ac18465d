/* slices.c - hands the state of slices to their JobSets: connected, failed, lost, rerouted, or to be moved
 * from a drained cube. */
#include "core/gang/gang.h"
#include "core/react/react.h"
#include "core/recover/recover.h"

/* The longest time in which ranks may save before their slice moves. */
#define SLICE_SAVE_MAX_NS (900 * NS_PER_SECOND)

/* Ends slices whose JobSets have no gang on machines any more. Returns whether there was one. */
static bool end_unneeded(struct step *step)
{
    bool some = false;
    for (size_t i = step->slices->list.len; i-- > 0;) {
        const struct slice *slice = step->slices->list.items[i];
        const struct jobset *jobset = jobs_find_uid(step->jobs, slice->jobset);
        if (jobset && !jobset->entry.gone && jobset_is_running(jobset))
            continue;
        slice_end(step, slice->jobset);
        some = true;
    }
    return some;
}

static void give_up(struct step *step, struct jobset *jobset, struct str why)
{
    CHECK(slice_find(step->slices, jobset->uid));
    step_note(step, true, "CrossConnectFailed", ref_jobset(jobset),
              "the slice gives its cubes back and looks for others: " STR_FORMAT, STR_ARG(why));
    jobs_slice_failed(step, jobset);
    slice_end(step, jobset->uid);
}

/* Ends the tasks of a lost slice. The JobSet's recovery replaces them, and they find other cubes or wait.
 * Returns false if all of them are ending already. */
static bool leave(struct step *step, struct jobset *jobset, struct slice *slice, struct str why)
{
    CHECK(slice->lost && !slice->told);
    slice->told = jobs_slice_lost(step, jobset, why);
    if (slice->told)
        step_note(step, true, "SliceLost", ref_jobset(jobset), STR_FORMAT, STR_ARG(why));
    return slice->told;
}

/* --- drained cubes -------------------------------------------------------------------------------------- */

struct elsewhere {
    const struct cluster *cluster;
    const struct slice *slice;
};

static enum machine_fit fit_elsewhere(const void *context, machine_id id)
{
    const struct elsewhere *elsewhere = context;
    CHECK(id < elsewhere->cluster->machine_count);
    const struct machine *machine = &elsewhere->cluster->machines[id];
    if (!machine_schedulable(machine) || machine->chip_count != SLICE_MACHINE_CHIPS)
        return MACHINE_IS_OUT;
    if (machine->free_mask == machine_all_chips(machine))
        return MACHINE_FITS;
    uint32_t count = slice_machine_count(&elsewhere->slice->place.cubes.shape);
    for (uint32_t rank = 0; rank < count; rank++)
        if (slice_machine(elsewhere->cluster, &elsewhere->slice->place, rank) == id)
            return MACHINE_FITS;
    return MACHINE_IS_TAKEN;
}

static bool has_elsewhere(const struct step *step, const struct slice *slice)
{
    CHECK(slice->phase == SLICE_CONNECTED && !slice->lost);
    struct elsewhere elsewhere = {step->cluster, slice};
    struct slice_want want = {&slice->place.cubes.shape, slice->jobset, fit_elsewhere, &elsewhere,
                              slice->moves};
    struct slice_place place;
    struct buf why BUF_CLEANUP = {0};
    return slice_choose(step->slices, step->cluster, &want, &place, &why);
}

/* Returns whether the slice is on a drained cube and its ranks have saved, or have had their time to. Sends
 * them a notice once other cubes are free. */
static bool move_is_due(struct step *step, struct jobset *jobset, struct slice *slice)
{
    CHECK(slice->jobset == jobset->uid && slice->place.pod < step->slices->pod_count);
    if (slice->lost)
        return false;
    if (slice->phase != SLICE_CONNECTED || !slice_on_drained_cube(step->slices, slice)) {
        slice->leave_ns = 0;
        return false;
    }
    if (slice->leave_ns == 0) {
        if (!has_elsewhere(step, slice))
            return false;
        int64_t grace_ns = jobset_notice(step, jobset, DRAIN_MOVE);
        slice->noticed_ns = step->now_ns;
        slice->leave_ns = step->now_ns + (grace_ns < SLICE_SAVE_MAX_NS ? grace_ns : SLICE_SAVE_MAX_NS);
        step->slices->pods[slice->place.pod]->stale = true;
        step_note(step, false, "SliceMoves", ref_jobset(jobset),
                  "a cube of its slice is drained, and others are free: its ranks save and move");
    }
    return step->now_ns >= slice->leave_ns || jobset_has_answered(jobset, slice->noticed_ns);
}

void core_slices_leave(struct step *step)
{
    for (size_t i = step->slices->list.len; i-- > 0;) {
        struct slice *slice = step->slices->list.items[i];
        struct jobset *jobset = jobs_find_uid(step->jobs, slice->jobset);
        /* Losses of this step are answered first, because their tasks may keep their places. */
        if (!jobset || jobset->recovery.incident.losses.len > 0 || !move_is_due(step, jobset, slice))
            continue;
        slice->lost = slice->told = true; /* the JobSet's recovery places the gang on other cubes */
        step->slices->pods[slice->place.pod]->stale = true;
        jobs_slice_leave(step, jobset, STR("a cube of it is drained"));
    }
}

/* --- routing tables ------------------------------------------------------------------------------------- */

static void reroute(struct step *step, const struct jobset *jobset, struct slice *slice)
{
    CHECK(slice->told && slice_wants_tables(slice));
    slice_give_tables(step, slice);
    jobs_slice_rerouted(step, jobset);
    step_note(step, true, "SliceRerouted", ref_jobset(jobset), "its ranks go on with the tables " STR_FORMAT,
              STR_ARG(buf_str(&slice->tables_name)));
}

/* Hands a new state of the slice to its JobSet. Returns whether jobs must settle again. */
static bool act(struct step *step, struct jobset *jobset, struct slice *slice)
{
    CHECK(!slice->told);
    struct buf why BUF_CLEANUP = {0};
    slice_describe(step->slices, step->cluster, slice, &why);
    switch ((enum slice_phase)slice->phase) {
    case SLICE_CONNECTING:
        return false;
    case SLICE_FAILED:
        give_up(step, jobset, buf_str(&why));
        return true;
    case SLICE_CONNECTED:
        if (slice->lost)
            return leave(step, jobset, slice, buf_str(&why));
        slice->told = true;
        slice_give_tables(step, slice);
        step_note(step, false, "CrossConnected", ref_jobset(jobset), "the gang starts: " STR_FORMAT,
                  STR_ARG(buf_str(&why)));
        jobs_slice_connected(step, jobset);
        return true;
    case SLICE_PHASES:
        break;
    }
    CHECK(false);
}

bool core_slices_act(struct core *core, struct step *step)
{
    struct slices *slices = core->slices;
    bool again = end_unneeded(step);
    slices_settle(step);
    for (size_t i = slices->list.len; i-- > 0;) {
        struct slice *slice = slices->list.items[i];
        struct jobset *jobset = jobs_find_uid(step->jobs, slice->jobset);
        if (!jobset)
            continue;
        if (slice->unread && slice_is_read(slices, slice)) {
            slice->unread = false;
            hearing_start(step, jobset);
            again = true;
        }
        if (!slice->told)
            again |= act(step, jobset, slice);
        else if (slice_wants_tables(slice))
            reroute(step, jobset, slice);
        if (move_is_due(step, jobset, slice) && slice->leave_ns > step->now_ns)
            slice->leave_ns = step->now_ns; /* the slice is left in the next step, which is due at once */
    }
    for (size_t p = 0; p < slices->pod_count; p++)
        if (pod_wants_count(step, slices->pods[p]))
            jobs_count_switch_users(step, slices->pods[p]);
    again |= core_fabric_faults(step);
    return again || step->schedule;
}
