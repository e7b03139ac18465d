/* Writes that are wrong: refused with the right status, nothing changes, nothing falls over. */
#include "core/agent/agent.h"
#include "core/harness.h"

static int write_raw(struct harness *h, enum write_verb verb, enum object_kind object, const char *name,
                     const char *body)
{
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = verb,
                                       .object = object,
                                       .namespace_ = STR("default"),
                                       .name = str_from(name),
                                       .body = str_from(body),
                                       .grace_s = -1};
    h->last_code = 0;
    harness_step(h, &event);
    return h->last_code;
}

static void bodies_of_the_wrong_form(void **state)
{
    static const struct {
        const char *body;
        int code;
    } cases[] = {
        {"", 400},
        {"[]", 400},
        {"7", 400},
        {"{", 400},
        {"{\"metadata\":5}", 422},
        {"{\"metadata\":null}", 422},
        {"{\"metadata\":{\"name\":5},\"spec\":{}}", 422},
        {"{\"metadata\":{\"name\":\"x\"},\"spec\":7}", 422},
        {"{\"metadata\":{\"name\":\"x\"},\"spec\":{\"replicatedJobs\":{}}}", 422},
        {"{\"metadata\":{\"name\":\"x\"},\"spec\":{\"replicatedJobs\":[null]}}", 422},
        {"{\"metadata\":{\"name\":\"Bad_Name\"},\"spec\":{\"replicatedJobs\":[]}}", 422},
    };
    struct harness h;
    harness_init(&h, 2, 4, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int code = write_raw(&h, WRITE_CREATE, OBJECT_JOBSET, "", cases[i].body);
        if (code != cases[i].code)
            fail_msg("%s: %d %s", cases[i].body, code, h.last_message);
        assert_int_equal((int)core_jobs(h.core)->jobsets.len, 0);
    }
    const char *job = "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"x\"}}";
    assert_int_equal(write_raw(&h, WRITE_CREATE, OBJECT_JOBSET, "", job), 400);
    assert_string_equal(h.last_message, "expected kind JobSet, got kind \"Job\" of apiVersion \"batch/v1\"");
    assert_int_equal(write_raw(&h, WRITE_CREATE, OBJECT_CONFIG_MAP, "", job), 400);
    assert_string_equal(h.last_message,
                        "expected kind ConfigMap, got kind \"Job\" of apiVersion \"batch/v1\"");
    harness_done(&h);
}

static void what_does_not_exist_or_cannot_be_written(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(write_raw(&h, WRITE_DELETE, OBJECT_JOBSET, "absent", ""), 404);
    assert_int_equal(write_raw(&h, WRITE_DELETE, OBJECT_POD, "absent", ""), 404);
    assert_int_equal(write_raw(&h, WRITE_DELETE, OBJECT_JOB, "absent", ""), 404);
    assert_int_equal(write_raw(&h, WRITE_REPLACE, OBJECT_NODE, "absent", "{}"), 404);
    assert_int_equal(write_raw(&h, WRITE_REPLACE, OBJECT_NODE, "m-1", "{"), 400);
    assert_int_equal(write_raw(&h, WRITE_REPLACE, OBJECT_NODE, "m-1", "[1]"), 200);
    assert_int_equal(write_raw(&h, WRITE_CREATE, OBJECT_POD, "x", "{}"), 400);
    assert_int_equal(write_raw(&h, WRITE_CREATE, OBJECT_EVENT, "x", "{}"), 400);
    assert_int_equal(write_raw(&h, WRITE_CREATE, OBJECT_USER_EVENT, "x", "{}"), 405);
    assert_int_equal(write_raw(&h, WRITE_DELETE, OBJECT_NODE, "m-1", ""), 405);
    harness_done(&h);
}

