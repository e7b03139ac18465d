/* interpret_contract.c - products of matrices, convolutions, and the solution and transformation of matrices.
 *
 * Sums of f32 are accumulated in f32, as accelerators do: test programs expect these digits. Other sums are
 * accumulated in double (complex double, 64-bit integers) and rounded once.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/dot.h"
#include "flow/exec/interpret.h"
#include "flow/exec/kernels.h"
#include "flow/exec/lanes.h"

/* All elements of a tensor, widened once because these operations read them repeatedly. */
struct wide {
    enum lane_class class;
    bool narrow;       /* sums are rounded to f32 */
    double complex *c; /* the class selects one of the pointers */
    double *f;
    int64_t *i;
    void *memory;
};

static bool wide_new(struct wide *wide, enum ir_element element, int64_t elements)
{
    wide->class = lane_class_of(element);
    wide->narrow = element == IR_F32;
    size_t size = wide->class == LANE_COMPLEX ? sizeof *wide->c : sizeof *wide->f;
    wide->memory = calloc((size_t)elements + 1, size);
    wide->c = wide->memory, wide->f = wide->memory, wide->i = wide->memory;
    return wide->memory != NULL;
}

/* Returns the element type whose numbers a class uses. */
static enum ir_element wide_element(enum lane_class class)
{
    static const enum ir_element WIDEST[] = {[LANE_BOOL] = IR_I1,
                                             [LANE_SIGNED] = IR_I64,
                                             [LANE_UNSIGNED] = IR_U64,
                                             [LANE_FLOAT] = IR_F64,
                                             [LANE_COMPLEX] = IR_C128};
    return WIDEST[class];
}

static void wide_store(const struct wide *wide, enum lane_class class, struct tensor *tensor)
{
    lanes_narrow(wide->memory, wide_element(class), tensor->type.element, tensor->data,
                 ir_type_elements(&tensor->type));
}

/* sum[to] += a[x] * b[y] */
static inline void wide_multiply_add(struct wide *sum, int64_t to, const struct wide *a, int64_t x,
                                     const struct wide *b, int64_t y)
{
    if (sum->narrow)
        sum->f[to] = (float)(sum->f[to] + (float)(a->f[x] * b->f[y]));
    else if (sum->class == LANE_FLOAT)
        sum->f[to] += a->f[x] * b->f[y];
    else if (sum->class == LANE_COMPLEX)
        sum->c[to] += a->c[x] * b->c[y];
    else
        sum->i[to] = (int64_t)((uint64_t)sum->i[to] + (uint64_t)a->i[x] * (uint64_t)b->i[y]);
}

/* --- dot_general */

/* A loop over some dimensions of the operands and the result. */
struct axis {
    int64_t extent, lhs, rhs, out; /* strides in elements; 0: the tensor lacks the dimension */
};

struct axes {
    struct axis items[3 * IR_RANK_MAX];
    int32_t count;
};

static void axis_add(struct axes *axes, int64_t extent, int64_t lhs, int64_t rhs, int64_t out)
{
    axes->items[axes->count++] = (struct axis){extent, lhs, rhs, out};
}

/* The result's dimensions are: batch, the left operand's free ones, the right operand's free ones. The
 * contracted dimensions follow as the innermost loops. */
