/* unknown.c - strict decoding and semantic equality of whole objects. */
#include "core/spec/schema.h"

void spec_unknown_fields(const struct doc *object, struct field_errors *errors)
{
    const struct schema *schema = schema_of(object);
    if (schema)
        schema_check_unknown(schema, object, errors);
}

void spec_doubles(const struct doc *object, struct field_errors *warnings)
{
    CHECK(warnings->arena);
    const struct schema *schema = schema_of(object);
    struct field_errors errors = {.arena = warnings->arena};
    if (schema == &schema_job || schema == &schema_pod)
        schema_check_builtin(schema, object, &errors, warnings);
    field_errors_done(&errors);
}

bool spec_equal(const struct doc *a, const struct doc *b)
{
    const struct schema *schema = schema_of(a);
    return schema && schema == schema_of(b) ? schema_object_equal(schema, a, b) : doc_equal(a, b);
}
