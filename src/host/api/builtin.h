/* builtin.h - objects that every cluster has and the core does not store (access.h). Private to api. */
#ifndef PHX_HOST_API_BUILTIN_H
#define PHX_HOST_API_BUILTIN_H

#include "host/access/access.h"
#include "kube/resource.h"

/* Finds the built-in object of this name. Returns false if there is none. */
bool builtin_find(const struct resource *resource, struct access_builtins *builtins, struct str name,
                  struct object_ref *ret_object);

/* Visits each built-in object of the resource that is not replaced by an object in the core. */
void builtin_visit(const struct resource *resource, const struct core *core, struct access_builtins *builtins,
                   resource_visit_fn *visit, void *context);

#endif
