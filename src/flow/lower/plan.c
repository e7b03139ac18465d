/* Plans: binary form, printing, freeing.
 *
 * Binary form: "PHXL" u32 version, then slots, gangs, args, results, steps as below, each list preceded by
 * its count. A step has the fields that its op needs; boxes have as many dimensions as the slot's type. */
#include "flow/ir/pack.h"
#include "flow/lower/lower.h"

enum { PLAN_VERSION = 1 };

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    vec_done(&plan->slots);
    vec_done(&plan->steps);
    vec_done(&plan->args);
    vec_done(&plan->results);
    vec_done(&plan->gangs);
    arena_done(&plan->arena);
    mem_free(plan);
}

static void plan_put_box(struct buf *out, const struct flow_box *box, int32_t rank)
{
    for (int32_t d = 0; d < rank; d++) {
        pack_u64(out, (uint64_t)box->start[d]);
        pack_u64(out, (uint64_t)box->size[d]);
    }
}

static void plan_put_list(struct buf *out, const uint32_t *items, uint32_t count)
{
    pack_u32(out, count);
    for (uint32_t i = 0; i < count; i++)
        pack_u32(out, items[i]);
}

static int32_t plan_step_rank(const struct plan *plan, const struct plan_step *step)
{
    if (step->op == PLAN_RUN)
        return 0;
    return plan->slots.items[step->in_count ? step->in[0] : step->out[0]].type.rank;
}

static void plan_put_step(const struct plan *plan, const struct plan_step *step, struct buf *out)
{
    pack_u32(out, step->op);
    pack_u32(out, step->node);
    plan_put_list(out, step->in, step->in_count);
    plan_put_list(out, step->out, step->out_count);
    if (step->op == PLAN_RUN) {
        pack_u32(out, step->device);
        pack_u32(out, step->gang);
        pack_u32(out, step->partition);
        pack_u64(out, step->function);
        return;
    }
    int32_t rank = plan_step_rank(plan, step);
    plan_put_box(out, &step->box, rank);
    if (step->op != PLAN_RECV)
        plan_put_box(out, &step->from, rank);
    if (step->op != PLAN_SEND)
        plan_put_box(out, &step->to, rank);
    if (step->op == PLAN_COPY) {
        pack_u32(out, step->whole);
    } else {
        pack_u32(out, step->peer);
        pack_u32(out, step->tag);
    }
}

static void plan_put_ports(struct buf *out, const struct plan_port *ports, size_t count)
{
    pack_u32(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        pack_u32(out, ports[i].slot);
        pack_u32(out, ports[i].index);
        pack_u32(out, ports[i].shard);
    }
}

void plan_encode(const struct plan *plan, struct buf *out)
{
    buf_add_str(out, STR("PHXL"));
    pack_u32(out, PLAN_VERSION);
    pack_u32(out, plan->devices);
    for (uint32_t d = 0; d < plan->devices; d++) {
        pack_u64(out, (uint64_t)plan->peak_bytes[d]);
        pack_u64(out, (uint64_t)plan->result_bytes[d]);
    }
    pack_u32(out, (uint32_t)plan->slots.len);
    for (size_t i = 0; i < plan->slots.len; i++) {
        const struct plan_slot *slot = &plan->slots.items[i];
        pack_u32(out, slot->device);
        pack_u32(out, slot->uses);
        pack_type(out, &slot->type);
    }
    pack_u32(out, (uint32_t)plan->gangs.len);
    for (size_t i = 0; i < plan->gangs.len; i++)
        plan_put_list(out, plan->gangs.items[i].hosts, plan->gangs.items[i].count);
    plan_put_ports(out, plan->args.items, plan->args.len);
    plan_put_ports(out, plan->results.items, plan->results.len);
    pack_u32(out, (uint32_t)plan->steps.len);
    for (size_t i = 0; i < plan->steps.len; i++)
        plan_put_step(plan, &plan->steps.items[i], out);
}

static uint32_t *plan_get_list(struct unpack *in, struct plan *plan, uint32_t bound, uint32_t *ret_count)
{
    uint32_t count = unpack_count(in, PLAN_SLOTS_MAX, 4);
    uint32_t *items = ARENA_ARRAY(&plan->arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        items[i] = unpack_u32(in, UINT32_MAX);
        in->bad = in->bad || items[i] >= bound;
    }
    *ret_count = in->bad ? 0 : count;
    return items;
}

