/* Server-side apply: ownership, conflicts, removal; and what must hold for any documents. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <time.h>

#include "doc/json.h"
#include "base/rng.h"
#include "kube/apply.h"
#include "kube/patch.h"

static struct doc *parse(struct arena *arena, const char *text)
{
    struct doc *doc;
    struct error error = {0};
    struct buf json BUF_CLEANUP = {0};
    for (const char *c = text; *c; c++)
        buf_add_char(&json, *c == '\'' ? '"' : *c);
    if (json_parse(arena, buf_str(&json), &doc, &error) < 0)
        fail_msg("%s: %s", text, error.text);
    return doc;
}

static void expect(struct arena *arena, const struct doc *found, const char *wanted)
{
    struct buf text BUF_CLEANUP = {0};
    json_write(&text, found);
    if (!doc_equal(found, parse(arena, wanted)))
        fail_msg("%s\nwanted %s", text.data, wanted);
}

#define JOBSET(rest)                                                                                         \
    "{'apiVersion':'jobset.x-k8s.io/v1alpha2','kind':'JobSet','metadata':{'name':'a'}" rest "}"

static int apply(struct arena *arena, struct doc **object, struct apply_managers *managers,
                 const char *manager, const struct doc *config, bool force, struct apply_conflicts *conflicts)
{
    struct error error = {0};
    struct apply_request request = {.schema = &schema_jobset,
                                    .live = *object,
                                    .config = config,
                                    .who = {.name = str_from(manager),
                                            .api_version = STR("jobset.x-k8s.io/v1alpha2"),
                                            .time = STR("2026-01-01T00:00:00Z"),
                                            .applies = true},
                                    .force = force};
    return apply_merge(arena, &request, managers, object, conflicts, &error);
}

static void update(struct arena *arena, struct doc **object, struct apply_managers *managers,
                   const char *manager, struct doc *after)
{
    struct apply_manager who = {.name = str_from(manager),
                                .api_version = STR("jobset.x-k8s.io/v1alpha2"),
                                .time = STR("2026-01-02T00:00:00Z")};
    apply_update(arena, &schema_jobset, *object, after, &who, managers);
    *object = after;
}

static void test_ownership(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct apply_managers managers = {0};
    struct apply_conflicts conflicts = {0};
    struct doc *object = NULL;
    assert_int_equal(
        apply(&arena, &object, &managers, "one",
              parse(&arena, JOBSET(",'spec':{'suspend':true,'replicatedJobs':[{'name':'w','replicas':2}]}")),
              false, &conflicts),
        0);
    expect(&arena, fieldset_doc(&arena, &managers.list.items[0].set),
           "{'f:spec':{'f:suspend':{},'f:replicatedJobs':{'k:{\\'name\\':\\'w\\'}':{'.':{},'f:name':{},'f:"
           "replicas':{}}}}}");
    /* Another value of what "one" owns is a conflict; the same value is shared. */
    assert_int_equal(apply(&arena, &object, &managers, "two",
                           parse(&arena, JOBSET(",'spec':{'suspend':false}")), false, &conflicts),
                     ERROR_CONFLICT);
    assert_int_equal(conflicts.list.len, 1);
    assert_true(str_is(conflicts.list.items[0].path, ".spec.suspend"));
    assert_true(str_is(conflicts.list.items[0].manager, "\"one\""));
    vec_done(&conflicts.list);
    assert_int_equal(apply(&arena, &object, &managers, "two",
                           parse(&arena, JOBSET(",'spec':{'suspend':true}")), false, &conflicts),
                     0);
    assert_int_equal(managers.list.len, 2);
    /* A field stays when one of its two owners drops it, and goes with the last. */
    assert_int_equal(apply(&arena, &object, &managers, "one",
                           parse(&arena, JOBSET(",'spec':{'replicatedJobs':[{'name':'w','replicas':2}]}")),
                           false, &conflicts),
                     0);
    assert_true(doc_bool(doc_path(object, "spec", "suspend", NULL), false));
    assert_int_equal(
        apply(&arena, &object, &managers, "two", parse(&arena, JOBSET(",'spec':{}")), false, &conflicts), 0);
    assert_null(doc_path(object, "spec", "suspend", NULL));
    /* An item that is applied no more goes with what nobody else said about it. */
    update(
        &arena, &object, &managers, "other",
        parse(&arena,
              JOBSET(",'spec':{'replicatedJobs':[{'name':'w','replicas':2,'groupName':'g'},{'name':'v'}]}")));
    assert_int_equal(apply(&arena, &object, &managers, "one", parse(&arena, JOBSET("")), false, &conflicts),
                     0);
    expect(&arena, doc_path(object, "spec", "replicatedJobs", NULL),
           "[{'name':'w','groupName':'g'},{'name':'v'}]");
    apply_managers_done(&managers);
}

