/* The rights of users: Kubernetes' documented examples as a table, and properties that hold for any
 * policy. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "base/rng.h"
#include "doc/yaml.h"
#include "host/access/rbac.h"

/* The examples of Kubernetes' "Using RBAC Authorization", and bindings to the built-in roles. */
static const char examples[] =
    "kind: Role\nmetadata: {namespace: default, name: pod-reader}\n"
    "rules: [{apiGroups: [''], resources: [pods], verbs: [get, watch, list]}]\n---\n"
    "kind: RoleBinding\nmetadata: {name: read-pods, namespace: default}\n"
    "subjects: [{kind: User, name: jane}]\nroleRef: {kind: Role, name: pod-reader}\n---\n"
    "kind: ClusterRole\nmetadata: {name: secret-reader}\n"
    "rules: [{apiGroups: [''], resources: [secrets], verbs: [get, watch, list]}]\n---\n"
    "kind: RoleBinding\nmetadata: {name: read-secrets, namespace: development}\n"
    "subjects: [{kind: User, name: dave}]\nroleRef: {kind: ClusterRole, name: secret-reader}\n---\n"
    "kind: ClusterRoleBinding\nmetadata: {name: read-secrets-global}\n"
    "subjects: [{kind: Group, name: manager}]\nroleRef: {kind: ClusterRole, name: secret-reader}\n---\n"
    "kind: Role\nmetadata: {namespace: default, name: log-reader}\n"
    "rules: [{apiGroups: [''], resources: [pods, pods/log], verbs: [get, list]}]\n---\n"
    "kind: RoleBinding\nmetadata: {name: logs, namespace: default}\n"
    "subjects: [{kind: User, name: larry}]\nroleRef: {kind: Role, name: log-reader}\n---\n"
    "kind: Role\nmetadata: {namespace: default, name: one-map}\n"
    "rules: [{apiGroups: [''], resources: [configmaps], resourceNames: [my-configmap], verbs: [update, "
    "get]}]\n"
    "---\nkind: RoleBinding\nmetadata: {name: one-map, namespace: default}\n"
    "subjects: [{kind: ServiceAccount, name: robot, namespace: tools}]\n"
    "roleRef: {kind: Role, name: one-map}\n---\n"
    "kind: ClusterRole\nmetadata: {name: monitoring}\nrules: []\n"
    "aggregationRule: {clusterRoleSelectors: [{matchLabels: {aggregate-to-monitoring: 'true'}}]}\n---\n"
    "kind: ClusterRole\nmetadata: {name: endpoints, labels: {aggregate-to-monitoring: 'true'}}\n"
    "rules: [{apiGroups: [''], resources: [services, pods], verbs: [get, list, watch]}]\n---\n"
    "kind: ClusterRoleBinding\nmetadata: {name: monitoring}\n"
    "subjects: [{kind: User, name: mona}]\nroleRef: {kind: ClusterRole, name: monitoring}\n---\n"
    "kind: ClusterRole\nmetadata: {name: health}\n"
    "rules: [{nonResourceURLs: [/healthz, /healthz/*], verbs: [get, post]}]\n---\n"
    "kind: ClusterRoleBinding\nmetadata: {name: health}\n"
    "subjects: [{kind: User, name: prober}]\nroleRef: {kind: ClusterRole, name: health}\n---\n"
    "kind: ClusterRole\nmetadata: {name: scaler}\n"
    "rules: [{apiGroups: ['*'], resources: ['*/scale'], verbs: [update]}]\n---\n"
    "kind: ClusterRoleBinding\nmetadata: {name: scaler}\n"
    "subjects: [{kind: User, name: auto}]\nroleRef: {kind: ClusterRole, name: scaler}\n---\n"
    "kind: ClusterRoleBinding\nmetadata: {name: nothing}\n"
    "subjects: [{kind: User, name: lost}]\nroleRef: {kind: ClusterRole, name: no-such-role}\n---\n"
    "kind: RoleBinding\nmetadata: {name: v, namespace: team-a}\n"
    "subjects: [{kind: Group, name: team-a}]\nroleRef: {kind: ClusterRole, name: view}\n---\n"
    "kind: RoleBinding\nmetadata: {name: e, namespace: team-a}\n"
    "subjects: [{kind: User, name: eve}]\nroleRef: {kind: ClusterRole, name: edit}\n---\n"
    "kind: RoleBinding\nmetadata: {name: a, namespace: team-a}\n"
    "subjects: [{kind: User, name: ada}]\nroleRef: {kind: ClusterRole, name: admin}\n---\n"
    "kind: ClusterRoleBinding\nmetadata: {name: op}\n"
    "subjects: [{kind: User, name: otto}]\nroleRef: {kind: ClusterRole, name: operator}\n";