static struct flow_box plan_get_box(struct unpack *in, int32_t rank)
{
    struct flow_box box = {0};
    for (int32_t d = 0; d < rank; d++) {
        box.start[d] = (int64_t)unpack_u64(in, (uint64_t)IR_ELEMENTS_MAX);
        box.size[d] = (int64_t)unpack_u64(in, (uint64_t)IR_ELEMENTS_MAX);
    }
    return box;
}

/* Whether the outer box has the slot's size and contains the inner box. */
static bool plan_box_fits(const struct flow_box *outer, const struct flow_box *inner,
                          const struct ir_type *slot)
{
    for (int32_t d = 0; d < slot->rank; d++)
        if (outer->size[d] != slot->dims[d] || inner->start[d] < outer->start[d] ||
            inner->start[d] + inner->size[d] > outer->start[d] + outer->size[d])
            return false;
    return true;
}

static void plan_get_move(struct unpack *in, struct plan *plan, struct plan_step *step)
{
    uint32_t ins = step->op == PLAN_RECV ? 0 : 1;
    if (in->bad || step->in_count != ins || (step->op == PLAN_SEND) != (step->out_count == 0)) {
        in->bad = true;
        return;
    }
    const struct ir_type *first = &plan->slots.items[ins ? step->in[0] : step->out[0]].type;
    step->box = plan_get_box(in, first->rank);
    if (ins) {
        step->from = plan_get_box(in, first->rank);
        in->bad = in->bad || !plan_box_fits(&step->from, &step->box, first);
    }
    if (step->op != PLAN_SEND)
        step->to = plan_get_box(in, first->rank);
    for (uint32_t i = 0; i < step->out_count && !in->bad; i++) {
        const struct ir_type *to = &plan->slots.items[step->out[i]].type;
        in->bad = to->element != first->element || to->rank != first->rank ||
                  !plan_box_fits(&step->to, &step->box, to);
    }
    if (step->op == PLAN_COPY) {
        step->whole = unpack_u32(in, 1);
        for (uint32_t i = 0; i < step->out_count && step->whole && !in->bad; i++)
            in->bad = !ir_type_equal(first, &plan->slots.items[step->out[i]].type);
    } else {
        step->peer = unpack_u32(in, PLAN_HOSTS_MAX);
        step->tag = unpack_u32(in, UINT32_MAX);
    }
}

static void plan_get_step(struct unpack *in, struct plan *plan)
{
    struct plan_step step = {.op = unpack_u32(in, PLAN_OPS - 1)};
    uint32_t slots = (uint32_t)plan->slots.len;
    step.node = unpack_u32(in, PROGRAM_NODES_MAX);
    step.in = plan_get_list(in, plan, slots, &step.in_count);
    step.out = plan_get_list(in, plan, slots, &step.out_count);
    if (step.op == PLAN_RUN) {
        step.device = unpack_u32(in, PLAN_DEVICES_MAX - 1);
        step.gang = unpack_u32(in, UINT32_MAX);
        step.partition = unpack_u32(in, UINT32_MAX);
        step.function = unpack_u64(in, UINT64_MAX);
        in->bad = in->bad || step.device >= plan->devices || step.gang >= plan->gangs.len ||
                  step.partition >= plan->gangs.items[step.gang].count;
    } else {
        plan_get_move(in, plan, &step);
    }
    for (uint32_t i = 0; i < step.out_count && !in->bad; i++)
        plan->slots.items[step.out[i]].writers++;
    if (!in->bad)
        vec_push(&plan->steps, step);
}

static void plan_get_ports(struct unpack *in, struct plan *plan, bool results)
{
    uint32_t count = unpack_count(in, PLAN_SLOTS_MAX, 12);
    for (uint32_t i = 0; i < count && !in->bad; i++) {
        struct plan_port port = {unpack_u32(in, UINT32_MAX), 0, 0};
        port.index = unpack_u32(in, PROGRAM_NODES_MAX);
        port.shard = unpack_u32(in, PROGRAM_DEVICES_MAX);
        in->bad = in->bad || port.slot >= plan->slots.len;
        if (in->bad)
            return;
        if (results)
            vec_push(&plan->results, port);
        else
            vec_push(&plan->args, port);
    }
}

