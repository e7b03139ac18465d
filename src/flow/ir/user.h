/* user.h - the declaration of a user's shared object, as a module whose functions have no bodies.
 *
 *     user "sums.so"
 *     func @add(tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
 */
#ifndef PHX_FLOW_IR_USER_H
#define PHX_FLOW_IR_USER_H

#include "flow/ir/ir.h"

/* Returns whether the text is such a declaration rather than StableHLO. */
bool ir_is_user(struct str text);
/* Parses a declaration to a module that has the object's name as `file`. The caller frees it with
 * ir_module_free. Returns ERROR_INVALID with the line. */
int ir_parse_user(struct str text, struct ir_module **ret_module, struct error *error);

#endif
