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
struct role;
/* A name of roles that exist, or that bindings refer to: "namespace/name", "/name" for ClusterRoles. */
struct slot {
    struct buf key;
    struct role *top; /* the newest role of this name; NULL: none */
    size_t users;     /* roles and bindings; the slot is freed with the last one */
};
struct role {
    struct slot *slot;
    struct role *below; /* the role of this name that takes effect when this one is removed */
    struct rule *rules;
    size_t rule_count;
    const struct doc *document, *labels, *aggregation;
    struct arena arena;    /* for all_rules and rules of a role that aggregates others */
    struct doc *all_rules; /* the document's rules and the aggregated ones */
};
/* The bindings of one subject in one namespace, or everywhere (""): "u:namespace/name",
 * "g:namespace/name". */
struct grants {
    struct buf name;
    VEC(struct binding *) list;
};
struct binding {
    struct slot *role;
    struct grants *grants;
};
/* The role or the bindings that one document has added. */
struct source {
    struct arena arena;
    struct role *role; /* NULL: a binding */
    VEC(struct binding *) bindings;
    uint64_t uid, version; /* of a followed object; uid 0: permanent */
    int kind;
    bool seen; /* since rbac_follow_begin() */
};

struct rbac {
    struct str_map roles;    /* key -> struct slot */
    struct str_map subjects; /* struct grants by their names */
    struct u64_map by_uid;   /* struct source */
    VEC(struct source *) sources;
    VEC(struct role *) cluster_roles, aggregating;
    bool sealed, aggregates_changed;
};

struct rbac *rbac_new(void)
{
    return mem_alloc(sizeof(struct rbac));
}

/* --- parts that come and go ----------------------------------------------------------------------------- */

static struct slot *slot_use(struct rbac *policy, struct str namespace_, struct str name)
{
    struct buf key = {0};
    buf_printf(&key, STR_FORMAT "/" STR_FORMAT, STR_ARG(namespace_), STR_ARG(name));
    struct slot *slot = str_map_get(&policy->roles, buf_str(&key));
    if (slot) {
        buf_done(&key);
    } else {
        slot = mem_alloc(sizeof *slot);
        slot->key = key;
        str_map_put(&policy->roles, buf_str(&slot->key), slot);
    }
    slot->users++;
    return slot;
}

static void slot_leave(struct rbac *policy, struct slot *slot)
{
    if (--slot->users > 0)
        return;
    CHECK(!slot->top);
    str_map_remove(&policy->roles, buf_str(&slot->key));
    buf_done(&slot->key);
    mem_free(slot);
}

static bool is_of_cluster(const struct role *role)
{
    return role->slot->key.data[0] == '/';
}

static void remove_binding(struct rbac *policy, struct binding *binding)
{
    struct grants *grants = binding->grants;
    size_t at = grants->list.len;
    while (grants->list.items[at - 1] != binding)
        at--;
    vec_remove(&grants->list, at - 1);
    if (grants->list.len == 0) {
        str_map_remove(&policy->subjects, buf_str(&grants->name));
        vec_done(&grants->list);
        buf_done(&grants->name);
        mem_free(grants);
    }
    slot_leave(policy, binding->role);
}

static void remove_role(struct rbac *policy, struct role *role)
{
    struct role **link = &role->slot->top;
    while (*link != role)
        link = &(*link)->below;
    *link = role->below;
    policy->aggregates_changed |= is_of_cluster(role);
    for (size_t i = 0; i < policy->cluster_roles.len; i++)
        if (policy->cluster_roles.items[i] == role) {
            vec_remove(&policy->cluster_roles, i);
            break;
        }
    for (size_t i = 0; i < policy->aggregating.len; i++)
        if (policy->aggregating.items[i] == role) {
            vec_remove(&policy->aggregating, i);
            break;
        }
    slot_leave(policy, role->slot);
    arena_done(&role->arena);
}

