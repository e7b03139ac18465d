/* route.c - the entry of the write path: receipts, the file of each kind, and writes to Nodes. */
#include "core/write/write.h"
#include "core/react/react.h"

#include "doc/json.h"
#include "core/log/record.h"

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
    if (!row || writing->write->object == OBJECT_USER_EVENT) /* clients' Events are written as OBJECT_EVENT */
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

/* Replies to a write whose id has a receipt: with the first answer, or a refusal if it is a different
 * request. Returns false if there is no receipt. */
static bool reply_again(const struct writing *writing)
{
    const struct write_event *write = writing->write;
    const struct receipt *receipt =
        write->request.len ? receipts_find(writing->core->receipts, write->request) : NULL;
    if (!receipt)
        return false;
    if (receipt->content != write->content) {
        (void)write_refuse(writing, 422, "Invalid", NULL, "the Idempotency-Key is that of another request");
        return true;
    }
    struct effect *effect = effect_add(writing->step->effects, EFFECT_REPLY);
    effect->reply.code = (int)receipt->code;
    effect->reply.receipt = receipt;
    return true;
}

/* Leaves a receipt of an applied write, with the answer in the step's REPLY. */
static void leave_receipt(struct core *core, const struct step *step, const struct write_event *write)
{
    CHECK(write->request.len == REQUEST_ID_BYTES);
    for (size_t i = 0; i < step->effects->list.len; i++) {
        const struct effect *effect = &step->effects->list.items[i];
        if (effect->kind != EFFECT_REPLY)
            continue;
        struct object_name object = {0};
        if (effect->reply.object.any)
            object = object_name(effect->reply.object);
        receipts_add(core->receipts, &(struct receipt){.id = write->request,
                                                       .content = write->content,
                                                       .stamp_ns = step->now_ns,
                                                       .code = (uint32_t)effect->reply.code,
                                                       .object = object.uid,
                                                       .name = object.name});
        return;
    }
    CHECK_UNREACHABLE();
}

void core_write(struct core *core, struct step *step, const struct write_event *write)
{
    struct writing writing = {.core = core, .step = step, .write = write, .reply = &core->reply};
    bool noted = write->request.len > 0 && core->level >= LEVEL_RECEIPTS;
    if (!reply_again(&writing) && write_any(&writing) && noted)
        leave_receipt(core, step, write);
}

bool core_write_check(struct core *core, struct step *step, const struct write_event *write,
                      struct prepared_write **ret_prepared)
{
    struct writing writing = {core, step, write, &core->check_reply, true, ret_prepared};
    return !reply_again(&writing) && write_any(&writing);
}

void prepared_write_free(struct prepared_write *prepared)
{
    if (!prepared)
        return;
    arena_done(&prepared->arena);
    mem_free(prepared);
}
