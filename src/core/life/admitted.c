/* admitted.c - the effects of admission on a JobSet's document: suspension, finalizers, parallelism. */
#include "core/life/internal.h"
#include "core/object/object.h"

void jobset_set_suspend(struct step *step, struct jobset *jobset, bool suspend)
{
    if (jobset->spec.suspend == suspend)
        return;
    CHECK(jobset->form != FORM_POD || !suspend);
    jobset->spec.suspend = suspend;
    struct doc *spec = doc_get(jobset->document, "spec");
    if (jobset->form == FORM_POD) {
        doc_unset(spec, "schedulingGates");
        step->schedule = true;
    } else if (spec) {
        struct doc *field = doc_get(spec, "suspend");
        if (field && field->kind == DOC_BOOL)
            field->boolean = suspend;
        else
            doc_set(&jobset->arena, spec, STR("suspend"), doc_new_bool(&jobset->arena, suspend));
        jobset->generation++;
    }
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    jobset_mark(step, jobset);
}

void jobset_drop_finalizer(struct step *step, struct jobset *jobset, const char *name)
{
    finalizer_drop(jobset->document, name);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    jobset_mark(step, jobset);
}

void jobset_set_parallelism(struct step *step, struct jobset *jobset, int32_t parallelism,
                            bool completions_too)
{
    CHECK(jobset->form == FORM_JOB && parallelism >= 0);
    struct arena arena ARENA_CLEANUP = {0};
    struct field_errors errors = {.arena = &arena};
    struct doc *document = doc_clone(&arena, jobset->document);
    struct jobset_spec spec;
    doc_set(&arena, doc_get(document, "spec"), STR("parallelism"), doc_new_int(&arena, parallelism));
    if (completions_too)
        doc_set(&arena, doc_get(document, "spec"), STR("completions"), doc_new_int(&arena, parallelism));
    bool read = workload_read(&arena, document, &spec, &errors);
    CHECK(read); /* the remaining fields were valid before */
    field_errors_done(&errors);
    if (!spec_equal(jobset->document, document))
        jobset_set_document(step, jobset, &arena, document, &spec);
}
