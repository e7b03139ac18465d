#include "host/access/rbac.h"

#include "base/check.h"
#include "base/map.h"
#include "base/vec.h"

struct words {
    struct str *items;
    size_t len;
};
struct rule {
    struct words verbs, groups, resources, names, urls;
    const struct doc *document;
};
struct role {
    struct str key; /* "namespace/name"; "/name" for ClusterRoles */
    struct rule *rules;
    size_t rule_count;
    const struct doc *document, *labels, *aggregation;
    struct doc *all_rules; /* the document's, with what was aggregated */
};
struct binding {
    struct str role_key, namespace_; /* namespace empty: everywhere */
    const struct role *role;         /* NULL: there is none */
};
/* The bindings of one subject: "u:name" or "g:name". */
struct grants {
    VEC(struct binding *) list;
};

struct rbac {
    struct arena arena;
    struct str_map roles;    /* key -> struct role */
    struct str_map subjects; /* "u:name", "g:group" -> struct grants */
    VEC(struct role *) role_list;
    VEC(struct binding *) bindings;
    VEC(struct grants *) grant_list;
    bool sealed;
};

struct rbac *rbac_new(void)
{
    return mem_alloc(sizeof(struct rbac));
}

void rbac_free(struct rbac *policy)
{
    if (!policy)
        return;
    for (size_t i = 0; i < policy->grant_list.len; i++)
        vec_done(&policy->grant_list.items[i]->list);
    vec_done(&policy->grant_list);
    vec_done(&policy->bindings);
    vec_done(&policy->role_list);
    str_map_done(&policy->roles);
    str_map_done(&policy->subjects);
    arena_done(&policy->arena);
    mem_free(policy);
}

/* --- building ------------------------------------------------------------------------------------------- */

static struct words read_words(struct arena *arena, const struct doc *list)
{
    struct words words = {ARENA_ARRAY(arena, struct str, doc_len(list)), 0};
    for (size_t i = 0; i < doc_len(list); i++) {
        struct str word = doc_str(doc_at(list, i), (struct str){0});
        if (word.data)
            words.items[words.len++] = word;
    }
    return words;
}

static struct rule read_rule(struct arena *arena, const struct doc *document)
{
    return (struct rule){.verbs = read_words(arena, doc_get(document, "verbs")),
                         .groups = read_words(arena, doc_get(document, "apiGroups")),
                         .resources = read_words(arena, doc_get(document, "resources")),
                         .names = read_words(arena, doc_get(document, "resourceNames")),
                         .urls = read_words(arena, doc_get(document, "nonResourceURLs")),
                         .document = document};
}

static struct str role_key(struct arena *arena, struct str namespace_, struct str name)
{
    return arena_printf(arena, STR_FORMAT "/" STR_FORMAT, STR_ARG(namespace_), STR_ARG(name));
}

static const struct role *find_role(const struct rbac *policy, struct str namespace_, struct str name)
{
    struct buf key BUF_CLEANUP = {0};
    buf_printf(&key, STR_FORMAT "/" STR_FORMAT, STR_ARG(namespace_), STR_ARG(name));
    return str_map_get(&policy->roles, buf_str(&key));
}

bool rbac_has_role(const struct rbac *policy, struct str namespace_, struct str name)
{
    return find_role(policy, namespace_, name) != NULL;
}

static void add_role(struct rbac *policy, struct str namespace_, struct str name, const struct doc *document)
{
    struct arena *arena = &policy->arena;
    struct role *role = ARENA_NEW(arena, struct role);
    role->key = role_key(arena, namespace_, name);
    role->document = document;
    role->labels = doc_path(document, "metadata", "labels", NULL);
    role->aggregation = doc_path(document, "aggregationRule", "clusterRoleSelectors", NULL);
    struct role *old = str_map_put(&policy->roles, role->key, role);
    for (size_t i = 0; old && i < policy->role_list.len; i++)
        if (policy->role_list.items[i] == old) {
            vec_remove(&policy->role_list, i);
            break;
        }
    vec_push(&policy->role_list, role);
}