/* Labels, annotations, taints and their owners stay over snapshots and a new cluster file. */
static void nodes_keep_what_users_say(void **state)
{
    static const char said[] =
        "{\"metadata\":{\"labels\":{\"tier\":\"gold\"},\"annotations\":{\"note\":\"kept\"},\"managedFields\":"
        "[{"
        "\"manager\":\"team\"}]},\"spec\":{\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]}}";
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(write_raw(&h, WRITE_REPLACE, OBJECT_NODE, "m-1", said), 200);
    const struct machine *machine = &core_cluster(h.core)->machines[0];
    uint64_t version = machine->changed_seq;
    assert_int_equal(write_raw(&h, WRITE_REPLACE, OBJECT_NODE, "m-1", said), 200);
    assert_int_equal(machine->changed_seq, version); /* it said the same */
    struct event cluster = {.kind = EVENT_CLUSTER};
    cluster.cluster.document = STR(
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},\"spec\":{"
        "\"machineNames\":\"m-{n}\",\"addresses\":\"127.0.1.1\",\"pods\":[{\"racks\":[{\"machines\":3,"
        "\"chips\":4}]}]}}");
    harness_step(&h, &cluster);
    machine = cluster_find(core_cluster(h.core), STR("m-1"));
    assert_int_equal((int)core_cluster(h.core)->machine_count, 3);
    assert_int_equal((int)machine->annotations.len, 1);
    assert_true(str_is(machine->annotations.items[0].value, "kept"));
    assert_true(str_is(machine->managed_fields, "[{\"manager\":\"team\"}]"));
    assert_int_equal((int)machine->taint_count, 1);
    harness_check_replay(&h);
    /* An impossible write is refused before it reaches the log. */
    static const char *const wrong[] = {
        "{\"metadata\":{\"labels\":{\"bad key\":\"x\"}}}",
        "{\"spec\":{\"taints\":[{\"key\":\"a\",\"effect\":\"Never\"}]}}",
        ("{\"spec\":{\"taints\":[{\"key\":\"a\",\"effect\":\"NoExecute\"},{\"key\":\"a\",\"effect\":"
         "\"NoExecute\"}]}}"),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct write_event write = {.verb = WRITE_REPLACE,
                                    .object = OBJECT_NODE,
                                    .name = STR("m-1"),
                                    .body = str_from(wrong[i]),
                                    .grace_s = -1};
        assert_false(core_check_write(h.core, &write, h.now_ns, &h.effects, NULL));
        assert_int_equal(h.effects.list.items[0].reply.code, 422);
    }
    harness_done(&h);
}

/* core_check_write says what the step would say, and changes nothing. */
static void checking_changes_nothing(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct write_event write = {.verb = WRITE_CREATE,
                                .object = OBJECT_JOBSET,
                                .namespace_ = STR("default"),
                                .body =
                                    STR("{\"metadata\":{\"name\":\"ok\"},\"spec\":{\"replicatedJobs\":[]}}"),
                                .grace_s = -1};
    uint64_t before = core_digest(h.core);
    assert_true(core_check_write(h.core, &write, h.now_ns, &h.effects, NULL));
    write.body = STR("{\"metadata\":7}");
    assert_false(core_check_write(h.core, &write, h.now_ns, &h.effects, NULL));
    assert_int_equal((int)h.effects.list.len, 1);
    assert_int_equal(h.effects.list.items[0].kind, EFFECT_REPLY);
    assert_true(core_digest(h.core) == before);
    harness_done(&h);
}

/* A write that was not checked, or whose check came before another write, is refused by the step itself. */
static void the_step_refuses_what_the_check_would(void **state)
{
    struct harness h;
    struct buf json BUF_CLEANUP = {0};
    harness_init(&h, 2, 4, 0);
    static const char stem[] = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s%s}\n"
                               "spec: {replicatedJobs: [{name: %s, template: {spec: {template: {metadata: "
                               "{annotations: {%s}}, spec: {restartPolicy: Never, containers: [{name: c, "
                               "image: i, command: [x]}]}}}}}]}\n";
    static const struct {
        const char *name, *more, *rjob, *annotations;
        int code;
    } writes[] = {
        {"a-b", "", "c", "", 201},
        {"a", "", "b-c", "", 409}, /* both would have a Job a-b-c-0 */
        {"elsewhere", ", namespace: absent", "w", "", 404},
        {"cut", "", "w", "kueue.x-k8s.io/podset-slice-size: 2", 422}, /* a slice of no topology */
    };
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        char yaml[1024];
        snprintf(yaml, sizeof yaml, stem, writes[i].name, writes[i].more, writes[i].rjob,
                 writes[i].annotations);
        struct event event = {.kind = EVENT_WRITE};
        event.write = harness_write_event(OBJECT_JOBSET, WRITE_CREATE, "", yaml, &json);
        if (writes[i].code == 404)
            event.write.namespace_ = STR("absent");
        struct effects checked = {0};
        bool would = core_check_write(h.core, &event.write, h.now_ns, &checked, NULL);
        vec_done(&checked.list);
        harness_step(&h, &event);
        assert_int_equal(h.last_code, writes[i].code);
        assert_int_equal(would, writes[i].code < 400);
        buf_clear(&json);
    }
    struct event node = {.kind = EVENT_WRITE};
    node.write = (struct write_event){.verb = WRITE_REPLACE,
                                      .object = OBJECT_NODE,
                                      .name = STR("m-1"),
                                      .body = STR("{\"metadata\":{\"labels\":{\"bad key\":\"x\"}}}"),
                                      .grace_s = -1};
    harness_step(&h, &node);
    assert_int_equal(h.last_code, 422);
    harness_check_replay(&h);
    harness_done(&h);
}

