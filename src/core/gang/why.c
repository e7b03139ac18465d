/* why.c - the reason why a gang waits, in numbers: `why` of struct gang.
 *
 * The numbers change with every machine that is taken or given back, and each change of the text is a change
 * of the JobSet, which watchers receive. Therefore a gang's text follows the machines at once for the first
 * WHY_BURST changes in a WHY_WINDOW_NS, and then once more at the end of that window. A waiting gang of
 * 16,384 tasks then costs a text now and then, not one for each small job that starts beside it.
 *
 * All of this is state: a core that was restored from a snapshot gives the same reasons at the same stamps. A
 * refused try either updates the text (gang_may_say_why) or postpones that (gang_say_why_later), whatever is
 * cached between searches.
 */
#include "core/gang/internal.h"

enum { WHY_BURST = 8 };
#define WHY_WINDOW_NS NS_PER_SECOND

static bool window_is_over(const struct step *step, const struct gang *gang)
{
    return gang->why.len == 0 || step->now_ns - gang->why_since_ns >= WHY_WINDOW_NS;
}

bool gang_may_say_why(const struct step *step, const struct gang *gang)
{
    return gang->why_changes < WHY_BURST || window_is_over(step, gang);
}

int64_t gang_why_due_ns(const struct gang *gang)
{
    return gang->why_due ? gang->why_since_ns + WHY_WINDOW_NS : INT64_MAX;
}

void gang_restore_why_timer(struct job_store *store, struct gang *gang)
{
    CHECK(gang->why_due && !heap_has(&gang->why_timer));
    gang->why_timer.key = gang_why_due_ns(gang);
    gang->why_timer.tie = gang->uid;
    heap_insert(&store->whys, &gang->why_timer);
}

void gang_say_why_later(struct step *step, struct gang *gang)
{
    if (gang->why_due)
        return;
    gang->why_due = true;
    gang_restore_why_timer(step->jobs, gang);
}

void gang_why_is_said(struct step *step, struct gang *gang)
{
    CHECK(gang->why_due == heap_has(&gang->why_timer));
    if (gang->why_due)
        heap_remove(&step->jobs->whys, &gang->why_timer);
    gang->why_due = false;
}

void gang_waits_no_more(struct step *step, struct gang *gang)
{
    gang_why_is_said(step, gang);
    gang->why_changes = 0;
    gang->why_since_ns = 0;
}

static void count_change(const struct step *step, struct gang *gang)
{
    if (window_is_over(step, gang)) {
        gang->why_since_ns = step->now_ns;
        gang->why_changes = 0;
    }
    gang->why_changes++;
}

bool gang_set_why(struct step *step, struct gang *gang, struct buf *why)
{
    CHECK(why->len > 0); /* a waiting gang has a reason */
    bool first = gang->why.len == 0;
    gang_why_is_said(step, gang);
    if (str_equal(gang->why, buf_str(why))) {
        buf_done(why);
        return false;
    }
    count_change(step, gang);
    buf_done(&gang->why_text);
    gang->why_text = *why;
    gang->why = buf_str(&gang->why_text);
    *why = (struct buf){0};
    step_changed(step, CHANGE_MODIFIED, ref_jobset(gang->jobset));
    if (first && gang->jobset->recovery.absence.replicas.len > 0)
        jobset_mark(step, gang->jobset); /* shrink_look: absent replicas may return when all others wait */
    return true;
}

void jobs_let_gangs_say_why(struct job_store *store)
{
    for (size_t i = 0; i < store->jobsets.len; i++) {
        struct jobset *jobset = store->jobsets.items[i];
        for (size_t g = 0; g < jobset->gangs.len; g++)
            if (jobset->gangs.items[g]->state == GANG_QUEUED)
                jobset->gangs.items[g]->why_changes = 0;
    }
}
