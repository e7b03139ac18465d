/* reclaim.c - quota that a running workload gives back (Kueue's reclaimablePods): that of a JobSet's
 * succeeded Jobs, of a batch Job with fewer completions left than tasks, and of Pods that other controllers
 * report.
 */
#include "core/admit/internal.h"

/* Returns the number of indexes of an Indexed Job that will not run again; for other Jobs, the number of
 * succeeded Pods. */
static int32_t ended_count(const struct job *job)
{
    int32_t ended = 0;
    if (!job->rjob->job.indexed)
        return job->succeeded;
    for (uint32_t i = 0; job->indexes && i < job->index_count; i++)
        ended += job->indexes[i].succeeded || job->indexes[i].failed;
    return ended;
}

static int32_t done_of_job(const struct job *job)
{
    const struct job_spec *spec = &job->rjob->job;
    int32_t completions = spec->completions >= 0 ? spec->completions : spec->parallelism;
    int32_t ended = ended_count(job), left = completions > ended ? completions - ended : 0;
    return spec->parallelism > 1 && ended > 0 && left < spec->parallelism ? spec->parallelism - left : 0;
}

static int32_t done_of(const struct jobset *jobset, size_t rjob)
{
    const struct rjob_spec *spec = &jobset->spec.rjobs[rjob];
    if (jobset->form == FORM_JOB && jobset->jobs[0])
        return done_of_job(jobset->jobs[0]);
    return spec->replicas ? jobset->rjob_status[rjob].succeeded * (rjob_task_count(spec) / spec->replicas)
                          : 0;
}

/* Gives back the quota of the ended tasks of each PodSet ([rjob_count]). Quota once given back is not taken
 * again. */
static void take_done(struct step *step, struct workload *workload, const int32_t *done)
{
    CHECK(workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_HOLDING);
    size_t count = workload->jobset->spec.rjob_count;
    bool changed = false;
    for (size_t r = 0; r < count; r++)
        changed |=
            done[r] > workload->podsets[r].done && workload->podsets[r].done < workload->podsets[r].admitted;
    if (!changed)
        return;
    workload_release(step, workload);
    for (size_t r = 0; r < count; r++) {
        struct podset *podset = &workload->podsets[r];
        int32_t most = done[r] < podset->admitted ? done[r] : podset->admitted;
        podset->done = most > podset->done ? most : podset->done;
        CHECK(podset->done >= 0 && podset->done <= podset->admitted);
    }
    workload_book(step->admit, workload);
    workload_changed(step, CHANGE_MODIFIED, workload);
}

void workload_reclaim(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_ADMITTED);
    struct arena arena ARENA_CLEANUP = {0};
    size_t count = workload->jobset->spec.rjob_count;
    int32_t *done = ARENA_ARRAY(&arena, int32_t, count);
    for (size_t r = 0; r < count; r++)
        done[r] = done_of(workload->jobset, r);
    take_done(step, workload, done);
}

/* --- reports of other controllers ----------------------------------------------------------------------- */

static const struct doc *said(const struct doc *document)
{
    return doc_path(document, "status", "reclaimablePods", NULL);
}

bool reclaim_is_said(const struct workload *workload, const struct doc *document)
{
    return !workload->group && doc_len(said(document)) > 0;
}

static struct podset *named(const struct workload *workload, struct str name)
{
    for (size_t r = 0; r < workload->jobset->spec.rjob_count; r++)
        if (str_equal(workload->podsets[r].name, name))
            return &workload->podsets[r];
    return NULL;
}

void reclaim_validate(const struct workload *workload, const struct doc *document,
                      struct field_errors *errors)
{
    for (size_t i = 0; !workload->group && i < doc_len(said(document)); i++) {
        const struct doc *item = doc_at(said(document), i), *count = doc_get(item, "count");
        struct str name = doc_str(doc_get(item, "name"), STR(""));
        struct str path =
            arena_printf(errors->arena, "status.reclaimablePods[" STR_FORMAT "]", STR_ARG(name));
        const struct podset *podset = named(workload, name);
        int64_t number = doc_int(count, 0);
        if (!podset)
            field_error_add(errors, path, "FieldValueNotSupported", item,
                            "Unsupported value: \"" STR_FORMAT "\": is not a podSet of the Workload",
                            STR_ARG(name));
        else if (!count || count->kind != DOC_INT || number < 0 || number > podset->count)
            field_error_add(errors, path, "FieldValueInvalid", count,
                            "Invalid value: count should be a number from 0 to %d", podset->count);
        else if (podset->admitted && number < podset->done)
            field_error_add(errors, path, "FieldValueInvalid", count,
                            "Invalid value: %lld: count cannot be less than %d", (long long)number,
                            podset->done);
    }
}

void reclaim_say(struct step *step, struct workload *workload, const struct doc *document)
{
    struct arena arena ARENA_CLEANUP = {0};
    int32_t *done = ARENA_ARRAY(&arena, int32_t, workload->jobset->spec.rjob_count);
    bool has_quota = workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_HOLDING;
    for (size_t i = 0; has_quota && !workload->group && i < doc_len(said(document)); i++) {
        const struct doc *item = doc_at(said(document), i);
        struct podset *podset = named(workload, doc_str(doc_get(item, "name"), STR("")));
        if (podset)
            done[podset - workload->podsets] = (int32_t)doc_int(doc_get(item, "count"), 0);
    }
    if (has_quota)
        take_done(step, workload, done);
}