static struct axes dot_axes(const struct ir_op *op, const struct ir_type *lhs, const struct ir_type *rhs,
                            const struct ir_type *out)
{
    __typeof__(&op->attributes.dot) how = &op->attributes.dot;
    int64_t of_lhs[IR_RANK_MAX], of_rhs[IR_RANK_MAX], of_out[IR_RANK_MAX];
    strides_of(lhs, of_lhs), strides_of(rhs, of_rhs), strides_of(out, of_out);
    struct axes axes = {.count = 0};
    int32_t at = 0;
    for (uint32_t k = 0; k < how->lhs_batch.count; k++, at++)
        axis_add(&axes, out->dims[at], of_lhs[how->lhs_batch.items[k]], of_rhs[how->rhs_batch.items[k]],
                 of_out[at]);
    for (int32_t d = 0; d < lhs->rank; d++)
        if (!ir_ints_have(how->lhs_batch, d) && !ir_ints_have(how->lhs_contract, d))
            axis_add(&axes, lhs->dims[d], of_lhs[d], 0, of_out[at++]);
    for (int32_t d = 0; d < rhs->rank; d++)
        if (!ir_ints_have(how->rhs_batch, d) && !ir_ints_have(how->rhs_contract, d))
            axis_add(&axes, rhs->dims[d], 0, of_rhs[d], of_out[at++]);
    for (uint32_t k = 0; k < how->lhs_contract.count; k++) {
        int64_t d = how->lhs_contract.items[k];
        axis_add(&axes, lhs->dims[d], of_lhs[d], of_rhs[how->rhs_contract.items[k]], 0);
    }
    return axes;
}

static void dot_walk(const struct axes *axes, int32_t depth, struct wide *sum, int64_t to,
                     const struct wide *lhs, int64_t x, const struct wide *rhs, int64_t y)
{
    if (depth == axes->count) {
        wide_multiply_add(sum, to, lhs, x, rhs, y);
        return;
    }
    const struct axis *axis = &axes->items[depth];
    if (depth + 1 == axes->count) {
        for (int64_t k = 0; k < axis->extent; k++)
            wide_multiply_add(sum, to + k * axis->out, lhs, x + k * axis->lhs, rhs, y + k * axis->rhs);
        return;
    }
    for (int64_t k = 0; k < axis->extent; k++)
        dot_walk(axes, depth + 1, sum, to + k * axis->out, lhs, x + k * axis->lhs, rhs, y + k * axis->rhs);
}

/* Widens an operand. Operands of other types than the result are first converted to its class, as
 * specified. */
static bool wide_as(struct wide *wide, const struct tensor *tensor, enum lane_class class)
{
    int64_t elements = ir_type_elements(&tensor->type);
    if (!wide_new(wide, wide_element(class), elements))
        return false;
    lanes_widen(wide->memory, wide_element(class), tensor->type.element, tensor->data, elements);
    return true;
}

/* Computes products of f32 by matrices without gaps. */
static int dot_f32(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                   struct tensor *result)
{
    struct dot_matrices dot;
    int code = dot_matrices_make(&dot, run, op, operands);
    if (code < 0)
        return code;
    const float *lhs = dot.lhs->data, *rhs = dot.rhs->data;
    float *out = result->data;
    for (int64_t k = 0; k < dot.shape.batch; k++)
        kernel_matmul(
            dot.shape.rows, dot.shape.columns, dot.shape.inner, lhs + k * dot.shape.rows * dot.shape.inner,
            rhs + k * dot.shape.inner * dot.shape.columns, out + k * dot.shape.rows * dot.shape.columns);
    dot_matrices_free(&dot);
    return 0;
}

int interpret_dot(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                  struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    if (op->operands[0]->type.element == IR_F32 && op->operands[1]->type.element == IR_F32 &&
        result->type.element == IR_F32) {
        int code = dot_f32(run, op, operands, result);
        if (code < 0)
            tensor_unref(result);
        results[0] = result;
        return code;
    }
    struct axes axes = dot_axes(op, &operands[0]->type, &operands[1]->type, &result->type);
    struct wide lhs = {0}, rhs = {0}, sum = {0};
    enum lane_class class = lane_class_of(result->type.element);
    bool fits = wide_new(&sum, result->type.element, ir_type_elements(&result->type)) &&
                wide_as(&lhs, operands[0], class) && wide_as(&rhs, operands[1], class);
    if (fits) {
        if (ir_type_elements(&result->type) > 0) /* otherwise a free dimension may be huge */
            dot_walk(&axes, 0, &sum, 0, &lhs, 0, &rhs, 0);
        wide_store(&sum, class, result);
    }
    free(lhs.memory), free(rhs.memory), free(sum.memory);
    if (!fits) {
        tensor_unref(result);
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the operands");
    }
    results[0] = result;
    return 0;
}

