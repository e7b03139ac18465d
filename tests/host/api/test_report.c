/* GET /report: what a job makes of its chips, where the program and the cluster file say enough; failures by
 * size. */
#include "host/api/client.h"

/* clusters/mini.yaml with the peak of its chips. */
static void tell_peak(struct fake_host *host, int teraflops)
{
    struct buf text BUF_CLEANUP = {0};
    char path[] = "/tmp/phalanx-test-report-XXXXXX", chunk[4096];
    size_t len;
    FILE *from = fopen(CLUSTER, "rb");
    int fd = mkstemp(path);
    assert_true(from && fd >= 0);
    while ((len = fread(chunk, 1, sizeof chunk, from)) > 0)
        buf_add(&text, chunk, len);
    fclose(from);
    const char *at = strstr(text.data, "    lease:");
    assert_non_null(at);
    FILE *to = fdopen(fd, "wb");
    assert_true(to && fprintf(to, "%.*s    chipTeraflops: %d\n%s", (int)(at - text.data), text.data,
                              teraflops, at) > 0);
    fclose(to);
    fake_load_cluster(host, path);
    unlink(path);
}

static void make_step(struct fake_host *host, obj_id jobset, int64_t step, int64_t teraflop)
{
    struct event event = {.kind = EVENT_PROGRESS};
    event.progress = (struct progress_event){.jobset = jobset,
                                             .step = step,
                                             .total = 100,
                                             .source = STEP_SAID,
                                             .metrics = {{STR("step_teraflop"), teraflop * 1000000}},
                                             .metric_count = 1};
    fake_step(host, &event, NULL);
}

static int64_t mfu_ppm(struct fake_host *host, struct arena *arena)
{
    struct doc *doc;
    assert_int_equal(ask(host, arena, "GET", "/report", "", NULL, &doc), 200);
    const struct doc *jobs = doc_path(doc, "status", "jobs", NULL);
    assert_int_equal(doc_len(jobs), 1);
    return doc_int(doc_get(doc_at(jobs, 0), "mfuPpm"), -1);
}

/* Makes three steps, one each second, of 100 × 10^12 operations for each chip. */
static obj_id run_job(struct fake_host *host)
{
    create(host, "t");
    const struct jobset *jobset = jobs_find(core_jobs(host->core), STR("default"), STR("t"));
    int64_t chips = jobset_account(jobset, fake_now(host)).chips;
    assert_true(chips > 0);
    for (int64_t step = 1; step <= 3; step++) {
        make_step(host, jobset->uid, step, 100 * chips);
        host->clock_ns += NS_PER_SECOND;
    }
    return jobset->uid;
}

static void the_use_of_chips(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    tell_peak(host, 200);
    obj_id jobset = run_job(host);
    int64_t ppm = mfu_ppm(host, &arena);
    assert_true(ppm > 450000 && ppm <= 500000); /* the test itself takes some of each second */
    make_step(host, jobset, 4, 0);
    assert_int_equal(mfu_ppm(host, &arena), -1); /* the program says no more what a step is */
}

static void nobody_knows_the_peak(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    (void)run_job(host);
    assert_int_equal(mfu_ppm(host, &arena), -1);
}

static double real_of(const struct doc *number)
{
    assert_non_null(number);
    assert_true(number->kind == DOC_FLOAT || number->kind == DOC_INT);
    return number->kind == DOC_FLOAT ? number->number : (double)doc_int(number, 0);
}

/* The row of the job's size: nothing has failed, so there is a lower bound of its MTTF alone. */
static void bounds_without_a_failure(void **state)
{
    struct fake_host *host = *state;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    (void)run_job(host);
    assert_int_equal(ask(host, &arena, "GET", "/report", "", NULL, &doc), 200);
    const struct doc *status = doc_get(doc, "status"), *sizes = doc_get(status, "sizes");
    assert_int_equal(doc_int(doc_get(status, "mttfConfidencePpm"), -1), 900000);
    assert_int_equal(doc_len(sizes), 1);
    const struct doc *size = doc_at(sizes, 0);
    double chips = (double)doc_int(doc_get(size, "chips"), 0);
    double exposure_s = real_of(doc_get(size, "exposureChipSeconds"));
    double low_s = real_of(doc_get(size, "mttfLowSeconds"));
    assert_true(chips > 0 && exposure_s > 0);
    assert_true(low_s * chips * 2.995 < exposure_s && exposure_s < low_s * chips * 2.997); /* -ln 0.05 */
    assert_null(doc_get(size, "mttfSeconds"));
    assert_null(doc_get(size, "mttfHighSeconds"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_use_of_chips, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_knows_the_peak, setup, teardown),
        cmocka_unit_test_setup_teardown(bounds_without_a_failure, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
