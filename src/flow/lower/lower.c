/* Lowers a program to one plan for each host. */
#include "flow/lower/lower.h"

/* A value on the devices of its mesh. */
struct lowering_value {
    const struct flow_mesh *mesh;
    const struct lower_map *map;
    uint32_t *slots; /* by virtual device: its slot on its host */
    uint32_t *tiles; /* by virtual device: the number of the part that it holds */
    struct flow_box *boxes;
};

struct lowering {
    const struct program *program;
    const struct lower_map *maps;
    size_t map_count;
    uint32_t hosts;
    struct plan **plans;
    struct lowering_value *values;
    struct arena arena;
    uint32_t tags;
    uint64_t steps; /* of all plans; more than PLAN_STEPS_MAX: lowering has stopped */
};

static const struct lower_map *lowering_map(const struct lowering *lowering, uint32_t mesh)
{
    for (size_t i = 0; i < lowering->map_count; i++)
        if (lowering->maps[i].mesh == mesh)
            return &lowering->maps[i];
    return NULL;
}

static struct plan *lowering_plan(struct lowering *lowering, uint32_t host)
{
    CHECK(host < lowering->hosts);
    if (!lowering->plans[host])
        lowering->plans[host] = mem_alloc(sizeof(struct plan));
    return lowering->plans[host];
}

/* Gives each device of the value's mesh a slot for its shard. */
static void lowering_place_value(struct lowering *lowering, uint32_t v)
{
    const struct program_value *value = &lowering->program->values.items[v];
    struct lowering_value *placed = &lowering->values[v];
    placed->mesh = program_mesh(lowering->program, value->sharding.mesh);
    placed->map = lowering_map(lowering, value->sharding.mesh);
    uint32_t count = flow_mesh_devices(placed->mesh);
    placed->slots = ARENA_ARRAY(&lowering->arena, uint32_t, count);
    placed->tiles = ARENA_ARRAY(&lowering->arena, uint32_t, count);
    placed->boxes = ARENA_ARRAY(&lowering->arena, struct flow_box, count);
    struct ir_type shard = flow_shard_type(&value->type, &value->sharding, placed->mesh);
    for (uint32_t i = 0; i < count; i++) {
        struct lower_place place = placed->map->places[i];
        struct plan *plan = lowering_plan(lowering, place.host);
        CHECK(place.device < PLAN_DEVICES_MAX);
        if (place.device >= plan->devices)
            plan->devices = place.device + 1;
        placed->slots[i] = (uint32_t)plan->slots.len;
        placed->boxes[i] = flow_shard_box(&value->type, &value->sharding, placed->mesh, i, &placed->tiles[i]);
        vec_push(&plan->slots, ((struct plan_slot){.device = place.device, .type = shard}));
    }
}

/* Counts steps that are about to be made. Returns false if the program has too many. */
static bool lowering_may_step(struct lowering *lowering, uint64_t steps)
{
    lowering->steps += steps;
    return lowering->steps <= PLAN_STEPS_MAX;
}

static struct plan_step *lowering_step(struct plan *plan, enum plan_op op, uint32_t node, uint32_t ins,
                                       uint32_t outs)
{
    struct plan_step step = {.op = op, .node = node, .in_count = ins, .out_count = outs};
    step.in = ARENA_ARRAY(&plan->arena, uint32_t, ins);
    step.out = ARENA_ARRAY(&plan->arena, uint32_t, outs);
    vec_push(&plan->steps, step);
    return &vec_last(&plan->steps);
}

static uint32_t lowering_gang(struct plan *plan, const struct lower_map *map)
{
    for (uint32_t g = 0; g < plan->gangs.len; g++) {
        const struct plan_gang *gang = &plan->gangs.items[g];
        bool same = gang->count == map->count;
        for (uint32_t i = 0; i < gang->count && same; i++)
            same = gang->hosts[i] == map->places[i].host;
        if (same)
            return g;
    }
    struct plan_gang gang = {map->count, ARENA_ARRAY(&plan->arena, uint32_t, map->count)};
    for (uint32_t i = 0; i < map->count; i++)
        gang.hosts[i] = map->places[i].host;
    vec_push(&plan->gangs, gang);
    return (uint32_t)plan->gangs.len - 1;
}

static void lowering_call(struct lowering *lowering, uint32_t n)
{
    const struct program_node *node = &lowering->program->nodes.items[n];
    const struct lower_map *map = lowering_map(lowering, node->mesh);
    uint32_t *gangs =
        ARENA_ARRAY(&lowering->arena, uint32_t, lowering->hosts); /* 1 + number; 0: not sought yet */
    for (uint32_t d = 0; d < map->count && lowering_may_step(lowering, 1); d++) {
        struct plan *plan = lowering_plan(lowering, map->places[d].host);
        if (map->places[d].device >= plan->devices)
            plan->devices = map->places[d].device + 1;
        if (gangs[map->places[d].host] == 0)
            gangs[map->places[d].host] = 1 + lowering_gang(plan, map);
        struct plan_step *step = lowering_step(plan, PLAN_RUN, n, node->operand_count, node->result_count);
        step->device = map->places[d].device;
        step->function = node->function;
        step->gang = gangs[map->places[d].host] - 1;
        step->partition = d;
        for (uint32_t i = 0; i < node->operand_count; i++)
            step->in[i] = lowering->values[node->operands[i]].slots[d];
        for (uint32_t i = 0; i < node->result_count; i++)
            step->out[i] = lowering->values[node->first_result + i].slots[d];
    }
}