/* --- convolution */

/* Computes the output element at `out`: the sum over the window and the input features of its group. */
static void convolve_at(const struct ir_op *op, const struct ir_type *input, const struct ir_type *kernel,
                        const struct ir_type *output, const int64_t *out, struct wide *sum, int64_t to,
                        const struct wide *x, const struct wide *w)
{
    __typeof__(&op->attributes.conv) how = &op->attributes.conv;
    int64_t of_input[IR_RANK_MAX], of_kernel[IR_RANK_MAX];
    strides_of(input, of_input), strides_of(kernel, of_kernel);
    int32_t spatial = input->rank - 2;
    int64_t outputs = output->dims[how->output_feature], feature = out[how->output_feature];
    int64_t inputs = kernel->dims[how->kernel_input_feature]; /* of one group */
    int64_t feature_group = feature / (outputs / how->feature_groups);
    int64_t batch_group = feature / (outputs / how->batch_groups);
    int64_t batch = out[how->output_batch] + batch_group * output->dims[how->output_batch];
    int64_t window[IR_RANK_MAX] = {0}, sizes[IR_RANK_MAX] = {0};
    for (int32_t d = 0; d < spatial; d++) {
        sizes[d] = kernel->dims[how->kernel_spatial.items[d]];
        if (sizes[d] == 0)
            return;
    }
    do {
        int64_t from = batch * of_input[how->input_batch],
                by = feature * of_kernel[how->kernel_output_feature];
        bool inside = true;
        for (int32_t d = 0; d < spatial && inside; d++) {
            int64_t at = out[how->output_spatial.items[d]] * how->window.strides.items[d] -
                         how->window.pad_low[d] + window[d] * how->window.window_dilations.items[d];
            int64_t dilation = how->window.base_dilations.items[d];
            inside =
                at >= 0 && at % dilation == 0 && at / dilation < input->dims[how->input_spatial.items[d]];
            from += at / dilation * of_input[how->input_spatial.items[d]];
            int64_t reversed = how->window.reversal && how->window.reversal[d];
            by += (reversed ? sizes[d] - 1 - window[d] : window[d]) * of_kernel[how->kernel_spatial.items[d]];
        }
        for (int64_t k = 0; k < inputs && inside; k++)
            wide_multiply_add(sum, to, x, from + (feature_group * inputs + k) * of_input[how->input_feature],
                              w, by + k * of_kernel[how->kernel_input_feature]);
    } while (index_next(window, sizes, spatial));
}

int interpret_convolution(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                          struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    struct wide x = {0}, w = {0}, sum = {0};
    enum lane_class class = lane_class_of(result->type.element);
    int64_t elements = ir_type_elements(&result->type), index[IR_RANK_MAX] = {0};
    bool fits = wide_new(&sum, result->type.element, elements) && wide_as(&x, operands[0], class) &&
                wide_as(&w, operands[1], class);
    for (int64_t at = 0; at < elements && fits; at++) {
        convolve_at(op, &operands[0]->type, &operands[1]->type, &result->type, index, &sum, at, &x, &w);
        index_next(index, result->type.dims, result->type.rank);
    }
    if (fits)
        wide_store(&sum, class, result);
    free(x.memory), free(w.memory), free(sum.memory);
    if (!fits) {
        tensor_unref(result);
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the operands");
    }
    results[0] = result;
    return 0;
}

/* --- matrices: the last two dimensions; the dimensions before them are a batch */

/* Returns a copy of a tensor's elements as complex numbers, which the caller frees; NULL if memory is
 * exhausted. */
static double complex *complex_of(const struct tensor *tensor)
{
    int64_t elements = ir_type_elements(&tensor->type);
    double complex *numbers = calloc((size_t)elements + 1, sizeof *numbers);
    if (numbers)
        lanes_widen(numbers, IR_C128, tensor->type.element, tensor->data, elements);
    return numbers;
}

static void complex_store(const double complex *numbers, struct tensor *tensor)
{
    lanes_narrow(numbers, IR_C128, tensor->type.element, tensor->data, ir_type_elements(&tensor->type));
}