static void test_conflict_messages(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct apply_managers managers = {0};
    struct apply_conflicts conflicts = {0};
    struct doc *object = NULL;
    update(&arena, &object, &managers, "kubectl-client-side-apply",
           parse(&arena, JOBSET(",'spec':{'replicatedJobs':[{'name':'w','replicas':2}]}")));
    assert_int_equal(apply(&arena, &object, &managers, "kubectl",
                           parse(&arena, JOBSET(",'spec':{'replicatedJobs':[{'name':'w','replicas':3}]}")),
                           false, &conflicts),
                     ERROR_CONFLICT);
    assert_int_equal(conflicts.list.len, 1);
    assert_true(str_is(conflicts.list.items[0].path, ".spec.replicatedJobs[name=\"w\"].replicas"));
    assert_true(str_is(conflicts.list.items[0].manager,
                       "\"kubectl-client-side-apply\" using jobset.x-k8s.io/v1alpha2"));
    vec_done(&conflicts.list);
    /* By force it is taken from its owner. */
    assert_int_equal(apply(&arena, &object, &managers, "kubectl",
                           parse(&arena, JOBSET(",'spec':{'replicatedJobs':[{'name':'w','replicas':3}]}")),
                           true, &conflicts),
                     0);
    for (size_t i = 0; i < managers.list.len; i++) {
        struct fieldset wanted = {0};
        struct error error = {0};
        fieldset_parse(
            &arena,
            parse(&arena, "{'f:spec':{'f:replicatedJobs':{'k:{\\'name\\':\\'w\\'}':{'f:replicas':{}}}}}"),
            &wanted, &error);
        struct fieldset both = fieldset_common(&arena, &managers.list.items[i].set, &wanted);
        assert_int_equal(!fieldset_empty(&both), managers.list.items[i].applies);
    }
    apply_managers_done(&managers);
}

static void test_migration(void **state)
{
    /* Fields that client-side apply wrote and that still stand, `kubectl apply --server-side` takes over. */
    static const char live[] =
        "{'apiVersion':'jobset.x-k8s.io/v1alpha2','kind':'JobSet','metadata':{'name':'a','annotations':{"
        "'kubectl.kubernetes.io/last-applied-configuration':'{\\'apiVersion\\':\\'jobset.x-k8s.io/"
        "v1alpha2\\',"
        "\\'kind\\':\\'JobSet\\',\\'metadata\\':{\\'name\\':\\'a\\'},\\'spec\\':{\\'suspend\\':true}}'}},"
        "'spec':{'suspend':true}}";
    struct arena arena ARENA_CLEANUP = {0};
    struct apply_managers managers = {0};
    struct apply_conflicts conflicts = {0};
    struct doc *object = NULL;
    update(&arena, &object, &managers, "kubectl-client-side-apply", parse(&arena, live));
    struct doc *before = object;
    assert_int_equal(apply(&arena, &object, &managers, "kubectl",
                           parse(&arena, JOBSET(",'spec':{'suspend':false}")), false, &conflicts),
                     0);
    object = before;
    assert_int_equal(apply(&arena, &object, &managers, "someone",
                           parse(&arena, JOBSET(",'spec':{'suspend':false}")), false, &conflicts),
                     ERROR_CONFLICT);
    vec_done(&conflicts.list);
    apply_managers_done(&managers);
}

static void test_refused(void **state)
{
    static const char *const configs[] = {
        JOBSET(",'spec':{'replicatedJobs':[{'name':'w'},{'name':'w'}]}"),
        JOBSET(",'spec':{'replicatedJobs':[{'replicas':1}]}"),
        JOBSET(",'spec':{'replicatedJobs':[1]}"),
    };
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct apply_managers managers = {0};
        struct apply_conflicts conflicts = {0};
        struct doc *object = NULL;
        assert_int_equal(
            apply(&arena, &object, &managers, "one", parse(&arena, configs[i]), false, &conflicts),
            ERROR_INVALID);
        apply_managers_done(&managers);
    }
}

