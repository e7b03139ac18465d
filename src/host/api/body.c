/* body.c - bodies of writes: from bytes to a document for the core. */
#include <stdio.h>

#include "doc/yaml.h"
#include "core/spec/schema.h"
#include "kube/protobuf.h"
#include "kube/protobuf_kinds.h"
#include "kube/render.h"
#include "host/api/work.h"
#include "host/api/write.h"

enum { BODY_MEMORY_MAX = 64 * 1024 * 1024 };

struct str body_media_type(const struct api_request *request)
{
    struct str type = request->content_type, rest;
    if (!str_cut(type, ';', &type, &rest))
        type = request->content_type;
    return str_trim(type);
}

static bool parse_protobuf(struct api_request *request, struct doc **ret_doc)
{
    struct error error = {0};
    const struct resource *resource = request->resource;
    bool options = request->method == METHOD_DELETE;
    if (!options && !protobuf_kind(resource_api_version(resource), resource->kind)) {
        answer_status(request, 415, "UnsupportedMediaType", "%s are not read as protobuf: send JSON",
                      resource->plural);
        return false;
    }
    int rc = protobuf_read(&request->arena, buf_str(&request->body), options, ret_doc, &error);
    if (rc == ERROR_UNSUPPORTED)
        answer_status(request, 415, "UnsupportedMediaType", "%s", error.text);
    else if (rc < 0)
        answer_status(request, 400, "BadRequest", "%s", error.text);
    return rc == 0;
}

static bool parse(struct api_request *request, struct doc **ret_doc)
{
    struct str type = body_media_type(request);
    struct error error = {0};
    struct doc_list docs = {0};
    int rc;
    if (str_is(type, PROTOBUF_MEDIA_TYPE))
        return parse_protobuf(request, ret_doc);
    request->arena.limit_bytes = request->arena.used_bytes + BODY_MEMORY_MAX;
    if (str_is(type, "application/yaml") || str_is(type, "application/apply-patch+yaml")) {
        rc = yaml_parse_all(&request->arena, buf_str(&request->body), &docs, &error);
        if (rc == 0 && docs.len != 1)
            rc = error_set(&error, ERROR_INVALID, "expected one document, found %zu", docs.len);
        if (rc == 0)
            *ret_doc = docs.items[0];
    } else if (type.len == 0 || str_is(type, "*/*") || str_ends(type, STR("json"))) {
        rc = json_parse(&request->arena, buf_str(&request->body), ret_doc, &error);
    } else {
        answer_status(request, 415, "UnsupportedMediaType",
                      "the body of the request was in an unknown format - accepted media types include: "
                      "application/json, application/yaml");
        return false;
    }
    request->arena.limit_bytes = 0; /* what is made from the document has its own limits */
    if (rc < 0)
        answer_status(request, rc == ERROR_LIMIT ? 413 : 400,
                      rc == ERROR_LIMIT ? "RequestEntityTooLarge" : "BadRequest", "%s", error.text);
    return rc == 0;
}

static void parse_beside(struct api_request *request)
{
    request->parsed.good = parse(request, &request->parsed.doc);
    request->parsed.read = true;
}

static void parsed_beside(struct api_request *request)
{
    if (request->parsed.good)
        request_handle_again(request);
}

bool body_parse(struct api_request *request, struct doc **ret_doc)
{
    if (request->parsed.read) {
        *ret_doc = request->parsed.doc;
        return request->parsed.good;
    }
    if (!work_pays(request, request->body.len))
        return parse(request, ret_doc);
    work_start(request, parse_beside, parsed_beside);
    return false;
}

/* Checks for fields that the schema does not know: fieldValidation "Strict" refuses them, "Warn" (the
 * default) warns, "Ignore" does nothing. */
static bool check_fields(struct api_request *request, const struct doc *object)
{
    struct str mode = request_query(request, "fieldValidation");
    bool known = resource_is_workload(request->resource) || resource_is_kept(request->resource) ||
                 request->resource->object == OBJECT_FAULT || request->resource->object == OBJECT_WORKLOAD;
    if (!known || str_is(mode, "Ignore"))
        return true;
    struct field_errors errors = {.arena = &request->arena};
    spec_unknown_fields(object, &errors);
    bool refused = errors.list.len && str_is(mode, "Strict");
    struct buf text BUF_CLEANUP = {0};
    for (size_t i = 0; i < errors.list.len; i++) {
        struct str message = errors.list.items[i].message;
        if (refused)
            buf_printf(&text, "%s" STR_FORMAT, i ? ", " : "", STR_ARG(message));
        else
            request_warn(request, STR_FORMAT, STR_ARG(message));
    }
    field_errors_done(&errors);
    if (refused)
        answer_status(request, 400, "BadRequest",
                      "%s in version \"%s\" cannot be handled as a %s: strict decoding error: " STR_FORMAT,
                      request->resource->kind, request->resource->version, request->resource->kind,
                      STR_ARG(buf_str(&text)));
    return !refused;
}

