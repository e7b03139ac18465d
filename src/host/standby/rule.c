#include "host/standby/rule.h"

#include "host/standby/bounds.h"

/* Removes the next segment of a path, with its slash, and returns it; it is empty at the end of the path. */
static struct str take_segment(struct str *path)
{
    struct str segment, rest;
    if (path->len > 0 && path->data[0] == '/')
        *path = (struct str){path->data + 1, path->len - 1};
    if (!str_cut(*path, '/', &segment, &rest)) {
        segment = *path;
        *path = (struct str){path->data + path->len, 0};
        return segment;
    }
    *path = (struct str){segment.data + segment.len, path->len - segment.len};
    return segment;
}

/* As rule_path_of(). Sets *ret_group and *ret_resource to the path's parts. */
static enum rule_path take_path(struct str path, struct str *ret_group, struct str *ret_resource)
{
    struct str root = take_segment(&path);
    bool named = str_is(root, "apis");
    *ret_group = *ret_resource = (struct str){0};
    if (!named && !str_is(root, "api"))
        return RULE_NO_OBJECT;
    *ret_group = named ? take_segment(&path) : STR("");
    struct str version = take_segment(&path), resource = take_segment(&path);
    struct str name = take_segment(&path), sub = take_segment(&path);
    if (str_is(resource, "namespaces") && sub.len > 0) {
        resource = sub;
        name = take_segment(&path);
        sub = take_segment(&path);
    }
    *ret_resource = resource;
    if (version.len == 0 || resource.len == 0 || path.len > 0)
        return RULE_NO_OBJECT;
    return sub.len > 0 ? RULE_SUBRESOURCE : name.len > 0 ? RULE_OBJECT : RULE_COLLECTION;
}

enum rule_path rule_path_of(struct str path)
{
    struct str group, resource;
    return take_path(path, &group, &resource);
}

/* Returns whether the path names a collection or an object that every controller has. */
static bool is_shared(struct str path)
{
    struct str group, resource;
    enum rule_path names = take_path(path, &group, &resource);
    return (names == RULE_COLLECTION || names == RULE_OBJECT) && !str_is(group, "metrics.k8s.io") &&
           !str_is(resource, "maintenances");
}

/* Returns the value of a query parameter; .data is NULL if it is absent. */
static struct str parameter(struct str query, const char *name)
{
    struct str key, value;
    while (query_next(&query, &key, &value))
        if (str_is(key, name))
            return value;
    return (struct str){0};
}

/* Returns whether the path asks if this process is alive. /readyz asks whether writes are taken, which the
 * leader knows. */
static bool asks_for_life(struct str path)
{
    return str_is(path, "/livez") || str_is(path, "/healthz");
}

struct read_rule rule_of(const struct http_head *head)
{
    struct str path = head->target, query = {0};
    struct read_rule rule = {0};
    bool reads = str_is(head->method, "GET") || str_is(head->method, "HEAD");
    (void)str_cut(head->target, '?', &path, &query);
    if (!reads || head->content_length != 0 || http_head_value(head, "Upgrade").data)
        return rule;
    if (asks_for_life(path)) {
        rule.here = true;
        return rule;
    }
    if (!is_shared(path))
        return rule;
    struct str version = parameter(query, "resourceVersion");
    int64_t number = 0;
    if (version.len > 0 && !str_to_i64(version, 0, INT64_MAX, &number))
        return rule; /* the leader answers what is wrong with it */
    rule.here = true;
    rule.newest = version.len == 0;
    rule.version = (uint64_t)number;
    return rule;
}
