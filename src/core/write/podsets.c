/* podsets.c - API writes to Workloads of kueue.x-k8s.io.
 *
 * In a Workload that was made for a job, users may write whether it is active, the answers of
 * AdmissionChecks, and the Pods that no longer need quota. Its other fields follow from the job, and a
 * deleted one is made again. A Workload that a user made (admit/prebuilt.c) can be changed within the rules
 * of Kueue's webhook.
 */
#include "doc/json.h"
#include "core/admit/admit.h"
#include "core/words/limits.h"
#include "core/object/life.h"
#include "core/write/write.h"
#include "core/react/react.h"

static struct object_ref ref_to(const struct workload *workload)
{
    CHECK(workload && workload->jobset);
    return (struct object_ref){OBJECT_WORKLOAD, {.workload = workload}};
}

static struct workload *find(const struct writing *writing)
{
    return (struct workload *)workload_find(writing->core->admit, writing->write->namespace_,
                                            writing->write->name);
}

/* --- status --------------------------------------------------------------------------------------------- */

static bool write_answers(const struct writing *writing, struct workload *workload,
                          const struct doc *document)
{
    CHECK(writing->write->verb == WRITE_STATUS);
    struct field_errors *errors = write_new_errors(writing);
    if (!workload->checks.len && !reclaim_is_said(workload, document))
        return write_refuse(writing, 403, "Forbidden", NULL,
                            "the status of workloads \"" STR_FORMAT "\" is the control plane's own",
                            STR_ARG(workload->name));
    checks_validate(workload, document, errors);
    reclaim_validate(workload, document, errors);
    if (errors->list.len)
        return write_refuse_invalid(writing, errors, workload->name);
    if (writing->dry)
        return true;
    reclaim_say(writing->step, workload, document);
    workload_answer(writing->step, workload, document);
    return write_accept(writing, 200, ref_to(workload));
}

/* --- Workloads that users make -------------------------------------------------------------------------- */

/* Reads a Workload into its stored form, and moves spec.active out of the document. Returns false if the
 * write is refused. */
static bool prepare(const struct writing *writing, struct arena *arena, struct doc **ret_document,
                    struct jobset_spec *ret_spec, bool *ret_active)
{
    struct doc *document;
    if (!write_parse(writing, arena, OBJECT_BYTES_MAX, &document))
        return false;
    if (workload_form(document) != FORM_WORKLOAD)
        return write_refuse(writing, 400, "BadRequest", NULL, "expected kind Workload, got " STR_FORMAT,
                            STR_ARG(doc_str(doc_get(document, "kind"), STR("none"))));
    object_convert(arena, OBJECT_WORKLOAD, document);
    write_set_name(writing, arena, document, true);
    workload_default(arena, document);
    struct field_errors *errors = write_new_errors(writing);
    if (workload_read(arena, document, ret_spec, errors))
        workload_validate(document, ret_spec, errors);
    if (errors->list.len)
        return write_refuse_invalid(writing, errors,
                                    doc_str(doc_path(document, "metadata", "name", NULL), STR("")));
    field_errors_done(errors);
    struct doc *spec = doc_get(document, "spec");
    *ret_active = doc_bool(doc_get(spec, "active"), true);
    doc_unset(spec, "active");
    *ret_document = document;
    return true;
}

static bool create(const struct writing *writing)
{
    CHECK(writing->write->verb == WRITE_CREATE);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    struct jobset_spec spec;
    bool active;
    if (!prepare(writing, &arena, &document, &spec, &active))
        return false;
    struct str ns = doc_str(doc_path(document, "metadata", "namespace", NULL), STR(""));
    struct str name = doc_str(doc_path(document, "metadata", "name", NULL), STR(""));
    if (workload_find(writing->core->admit, ns, name))
        return write_refuse_taken(writing, object_kind_title(OBJECT_WORKLOAD), name);
    if (!write_namespace_open(writing, ns) || !write_quota_allows(writing, ns, NULL, NULL) ||
        !write_budget_allows(writing, ns, 0, document))
        return false;
    if (writing->core->jobs.jobsets.len >= JOBSETS_MAX)
        return write_refuse(writing, 403, "Forbidden", NULL, "there are %d JobSets already (JOBSETS_MAX)",
                            JOBSETS_MAX);
    if (writing->dry)
        return true;
    namespace_need(writing->step, ns);
    struct workload *workload = workload_create(writing->step, &arena, document, &spec, active);
    objects_doubt(writing->core->objects, workload->own->uid, workload->own->document);
    return write_accept(writing, 201, ref_to(workload));
}

