/* onednn.c - the executor "onednn": dot_general and convolution by oneDNN primitives, made once for an
 * executable, and everything else by the interpreter.
 *
 * Primitives compute on one thread, because devices are the unit of parallelism and a worker has one thread
 * for each. Small products stay with the interpreter, which finishes before a primitive would have started.
 * The interpreter also computes the operations that oneDNN defines differently from the specification
 * (reversed windows, groups of batches, integers, ...).
 *
 * Sums run in another order than the interpreter's, and with fused multiply-add, so the last digits differ.
 */
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "flow/exec/dot.h"
#include "flow/exec/interpret.h"

/* Multiplications below which the interpreter is faster. */
enum { DENSE_WORK_LEAST = 1 << 13 };

/* An operand or result: its layout in the interpreter, and the layout that the primitive prefers. */
struct dense_side {
    dnnl_memory_desc_t plain, wanted;
    dnnl_primitive_t reorder; /* NULL: the layouts are the same */
};

/* A primitive for one operation. Immutable once made; each launch uses its own memory. */
struct dense_step {
    const struct ir_op *op;
    dnnl_primitive_t primitive;
    struct dense_side lhs, rhs, out;
    dnnl_memory_desc_t scratch;
};

struct executable {
    struct dense dense; /* the first field: dense_compute gets its address */
    const struct ir_function *function;
    struct plans plans;
    struct dense_step *steps; /* sorted by the operation's address */
    uint32_t count, room;
};

/* --- the engine: one for the process */

static pthread_once_t engine_once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine; /* NULL: oneDNN does not run here */
static void (*threads_limit)(int count);

static void engine_start(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
    *(void **)&threads_limit = dlsym(RTLD_DEFAULT, "omp_set_num_threads"); /* where oneDNN runs on OpenMP */
}

/* Restricts primitives to the calling thread: OpenMP keeps this setting for each thread. */
static void engine_enter(void)
{
    pthread_once(&engine_once, engine_start);
    if (threads_limit)
        threads_limit(1);
}

/* --- steps */

static void side_free(struct dense_side *side)
{
    if (side->reorder)
        dnnl_primitive_destroy(side->reorder);
}

static void step_free(struct dense_step *step)
{
    side_free(&step->lhs), side_free(&step->rhs), side_free(&step->out);
    if (step->primitive)
        dnnl_primitive_destroy(step->primitive);
}

/* Stores the layout that the primitive prefers, and makes the reorder to it, or from it for the result. */
static bool side_make(struct dense_side *side, const_dnnl_primitive_desc_t made, dnnl_query_t what,
                      bool result)
{
    const dnnl_memory_desc_t *wanted = dnnl_primitive_desc_query_md(made, what, 0);
    if (!wanted)
        return false;
    side->wanted = *wanted;
    if (dnnl_memory_desc_equal(&side->plain, &side->wanted))
        return true;
    dnnl_primitive_desc_t reorder = NULL;
    const dnnl_memory_desc_t *from = result ? &side->wanted : &side->plain;
    const dnnl_memory_desc_t *to = result ? &side->plain : &side->wanted;
    if (dnnl_reorder_primitive_desc_create(&reorder, from, engine, to, engine, NULL) != dnnl_success)
        return false;
    bool ok = dnnl_primitive_create(&side->reorder, reorder) == dnnl_success;
    dnnl_primitive_desc_destroy(reorder);
    return ok;
}

/* Makes the primitive of an operation descriptor. Returns false if oneDNN has none. */
static bool step_make(struct dense_step *step, const void *descriptor)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t made = NULL;
    if (dnnl_primitive_attr_create(&attributes) != dnnl_success)
        return false;
    dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    dnnl_status_t status = dnnl_primitive_desc_create(&made, descriptor, attributes, engine, NULL);
    dnnl_primitive_attr_destroy(attributes);
    if (status != dnnl_success)
        return false;
    const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(made, dnnl_query_scratchpad_md, 0);
    bool ok = scratch && side_make(&step->lhs, made, dnnl_query_src_md, false) &&
              side_make(&step->rhs, made, dnnl_query_weights_md, false) &&
              side_make(&step->out, made, dnnl_query_dst_md, true) &&
              dnnl_primitive_create(&step->primitive, made) == dnnl_success;
    if (scratch)
        step->scratch = *scratch;
    dnnl_primitive_desc_destroy(made);
    return ok;
}

static bool dense_type(enum ir_element element, dnnl_data_type_t *type)
{
    *type = element == IR_F32 ? dnnl_f32 : dnnl_bf16;
    return element == IR_F32 || element == IR_BF16;
}

