/* Workloads of a snapshot that do not hold together: an error, never a crash. */
#include "queues.h"

#include "base/rng.h"
#include "core/log/snapshot.h"

#define QUEUE(quota) FLAVOR("v5e") CLUSTER_QUEUE("cq", quota, PREEMPTS) LOCAL_QUEUE("lq", "cq") CLASS_HIGH
#define PREEMPTS     "  preemption: {withinClusterQueue: LowerPriority}\n"
#define CLASS_HIGH                                                                                           \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: high}\nvalue: 9\n"

/* A change of the record of the Workload `uid`; `other` is what the change needs. */
typedef void (*forgery)(Snapshot__Workload *pb, uint64_t other);

struct forged {
    obj_id uid;
    forgery change;
    uint64_t other;
    bool done;
};

static void copy_record(struct forged *forged, const uint8_t *data, size_t size, struct buf *out)
{
    Snapshot__Record *pb = snapshot__record__unpack(NULL, size, data);
    assert_non_null(pb);
    if (pb->kind_case == SNAPSHOT__RECORD__KIND_WORKLOAD && pb->workload->uid == forged->uid) {
        forged->change(pb->workload, forged->other);
        forged->done = true;
    }
    size_t packed = snapshot__record__get_packed_size(pb);
    uint8_t *bytes = mem_alloc(packed);
    snapshot__record__pack(pb, bytes);
    for (int i = 0; i < 4; i++)
        buf_add_char(out, (char)(packed >> (8 * i)));
    buf_add_str(out, (struct str){(char *)bytes, packed});
    mem_free(bytes);
    snapshot__record__free_unpacked(pb, NULL);
}

/* Returns the result of reading a snapshot in which the Workload's record was changed. */
static int read_forged(struct harness *h, const struct workload *workload, forgery change, uint64_t other)
{
    struct buf bytes BUF_CLEANUP = {0}, copy BUF_CLEANUP = {0};
    struct forged forged = {workload->uid, change, other, false};
    struct error error = {0};
    core_snapshot_write(h->core, &bytes);
    for (size_t at = 0; at < bytes.len;) {
        const uint8_t *data = (const uint8_t *)bytes.data + at;
        size_t size = data[0] | data[1] << 8 | data[2] << 16 | (size_t)data[3] << 24;
        copy_record(&forged, data + 4, size, &copy);
        at += 4 + size;
    }
    assert_true(forged.done);
    struct core *core = core_new();
    int rc = core_snapshot_read(core, buf_str(&copy), &error);
    assert_true(rc == 0 || error.text[0]);
    core_free(core);
    return rc;
}

static void nothing(Snapshot__Workload *pb, uint64_t other)
{
    (void)pb;
    (void)other;
}

static void of_jobset(Snapshot__Workload *pb, uint64_t other)
{
    pb->jobset = other;
}

static void owned_by(Snapshot__Workload *pb, uint64_t other)
{
    pb->own = other;
}

static void in_state(Snapshot__Workload *pb, uint64_t other)
{
    pb->state = (uint32_t)other;
}

static void without_condition(Snapshot__Workload *pb, uint64_t other)
{
    assert_true(other < pb->n_conditions && pb->conditions[other]->present);
    pb->conditions[other]->present = false;
}

static void fewer_conditions(Snapshot__Workload *pb, uint64_t other)
{
    for (size_t i = (size_t)other; i < pb->n_conditions; i++)
        snapshot__condition__free_unpacked(pb->conditions[i], NULL);
    pb->n_conditions = (size_t)other;
}

static void giving(Snapshot__Workload *pb, uint64_t other)
{
    pb->given = other != 0;
}

static void led_by(Snapshot__Workload *pb, uint64_t other)
{
    pb->leader = other;
}

static void requeued(Snapshot__Workload *pb, uint64_t other)
{
    pb->requeues = (int32_t)other;
}

static void after_victims(Snapshot__Workload *pb, uint64_t other)
{
    pb->preempted = (int32_t)other;
}

#define assert_refused(h, workload, change, other)                                                           \
    assert_int_equal(read_forged((h), (workload), (change), (other)), ERROR_CORRUPT)

static void begin(struct harness *h)
{
    harness_init(h, 2, 4, 0);
    set_queues(h, 2, 4, "{\"minimumRunTime\":\"0s\"}");
    must_apply(h, QUEUE("8"));
}

static void make(struct harness *h, const char *name)
{
    char body[1024];
    snprintf(
        body, sizeof(body),
        "{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"Workload\",\"metadata\":{\"name\":\"%s\"},"
        "\"spec\":{\"queueName\":\"lq\",\"podSets\":[{\"name\":\"w\",\"count\":1,\"template\":{\"spec\":{"
        "\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{"
        "\"limits\":"
        "{\"google.com/tpu\":4}}}]}}}]}}",
        name);
    assert_int_equal(post(h, WRITE_CREATE, OBJECT_WORKLOAD, "default", "", str_from(body)), 201);
}

static const struct workload *named(struct harness *h, const char *name)
{
    return workload_find(core_admit(h->core), STR("default"), str_from(name));
}