static void add_binding(struct rbac *policy, struct str namespace_, struct str key, bool group,
                        struct str subject)
{
    struct arena *arena = &policy->arena;
    struct binding *binding = ARENA_NEW(arena, struct binding);
    *binding = (struct binding){.role_key = key, .namespace_ = namespace_};
    struct str name = arena_printf(arena, "%c:" STR_FORMAT, group ? 'g' : 'u', STR_ARG(subject));
    struct grants *grants = str_map_get(&policy->subjects, name);
    if (!grants) {
        grants = ARENA_NEW(arena, struct grants);
        str_map_put(&policy->subjects, name, grants);
        vec_push(&policy->grant_list, grants);
    }
    vec_push(&grants->list, binding);
    vec_push(&policy->bindings, binding);
}

void rbac_bind(struct rbac *policy, struct str role, struct str namespace_, bool group, struct str subject)
{
    struct arena *arena = &policy->arena;
    add_binding(policy, arena_str(arena, namespace_), role_key(arena, STR(""), role), group, subject);
}

/* ServiceAccounts are users "system:serviceaccount:NAMESPACE:NAME". */
static void add_subject(struct rbac *policy, struct str namespace_, struct str key, const struct doc *subject)
{
    struct str kind = doc_str(doc_get(subject, "kind"), STR(""));
    struct str name = doc_str(doc_get(subject, "name"), STR(""));
    if (name.len == 0)
        return;
    if (str_is(kind, "ServiceAccount")) {
        struct str space = doc_str(doc_get(subject, "namespace"), namespace_);
        name = arena_printf(&policy->arena, "system:serviceaccount:" STR_FORMAT ":" STR_FORMAT,
                            STR_ARG(space), STR_ARG(name));
        add_binding(policy, namespace_, key, false, name);
    } else if (str_is(kind, "User") || str_is(kind, "Group")) {
        add_binding(policy, namespace_, key, str_is(kind, "Group"), name);
    }
}

static int add_one(struct rbac *policy, const struct doc *document, struct error *error)
{
    struct arena *arena = &policy->arena;
    struct str kind = doc_str(doc_get(document, "kind"), STR(""));
    struct str name = doc_str(doc_path(document, "metadata", "name", NULL), STR(""));
    struct str namespace_ = doc_str(doc_path(document, "metadata", "namespace", NULL), STR("default"));
    bool cluster = str_starts(kind, STR("Cluster"));
    bool role = str_is(kind, "Role") || str_is(kind, "ClusterRole");
    bool binding = str_is(kind, "RoleBinding") || str_is(kind, "ClusterRoleBinding");
    if (!role && !binding)
        return error_set(error, ERROR_INVALID, "kind \"" STR_FORMAT "\" is neither a role nor a binding",
                         STR_ARG(kind));
    if (name.len == 0)
        return error_set(error, ERROR_INVALID, "a " STR_FORMAT " needs metadata.name", STR_ARG(kind));
    if (cluster)
        namespace_ = STR("");
    const struct doc *copy = doc_clone(arena, document);
    if (role) {
        add_role(policy, namespace_, name, copy);
        return 0;
    }
    const struct doc *ref = doc_get(copy, "roleRef"), *subjects = doc_get(copy, "subjects");
    struct str role_kind = doc_str(doc_get(ref, "kind"), STR("")),
               role_name = doc_str(doc_get(ref, "name"), STR(""));
    if ((!str_is(role_kind, "Role") && !str_is(role_kind, "ClusterRole")) || role_name.len == 0 ||
        (cluster && str_is(role_kind, "Role")))
        return error_set(error, ERROR_INVALID, STR_FORMAT " \"" STR_FORMAT "\": roleRef names no role",
                         STR_ARG(kind), STR_ARG(name));
    namespace_ = arena_str(arena, namespace_);
    struct str key = role_key(arena, str_is(role_kind, "Role") ? namespace_ : STR(""), role_name);
    for (size_t i = 0; i < doc_len(subjects); i++)
        add_subject(policy, namespace_, key, doc_at(subjects, i));
    return 0;
}

