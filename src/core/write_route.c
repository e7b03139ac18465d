/* write_route.c - which file of the write path takes a write, by its kind; and the writes of Nodes. */
#include "core/write.h"

#include "doc/json.h"

static bool write_node(const struct writing *writing)
{
    struct machine *machine = cluster_find(&writing->core->cluster, writing->write->name);
    if (writing->write->verb == WRITE_INJECT)
        return write_injection(writing);
    if (writing->write->verb != WRITE_REPLACE)
        return write_refuse_verb(writing);
    if (!machine)
        return write_refuse_missing(writing);
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    struct doc *document;
    if (!write_still_holds(writing, ref_machine(machine)))
        return false;
    if (json_parse(&arena, writing->write->body, &document, &error) < 0)
        return write_refuse(writing, 400, "BadRequest", NULL, "the object is not JSON: %s", error.text);
    struct field_errors *errors = write_new_errors(writing);
    node_check(document, errors);
    if (errors->list.len)
        return write_refuse_invalid(writing, errors, machine->name);
    field_errors_done(errors);
    if (writing->dry)
        return true;
    node_replace(writing->core, writing->step, machine, document);
    return write_accept(writing, 200, ref_machine(machine));
}

static bool write_any(const struct writing *writing)
{
    const struct resource *row = resource_row(writing->write->object);
    if (!row || writing->write->object == OBJECT_USER_EVENT) /* such Events are written as OBJECT_EVENT */
        return write_refuse_verb(writing);
    switch ((enum kind_rules)row->rules) {
    case RULES_WORKLOAD:
        return write_workload(writing);
    case RULES_NODE:
        return write_node(writing);
    case RULES_PODSETS:
        return write_podsets(writing);
    case RULES_FAULT:
        return write_fault(writing);
    case RULES_FABRIC:
        return write_fabric(writing);
    case RULES_STORED:
        return write_object(writing);
    case RULES_NONE:
        break;
    }
    return write_refuse_verb(writing);
}

void core_write(struct core *core, struct step *step, const struct write_event *write)
{
    struct writing writing = {.core = core, .step = step, .write = write, .reply = &core->reply};
    (void)write_any(&writing);
}

bool core_write_check(struct core *core, struct step *step, const struct write_event *write,
                      struct prepared_write **ret_prepared)
{
    struct writing writing = {core, step, write, &core->check_reply, true, ret_prepared};
    return write_any(&writing);
}

void prepared_write_free(struct prepared_write *prepared)
{
    if (!prepared)
        return;
    arena_done(&prepared->arena);
    mem_free(prepared);
}