/* Returns the best holder of part `tile` of `value` for `host`: a device of that host, or otherwise one of
 * the others in turn. */
static uint32_t lowering_holder(const struct lowering_value *value, uint32_t tile, uint32_t host,
                                uint32_t turn)
{
    uint32_t holders = 0, chosen = 0;
    for (uint32_t i = 0; i < value->map->count; i++) {
        if (value->tiles[i] != tile)
            continue;
        if (value->map->places[i].host == host)
            return i;
        holders++;
    }
    CHECK(holders > 0);
    turn %= holders;
    for (uint32_t i = 0; i < value->map->count; i++)
        if (value->tiles[i] == tile && turn-- == 0) {
            chosen = i;
            break;
        }
    return chosen;
}

static bool lowering_same_box(const struct flow_box *a, const struct flow_box *b, int32_t rank)
{
    for (int32_t d = 0; d < rank; d++)
        if (a->start[d] != b->start[d] || a->size[d] != b->size[d])
            return false;
    return true;
}

/* Moves the part of `box` that device `s` of `from` holds to the devices `members` of `to`, all on one
 * host. */
static void lowering_move(struct lowering *lowering, uint32_t n, const struct lowering_value *from,
                          uint32_t s, const struct lowering_value *to, const uint32_t *members,
                          uint32_t count, const struct flow_box *box, int32_t rank)
{
    uint32_t source_host = from->map->places[s].host, host = to->map->places[members[0]].host;
    struct plan *plan = lowering_plan(lowering, host);
    bool local = source_host == host;
    struct plan_step *step = lowering_step(plan, local ? PLAN_COPY : PLAN_RECV, n, local, count);
    for (uint32_t i = 0; i < count; i++)
        step->out[i] = to->slots[members[i]];
    step->box = *box;
    step->to = to->boxes[members[0]];
    if (local) {
        step->in[0] = from->slots[s];
        step->from = from->boxes[s];
        step->whole = lowering_same_box(box, &step->from, rank) && lowering_same_box(box, &step->to, rank);
        return;
    }
    step->tag = lowering->tags;
    step->peer = source_host;
    struct plan_step *send = lowering_step(lowering_plan(lowering, source_host), PLAN_SEND, n, 1, 0);
    send->in[0] = from->slots[s];
    send->box = *box;
    send->from = from->boxes[s];
    send->tag = lowering->tags++;
    send->peer = host;
}

static void lowering_reshard(struct lowering *lowering, uint32_t n)
{
    const struct program_node *node = &lowering->program->nodes.items[n];
    const struct lowering_value *from = &lowering->values[node->operands[0]];
    const struct lowering_value *to = &lowering->values[node->first_result];
    int32_t rank = lowering->program->values.items[node->first_result].type.rank;
    uint32_t count = to->map->count;
    uint32_t *members = ARENA_ARRAY(&lowering->arena, uint32_t, count);
    bool *done = ARENA_ARRAY(&lowering->arena, bool, count);
    bool *first = ARENA_ARRAY(&lowering->arena, bool, from->map->count); /* the first holder of its part */
    bool *seen = ARENA_ARRAY(&lowering->arena, bool, from->map->count);
    for (uint32_t s = 0; s < from->map->count; s++) {
        CHECK(from->tiles[s] < from->map->count);
        first[s] = !seen[from->tiles[s]];
        seen[from->tiles[s]] = true;
    }
    for (uint32_t d = 0; d < count; d++) {
        if (done[d])
            continue;
        uint32_t group = 0;
        for (uint32_t e = d; e < count; e++)
            if (to->tiles[e] == to->tiles[d] && to->map->places[e].host == to->map->places[d].host) {
                members[group++] = e;
                done[e] = true;
            }
        for (uint32_t s = 0; s < from->map->count; s++) {
            struct flow_box box;
            if (!first[s] || !flow_box_meet(&from->boxes[s], &to->boxes[d], rank, &box))
                continue;
            if (!lowering_may_step(lowering, 2)) /* SEND and RECV */
                return;
            uint32_t holder =
                lowering_holder(from, from->tiles[s], to->map->places[d].host, to->tiles[d] + d);
            lowering_move(lowering, n, from, holder, to, members, group, &box, rank);
        }
    }
}

static void lowering_ports(struct lowering *lowering, uint32_t v, uint32_t index, bool result)
{
    const struct lowering_value *value = &lowering->values[v];
    for (uint32_t d = 0; d < value->map->count; d++) {
        struct plan *plan = lowering_plan(lowering, value->map->places[d].host);
        struct plan_port port = {value->slots[d], index, d};
        if (result)
            vec_push(&plan->results, port);
        else
            vec_push(&plan->args, port);
    }
}

