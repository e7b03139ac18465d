/* Programs: building, verifying, printing. */
#include "flow/ir/program.h"

#include <stdio.h>

struct program *program_new(void)
{
    return mem_alloc(sizeof(struct program));
}

void program_free(struct program *program)
{
    if (!program)
        return;
    vec_done(&program->meshes);
    vec_done(&program->values);
    vec_done(&program->nodes);
    arena_done(&program->arena);
    mem_free(program);
}

const struct flow_mesh *program_mesh(const struct program *program, uint32_t id)
{
    for (size_t i = 0; i < program->meshes.len; i++)
        if (program->meshes.items[i].id == id)
            return &program->meshes.items[i];
    return NULL;
}

void program_add_mesh(struct program *program, const struct flow_mesh *mesh)
{
    if (!program_mesh(program, mesh->id))
        vec_push(&program->meshes, *mesh);
}

static struct program_node *program_add_node(struct program *program, enum program_node_kind kind,
                                             const uint32_t *operands, uint32_t count)
{
    struct program_node node = {.kind = kind, .operand_count = count};
    node.operands = ARENA_ARRAY(&program->arena, uint32_t, count);
    mem_copy(node.operands, operands, count * sizeof *operands);
    node.first_result = (uint32_t)program->values.len;
    vec_push(&program->nodes, node);
    program->arg_count += kind == PROGRAM_ARG;
    program->result_count += kind == PROGRAM_RESULT;
    return &vec_last(&program->nodes);
}

static uint32_t program_add_value(struct program *program, struct program_node *node,
                                  const struct program_value *value)
{
    node->result_count++;
    vec_push(&program->values, *value);
    return (uint32_t)program->values.len - 1;
}

uint32_t program_arg(struct program *program, const struct ir_type *type,
                     const struct flow_sharding *sharding)
{
    struct program_node *node = program_add_node(program, PROGRAM_ARG, NULL, 0);
    return program_add_value(program, node, &(struct program_value){*type, *sharding});
}

uint32_t program_call(struct program *program, uint64_t function, uint32_t mesh, const uint32_t *operands,
                      uint32_t operand_count, const struct program_value *results, uint32_t result_count)
{
    struct program_node *node = program_add_node(program, PROGRAM_CALL, operands, operand_count);
    node->function = function;
    node->mesh = mesh;
    uint32_t first = node->first_result;
    for (uint32_t i = 0; i < result_count; i++)
        program_add_value(program, node, &results[i]);
    return first;
}

uint32_t program_reshard(struct program *program, uint32_t value, const struct flow_sharding *sharding)
{
    struct program_node *node = program_add_node(program, PROGRAM_RESHARD, &value, 1);
    struct program_value made = {.sharding = *sharding};
    if (value < program->values.len)
        made.type = program->values.items[value].type;
    return program_add_value(program, node, &made);
}

void program_result(struct program *program, uint32_t value)
{
    program_add_node(program, PROGRAM_RESULT, &value, 1);
}

static int program_verify_mesh(const struct program *program, size_t i, struct error *error)
{
    const struct flow_mesh *mesh = &program->meshes.items[i];
    if (mesh->rank < 1 || mesh->rank > PROGRAM_MESH_RANK_MAX)
        return error_set(error, ERROR_INVALID, "mesh %u has rank %d, not 1 to %d", mesh->id, mesh->rank,
                         PROGRAM_MESH_RANK_MAX);
    uint64_t devices = 1;
    for (int32_t a = 0; a < mesh->rank; a++) {
        devices *= mesh->dims[a];
        if (devices < 1 || devices > PROGRAM_DEVICES_MAX)
            return error_set(error, ERROR_INVALID, "mesh %u has no or more than %d devices", mesh->id,
                             PROGRAM_DEVICES_MAX);
    }
    for (size_t j = 0; j < i; j++)
        if (program->meshes.items[j].id == mesh->id)
            return error_set(error, ERROR_INVALID, "mesh %u is named twice", mesh->id);
    return 0;
}

static int program_verify_value(const struct program *program, size_t node, uint32_t v, struct error *error)
{
    const struct program_value *value = &program->values.items[v];
    const struct flow_mesh *mesh = program_mesh(program, value->sharding.mesh);
    if (!mesh)
        return error_set(error, ERROR_INVALID, "node %zu: value %u lies on mesh %u, which is not declared",
                         node, v, value->sharding.mesh);
    if (flow_sharding_verify(&value->type, &value->sharding, mesh, error) < 0)
        return error_wrap(error, "node %zu: value %u", node, v);
    return 0;
}

static int program_verify_call(const struct program *program, size_t n, struct error *error)
{
    const struct program_node *node = &program->nodes.items[n];
    if (!program_mesh(program, node->mesh))
        return error_set(error, ERROR_INVALID, "node %zu: mesh %u is not declared", n, node->mesh);
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (program->values.items[node->operands[i]].sharding.mesh != node->mesh)
            return error_set(error, ERROR_INVALID, "node %zu: argument %u does not lie on mesh %u", n, i,
                             node->mesh);
    for (uint32_t i = 0; i < node->result_count; i++)
        if (program->values.items[node->first_result + i].sharding.mesh != node->mesh)
            return error_set(error, ERROR_INVALID, "node %zu: result %u does not lie on mesh %u", n, i,
                             node->mesh);
    return 0;
}