struct question {
    const char *user, *group; /* group: one more than system:authenticated, or "" */
    const char *verb, *api_group, *resource, *namespace_, *name;
    bool allowed;
};
static const struct question table[] = {
    {"jane", "", "get", "", "pods", "default", "x", true},
    {"jane", "", "list", "", "pods", "default", "", true},
    {"jane", "", "list", "", "pods", "", "", false}, /* -A needs a ClusterRoleBinding */
    {"jane", "", "list", "", "pods", "other", "", false},
    {"jane", "", "delete", "", "pods", "default", "x", false},
    {"jane", "", "get", "", "pods/log", "default", "x", false},
    {"jane", "", "get", "apps", "pods", "default", "x", false},
    {"Jane", "", "get", "", "pods", "default", "x", false},
    {"larry", "", "get", "", "pods/log", "default", "x", true},
    {"dave", "", "get", "", "secrets", "development", "x", true},
    {"dave", "", "get", "", "secrets", "default", "x", false},
    {"dave", "", "list", "", "secrets", "", "", false},
    {"mick", "manager", "list", "", "secrets", "", "", true},
    {"mick", "manager", "get", "", "secrets", "anywhere", "x", true},
    {"manager", "", "get", "", "secrets", "anywhere", "x", false}, /* a user is no group */
    {"system:serviceaccount:tools:robot", "", "update", "", "configmaps", "default", "my-configmap", true},
    {"system:serviceaccount:tools:robot", "", "update", "", "configmaps", "default", "other", false},
    {"system:serviceaccount:tools:robot", "", "list", "", "configmaps", "default", "", false},
    {"system:serviceaccount:default:robot", "", "update", "", "configmaps", "default", "my-configmap", false},
    {"mona", "", "watch", "", "services", "x", "", true},
    {"mona", "", "delete", "", "services", "x", "y", false},
    {"auto", "", "update", "jobset.x-k8s.io", "jobsets/scale", "x", "y", true},
    {"auto", "", "update", "jobset.x-k8s.io", "jobsets", "x", "y", false},
    {"auto", "", "get", "jobset.x-k8s.io", "jobsets/scale", "x", "y", false},
    {"lost", "", "get", "", "pods", "default", "x", false},
    {"tim", "team-a", "get", "jobset.x-k8s.io", "jobsets", "team-a", "x", true},
    {"tim", "team-a", "get", "", "pods/log", "team-a", "x", true},
    {"tim", "team-a", "get", "", "secrets", "team-a", "x", false},
    {"tim", "team-a", "create", "", "pods/exec", "team-a", "x", false},
    {"tim", "team-a", "create", "jobset.x-k8s.io", "jobsets", "team-a", "", false},
    {"tim", "team-a", "get", "rbac.authorization.k8s.io", "roles", "team-a", "x", false},
    {"eve", "", "create", "jobset.x-k8s.io", "jobsets", "team-a", "", true},
    {"eve", "", "create", "", "pods/exec", "team-a", "x", true},
    {"eve", "", "get", "", "secrets", "team-a", "x", true},
    {"eve", "", "create", "rbac.authorization.k8s.io", "rolebindings", "team-a", "", false},
    {"eve", "", "create", "jobset.x-k8s.io", "jobsets", "team-b", "", false},
    {"eve", "", "patch", "", "nodes", "", "m-1", false},
    {"ada", "", "create", "rbac.authorization.k8s.io", "rolebindings", "team-a", "", true},
    {"ada", "", "create", "jobset.x-k8s.io", "jobsets", "team-a", "", true}, /* edit is part of admin */
    {"ada", "", "get", "", "pods", "team-a", "x", true},
    {"ada", "", "create", "rbac.authorization.k8s.io", "clusterroles", "", "", false},
    {"otto", "", "patch", "", "nodes", "", "m-1", true},
    {"otto", "", "create", "", "pods/eviction", "team-a", "x", true},
    {"otto", "", "create", "kueue.x-k8s.io", "clusterqueues", "", "", true},
    {"otto", "", "create", "", "pods/exec", "team-a", "x", false},
    {"otto", "", "get", "", "secrets", "team-a", "x", false},
    {"root", "system:masters", "delete", "anything", "whatever", "", "x", true},
    {"nobody", "", "create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "", true},
    {"nobody", "", "get", "", "namespaces", "default", "default", false},
};

static struct rbac *policy_of(const char *text)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 4 << 20};
    struct doc_list documents;
    struct error error;
    struct rbac *policy = rbac_new();
    rbac_add_builtin(policy);
    assert_int_equal(yaml_parse_all(&arena, str_from(text), &documents, &error), 0);
    for (size_t i = 0; i < documents.len; i++)
        assert_int_equal(rbac_add(policy, documents.items[i], &error), 0);
    rbac_seal(policy);
    return policy; /* the arena goes: documents are copied */
}