static bool check_update(const struct writing *writing, const struct workload *workload,
                         const struct doc *document)
{
    CHECK(workload->own && workload->state < WORKLOAD_STATES);
    struct field_errors *errors = write_new_errors(writing);
    const struct workload_condition *quota = &workload->conditions[WORKLOAD_QUOTA_RESERVED];
    const struct workload_condition *admitted = &workload->conditions[WORKLOAD_IS_ADMITTED];
    bool leaves = workload->state == WORKLOAD_LEAVING;
    podsets_validate_update(workload->own->document, document, leaves || (quota->present && quota->status),
                            admitted->present && admitted->status, errors);
    if (errors->list.len)
        return write_refuse_invalid(writing, errors, workload->name);
    field_errors_done(errors);
    return write_finalizers_hold(writing, workload->own->deleted_ns, workload->own->document, document) &&
           write_budget_allows(writing, workload->own->namespace_,
                               objects_charge(writing->core->objects, workload->own->uid), document);
}

/* Removes a priority that equals the one shown by the API: a client that returns it has not set it. */
static void drop_shown_priority(const struct workload *workload, struct doc *document)
{
    CHECK(workload->own);
    struct doc *spec = doc_get(document, "spec");
    const struct doc *is = doc_get(spec, "priority");
    if (!doc_path(workload->own->document, "spec", "priority", NULL) && is &&
        doc_int(is, 0) == workload->priority)
        doc_unset(spec, "priority");
}

static bool replace_own(const struct writing *writing, struct workload *workload)
{
    CHECK(workload->own && writing->write->verb == WRITE_REPLACE);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document, *activity = doc_new(&arena, DOC_OBJECT);
    struct jobset_spec spec;
    bool active;
    if (!prepare(writing, &arena, &document, &spec, &active))
        return false;
    struct str name = doc_str(doc_path(document, "metadata", "name", NULL), STR(""));
    if (!str_equal(name, workload->name))
        return write_refuse(writing, 400, "BadRequest", NULL,
                            "the name of the object (" STR_FORMAT
                            ") does not match the name on the URL (" STR_FORMAT ")",
                            STR_ARG(name), STR_ARG(workload->name));
    drop_shown_priority(workload, document);
    if (!check_update(writing, workload, document))
        return false;
    if (writing->dry)
        return true;
    doc_set(&arena, doc_need_object(&arena, activity, "spec"), STR("active"), doc_new_bool(&arena, active));
    workload_rewrite(writing->step, workload, &arena, document, &spec);
    workload_replace(writing->step, workload, activity);
    return write_accept(writing, 200, ref_to(workload));
}

/* --- all ------------------------------------------------------------------------------------------------ */

static bool replace(const struct writing *writing, struct workload *workload)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    struct doc *document;
    if (workload->own)
        return replace_own(writing, workload);
    if (json_parse(&arena, writing->write->body, &document, &error) < 0)
        return write_refuse(writing, 400, "BadRequest", NULL, "the object is not JSON: %s", error.text);
    if (writing->dry)
        return true;
    workload_replace(writing->step, workload, document);
    return write_accept(writing, 200, ref_to(workload));
}

static bool set_status(const struct writing *writing, struct workload *workload)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    struct doc *document;
    if (json_parse(&arena, writing->write->body, &document, &error) < 0)
        return write_refuse(writing, 400, "BadRequest", NULL, "the object is not JSON: %s", error.text);
    return write_answers(writing, workload, document);
}

static bool delete (const struct writing *writing, struct workload *workload)
{
    if (writing->dry)
        return true;
    if (workload->own)
        core_delete_jobset(writing->step, workload->own, writing->write->propagation);
    else
        workload_delete(writing->step, workload);
    return write_accept(writing, 200, ref_to(workload));
}

bool write_podsets(const struct writing *writing)
{
    enum write_verb verb = writing->write->verb;
    if (verb == WRITE_CREATE)
        return create(writing);
    if (verb != WRITE_REPLACE && verb != WRITE_DELETE && verb != WRITE_STATUS)
        return write_refuse_verb(writing);
    struct workload *workload = find(writing);
    if (!workload)
        return write_refuse_missing(writing);
    if (!write_still_holds(writing, ref_to(workload)))
        return false;
    if (verb == WRITE_REPLACE)
        return replace(writing, workload);
    return verb == WRITE_STATUS ? set_status(writing, workload) : delete (writing, workload);
}
