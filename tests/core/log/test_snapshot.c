/* Snapshots that were cut, damaged or put together wrongly: an error, never a crash, never half a state in
 * use. That whole ones give the same state and the same future is shown by every story, and at random in
 * life/test_random.c. */
#include "core/job/story.h"

#include "base/rng.h"
#include "core/log/snapshot.h"

static void write_busy(struct buf *out)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    harness_create(
        &h, JOBSET("a", "failurePolicy: {maxRestarts: 3}, startupPolicy: {startupPolicyOrder: InOrder}, ",
                   RJOB("x", 2, "", 2, "") "," RJOB("z", 1, "", 2, "")));
    harness_run_all(&h);
    harness_create(&h, JOBSET("b", "ttlSecondsAfterFinished: 100, ",
                              RJOB("x", 1, "", 2, "activeDeadlineSeconds: 50, ")));
    harness_run_all(&h);
    report_task(&h, "a-x-0-0", (struct task_report){.kind = REPORT_JOINED});
    exits(&h, "a-x-0-1", 1);
    exits(&h, "b-x-0-1", 0);
    harness_create(&h, JOBSET("c", "", RJOB("x", 7, "", 3, "")));
    core_snapshot_write(h.core, out);
    harness_done(&h);
}

static int read_bytes(struct str bytes)
{
    struct core *core = core_new();
    struct error error = {0};
    int rc = core_snapshot_read(core, bytes, &error);
    assert_true(rc == 0 || error.text[0]);
    if (rc == 0)
        core_digest(core); /* whatever it is, it is a state */
    core_free(core);
    return rc;
}

static void cut(void **state)
{
    struct buf bytes = {0};
    write_busy(&bytes);
    assert_int_equal(read_bytes(buf_str(&bytes)), 0);
    for (size_t len = 0; len < bytes.len; len += 1 + len / 50)
        read_bytes(
            (struct str){bytes.data, len}); /* some cuts leave whole records: a smaller state, or an error */
    assert_int_equal(read_bytes((struct str){bytes.data, bytes.len - 1}), ERROR_CORRUPT);
    assert_int_equal(read_bytes(STR("")), ERROR_CORRUPT);
    buf_done(&bytes);
}

static void damaged(void **state)
{
    struct buf bytes = {0};
    write_busy(&bytes);
    struct rng rng;
    rng_seed(&rng, 1);
    int errors = 0;
    for (int i = 0; i < 1500; i++) {
        struct buf copy = {0};
        buf_add_str(&copy, buf_str(&bytes));
        for (uint64_t n = 1 + rng_below(&rng, 3); n > 0; n--)
            copy.data[rng_below(&rng, copy.len)] ^= (char)(1 << rng_below(&rng, 8));
        errors += read_bytes(buf_str(&copy)) < 0;
        buf_done(&copy);
    }
    assert_true(errors > 100);
    buf_done(&bytes);
}

/* Whole records in another order, left out, or twice. */
static void shuffled(void **state)
{
    struct buf bytes = {0};
    write_busy(&bytes);
    VEC(struct str) records = {0};
    for (size_t at = 0; at < bytes.len;) {
        uint32_t size;
        memcpy(&size, bytes.data + at, sizeof(size));
        struct str record = {bytes.data + at, size + 4};
        vec_push(&records, record);
        at += size + 4;
    }
    struct rng rng;
    rng_seed(&rng, 2);
    for (int i = 0; i < 400; i++) {
        struct buf copy = {0};
        size_t a = rng_below(&rng, records.len), b = rng_below(&rng, records.len);
        for (size_t r = 0; r < records.len; r++) {
            if (r == a && i % 3 == 0)
                continue;
            buf_add_str(&copy, records.items[i % 3 == 1 && r == a ? b : r]);
            if (r == a && i % 3 == 2)
                buf_add_str(&copy, records.items[b]);
        }
        read_bytes(buf_str(&copy));
        buf_done(&copy);
    }
    vec_done(&records);
    buf_done(&bytes);
}

static void of_a_later_version(void **state)
{
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Header header = SNAPSHOT__HEADER__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_HEADER;
    record.header = &header;
    header.version = SNAPSHOT_VERSION + 1;
    uint8_t bytes[64] = {0};
    bytes[0] = (uint8_t)snapshot__record__pack(&record, bytes + 4);
    assert_int_equal(read_bytes((struct str){(char *)bytes, bytes[0] + 4u}), ERROR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut),
        cmocka_unit_test(damaged),
        cmocka_unit_test(shuffled),
        cmocka_unit_test(of_a_later_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