static bool ask(const struct rbac *policy, const struct question *q)
{
    struct str groups[2] = {STR("system:authenticated"), str_from(q->group)};
    struct access_user user = {.name = str_from(q->user), .groups = groups, .group_count = *q->group ? 2 : 1};
    struct access_attributes what = {.verb = str_from(q->verb),
                                     .group = str_from(q->api_group),
                                     .resource = str_from(q->resource),
                                     .namespace_ = str_from(q->namespace_),
                                     .name = str_from(q->name)};
    struct str head, tail;
    if (str_cut(what.resource, '/', &head, &tail)) {
        what.resource = head;
        what.subresource = tail;
    }
    return rbac_allows(policy, &user, &what);
}

static void test_examples(void **state)
{
    struct rbac *policy = policy_of(examples);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (ask(policy, &table[i]) != table[i].allowed)
            fail_msg("%s(%s) %s %s.%s in \"%s\" \"%s\": should be %d", table[i].user, table[i].group,
                     table[i].verb, table[i].resource, table[i].api_group, table[i].namespace_, table[i].name,
                     table[i].allowed);
    rbac_free(policy);
}

static void test_paths(void **state)
{
    struct rbac *policy = policy_of(examples);
    struct access_user prober = {.name = STR("prober")}, other = {.name = STR("other")};
    struct access_attributes what = {.verb = STR("post"), .path = STR("/healthz/etcd")};
    assert_true(rbac_allows(policy, &prober, &what));
    assert_false(rbac_allows(policy, &other, &what));
    what.path = STR("/metrics");
    assert_false(rbac_allows(policy, &prober, &what));
    rbac_free(policy);
}

/* Without a binding nobody may do anything, whatever roles there are. */
static void test_denies_by_default(void **state)
{
    struct rbac *policy = policy_of("kind: ClusterRole\nmetadata: {name: all}\n"
                                    "rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].group, "system:masters") != 0 && strcmp(table[i].user, "nobody") != 0)
            assert_false(ask(policy, &table[i]));
    rbac_free(policy);
}

static void test_malformed(void **state)
{
    static const char *const bad[] = {
        "kind: Pod\nmetadata: {name: x}", "kind: Role", "kind: RoleBinding\nmetadata: {name: x}",
        "kind: ClusterRoleBinding\nmetadata: {name: x}\nroleRef: {kind: Role, name: y}",
        "kind: RoleBinding\nmetadata: {name: x}\nroleRef: {kind: ClusterRole}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
        struct doc_list documents;
        struct error error;
        struct rbac *policy = rbac_new();
        if (yaml_parse_all(&arena, str_from(bad[i]), &documents, &error) < 0)
            fail_msg("%s", error.text);
        assert_int_equal(rbac_add(policy, documents.items[0], &error), ERROR_INVALID);
        rbac_free(policy);
    }
}

/* --- what somebody may give --------------------------------------------------------------------------- */

static bool covers(const struct rbac *policy, const char *user, const char *namespace_, const char *rules)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct doc_list documents;
    struct error error;
    struct access_user who = {.name = str_from(user)};
    struct str text = arena_printf(&arena, "---\n%s", rules); /* without it braces mean JSON */
    CHECK(yaml_parse_all(&arena, text, &documents, &error) == 0);
    return rbac_covers(policy, &who, str_from(namespace_), documents.items[0]) == 1;
}

