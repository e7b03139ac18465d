/* ir.h - functions over tensors with static shapes: START HERE for flow's intermediate representation.
 *
 * A module is what a front end produces: the StableHLO text that jax.jit(f).lower(*args).as_text() prints
 * (parse.c), or the output of flow's own tracer (python/phalanx/flow). Executors (exec/executor.h) run its
 * functions; a program (program.h) calls them on the shards of sharded values.
 *
 *     struct ir_module *module = NULL;
 *     if (ir_parse(text, "step.mlir", &module, &error) < 0) ...        // "step.mlir:12:9: expected a type"
 *     if (ir_verify(module, &error) < 0) ...                           // types, shapes, attributes
 *     const struct ir_function *main = ir_function(module, STR("main"));
 *     ...
 *     ir_module_free(module);
 *
 * The form is static single assignment in nested regions, as in MLIR, without control flow between blocks: a
 * region is one block, and a block is a list of operations. Each operand names a value made by an earlier
 * operation of the same block or of an enclosing one. Values are numbered densely within their function,
 * regions included, so that an executor can keep them in an array.
 *
 * All parts of a module live in one arena. A module is read-only after ir_verify; any thread may read it
 * then.
 *
 * Invariants, which ir_verify proves and all later stages rely on:
 *   - every operand is defined before its use, in the same block or in one around it;
 *   - operand, result and region counts are those of the operation's row in IR_OPS;
 *   - the types of operands, results, block arguments and region results agree with the rules of the
 *     StableHLO specification for that operation;
 *   - the attributes are within bounds: each dimension number is below its operand's rank and occurs once,
 *     and every tensor has at most IR_ELEMENTS_MAX elements;
 *   - calls name functions of the module, with the types of their parameters, and never recurse; regions and
 *     calls are nested at most IR_NESTING_MAX deep.
 *
 * Files.
 *     type.c             element types and shapes           ops.h      the table of operations
 *     lexer.c            StableHLO text to tokens           scope.c    names of values and functions
 *     parse_module.c     modules and functions              parse.c    operations, generic form
 *     parse_op.c         custom forms; parse_region.c: reduce and while; op_name.c: names of operations
 *     attribute.c        attributes as written              build.c    attributes to the union below
 *     literal.c          dense<...>
 *     verify.c           the invariants above; verify_*.c by family of operations
 *     print.c            a module as text that ir_parse reads again; print_attributes.c
 *     binary.c           a module as versioned bytes; codec.c, codec_attributes.c: parts of the format
 *
 * Source of the operations' meaning and of the text form: the StableHLO specification, openxla/stablehlo,
 * docs/spec.md (1.x).
 */
#ifndef PHX_FLOW_IR_IR_H
#define PHX_FLOW_IR_IR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "flow/ir/ops.h"

enum {
    IR_RANK_MAX = 16,
    IR_OPERANDS_MAX = 1024,  /* operands, and results, of one operation; checked by the parser */
    IR_DEPTH_MAX = 64,       /* nested regions */
    IR_TEXT_MAX = 256 << 20, /* bytes of a module's text */
    IR_VALUES_MAX = 1 << 22, /* values of one function */
    IR_NESTING_MAX = 128,    /* nested regions and calls; bounds an executor's stack */
};
#define IR_ELEMENTS_MAX ((int64_t)1 << 40) /* elements of one tensor */

/* clang-format off */
/* Element types: name in text, bytes of one element in memory. An i1 is a byte with value 0 or 1. i2, i4, ui2
 * and ui4 take one byte each, sign-extended for i2 and i4. A complex number is two floats, the real part
 * first. */
#define IR_TYPES(X)                 \
    X(I1, "i1", 1)                  \
    X(I2, "i2", 1)                  \
    X(I4, "i4", 1)                  \
    X(I8, "i8", 1)                  \
    X(I16, "i16", 2)                \
    X(I32, "i32", 4)                \
    X(I64, "i64", 8)                \
    X(U2, "ui2", 1)                 \
    X(U4, "ui4", 1)                 \
    X(U8, "ui8", 1)                 \
    X(U16, "ui16", 2)               \
    X(U32, "ui32", 4)               \
    X(U64, "ui64", 8)               \
    X(F8E4M3FN, "f8E4M3FN", 1)      \
    X(F8E5M2, "f8E5M2", 1)          \
    X(BF16, "bf16", 2)              \
    X(F16, "f16", 2)                \
    X(F32, "f32", 4)                \
    X(F64, "f64", 8)                \
    X(C64, "complex<f32>", 8)       \
    X(C128, "complex<f64>", 16)     \
    X(TOKEN, "!stablehlo.token", 0)
