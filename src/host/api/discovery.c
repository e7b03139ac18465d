/* discovery.c - discovery: /version, /api, /apis and below, in the old form (APIGroupList, APIResourceList)
 * and in the aggregated form (apidiscovery.k8s.io v2 and v2beta1, chosen by the Accept header: kubectl 1.27
 * and 1.28 know v2beta1 only). */
#include <stdio.h>

#include "core/words/release.h"
#include "host/api/guard.h"
#include "host/api/subresource.h"

/* Reports version 1.31: kubectl 1.32 and later send protobuf to servers of 1.32 or later, and JSON to older
 * ones. */
void handle_version(struct api_request *request)
{
    struct json_writer out = answer_begin(request, 200);
    char version[64];
    snprintf(version, sizeof version, "v1.31.0+%s", this_release.package);
    json_begin_object(&out);
    json_pair_text(&out, "major", "1");
    json_pair_text(&out, "minor", "31");
    json_pair_text(&out, "gitVersion", version);
    json_pair_text(&out, "gitCommit", "");
    json_pair_text(&out, "gitTreeState", "clean");
    json_pair_text(&out, "buildDate", "1970-01-01T00:00:00Z");
    json_pair_text(&out, "goVersion", "none");
    json_pair_text(&out, "compiler", "gcc");
    json_pair_text(&out, "platform", "linux/amd64");
    json_end_object(&out);
}