static bool dot_step(struct dense_step *step, const struct ir_op *op)
{
    dnnl_data_type_t left, right, out;
    struct dot_shape shape = dot_shape_of(op);
    if (!dense_type(op->operands[0]->type.element, &left) ||
        !dense_type(op->operands[1]->type.element, &right) ||
        !dense_type(op->results[0].type.element, &out) || left != right)
        return false;
    if (shape.rows < 1 || shape.columns < 1 || shape.inner < 1 || shape.batch < 1 ||
        (double)shape.rows * (double)shape.columns * (double)shape.inner < DENSE_WORK_LEAST)
        return false;
    int rank = shape.batch > 1 ? 3 : 2, skip = 3 - rank;
    dnnl_dims_t a = {shape.batch, shape.rows, shape.inner}, b = {shape.batch, shape.inner, shape.columns};
    dnnl_dims_t c = {shape.batch, shape.rows, shape.columns};
    dnnl_format_tag_t tag = rank == 3 ? dnnl_abc : dnnl_ab;
    dnnl_matmul_desc_t descriptor;
    return dnnl_memory_desc_init_by_tag(&step->lhs.plain, rank, a + skip, left, tag) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&step->rhs.plain, rank, b + skip, right, tag) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&step->out.plain, rank, c + skip, out, tag) == dnnl_success &&
           dnnl_matmul_desc_init(&descriptor, &step->lhs.plain, &step->rhs.plain, NULL, &step->out.plain) ==
               dnnl_success &&
           step_make(step, &descriptor);
}

/* Describes a tensor in oneDNN's order of dimensions: `first`, `second`, then the spatial ones. */
static bool side_describe(struct dense_side *side, const struct ir_type *type, int64_t first, int64_t second,
                          const struct ir_ints *spatial)
{
    int64_t of_type[IR_RANK_MAX];
    dnnl_dims_t dims = {type->dims[first], type->dims[second]}, strides;
    strides_of(type, of_type);
    strides[0] = of_type[first], strides[1] = of_type[second];
    for (uint32_t k = 0; k < spatial->count; k++) {
        dims[2 + k] = type->dims[spatial->items[k]];
        strides[2 + k] = of_type[spatial->items[k]];
    }
    return dnnl_memory_desc_init_by_strides(&side->plain, type->rank, dims, dnnl_f32, strides) ==
           dnnl_success;
}

/* Describes the kernel; if there are several groups, they are its first dimension. */
static bool kernel_describe(struct dense_side *side, const struct ir_op *op)
{
    __typeof__(&op->attributes.conv) how = &op->attributes.conv;
    const struct ir_type *type = &op->operands[1]->type;
    int64_t of_type[IR_RANK_MAX], groups = how->feature_groups;
    dnnl_dims_t dims, strides;
    int rank = 0;
    strides_of(type, of_type);
    int64_t outputs = type->dims[how->kernel_output_feature] / groups,
            step = of_type[how->kernel_output_feature];
    if (groups > 1)
        dims[rank] = groups, strides[rank++] = outputs * step;
    dims[rank] = outputs, strides[rank++] = step;
    dims[rank] = type->dims[how->kernel_input_feature], strides[rank++] = of_type[how->kernel_input_feature];
    for (uint32_t k = 0; k < how->kernel_spatial.count; k++) {
        dims[rank] = type->dims[how->kernel_spatial.items[k]];
        strides[rank++] = of_type[how->kernel_spatial.items[k]];
    }
    return dnnl_memory_desc_init_by_strides(&side->plain, rank, dims, dnnl_f32, strides) == dnnl_success;
}

static dnnl_memory_desc_t side_free_layout(const struct dense_side *side)
{
    dnnl_memory_desc_t any;
    dnnl_memory_desc_init_by_tag(&any, side->plain.ndims, side->plain.dims, side->plain.data_type,
                                 dnnl_format_tag_any);
    return any;
}