/* --- properties -------------------------------------------------------------------------------- */

static int64_t below(struct rng *rng, int64_t n)
{
    return (int64_t)rng_below(rng, (uint64_t)n);
}

/* A JobSet that says something about some of a few fields. `half`: 0 all of them, 1 and 2 disjoint halves. */
static struct doc *random_config(struct arena *arena, struct rng *rng, int half)
{
    struct doc *object = parse(arena, JOBSET(",'spec':{'replicatedJobs':[]}"));
    struct doc *metadata = doc_get(object, "metadata"), *spec = doc_get(object, "spec");
    static const char *const maps[] = {"labels", "annotations"};
    for (int i = 0; i < 2; i++) {
        if (half && half != i + 1)
            continue;
        for (int64_t k = below(rng, 4); k > 0; k--) {
            char key[8];
            snprintf(key, sizeof key, "k%d", (int)below(rng, 5));
            doc_set(arena, doc_need_object(arena, metadata, maps[i]), str_from(key),
                    doc_new_str(arena, below(rng, 2) ? STR("x") : STR("y")));
        }
    }
    if (half != 2 && below(rng, 2))
        doc_set(arena, spec, STR("suspend"), doc_new_bool(arena, below(rng, 2)));
    if (half != 1 && below(rng, 2))
        doc_set(arena, spec, STR("ttlSecondsAfterFinished"), doc_new_int(arena, below(rng, 3)));
    struct doc *jobs = doc_get(spec, "replicatedJobs");
    for (int i = 0; i < 4; i++) {
        char name[8];
        if ((half && half != i % 2 + 1) || below(rng, 2))
            continue;
        struct doc *job = doc_new(arena, DOC_OBJECT);
        snprintf(name, sizeof name, "j%d", i);
        doc_set(arena, job, STR("name"), doc_new_str(arena, str_from(name)));
        if (below(rng, 2))
            doc_set(arena, job, STR("replicas"), doc_new_int(arena, below(rng, 3)));
        doc_push(arena, jobs, job);
    }
    if (jobs->array.len == 0)
        doc_unset(spec, "replicatedJobs");
    return object;
}

/* Lists with keys compared as sets. */
static bool same(struct arena *arena, const struct doc *a, const struct doc *b)
{
    struct fieldset_change change = fieldset_compare(arena, &schema_jobset, a, b);
    return fieldset_empty(&change.set) && fieldset_empty(&change.removed);
}

static bool same_managers(struct arena *arena, struct apply_managers *a, struct apply_managers *b)
{
    struct doc *left = apply_managers_doc(arena, a), *right = apply_managers_doc(arena, b);
    return left && right ? doc_equal(left, right) : left == right;
}

static void copy_managers(struct apply_managers *to, const struct apply_managers *from)
{
    vec_clear(&to->list);
    for (size_t i = 0; i < from->list.len; i++)
        vec_push(&to->list, from->list.items[i]);
}

static void test_properties(void **state)
{
    struct rng rng;
    rng_seed(&rng, 7);
    for (int round = 0; round < 3000; round++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct apply_managers managers = {0}, once = {0}, other = {0};
        struct apply_conflicts conflicts = {0};
        struct doc *object = NULL;
        update(&arena, &object, &managers, "writer", random_config(&arena, &rng, 0));
        for (int step = 0; step < 4; step++) {
            if (below(&rng, 3) == 0)
                update(&arena, &object, &managers, "writer", random_config(&arena, &rng, 0));
            struct doc *config = random_config(&arena, &rng, 0);
            const char *who = below(&rng, 2) ? "one" : "two";
            /* By force it always goes, and the object then says what was applied. */
            assert_int_equal(apply(&arena, &object, &managers, who, config, true, &conflicts), 0);
            struct fieldset said = fieldset_of(&arena, &schema_jobset, config);
            struct fieldset_change change = fieldset_compare(&arena, &schema_jobset, config, object);
            struct fieldset differs = fieldset_common(&arena, &said, &change.set);
            assert_true(fieldset_empty(&differs) && fieldset_empty(&change.removed));
            /* Twice is once: same object, same owners, no conflict even without force. */
            struct doc *again = object;
            copy_managers(&once, &managers);
            assert_int_equal(apply(&arena, &again, &managers, who, config, false, &conflicts), 0);
            assert_true(doc_equal(object, again) && same_managers(&arena, &managers, &once));
            /* Owners survive being written and read. */
            struct error error = {0};
            vec_clear(&other.list);
            assert_int_equal(
                apply_managers_read(&arena, apply_managers_doc(&arena, &managers), &other, &error), 0);
            assert_true(same_managers(&arena, &managers, &other));
        }
        apply_managers_done(&managers);
        apply_managers_done(&once);
        apply_managers_done(&other);
    }
}

