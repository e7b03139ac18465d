#include "core/step.h"

#include <stdio.h>

#include "core/admit/admit.h"
#include "core/health/fault.h"

/* The API shows no JobSet for a Job, Pod or Workload of its own, and no Job for such a Pod: their changes
 * are changes of the shown object. */
static bool is_shown(const struct step *step, const enum change_type *type, struct object_ref *object)
{
    if (object->kind == OBJECT_WORKLOAD)
        object->workload = workload_representative(object->workload);
    if (object->kind == OBJECT_JOB)
        return object->job->jobset->form != FORM_POD && !job_is_hidden(object->job);
    if (object->kind != OBJECT_JOBSET)
        return true;
    const struct jobset *jobset = object->jobset;
    if (jobset->form == FORM_JOBSET || jobset->hidden)
        return jobset_is_seen(jobset);
    if (jobset->form == FORM_WORKLOAD) {
        struct workload *workload = (struct workload *)workload_of(step->admit, jobset->uid);
        if (*type != CHANGE_MODIFIED || !workload)
            return false;
        workload->changed_seq = step->seq;
        *object = (struct object_ref){OBJECT_WORKLOAD, {.workload = workload}};
        return true;
    }
    struct job *job = jobset->jobs[0];
    struct task *task = job && job->indexes[0].task ? job->indexes[0].task : NULL;
    if (*type != CHANGE_MODIFIED || !job || (jobset->form == FORM_POD && !task))
        return false;
    if (jobset->form == FORM_JOB) {
        job->changed_seq = jobset->changed_seq;
        *object = ref_job(job);
    } else {
        task->changed_seq = jobset->changed_seq;
        *object = ref_task(task);
    }
    return true;
}

/* An older Job of its name is seen instead. */
static bool is_behind(const struct job *job)
{
    return jobset_seen_job(job->jobset, job->global_index) != job;
}

void step_changed(struct step *step, enum change_type type, struct object_ref object)
{
    CHECK(object.any && type >= CHANGE_ADDED && type <= CHANGE_DELETED);
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
    default:
        if (object.kind == OBJECT_WORKLOAD) {
            ((struct workload *)object.workload)->changed_seq = step->seq;
            break;
        }
        if (object.kind == OBJECT_FAULT) {
            ((struct fault *)object.fault)->changed_seq = step->seq;
            break;
        }
        CHECK(object_kind_info(object.kind)); /* notes emit their own effects */
        ((struct object *)object.object)->changed_seq = step->seq;
    }
    if (object.kind == OBJECT_WORKLOAD && type == CHANGE_MODIFIED &&
        workload_was_told(object.workload, step->seq))
        return;
    if (!is_shown(step, &type, &object))
        return;
    if (object.kind == OBJECT_JOB && is_behind(object.job))
        return;
    struct effect *effect = effect_add(step->effects, EFFECT_CHANGED);
    effect->changed.type = type;
    effect->changed.object = object;
}

/* The uids of late notes begin in the middle of the step's range, because objects take them from both
 * ends. */
enum { LATE_NOTES_FIRST = 1 << 19 };
_Static_assert(LATE_NOTES_FIRST > 4 * TASKS_PER_JOBSET_MAX, "behind all objects of a step");

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
    enum change_type type = CHANGE_MODIFIED;
    if (!is_shown(step, &type, &about) || step->note_count++ >= NOTES_PER_STEP_MAX)
        return;
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    buf_reserve(&text, 240); /* most fit, and are formatted once */
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    add_note(step, warning, reason, about, buf_str(&text), step_uid(step));
}

void step_note_late(struct step *step, bool warning, const char *reason, struct object_ref about,
                    const char *format, ...)
{
    enum change_type type = CHANGE_MODIFIED;
    if (!is_shown(step, &type, &about) || step->late_note_count >= NOTES_PER_STEP_MAX)
        return;
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    CHECK(step->next_index < LATE_NOTES_FIRST);
    add_note(step, warning, reason, about, buf_str(&text),
             step_first_uid(step) + LATE_NOTES_FIRST + ++step->late_note_count);
}
