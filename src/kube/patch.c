#include "kube/patch.h"

#include "base/check.h"
#include "kube/members.h"

struct doc *patch_merge(struct arena *arena, struct doc *target, const struct doc *patch)
{
    if (patch->kind != DOC_OBJECT)
        return doc_clone(arena, patch);
    if (!target || target->kind != DOC_OBJECT)
        target = doc_new(arena, DOC_OBJECT);
    struct members members MEMBERS_CLEANUP = members_of(target);
    static struct doc gone = {.kind = DOC_NULL};
    size_t kept = 0;
    for (size_t i = 0; i < patch->object.len; i++) {
        const struct doc_member *member = &patch->object.members[i];
        struct doc *old = members_get(&members, member->key);
        if (member->value->kind != DOC_NULL)
            members_set(arena, &members, member->key, patch_merge(arena, old, member->value));
        else if (old)
            members_set(arena, &members, member->key, &gone);
    }
    for (size_t i = 0; i < target->object.len; i++)
        if (target->object.members[i].value != &gone)
            target->object.members[kept++] = target->object.members[i];
    target->object.len = kept;
    return target;
}

/* --- JSON patch -------------------------------------------------------------------------------- */

struct patching {
    struct arena *arena;
    struct doc *root;
    size_t copied;
    struct error *error;
};

/* Levels and nodes below and with `node`; false beyond the limits. */
static bool measure(const struct doc *node, size_t depth, size_t *ret_depth, size_t *count)
{
    if (depth > PATCH_DEPTH_MAX || ++*count > PATCH_COPIES_MAX)
        return false;
    if (depth > *ret_depth)
        *ret_depth = depth;
    for (size_t i = 0; i < doc_len(node); i++) {
        const struct doc *child =
            node->kind == DOC_ARRAY ? node->array.items[i] : node->object.members[i].value;
        if (!measure(child, depth + 1, ret_depth, count))
            return false;
    }
    return true;
}

/* Reads one token of a JSON pointer (RFC 6901) at *path, which begins with '/'. */
static bool next_token(struct patching *patching, struct str *path, struct str *ret_token)
{
    if (path->len == 0 || path->data[0] != '/')
        return false;
    char *out = arena_alloc(patching->arena, path->len);
    size_t len = 0, at = 1;
    for (; at < path->len && path->data[at] != '/'; at++) {
        char c = path->data[at];
        if (c == '~') {
            if (++at == path->len || (path->data[at] != '0' && path->data[at] != '1'))
                return false;
            c = path->data[at] == '0' ? '~' : '/';
        }
        out[len++] = c;
    }
    out[len] = 0;
    *ret_token = (struct str){out, len};
    *path = (struct str){path->data + at, path->len - at};
    return true;
}

static struct doc *child_of(const struct doc *node, struct str token)
{
    int64_t index;
    if (node->kind == DOC_OBJECT)
        return doc_get_str(node, token);
    bool plain = token.len == 1 || (token.len && token.data[0] != '0' && token.data[0] != '+');
    return node->kind == DOC_ARRAY && plain && str_to_i64(token, 0, INT32_MAX, &index)
               ? doc_at(node, (size_t)index)
               : NULL;
}

/* Finds the node that holds the last token. 0, or an error that names the path. */
static int locate(struct patching *patching, struct str path, struct doc **ret_parent, struct str *ret_token,
                  size_t *ret_depth)
{
    struct str rest = path, token;
    struct doc *node = patching->root;
    for (size_t depth = 1; depth <= PATCH_DEPTH_MAX; depth++) {
        if (!next_token(patching, &rest, &token))
            break;
        if (rest.len == 0) {
            *ret_parent = node;
            *ret_token = token;
            *ret_depth = depth;
            return 0;
        }
        node = child_of(node, token);
        if (!node)
            return error_set(patching->error, ERROR_INVALID, "nothing is at \"" STR_FORMAT "\"",
                             STR_ARG(path));
    }
    return error_set(patching->error, ERROR_INVALID, "\"" STR_FORMAT "\" is not a usable path",
                     STR_ARG(path));
}

static int find(struct patching *patching, struct str path, struct doc **ret_node)
{
    struct doc *parent;
    struct str token;
    size_t depth;
    if (path.len == 0) {
        *ret_node = patching->root;
        return 0;
    }
    int rc = locate(patching, path, &parent, &token, &depth);
    if (rc < 0)
        return rc;
    struct doc *node = child_of(parent, token);
    if (!node)
        return error_set(patching->error, ERROR_INVALID, "nothing is at \"" STR_FORMAT "\"", STR_ARG(path));
    *ret_node = node;
    return 0;
}

static int insert(struct patching *patching, struct doc *array, struct str token, struct doc *value)
{
    int64_t index = (int64_t)array->array.len;
    if (!str_is(token, "-") && (!str_to_i64(token, 0, INT32_MAX, &index) || (size_t)index > array->array.len))
        return error_set(patching->error, ERROR_INVALID, "\"" STR_FORMAT "\" is not an index of the list",
                         STR_ARG(token));
    doc_push(patching->arena, array, value);
    size_t last = array->array.len - 1;
    memmove(&array->array.items[index + 1], &array->array.items[index],
            (last - (size_t)index) * sizeof *array->array.items);
    array->array.items[index] = value;
    return 0;
}

