/* openapi.c - OpenAPI documents: that the server validates fields itself (v3: a `patch` operation with a
 * `fieldValidation` parameter for each kind), the schemas that `kubectl explain` prints, and a v2 document
 * that parses. Measured against kubectl 1.27 to 1.33. */
#include "host/api/openapi.h"

#include <stdio.h>

#include "base/hash.h"
#include "core/spec/schema.h"
#include "core/words/release.h"
#include "host/api/request.h"

struct document {
    struct buf text;
    uint64_t hash;
};
struct openapi {
    struct document *documents; /* [resource_group_count]; empty: not made yet */
};

struct openapi *openapi_new(void)
{
    struct openapi *openapi = mem_alloc(sizeof *openapi);
    openapi->documents = mem_alloc(resource_group_count * sizeof *openapi->documents);
    return openapi;
}

void openapi_free(struct openapi *openapi)
{
    for (size_t i = 0; i < resource_group_count; i++)
        buf_done(&openapi->documents[i].text);
    mem_free(openapi->documents);
    mem_free(openapi);
}

/* Document{swagger: "2.0", info: {title: "phx", version: "0"}, paths: {}} as protobuf (gnostic's
 * openapiv2/OpenAPIv2.proto): the only answer that must not be JSON. */
static const unsigned char openapi_v2[] = {0x0a, 0x03, '2', '.',  '0',  0x12, 0x08, 0x0a, 0x03,
                                           'p',  'h',  'x', 0x12, 0x01, '0',  0x42, 0x00};

static void answer_v2(struct api_request *request)
{
    (void)answer_begin(request, 200);
    request->answer_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    buf_add(&request->answer, openapi_v2, sizeof openapi_v2);
}

static void put_kind(struct json_writer *out, const struct resource *resource)
{
    json_begin_object(out);
    json_pair_text(out, "group", resource->group);
    json_pair_text(out, "version", resource->version);
    json_pair_text(out, "kind", resource->kind);
    json_end_object(out);
}

static void put_parameter(struct json_writer *out, const char *name)
{
    json_begin_object(out);
    json_pair_text(out, "name", name);
    json_pair_text(out, "in", "query");
    json_key(out, "schema");
    json_begin_object(out);
    json_pair_text(out, "type", "string");
    json_pair_bool(out, "uniqueItems", true);
    json_end_object(out);
    json_end_object(out);
}

static void put_operation(struct json_writer *out, const struct resource *resource, const char *method,
                          const char *action)
{
    json_key(out, method);
    json_begin_object(out);
    json_pair_text(out, "operationId", action);
    json_key(out, "parameters");
    json_begin_array(out);
    put_parameter(out, "dryRun");
    put_parameter(out, "fieldManager");
    put_parameter(out, "fieldValidation");
    json_end_array(out);
    json_key(out, "responses");
    json_begin_object(out);
    json_key(out, "200");
    json_begin_object(out);
    json_pair_text(out, "description", "OK");
    json_end_object(out);
    json_end_object(out);
    json_pair_text(out, "x-kubernetes-action", action);
    json_key(out, "x-kubernetes-group-version-kind");
    put_kind(out, resource);
    json_end_object(out);
}

static void put_paths(struct json_writer *out, const struct resource *resource)
{
    char prefix[160], path[256];
    snprintf(prefix, sizeof prefix, "/%s%s%s/%s%s/%s", *resource->group ? "apis/" : "api", resource->group,
             "", resource->version, resource->namespaced ? "/namespaces/{namespace}" : "", resource->plural);
    json_key(out, prefix);
    json_begin_object(out);
    put_operation(out, resource, "post", "post");
    json_end_object(out);
    snprintf(path, sizeof path, "%s/{name}", prefix);
    json_key(out, path);
    json_begin_object(out);
    put_operation(out, resource, "put", "put");
    put_operation(out, resource, "patch", "patch");
    json_end_object(out);
}

/* --- schemas ----------------------------------------------------------------------------------- */