static struct write_event a_jobset(struct buf *json)
{
    static const char yaml[] =
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: js}\n"
        "spec: {replicatedJobs: [{name: w, template: {spec: {template: {spec: {restartPolicy: Never,"
        " containers: [{name: c, image: i, command: [x]}]}}}}}]}\n";
    return harness_write_event(OBJECT_JOBSET, WRITE_CREATE, "", yaml, json);
}

/* A queue "default" that was made after the check: the body is prepared anew, as a replay would. */
static void what_was_checked_is_out_of_date(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct buf json BUF_CLEANUP = {0};
    struct event event = {.kind = EVENT_WRITE, .write = a_jobset(&json)};
    struct effects checked = {0};
    assert_true(core_check_write(h.core, &event.write, h.now_ns, &checked, &event.write.prepared));
    static const char queue[] = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\n"
                                "metadata: {name: default}\nspec: {clusterQueue: cq}\n";
    assert_int_equal(harness_write_checked(&h, OBJECT_LOCAL_QUEUE, WRITE_CREATE, "", queue), 201);
    harness_step(&h, &event);
    assert_int_equal(h.last_code, 201);
    prepared_write_free(event.write.prepared);
    const struct jobset *jobset = jobs_find(core_jobs(h.core), STR("default"), STR("js"));
    struct str label = labels_get(&jobset->spec.labels, STR("kueue.x-k8s.io/queue-name"), STR(""));
    assert_true(str_is(label, "default") && jobset->spec.suspend);
    harness_check_replay(&h);
    vec_done(&checked.list);
    harness_done(&h);
}

/* The check sees the name that the write will have, not that of the write before. */
static void generated_names_are_checked_as_they_are_written(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct event event = {.kind = EVENT_WRITE};
    for (uint64_t i = 1; i <= 40; i++) {
        event.write = (struct write_event){
            .verb = WRITE_CREATE,
            .object = OBJECT_CONFIG_MAP,
            .namespace_ = STR("default"),
            .body =
                STR("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"generateName\":\"cm-\"}}"),
            .grace_s = -1,
            .draw = i};
        assert_true(core_check_write(h.core, &event.write, h.now_ns, &h.effects, NULL));
        harness_step(&h, &event);
        assert_int_equal(h.last_code, 201);
    }
    event.write.draw = 7; /* again */
    assert_false(core_check_write(h.core, &event.write, h.now_ns, &h.effects, NULL));
    assert_int_equal(h.effects.list.items[0].reply.code, 409);
    harness_done(&h);
}

static struct core *booted(uint64_t identity)
{
    struct core *core = core_new();
    struct effects effects = {0};
    struct event boot = {
        .kind = EVENT_BOOT, .seq = 1, .boot = {.epoch = 1, .version = STR("test"), .identity = identity}};
    core_step(core, &boot, &effects);
    vec_done(&effects.list);
    return core;
}

/* The step applies what the check has parsed: the body that only the log needs may be anything. The
 * effects of the step before stay whole. */
static void what_was_checked_is_applied(void **state)
{
    struct core *core = booted(1);
    struct buf json BUF_CLEANUP = {0};
    struct event event = {.kind = EVENT_WRITE, .seq = 2, .write = a_jobset(&json)};
    struct event absent = event;
    absent.write.verb = WRITE_DELETE;
    absent.write.name = STR("absent");
    struct effects effects = {0}, checked = {0};
    core_step(core, &absent, &effects);
    assert_true(core_check_write(core, &event.write, 0, &checked, &event.write.prepared));
    assert_non_null(event.write.prepared);
    assert_true(str_is(effects.list.items[0].reply.message, "jobsets.jobset.x-k8s.io \"absent\" not found"));
    event.seq = 3;
    event.write.body = STR("no JSON");
    core_step(core, &event, &effects);
    prepared_write_free(event.write.prepared);
    const struct jobset *jobset = jobs_find(core_jobs(core), STR("default"), STR("js"));
    assert_non_null(jobset);
    assert_int_equal((int)jobset->spec.rjob_count, 1);
    core_check_invariants(core);
    vec_done(&effects.list);
    vec_done(&checked.list);
    core_free(core);
}

static struct write_event a_map(enum write_verb verb, const char *name, const char *body)
{
    return (struct write_event){.verb = verb,
                                .object = OBJECT_CONFIG_MAP,
                                .namespace_ = STR("default"),
                                .name = str_from(name),
                                .body = str_from(body),
                                .grace_s = -1};
}