/* Whether oneDNN supports the convolution, and it is large enough for a primitive. */
static bool convolution_fits(const struct ir_op *op)
{
    __typeof__(&op->attributes.conv) how = &op->attributes.conv;
    const struct ir_type *types[3] = {&op->operands[0]->type, &op->operands[1]->type, &op->results[0].type};
    double work = 1;
    uint32_t spatial = how->input_spatial.count;
    for (int side = 0; side < 3; side++)
        if (types[side]->element != IR_F32 || ir_type_elements(types[side]) == 0)
            return false;
    for (uint32_t k = 0; k < spatial; k++) {
        work *= (double)how->window.sizes.items[k];
        if (how->window.base_dilations.items[k] != 1 || how->window.pad_low[k] < 0 ||
            how->window.pad_high[k] < 0 || (how->window.reversal && how->window.reversal[k]))
            return false;
    }
    work *= (double)ir_type_elements(types[2]) * (double)types[1]->dims[how->kernel_input_feature];
    return spatial >= 1 && spatial <= 3 && how->batch_groups == 1 && work >= DENSE_WORK_LEAST;
}

static bool convolution_step(struct dense_step *step, const struct ir_op *op)
{
    __typeof__(&op->attributes.conv) how = &op->attributes.conv;
    dnnl_dims_t strides, dilations, low, high;
    if (!convolution_fits(op) ||
        !side_describe(&step->lhs, &op->operands[0]->type, how->input_batch, how->input_feature,
                       &how->input_spatial) ||
        !kernel_describe(&step->rhs, op) ||
        !side_describe(&step->out, &op->results[0].type, how->output_batch, how->output_feature,
                       &how->output_spatial))
        return false;
    for (uint32_t k = 0; k < how->input_spatial.count; k++) {
        strides[k] = how->window.strides.items[k];
        dilations[k] = how->window.window_dilations.items[k] - 1;
        low[k] = how->window.pad_low[k], high[k] = how->window.pad_high[k];
    }
    dnnl_memory_desc_t source = side_free_layout(&step->lhs), weights = side_free_layout(&step->rhs);
    dnnl_memory_desc_t target = side_free_layout(&step->out);
    dnnl_convolution_desc_t descriptor;
    return dnnl_dilated_convolution_forward_desc_init(
               &descriptor, dnnl_forward_inference, dnnl_convolution_direct, &source, &weights, NULL, &target,
               strides, dilations, low, high) == dnnl_success &&
           step_make(step, &descriptor);
}

/* --- running a step */

/* The memory objects of one run: three plain ones, those that the primitive prefers, and scratch. */
struct dense_run {
    dnnl_stream_t stream;
    dnnl_memory_t memories[7];
    int count;
    bool failed;
};

/* Returns a memory object over `data`, or over memory of its own if that is NULL. */
static dnnl_memory_t run_memory(struct dense_run *run, const dnnl_memory_desc_t *type, void *data)
{
    CHECK(run->count < 7);
    dnnl_memory_t memory = NULL;
    if (dnnl_memory_create(&memory, type, engine, data ? data : DNNL_MEMORY_ALLOCATE) != dnnl_success)
        run->failed = true;
    else
        run->memories[run->count++] = memory;
    return memory;
}

static void run_reorder(struct dense_run *run, const struct dense_side *side, dnnl_memory_t from,
                        dnnl_memory_t to)
{
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    if (!run->failed && dnnl_primitive_execute(side->reorder, run->stream, 2, args) != dnnl_success)
        run->failed = true;
}

/* Returns an operand in the layout that the primitive prefers. */
static dnnl_memory_t run_operand(struct dense_run *run, const struct dense_side *side,
                                 const struct tensor *tensor)
{
    dnnl_memory_t plain = run_memory(run, &side->plain, tensor->data);
    if (!side->reorder)
        return plain;
    dnnl_memory_t wanted = run_memory(run, &side->wanted, NULL);
    run_reorder(run, side, plain, wanted);
    return wanted;
}

static bool step_run(const struct dense_step *step, const struct tensor *lhs, const struct tensor *rhs,
                     struct tensor *result)
{
    struct dense_run run = {.count = 0};
    if (dnnl_stream_create(&run.stream, engine, dnnl_stream_default_flags) != dnnl_success)
        return false;
    dnnl_memory_t source = run_operand(&run, &step->lhs, lhs), weights = run_operand(&run, &step->rhs, rhs);
    dnnl_memory_t plain = run_memory(&run, &step->out.plain, result->data), target = plain;
    if (step->out.reorder)
        target = run_memory(&run, &step->out.wanted, NULL);
    dnnl_memory_t scratch = run_memory(&run, &step->scratch, NULL);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, source},
                              {DNNL_ARG_WEIGHTS, weights},
                              {DNNL_ARG_DST, target},
                              {DNNL_ARG_SCRATCHPAD, scratch}};
    if (!run.failed && dnnl_primitive_execute(step->primitive, run.stream, 4, args) != dnnl_success)
        run.failed = true;
    if (step->out.reorder)
        run_reorder(&run, &step->out, target, plain);
    if (!run.failed && dnnl_stream_wait(run.stream) != dnnl_success)
        run.failed = true;
    for (int k = 0; k < run.count; k++)
        dnnl_memory_destroy(run.memories[k]);
    dnnl_stream_destroy(run.stream);
    return !run.failed;
}

