/* builtin.h - objects that every cluster has and no core keeps (access.h). Private to api. */
#ifndef PHX_HOST_API_BUILTIN_H
#define PHX_HOST_API_BUILTIN_H

#include "host/access/access.h"
#include "kube/resource.h"

/* Finds the built-in object of this name; false: there is none. */
bool builtin_find(const struct resource *resource, struct access_builtins *builtins, struct str name,
                  struct object_ref *ret_object);

/* Visits each built-in object of the resource that no object in the core replaces. */
void builtin_visit(const struct resource *resource, const struct core *core, struct access_builtins *builtins,
                   resource_visit_fn *visit, void *context);

#endif
