/* fold.c - applies a region of scalars to elements of tensors. */
#include "flow/exec/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/kernels.h"
#include "flow/exec/lanes.h"

void element_copy(struct tensor *to, int64_t to_at, const struct tensor *from, int64_t from_at)
{
    size_t size = ir_element_size(to->type.element);
    memcpy((char *)to->data + (size_t)to_at * size, (const char *)from->data + (size_t)from_at * size, size);
}

static bool op_commutes(enum ir_op_kind kind)
{
    return kind == IR_OP_ADD || kind == IR_OP_MULTIPLY || kind == IR_OP_MAXIMUM || kind == IR_OP_MINIMUM ||
           kind == IR_OP_AND || kind == IR_OP_OR || kind == IR_OP_XOR;
}

enum ir_op_kind fold_binary(const struct ir_block *region)
{
    const struct ir_op *op = region->first;
    if (region->arg_count != 2 || !op || !op_commutes(op->kind) || op->next != region->last)
        return IR_OP_KINDS;
    const struct ir_value *a = op->operands[0], *b = op->operands[1], *args = region->args;
    bool of_both = (a == &args[0] && b == &args[1]) || (a == &args[1] && b == &args[0]);
    bool returned = region->last->operand_count == 1 && region->last->operands[0] == &op->results[0];
    static const union lanes NONE;
    union lanes none;
    return of_both && returned && lanes_binary(op->kind, args[0].type.element, &none, &NONE, 0) ? op->kind
                                                                                                : IR_OP_KINDS;
}

int folding_begin(struct folding *folding, struct interpretation *run, const struct ir_op *op,
                  const struct ir_block *region, bool folds)
{
    *folding = (struct folding){.run = run, .op = op, .region = region, .binary = IR_OP_KINDS};
    if (folds)
        folding->binary = fold_binary(region);
    if (folding->binary != IR_OP_KINDS)
        return 0;
    uint32_t results = region->last ? region->last->operand_count : 0;
    folding->args = calloc(region->arg_count + 1, sizeof *folding->args);
    folding->folded = calloc(results + 1, sizeof *folding->folded);
    bool fits = folding->args && folding->folded;
    for (uint32_t k = 0; fits && k < region->arg_count; k++)
        fits = (folding->args[k] = tensor_new(&region->args[k].type)) != NULL;
    return fits ? 0 : interpret_fail(run, op, ERROR_LIMIT, "no memory for scalars");
}

void folding_end(struct folding *folding)
{
    for (uint32_t k = 0; folding->args && k < folding->region->arg_count; k++)
        tensor_unref(folding->args[k]);
    free(folding->args);
    free(folding->folded);
    folding->args = folding->folded = NULL;
}

void folding_set(struct folding *folding, uint32_t index, const struct tensor *tensor, int64_t at)
{
    CHECK(index < folding->region->arg_count);
    element_copy(folding->args[index], 0, tensor, at);
}

int folding_apply(struct folding *folding, struct tensor **results)
{
    const struct ir_block *region = folding->region;
    int code = interpret_block(folding->run, region, folding->args, results);
    for (uint32_t k = 0; k < region->arg_count && code == 0; k++) {
        if (folding->args[k]->references == 1)
            continue; /* no result refers to this argument, so its memory can be reused */
        struct tensor *fresh = tensor_new(&region->args[k].type);
        if (!fresh) {
            for (uint32_t r = 0; r < region->last->operand_count; r++)
                tensor_unref(results[r]);
            return interpret_fail(folding->run, folding->op, ERROR_LIMIT, "no memory for a scalar");
        }
        tensor_unref(folding->args[k]);
        folding->args[k] = fresh;
    }
    return code;
}

int folding_holds(struct folding *folding, bool *holds)
{
    struct tensor *answer;
    int code = folding_apply(folding, &answer);
    if (code < 0)
        return code;
    *holds = *(const uint8_t *)answer->data;
    tensor_unref(answer);
    return 0;
}

/* Folds `count` ≤ LANES neighbours by the region's single operation. */
static void fold_run(enum ir_op_kind kind, const struct tensor *input, int64_t from, struct tensor *result,
                     int64_t to, uint32_t count)
{
    enum ir_element element = result->type.element;
    union lanes x, y;
    lanes_load(&x, element, result->data, to, 1, count);
    lanes_load(&y, element, input->data, from, 1, count);
    bool known = lanes_binary(kind, element, &x, &y, count);
    CHECK(known);
    lanes_store(&x, element, result->data, to, count);
}

int fold_element(struct folding *folding, struct tensor *const *inputs, int64_t from, struct tensor **results,
                 int64_t to)
{
    uint32_t count = folding->region->arg_count / 2;
    if (folding->binary != IR_OP_KINDS) {
        fold_run(folding->binary, inputs[0], from, results[0], to, 1);
        return 0;
    }
    struct tensor **folded = folding->folded;
    for (uint32_t k = 0; k < count; k++) {
        folding_set(folding, k, results[k], to);
        folding_set(folding, count + k, inputs[k], from);
    }
    int code = folding_apply(folding, folded);
    for (uint32_t k = 0; k < count && code == 0; k++) {
        element_copy(results[k], to, folded[k], 0);
        tensor_unref(folded[k]);
    }
    return code;
}

int fold_line(struct folding *folding, struct tensor *const *inputs, int64_t from, struct tensor **results,
              int64_t to, int64_t count)
{
    size_t size = ir_element_size(results[0]->type.element);
    if (folding->binary != IR_OP_KINDS && kernel_fold(folding->binary, results[0]->type.element,
                                                      (const char *)inputs[0]->data + (size_t)from * size,
                                                      count, (char *)results[0]->data + (size_t)to * size))
        return 0;
    int code = 0;
    for (int64_t k = 0; k < count && code == 0; k++)
        code = fold_element(folding, inputs, from + k, results, to);
    return code;
}

int fold_lines(struct folding *folding, struct tensor *const *inputs, int64_t from, struct tensor **results,
               int64_t to, int64_t count)
{
    int code = 0;
    if (folding->binary == IR_OP_KINDS) {
        for (int64_t k = 0; k < count && code == 0; k++)
            code = fold_element(folding, inputs, from + k, results, to + k);
        return code;
    }
    size_t size = ir_element_size(results[0]->type.element);
    char *x = (char *)results[0]->data + (size_t)to * size;
    if (kernel_binary(folding->binary, results[0]->type.element, x,
                      (const char *)inputs[0]->data + (size_t)from * size, count, x))
        return 0;
    for (int64_t first = 0; first < count; first += LANES)
        fold_run(folding->binary, inputs[0], from + first, results[0], to + first, lanes_count(count, first));
    return 0;
}

int fold_tensor(struct folding *folding, struct tensor *input, struct tensor *result)
{
    return fold_lines(folding, &input, 0, &result, 0, ir_type_elements(&result->type));
}