/* Owners of every key of a large map are written short, and read back as they were. */
static void test_large_map(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct apply_managers managers = {0}, back = {0};
    struct error error;
    struct doc *object = doc_new(&arena, DOC_OBJECT), *data = doc_new(&arena, DOC_OBJECT);
    struct doc *before = doc_new(&arena, DOC_OBJECT);
    (void)state;
    doc_set(&arena, before, STR("data"), doc_new(&arena, DOC_OBJECT));
    doc_set(&arena, object, STR("data"), data);
    for (int i = 0; i <= APPLY_KEYS_MAX; i++)
        doc_set(&arena, data, arena_printf(&arena, "k%d", i), doc_new_str(&arena, STR("v")));
    struct apply_manager one = {.name = STR("one"), .time = STR("1")},
                         two = {.name = STR("two"), .time = STR("2")};
    apply_update(&arena, NULL, before, object, &one, &managers);
    struct doc *after = doc_clone(&arena, object);
    doc_set(&arena, doc_get(after, "data"), STR("k7"), doc_new_str(&arena, STR("w")));
    struct doc *whole = apply_managers_doc(&arena, &managers);
    apply_managers_collapse(&arena, &managers, object);
    struct doc *written = apply_managers_doc(&arena, &managers);
    const struct doc *fields = doc_path(doc_at(written, 0), "fieldsV1", "f:data", NULL);
    assert_non_null(doc_get(fields, "f:"));
    assert_true(doc_len(fields) <= 2);
    assert_int_equal(apply_managers_read(&arena, written, &back, &error), 0);
    apply_managers_expand(&arena, &back, object);
    assert_true(doc_equal(apply_managers_doc(&arena, &back), whole));
    apply_update(&arena, NULL, object, after, &two, &back); /* it takes one key: the rest is written out */
    apply_managers_collapse(&arena, &back, after);
    written = apply_managers_doc(&arena, &back);
    fields = doc_path(doc_at(written, 0), "fieldsV1", "f:data", NULL);
    assert_null(doc_get(fields, "f:"));
    assert_null(doc_get(fields, "f:k7"));
    assert_non_null(doc_get(fields, "f:k8"));
    doc_unset(data, "k3"); /* not more than the limit: as it is */
    struct apply_managers small = {0};
    apply_update(&arena, NULL, before, object, &one, &small);
    apply_managers_collapse(&arena, &small, object);
    written = apply_managers_doc(&arena, &small);
    assert_true(doc_len(doc_path(doc_at(written, 0), "fieldsV1", "f:data", NULL)) >= APPLY_KEYS_MAX);
    apply_managers_done(&managers);
    apply_managers_done(&back);
    apply_managers_done(&small);
}

static void test_commute(void **state)
{
    struct rng rng;
    rng_seed(&rng, 11);
    for (int round = 0; round < 2000; round++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct apply_managers left = {0}, right = {0};
        struct apply_conflicts conflicts = {0};
        struct doc *start = parse(&arena, JOBSET(",'spec':{'managedBy':'x/y'}")), *a = start, *b = start;
        for (int step = 0; step < 3; step++) {
            struct doc *one = random_config(&arena, &rng, 1), *two = random_config(&arena, &rng, 2);
            assert_int_equal(apply(&arena, &a, &left, "one", one, false, &conflicts), 0);
            assert_int_equal(apply(&arena, &a, &left, "two", two, false, &conflicts), 0);
            assert_int_equal(apply(&arena, &b, &right, "two", two, false, &conflicts), 0);
            assert_int_equal(apply(&arena, &b, &right, "one", one, false, &conflicts), 0);
            assert_true(same(&arena, a, b) && same_managers(&arena, &left, &right));
        }
        apply_managers_done(&left);
        apply_managers_done(&right);
    }
}

/* --- strategic merge --------------------------------------------------------------------------- */