/* Cholesky–Banachiewicz: l[i][j] = (a[i][j] - sum l[i][k] conj(l[j][k])) / l[j][j]. */
static void cholesky_in_place(double complex *a, int64_t n, bool lower)
{
    double complex *l = a;
#define AT(i, j) l[(lower ? (i) : (j)) * n + (lower ? (j) : (i))]
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double complex sum = lower ? AT(i, j) : conj(AT(i, j));
            for (int64_t k = 0; k < j; k++)
                sum -= (lower ? AT(i, k) : conj(AT(i, k))) * (lower ? conj(AT(j, k)) : AT(j, k));
            double complex value = sum / (i == j ? 1 : AT(j, j));
            if (i == j) /* NaN where the matrix is not positive definite */
                value = creal(sum) >= 0 ? sqrt(creal(sum)) : NAN;
            AT(i, j) = lower ? value : conj(value);
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            AT(i, j) = 0;
#undef AT
}

int interpret_cholesky(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                       struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    double complex *numbers = result ? complex_of(operands[0]) : NULL;
    if (!numbers) {
        tensor_unref(result);
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the operand");
    }
    int64_t n = result->type.dims[result->type.rank - 1], elements = ir_type_elements(&result->type);
    for (int64_t at = 0; at < elements; at += n * n)
        cholesky_in_place(numbers + at, n, op->attributes.cholesky.lower);
    complex_store(numbers, result);
    free(numbers);
    results[0] = result;
    return 0;
}

/* Returns an element of op(a); the triangle that `a` does not use counts as zero. */
static double complex triangle_at(const struct ir_op *op, const double complex *a, int64_t n, int64_t i,
                                  int64_t j)
{
    __typeof__(&op->attributes.triangular) how = &op->attributes.triangular;
    bool swapped = how->transpose_a != IR_NO_TRANSPOSE;
    int64_t row = swapped ? j : i, column = swapped ? i : j;
    if (row == column && how->unit_diagonal)
        return 1;
    if (how->lower ? column > row : column < row)
        return 0;
    double complex number = a[row * n + column];
    return how->transpose_a == IR_ADJOINT ? conj(number) : number;
}

/* Solves op(a) x = b for one vector (left side), or x op(a) = b, by substitution. x replaces b; its elements
 * are `step` apart. */
static void triangular_solve_vector(const struct ir_op *op, const double complex *a, int64_t n,
                                    double complex *b, int64_t step)
{
    bool left = op->attributes.triangular.left_side;
    bool transposed = op->attributes.triangular.transpose_a != IR_NO_TRANSPOSE;
    bool forward = (op->attributes.triangular.lower != transposed) == left;
    for (int64_t k = 0; k < n; k++) {
        int64_t i = forward ? k : n - 1 - k;
        double complex sum = b[i * step];
        for (int64_t m = 0; m < k; m++) {
            int64_t j = forward ? m : n - 1 - m;
            sum -= (left ? triangle_at(op, a, n, i, j) : triangle_at(op, a, n, j, i)) * b[j * step];
        }
        b[i * step] = sum / triangle_at(op, a, n, i, i);
    }
}

int interpret_triangular(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                         struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    double complex *a = result ? complex_of(operands[0]) : NULL, *b = a ? complex_of(operands[1]) : NULL;
    if (!b) {
        free(a);
        tensor_unref(result);
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the operands");
    }
    const struct ir_type *type = &result->type;
    int64_t n = operands[0]->type.dims[type->rank - 1], rows = type->dims[type->rank - 2];
    int64_t columns = type->dims[type->rank - 1], elements = ir_type_elements(type);
    bool left = op->attributes.triangular.left_side;
    for (int64_t at = 0, matrix = 0; at < elements; at += rows * columns, matrix += n * n)
        for (int64_t k = 0; k < (left ? columns : rows); k++)
            triangular_solve_vector(op, a + matrix, n, b + at + (left ? k : k * columns), left ? columns : 1);
    complex_store(b, result);
    free(a), free(b);
    results[0] = result;
    return 0;
}