static int program_verify_node(const struct program *program, size_t n, struct error *error)
{
    static const struct {
        uint32_t operands, results; /* UINT32_MAX: any number */
    } counts[] = {[PROGRAM_ARG] = {0, 1},
                  [PROGRAM_CALL] = {UINT32_MAX, UINT32_MAX},
                  [PROGRAM_RESHARD] = {1, 1},
                  [PROGRAM_RESULT] = {1, 0}};
    const struct program_node *node = &program->nodes.items[n];
    if (node->kind >= PROGRAM_NODE_KINDS)
        return error_set(error, ERROR_INVALID, "node %zu is of no known kind", n);
    if ((counts[node->kind].operands != UINT32_MAX && node->operand_count != counts[node->kind].operands) ||
        (counts[node->kind].results != UINT32_MAX && node->result_count != counts[node->kind].results))
        return error_set(error, ERROR_INVALID, "node %zu has a wrong number of operands or results", n);
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (node->operands[i] >= node->first_result)
            return error_set(error, ERROR_INVALID, "node %zu: operand %u names value %u, which comes later",
                             n, i, node->operands[i]);
    for (uint32_t i = 0; i < node->result_count; i++)
        if (program_verify_value(program, n, node->first_result + i, error) < 0)
            return error ? (int)error->code : ERROR_INVALID;
    if (node->kind == PROGRAM_RESHARD && !ir_type_equal(&program->values.items[node->operands[0]].type,
                                                        &program->values.items[node->first_result].type))
        return error_set(error, ERROR_INVALID, "node %zu: a reshard keeps the type", n);
    return node->kind == PROGRAM_CALL ? program_verify_call(program, n, error) : 0;
}

int program_verify(const struct program *program, struct error *error)
{
    if (program->nodes.len > PROGRAM_NODES_MAX || program->values.len > PROGRAM_VALUES_MAX ||
        program->meshes.len > PROGRAM_MESHES_MAX)
        return error_set(error, ERROR_LIMIT, "the program has more than %d nodes, %d values or %d meshes",
                         PROGRAM_NODES_MAX, PROGRAM_VALUES_MAX, PROGRAM_MESHES_MAX);
    for (size_t i = 0; i < program->meshes.len; i++) {
        int rc = program_verify_mesh(program, i, error);
        if (rc < 0)
            return rc;
    }
    uint32_t values = 0;
    for (size_t n = 0; n < program->nodes.len; n++) {
        const struct program_node *node = &program->nodes.items[n];
        if (node->first_result != values || node->result_count > program->values.len - values)
            return error_set(error, ERROR_INVALID, "node %zu: its results are not the next values", n);
        values += node->result_count;
        int rc = program_verify_node(program, n, error);
        if (rc < 0)
            return rc;
    }
    if (values != program->values.len)
        return error_set(error, ERROR_INVALID, "value %u belongs to no node", values);
    if (program->result_count == 0)
        return error_set(error, ERROR_INVALID, "the program hands out no result");
    return 0;
}

static void program_print_value(const struct program *program, uint32_t v, struct buf *out)
{
    const struct program_value *value = &program->values.items[v];
    char type[IR_TYPE_TEXT_MAX];
    buf_printf(out, "%s @%u [", ir_type_text(&value->type, type), value->sharding.mesh);
    for (int32_t d = 0; d < value->type.rank; d++) {
        buf_add_str(out, d ? STR(", {") : STR("{"));
        for (unsigned a = 0, some = 0; a < PROGRAM_MESH_RANK_MAX; a++)
            if (value->sharding.axes[d] & 1u << a)
                buf_printf(out, some++ ? ", %u" : "%u", a);
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

void program_print(const struct program *program, struct buf *out)
{
    static const char *const names[] = {"arg", "call", "reshard", "result"};
    for (size_t i = 0; i < program->meshes.len; i++) {
        const struct flow_mesh *mesh = &program->meshes.items[i];
        buf_printf(out, "mesh @%u [", mesh->id);
        for (int32_t a = 0; a < mesh->rank; a++)
            buf_printf(out, a ? ", %u" : "%u", mesh->dims[a]);
        buf_add_str(out, STR("]\n"));
    }
    for (size_t n = 0; n < program->nodes.len; n++) {
        const struct program_node *node = &program->nodes.items[n];
        for (uint32_t i = 0; i < node->result_count; i++)
            buf_printf(out, i ? ", %%%u" : "%%%u", node->first_result + i);
        buf_printf(out, node->result_count ? " = %s" : "%s", names[node->kind]);
        if (node->kind == PROGRAM_CALL)
            buf_printf(out, " #%llx on @%u", (unsigned long long)node->function, node->mesh);
        for (uint32_t i = 0; i < node->operand_count; i++)
            buf_printf(out, i ? ", %%%u" : " %%%u", node->operands[i]);
        for (uint32_t i = 0; i < node->result_count; i++) {
            buf_add_str(out, i ? STR(", ") : STR(" : "));
            program_print_value(program, node->first_result + i, out);
        }
        buf_add_char(out, '\n');
    }
}