static void remove_source(struct rbac *policy, struct source *source)
{
    for (size_t i = source->bindings.len; i-- > 0;) /* the newest first: lists are searched from their ends */
        remove_binding(policy, source->bindings.items[i]);
    if (source->role)
        remove_role(policy, source->role);
    if (source->uid)
        u64_map_remove(&policy->by_uid, source->uid);
    vec_done(&source->bindings);
    arena_done(&source->arena);
    mem_free(source);
}

void rbac_free(struct rbac *policy)
{
    if (!policy)
        return;
    while (policy->sources.len > 0)
        remove_source(policy, policy->sources.items[--policy->sources.len]);
    vec_done(&policy->sources);
    vec_done(&policy->cluster_roles);
    vec_done(&policy->aggregating);
    str_map_done(&policy->roles);
    str_map_done(&policy->subjects);
    u64_map_done(&policy->by_uid);
    mem_free(policy);
}

/* --- building ------------------------------------------------------------------------------------------- */

static struct source *new_source(struct rbac *policy)
{
    struct source *source = mem_alloc(sizeof *source);
    vec_push(&policy->sources, source);
    policy->sealed = false;
    return source;
}

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

static const struct role *find_role(const struct rbac *policy, struct str namespace_, struct str name)
{
    struct buf key BUF_CLEANUP = {0};
    buf_printf(&key, STR_FORMAT "/" STR_FORMAT, STR_ARG(namespace_), STR_ARG(name));
    const struct slot *slot = str_map_get(&policy->roles, buf_str(&key));
    return slot ? slot->top : NULL;
}

bool rbac_has_role(const struct rbac *policy, struct str namespace_, struct str name)
{
    return find_role(policy, namespace_, name) != NULL;
}

static void read_rules(struct arena *arena, struct role *role)
{
    role->rule_count = doc_len(role->all_rules);
    role->rules = ARENA_ARRAY(arena, struct rule, role->rule_count);
    for (size_t i = 0; i < role->rule_count; i++)
        role->rules[i] = read_rule(arena, doc_at(role->all_rules, i));
}

static void append_rules(struct arena *arena, struct doc *all, const struct role *role)
{
    const struct doc *rules = doc_get(role->document, "rules");
    for (size_t i = 0; i < doc_len(rules); i++)
        doc_push(arena, all, doc_at(rules, i));
}

static void add_role(struct rbac *policy, struct source *source, struct str namespace_, struct str name,
                     const struct doc *document)
{
    struct role *role = ARENA_NEW(&source->arena, struct role);
    *role = (struct role){.slot = slot_use(policy, namespace_, name), .document = document};
    role->labels = doc_path(document, "metadata", "labels", NULL);
    role->aggregation = doc_path(document, "aggregationRule", "clusterRoleSelectors", NULL);
    role->below = role->slot->top;
    role->slot->top = source->role = role;
    role->all_rules = doc_new(&source->arena, DOC_ARRAY);
    append_rules(&source->arena, role->all_rules, role);
    read_rules(&source->arena, role);
    if (is_of_cluster(role))
        vec_push(&policy->cluster_roles, role);
    if (doc_len(role->aggregation))
        vec_push(&policy->aggregating, role);
    policy->aggregates_changed |= is_of_cluster(role) || doc_len(role->aggregation);
}

/* A namespace has no '/', so the name is that of one subject alone. */
static void name_grants(struct buf *name, bool group, struct str namespace_, struct str subject)
{
    buf_printf(name, "%c:" STR_FORMAT "/" STR_FORMAT, group ? 'g' : 'u', STR_ARG(namespace_),
               STR_ARG(subject));
}

/* Adds a binding. `role` is a slot that the caller has taken (slot_use()) for the binding. */
static void add_binding(struct rbac *policy, struct source *source, struct slot *role, struct str namespace_,
                        bool group, struct str subject)
{
    struct binding *binding = ARENA_NEW(&source->arena, struct binding);
    struct buf name = {0};
    name_grants(&name, group, namespace_, subject);
    struct grants *grants = str_map_get(&policy->subjects, buf_str(&name));
    if (grants) {
        buf_done(&name);
    } else {
        grants = mem_alloc(sizeof *grants);
        grants->name = name;
        str_map_put(&policy->subjects, buf_str(&grants->name), grants);
    }
    *binding = (struct binding){role, grants};
    vec_push(&grants->list, binding);
    vec_push(&source->bindings, binding);
}

