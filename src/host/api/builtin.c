#include "host/api/builtin.h"

bool builtin_find(const struct resource *resource, struct access_builtins *builtins, struct str name,
                  struct object_ref *ret_object)
{
    const struct object *object;
    for (size_t i = 0; (object = access_builtin_at(builtins, resource->object, i)); i++)
        if (str_equal(object->name, name)) {
            *ret_object = (struct object_ref){.kind = resource->object, .object = object};
            return true;
        }
    return false;
}

void builtin_visit(const struct resource *resource, const struct core *core, struct access_builtins *builtins,
                   resource_visit_fn *visit, void *context)
{
    const struct object *object;
    for (size_t i = 0; (object = access_builtin_at(builtins, resource->object, i)); i++)
        if (!object_find(core_objects(core), resource->object, (struct str){0}, object->name))
            visit(context, (struct object_ref){.kind = resource->object, .object = object}, object->name);
}
