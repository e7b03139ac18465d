/* user.h - the declaration of a user's shared object, as a module whose functions have no bodies.
 *
 *     user "sums.so"
 *     func @add(tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
 */
#ifndef PHX_FLOW_IR_USER_H
#define PHX_FLOW_IR_USER_H

#include "flow/ir/ir.h"

/* Whether the text is such a declaration, and no StableHLO. */
bool ir_is_user(struct str text);
/* The module has the object's name as `file`; the caller frees it with ir_module_free. ERROR_INVALID with
 * the line. */
int ir_parse_user(struct str text, struct ir_module **ret_module, struct error *error);

#endif
