/* program.h - the graph of calls that a client launches as a unit.
 *
 * A node represents a whole sharded computation, so the size of a program does not depend on the number of
 * devices. Four kinds are enough:
 *
 *     ARG      an argument of the launch                           → one value
 *     CALL     a function on every device of a mesh, on shards     → its results
 *     RESHARD  a value moved to another mesh or sharding           → one value
 *     RESULT   a value that the launch returns                     → none
 *
 * A value has the type of the whole and a sharding: which mesh, and which mesh axes divide which dimension.
 *
 *     struct program *program = program_new();
 *     program_add_mesh(program, &(struct flow_mesh){.id = 1, .rank = 1, .dims = {4}});
 *     uint32_t x = program_arg(program, &type, &sharding);
 *     uint32_t y = program_call(program, function, 1, &x, 1, &(struct program_value){type, sharding}, 1);
 *     program_result(program, y);
 *     if (program_verify(program, &error) < 0) ...
 *     program_free(program);
 *
 * Building checks nothing. program_verify proves, and all later stages rely on, that
 *   - operands name values of earlier nodes, and every value belongs to one node;
 *   - mesh ids are unique, and meshes have 1 to PROGRAM_DEVICES_MAX devices;
 *   - an axis divides at most one dimension of a value, evenly;
 *   - the operands and results of a call are on the call's mesh;
 *   - a reshard keeps the type; at least one RESULT exists.
 *
 * Binary form, valid if and only if program_decode accepts it (all numbers little-endian):
 *     "PHXG" u32 version=1
 *     u32 meshes  { u32 id, u32 rank, u32 dims[rank] }
 *     u32 values  { type (pack.h), u32 mesh, u8 axes[rank] padded to 4 bytes }
 *     u32 nodes   { u32 kind, u64 function, u32 mesh, u32 operands, u32 results, u32 operand[operands] }
 * Values belong to nodes in order. Not thread-safe per program.
 */
#ifndef PHX_FLOW_IR_PROGRAM_H
#define PHX_FLOW_IR_PROGRAM_H

#include "base/vec.h"
#include "flow/ir/ir.h"

enum {
    PROGRAM_MESH_RANK_MAX = 3,
    PROGRAM_MESHES_MAX = 1024,
    PROGRAM_DEVICES_MAX = 65536, /* of one mesh */
    PROGRAM_NODES_MAX = 1 << 18,
    PROGRAM_VALUES_MAX = 1 << 19,
};

struct flow_mesh {
    uint32_t id;
    int32_t rank;
    uint32_t dims[PROGRAM_MESH_RANK_MAX];
};
uint32_t flow_mesh_devices(const struct flow_mesh *mesh);

/* Bit a of axes[d]: mesh axis a divides dimension d. Of several axes the lowest is the outermost. */
struct flow_sharding {
    uint32_t mesh;
    uint8_t axes[IR_RANK_MAX];
};

/* A part of a value: start and size in each dimension. */
struct flow_box {
    int64_t start[IR_RANK_MAX], size[IR_RANK_MAX];
};

struct program_value {
    struct ir_type type; /* of the whole */
    struct flow_sharding sharding;
};

enum program_node_kind { PROGRAM_ARG, PROGRAM_CALL, PROGRAM_RESHARD, PROGRAM_RESULT, PROGRAM_NODE_KINDS };
struct program_node {
    enum program_node_kind kind;
    uint64_t function; /* CALL */
    uint32_t mesh;     /* CALL: id of the mesh */
    uint32_t *operands;
    uint32_t operand_count;
    uint32_t first_result, result_count; /* values */
};

struct program {
    struct arena arena;
    VEC(struct flow_mesh) meshes;
    VEC(struct program_value) values;
    VEC(struct program_node) nodes;
    uint32_t arg_count, result_count; /* ARG and RESULT nodes */
};

struct program *program_new(void);
void program_free(struct program *program); /* NULL allowed */

/* Adds a mesh unless the program has one with that id. */
void program_add_mesh(struct program *program, const struct flow_mesh *mesh);
/* Adds a node, and returns the number of its value. */
uint32_t program_arg(struct program *program, const struct ir_type *type,
                     const struct flow_sharding *sharding);
/* Adds a CALL of a client's `function` on the mesh with id `mesh`. `results` has type and sharding of each
 * result. Returns the number of the first. */
uint32_t program_call(struct program *program, uint64_t function, uint32_t mesh, const uint32_t *operands,
                      uint32_t operand_count, const struct program_value *results, uint32_t result_count);
uint32_t program_reshard(struct program *program, uint32_t value, const struct flow_sharding *sharding);
void program_result(struct program *program, uint32_t value);

/* Returns 0, ERROR_INVALID, whose text names the node and the rule, or ERROR_LIMIT. */
int program_verify(const struct program *program, struct error *error);
/* Returns the mesh with that id, or NULL. The pointer is valid until a mesh is added. */
const struct flow_mesh *program_mesh(const struct program *program, uint32_t id);

/* Appends the binary form of a verified program. */
void program_encode(const struct program *program, struct buf *out);
/* Reads the binary form and verifies the program, which the caller frees. Returns ERROR_CORRUPT,
 * ERROR_UNSUPPORTED (another version), or the errors of program_verify. */
int program_decode(struct str bytes, struct program **ret_program, struct error *error);
/* Prints one line for each mesh and node, for people to read. */
void program_print(const struct program *program, struct buf *out);

/* Returns ERROR_INVALID if an axis is not one of the mesh or divides two dimensions, or if a dimension does
 * not divide evenly. */
int flow_sharding_verify(const struct ir_type *type, const struct flow_sharding *sharding,
                         const struct flow_mesh *mesh, struct error *error);
/* Returns the number of parts into which dimension d is divided. */
uint32_t flow_sharding_parts(const struct flow_sharding *sharding, const struct flow_mesh *mesh, int32_t d);
/* Returns the type of one shard. The sharding has been verified. */
struct ir_type flow_shard_type(const struct ir_type *type, const struct flow_sharding *sharding,
                               const struct flow_mesh *mesh);
/* Returns the part that device number `device` (row-major) of the mesh holds. Sets *ret_tile (NULL allowed)
 * to the number of that part: devices with the same number hold the same bytes. */
struct flow_box flow_shard_box(const struct ir_type *type, const struct flow_sharding *sharding,
                               const struct flow_mesh *mesh, uint32_t device, uint32_t *ret_tile);
/* Intersects two boxes. Returns false, and leaves *ret alone, if they are disjoint. */
bool flow_box_meet(const struct flow_box *a, const struct flow_box *b, int32_t rank, struct flow_box *ret);
/* Copies `box` (coordinates of the whole value) from a dense part at `from_box` to a dense part at
 * `to_box`. */
void flow_box_copy(const struct ir_type *type, const struct flow_box *box, const void *from,
                   const struct flow_box *from_box, void *to, const struct flow_box *to_box);
int64_t flow_box_bytes(const struct ir_type *type, const struct flow_box *box);

#endif