static void put_verbs(struct json_writer *out, unsigned verbs)
{
    static const struct {
        unsigned verb;
        const char *name;
    } names[] = {
        {VERB_CREATE, "create"}, {VERB_DELETE, "delete"}, {VERB_DELETE_COLLECTION, "deletecollection"},
        {VERB_GET, "get"},       {VERB_LIST, "list"},     {VERB_PATCH, "patch"},
        {VERB_UPDATE, "update"}, {VERB_WATCH, "watch"}};
    json_key(out, "verbs");
    json_begin_array(out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (verbs & names[i].verb)
            json_put_text(out, names[i].name);
    json_end_array(out);
}

/* `words` are separated by spaces; NULL: none. */
static void put_words(struct json_writer *out, const char *key, const char *words)
{
    struct str rest = str_from(words), word;
    if (!words)
        return;
    json_key(out, key);
    json_begin_array(out);
    while (rest.len) {
        if (!str_cut(rest, ' ', &word, &rest)) {
            word = rest;
            rest = (struct str){0};
        }
        json_put_str(out, word);
    }
    json_end_array(out);
}

static bool in_group(const struct resource *resource, const struct resource_group *group)
{
    return strcmp(resource->group, group->group) == 0 && strcmp(resource->version, group->version) == 0;
}

/* --- aggregated -------------------------------------------------------------------------------- */

static void put_kind(struct json_writer *out, const char *key, const char *group, const char *version,
                     const char *kind)
{
    json_key(out, key);
    json_begin_object(out);
    json_pair_text(out, "group", group);
    json_pair_text(out, "version", version);
    json_pair_text(out, "kind", kind);
    json_end_object(out);
}

static void put_subresources(struct json_writer *out, const struct resource *resource)
{
    const struct subresource *sub = subresources_of(resource);
    if (!sub->name)
        return;
    json_key(out, "subresources");
    json_begin_array(out);
    for (; sub->name; sub++) {
        json_begin_object(out);
        json_pair_text(out, "subresource", sub->name);
        put_kind(out, "responseKind", sub->kind ? sub->group : resource->group,
                 sub->kind ? sub->version : resource->version, sub->kind ? sub->kind : resource->kind);
        put_verbs(out, sub->verbs);
        json_end_object(out);
    }
    json_end_array(out);
}

static void put_aggregated_resource(struct json_writer *out, const struct resource *resource)
{
    json_begin_object(out);
    json_pair_text(out, "resource", resource->plural);
    put_kind(out, "responseKind", resource->group, resource->version, resource->kind);
    json_pair_text(out, "scope", resource->namespaced ? "Namespaced" : "Cluster");
    json_pair_text(out, "singularResource", resource->singular);
    put_verbs(out, resource->verbs);
    put_words(out, "shortNames", resource->short_name);
    put_words(out, "categories", resource->category);
    put_subresources(out, resource);
    json_end_object(out);
}

/* Returns whether this is the first (preferred) version of its group. The versions of a group are
 * consecutive. */
static bool is_first(const struct resource_group *group)
{
    return group == resource_groups || strcmp(group[-1].group, group->group) != 0;
}

/* Returns the next version of the same group, or NULL if there is none. */
static const struct resource_group *next_version(const struct resource_group *group)
{
    return group + 1 < resource_groups + resource_group_count && !is_first(group + 1) ? group + 1 : NULL;
}

static void put_aggregated_version(struct json_writer *out, const struct resource_group *group)
{
    json_begin_object(out);
    json_pair_text(out, "version", group->version);
    json_pair_text(out, "freshness", "Current");
    json_key(out, "resources");
    json_begin_array(out);
    for (int i = 0; i < RESOURCES; i++)
        if (in_group(&resource_table[i], group))
            put_aggregated_resource(out, &resource_table[i]);
    for (size_t i = 0; i < REVIEWS; i++)
        if (in_group(&review_table[i], group))
            put_aggregated_resource(out, &review_table[i]);
    json_end_array(out);
    json_end_object(out);
}

static void put_aggregated_group(struct json_writer *out, const struct resource_group *group)
{
    json_begin_object(out);
    json_key(out, "metadata");
    json_begin_object(out);
    if (*group->group)
        json_pair_text(out, "name", group->group);
    json_end_object(out);
    json_key(out, "versions");
    json_begin_array(out);
    for (; group; group = next_version(group))
        put_aggregated_version(out, group);
    json_end_array(out);
    json_end_object(out);
}

static void answer_aggregated(struct api_request *request, bool core_group, bool beta)
{
    struct json_writer out = answer_begin(request, 200);
    request->answer_type = beta ? "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
                                : "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    json_begin_object(&out);
    json_pair_text(&out, "kind", "APIGroupDiscoveryList");
    json_pair_text(&out, "apiVersion", beta ? "apidiscovery.k8s.io/v2beta1" : "apidiscovery.k8s.io/v2");
    json_key(&out, "metadata");
    json_begin_object(&out);
    json_end_object(&out);
    json_key(&out, "items");
    json_begin_array(&out);
    for (size_t i = 0; i < resource_group_count; i++)
        if ((*resource_groups[i].group == 0) == core_group && is_first(&resource_groups[i]))
            put_aggregated_group(&out, &resource_groups[i]);
    json_end_array(&out);
    json_end_object(&out);
}

/* Returns the first form in the client's list that we have: 0 the old one, 2 v2, 1 v2beta1. */
static int wanted_form(const struct api_request *request)
{
    struct str accept = request->accept, part, rest;
    while (accept.len) {
        if (!str_cut(accept, ',', &part, &rest)) {
            part = accept;
            rest = (struct str){0};
        }
        accept = rest;
        part = str_trim(part);
        bool aggregated = false, beta = false, newest = false;
        while (part.len) {
            struct str piece, after;
            if (!str_cut(part, ';', &piece, &after)) {
                piece = part;
                after = (struct str){0};
            }
            part = after;
            piece = str_trim(piece);
            aggregated |= str_is(piece, "as=APIGroupDiscoveryList");
            newest |= str_is(piece, "v=v2");
            beta |= str_is(piece, "v=v2beta1");
        }
        if (aggregated && (newest || beta))
            return newest ? 2 : 1;
        if (!aggregated)
            return 0;
    }
    return 0;
}

/* --- the old form ------------------------------------------------------------------------------ */

static void put_version(struct json_writer *out, const struct resource_group *group)
{
    char text[128];
    snprintf(text, sizeof text, "%s/%s", group->group, group->version);
    json_begin_object(out);
    json_pair_text(out, "groupVersion", text);
    json_pair_text(out, "version", group->version);
    json_end_object(out);
}

static void put_group(struct json_writer *out, const struct resource_group *group, bool alone)
{
    json_begin_object(out);
    if (alone) {
        json_pair_text(out, "kind", "APIGroup");
        json_pair_text(out, "apiVersion", "v1");
    }
    json_pair_text(out, "name", group->group);
    json_key(out, "versions");
    json_begin_array(out);
    for (const struct resource_group *version = group; version; version = next_version(version))
        put_version(out, version);
    json_end_array(out);
    json_key(out, "preferredVersion");
    put_version(out, group);
    json_end_object(out);
}

static void answer_versions(struct api_request *request)
{
    struct json_writer out = answer_begin(request, 200);
    json_begin_object(&out);
    json_pair_text(&out, "kind", "APIVersions");
    put_words(&out, "versions", "v1");
    json_key(&out, "serverAddressByClientCIDRs");
    json_begin_array(&out);
    json_end_array(&out);
    json_end_object(&out);
}

static void answer_groups(struct api_request *request)
{
    struct json_writer out = answer_begin(request, 200);
    json_begin_object(&out);
    json_pair_text(&out, "kind", "APIGroupList");
    json_pair_text(&out, "apiVersion", "v1");
    json_key(&out, "groups");
    json_begin_array(&out);
    for (size_t i = 0; i < resource_group_count; i++)
        if (*resource_groups[i].group && is_first(&resource_groups[i]))
            put_group(&out, &resource_groups[i], false);
    json_end_array(&out);
    json_end_object(&out);
}

static void put_resource(struct json_writer *out, const struct resource *resource)
{
    json_begin_object(out);
    json_pair_text(out, "name", resource->plural);
    json_pair_text(out, "singularName", resource->singular);
    json_pair_bool(out, "namespaced", resource->namespaced);
    json_pair_text(out, "kind", resource->kind);
    put_verbs(out, resource->verbs);
    put_words(out, "shortNames", resource->short_name);
    put_words(out, "categories", resource->category);
    json_end_object(out);
    for (const struct subresource *sub = subresources_of(resource); sub->name; sub++) {
        char name[96];
        snprintf(name, sizeof name, "%s/%s", resource->plural, sub->name);
        json_begin_object(out);
        json_pair_text(out, "name", name);
        json_pair_text(out, "singularName", "");
        json_pair_bool(out, "namespaced", resource->namespaced);
        if (sub->kind && *sub->group) {
            json_pair_text(out, "group", sub->group);
            json_pair_text(out, "version", sub->version);
        }
        json_pair_text(out, "kind", sub->kind ? sub->kind : resource->kind);
        put_verbs(out, sub->verbs);
        json_end_object(out);
    }
}

static void answer_resources(struct api_request *request, const struct resource_group *group)
{
    struct json_writer out = answer_begin(request, 200);
    char text[128];
    snprintf(text, sizeof text, "%s%s%s", group->group, *group->group ? "/" : "", group->version);
    json_begin_object(&out);
    json_pair_text(&out, "kind", "APIResourceList");
    json_pair_text(&out, "apiVersion", "v1");
    json_pair_text(&out, "groupVersion", text);
    json_key(&out, "resources");
    json_begin_array(&out);
    for (int i = 0; i < RESOURCES; i++)
        if (in_group(&resource_table[i], group))
            put_resource(&out, &resource_table[i]);
    for (size_t i = 0; i < REVIEWS; i++)
        if (in_group(&review_table[i], group))
            put_resource(&out, &review_table[i]);
    json_end_array(&out);
    json_end_object(&out);
}

void handle_discovery(struct api_request *request, struct str path)
{
    bool core_group = str_is(path, "api");
    if (core_group || str_is(path, "apis")) {
        int form = wanted_form(request);
        if (form)
            answer_aggregated(request, core_group, form == 1);
        else if (core_group)
            answer_versions(request);
        else
            answer_groups(request);
        return;
    }
    for (size_t i = 0; i < resource_group_count; i++) {
        const struct resource_group *group = &resource_groups[i];
        char text[128];
        snprintf(text, sizeof text, *group->group ? "apis/%s" : "api/%s%s",
                 *group->group ? group->group : "v1", "");
        if (*group->group && is_first(group) && str_is(path, text)) {
            struct json_writer out = answer_begin(request, 200);
            put_group(&out, group, true);
            return;
        }
        if (*group->group)
            snprintf(text, sizeof text, "apis/%s/%s", group->group, group->version);
        if (str_is(path, text)) {
            answer_resources(request, group);
            return;
        }
    }
    answer_status(request, 404, "NotFound", "the server could not find the requested resource");
}