/* Counts writers and readers of slots, and the bytes that each device holds at once. */
static void lowering_account(struct plan *plan)
{
    size_t steps = plan->steps.len, slots = plan->slots.len;
    int64_t *change = mem_alloc((steps + 2) * (plan->devices + 1) * sizeof *change);
    size_t *born = mem_alloc((slots + 1) * sizeof *born), *dies = mem_alloc((slots + 1) * sizeof *dies);
    bool *counts = mem_alloc(slots + 1), *kept = mem_alloc(slots + 1);
    for (size_t i = 0; i < steps; i++) {
        const struct plan_step *step = &plan->steps.items[i];
        for (uint32_t k = 0; k < step->in_count; k++) {
            plan->slots.items[step->in[k]].uses++;
            dies[step->in[k]] = i;
        }
        for (uint32_t k = 0; k < step->out_count; k++) {
            plan->slots.items[step->out[k]].writers++;
            counts[step->out[k]] = true;
            born[step->out[k]] = step->op == PLAN_RUN ? i : 0;
            if (dies[step->out[k]] < i)
                dies[step->out[k]] = i;
        }
    }
    for (size_t i = 0; i < plan->results.len; i++) {
        uint32_t slot = plan->results.items[i].slot;
        plan->slots.items[slot].uses++;
        dies[slot] = steps;
        if (counts[slot] && !kept[slot])
            plan->result_bytes[plan->slots.items[slot].device] +=
                ir_type_bytes(&plan->slots.items[slot].type);
        kept[slot] = true;
    }
    for (size_t s = 0; s < slots; s++)
        if (counts[s]) {
            int64_t bytes = ir_type_bytes(&plan->slots.items[s].type);
            change[born[s] * plan->devices + plan->slots.items[s].device] += bytes;
            change[(dies[s] + 1) * plan->devices + plan->slots.items[s].device] -= bytes;
        }
    for (uint32_t d = 0; d < plan->devices; d++) {
        int64_t held = 0;
        for (size_t i = 0; i <= steps; i++) {
            held += change[i * plan->devices + d];
            if (held > plan->peak_bytes[d])
                plan->peak_bytes[d] = held;
        }
    }
    mem_free(change);
    mem_free(born);
    mem_free(dies);
    mem_free(counts);
    mem_free(kept);
}

static int lowering_check(const struct lowering *lowering, struct error *error)
{
    for (size_t i = 0; i < lowering->program->meshes.len; i++) {
        const struct flow_mesh *mesh = &lowering->program->meshes.items[i];
        const struct lower_map *map = lowering_map(lowering, mesh->id);
        if (!map || map->count != flow_mesh_devices(mesh))
            return error_set(error, ERROR_INVALID, "mesh %u has no places", mesh->id);
    }
    uint64_t slots = 0;
    for (size_t v = 0; v < lowering->program->values.len; v++)
        slots += lowering_map(lowering, lowering->program->values.items[v].sharding.mesh)->count;
    if (slots > PLAN_SLOTS_MAX)
        return error_set(error, ERROR_LIMIT, "the program has %llu shards, at most %d are possible",
                         (unsigned long long)slots, PLAN_SLOTS_MAX);
    return 0;
}

int lower_program(const struct program *program, const struct lower_map *maps, size_t map_count,
                  uint32_t hosts, struct plan ***ret_plans, struct error *error)
{
    struct lowering lowering = {.program = program, .maps = maps, .map_count = map_count, .hosts = hosts};
    int rc = lowering_check(&lowering, error);
    if (rc < 0)
        return rc;
    lowering.plans = mem_alloc((hosts + 1) * sizeof *lowering.plans);
    lowering.values = ARENA_ARRAY(&lowering.arena, struct lowering_value, program->values.len + 1);
    uint32_t args = 0, results = 0;
    for (uint32_t n = 0; n < program->nodes.len && lowering.steps <= PLAN_STEPS_MAX; n++) {
        const struct program_node *node = &program->nodes.items[n];
        for (uint32_t i = 0; i < node->result_count; i++)
            lowering_place_value(&lowering, node->first_result + i);
        if (node->kind == PROGRAM_ARG)
            lowering_ports(&lowering, node->first_result, args++, false);
        else if (node->kind == PROGRAM_CALL)
            lowering_call(&lowering, n);
        else if (node->kind == PROGRAM_RESHARD)
            lowering_reshard(&lowering, n);
        else
            lowering_ports(&lowering, node->operands[0], results++, true);
    }
    arena_done(&lowering.arena);
    if (lowering.steps > PLAN_STEPS_MAX) {
        lower_free(lowering.plans, hosts);
        return error_set(error, ERROR_LIMIT, "the program takes more than %d steps on its devices",
                         PLAN_STEPS_MAX);
    }
    for (uint32_t h = 0; h < hosts; h++)
        if (lowering.plans[h])
            lowering_account(lowering.plans[h]);
    *ret_plans = lowering.plans;
    return 0;
}

void lower_free(struct plan **plans, uint32_t hosts)
{
    for (uint32_t h = 0; plans && h < hosts; h++)
        plan_free(plans[h]);
    mem_free(plans);
}
