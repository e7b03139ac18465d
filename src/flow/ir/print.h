/* print.h - declarations shared by the two files of the printer. Private to flow/ir. */
#ifndef PHX_FLOW_IR_PRINT_H
#define PHX_FLOW_IR_PRINT_H

#include "flow/ir/ir.h"

/* Appends " <{name = value, ...}>", or nothing if the operation has no attributes. */
void print_attributes(struct buf *out, const struct ir_op *op);
/* Appends dense<...> : type. */
void print_literal(struct buf *out, const struct ir_literal *literal);
/* Appends @name, quoted if the name requires it. */
void print_symbol(struct buf *out, struct str name);

#endif