/* The schemas of one document; each gets a unique name. */
struct schemas {
    const struct resource_group *group;
    VEC(const struct schema *) list;
};

static size_t schema_place(struct schemas *schemas, const struct schema *schema)
{
    for (size_t i = 0; i < schemas->list.len; i++)
        if (schemas->list.items[i] == schema)
            return i;
    vec_push(&schemas->list, schema);
    return schemas->list.len - 1;
}

/* Writes the name of a schema, such as "batch.v1.JobSpec"; two tables may have the same name. */
static void schema_name(struct schemas *schemas, const struct schema *schema, char ret_name[160])
{
    size_t place = schema_place(schemas, schema), same = 0;
    for (size_t i = 0; i < place; i++)
        same += strcmp(schemas->list.items[i]->name, schema->name) == 0;
    int len = snprintf(ret_name, 160, "%s.%s.%s", *schemas->group->group ? schemas->group->group : "core",
                       schemas->group->version, schema->name);
    if (same && len > 0 && len < 150)
        snprintf(ret_name + len, 160 - (size_t)len, "%zu", same + 1);
}

static void put_type(struct json_writer *out, const char *type, const char *format)
{
    json_pair_text(out, "type", type);
    if (format)
        json_pair_text(out, "format", format);
}

static void put_reference(struct json_writer *out, struct schemas *schemas, const struct schema *schema,
                          bool alone)
{
    char name[160], reference[200];
    schema_name(schemas, schema, name);
    snprintf(reference, sizeof reference, "#/components/schemas/%s", name);
    if (!alone) {
        json_key(out, "allOf");
        json_begin_array(out);
        json_begin_object(out);
    }
    json_pair_text(out, "$ref", reference);
    if (!alone) {
        json_end_object(out);
        json_end_array(out);
    }
}

static void put_enum(struct json_writer *out, const char *values)
{
    struct str rest = str_from(values), value;
    json_key(out, "enum");
    json_begin_array(out);
    while (rest.len) {
        if (!str_cut(rest, ',', &value, &rest)) {
            value = rest;
            rest = (struct str){0};
        }
        json_put_str(out, value);
    }
    json_end_array(out);
}

static void put_map(struct json_writer *out, bool quantities)
{
    put_type(out, "object", NULL);
    json_key(out, "additionalProperties");
    json_begin_object(out);
    put_type(out, "string", quantities ? "quantity" : NULL);
    json_end_object(out);
}

/* Writes a value. `alone`: no other member is next to it, so a reference needs no allOf. */
static void put_value(struct json_writer *out, struct schemas *schemas, const struct schema_field *field,
                      bool alone)
{
    switch (field->kind) {
    case SCHEMA_STRING:
        put_type(out, "string", NULL);
        if (field->values)
            put_enum(out, field->values);
        break;
    case SCHEMA_BOOL:
        put_type(out, "boolean", NULL);
        break;
    case SCHEMA_INT32:
        put_type(out, "integer", "int32");
        break;
    case SCHEMA_INT64:
        put_type(out, "integer", "int64");
        break;
    case SCHEMA_QUANTITY:
        put_type(out, "string", "quantity");
        break;
    case SCHEMA_INT_OR_STRING:
        put_type(out, "string", "int-or-string");
        json_pair_bool(out, "x-kubernetes-int-or-string", true);
        break;
    case SCHEMA_STRING_MAP:
    case SCHEMA_QUANTITY_MAP:
        put_map(out, field->kind == SCHEMA_QUANTITY_MAP);
        break;
    case SCHEMA_OBJECT:
        put_reference(out, schemas, field->object, alone);
        break;
    case SCHEMA_ANY:
        put_type(out, "object", NULL);
        json_pair_bool(out, "x-kubernetes-preserve-unknown-fields", true);
        break;
    }
}