static void test_strategic(void **state)
{
    static const char *const cases[][3] = {
        {"{'containers':[{'name':'a','image':'x'},{'name':'b'}]}",
         "{'containers':[{'name':'a','image':'y'}]}",
         "{'containers':[{'name':'a','image':'y'},{'name':'b'}]}"},
        {"{'containers':[{'name':'a'},{'name':'b'}]}", "{'containers':[{'name':'a','$patch':'delete'}]}",
         "{'containers':[{'name':'b'}]}"},
        {"{'containers':[{'name':'a'}]}", "{'containers':[{'name':'b'},{'$patch':'replace'}]}",
         "{'containers':[{'name':'b'}]}"},
        {"{'containers':[{'name':'a'},{'name':'b'}]}",
         "{'$setElementOrder/"
         "containers':[{'name':'c'},{'name':'b'},{'name':'a'}],'containers':[{'name':'c'}]}",
         "{'containers':[{'name':'c'},{'name':'b'},{'name':'a'}]}"},
        {"{'containers':[{'name':'a'},{'name':'b'}]}",
         "{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}]}",
         "{'containers':[{'name':'b'},{'name':'a'}]}"},
        {"{'nodeSelector':{'a':'1','b':'2'}}", "{'nodeSelector':{'a':null,'c':'3'}}",
         "{'nodeSelector':{'b':'2','c':'3'}}"},
        {"{'nodeSelector':{'a':'1'}}", "{'nodeSelector':{'$patch':'replace','c':'3'}}",
         "{'nodeSelector':{'c':'3'}}"},
        {"{'nodeSelector':{'a':'1'}}", "{'nodeSelector':{'$patch':'delete'}}", "{}"},
        {"{'volumes':[{'name':'v','emptyDir':{}}]}",
         "{'volumes':[{'name':'v','$retainKeys':['name','hostPath'],'hostPath':{'path':'/x'}}]}",
         "{'volumes':[{'name':'v','hostPath':{'path':'/x'}}]}"},
        {"{'tolerations':[{'key':'a'}]}", "{'tolerations':[{'key':'b'}]}", "{'tolerations':[{'key':'b'}]}"},
        {"{'containers':[{'name':'a'}]}", "{'containers':[{'image':'y'}]}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct error error = {0};
        struct doc *target = parse(&arena, cases[i][0]);
        int rc = patch_strategic(&arena, &schema_pod_spec, &target, parse(&arena, cases[i][1]), &error);
        assert_int_equal(rc, cases[i][2] ? 0 : ERROR_INVALID);
        if (cases[i][2])
            expect(&arena, target, cases[i][2]);
    }
}

static void test_strategic_primitive(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    struct doc *target = parse(&arena, "{'finalizers':['a','b']}");
    assert_int_equal(
        patch_strategic(&arena, &schema_object_meta, &target,
                        parse(&arena, "{'$deleteFromPrimitiveList/finalizers':['a'],'finalizers':['c']}"),
                        &error),
        0);
    expect(&arena, target, "{'finalizers':['b','c']}");
}

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Returns {'FIELD':{'a0':'','a1':'',...}}. */
static struct doc *many_members(struct arena *arena, const char *field, int count)
{
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "{'%s':{", field);
    for (int i = 0; i < count; i++)
        buf_printf(&text, "%s'a%d':''", i ? "," : "", i);
    buf_add_str(&text, STR("}}"));
    return parse(arena, text.data);
}

enum { ANNOTATIONS = 39000, NAMES = 300000 };