static void warn_of_doubles(struct api_request *request, const struct doc *object)
{
    struct field_errors doubles = {.arena = &request->arena};
    spec_doubles(object, &doubles);
    for (size_t i = 0; i < doubles.list.len; i++)
        request_warn(request, STR_FORMAT ": " STR_FORMAT, STR_ARG(doubles.list.items[i].path),
                     STR_ARG(doubles.list.items[i].message));
    field_errors_done(&doubles);
}

/* Checks that a name or namespace in the object equals that of the URL. Fills in an absent one. */
static bool agree(struct api_request *request, struct doc *metadata, const char *key, struct str url)
{
    struct str given = doc_str(doc_get(metadata, key), (struct str){0});
    if (given.len == 0) {
        if (url.len)
            doc_set(&request->arena, metadata, str_from(key), doc_new_str(&request->arena, url));
        return true;
    }
    if (str_equal(given, url))
        return true;
    answer_status(request, 400, "BadRequest",
                  "the %s of the provided object does not match the %s sent on the request (" STR_FORMAT
                  " and " STR_FORMAT ")",
                  key, key, STR_ARG(given), STR_ARG(url));
    return false;
}

/* Checks that the object's type is that of the URL. Clients with typed models leave the type out; then it is
 * filled in. */
static bool agree_type(struct api_request *request, struct doc *object)
{
    const struct resource *resource = request->resource;
    const char *const fields[] = {"apiVersion", "kind"}, *const values[] = {resource_api_version(resource),
                                                                            resource->kind};
    for (int i = 0; i < 2 && object->kind == DOC_OBJECT; i++) {
        const struct doc *given = doc_get(object, fields[i]);
        if (!given || given->kind == DOC_NULL || (given->kind == DOC_STRING && given->text.len == 0))
            doc_set(&request->arena, object, str_from(fields[i]),
                    doc_new_str(&request->arena, str_from(values[i])));
    }
    struct str version = doc_str(doc_get(object, "apiVersion"), STR(""));
    struct str kind = doc_str(doc_get(object, "kind"), STR(""));
    if (object->kind == DOC_OBJECT && str_is(version, values[0]) && str_is(kind, values[1]))
        return true;
    answer_status(request, 400, "BadRequest",
                  "expected an object of apiVersion %s and kind %s, found \"" STR_FORMAT
                  "\" and \"" STR_FORMAT "\"",
                  values[0], values[1], STR_ARG(version), STR_ARG(kind));
    return false;
}

/* Removes the fields that the server owns or derives: they are never taken from a client. */
void body_strip(const struct resource *resource, struct doc *object)
{
    static const char *const owned[] = {"uid",
                                        "resourceVersion",
                                        "generation",
                                        "selfLink",
                                        "creationTimestamp",
                                        "deletionTimestamp",
                                        "deletionGracePeriodSeconds"};
    struct doc *metadata = doc_get(object, "metadata");
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        doc_unset(metadata, owned[i]);
    doc_unset(object, "status");
    struct doc *taints = doc_path(object, "spec", "taints", NULL);
    if (resource->id != RESOURCE_NODES || !taints || taints->kind != DOC_ARRAY)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < taints->array.len; i++) {
        struct str key = doc_str(doc_get(taints->array.items[i], "key"), STR(""));
        if (!str_is(key, "node.kubernetes.io/unschedulable") && !str_is(key, FAULT_TAINT))
            taints->array.items[kept++] = taints->array.items[i];
    }
    taints->array.len = kept;
}

void body_default(struct arena *arena, const struct resource *resource, struct doc *object)
{
    if (resource_is_workload(resource) || resource->object == OBJECT_WORKLOAD)
        workload_default(arena, object);
    else if (resource_is_kept(resource))
        stored_default(arena, object);
}

/* Returns a document with labels, annotations and a Pod's scheduling gates: the fields that users may change
 * in a Job or Pod made from another object. */
static struct doc *metadata_of(struct arena *arena, struct doc *object)
{
    static const char *const maps[] = {"labels", "annotations"};
    struct doc *narrow = doc_new(arena, DOC_OBJECT), *metadata = doc_need_object(arena, narrow, "metadata");
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        struct doc *map = doc_path(object, "metadata", maps[i], NULL);
        if (map)
            doc_set(arena, metadata, str_from(maps[i]), map);
    }
    if (workload_form(object) != FORM_POD)
        return narrow;
    struct doc *gates = doc_path(object, "spec", "schedulingGates", NULL);
    bool none = !gates || gates->kind == DOC_NULL;
    doc_set(arena, doc_need_object(arena, narrow, "spec"), STR("schedulingGates"),
            none ? doc_new(arena, DOC_ARRAY) : gates);
    return narrow;
}