/* --- Fourier transforms: by the definition, one dimension after another */

/* Transforms `n` numbers, `step` apart, in place. `scratch` has space for n. */
static void fourier_line(double complex *line, int64_t n, int64_t step, bool inverse, double complex *scratch)
{
    double turn = (inverse ? 2 : -2) * M_PI / (double)n;
    for (int64_t k = 0; k < n; k++) {
        scratch[k] = 0;
        for (int64_t j = 0, angle = 0; j < n; j++, angle = (angle + k) % n) /* j * k modulo n */
            scratch[k] += line[j * step] * cexp(I * (turn * (double)angle));
    }
    for (int64_t k = 0; k < n; k++)
        line[k * step] = inverse ? scratch[k] / (double)n : scratch[k];
}

/* Transforms dimension `d` of an array with those sizes. */
static void fourier_dimension(double complex *numbers, const int64_t *dims, int32_t rank, int32_t d,
                              bool inverse, double complex *scratch)
{
    int64_t step = 1, outer = 1;
    for (int32_t k = d + 1; k < rank; k++)
        step *= dims[k];
    for (int32_t k = 0; k < d; k++)
        outer *= dims[k];
    for (int64_t a = 0; a < outer; a++)
        for (int64_t b = 0; b < step; b++)
            fourier_line(numbers + a * dims[d] * step + b, dims[d], step, inverse, scratch);
}

/* Completes the half spectrum of a real signal: element n - k of the last dimension is the conjugate of
 * element k, with the other transformed dimensions reversed. */
static void spectrum_complete(const double complex *half, const struct ir_type *from, double complex *full,
                              const int64_t *dims, int32_t transformed)
{
    int32_t rank = from->rank;
    int64_t index[IR_RANK_MAX] = {0}, at = 0;
    do {
        int64_t source = 0;
        bool mirrored = index[rank - 1] >= from->dims[rank - 1];
        for (int32_t d = 0; d < rank; d++) {
            int64_t k = index[d];
            if (mirrored && d >= rank - transformed)
                k = (dims[d] - k) % dims[d];
            source = source * from->dims[d] + k;
        }
        full[at++] = mirrored ? conj(half[source]) : half[source];
    } while (index_next(index, dims, rank));
}

int interpret_fft(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                  struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    const struct ir_type *from = &operands[0]->type, *to = &result->type;
    int32_t rank = from->rank, transformed = (int32_t)op->attributes.fft.lengths.count;
    enum ir_fft type = op->attributes.fft.type;
    int64_t dims[IR_RANK_MAX], whole = 1, longest = 1;
    for (int32_t d = 0; d < rank; d++) {
        dims[d] = type == IR_IRFFT ? to->dims[d] : from->dims[d];
        whole *= dims[d];
        longest = dims[d] > longest ? dims[d] : longest;
    }
    double complex *read = complex_of(operands[0]), *full = calloc((size_t)whole + 1, sizeof *full);
    double complex *scratch = calloc((size_t)longest, sizeof *scratch);
    if (read && full && scratch && whole > 0) {
        if (type == IR_IRFFT)
            spectrum_complete(read, from, full, dims, transformed);
        else
            memcpy(full, read, (size_t)whole * sizeof *full);
        for (int32_t d = rank - transformed; d < rank; d++)
            fourier_dimension(full, dims, rank, d, type == IR_IFFT || type == IR_IRFFT, scratch);
        int64_t index[IR_RANK_MAX] = {0}, at = 0;
        for (bool more = type == IR_RFFT && ir_type_elements(to) > 0; more;
             more = index_next(index, to->dims, rank)) { /* the first half of the last dimension */
            int64_t source = 0;
            for (int32_t d = 0; d < rank; d++)
                source = source * dims[d] + index[d];
            full[at++] = full[source];
        }
        complex_store(full, result);
    }
    bool fits = read && full && scratch;
    free(read), free(full), free(scratch);
    if (!fits) {
        tensor_unref(result);
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the operand");
    }
    results[0] = result;
    return 0;
}
