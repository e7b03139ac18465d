/* schema.h - the field trees of the API kinds: name, type, list form and merge keys of every field.
 * Private to spec.
 *
 * The trees are static tables (schema_jobset.c, schema_pod.c, schema_core.c ...), listed by kind in
 * schemas.c. One walker (schema.c) uses them to find unknown fields, wrong types, unknown values of enums,
 * missing required fields and repeated keys of keyed lists; to fill in the API server's defaults; and to
 * compare the meaning of two documents. Source: the OpenAPI definitions of batch/v1 and v1, the CRD of
 * jobset.x-k8s.io/v1alpha2.
 */
#ifndef PHX_CORE_SPEC_SCHEMA_H
#define PHX_CORE_SPEC_SCHEMA_H

#include "core/kinds/kinds.h"
#include "core/spec/path.h"

enum schema_kind {
    SCHEMA_STRING,
    SCHEMA_BOOL,
    SCHEMA_INT32,
    SCHEMA_INT64,
    SCHEMA_QUANTITY,      /* "500m", 4, 1.5 */
    SCHEMA_INT_OR_STRING, /* a port's number or name */
    SCHEMA_STRING_MAP,    /* labels, annotations, data: free keys */
    SCHEMA_QUANTITY_MAP,  /* requests, limits */
    SCHEMA_OBJECT,        /* described by `object` */
    SCHEMA_ANY,           /* kept unchecked */
};

enum schema_list {
    SCHEMA_SINGLE, /* not a list */
    SCHEMA_ATOMIC, /* replaced as a whole by a merge */
    SCHEMA_SET,    /* unique scalars */
    SCHEMA_KEYED,  /* the fields in `keys` identify an item */
};

struct schema;
struct schema_field {
    const char *name; /* NULL ends a table */
    size_t name_len;
    enum schema_kind kind;
    enum schema_list list;
    bool required;
    const struct schema *object; /* SCHEMA_OBJECT */
    const char *keys;            /* SCHEMA_KEYED: merge keys, comma-separated: "containerPort,protocol" */
    const char *values;          /* strings: the values allowed, comma-separated; NULL: any */
    uint32_t items_max;          /* lists: 0: no limit for this field */
    bool doubles;                /* Kubernetes' own kinds accept items with equal keys; the last one counts */
    /* The API server's default: text of a string, integer or quantity; "{}": an object of defaults; NULL:
     * none. */
    const char *fallback;
};
struct schema {
    const char *name; /* "JobSet", "Container": for messages to people and `explain` */
    const struct schema_field *fields;
};

extern const struct schema schema_object_meta;   /* metadata of an object */
extern const struct schema schema_embedded_meta; /* metadata of a template */
extern const struct schema schema_label_selector;
extern const struct schema schema_container;
extern const struct schema schema_resources; /* of a container, or a pod */
extern const struct schema schema_pod_spec;
extern const struct schema schema_pod_template;
extern const struct schema schema_volume;
extern const struct schema schema_claim_spec;
extern const struct schema schema_local_reference;
extern const struct schema schema_key_reference;
extern const struct schema schema_field_reference;
extern const struct schema schema_resource_reference;
extern const struct schema schema_job_spec;
extern const struct schema schema_jobset_spec;
extern const struct schema schema_jobset; /* the whole objects */
extern const struct schema schema_job;
extern const struct schema schema_pod;
extern const struct schema schema_workload, schema_workload_v1beta1; /* schema_kueue.c */
extern const struct schema schema_node; /* schema_node.c */

/* Returns the tree of a whole object by its apiVersion and kind, or NULL if the kind has no table. */
const struct schema *schema_of(const struct doc *object);
const struct schema *schema_of_row(enum resource_id id); /* NULL: the row has no table */
/* Returns the field of that name, or NULL. */
const struct schema_field *schema_field_of(const struct schema *schema, struct str name);

/* Reports unknown fields, in Kubernetes' words for strict decoding. */
void schema_check_unknown(const struct schema *schema, const struct doc *object, struct field_errors *errors);
/* Checks types, ranges of integers, enums, required fields and unique keys. Absent and null are the same. */
void schema_check_types(const struct schema *schema, const struct doc *object, struct field_errors *errors);
/* Does the same for Kubernetes' own kinds. Items with equal keys are reported in `doubles` (may be NULL)
 * where the field allows them (schema_field.doubles). */
void schema_check_builtin(const struct schema *schema, const struct doc *object, struct field_errors *errors,
                          struct field_errors *doubles);
/* Fills in every `fallback` below existing objects, and writes quantities in their canonical form, in place.
 * Leaves wrong types alone. */
void schema_default(const struct schema *schema, struct arena *arena, struct doc *object);
/* Returns whether two values of the field mean the same: absent, null and an empty list or map are equal, and
 * quantities compare by value. Either may be NULL. */
bool schema_equal(const struct schema_field *field, const struct doc *a, const struct doc *b);
/* Compares two objects field by field in the same sense. Fields without a row are compared with doc_equal. */
bool schema_object_equal(const struct schema *schema, const struct doc *a, const struct doc *b);

/* Reads a quantity in thousandths, rounded up. Returns false if it is malformed, negative or too large. */
bool schema_quantity(const struct doc *node, int64_t *ret_milli);

#endif