static struct doc *without_those(struct arena *arena, const struct doc *object)
{
    static const char *const maps[] = {"labels", "annotations", "managedFields"};
    struct doc *rest = doc_clone(arena, object), *metadata = doc_get(rest, "metadata");
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        doc_unset(metadata, maps[i]);
    if (workload_form(object) == FORM_POD)
        doc_unset(doc_get(rest, "spec"), "schedulingGates");
    return rest;
}

/* Returns whether the object is a Job or Pod made from another object, and only those fields change. */
static bool only_metadata(struct api_request *request, const struct doc *object)
{
    struct object_ref ref;
    struct doc *live;
    if (request->subresource.len || !resource_is_workload(request->resource) || !request_find(request, &ref))
        return false;
    bool made = (ref.kind == OBJECT_JOB && ref.job->jobset->form == FORM_JOBSET) ||
                (ref.kind == OBJECT_POD && ref.task->job->jobset->form != FORM_POD);
    if (!made || !write_read_current(request, &live))
        return false;
    body_strip(request->resource, live);
    body_default(&request->arena, request->resource, live);
    return spec_equal(without_those(&request->arena, live), without_those(&request->arena, object));
}

/* Limits of a document's values. Stored objects are prepared on another thread (write_prepare()). Workloads
 * are parsed, checked and applied on the loop, in a time that grows with values and field owners: a patch
 * takes some 50 ms for so many. */
enum { VALUES_MAX = 100000, WORKLOAD_VALUES_MAX = 40000 };

/* Counts the values of a document, including itself, and stops above `most`. */
static size_t count_values(const struct doc *node, size_t most)
{
    size_t count = 1;
    for (size_t i = 0; i < doc_len(node) && count <= most; i++)
        count += count_values(node->kind == DOC_OBJECT ? node->object.members[i].value : node->array.items[i],
                              most - count);
    return count;
}

static bool has_few_values(struct api_request *request, const struct doc *object)
{
    int most = resource_is_workload(request->resource) ? WORKLOAD_VALUES_MAX : VALUES_MAX;
    if (count_values(object, (size_t)most) <= (size_t)most)
        return true;
    answer_status(request, 413, "RequestEntityTooLarge", "limit is %d values", most);
    return false;
}

struct doc *body_metadata(struct api_request *request, struct doc *object)
{
    struct doc *metadata = doc_need_object(&request->arena, object, "metadata");
    if (!metadata)
        answer_status(request, 400, "BadRequest", "metadata must be an object");
    return metadata;
}

bool body_accept(struct api_request *request, struct doc *object, bool creating, struct write_event *write)
{
    if (!agree_type(request, object))
        return false;
    if (!has_few_values(request, object)) /* before work that grows with the values */
        return false;
    struct doc *metadata = body_metadata(request, object);
    if (!metadata)
        return false;
    if (request->resource->namespaced && !agree(request, metadata, "namespace", request->namespace_))
        return false;
    if (!creating && !agree(request, metadata, "name", request->name))
        return false;
    if (!check_fields(request, object))
        return false;
    int64_t version = 0;
    struct str version_text = doc_str(doc_get(metadata, "resourceVersion"), STR(""));
    if (version_text.len && !creating && !str_to_i64(version_text, 0, INT64_MAX, &version)) {
        answer_status(request, 400, "BadRequest", "metadata.resourceVersion is a decimal number");
        return false;
    }
    write->if_version = (uint64_t)version;
    if (!creating)
        write->uid_text = arena_str(&request->arena, doc_str(doc_get(metadata, "uid"), STR("")));
    const struct doc *given = doc_get(metadata, "managedFields");
    body_strip(request->resource, object);
    body_default(&request->arena, request->resource, object);
    warn_of_doubles(request, object);
    if (!managed_update(request, object, given, creating))
        return false;
    write->name = arena_str(&request->arena, doc_str(doc_get(metadata, "name"), STR("")));
    if (write->verb == WRITE_METADATA) /* set by an earlier try */
        write->verb = WRITE_REPLACE;
    if (!creating && only_metadata(request, object)) {
        write->verb = WRITE_METADATA;
        object = metadata_of(&request->arena, object);
    }
    if (!has_few_values(request, object)) /* now with the owners of its fields */
        return false;
    struct buf text BUF_CLEANUP = {0};
    json_write(&text, object);
    if (text.len > OBJECT_BYTES_MAX) {
        answer_status(request, 413, "RequestEntityTooLarge", "limit is %d bytes", OBJECT_BYTES_MAX);
        return false;
    }
    write->body = arena_str(&request->arena, buf_str(&text));
    write->document = object;
    return true;
}
