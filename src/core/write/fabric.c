/* fabric.c - API writes to Cubes and Switches: `spec.unschedulable` requests a drain, or ends it. All other
 * fields show the core's state; a write does not change them. Slices and FabricSessions are read-only. */
#include "doc/json.h"
#include "core/write/write.h"

static bool read_document(const struct writing *writing, struct arena *arena, struct doc **ret_document)
{
    CHECK(writing->write->verb == WRITE_REPLACE);
    struct error error = {0};
    if (json_parse(arena, writing->write->body, ret_document, &error) < 0)
        return write_refuse(writing, 400, "BadRequest", NULL, "the object is not JSON: %s", error.text);
    const struct doc *wanted = doc_path(*ret_document, "spec", "unschedulable", NULL);
    if (!wanted || wanted->kind == DOC_BOOL || wanted->kind == DOC_NULL)
        return true;
    struct field_errors *errors = write_new_errors(writing);
    field_error_add(errors, STR("spec.unschedulable"), "FieldValueTypeInvalid", wanted,
                    "Invalid value: must be true or false");
    return write_refuse_invalid(writing, errors, writing->write->name);
}

/* Leaves an API Event about the drain, in the wording of those of Nodes. */
static void note_drain(struct step *step, struct object_ref object, bool drain)
{
    step_note(step, false, drain ? "DrainRequested" : "DrainEnded", object,
              drain ? "takes no new slices; running slices are routed around it, or move"
                    : "takes slices again once it is ready");
}

bool write_fabric(const struct writing *writing)
{
    struct step *step = writing->step;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    enum object_kind kind = writing->write->object;
    if (writing->write->verb != WRITE_REPLACE || (kind != OBJECT_CUBE && kind != OBJECT_SWITCH))
        return write_refuse_verb(writing);
    struct switch_now *now = kind == OBJECT_SWITCH ? switch_find(step->slices, writing->write->name) : NULL;
    struct cube_now *cube = kind == OBJECT_CUBE ? cube_find(step->slices, writing->write->name) : NULL;
    if (!now && !cube)
        return write_refuse_missing(writing);
    CHECK(!now != !cube && (now ? now->pod : cube->pod)->switches);
    struct object_ref ref = ref_fabric(kind, now ? (const void *)now : cube);
    if (!write_still_holds(writing, ref) || !read_document(writing, &arena, &document))
        return false;
    if (writing->dry)
        return true;
    bool drain = doc_bool(doc_path(document, "spec", "unschedulable", NULL), false);
    if (drain != (now ? now->drain : cube->drain))
        note_drain(step, ref, drain);
    if (now)
        switch_set_drain(step, now, drain);
    else
        cube_set_drain(step, cube, drain);
    return write_accept(writing, 200, ref);
}
