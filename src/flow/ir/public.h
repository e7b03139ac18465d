/* public.h - conversion between the types of phalanx/flow.h and of the intermediate representation. */
#ifndef PHX_FLOW_IR_PUBLIC_H
#define PHX_FLOW_IR_PUBLIC_H

#include "flow/ir/program.h"
#include "phalanx/flow.h"

/* Returns false if element or rank do not exist, or the type has more than IR_ELEMENTS_MAX elements. */
bool ir_type_of_public(const struct phx_flow_type *type, struct ir_type *ret);
/* Returns false if the public header has no such element. */
bool ir_type_to_public(const struct ir_type *type, struct phx_flow_type *ret);
struct flow_sharding flow_sharding_of_public(const struct phx_flow_sharding *sharding);

#endif