#define MAP(metadata, data)                                                                                  \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":" metadata ",\"data\":" data "}"

/* Checks and applies a write with what was prepared of it, and then with a body that nobody can read: neither
 * the check nor the step looks at it. Returns the status. */
static int write_prepared(struct harness *h, struct write_event write, const char **ret_message)
{
    static char message[256];
    struct event event = {.kind = EVENT_WRITE, .write = write};
    struct effects checked = {0};
    event.write.prepared = core_prepare_write(&write);
    assert_non_null(event.write.prepared);
    event.write.body = STR("no JSON");
    int code = 0;
    if (!core_check_write(h->core, &event.write, h->now_ns, &checked, NULL)) {
        code = checked.list.items[0].reply.code;
        snprintf(message, sizeof message, STR_FORMAT, STR_ARG(checked.list.items[0].reply.message));
        *ret_message = message;
    } else {
        event.write.body = write.body; /* the log has it, for the replay */
        harness_step(h, &event);
        code = h->last_code;
    }
    prepared_write_free(event.write.prepared);
    vec_done(&checked.list);
    return code;
}

static void objects_are_prepared_ahead(void **state)
{
    struct harness h;
    const char *why = NULL;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(
        write_prepared(&h, a_map(WRITE_CREATE, "", MAP("{\"name\":\"m\"}", "{\"a\":\"b\"}")), &why), 201);
    assert_int_equal(
        write_prepared(&h, a_map(WRITE_CREATE, "", MAP("{\"name\":\"m\"}", "{\"a\":\"b\"}")), &why), 409);
    assert_int_equal(
        write_prepared(&h, a_map(WRITE_REPLACE, "m", MAP("{\"name\":\"m\"}", "{\"a\":\"c\"}")), &why), 200);
    const struct object *map = object_find(core_objects(h.core), OBJECT_CONFIG_MAP, STR("default"), STR("m"));
    assert_true(map && str_is(doc_get(map->document, "data")->text, "{\"a\":\"c\"}"));
    uint64_t version = map->changed_seq;
    assert_int_equal(
        write_prepared(&h, a_map(WRITE_REPLACE, "m", MAP("{\"name\":\"m\"}", "{\"a\":\"c\"}")), &why), 200);
    assert_true(map->changed_seq == version); /* it says the same */
    /* A refusal is the check's own, behind what depends on the state. */
    assert_int_equal(
        write_prepared(&h, a_map(WRITE_REPLACE, "m", MAP("{\"name\":\"m\"}", "{\"a\":7}")), &why), 422);
    assert_non_null(strstr(why, "ConfigMap \"m\" is invalid: data"));
    assert_int_equal(
        write_prepared(&h, a_map(WRITE_REPLACE, "n", MAP("{\"name\":\"n\"}", "{\"a\":7}")), &why), 404);
    assert_int_equal(write_prepared(&h, a_map(WRITE_CREATE, "", "{"), &why), 400);
    core_check_invariants(h.core);
    harness_check_replay(&h);
    harness_done(&h);
}

/* Only documents of stored objects can be read without the state; a name that was drawn anew is looked at. */
static void what_needs_the_state_is_not_prepared(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct buf json BUF_CLEANUP = {0};
    struct write_event write = a_jobset(&json);
    assert_null(core_prepare_write(&write));
    write = a_map(WRITE_DELETE, "m", "");
    assert_null(core_prepare_write(&write));
    write = a_map(WRITE_REPLACE, "m", "{}");
    write.object = OBJECT_CLUSTER_QUEUE; /* gets a finalizer, unless it is being deleted by then */
    assert_null(core_prepare_write(&write));
    struct event event = {.kind = EVENT_WRITE,
                          .write = a_map(WRITE_CREATE, "", MAP("{\"generateName\":\"m-\"}", "{}"))};
    event.write.draw = 1;
    event.write.prepared = core_prepare_write(&event.write);
    event.write.draw = 2;
    harness_step(&h, &event);
    assert_int_equal(h.last_code, 201);
    struct arena arena ARENA_CLEANUP = {0};
    assert_non_null(object_find(core_objects(h.core), OBJECT_CONFIG_MAP, STR("default"),
                                generated_name(&arena, STR("m-"), 2)));
    prepared_write_free(event.write.prepared);
    harness_check_replay(&h);
    harness_done(&h);
}

static obj_id default_namespace(const struct core *core)
{
    return object_find(core_objects(core), OBJECT_NAMESPACE, STR(""), STR("default"))->uid;
}

