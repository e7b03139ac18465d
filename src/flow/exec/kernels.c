/* kernels.c - loops over f32 and f64 without widening. */
#include "flow/exec/kernels.h"

#include <math.h>
#include <string.h>

#include "base/check.h"

/* --- one and two operands */

/* The larger and smaller of two numbers; NaN wins, and -0 is below +0, as in interpret_elementwise.c. */
#define LARGER(a, b)                                                                                         \
    ((a) != (a) || (b) != (b) ? (a) + (b) : (a) > (b) || ((a) == (b) && !signbit(a)) ? (a) : (b))
#define SMALLER(a, b)                                                                                        \
    ((a) != (a) || (b) != (b) ? (a) + (b) : (a) < (b) || ((a) == (b) && signbit(a)) ? (a) : (b))

#define LOOP(expression)                                                                                     \
    for (int64_t k = 0; k < count; k++)                                                                      \
        out[k] = (expression);                                                                               \
    return true

#define DEFINE_BINARY(name, type)                                                                            \
    static bool name(enum ir_op_kind kind, const type *x, const type *y, int64_t count, type *out)           \
    {                                                                                                        \
        switch (kind) {                                                                                      \
        case IR_OP_ADD:                                                                                      \
            LOOP(x[k] + y[k]);                                                                               \
        case IR_OP_SUBTRACT:                                                                                 \
            LOOP(x[k] - y[k]);                                                                               \
        case IR_OP_MULTIPLY:                                                                                 \
            LOOP(x[k] * y[k]);                                                                               \
        case IR_OP_DIVIDE:                                                                                   \
            LOOP(x[k] / y[k]);                                                                               \
        case IR_OP_MAXIMUM:                                                                                  \
            LOOP(LARGER(x[k], y[k]));                                                                        \
        case IR_OP_MINIMUM:                                                                                  \
            LOOP(SMALLER(x[k], y[k]));                                                                       \
        default:                                                                                             \
            return false;                                                                                    \
        }                                                                                                    \
    }
DEFINE_BINARY(binary_f32, float)
DEFINE_BINARY(binary_f64, double)

bool kernel_binary(enum ir_op_kind kind, enum ir_element element, const void *x, const void *y, int64_t count,
                   void *out)
{
    CHECK(count >= 0);
    if (element == IR_F32)
        return binary_f32(kind, x, y, count, out);
    return element == IR_F64 && binary_f64(kind, x, y, count, out);
}

static bool unary_f32(enum ir_op_kind kind, const float *x, int64_t count, float *out)
{
    switch (kind) {
    case IR_OP_ABS:
        LOOP(fabsf(x[k]));
    case IR_OP_NEGATE:
        LOOP(-x[k]);
    case IR_OP_SQRT:
        LOOP(sqrtf(x[k]));
    default:
        return false;
    }
}

bool kernel_unary(enum ir_op_kind kind, enum ir_element element, const void *x, int64_t count, void *out)
{
    CHECK(count >= 0);
    return element == IR_F32 && unary_f32(kind, x, count, out);
}

#define DEFINE_FOLD(name, type)                                                                              \
    static bool name(enum ir_op_kind kind, const type *x, int64_t count, type *out)                          \
    {                                                                                                        \
        type sum = *out;                                                                                     \
        switch (kind) {                                                                                      \
        case IR_OP_ADD:                                                                                      \
            for (int64_t k = 0; k < count; k++)                                                              \
                sum += x[k];                                                                                 \
            break;                                                                                           \
        case IR_OP_MULTIPLY:                                                                                 \
            for (int64_t k = 0; k < count; k++)                                                              \
                sum *= x[k];                                                                                 \
            break;                                                                                           \
        case IR_OP_MAXIMUM:                                                                                  \
            for (int64_t k = 0; k < count; k++)                                                              \
                sum = LARGER(sum, x[k]);                                                                     \
            break;                                                                                           \
        case IR_OP_MINIMUM:                                                                                  \
            for (int64_t k = 0; k < count; k++)                                                              \
                sum = SMALLER(sum, x[k]);                                                                    \
            break;                                                                                           \
        default:                                                                                             \
            return false;                                                                                    \
        }                                                                                                    \
        *out = sum;                                                                                          \
        return true;                                                                                         \
    }
DEFINE_FOLD(fold_f32, float)
DEFINE_FOLD(fold_f64, double)

bool kernel_fold(enum ir_op_kind kind, enum ir_element element, const void *x, int64_t count, void *sum)
{
    CHECK(count >= 0);
    if (element == IR_F32)
        return fold_f32(kind, x, count, sum);
    return element == IR_F64 && fold_f64(kind, x, count, sum);
}

/* --- moving elements */