/* clang-format on */
enum ir_element {
#define IR_ELEMENT(id, name, size) IR_##id,
    IR_TYPES(IR_ELEMENT)
#undef IR_ELEMENT
        IR_ELEMENTS
};
const char *ir_element_name(enum ir_element element);
unsigned ir_element_size(enum ir_element element); /* bytes; 0 for a token */
unsigned ir_element_bits(enum ir_element element); /* as the specification counts them: i1 has one */

/* The type of a value. Copied by assignment; compared with ir_type_equal. */
struct ir_type {
    enum ir_element element;
    int32_t rank;              /* 0: a scalar */
    int64_t dims[IR_RANK_MAX]; /* row-major: the last one is contiguous */
};
bool ir_type_equal(const struct ir_type *a, const struct ir_type *b);
int64_t ir_type_elements(const struct ir_type *type); /* 1 for a scalar; 0 if a dimension is 0 */
int64_t ir_type_bytes(const struct ir_type *type);
/* Writes "tensor<4x8xf32>" to `text`, and returns it. */
enum { IR_TYPE_TEXT_MAX = 400 };
const char *ir_type_text(const struct ir_type *type, char text[IR_TYPE_TEXT_MAX]);

/* A position in the module's text, counted from 1. */
struct ir_place {
    uint32_t line, column;
};

struct ir_op;
struct ir_function;

/* A value: the result of an operation, an argument of a block, or a parameter. */
struct ir_value {
    struct ir_type type;
    uint32_t number;  /* dense in its function, from 0 */
    struct ir_op *op; /* NULL: an argument of a block */
};

struct ir_block {
    struct ir_value *args;
    uint32_t arg_count;
    struct ir_op *first, *last; /* the last one is IR_OP_RETURN */
};

/* The elements of a constant: dense and row-major, or a single element for all (splat). A literal with one
 * element is a splat too. */
struct ir_literal {
    struct ir_type type;
    const void *data;
    bool splat;
};

/* A list of dimension numbers or sizes. */
struct ir_ints {
    const int64_t *items;
    uint32_t count;
};
static inline bool ir_ints_have(struct ir_ints list, int64_t value)
{
    for (uint32_t i = 0; i < list.count; i++)
        if (list.items[i] == value)
            return true;
    return false;
}

enum ir_compare_direction { IR_EQ, IR_NE, IR_GE, IR_GT, IR_LE, IR_LT };
enum ir_compare_type {
    IR_COMPARE_DEFAULT,
    IR_COMPARE_FLOAT,
    IR_COMPARE_TOTALORDER,
    IR_COMPARE_SIGNED,
    IR_COMPARE_UNSIGNED
};
enum ir_transpose { IR_NO_TRANSPOSE, IR_TRANSPOSE, IR_ADJOINT };
enum ir_fft { IR_FFT, IR_IFFT, IR_RFFT, IR_IRFFT };
enum ir_rng { IR_RNG_DEFAULT, IR_RNG_THREE_FRY, IR_RNG_PHILOX };

/* The windows of convolution, reduce_window and select_and_scatter. Each list is as long as the window's
 * rank. Values that the text omits have their defaults (1, no padding, not reversed). */
struct ir_window {
    struct ir_ints sizes, strides, base_dilations, window_dilations;
    const int64_t *pad_low, *pad_high; /* negative: crops */
    const bool *reversal;              /* convolution alone */
};

/* Replica groups: `count` groups of `size` ids, row-major; -1 pads a shorter group. */
struct ir_groups {
    const int64_t *ids;
    uint32_t count, size;
    bool use_global_ids;
    int64_t channel; /* 0: none. Above 0: the groups span partitions, as the specification defines */
};