static void clusters_have_uids_of_their_own(void **state)
{
    struct core *a = booted(UINT64_C(0xfedcba9876543210)), *b = booted(UINT64_C(0xfedcba9876544210));
    char texts[2][UID_TEXT_MAX];
    uid_text(default_namespace(a), texts[0]);
    uid_text(default_namespace(b), texts[1]);
    assert_string_not_equal(texts[0], texts[1]);
    /* Agents keep the bits above for containers. */
    assert_true(uid_base(UINT64_MAX, 0) + (UINT64_C(1) << 36 << 20) <= AGENT_CONTAINER_TASKS_MAX);
    /* Later boots leave the identity as it is, and snapshots keep it. */
    struct buf bytes BUF_CLEANUP = {0};
    struct core *again = core_new();
    core_snapshot_write(a, &bytes);
    assert_int_equal(core_snapshot_read(again, buf_str(&bytes), NULL), 0);
    struct core *const both[] = {a, again};
    for (int i = 0; i < 2; i++) {
        struct effects effects = {0};
        struct event boot = {
            .kind = EVENT_BOOT, .seq = 2, .boot = {.epoch = 2, .version = STR("test"), .identity = 17}};
        core_step(both[i], &boot, &effects);
        vec_done(&effects.list);
    }
    assert_true(core_digest(a) == core_digest(again) && default_namespace(a) == default_namespace(again));
    core_free(a);
    core_free(b);
    core_free(again);
}

/* A backup of the log is put back: what the next controller makes must not have the uids of what was made
 * after the backup, which machines may still run. */
static void a_restored_log_has_uids_of_its_own(void **state)
{
    obj_id made[3];
    const uint64_t boots[] = {0, 1000, 5000}; /* the log as it was, restored, and restored later */
    for (int i = 0; i < 3; i++) {
        struct core *core = booted(UINT64_C(0xfedcba9876543210));
        struct effects effects = {0};
        struct buf json BUF_CLEANUP = {0};
        struct event boot = {.kind = EVENT_BOOT, .seq = 2, .boot = {.epoch = 1 + boots[i]}};
        struct event event = {.kind = EVENT_WRITE, .seq = 3, .write = a_jobset(&json)};
        core_step(core, &boot, &effects);
        core_step(core, &event, &effects);
        const struct jobset *jobset = jobs_find(core_jobs(core), STR("default"), STR("js"));
        assert_non_null(jobset);
        made[i] = jobset->uid;
        vec_done(&effects.list);
        core_free(core);
    }
    assert_true(made[0] < made[1] && made[1] < made[2]);
}

static void uids_run_ahead_with_time(void **state)
{
    assert_true(uids_ahead(0, 5, 0) == 0);
    assert_true(uids_ahead(0, 5, 10 * UID_POSITION_MS) == 5);
    assert_true(uids_ahead(0, 10, 10 * UID_POSITION_MS) == 0); /* the log is faster */
    assert_true(uids_ahead(5000, 6000, 10) == 5000);           /* and never back */
    uint64_t year = UINT64_C(366) * 24 * 3600 * 1000;
    assert_true(uids_ahead(0, 1, 16 * year) + 1 < UINT64_C(1) << UID_POSITION_BITS);
    assert_true(uids_ahead(7, 1, UINT64_MAX) == 7);
}

static void generated_names_fit_a_label(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct str a = generated_name(&arena, STR("run-"), 1), b = generated_name(&arena, STR("run-"), 2);
    assert_true(a.len == 9 && str_starts(a, STR("run-")) && !str_equal(a, b));
    char prefix[254];
    memset(prefix, 'a', sizeof prefix);
    assert_int_equal(generated_name(&arena, (struct str){prefix, sizeof prefix}, 1).len, 63);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated_names_are_checked_as_they_are_written),
        cmocka_unit_test(generated_names_fit_a_label),
        cmocka_unit_test(objects_are_prepared_ahead),
        cmocka_unit_test(what_needs_the_state_is_not_prepared),
        cmocka_unit_test(clusters_have_uids_of_their_own),
        cmocka_unit_test(a_restored_log_has_uids_of_its_own),
        cmocka_unit_test(uids_run_ahead_with_time),
        cmocka_unit_test(bodies_of_the_wrong_form),
        cmocka_unit_test(what_does_not_exist_or_cannot_be_written),
        cmocka_unit_test(nodes_keep_what_users_say),
        cmocka_unit_test(checking_changes_nothing),
        cmocka_unit_test(the_step_refuses_what_the_check_would),
        cmocka_unit_test(what_was_checked_is_applied),
        cmocka_unit_test(what_was_checked_is_out_of_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