static void plan_get_slots(struct unpack *in, struct plan *plan)
{
    plan->devices = unpack_u32(in, PLAN_DEVICES_MAX);
    for (uint32_t d = 0; d < plan->devices; d++) {
        plan->peak_bytes[d] = (int64_t)unpack_u64(in, INT64_MAX);
        plan->result_bytes[d] = (int64_t)unpack_u64(in, INT64_MAX);
    }
    uint32_t count = unpack_count(in, PLAN_SLOTS_MAX, 16);
    for (uint32_t i = 0; i < count && !in->bad; i++) {
        struct plan_slot slot = {.device = unpack_u32(in, PLAN_DEVICES_MAX)};
        slot.uses = unpack_u32(in, UINT32_MAX);
        slot.type = unpack_type(in);
        in->bad = in->bad || slot.device >= plan->devices;
        vec_push(&plan->slots, slot);
    }
    count = unpack_count(in, PROGRAM_NODES_MAX, 4);
    for (uint32_t i = 0; i < count && !in->bad; i++) {
        struct plan_gang gang;
        gang.hosts = plan_get_list(in, plan, PLAN_HOSTS_MAX, &gang.count);
        vec_push(&plan->gangs, gang);
    }
}

/* Whether the numbers of readers in the slots agree with the steps and results. */
static bool plan_uses_agree(const struct plan *plan)
{
    uint32_t *uses = mem_alloc((plan->slots.len + 1) * sizeof *uses);
    for (size_t i = 0; i < plan->steps.len; i++)
        for (uint32_t k = 0; k < plan->steps.items[i].in_count; k++)
            uses[plan->steps.items[i].in[k]]++;
    for (size_t i = 0; i < plan->results.len; i++)
        uses[plan->results.items[i].slot]++;
    bool agree = true;
    for (size_t i = 0; i < plan->slots.len; i++)
        agree = agree && uses[i] == plan->slots.items[i].uses;
    mem_free(uses);
    return agree;
}

int plan_decode(struct str bytes, struct plan **ret_plan, struct error *error)
{
    struct unpack in = {bytes.data, bytes.len, false};
    const char *magic = unpack_bytes(&in, 4);
    uint32_t version = unpack_u32(&in, UINT32_MAX);
    if (!magic || memcmp(magic, "PHXL", 4) != 0 || version != PLAN_VERSION)
        return error_set(error, ERROR_CORRUPT, "these %zu bytes are no plan of version %d", bytes.len,
                         PLAN_VERSION);
    struct plan *plan = mem_alloc(sizeof *plan);
    plan_get_slots(&in, plan);
    plan_get_ports(&in, plan, false);
    plan_get_ports(&in, plan, true);
    uint32_t steps = unpack_count(&in, PLAN_STEPS_MAX, 16);
    for (uint32_t i = 0; i < steps && !in.bad; i++)
        plan_get_step(&in, plan);
    if (in.bad || in.left || !plan_uses_agree(plan)) {
        plan_free(plan);
        return error_set(error, ERROR_CORRUPT, "the plan's bytes are damaged");
    }
    *ret_plan = plan;
    return 0;
}

void plan_print(const struct plan *plan, struct buf *out)
{
    static const char *const names[] = {"run", "copy", "send", "recv"};
    for (size_t i = 0; i < plan->steps.len; i++) {
        const struct plan_step *step = &plan->steps.items[i];
        buf_add_str(out, str_from(names[step->op]));
        if (step->op == PLAN_RUN)
            buf_printf(out, " #%llx on %u (%u)", (unsigned long long)step->function, step->device,
                       step->partition);
        else if (step->op != PLAN_COPY)
            buf_printf(out, " host %u tag %u", step->peer, step->tag);
        for (uint32_t k = 0; k < step->in_count; k++)
            buf_printf(out, " %%%u", step->in[k]);
        buf_add_str(out, step->out_count ? STR(" ->") : STR(""));
        for (uint32_t k = 0; k < step->out_count; k++)
            buf_printf(out, " %%%u", step->out[k]);
        buf_add_char(out, '\n');
    }
}