/* Attributes, by kind of operation. */
union ir_attributes {
    struct ir_literal constant; /* constant */
    struct {
        int64_t dimension;
    } axis; /* iota, concatenate */
    struct {
        struct ir_ints dims;
    } dims; /* broadcast_in_dim, transpose, reverse, reduce, map */
    struct {
        enum ir_compare_direction direction;
        enum ir_compare_type type;
    } compare;
    struct {
        struct ir_ints starts, limits, strides;
    } slice; /* slice */
    struct {
        struct ir_ints sizes;
    } dynamic_slice;
    struct {
        struct ir_ints low, high, interior;
    } pad;
    struct {
        struct ir_ints lhs_batch, rhs_batch, lhs_contract, rhs_contract;
    } dot;
    struct {
        struct ir_ints offset_dims, collapsed_slice_dims, operand_batching_dims, start_indices_batching_dims;
        struct ir_ints start_index_map, slice_sizes;
        int64_t index_vector_dim;
        bool sorted;
    } gather;
    struct {
        struct ir_ints update_window_dims, inserted_window_dims, input_batching_dims;
        struct ir_ints scatter_indices_batching_dims, scatter_dims_to_operand_dims;
        int64_t index_vector_dim;
        bool sorted, unique;
    } scatter;
    struct {
        struct ir_window window;
        int64_t input_batch, input_feature, kernel_input_feature, kernel_output_feature, output_batch,
            output_feature;
        struct ir_ints input_spatial, kernel_spatial, output_spatial;
        int64_t feature_groups, batch_groups;
    } conv;
    struct ir_window window; /* reduce_window, select_and_scatter */
    struct {
        int64_t dimension;
        bool stable;
    } sort;
    struct {
        bool left_side, lower, unit_diagonal;
        enum ir_transpose transpose_a;
    } triangular;
    struct {
        bool lower;
    } cholesky;
    struct {
        enum ir_fft type;
        struct ir_ints lengths;
    } fft;
    struct {
        enum ir_rng algorithm;
    } rng;
    struct {
        int32_t exponent_bits, mantissa_bits;
    } precision; /* reduce_precision */
    struct {
        double epsilon;
        int64_t feature;
    } batch_norm;
    struct {
        const struct ir_function *callee;
    } call;
    struct {
        struct str target;
        struct str backend_config;
        bool has_side_effect;
    } custom;
    struct {
        struct ir_groups groups;
        int64_t dimension, split_dimension, concat_dimension, split_count;
    } collective;
    struct {
        const int64_t (*pairs)[2];
        uint32_t count;
        int64_t channel;
    } permute;
    struct {
        double min_ulp, max_ulp; /* expect_close: units in the last place; by default 0 and 3 */
        double tolerance;        /* expect_almost_eq; by default 0.0001 */
        bool constant;           /* one operand, compared with `expected` */
        struct ir_literal expected;
    } expect;                                /* check.* */
    struct {                                 /* run_parallel */
        const struct ir_function **programs; /* replicas x partitions, row-major */
        uint32_t replicas, partitions;
    } parallel;
};

struct ir_op {
    enum ir_op_kind kind;
    struct ir_place place;
    struct ir_value **operands;
    uint32_t operand_count;
    struct ir_value *results;
    uint32_t result_count;
    struct ir_block *regions;
    uint32_t region_count;
    union ir_attributes attributes;
    struct ir_op *next;
};

struct ir_function {
    struct str name;
    struct ir_block body; /* its arguments are the parameters */
    struct ir_type *results;
    uint32_t result_count;
    uint32_t value_count; /* values have the numbers 0 … value_count - 1 */
    struct ir_place place;
    struct ir_function *next;
};

struct ir_module {
    struct arena arena; /* holds all parts of the module */
    struct str name;
    struct str file; /* as given to ir_parse, for messages */
    struct ir_function *functions;
    uint32_t replicas, partitions; /* mhlo.num_replicas, mhlo.num_partitions; 1 if the text has none */
};

/* Parses the text of one module, with or without "module { }" around its functions. `file` names the text in
 * messages. The caller frees *module. Returns ERROR_INVALID with file:line:column; ERROR_UNSUPPORTED, with
 * the operation or type and its place, for StableHLO that is not in IR_OPS or IR_TYPES; or ERROR_LIMIT. */
int ir_parse(struct str text, const char *file, struct ir_module **module, struct error *error);

/* Parses a text of several modules separated by lines of "// -----". Calls `each` with one module after
 * another and frees it after the call. A non-zero result of `each` ends the loop and is returned. */
int ir_parse_split(struct str text, const char *file, int (*each)(struct ir_module *module, void *arg),
                   void *arg, struct error *error);

/* Proves the invariants above. ERROR_INVALID names file:line:column, operation and rule. */
int ir_verify(const struct ir_module *module, struct error *error);

void ir_module_free(struct ir_module *module); /* NULL allowed */

/* Returns the function of that name, or NULL. */
const struct ir_function *ir_function(const struct ir_module *module, struct str name);

/* Returns a verified module as text in StableHLO's generic form, allocated in `arena`. ir_parse reads this
 * text to a module that is equal except for places. */
struct str ir_print(const struct ir_module *module, struct arena *arena);

/* ir_encode returns a verified module as bytes, allocated in `arena`: a header with magic and version, then
 * all parts in the order of the text, with their places. ir_decode accepts arbitrary bytes: it returns a
 * module that ir_verify accepts, which the caller frees, or ERROR_CORRUPT or ERROR_UNSUPPORTED. */
struct str ir_encode(const struct ir_module *module, struct arena *arena);
int ir_decode(struct str bytes, struct ir_module **module, struct error *error);

#endif