static void put_list(struct json_writer *out, struct schemas *schemas, const struct schema_field *field)
{
    put_type(out, "array", NULL);
    json_key(out, "items");
    json_begin_object(out);
    put_value(out, schemas, field, true);
    json_end_object(out);
    json_pair_text(out, "x-kubernetes-list-type",
                   field->list == SCHEMA_KEYED ? "map"
                   : field->list == SCHEMA_SET ? "set"
                                               : "atomic");
    if (field->list != SCHEMA_KEYED)
        return;
    struct str rest = str_from(field->keys), key;
    json_key(out, "x-kubernetes-list-map-keys");
    json_begin_array(out);
    while (rest.len) {
        if (!str_cut(rest, ',', &key, &rest)) {
            key = rest;
            rest = (struct str){0};
        }
        json_put_str(out, key);
    }
    json_end_array(out);
}

static void put_field(struct json_writer *out, struct schemas *schemas, const struct schema *schema,
                      const struct schema_field *field)
{
    const char *text = openapi_describe(schema->name, field->name);
    json_key(out, field->name);
    json_begin_object(out);
    json_pair_text(out, "description", text ? text : "");
    if (field->list == SCHEMA_SINGLE)
        put_value(out, schemas, field, false);
    else
        put_list(out, schemas, field);
    if (field->fallback && field->kind == SCHEMA_STRING)
        json_pair_text(out, "default", field->fallback);
    json_end_object(out);
}

static void put_fields(struct json_writer *out, struct schemas *schemas, const struct schema *schema)
{
    bool required = false;
    put_type(out, "object", NULL);
    json_key(out, "properties");
    json_begin_object(out);
    for (const struct schema_field *field = schema->fields; field->name; field++) {
        put_field(out, schemas, schema, field);
        required |= field->required;
    }
    json_end_object(out);
    if (!required)
        return;
    json_key(out, "required");
    json_begin_array(out);
    for (const struct schema_field *field = schema->fields; field->name; field++)
        if (field->required)
            json_put_text(out, field->name);
    json_end_array(out);
}

/* Describes a kind that is not in the tables. */
static void put_open_fields(struct json_writer *out)
{
    static const char *const names[] = {"apiVersion", "kind", "metadata", "spec", "status"};
    put_type(out, "object", NULL);
    json_key(out, "properties");
    json_begin_object(out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = openapi_describe("", names[i]);
        json_key(out, names[i]);
        json_begin_object(out);
        json_pair_text(out, "description", text ? text : "");
        put_type(out, i < 2 ? "string" : "object", NULL);
        if (i >= 2)
            json_pair_bool(out, "x-kubernetes-preserve-unknown-fields", true);
        json_end_object(out);
    }
    json_end_object(out);
}

static const struct schema *schema_of_resource(const struct resource *resource)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *object = doc_new(&arena, DOC_OBJECT);
    doc_set(&arena, object, STR("apiVersion"), doc_new_str(&arena, str_from(resource_api_version(resource))));
    doc_set(&arena, object, STR("kind"), doc_new_str(&arena, str_from(resource->kind)));
    return schema_of(object);
}

static void put_top(struct json_writer *out, struct schemas *schemas, const struct resource *resource)
{
    const struct schema *schema = schema_of_resource(resource);
    char name[160];
    if (schema)
        schema_name(schemas, schema, name);
    else
        snprintf(name, sizeof name, "%s.%s.%s", *resource->group ? resource->group : "core",
                 resource->version, resource->kind);
    json_key(out, name);
    json_begin_object(out);
    if (schema)
        put_fields(out, schemas, schema);
    else
        put_open_fields(out);
    json_key(out, "x-kubernetes-group-version-kind");
    json_begin_array(out);
    put_kind(out, resource);
    json_end_array(out);
    json_end_object(out);
}

static bool is_in(const struct resource *resource, const struct resource_group *group)
{
    return strcmp(resource->group, group->group) == 0 && strcmp(resource->version, group->version) == 0;
}