static int add(struct patching *patching, struct str path, struct doc *value)
{
    struct doc *parent;
    struct str token;
    size_t depth, deepest = 0;
    if (path.len == 0) {
        patching->root = value;
        return 0;
    }
    int rc = locate(patching, path, &parent, &token, &depth);
    if (rc < 0)
        return rc;
    if (!measure(value, depth, &deepest, &patching->copied))
        return error_set(patching->error, ERROR_LIMIT, "the patch nests or copies too much");
    if (parent->kind == DOC_ARRAY)
        return insert(patching, parent, token, value);
    if (parent->kind != DOC_OBJECT)
        return error_set(patching->error, ERROR_INVALID, "\"" STR_FORMAT "\" is inside a %s", STR_ARG(path),
                         doc_kind_name(parent->kind));
    doc_set(patching->arena, parent, token, value);
    return 0;
}

static int take_out(struct patching *patching, struct str path)
{
    struct doc *parent;
    struct str token;
    size_t depth;
    int rc = locate(patching, path, &parent, &token, &depth);
    if (rc < 0)
        return rc;
    const struct doc *node = child_of(parent, token);
    if (!node)
        return error_set(patching->error, ERROR_INVALID, "nothing is at \"" STR_FORMAT "\"", STR_ARG(path));
    if (parent->kind == DOC_OBJECT) {
        doc_unset(parent, token.data);
        return 0;
    }
    CHECK(parent->kind == DOC_ARRAY);
    size_t index = 0;
    while (parent->array.items[index] != node)
        index++;
    memmove(&parent->array.items[index], &parent->array.items[index + 1],
            (parent->array.len - index - 1) * sizeof *parent->array.items);
    parent->array.len--;
    return 0;
}

static int copy_from(struct patching *patching, struct str from, struct doc **ret_value)
{
    struct doc *node = NULL;
    size_t deepest = 0;
    int rc = find(patching, from, &node);
    if (rc < 0)
        return rc;
    if (!measure(node, 0, &deepest, &patching->copied))
        return error_set(patching->error, ERROR_LIMIT, "the patch nests or copies too much");
    *ret_value = doc_clone(patching->arena, node);
    return 0;
}

static int replace(struct patching *patching, struct str path, struct doc *value)
{
    struct doc *parent;
    struct str token;
    size_t depth;
    struct doc *old;
    int rc = find(patching, path, &old);
    if (rc < 0 || path.len == 0) {
        if (rc == 0)
            patching->root = value;
        return rc;
    }
    rc = locate(patching, path, &parent, &token, &depth);
    CHECK(rc == 0);
    if (parent->kind != DOC_ARRAY)
        return add(patching, path, value);
    rc = take_out(patching, path);
    return rc < 0 ? rc : insert(patching, parent, token, value);
}

static int move(struct patching *patching, struct str from, struct str path)
{
    struct doc *value;
    if (str_starts(path, from) && path.len > from.len && path.data[from.len] == '/')
        return error_set(patching->error, ERROR_INVALID, "\"" STR_FORMAT "\" cannot move into itself",
                         STR_ARG(from));
    if (str_equal(from, path))
        return find(patching, from, &value);
    int rc = copy_from(patching, from, &value);
    if (rc == 0)
        rc = take_out(patching, from);
    return rc < 0 ? rc : add(patching, path, value);
}

static int test(struct patching *patching, struct str path, const struct doc *value)
{
    struct doc *node;
    int rc = find(patching, path, &node);
    if (rc < 0)
        return rc;
    if (!doc_equal(node, value))
        return error_set(patching->error, ERROR_CONFLICT, "testing path \"" STR_FORMAT "\" failed",
                         STR_ARG(path));
    return 0;
}

static int apply_one(struct patching *patching, const struct doc *operation)
{
    struct str op = doc_str(doc_get(operation, "op"), (struct str){0});
    const struct doc *path_node = doc_get(operation, "path"), *from_node = doc_get(operation, "from");
    struct str path = doc_str(path_node, (struct str){0}), from = doc_str(from_node, (struct str){0});
    const struct doc *given = doc_get(operation, "value");
    struct doc *value = given ? doc_clone(patching->arena, given) : NULL;
    bool needs_value = str_is(op, "add") || str_is(op, "replace") || str_is(op, "test");
    if (!path_node || path_node->kind != DOC_STRING || (needs_value && !value))
        return error_set(patching->error, ERROR_INVALID, "an operation needs a path, and this one a value");
    if (str_is(op, "add"))
        return add(patching, path, value);
    if (str_is(op, "replace"))
        return replace(patching, path, value);
    if (str_is(op, "test"))
        return test(patching, path, value);
    if (str_is(op, "remove"))
        return take_out(patching, path);
    if (!from_node || from_node->kind != DOC_STRING || (!str_is(op, "move") && !str_is(op, "copy")))
        return error_set(patching->error, ERROR_INVALID, "unknown operation \"" STR_FORMAT "\"", STR_ARG(op));
    if (str_is(op, "move"))
        return move(patching, from, path);
    int rc = copy_from(patching, from, &value);
    return rc < 0 ? rc : add(patching, path, value);
}

int patch_apply(struct arena *arena, struct doc **target, const struct doc *operations, struct error *error)
{
    if (operations->kind != DOC_ARRAY)
        return error_set(error, ERROR_INVALID, "a JSON patch is a list of operations");
    if (doc_len(operations) > PATCH_OPERATIONS_MAX)
        return error_set(error, ERROR_LIMIT, "at most %d operations", PATCH_OPERATIONS_MAX);
    struct patching patching = {.arena = arena, .root = *target, .error = error};
    for (size_t i = 0; i < doc_len(operations); i++) {
        int rc = apply_one(&patching, doc_at(operations, i));
        if (rc < 0) {
            error_wrap(error, "operation %zu", i);
            return rc;
        }
    }
    *target = patching.root;
    return 0;
}
