#include "kube/patch.h"

#include "base/check.h"
#include "kube/members.h"
#include "kube/visits.h"

/* Marks a removed member until its object is settled. */
static struct doc gone = {.kind = DOC_NULL};

/* Removes the marked members from the object. */
static void compact(struct doc *object)
{
    size_t kept = 0;
    for (size_t i = 0; i < object->object.len; i++)
        if (object->object.members[i].value != &gone)
            object->object.members[kept++] = object->object.members[i];
    object->object.len = kept;
}

struct doc *patch_merge(struct arena *arena, struct doc *target, const struct doc *patch)
{
    if (patch->kind != DOC_OBJECT)
        return doc_clone(arena, patch);
    if (!target || target->kind != DOC_OBJECT)
        target = doc_new(arena, DOC_OBJECT);
    struct members members MEMBERS_CLEANUP = members_of(target);
    for (size_t i = 0; i < patch->object.len; i++) {
        const struct doc_member *member = &patch->object.members[i];
        struct doc *old = members_get(&members, member->key);
        if (member->value->kind != DOC_NULL)
            members_set(arena, &members, member->key, patch_merge(arena, old, member->value));
        else if (old)
            members_set(arena, &members, member->key, &gone);
    }
    compact(target);
    return target;
}

/* --- JSON patch -------------------------------------------------------------------------------- */

enum { LARGE = 32, INDEXES = 4, MOVED_ITEMS_A_VISIT = 8 };

struct patching {
    struct arena *arena;
    struct doc *root;
    size_t copied, copied_bytes;
    struct visits visits;
    /* The indexes of the large objects that were visited last. A removed member stays in its object as
     * `gone`, so that the index remains valid; settle() removes such members. */
    struct members indexed[INDEXES];
    size_t next_index;
    struct error *error;
};

static int charge(struct patching *patching, size_t visits)
{
    return visits_charge(&patching->visits, visits);
}

static int settle(struct patching *patching, struct members *members)
{
    struct doc *object = members->object;
    if (!object)
        return 0;
    compact(object);
    members_done(members);
    *members = (struct members){0};
    return charge(patching, doc_len(object));
}

/* Settles all indexed objects, before a whole tree is read that may contain them. */
static int settle_all(struct patching *patching)
{
    int rc = 0;
    for (size_t i = 0; i < INDEXES; i++)
        if (settle(patching, &patching->indexed[i]) < 0)
            rc = ERROR_LIMIT;
    return rc;
}

/* Returns the index of a large object, or NULL beyond the budget. */
static struct members *index_of(struct patching *patching, struct doc *object)
{
    for (size_t i = 0; i < INDEXES; i++)
        if (patching->indexed[i].object == object)
            return &patching->indexed[i];
    struct members *members = &patching->indexed[patching->next_index++ % INDEXES];
    if (settle(patching, members) < 0 || charge(patching, VISITS_OF_INDEXED * doc_len(object)) < 0)
        return NULL;
    *members = members_of(object);
    return members;
}

static bool is_large(const struct doc *node)
{
    return node->kind == DOC_OBJECT && doc_len(node) > LARGE;
}

/* Counts levels, nodes and bytes of text of `node` and below. Returns false beyond the limits. */
static bool measure(struct patching *patching, const struct doc *node, size_t depth)
{
    if (node->kind == DOC_STRING)
        patching->copied_bytes += node->text.len;
    if (depth > PATCH_DEPTH_MAX || ++patching->copied > PATCH_COPIES_MAX ||
        patching->copied_bytes > PATCH_COPIED_BYTES_MAX)
        return false;
    for (size_t i = 0; i < doc_len(node); i++) {
        const struct doc *child =
            node->kind == DOC_ARRAY ? node->array.items[i] : node->object.members[i].value;
        if (node->kind == DOC_OBJECT)
            patching->copied_bytes += node->object.members[i].key.len;
        if (!measure(patching, child, depth + 1))
            return false;
    }
    return true;
}

/* Reads one token of a JSON pointer (RFC 6901) at *path, which begins with '/'. */
static bool next_token(struct patching *patching, struct str *path, struct str *ret_token)
{
    if (path->len == 0 || path->data[0] != '/')
        return false;
    const char *start = path->data + 1, *slash = memchr(start, '/', path->len - 1);
    size_t raw = slash ? (size_t)(slash - start) : path->len - 1, len = 0;
    char *out = arena_alloc(patching->arena, raw + 1);
    for (size_t at = 0; at < raw; at++) {
        char c = start[at];
        if (c == '~') {
            if (++at == raw || (start[at] != '0' && start[at] != '1'))
                return false;
            c = start[at] == '0' ? '~' : '/';
        }
        out[len++] = c;
    }
    out[len] = 0;
    *ret_token = (struct str){out, len};
    *path = (struct str){start + raw, path->len - 1 - raw};
    return true;
}