static void put_schemas(struct json_writer *out, const struct resource_group *group)
{
    struct schemas schemas = {.group = group};
    size_t tops = 0;
    for (int i = 0; i < RESOURCES; i++) {
        const struct schema *schema =
            is_in(&resource_table[i], group) ? schema_of_resource(&resource_table[i]) : NULL;
        if (schema)
            (void)schema_place(&schemas, schema);
    }
    tops = schemas.list.len;
    for (int i = 0; i < RESOURCES; i++)
        if (is_in(&resource_table[i], group))
            put_top(out, &schemas, &resource_table[i]);
    /* Schemas that were referenced so far, and those that they reference. */
    for (size_t i = tops; i < schemas.list.len; i++) {
        char name[160];
        schema_name(&schemas, schemas.list.items[i], name);
        json_key(out, name);
        json_begin_object(out);
        put_fields(out, &schemas, schemas.list.items[i]);
        json_end_object(out);
    }
    vec_done(&schemas.list);
}

static void write_document(struct json_writer *out, const struct resource_group *group)
{
    char version[64];
    snprintf(version, sizeof version, "v%s", this_release.version);
    json_begin_object(out);
    json_pair_text(out, "openapi", "3.0.0");
    json_key(out, "info");
    json_begin_object(out);
    json_pair_text(out, "title", "Phalanx");
    json_pair_text(out, "version", version);
    json_end_object(out);
    json_key(out, "paths");
    json_begin_object(out);
    for (int i = 0; i < RESOURCES; i++)
        if (is_in(&resource_table[i], group))
            put_paths(out, &resource_table[i]);
    json_end_object(out);
    json_key(out, "components");
    json_begin_object(out);
    json_key(out, "schemas");
    json_begin_object(out);
    put_schemas(out, group);
    json_end_object(out);
    json_end_object(out);
    json_end_object(out);
}

static const struct document *get_document(struct openapi *openapi, size_t group)
{
    struct document *document = &openapi->documents[group];
    if (document->text.len == 0) {
        struct json_writer out = {.out = &document->text};
        write_document(&out, &resource_groups[group]);
        document->hash = hash64(0, document->text.data, document->text.len);
    }
    return document;
}

static void group_path(const struct resource_group *group, char ret_path[128])
{
    snprintf(ret_path, 128, "%s%s/%s", *group->group ? "apis/" : "api", group->group, group->version);
}

static void answer_index(struct api_request *request)
{
    struct json_writer out = answer_begin(request, 200);
    json_begin_object(&out);
    json_key(&out, "paths");
    json_begin_object(&out);
    for (size_t i = 0; i < resource_group_count; i++) {
        char path[128], url[200];
        group_path(&resource_groups[i], path);
        snprintf(url, sizeof url, "/openapi/v3/%s?hash=%016llX", path,
                 (unsigned long long)get_document(request->api->openapi, i)->hash);
        json_key(&out, path);
        json_begin_object(&out);
        json_pair_text(&out, "serverRelativeURL", url);
        json_end_object(&out);
    }
    json_end_object(&out);
    json_end_object(&out);
}

void handle_openapi(struct api_request *request, struct str path)
{
    if (str_is(path, "openapi/v2") || str_starts(path, STR("swagger-2.0.0"))) {
        answer_v2(request);
        return;
    }
    if (str_is(path, "openapi/v3")) {
        answer_index(request);
        return;
    }
    for (size_t i = 0; i < resource_group_count; i++) {
        char text[128], wanted[160];
        group_path(&resource_groups[i], text);
        snprintf(wanted, sizeof wanted, "openapi/v3/%s", text);
        if (!str_is(path, wanted))
            continue;
        const struct document *document = get_document(request->api->openapi, i);
        (void)answer_begin(request, 200);
        snprintf(request->etag, sizeof request->etag, "\"%016llX\"", (unsigned long long)document->hash);
        if (str_is(request->if_none_match, request->etag))
            request->code = 304;
        else
            buf_add_str(&request->answer, buf_str(&document->text));
        return;
    }
    answer_status(request, 404, "NotFound", "the server could not find the requested resource");
}