void rbac_bind(struct rbac *policy, struct str role, struct str namespace_, bool group, struct str subject)
{
    struct source *source = new_source(policy);
    add_binding(policy, source, slot_use(policy, STR(""), role), arena_str(&source->arena, namespace_), group,
                subject);
}

struct role_ref {
    struct str role_namespace, role, namespace_; /* namespace_: that of the binding */
};

/* Adds a subject. A ServiceAccount is the user "system:serviceaccount:NAMESPACE:NAME". */
static void add_subject(struct rbac *policy, struct source *source, const struct role_ref *ref,
                        const struct doc *subject)
{
    struct str kind = doc_str(doc_get(subject, "kind"), STR(""));
    struct str name = doc_str(doc_get(subject, "name"), STR(""));
    bool account = str_is(kind, "ServiceAccount"), group = str_is(kind, "Group");
    if (name.len == 0 || (!account && !group && !str_is(kind, "User")))
        return;
    if (account) {
        struct str space = doc_str(doc_get(subject, "namespace"), ref->namespace_);
        name = arena_printf(&source->arena, "system:serviceaccount:" STR_FORMAT ":" STR_FORMAT,
                            STR_ARG(space), STR_ARG(name));
    }
    add_binding(policy, source, slot_use(policy, ref->role_namespace, ref->role), ref->namespace_, group,
                name);
}

static int add_one(struct rbac *policy, struct source *source, const struct doc *document,
                   struct error *error)
{
    struct arena *arena = &source->arena;
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
        add_role(policy, source, namespace_, name, copy);
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
    struct role_ref to = {str_is(role_kind, "Role") ? namespace_ : STR(""), role_name, namespace_};
    for (size_t i = 0; i < doc_len(subjects); i++)
        add_subject(policy, source, &to, doc_at(subjects, i));
    return 0;
}

