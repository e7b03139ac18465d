/* number.c - dense numbers of the values of a function. */
#include "flow/ir/parse.h"

static void number_block(struct ir_block *block, uint32_t *next)
{
    for (uint32_t i = 0; i < block->arg_count; i++)
        block->args[i].number = (*next)++;
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->region_count; i++)
            number_block(&op->regions[i], next);
        for (uint32_t i = 0; i < op->result_count; i++)
            op->results[i].number = (*next)++;
    }
}

uint32_t ir_number(struct ir_function *function)
{
    uint32_t next = 0;
    number_block(&function->body, &next);
    return next;
}
