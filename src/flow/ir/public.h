/* public.h - the types of phalanx/flow.h in terms of the intermediate representation, and back. */
#ifndef PHX_FLOW_IR_PUBLIC_H
#define PHX_FLOW_IR_PUBLIC_H

#include "flow/ir/program.h"
#include "phalanx/flow.h"

/* False: an element or rank that does not exist, or more elements than IR_ELEMENTS_MAX. */
bool ir_type_of_public(const struct phx_flow_type *type, struct ir_type *ret);
/* False: the public header has no such element. */
bool ir_type_to_public(const struct ir_type *type, struct phx_flow_type *ret);
struct flow_sharding flow_sharding_of_public(const struct phx_flow_sharding *sharding);

#endif