int rbac_add(struct rbac *policy, const struct doc *document, struct error *error)
{
    CHECK(policy->by_uid.len == 0);
    if (!str_is(doc_str(doc_get(document, "kind"), STR("")), "List"))
        return add_one(policy, new_source(policy), document, error);
    const struct doc *items = doc_get(document, "items");
    for (size_t i = 0; i < doc_len(items); i++) {
        int rc = add_one(policy, new_source(policy), doc_at(items, i), error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- following objects ---------------------------------------------------------------------------------- */

void rbac_follow_begin(struct rbac *policy, int kind)
{
    for (size_t i = 0; i < policy->sources.len; i++)
        if (policy->sources.items[i]->kind == kind)
            policy->sources.items[i]->seen = false;
}

static void drop_at(struct rbac *policy, size_t at)
{
    struct source *source = policy->sources.items[at];
    policy->sources.items[at] = vec_last(&policy->sources);
    policy->sources.len--;
    remove_source(policy, source);
    policy->sealed = false;
}

void rbac_follow(struct rbac *policy, int kind, uint64_t uid, uint64_t version, const struct doc *document)
{
    struct source *source = u64_map_get(&policy->by_uid, uid);
    struct error error;
    CHECK(kind != 0 && uid != 0);
    if (source && source->version == version) {
        source->seen = true;
        return;
    }
    if (source) { /* rbac_follow_end() removes it */
        u64_map_remove(&policy->by_uid, uid);
        source->uid = 0;
    }
    source = new_source(policy);
    source->uid = uid;
    source->version = version;
    source->kind = kind;
    source->seen = true;
    u64_map_put(&policy->by_uid, uid, source);
    (void)add_one(policy, source, document, &error); /* a malformed document of an older log gives nothing */
}

void rbac_follow_end(struct rbac *policy, int kind)
{
    for (size_t i = policy->sources.len; i-- > 0;)
        if (policy->sources.items[i]->kind == kind && !policy->sources.items[i]->seen)
            drop_at(policy, i);
}

/* Returns whether a selector's matchLabels match. A selector without any matches nothing. */
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

/* Collects the rules of a role and of the roles that its selectors match; of these only their own rules. */
static void aggregate(struct rbac *policy, struct role *role)
{
    arena_done(&role->arena);
    role->all_rules = doc_new(&role->arena, DOC_ARRAY);
    append_rules(&role->arena, role->all_rules, role);
    for (size_t i = 0; i < policy->cluster_roles.len; i++) {
        const struct role *other = policy->cluster_roles.items[i];
        bool matches = false;
        for (size_t k = 0; k < doc_len(role->aggregation); k++)
            matches |= selects(doc_at(role->aggregation, k), other->labels);
        if (matches && other != role && other->slot->top == other)
            append_rules(&role->arena, role->all_rules, other);
    }
    read_rules(&role->arena, role);
}

void rbac_seal(struct rbac *policy)
{
    for (size_t i = 0; policy->aggregates_changed && i < policy->aggregating.len; i++)
        aggregate(policy, policy->aggregating.items[i]);
    policy->aggregates_changed = false;
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

/* Matches "pods", "pods/log", "*" (everything), and "*" with a subresource (that one of every resource). */
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

typedef bool rule_fn(void *context, const struct rule *rule);
static bool any_rule_of(const struct grants *grants, rule_fn *visit, void *context)
{
    for (size_t k = 0; k < grants->list.len; k++) {
        const struct role *role = grants->list.items[k]->role->top;
        for (size_t r = 0; role && r < role->rule_count; r++)
            if (visit(context, &role->rules[r]))
                return true;
    }
    return false;
}

/* Calls `visit` with every rule that the user holds in the namespace, until it returns true. */
static bool any_rule(const struct rbac *policy, const struct access_user *user, struct str namespace_,
                     rule_fn *visit, void *context)
{
    CHECK(policy->sealed);
    const struct str places[] = {STR(""), namespace_};
    for (size_t i = 0; i <= user->group_count; i++)
        for (size_t p = 0; p < (namespace_.len ? 2 : 1); p++) {
            struct buf name BUF_CLEANUP = {0};
            name_grants(&name, i > 0, places[p], i == 0 ? user->name : user->groups[i - 1]);
            const struct grants *grants = str_map_get(&policy->subjects, buf_str(&name));
            if (grants && any_rule_of(grants, visit, context))
                return true;
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

/* A verb on a resource (or URL) of a rule: the smallest right that a user can hold. Words are literal: only
 * "*" covers "*". */
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

/* Adds the number of atoms of the rule, or sets it beyond the limit. */
static void count_atoms(const struct rule *rule, uint64_t *count)
{
    const size_t lengths[] = {rule->groups.len, rule->resources.len, rule->names.len ? rule->names.len : 1,
                              rule->verbs.len};
    uint64_t atoms = 1;
    for (int i = 0; i < 4; i++)
        atoms =
            atoms > RBAC_ATOMS_MAX || lengths[i] > RBAC_ATOMS_MAX ? RBAC_ATOMS_MAX + 1 : atoms * lengths[i];
    *count += atoms + (uint64_t)rule->verbs.len * rule->urls.len;
}

int rbac_covers(const struct rbac *policy, const struct access_user *user, struct str namespace_,
                const struct doc *documents)
{
    struct arena arena ARENA_CLEANUP = {0};
    size_t rule_count = doc_len(documents);
    struct rule *rules = ARENA_ARRAY(&arena, struct rule, rule_count);
    uint64_t atoms = 0;
    for (size_t i = 0; i < rule_count; i++) {
        rules[i] = read_rule(&arena, doc_at(documents, i));
        count_atoms(&rules[i], &atoms);
        if (atoms > RBAC_ATOMS_MAX)
            return ERROR_LIMIT;
    }
    for (size_t i = 0; i < rule_count; i++)
        if (!covers_rule(policy, user, namespace_, &rules[i]))
            return 0;
    return 1;
}