static bool may_check(int verbs, int resources, int names)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *rules = doc_new(&arena, DOC_ARRAY), *rule = doc_new(&arena, DOC_OBJECT);
    const char *const keys[] = {"verbs", "apiGroups", "resources", "resourceNames"};
    const int counts[] = {verbs, 1, resources, names};
    for (int k = 0; k < 4; k++) {
        struct doc *words = doc_new(&arena, DOC_ARRAY);
        for (int i = 0; i < counts[k]; i++)
            doc_push(&arena, words, doc_new_str(&arena, STR("get")));
        doc_set(&arena, rule, str_from(keys[k]), words);
    }
    doc_push(&arena, rules, rule);
    struct rbac *policy = rbac_new();
    struct access_user who = {.name = STR("u")};
    rbac_seal(policy);
    int rc = rbac_covers(policy, &who, STR(""), rules);
    rbac_free(policy);
    return rc != ERROR_LIMIT;
}

/* The check holds the loop: a rule of many words is refused before it begins. */
static void test_large_rules(void **state)
{
    assert_true(may_check(50, 20, 0));
    assert_true(may_check(10, 10, 100));
    assert_false(may_check(10, 10, 101));
    assert_false(may_check(5000, 5000, 0));
    assert_false(may_check(30000, 30000, 30000));
}

static void test_covers(void **state)
{
    struct rbac *policy = policy_of(examples);
    assert_true(covers(policy, "jane", "default", "[{apiGroups: [''], resources: [pods], verbs: [get]}]"));
    assert_true(covers(policy, "jane", "default",
                       "[{apiGroups: [''], resources: [pods], resourceNames: [a, b], verbs: [get, list]}]"));
    assert_false(covers(policy, "jane", "other", "[{apiGroups: [''], resources: [pods], verbs: [get]}]"));
    assert_false(covers(policy, "jane", "", "[{apiGroups: [''], resources: [pods], verbs: [get]}]"));
    assert_false(
        covers(policy, "jane", "default", "[{apiGroups: [''], resources: [pods], verbs: [get, delete]}]"));
    assert_false(covers(policy, "jane", "default", "[{apiGroups: [''], resources: [pods], verbs: ['*']}]"));
    assert_false(covers(policy, "jane", "default", "[{apiGroups: ['*'], resources: [pods], verbs: [get]}]"));
    assert_false(covers(policy, "jane", "default", "[{apiGroups: [''], resources: ['*'], verbs: [get]}]"));
    /* A rule for some names does not cover one for all. */
    const char *robot = "system:serviceaccount:tools:robot";
    assert_false(
        covers(policy, robot, "default", "[{apiGroups: [''], resources: [configmaps], verbs: [get]}]"));
    assert_true(covers(policy, robot, "default",
                       "[{apiGroups: [''], resources: [configmaps], resourceNames: [my-configmap], "
                       "verbs: [get, update]}]"));
    assert_true(covers(policy, "prober", "", "[{nonResourceURLs: [/healthz], verbs: [get]}]"));
    assert_false(covers(policy, "prober", "", "[{nonResourceURLs: ['*'], verbs: [get]}]"));
    assert_true(covers(policy, "jane", "default", "[]"));
    rbac_free(policy);
}

/* --- properties ---------------------------------------------------------------------------------------- */

static const char *const verbs[] = {"get", "list", "create", "*"};
static const char *const groups[] = {"", "batch", "*"};
static const char *const resources[] = {"pods", "jobs", "pods/log", "*", "*/log"};
static const char *const names[] = {"", "a", "b"};
#define PICK(rng, list) list[rng_below(rng, sizeof list / sizeof *list)]

static void random_rule(struct rng *rng, struct buf *out)
{
    const char *name = PICK(rng, names);
    buf_printf(out, "{apiGroups: ['%s'], resources: ['%s'], verbs: ['%s', '%s'], resourceNames: [%s]}",
               PICK(rng, groups), PICK(rng, resources), PICK(rng, verbs), PICK(rng, verbs), name);
}

static void random_rules(struct rng *rng, struct buf *out)
{
    buf_add_char(out, '[');
    for (uint64_t i = 0, n = rng_below(rng, 4); i < n; i++) {
        if (i)
            buf_add_str(out, STR(", "));
        random_rule(rng, out);
    }
    buf_add_char(out, ']');
}

