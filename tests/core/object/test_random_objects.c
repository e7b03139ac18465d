/* Random lives of objects that own each other, over several namespaces: whatever happens, indexes agree, no
 * dependent
 * outlives its owners, namespaces that ended are empty, and a replay gives the same state. */
#include "object_test.h"

#include "base/rng.h"

enum { NAMES = 6, SPACES = 3, STEPS = 400, LIVES = 12 };
static const enum object_kind kinds[] = {OBJECT_CONFIG_MAP, OBJECT_SECRET, OBJECT_SERVICE_ACCOUNT};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct life {
    struct harness h;
    struct rng rng;
};

static uint64_t pick(struct life *life, uint64_t count)
{
    return rng_below(&life->rng, count);
}

static void put_reference(struct life *life, struct buf *yaml, const char *ns)
{
    enum object_kind kind = kinds[pick(life, KINDS)];
    char name[8], uid[UID_TEXT_MAX];
    snprintf(name, sizeof name, "n%d", (int)pick(life, NAMES));
    const struct object *owner = found(&life->h, kind, ns, name);
    uid_text(owner ? owner->uid : 999, uid);
    buf_printf(yaml, "{apiVersion: v1, kind: %s, name: %s, uid: %s, blockOwnerDeletion: %s}",
               object_kind_name(kind), name, uid, pick(life, 2) ? "true" : "false");
}

/* The uids that stand in a list must be unique. */
static void put_object(struct life *life, struct buf *yaml, enum object_kind kind, const char *ns,
                       const char *name)
{
    buf_printf(yaml, "{apiVersion: v1, kind: %s, metadata: {name: %s, namespace: %s, labels: {turn: \"%d\"}",
               object_kind_name(kind), name, ns, (int)pick(life, 3));
    if (pick(life, 3) == 0)
        buf_printf(yaml, ", finalizers: [example.com/a]");
    if (pick(life, 2) == 0) {
        buf_printf(yaml, ", ownerReferences: [");
        put_reference(life, yaml, ns);
        buf_printf(yaml, "]");
    }
    buf_printf(yaml, "}}");
}

static void one_step(struct life *life)
{
    static const char *const spaces[SPACES] = {"default", "one", "two"};
    const char *ns = spaces[pick(life, SPACES)];
    enum object_kind kind = kinds[pick(life, KINDS)];
    char name[8], yaml_ns[96];
    struct buf yaml BUF_CLEANUP = {0};
    snprintf(name, sizeof name, "n%d", (int)pick(life, NAMES));
    switch (pick(life, 8)) {
    case 0:
    case 1:
    case 2:
        put_object(life, &yaml, kind, ns, name);
        put(&life->h, WRITE_CREATE, kind, ns, name, yaml.data);
        break;
    case 3:
    case 4:
        put_object(life, &yaml, kind, ns, name);
        put(&life->h, WRITE_REPLACE, kind, ns, name, yaml.data);
        break;
    case 5:
    case 6:
        drop(&life->h, kind, ns, name, (enum propagation)pick(life, 4));
        break;
    default:
        if (pick(life, 3) == 0) {
            drop(&life->h, OBJECT_NAMESPACE, "", ns, (enum propagation)pick(life, 4));
        } else {
            snprintf(yaml_ns, sizeof yaml_ns, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", ns);
            put(&life->h, WRITE_CREATE, OBJECT_NAMESPACE, "", ns, yaml_ns);
        }
    }
}

/* No owner that is a stored kind is gone, unless the object itself is on its way. */
static void check_one(void *context, const struct object *object)
{
    struct life *life = context;
    const struct doc *list = doc_path(object->document, "metadata", "ownerReferences", NULL);
    for (size_t i = 0; i < doc_len(list) && !object->deleted_ns; i++) {
        obj_id uid = 0;
        assert_true(uid_parse(doc_str(doc_get(doc_at(list, i), "uid"), STR("")), &uid));
        assert_non_null(object_find_uid(core_objects(life->h.core), uid));
    }
    assert_true(object->deleted_ns == 0 ||
                doc_len(doc_path(object->document, "metadata", "finalizers", NULL)) > 0 ||
                object->kind == OBJECT_NAMESPACE);
    if (object->kind != OBJECT_NAMESPACE)
        assert_non_null(
            object_find(core_objects(life->h.core), OBJECT_NAMESPACE, STR(""), object->namespace_));
}

/* Once every finalizer is taken away, a namespace that ends is gone. */
static void let_go(struct life *life)
{
    static const char *const spaces[SPACES] = {"default", "one", "two"};
    for (int s = 0; s < SPACES; s++)
        for (size_t k = 0; k < KINDS; k++)
            for (int n = 0; n < NAMES; n++) {
                char name[8];
                struct buf yaml BUF_CLEANUP = {0};
                snprintf(name, sizeof name, "n%d", n);
                buf_printf(&yaml, "{apiVersion: v1, kind: %s, metadata: {name: %s, namespace: %s}}",
                           object_kind_name(kinds[k]), name, spaces[s]);
                put(&life->h, WRITE_REPLACE, kinds[k], spaces[s], name, yaml.data);
            }
    for (int s = 0; s < SPACES; s++) {
        const struct object *ns = found(&life->h, OBJECT_NAMESPACE, "", spaces[s]);
        assert_true(!ns || !ns->deleted_ns);
    }
}

static void random_lives(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= LIVES; seed++) {
        struct life life = {0};
        rng_seed(&life.rng, seed);
        harness_init(&life.h, 1, 4, 0);
        life.h.twins.seed = seed;
        for (int i = 0; i < STEPS; i++) {
            one_step(&life);
            for (size_t k = 0; k < KINDS; k++)
                object_visit(core_objects(life.h.core), kinds[k], STR(""), check_one, &life);
            object_visit(core_objects(life.h.core), OBJECT_NAMESPACE, STR(""), check_one, &life);
        }
        let_go(&life);
        harness_done(&life.h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_lives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
