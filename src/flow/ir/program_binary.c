/* The binary form of programs; program.h specifies it. */
#include "flow/ir/pack.h"
#include "flow/ir/program.h"

enum { PROGRAM_VERSION = 1 };

void program_encode(const struct program *program, struct buf *out)
{
    buf_add_str(out, STR("PHXG"));
    pack_u32(out, PROGRAM_VERSION);
    pack_u32(out, (uint32_t)program->meshes.len);
    for (size_t i = 0; i < program->meshes.len; i++) {
        const struct flow_mesh *mesh = &program->meshes.items[i];
        pack_u32(out, mesh->id);
        pack_u32(out, (uint32_t)mesh->rank);
        for (int32_t a = 0; a < mesh->rank; a++)
            pack_u32(out, mesh->dims[a]);
    }
    pack_u32(out, (uint32_t)program->values.len);
    for (size_t i = 0; i < program->values.len; i++) {
        const struct program_value *value = &program->values.items[i];
        pack_type(out, &value->type);
        pack_u32(out, value->sharding.mesh);
        buf_add(out, value->sharding.axes, ((size_t)value->type.rank + 3) / 4 * 4);
    }
    pack_u32(out, (uint32_t)program->nodes.len);
    for (size_t i = 0; i < program->nodes.len; i++) {
        const struct program_node *node = &program->nodes.items[i];
        pack_u32(out, node->kind);
        pack_u64(out, node->function);
        pack_u32(out, node->mesh);
        pack_u32(out, node->operand_count);
        pack_u32(out, node->result_count);
        for (uint32_t k = 0; k < node->operand_count; k++)
            pack_u32(out, node->operands[k]);
    }
}

static void program_read_meshes(struct unpack *in, struct program *program)
{
    uint32_t count = unpack_count(in, PROGRAM_MESHES_MAX, 12);
    for (uint32_t i = 0; i < count && !in->bad; i++) {
        struct flow_mesh mesh = {.id = unpack_u32(in, UINT32_MAX)};
        mesh.rank = (int32_t)unpack_u32(in, PROGRAM_MESH_RANK_MAX);
        for (int32_t a = 0; a < mesh.rank; a++)
            mesh.dims[a] = unpack_u32(in, PROGRAM_DEVICES_MAX);
        vec_push(&program->meshes, mesh);
    }
}

static void program_read_values(struct unpack *in, struct program *program)
{
    uint32_t count = unpack_count(in, PROGRAM_VALUES_MAX, 12);
    for (uint32_t i = 0; i < count && !in->bad; i++) {
        struct program_value value = {.type = unpack_type(in)};
        value.sharding.mesh = unpack_u32(in, UINT32_MAX);
        const void *axes = unpack_bytes(in, ((size_t)value.type.rank + 3) / 4 * 4);
        if (axes)
            memcpy(value.sharding.axes, axes, (size_t)value.type.rank);
        vec_push(&program->values, value);
    }
}

static void program_read_nodes(struct unpack *in, struct program *program)
{
    uint32_t count = unpack_count(in, PROGRAM_NODES_MAX, 24), values = 0;
    for (uint32_t i = 0; i < count && !in->bad; i++) {
        struct program_node node = {.kind = unpack_u32(in, PROGRAM_NODE_KINDS - 1)};
        node.function = unpack_u64(in, UINT64_MAX);
        node.mesh = unpack_u32(in, UINT32_MAX);
        node.operand_count = unpack_count(in, PROGRAM_VALUES_MAX, 4);
        node.result_count = unpack_u32(in, PROGRAM_VALUES_MAX);
        node.operands = ARENA_ARRAY(&program->arena, uint32_t, node.operand_count);
        for (uint32_t k = 0; k < node.operand_count; k++)
            node.operands[k] = unpack_u32(in, PROGRAM_VALUES_MAX);
        node.first_result = values;
        values += node.result_count;
        in->bad = in->bad || values > program->values.len;
        program->arg_count += node.kind == PROGRAM_ARG;
        program->result_count += node.kind == PROGRAM_RESULT;
        vec_push(&program->nodes, node);
    }
}

int program_decode(struct str bytes, struct program **ret_program, struct error *error)
{
    struct unpack in = {bytes.data, bytes.len, false};
    const char *magic = unpack_bytes(&in, 4);
    uint32_t version = unpack_u32(&in, UINT32_MAX);
    if (!magic || memcmp(magic, "PHXG", 4) != 0 || in.bad)
        return error_set(error, ERROR_CORRUPT, "these %zu bytes are no program", bytes.len);
    if (version != PROGRAM_VERSION)
        return error_set(error, ERROR_UNSUPPORTED, "a program of version %u; this build reads %d", version,
                         PROGRAM_VERSION);
    struct program *program = program_new();
    program_read_meshes(&in, program);
    program_read_values(&in, program);
    program_read_nodes(&in, program);
    int rc = 0;
    if (in.bad || in.left)
        rc = error_set(error, ERROR_CORRUPT, "the program's bytes are damaged");
    else
        rc = program_verify(program, error);
    if (rc < 0) {
        program_free(program);
        return rc;
    }
    *ret_program = program;
    return 0;
}
