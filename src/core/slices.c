/* slices.c - hands the state of slices to their JobSets: connected, failed, lost. */
#include "core/internal.h"

/* A slice lives as long as its JobSet has tasks on machines. */
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
    step_note_late(step, true, "CrossConnectFailed", ref_jobset(jobset),
                   "the slice gives its cubes back and looks for others: " STR_FORMAT, STR_ARG(why));
    jobs_slice_failed(step, jobset);
    slice_end(step, jobset->uid);
}

/* The JobSet's recovery restarts the gang, which finds other cubes or waits. False: no task runs that could
 * be ended; one may run later. */
static bool leave(struct step *step, struct jobset *jobset, struct slice *slice, struct str why)
{
    slice->told = jobs_slice_lost(step, jobset, why);
    if (slice->told)
        step_note_late(step, true, "SliceLost", ref_jobset(jobset), STR_FORMAT, STR_ARG(why));
    return slice->told;
}

/* Returns whether jobs must settle again. */
static bool act(struct step *step, struct jobset *jobset, struct slice *slice)
{
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
        step_note_late(step, false, "CrossConnected", ref_jobset(jobset), "the gang starts: " STR_FORMAT,
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
        if (!slice->told && jobset)
            again |= act(step, jobset, slice);
    }
    return again || step->schedule;
}
