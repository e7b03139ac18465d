/* fold.c - applies a region of scalars to elements of tensors. */
#include "flow/exec/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
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

/* The commutative operation that the region is, or IR_OP_KINDS. */
static enum ir_op_kind region_binary(const struct ir_block *region)
{
    const struct ir_op *op = region->first;
    if (region->arg_count != 2 || !op || !op_commutes(op->kind) || op->next != region->last)
        return IR_OP_KINDS;
    const struct ir_value *a = op->operands[0], *b = op->operands[1], *args = region->args;
    bool of_both = (a == &args[0] && b == &args[1]) || (a == &args[1] && b == &args[0]);
    bool returned = region->last->operand_count == 1 && region->last->operands[0] == &op->results[0];
    return of_both && returned ? op->kind : IR_OP_KINDS;
}

int folding_begin(struct folding *folding, struct interpretation *run, const struct ir_op *op,
                  const struct ir_block *region)
{
    *folding = (struct folding){.run = run, .op = op, .region = region, .binary = region_binary(region)};
    folding->args = calloc(region->arg_count + 1, sizeof *folding->args);
    for (uint32_t k = 0; folding->args && k < region->arg_count; k++)
        if (!(folding->args[k] = tensor_new(&region->args[k].type)))
            return interpret_fail(run, op, ERROR_LIMIT, "no memory for scalars");
    return folding->args ? 0 : interpret_fail(run, op, ERROR_LIMIT, "no memory for scalars");
}

void folding_end(struct folding *folding)
{
    for (uint32_t k = 0; folding->args && k < folding->region->arg_count; k++)
        tensor_unref(folding->args[k]);
    free(folding->args);
    folding->args = NULL;
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
            continue; /* no result is this argument: its memory may be used again */
        struct tensor *fresh = tensor_new(&region->args[k].type);
        if (!fresh)
            abort(); /* a scalar */
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

/* Folds `count` neighbours by the region's one operation. */
static bool fold_run(enum ir_op_kind kind, const struct tensor *input, int64_t from, struct tensor *result,
                     int64_t to, uint32_t count)
{
    enum ir_element element = result->type.element;
    union lanes x, y;
    lanes_load(&x, element, result->data, to, 1, count);
    lanes_load(&y, element, input->data, from, 1, count);
    if (!lanes_binary(kind, element, &x, &y, count))
        return false;
    lanes_store(&x, element, result->data, to, count);
    return true;
}

int fold_element(struct folding *folding, struct tensor *const *inputs, int64_t from, struct tensor **results,
                 int64_t to)
{
    uint32_t count = folding->region->arg_count / 2;
    if (folding->binary != IR_OP_KINDS && fold_run(folding->binary, inputs[0], from, results[0], to, 1))
        return 0;
    struct tensor *folded[IR_OPERANDS_MAX];
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

int fold_tensor(struct folding *folding, struct tensor *input, struct tensor *result)
{
    int64_t elements = ir_type_elements(&result->type);
    int code = 0;
    for (int64_t first = 0; first < elements && code == 0; first += LANES) {
        uint32_t count = elements - first < LANES ? (uint32_t)(elements - first) : LANES;
        if (folding->binary != IR_OP_KINDS && fold_run(folding->binary, input, first, result, first, count))
            continue;
        for (uint32_t k = 0; k < count && code == 0; k++)
            code = fold_element(folding, &input, first + k, &result, first + k);
    }
    return code;
}