/* Returns the index in the list that the token names, or -1 if it names none. */
static int64_t place_of(const struct doc *array, struct str token)
{
    int64_t index;
    bool plain = token.len == 1 || (token.len && token.data[0] != '0' && token.data[0] != '+');
    bool inside = plain && str_to_i64(token, 0, INT32_MAX, &index) && (size_t)index < array->array.len;
    return inside ? index : -1;
}

/* Finds a child; *ret_child is NULL if there is none. Returns 0 or ERROR_LIMIT. */
static int child_of(struct patching *patching, struct doc *node, struct str token, struct doc **ret_child)
{
    *ret_child = NULL;
    if (is_large(node)) {
        const struct members *members = index_of(patching, node);
        if (!members)
            return ERROR_LIMIT;
        struct doc *child = members_get(members, token);
        *ret_child = child == &gone ? NULL : child;
    } else if (node->kind == DOC_OBJECT) {
        *ret_child = doc_get_str(node, token);
    } else if (node->kind == DOC_ARRAY && place_of(node, token) >= 0) {
        *ret_child = doc_at(node, (size_t)place_of(node, token));
    }
    return charge(patching, 1);
}

static int nothing_at(struct patching *patching, struct str path)
{
    return error_set(patching->error, ERROR_INVALID, "nothing is at \"" STR_FORMAT "\"", STR_ARG(path));
}

/* Finds the node that holds the last token. Returns 0, or an error that names the path. */
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
        int rc = child_of(patching, node, token, &node);
        if (rc < 0)
            return rc;
        if (!node)
            return nothing_at(patching, path);
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
    rc = child_of(patching, parent, token, ret_node);
    return rc < 0 || *ret_node ? rc : nothing_at(patching, path);
}

static int insert(struct patching *patching, struct doc *array, struct str token, struct doc *value)
{
    int64_t index = (int64_t)array->array.len;
    if (!str_is(token, "-") && (!str_to_i64(token, 0, INT32_MAX, &index) || (size_t)index > array->array.len))
        return error_set(patching->error, ERROR_INVALID, "\"" STR_FORMAT "\" is not an index of the list",
                         STR_ARG(token));
    int rc = charge(patching, (array->array.len - (size_t)index) / MOVED_ITEMS_A_VISIT);
    if (rc < 0)
        return rc;
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
    size_t depth;
    if (path.len == 0) {
        patching->root = value;
        return 0;
    }
    int rc = locate(patching, path, &parent, &token, &depth);
    if (rc < 0)
        return rc;
    if (!measure(patching, value, depth))
        return error_set(patching->error, ERROR_LIMIT, "the patch nests or copies too much");
    if (parent->kind == DOC_ARRAY)
        return insert(patching, parent, token, value);
    if (parent->kind != DOC_OBJECT)
        return error_set(patching->error, ERROR_INVALID, "\"" STR_FORMAT "\" is inside a %s", STR_ARG(path),
                         doc_kind_name(parent->kind));
    if (!is_large(parent)) {
        doc_set(patching->arena, parent, token, value);
        return 0;
    }
    struct members *members = index_of(patching, parent);
    if (!members)
        return ERROR_LIMIT;
    members_set(patching->arena, members, token, value);
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
    struct doc *node;
    rc = child_of(patching, parent, token, &node);
    if (rc < 0 || !node)
        return rc < 0 ? rc : nothing_at(patching, path);
    if (parent->kind == DOC_OBJECT) {
        if (is_large(parent))
            members_set(patching->arena, index_of(patching, parent), token, &gone);
        else
            doc_unset(parent, token.data);
        return 0;
    }
    size_t index = (size_t)place_of(parent, token), behind = parent->array.len - index - 1;
    memmove(&parent->array.items[index], &parent->array.items[index + 1],
            behind * sizeof *parent->array.items);
    parent->array.len--;
    return charge(patching, behind / MOVED_ITEMS_A_VISIT);
}

static int copy_from(struct patching *patching, struct str from, struct doc **ret_value)
{
    struct doc *node = NULL;
    int rc = find(patching, from, &node);
    if (rc == 0 && doc_len(node) > 0)
        rc = settle_all(patching);
    if (rc < 0)
        return rc;
    if (!measure(patching, node, 0))
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
    if (rc == 0 && doc_len(node) > 0)
        rc = settle_all(patching);
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
    struct patching patching = {.arena = arena, .root = *target, .visits = {.error = error}, .error = error};
    int rc = 0;
    for (size_t i = 0; i < doc_len(operations) && rc == 0; i++) {
        rc = apply_one(&patching, doc_at(operations, i));
        if (rc < 0)
            error_wrap(error, "operation %zu", i);
    }
    int settled = settle_all(&patching);
    *target = patching.root;
    return rc < 0 ? rc : settled;
}
