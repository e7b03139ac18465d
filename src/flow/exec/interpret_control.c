/* interpret_control.c - operations that run regions or other functions, and operations that belong to no
 * other file. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/interpret.h"

int interpret_call(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                   struct tensor **results)
{
    return interpret_function(run, op->attributes.call.callee, operands, results);
}

int interpret_if(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                 struct tensor **results)
{
    bool holds = *(const uint8_t *)operands[0]->data;
    return interpret_block(run, &op->regions[holds ? 0 : 1], NULL, results);
}

/* Runs a branch. An index outside the branches selects the last one. */
int interpret_case(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                   struct tensor **results)
{
    int64_t index = tensor_integer(operands[0], 0);
    if (index < 0 || index >= op->region_count)
        index = op->region_count - 1;
    return interpret_block(run, &op->regions[index], NULL, results);
}

int interpret_while(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                    struct tensor **results)
{
    uint32_t count = op->operand_count;
    struct tensor **state = calloc(2 * (size_t)count + 1, sizeof *state), **next = state + count;
    if (!state)
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the state");
    for (uint32_t k = 0; k < count; k++)
        state[k] = tensor_ref(operands[k]);
    int code;
    for (;;) {
        struct tensor *answer;
        if ((code = interpret_block(run, &op->regions[0], state, &answer)) < 0)
            break;
        bool goes_on = *(const uint8_t *)answer->data;
        tensor_unref(answer);
        if (!goes_on || (code = interpret_block(run, &op->regions[1], state, next)) < 0)
            break;
        for (uint32_t k = 0; k < count; k++) {
            tensor_unref(state[k]);
            state[k] = next[k];
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        if (code == 0)
            results[k] = state[k];
        else
            tensor_unref(state[k]);
    }
    free(state);
    return code;
}

int interpret_barrier(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                      struct tensor **results)
{
    for (uint32_t k = 0; k < op->operand_count; k++)
        results[k] = tensor_ref(operands[k]);
    return 0;
}

int interpret_token(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                    struct tensor **results)
{
    results[0] = interpret_result(run, op, 0);
    return results[0] ? 0 : ERROR_LIMIT;
}

/* --- random bits: counter-based generators of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011 */

static uint32_t rotate_left(uint32_t word, int bits)
{
    return word << bits | word >> (32 - bits);
}

/* Threefry-2x32 with 20 rounds. */
static void threefry(const uint32_t key[2], uint32_t word[2])
{
    static const int ROTATIONS[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    uint32_t keys[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA};
    word[0] += keys[0], word[1] += keys[1];
    for (uint32_t group = 0; group < 5; group++) {
        for (int k = 0; k < 4; k++) {
            word[0] += word[1];
            word[1] = rotate_left(word[1], ROTATIONS[group & 1][k]) ^ word[0];
        }
        word[0] += keys[(group + 1) % 3];
        word[1] += keys[(group + 2) % 3] + group + 1;
    }
}

/* Philox-4x32 with 10 rounds. */
static void philox(uint64_t key, uint32_t word[4])
{
    uint32_t keys[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * word[0], b = (uint64_t)0xCD9E8D57 * word[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ word[1] ^ keys[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ word[3] ^ keys[1], (uint32_t)a};
        memcpy(word, next, sizeof next);
        keys[0] += 0x9E3779B9, keys[1] += 0xBB67AE85;
    }
}

/* Draws random bits. The state is {key, counter} (ui64 each; philox's counter may have 128 bits). The results
 * are the state after the draw, and the bits. */
int interpret_rng(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                  struct tensor **results)
{
    const struct tensor *state = operands[0];
    uint64_t words[4] = {0};
    memcpy(words, state->data, (size_t)ir_type_bytes(&state->type));
    struct tensor *next = interpret_result(run, op, 0), *bits = interpret_result(run, op, 1);
    if (!next || !bits) {
        tensor_unref(next), tensor_unref(bits);
        return ERROR_LIMIT;
    }
    bool three_fry = op->attributes.rng.algorithm == IR_RNG_THREE_FRY;
    size_t bytes = (size_t)ir_type_bytes(&bits->type), unit = three_fry ? 8 : 16;
    for (size_t at = 0; at < bytes; at += unit) {
        uint32_t block[4] = {(uint32_t)words[1], (uint32_t)(words[1] >> 32), (uint32_t)words[2],
                             (uint32_t)(words[2] >> 32)};
        uint32_t key[2] = {(uint32_t)words[0], (uint32_t)(words[0] >> 32)};
        if (three_fry)
            threefry(key, block);
        else
            philox(words[0], block);
        memcpy((char *)bits->data + at, block, bytes - at < unit ? bytes - at : unit);
        if (++words[1] == 0)
            words[2]++;
    }
    memcpy(next->data, words, (size_t)ir_type_bytes(&next->type));
    results[0] = next;
    results[1] = bits;
    return 0;
}