/* A Workload that a user made stands for itself or for a job, never for another such Workload. */
static void test_jobs_of_user_made_ones(void **state)
{
    (void)state;
    struct harness h;
    begin(&h);
    make(&h, "a");
    make(&h, "b");
    submit(&h, "j", "lq", 1, 4, "");
    const struct workload *a = named(&h, "a"), *b = named(&h, "b");
    assert_int_equal(read_forged(&h, a, nothing, 0), 0);
    assert_refused(&h, b, of_jobset, a->own->uid);
    assert_refused(&h, a, of_jobset, b->own->uid);
    assert_refused(&h, a, of_jobset, 12345);
    assert_refused(&h, a, owned_by, 0);
    assert_refused(&h, a, owned_by, harness_jobset(&h, "j")->uid);
    assert_refused(&h, a, in_state, WORKLOAD_LEAVING); /* it has no tasks */
    harness_done(&h);
}

static void test_states(void **state)
{
    (void)state;
    struct harness h;
    begin(&h);
    submit(&h, "low", "lq", 1, 4, "");
    submit(&h, "old", "lq", 1, 4, "");
    harness_run_all(&h);
    finish_all(&h, "old", 1);
    submit(&h, "high", "lq", 2, 4, "    kueue.x-k8s.io/priority-class: high\n");
    const struct workload *low = workload_named(&h, "low"), *high = workload_named(&h, "high"),
                          *old = workload_named(&h, "old");
    assert_state(&h, "low", "leaving");
    assert_true(low->given);
    assert_int_equal(read_forged(&h, low, nothing, 0), 0);
    assert_refused(&h, low, without_condition, WORKLOAD_EVICTED);
    assert_refused(&h, low, fewer_conditions, 0);
    assert_refused(&h, low, in_state, WORKLOAD_ADMITTED); /* with its quota given */
    assert_refused(&h, low, in_state, WORKLOAD_PENDING);
    assert_refused(&h, low, in_state, WORKLOAD_STATES);
    assert_state(&h, "high", "holding");
    assert_refused(&h, high, giving, true);
    assert_refused(&h, high, led_by, high->uid); /* it is in no group */
    assert_refused(&h, high, led_by, low->uid);
    assert_refused(&h, high, led_by, 12345);
    assert_state(&h, "old", "finished");
    assert_refused(&h, old, without_condition, WORKLOAD_IS_FINISHED);
    assert_refused(&h, old, led_by, old->uid);
    harness_done(&h);
}

static void test_counts(void **state)
{
    (void)state;
    struct harness h;
    begin(&h);
    submit(&h, "a", "lq", 1, 4, "");
    const struct workload *a = workload_named(&h, "a");
    assert_int_equal(read_forged(&h, a, requeued, 7), 0);
    assert_refused(&h, a, requeued, INT32_MAX);
    assert_refused(&h, a, requeued, (uint64_t)-1);
    assert_refused(&h, a, after_victims, INT32_MAX);
    harness_done(&h);
}

/* Copies a snapshot with one bit changed in some records of Workloads. */
static void damage(struct rng *rng, struct str bytes, struct buf *out)
{
    buf_add_str(out, bytes);
    for (size_t at = 0; at < out->len;) {
        const uint8_t *data = (const uint8_t *)out->data + at;
        size_t size = data[0] | data[1] << 8 | data[2] << 16 | (size_t)data[3] << 24;
        Snapshot__Record *pb = snapshot__record__unpack(NULL, size, data + 4);
        assert_non_null(pb);
        if (pb->kind_case == SNAPSHOT__RECORD__KIND_WORKLOAD && rng_below(rng, 3) == 0)
            out->data[at + 4 + rng_below(rng, size)] ^= (char)(1 << rng_below(rng, 8));
        snapshot__record__free_unpacked(pb, NULL);
        at += 4 + size;
    }
}

/* Damage that is not noticed gives another state, which goes on from there. */
static void test_damaged(void **state)
{
    (void)state;
    struct harness h;
    struct rng rng;
    int refused = 0;
    begin(&h);
    make(&h, "mine");
    submit(&h, "j", "lq", 1, 4, "    kueue.x-k8s.io/prebuilt-workload-name: mine\n");
    submit(&h, "low", "lq", 1, 4, "");
    harness_run_all(&h);
    make(&h, "other");
    submit(&h, "high", "lq", 2, 4, "    kueue.x-k8s.io/priority-class: high\n");
    struct buf bytes BUF_CLEANUP = {0};
    core_snapshot_write(h.core, &bytes);
    rng_seed(&rng, 3);
    for (int i = 0; i < 1500; i++) {
        struct buf copy BUF_CLEANUP = {0};
        struct error error = {0};
        struct core *core = core_new();
        struct effects effects = {0};
        damage(&rng, buf_str(&bytes), &copy);
        int rc = core_snapshot_read(core, buf_str(&copy), &error);
        for (int t = 1; rc == 0 && t <= 3; t++) {
            struct event tick = {.kind = EVENT_TICK,
                                 .seq = core_seq(core) + 1,
                                 .stamp_ns = core_now(core) + t * 100 * NS_PER_SECOND};
            core_step(core, &tick, &effects);
        }
        refused += rc < 0;
        vec_done(&effects.list);
        core_free(core);
    }
    assert_in_range(refused, 100, 1400);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_of_user_made_ones),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