int rbac_add(struct rbac *policy, const struct doc *document, struct error *error)
{
    CHECK(!policy->sealed);
    if (!str_is(doc_str(doc_get(document, "kind"), STR("")), "List"))
        return add_one(policy, document, error);
    const struct doc *items = doc_get(document, "items");
    for (size_t i = 0; i < doc_len(items); i++) {
        int rc = add_one(policy, doc_at(items, i), error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* matchLabels of a selector; one without any selects nothing. */
static bool selects(const struct doc *selector, const struct doc *labels)
{
    const struct doc *wanted = doc_get(selector, "matchLabels");
    if (!wanted || wanted->kind != DOC_OBJECT || wanted->object.len == 0)
        return false;
    for (size_t i = 0; i < wanted->object.len; i++) {
        const struct doc_member *member = &wanted->object.members[i];
        struct str have = doc_str(doc_get_str(labels, member->key), (struct str){0});
        if (!have.data || !str_equal(have, doc_str(member->value, STR(""))))
            return false;
    }
    return true;
}

static void append_rules(struct rbac *policy, struct doc *all, const struct role *role)
{
    const struct doc *rules = doc_get(role->document, "rules");
    for (size_t i = 0; i < doc_len(rules); i++)
        doc_push(&policy->arena, all, doc_at(rules, i));
}

static void seal_role(struct rbac *policy, struct role *role)
{
    struct arena *arena = &policy->arena;
    role->all_rules = doc_new(arena, DOC_ARRAY);
    append_rules(policy, role->all_rules, role);
    for (size_t i = 0; doc_len(role->aggregation) && i < policy->role_list.len; i++) {
        const struct role *other = policy->role_list.items[i];
        bool matches = false;
        for (size_t k = 0; k < doc_len(role->aggregation); k++)
            matches |= selects(doc_at(role->aggregation, k), other->labels);
        if (matches && other != role && other->key.data[0] == '/')
            append_rules(policy, role->all_rules, other);
    }
    role->rule_count = doc_len(role->all_rules);
    role->rules = ARENA_ARRAY(arena, struct rule, role->rule_count);
    for (size_t i = 0; i < role->rule_count; i++)
        role->rules[i] = read_rule(arena, doc_at(role->all_rules, i));
}

void rbac_seal(struct rbac *policy)
{
    CHECK(!policy->sealed);
    for (size_t i = 0; i < policy->role_list.len; i++)
        seal_role(policy, policy->role_list.items[i]);
    for (size_t i = 0; i < policy->bindings.len; i++) {
        struct binding *binding = policy->bindings.items[i];
        binding->role = str_map_get(&policy->roles, binding->role_key);
    }
    policy->sealed = true;
}

const struct doc *rbac_role_rules(const struct rbac *policy, struct str namespace_, struct str name)
{
    const struct role *role = find_role(policy, namespace_, name);
    return role ? role->all_rules : NULL;
}

/* --- asking --------------------------------------------------------------------------------------------- */

static bool has_word(struct words words, struct str word)
{
    for (size_t i = 0; i < words.len; i++)
        if (str_is(words.items[i], "*") || str_equal(words.items[i], word))
            return true;
    return false;
}

/* "pods", "pods/log", "*" (all, subresources too), and "*" with a subresource: that one of every resource. */
static bool has_resource(struct words words, struct str resource, struct str subresource)
{
    for (size_t i = 0; i < words.len; i++) {
        struct str word = words.items[i], head, tail;
        if (str_is(word, "*"))
            return true;
        if (!str_cut(word, '/', &head, &tail)) {
            if (subresource.len == 0 && str_equal(word, resource))
                return true;
        } else if (subresource.len && str_equal(tail, subresource) &&
                   (str_is(head, "*") || str_equal(head, resource))) {
            return true;
        }
    }
    return false;
}

static bool has_name(struct words names, struct str name)
{
    if (names.len == 0)
        return true;
    for (size_t i = 0; name.len && i < names.len; i++)
        if (str_equal(names.items[i], name))
            return true;
    return false;
}

static bool has_url(struct words urls, struct str path)
{
    for (size_t i = 0; i < urls.len; i++) {
        struct str url = urls.items[i];
        if (url.len && url.data[url.len - 1] == '*') {
            if (str_starts(path, (struct str){url.data, url.len - 1}))
                return true;
        } else if (str_equal(url, path)) {
            return true;
        }
    }
    return false;
}

static bool rule_allows(const struct rule *rule, const struct access_attributes *what)
{
    if (!has_word(rule->verbs, what->verb))
        return false;
    if (what->resource.len == 0)
        return has_url(rule->urls, what->path);
    return has_word(rule->groups, what->group) &&
           has_resource(rule->resources, what->resource, what->subresource) &&
           has_name(rule->names, what->name);
}

/* Calls `visit` with every rule that the user holds in the namespace; stops when it returns true. */
typedef bool rule_fn(void *context, const struct rule *rule);
static bool any_rule(const struct rbac *policy, const struct access_user *user, struct str namespace_,
                     rule_fn *visit, void *context)
{
    CHECK(policy->sealed);
    for (size_t i = 0; i <= user->group_count; i++) {
        struct buf name BUF_CLEANUP = {0};
        struct str subject = i == 0 ? user->name : user->groups[i - 1];
        buf_printf(&name, "%c:" STR_FORMAT, i == 0 ? 'u' : 'g', STR_ARG(subject));
        const struct grants *grants = str_map_get(&policy->subjects, buf_str(&name));
        for (size_t k = 0; grants && k < grants->list.len; k++) {
            const struct binding *binding = grants->list.items[k];
            if (!binding->role || (binding->namespace_.len && !str_equal(binding->namespace_, namespace_)))
                continue;
            for (size_t r = 0; r < binding->role->rule_count; r++)
                if (visit(context, &binding->role->rules[r]))
                    return true;
        }
    }
    return false;
}

static bool allows(void *context, const struct rule *rule)
{
    return rule_allows(rule, context);
}

bool rbac_allows(const struct rbac *policy, const struct access_user *user,
                 const struct access_attributes *attributes)
{
    struct access_attributes what = *attributes;
    return any_rule(policy, user, what.namespace_, allows, &what);
}

struct visiting {
    void (*visit)(void *context, const struct doc *rule);
    void *context;
};

static bool visit_document(void *context, const struct rule *rule)
{
    struct visiting *visiting = context;
    visiting->visit(visiting->context, rule->document);
    return false;
}

void rbac_visit_rules(const struct rbac *policy, const struct access_user *user, struct str namespace_,
                      void (*visit)(void *context, const struct doc *rule), void *context)
{
    any_rule(policy, user, namespace_, visit_document, &(struct visiting){visit, context});
}

/* --- who may give what ---------------------------------------------------------------------------------- */

/* A verb on a resource (or URL) of a rule: the smallest right that a user can hold. Literal: "*" is only
 * covered by "*". */
struct atom {
    struct str verb, group, resource, name, url;
};

static bool holds(void *context, const struct rule *rule)
{
    const struct atom *atom = context;
    if (!has_word(rule->verbs, atom->verb))
        return false;
    if (atom->url.len)
        return has_url(rule->urls, atom->url);
    struct str head = atom->resource, tail = {0};
    str_cut(atom->resource, '/', &head, &tail);
    return has_word(rule->groups, atom->group) && has_resource(rule->resources, head, tail) &&
           has_name(rule->names, atom->name);
}

static bool covers_rule(const struct rbac *policy, const struct access_user *user, struct str namespace_,
                        const struct rule *rule)
{
    struct str none = {0};
    size_t names = rule->names.len ? rule->names.len : 1;
    for (size_t v = 0; v < rule->verbs.len; v++) {
        for (size_t u = 0; u < rule->urls.len; u++) {
            struct atom atom = {.verb = rule->verbs.items[v], .url = rule->urls.items[u]};
            if (!any_rule(policy, user, namespace_, holds, &atom))
                return false;
        }
        for (size_t i = 0; i < rule->groups.len * rule->resources.len * names; i++) {
            struct atom atom = {.verb = rule->verbs.items[v]};
            atom.name = rule->names.len ? rule->names.items[i % names] : none;
            atom.resource = rule->resources.items[i / names % rule->resources.len];
            atom.group = rule->groups.items[i / names / rule->resources.len];
            if (!any_rule(policy, user, namespace_, holds, &atom))
                return false;
        }
    }
    return true;
}

bool rbac_covers(const struct rbac *policy, const struct access_user *user, struct str namespace_,
                 const struct doc *rules)
{
    struct arena arena ARENA_CLEANUP = {0};
    for (size_t i = 0; i < doc_len(rules); i++) {
        struct rule rule = read_rule(&arena, doc_at(rules, i));
        if (!covers_rule(policy, user, namespace_, &rule))
            return false;
    }
    return true;
}
