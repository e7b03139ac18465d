/* schema_meta.c - metadata of objects and of templates. */
#include "core/spec/schema_table.h"

/* clang-format off */
static const struct schema owner = {"OwnerReference", TABLE(
    STRING("apiVersion", REQUIRED), STRING("kind", REQUIRED), STRING("name", REQUIRED),
    STRING("uid", REQUIRED),
    BOOLEAN("controller"), BOOLEAN("blockOwnerDeletion"))};
static const struct schema managed_fields = {"ManagedFieldsEntry", TABLE(
    STRING("manager"), STRING("operation"), STRING("apiVersion"), STRING("time"), STRING("fieldsType"),
    ANYTHING("fieldsV1"), STRING("subresource"))};
const struct schema schema_object_meta = {"ObjectMeta", TABLE(
    STRING("name"), STRING("generateName"), STRING("namespace"), STRING("selfLink"), STRING("uid"),
    STRING("resourceVersion"), INT64("generation"), STRING("creationTimestamp"), STRING("deletionTimestamp"),
    INT64("deletionGracePeriodSeconds"), STRING_MAP("labels"), STRING_MAP("annotations"),
    KEYED("ownerReferences", owner, "uid"), STRING_SET("finalizers"), LIST("managedFields", managed_fields))};
/* creationTimestamp: generators write `creationTimestamp: null` into templates. */
const struct schema schema_embedded_meta = {"ObjectMeta", TABLE(
    STRING("name"), STRING("namespace"), STRING_MAP("labels"), STRING_MAP("annotations"),
    STRING_SET("finalizers"), STRING("creationTimestamp"))};
/* clang-format on */