/* Hundreds of thousands of names in directives are looked up, not searched for. */
static void test_strategic_names(void **state)
{
    static const struct {
        const char *begins, *one, *ends;
        int count;
        size_t left;
    } cases[] = {
        {"{'annotations':{'$retainKeys':['a5','a7'", ",'x%d'", "]}}", NAMES, 2},
        {"{'annotations':{'nabcde':''", ",'$setElementOrder/n%05d':[]", "}}", NAMES / 6, ANNOTATIONS + 1},
        {"{'nabcde':''", ",'$setElementOrder/n%05d':[]", "}", NAMES / 6, ANNOTATIONS},
        {"{'nabcde':''", ",'$deleteFromPrimitiveList/n%05d':[]", "}", NAMES / 6, ANNOTATIONS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct buf text BUF_CLEANUP = {0};
        struct error error = {0};
        struct doc *target = many_members(&arena, "annotations", ANNOTATIONS);
        buf_printf(&text, "%s", cases[i].begins);
        for (int k = 0; k < cases[i].count; k++)
            buf_printf(&text, cases[i].one, k);
        buf_printf(&text, "%s", cases[i].ends);
        const struct doc *patch = parse(&arena, text.data);
        double began_s = cpu_s();
        int rc = patch_strategic(&arena, &schema_object_meta, &target, patch, &error);
        double took_s = cpu_s() - began_s;
        if (rc < 0 || took_s > 0.5)
            fail_msg("case %zu: %s after %.3f s", i, error.text, took_s);
        assert_int_equal(doc_len(doc_get(target, "annotations")), cases[i].left);
    }
}

/* A patch that names one large item again and again is refused by its budget of visits. */
static void test_strategic_visits(void **state)
{
    static const char *const ones[] = {
        "{'name':'v','emptyDir':{'y':'z'}}",
        "{'name':'v','emptyDir':{'b':'','c':'','d':'','e':'','f':''}}",
        "{'name':'v','emptyDir':{'$retainKeys':['a1']},'$patch':'merge'}",
        "{'name':'v','$retainKeys':['name']}",
    };
    static const bool refused[] = {true, true, false, false}; /* the others leave little to walk */
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct buf text BUF_CLEANUP = {0};
        struct error error = {0};
        struct doc *volume = many_members(&arena, "emptyDir", ANNOTATIONS);
        struct doc *target = parse(&arena, "{'volumes':[]}");
        doc_set(&arena, volume, STR("name"), doc_new_str(&arena, STR("v")));
        doc_push(&arena, doc_get(target, "volumes"), volume);
        for (int k = 0; k < 10000; k++)
            buf_printf(&text, "%s%s", k ? "," : "{'volumes':[", ones[i]);
        buf_add_str(&text, STR("]}"));
        const struct doc *patch = parse(&arena, text.data);
        double began_s = cpu_s();
        int rc = patch_strategic(&arena, &schema_pod_spec, &target, patch, &error);
        double took_s = cpu_s() - began_s;
        if (took_s > 0.5)
            fail_msg("%s: %.3f s", ones[i], took_s);
        assert_int_equal(rc, refused[i] ? ERROR_LIMIT : 0);
        if (refused[i])
            assert_non_null(strstr(error.text, "visits more than 2000000 members"));
    }
}

/* A patch whose lists have an item with a long name is refused, too. */
static void test_strategic_long_keys(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    struct error error = {0};
    buf_add_str(&text, STR("{'containers':[{'name':'c','env':[{'name':'"));
    for (int i = 0; i < 500000; i++)
        buf_add_char(&text, 'x');
    buf_add_str(&text, STR("'}]}]}"));
    struct doc *target = parse(&arena, text.data);
    buf_clear(&text);
    for (int k = 0; k < 10000; k++)
        buf_printf(&text, "%s{'name':'c','env':[]}", k ? "," : "{'containers':[");
    buf_add_str(&text, STR("]}"));
    const struct doc *patch = parse(&arena, text.data);
    size_t before = arena.used_bytes;
    assert_int_equal(patch_strategic(&arena, &schema_pod_spec, &target, patch, &error), ERROR_LIMIT);
    assert_true(arena.used_bytes - before < 128 << 20);
}

static void test_large(void **state)
{
    /* Cost grows with the size, not its square. */
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    buf_add_str(&text, STR("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'},'data':{"));
    for (int i = 0; i < 60000; i++)
        buf_printf(&text, "%s'k%d':'v'", i ? "," : "", i);
    buf_add_str(&text, STR("}}"));
    struct doc *config = parse(&arena, text.data), *object = NULL;
    struct apply_managers managers = {0};
    struct apply_conflicts conflicts = {0};
    assert_int_equal(apply(&arena, &object, &managers, "one", config, false, &conflicts), 0);
    assert_int_equal(apply(&arena, &object, &managers, "one", config, false, &conflicts), 0);
    assert_true(doc_equal(patch_merge(&arena, doc_get(object, "data"), doc_get(config, "data")),
                          doc_get(object, "data")));
    apply_managers_done(&managers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ownership),
        cmocka_unit_test(test_conflict_messages),
        cmocka_unit_test(test_migration),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_commute),
        cmocka_unit_test(test_large_map),
        cmocka_unit_test(test_strategic),
        cmocka_unit_test(test_strategic_primitive),
        cmocka_unit_test(test_strategic_names),
        cmocka_unit_test(test_strategic_visits),
        cmocka_unit_test(test_strategic_long_keys),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
