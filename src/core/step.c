#include "core/step.h"

#include <stdio.h>

#include "core/health/fault.h"
#include "core/job/job.h"
#include "core/slice/slice.h"

/* Returns the object as which the API shows this one, with .any NULL if it shows none. The API shows no
 * JobSet for a Job, Pod or Workload without one, and no Job for such a Pod. */
static struct object_ref shown_as(struct object_ref object)
{
    static const struct object_ref none;
    if (object.kind == OBJECT_JOB)
        return object.job->jobset->form != FORM_POD && !job_is_hidden(object.job) ? object : none;
    if (object.kind != OBJECT_JOBSET)
        return object;
    const struct jobset *jobset = object.jobset;
    if (jobset->form == FORM_JOBSET || jobset->hidden)
        return jobset_is_seen(jobset) ? object : none;
    if (jobset->form == FORM_WORKLOAD)
        return jobset->workload ? (struct object_ref){OBJECT_WORKLOAD, {.workload = jobset->workload}} : none;
    const struct job *job = jobset->jobs[0];
    if (jobset->form == FORM_JOB)
        return job ? ref_job(job) : none;
    const struct task *task = job ? job->indexes[0].task : NULL;
    return task ? ref_task(task) : none;
}

/* Returns whether users see an older Job of the same name in this Job's place. */
static bool is_behind(const struct job *job)
{
    return jobset_seen_job(job->jobset, job->global_index) != job;
}

/* Stores the log position of the object's last change. Workloads are stamped by admit (workload_changed). */
static void stamp(const struct step *step, struct object_ref object)
{
    switch (object.kind) {
    case OBJECT_JOBSET:
        ((struct jobset *)object.jobset)->changed_seq = step->seq;
        break;
    case OBJECT_JOB:
        ((struct job *)object.job)->changed_seq = step->seq;
        break;
    case OBJECT_POD:
        ((struct task *)object.task)->changed_seq = step->seq;
        break;
    case OBJECT_NODE:
        ((struct machine *)object.machine)->changed_seq = step->seq;
        break;
    case OBJECT_FAULT:
        ((struct fault *)object.fault)->changed_seq = step->seq;
        break;
    case OBJECT_CUBE:
    case OBJECT_SWITCH:
    case OBJECT_SLICE:
    case OBJECT_FABRIC_SESSION:
        ((struct shown *)shown_of(object))->changed_seq = step->seq;
        break;
    default:
        CHECK(object_kind_info(object.kind)); /* notes emit their own effects */
        ((struct object *)object.object)->changed_seq = step->seq;
    }
}

void step_tell(struct step *step, enum change_type type, struct object_ref object)
{
    CHECK(object.any && type >= CHANGE_ADDED && type <= CHANGE_DELETED);
    struct effect *effect = effect_add(step->effects, EFFECT_CHANGED);
    effect->changed.type = type;
    effect->changed.object = object;
}

void step_changed(struct step *step, enum change_type type, struct object_ref object)
{
    CHECK(object.any && type >= CHANGE_ADDED && type <= CHANGE_DELETED);
    stamp(step, object);
    struct object_ref shown = shown_as(object);
    if (!shown.any)
        return;
    if (shown.kind != object.kind && type != CHANGE_MODIFIED)
        return; /* the shown object has its own ADDED and DELETED */
    if (shown.kind != object.kind && shown.kind != OBJECT_WORKLOAD)
        stamp(step, shown);
    if (shown.kind == OBJECT_JOB && is_behind(shown.job))
        return;
    step_tell(step, type, shown);
}

static void add_note(struct step *step, bool warning, const char *reason, struct object_ref about,
                     struct str text, obj_id uid)
{
    CHECK(reason && reason[0] && about.any);
    struct note_input input = {warning, reason, text, about};
    note_add(step->notes, &input, uid, step->seq, step->now_ns, step->effects);
}

void step_note(struct step *step, bool warning, const char *reason, struct object_ref about,
               const char *format, ...)
{
    about = shown_as(about);
    if (!about.any || step->note_count++ >= NOTES_PER_STEP_MAX)
        return;
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    buf_reserve(&text, 240); /* most fit, and are formatted once */
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    add_note(step, warning, reason, about, buf_str(&text), step_uid(step));
}