#define DEFINE_MOVES(bits)                                                                                   \
    static bool select_##bits(const uint8_t *chosen, const uint##bits##_t *x, const uint##bits##_t *y,       \
                              int64_t count, uint##bits##_t *out)                                            \
    {                                                                                                        \
        LOOP(chosen[k] ? x[k] : y[k]);                                                                       \
    }                                                                                                        \
    static void copy_##bits(const uint##bits##_t *from, int64_t step, int64_t count, uint##bits##_t *out)    \
    {                                                                                                        \
        if (step == 0)                                                                                       \
            for (int64_t k = 0; k < count; k++)                                                              \
                out[k] = *from;                                                                              \
        else                                                                                                 \
            for (int64_t k = 0; k < count; k++)                                                              \
                out[k] = from[k * step];                                                                     \
    }
DEFINE_MOVES(8)
DEFINE_MOVES(16)
DEFINE_MOVES(32)
DEFINE_MOVES(64)

bool kernel_select(size_t size, const uint8_t *chosen, const void *x, const void *y, int64_t count, void *out)
{
    switch (size) {
    case 1:
        return select_8(chosen, x, y, count, out);
    case 2:
        return select_16(chosen, x, y, count, out);
    case 4:
        return select_32(chosen, x, y, count, out);
    case 8:
        return select_64(chosen, x, y, count, out);
    default:
        return false;
    }
}

void kernel_copy(size_t size, const void *from, int64_t step, int64_t count, void *out)
{
    CHECK(count >= 0);
    if (step == 1 && count > 0)
        memcpy(out, from, (size_t)count * size);
    else if (size == 1)
        copy_8(from, step, count, out);
    else if (size == 2)
        copy_16(from, step, count, out);
    else if (size == 4)
        copy_32(from, step, count, out);
    else if (size == 8)
        copy_64(from, step, count, out);
    else
        for (int64_t k = 0; k < count; k++)
            memcpy((char *)out + (size_t)k * size, (const char *)from + k * step * (int64_t)size, size);
}

/* --- products of matrices */

enum { TILE_ROWS = 4, TILE_COLUMNS = 8, PANEL = 256 };

/* Four numbers at once, at any address. */
typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));

/* Computes a full tile of c, whose sums stay in registers: c += a * b over `inner` steps. The rows of b have
 * TILE_COLUMNS numbers. */
static void tile_full(int64_t columns, int64_t inner, const float *a, int64_t a_row, const float *b, float *c)
{
    quad sum[TILE_ROWS][2];
    for (int i = 0; i < TILE_ROWS; i++) {
        sum[i][0] = *(const quad *)(c + i * columns);
        sum[i][1] = *(const quad *)(c + i * columns + 4);
    }
    for (int64_t p = 0; p < inner; p++) {
        quad left = *(const quad *)(b + p * TILE_COLUMNS), right = *(const quad *)(b + p * TILE_COLUMNS + 4);
        for (int i = 0; i < TILE_ROWS; i++) {
            float factor = a[i * a_row + p];
            sum[i][0] += factor * left;
            sum[i][1] += factor * right;
        }
    }
    for (int i = 0; i < TILE_ROWS; i++) {
        *(quad *)(c + i * columns) = sum[i][0];
        *(quad *)(c + i * columns + 4) = sum[i][1];
    }
}

/* Rows and columns that fill no tile. */
static void tile_rest(int64_t rows, int64_t width, int64_t columns, int64_t inner, const float *a,
                      int64_t a_row, const float *b, float *c)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = 0; p < inner; p++) {
            float factor = a[i * a_row + p];
            for (int64_t j = 0; j < width; j++)
                c[i * columns + j] += factor * b[p * columns + j];
        }
}

void kernel_matmul(int64_t rows, int64_t columns, int64_t inner, const float *a, const float *b, float *c)
{
    if (rows == 0 || columns == 0)
        return;
    memset(c, 0, (size_t)(rows * columns) * sizeof *c);
    float strip[PANEL * TILE_COLUMNS]; /* of b, without gaps: stays in the cache for all rows */
    for (int64_t p = 0; p < inner; p += PANEL) {
        int64_t depth = inner - p < PANEL ? inner - p : PANEL;
        for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
            const float *b_tile = b + p * columns + j;
            int64_t width = columns - j < TILE_COLUMNS ? columns - j : TILE_COLUMNS;
            for (int64_t k = 0; k < depth && width == TILE_COLUMNS; k++)
                memcpy(strip + k * TILE_COLUMNS, b_tile + k * columns, TILE_COLUMNS * sizeof *strip);
            for (int64_t i = 0; i < rows; i += TILE_ROWS) {
                const float *a_tile = a + i * inner + p;
                float *c_tile = c + i * columns + j;
                int64_t height = rows - i < TILE_ROWS ? rows - i : TILE_ROWS;
                if (height == TILE_ROWS && width == TILE_COLUMNS)
                    tile_full(columns, depth, a_tile, inner, strip, c_tile);
                else
                    tile_rest(height, width, columns, depth, a_tile, inner, b_tile, c_tile);
            }
        }
    }
}