static const struct dense_step *step_find(const struct executable *executable, const struct ir_op *op)
{
    uint32_t low = 0, high = executable->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((uintptr_t)executable->steps[middle].op < (uintptr_t)op)
            low = middle + 1;
        else
            high = middle;
    }
    return low < executable->count && executable->steps[low].op == op ? &executable->steps[low] : NULL;
}

static int onednn_compute(const struct dense *dense, struct interpretation *run, const struct ir_op *op,
                          struct tensor *const *operands, struct tensor **results)
{
    const struct dense_step *step = step_find((const struct executable *)dense, op);
    if (!step)
        return 1;
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    engine_enter();
    bool ran;
    if (op->kind == IR_OP_DOT_GENERAL) {
        struct dot_matrices dot;
        if (dot_matrices_make(&dot, run, op, operands) < 0) {
            tensor_unref(result);
            return ERROR_LIMIT;
        }
        ran = step_run(step, dot.lhs, dot.rhs, result);
        dot_matrices_free(&dot);
    } else {
        ran = step_run(step, operands[0], operands[1], result);
    }
    if (!ran) {
        tensor_unref(result);
        return interpret_fail(run, op, ERROR_LIMIT, "oneDNN has no memory for the operation");
    }
    results[0] = result;
    return 0;
}

/* --- the executor */

static int block_steps(struct executable *executable, const struct ir_block *block, struct error *error)
{
    int code = 0;
    for (const struct ir_op *op = block->first; op && code == 0; op = op->next) {
        for (uint32_t k = 0; k < op->region_count && code == 0; k++)
            code = block_steps(executable, &op->regions[k], error);
        struct dense_step step = {.op = op};
        bool made = (op->kind == IR_OP_DOT_GENERAL && dot_step(&step, op)) ||
                    (op->kind == IR_OP_CONVOLUTION && convolution_step(&step, op));
        if (made && code == 0 && executable->count == executable->room) {
            uint32_t room = executable->room ? 2 * executable->room : 8;
            struct dense_step *steps = realloc(executable->steps, room * sizeof *steps);
            if (steps)
                executable->steps = steps, executable->room = room;
            else
                code = error_set(error, ERROR_LIMIT, "no memory for an executable");
        }
        if (made && code == 0)
            executable->steps[executable->count++] = step;
        else
            step_free(&step);
    }
    return code;
}

static int steps_compare(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct dense_step *)a)->op,
              y = (uintptr_t)((const struct dense_step *)b)->op;
    return (x > y) - (x < y);
}

static void onednn_release(struct executable *executable)
{
    for (uint32_t k = 0; k < executable->count; k++)
        step_free(&executable->steps[k]);
    free(executable->steps);
    plans_free(&executable->plans);
    free(executable);
}

static int onednn_compile(const struct executor *executor, const struct ir_module *module,
                          const struct ir_function *function, struct executable **executable,
                          struct error *error)
{
    engine_enter();
    struct executable *made = malloc(sizeof *made);
    if (!made)
        return error_set(error, ERROR_LIMIT, "no memory for an executable");
    *made = (struct executable){.dense = {.compute = onednn_compute}, .function = function};
    int code = plans_make(&made->plans, module, function, error);
    for (uint32_t k = 0; k < made->plans.count && code == 0; k++)
        code = block_steps(made, &made->plans.items[k]->function->body, error);
    if (made->count > 0)
        qsort(made->steps, made->count, sizeof *made->steps, steps_compare);
    if (code < 0)
        onednn_release(made);
    else
        *executable = made;
    return code;
}

static void onednn_launch(struct executable *executable, const struct flow_launch *launch)
{
    interpret_launch(&executable->plans, executable->function, &executable->dense, launch);
}

static int64_t onednn_peak(const struct executable *executable)
{
    return plans_find(&executable->plans, executable->function)->peak;
}

static const struct executor ONEDNN = {.name = "onednn",
                                       .compile = onednn_compile,
                                       .launch = onednn_launch,
                                       .release = onednn_release,
                                       .peak_bytes = onednn_peak};

const struct executor *executor_onednn(void)
{
    engine_enter();
    return engine ? &ONEDNN : NULL;
}