/* A user whose rights are covered by another's can do nothing that the other cannot. */
static void test_covered_is_weaker(void **state)
{
    struct rng rng;
    rng_seed(&rng, 7);
    size_t covered = 0, asked = 0;
    for (int round = 0; round < 400; round++) {
        struct buf strong BUF_CLEANUP = {0}, weak BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        random_rules(&rng, &strong);
        random_rules(&rng, &weak);
        buf_printf(&text,
                   "kind: ClusterRole\nmetadata: {name: strong}\nrules: %s\n---\n"
                   "kind: ClusterRole\nmetadata: {name: weak}\nrules: %s\n---\n"
                   "kind: ClusterRoleBinding\nmetadata: {name: a}\nsubjects: [{kind: User, name: s}]\n"
                   "roleRef: {kind: ClusterRole, name: strong}\n---\n"
                   "kind: ClusterRoleBinding\nmetadata: {name: b}\nsubjects: [{kind: User, name: w}]\n"
                   "roleRef: {kind: ClusterRole, name: weak}\n",
                   strong.data, weak.data);
        struct rbac *policy = policy_of(text.data);
        bool is_covered = covers(policy, "s", "", weak.data);
        covered += is_covered;
        for (int i = 0; is_covered && i < 200; i++) {
            struct question q = {
                "w", "", PICK(&rng, verbs), PICK(&rng, groups), PICK(&rng, resources), "n", PICK(&rng, names),
                true};
            bool may = ask(policy, &q);
            asked += may;
            q.user = "s";
            if (may && !ask(policy, &q))
                fail_msg("w may %s %s.%s \"%s\", s may not: strong %s, weak %s", q.verb, q.resource,
                         q.api_group, q.name, strong.data, weak.data);
        }
        rbac_free(policy);
    }
    assert_true(covered > 20 && asked > 100);
}

/* --- following objects ---------------------------------------------------------------------------------- */

enum { OBJECTS = 24, NAMES = 4, CHANGES = 200, QUESTIONS = 40, KINDS = 4 };

struct followed {
    uint64_t uid, version; /* version 0: it is not there */
    int kind;              /* 1 to KINDS, by kind_names */
    char text[1024];
};
static const char *const kind_names[] = {"", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"};

static uint32_t draw(struct rng *rng, uint32_t below)
{
    return (uint32_t)(rng_next(rng) % below);
}

/* Roles and bindings of few names, so that they meet; some are called as built-in ones. */
static void write_object(struct followed *object, struct rng *rng)
{
    static const char *const roles[NAMES] = {"r0", "r1", "view", "edit"};
    bool binding = object->kind > 2, of_cluster = object->kind % 2 == 1;
    struct buf out BUF_CLEANUP = {0};
    buf_printf(&out, "kind: %s\nmetadata: {name: %s, namespace: n%u, labels: {l: v%u}}\n",
               kind_names[object->kind], binding ? "b" : roles[draw(rng, NAMES)], draw(rng, 2), draw(rng, 2));
    if (!binding)
        buf_printf(&out, "rules: [{verbs: [\"%s\"], apiGroups: [\"\"], resources: [\"%s\"]}]\n",
                   verbs[draw(rng, 4)], resources[draw(rng, 3)]);
    if (!binding && of_cluster && draw(rng, 3) == 0)
        buf_printf(&out, "aggregationRule: {clusterRoleSelectors: [{matchLabels: {l: v%u}}]}\n",
                   draw(rng, 2));
    if (binding) {
        buf_printf(&out, "roleRef: {kind: %s, name: %s}\nsubjects:\n",
                   of_cluster || draw(rng, 2) ? "ClusterRole" : "Role", roles[draw(rng, NAMES)]);
        for (uint32_t left = 1 + draw(rng, 4); left > 0; left--)
            buf_printf(&out, "- {kind: %s, name: s%u}\n", draw(rng, 2) ? "User" : "Group", draw(rng, 3));
    }
    assert_true(out.len < sizeof object->text);
    snprintf(object->text, sizeof object->text, "%s", out.data);
}

static void follow_all(struct rbac *policy, const struct followed *objects)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 64 << 20};
    for (int kind = 1; kind <= KINDS; kind++) {
        rbac_follow_begin(policy, kind);
        for (int i = 0; i < OBJECTS; i++) {
            struct doc_list documents;
            if (objects[i].kind != kind || objects[i].version == 0)
                continue;
            struct error error;
            if (yaml_parse_all(&arena, str_from(objects[i].text), &documents, &error) < 0)
                fail_msg("%s: %s", objects[i].text, error.text);
            rbac_follow(policy, kind, objects[i].uid, objects[i].version, documents.items[0]);
        }
        rbac_follow_end(policy, kind);
    }
    rbac_seal(policy);
}

