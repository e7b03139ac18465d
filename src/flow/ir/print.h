/* print.h - what the two files of the printer share. Private to flow/ir. */
#ifndef PHX_FLOW_IR_PRINT_H
#define PHX_FLOW_IR_PRINT_H

#include "flow/ir/ir.h"

/* " <{name = value, ...}>", or nothing where the operation has no attributes. */
void print_attributes(struct buf *out, const struct ir_op *op);
/* dense<...> : type */
void print_literal(struct buf *out, const struct ir_literal *literal);
/* @name, in quotes where it needs them */
void print_symbol(struct buf *out, struct str name);

#endif
