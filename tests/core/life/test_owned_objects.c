/* Objects that are made for a JobSet beside its Jobs: its headless Service and its claims. */
#include "core/job/story.h"

#include "core/object/object.h"

#define CLAIMS(when)                                                                                         \
    "volumeClaimPolicies: [{templates: [{metadata: {name: data, labels: {tier: hot}}, spec: {accessModes: "  \
    "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}], retentionPolicy: {whenDeleted: " when        \
    "}}], "
#define MOUNTING                                                                                             \
    "{name: w, replicas: 1, template: {spec: {parallelism: 1, completions: 1, template: {spec: "             \
    "{restartPolicy: Never, containers: [{name: main, image: none, command: [run], volumeMounts: [{name: "   \
    "data, mountPath: /data}]}]}}}}}"

static const struct object *find(struct harness *h, enum object_kind kind, const char *name)
{
    return object_find(core_objects(h->core), kind, STR("default"), str_from(name));
}

static int write_object_kind(struct harness *h, enum object_kind kind, enum write_verb verb, const char *name)
{
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){
        .verb = verb, .object = kind, .namespace_ = STR("default"), .name = str_from(name), .grace_s = -1};
    harness_step(h, &event);
    core_check_invariants(h->core);
    return h->last_code;
}

static void the_service_is_made_and_made_again(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "network: {subdomain: net}, ", RJOB("w", 1, "", 1, "")));
    const struct object *service = find(&h, OBJECT_SERVICE, "net");
    assert_non_null(service);
    assert_true(str_is(doc_str(doc_path(service->document, "spec", "clusterIP", NULL), STR("")), "None"));
    assert_true(str_is(
        doc_str(doc_path(service->document, "spec", "selector", "jobset.sigs.k8s.io/jobset-name", NULL),
                STR("")),
        "a"));
    assert_true(doc_bool(doc_path(service->document, "spec", "publishNotReadyAddresses", NULL), false));
    char uid[UID_TEXT_MAX];
    uid_text(jobset->uid, uid);
    const struct doc *owner = doc_at(doc_path(service->document, "metadata", "ownerReferences", NULL), 0);
    assert_true(str_is(doc_str(doc_get(owner, "uid"), STR("")), uid));
    obj_id before = service->uid;
    write_object_kind(&h, OBJECT_SERVICE, WRITE_DELETE, "net");
    service = find(&h, OBJECT_SERVICE, "net");
    assert_non_null(service);
    assert_true(service->uid != before);
    harness_run_all(&h);
    harness_write(&h, WRITE_DELETE, "a", NULL);
    harness_run_all(&h);
    assert_null(find(&h, OBJECT_SERVICE, "net"));
    harness_done(&h);
}

/* The Service is made without the checks of a write: it must equal what a write would have kept. */
static void the_service_is_as_if_written(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "network: {publishNotReadyAddresses: false}, ", RJOB("w", 1, "", 1, "")));
    const struct object *service = find(&h, OBJECT_SERVICE, "a");
    assert_non_null(service);
    struct arena arena = {0};
    struct doc *written = doc_clone(&arena, service->document);
    struct field_errors errors = {.arena = &arena};
    struct doc *spec = doc_get(written, "spec");
    doc_unset(spec, "type");
    doc_unset(spec, "sessionAffinity");
    doc_unset(spec, "internalTrafficPolicy");
    stored_default(&arena, written);
    stored_check(written, &errors);
    assert_int_equal(errors.list.len, 0);
    struct buf made = {0}, kept = {0};
    json_write(&made, service->document);
    json_write(&kept, written);
    assert_string_equal(made.data, kept.data);
    buf_done(&made);
    buf_done(&kept);
    field_errors_done(&errors);
    arena_done(&arena);
    harness_run_all(&h);
    harness_done(&h);
}

static void without_names_there_is_none(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "network: {enableDNSHostnames: false}, ", RJOB("w", 1, "", 1, "")));
    assert_null(find(&h, OBJECT_SERVICE, "a"));
    harness_done(&h);
}

static void claims_go_with_their_jobset(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "suspend: true, " CLAIMS("Delete"), MOUNTING));
    const struct object *claim = find(&h, OBJECT_CLAIM, "data-a");
    assert_non_null(claim); /* while suspended too */
    const struct doc *labels = doc_path(claim->document, "metadata", "labels", NULL);
    assert_true(str_is(doc_str(doc_get(labels, "tier"), STR("")), "hot"));
    assert_true(str_is(doc_str(doc_get(labels, "jobset.sigs.k8s.io/jobset-name"), STR("")), "a"));
    assert_int_equal(doc_len(doc_path(claim->document, "metadata", "ownerReferences", NULL)), 1);
    harness_write(&h, WRITE_DELETE, "a", NULL);
    harness_run_all(&h);
    assert_null(find(&h, OBJECT_CLAIM, "data-a"));
    harness_done(&h);
}

static void kept_claims_are_found_again(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", CLAIMS("Retain"), MOUNTING));
    obj_id uid = find(&h, OBJECT_CLAIM, "data-a")->uid;
    harness_run_all(&h);
    harness_write(&h, WRITE_DELETE, "a", NULL);
    harness_run_all(&h);
    assert_true(find(&h, OBJECT_CLAIM, "data-a")->uid == uid);
    harness_create(&h, JOBSET("a", CLAIMS("Retain"), MOUNTING));
    assert_true(find(&h, OBJECT_CLAIM, "data-a")->uid == uid);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_service_is_made_and_made_again), cmocka_unit_test(the_service_is_as_if_written),
        cmocka_unit_test(without_names_there_is_none),        cmocka_unit_test(claims_go_with_their_jobset),
        cmocka_unit_test(kept_claims_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