static struct question draw_question(struct rng *rng)
{
    static const char *const subjects[] = {"s0", "s1", "s2"}, *const spaces[] = {"n0", "n1", ""};
    return (struct question){.user = subjects[draw(rng, 3)],
                             .group = subjects[draw(rng, 3)],
                             .verb = verbs[draw(rng, 3)],
                             .api_group = "",
                             .resource = resources[draw(rng, 3)],
                             .namespace_ = spaces[draw(rng, 3)],
                             .name = "x"};
}

/* Is there another role of this name? The core keeps one of a kind, namespace and name. */
static bool is_taken(const struct followed *objects, const struct followed *one)
{
    const char *end = strstr(one->text, one->kind == 1 ? ", namespace" : ", labels");
    for (int i = 0; i < OBJECTS; i++)
        if (&objects[i] != one && objects[i].version &&
            strncmp(objects[i].text, one->text, (size_t)(end - one->text)) == 0)
            return one->kind <= 2;
    return false;
}

/* After any changes a policy that followed them answers as one that was made from what is there now. */
static void a_policy_follows_objects(void **state)
{
    struct rng rng;
    struct followed objects[OBJECTS] = {0};
    (void)state;
    rng_seed(&rng, 17);
    struct rbac *policy = rbac_new();
    rbac_add_builtin(policy);
    rbac_seal(policy);
    uint64_t version = 0, uid = 0;
    size_t allowed = 0;
    for (int change = 0; change < CHANGES; change++) {
        for (uint32_t left = 1 + draw(&rng, 3); left > 0; left--) {
            struct followed *object = &objects[draw(&rng, OBJECTS)];
            bool gone = object->version && draw(&rng, 3) == 0, anew = draw(&rng, 4) == 0;
            if (object->version == 0 || anew)
                *object = (struct followed){.uid = ++uid, .kind = 1 + (int)draw(&rng, KINDS)};
            object->version = gone ? 0 : ++version;
            write_object(object, &rng);
            if (object->kind <= 2 && is_taken(objects, object))
                object->version = 0;
        }
        follow_all(policy, objects);
        struct rbac *fresh = rbac_new();
        rbac_add_builtin(fresh);
        follow_all(fresh, objects);
        for (int i = 0; i < QUESTIONS; i++) {
            struct question question = draw_question(&rng);
            bool answer = ask(fresh, &question);
            allowed += answer;
            if (ask(policy, &question) != answer)
                fail_msg("change %d: %s/%s %s %s in %s: %d", change, question.user, question.group,
                         question.verb, question.resource, question.namespace_, answer);
        }
        rbac_free(fresh);
    }
    assert_in_range(allowed, CHANGES * QUESTIONS / 20, CHANGES * QUESTIONS * 19 / 20);
    memset(objects, 0, sizeof objects);
    follow_all(policy, objects);
    struct question question = draw_question(&rng);
    assert_false(ask(policy, &question));
    rbac_free(policy);
}

/* The change of one among many bindings with many subjects costs a part of what all of them do. */
static void a_change_costs_what_changed(void **state)
{
    enum { BINDINGS = 60, SUBJECTS = 1000 };
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 64 << 20};
    struct doc_list documents;
    struct buf text BUF_CLEANUP = {0};
    (void)state;
    buf_add_str(&text, STR("kind: RoleBinding\nmetadata: {name: b, namespace: n}\n"
                           "roleRef: {kind: ClusterRole, name: view}\nsubjects:\n"));
    for (int i = 0; i < SUBJECTS; i++)
        buf_printf(&text, "- {kind: User, name: user%d}\n", i);
    assert_int_equal(yaml_parse_all(&arena, buf_str(&text), &documents, NULL), 0);
    struct rbac *policy = rbac_new();
    rbac_add_builtin(policy);
    clock_t spent[2];
    for (int round = 0; round < 2; round++) {
        clock_t start = clock();
        rbac_follow_begin(policy, 4);
        for (int i = 0; i < BINDINGS; i++)
            rbac_follow(policy, 4, (uint64_t)i + 1, i == 0 ? 1 + (uint64_t)round : 1, documents.items[0]);
        rbac_follow_end(policy, 4);
        rbac_seal(policy);
        spent[round] = clock() - start;
    }
    assert_true(spent[1] * 4 < spent[0]);
    rbac_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_denies_by_default),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_covers),
        cmocka_unit_test(test_large_rules),
        cmocka_unit_test(test_covered_is_weaker),
        cmocka_unit_test(a_policy_follows_objects),
        cmocka_unit_test(a_change_costs_what_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
