/* The tests of machines: all pass on a good one; what is wrong, hangs or dies is said; thresholds count in
 * their direction; pairs find their peer by its epoch. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doc/json.h"
#include "doc/yaml.h"
#include "host/qualify/qualify.h"

static char stub[512]; /* path of stub_cuda.so; "": it was not built */

static struct qualify_options small(void)
{
    return (struct qualify_options){.budget_ns = 100 * NS_PER_MS,
                                    .directory = "/tmp",
                                    .memory_bytes = 4 << 20,
                                    .disk_bytes = 4 << 20,
                                    .cuda = stub,
                                    .cublas = stub,
                                    .gpu_size = 24};
}

static struct qualify_options of_test(enum qualify_test test)
{
    struct qualify_options options = small();
    options.tests[test] = true;
    return options;
}

static int figure(const char *name)
{
    const struct qualify_figure *known = qualify_figure_find(str_from(name));
    assert_non_null(known);
    return (int)(known - qualify_figures);
}

static void test_a_good_machine_passes(void **state)
{
    struct qualify_options options = small();
    struct qualify_report report;
    for (int i = 0; i < QUALIFY_PAIR; i++)
        options.tests[i] = true;
    if (!stub[0])
        options.tests[QUALIFY_GPU] = false;
    qualify_run(&options, &report);
    for (int i = 0; i < QUALIFY_PAIR; i++)
        if (report.tests[i].ran && !report.tests[i].ok)
            fail_msg("%s: %s", qualify_test_name((enum qualify_test)i), report.tests[i].why);
    assert_true(report.ok && !report.tests[QUALIFY_PAIR].ran);
    for (int i = 0; i < QUALIFY_FIGURES; i++) {
        assert_true(report.measured[i] == report.tests[qualify_figures[i].test].ran);
        assert_true(!report.measured[i] || report.figures[i] > 0);
    }
}

static void test_thresholds_have_a_direction(void **state)
{
    struct qualify_options options = of_test(QUALIFY_LOOPBACK);
    struct qualify_report report;
    int rate = figure("loopback/mb-per-s"), latency = figure("loopback/latency-us");
    options.golden.given[rate] = options.golden.given[latency] = true;
    options.golden.limit[rate] = 0.001;
    options.golden.limit[latency] = 1e9;
    qualify_run(&options, &report);
    assert_true(report.ok);
    options.golden.limit[rate] = 1e9;
    qualify_run(&options, &report);
    assert_false(report.ok);
    assert_non_null(strstr(report.tests[QUALIFY_LOOPBACK].why, "MB/s, expected at least 1e+09"));
    options.golden.limit[rate] = 0.001;
    options.golden.limit[latency] = 0.001;
    qualify_run(&options, &report);
    assert_false(report.ok);
    assert_non_null(strstr(report.tests[QUALIFY_LOOPBACK].why, "us, expected at most 0.001"));
}

static void gpu_misbehaves(const char *how, struct qualify_report *ret, double devices)
{
    struct qualify_options options = of_test(QUALIFY_GPU);
    options.patience_ns = NS_PER_SECOND;
    options.golden.given[figure("gpu/devices")] = devices > 0;
    options.golden.limit[figure("gpu/devices")] = devices;
    setenv("STUB_CUDA", how, 1);
    qualify_run(&options, ret);
    unsetenv("STUB_CUDA");
}

static void test_what_is_wrong_hangs_or_dies_is_said(void **state)
{
    struct qualify_report report;
    const struct qualify_result *gpu = &report.tests[QUALIFY_GPU];
    if (!stub[0])
        skip();
    gpu_misbehaves("wrong", &report, 0);
    assert_true(!report.ok && strstr(gpu->why, "GPU 1 computed a wrong product"));
    assert_non_null(strstr(gpu->why, "row 5, column 0"));
    gpu_misbehaves("abort", &report, 0);
    assert_true(!report.ok && strstr(gpu->why, "signal 6"));
    gpu_misbehaves("hang", &report, 0);
    assert_true(!report.ok && strstr(gpu->why, "no answer within 1 s"));
    gpu_misbehaves("none", &report, 0);
    assert_true(report.ok && gpu->skipped);
    gpu_misbehaves("none", &report, 2); /* a machine that should have some */
    assert_true(!report.ok && strstr(gpu->why, "gpu/devices is 0 devices, expected at least 2"));
}

static void test_no_driver_is_no_failure_unless_devices_are_wanted(void **state)
{
    struct qualify_options options = of_test(QUALIFY_GPU);
    struct qualify_report report;
    options.cuda = "/nonexistent/libcuda.so";
    qualify_run(&options, &report);
    assert_true(report.ok && report.tests[QUALIFY_GPU].skipped);
    options.golden.given[figure("gpu/devices")] = true;
    options.golden.limit[figure("gpu/devices")] = 8;
    qualify_run(&options, &report);
    assert_false(report.ok);
}

static void test_a_directory_that_cannot_be_written(void **state)
{
    struct qualify_options options = of_test(QUALIFY_DISK);
    struct qualify_report report;
    options.directory = "/nonexistent";
    qualify_run(&options, &report);
    assert_false(report.ok);
    assert_non_null(strstr(report.tests[QUALIFY_DISK].why, "/nonexistent: No such file"));
}

/* --- pairs ---------------------------------------------------------------------------------------------- */

static struct qualify_options of_pair(bool listens, uint16_t port, uint64_t epoch, int64_t deadline_ns)
{
    struct qualify_options options = of_test(QUALIFY_PAIR);
    options.pair = (struct qualify_pair){listens, "127.0.0.1", port, epoch, deadline_ns, 1 << 20};
    return options;
}

static pid_t listen_apart(uint16_t port, uint64_t epoch)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    struct qualify_options options = of_pair(true, port, epoch, 60 * NS_PER_SECOND);
    struct qualify_report report;
    qualify_run(&options, &report);
    _exit(report.ok ? 0 : 1);
}

static void test_a_pair_of_one_epoch_meets(void **state)
{
    uint16_t port = (uint16_t)(20000 + getpid() % 10000);
    struct qualify_report report;
    int how;
    pid_t listener = listen_apart(port, 9);
    struct qualify_options early = of_pair(false, port, 8, NS_PER_SECOND);
    qualify_run(&early, &report); /* of another round: turned away until its deadline */
    assert_false(report.ok);
    assert_non_null(strstr(report.tests[QUALIFY_PAIR].why, "no peer of epoch 8"));
    struct qualify_options right = of_pair(false, port, 9, 60 * NS_PER_SECOND);
    qualify_run(&right, &report);
    if (!report.ok)
        fail_msg("%s", report.tests[QUALIFY_PAIR].why);
    assert_true(report.tests[QUALIFY_PAIR].work_ns > 0);
    assert_true(report.figures[figure("pair/mb-per-s")] > 0 && report.figures[figure("pair/latency-us")] > 0);
    assert_int_equal(waitpid(listener, &how, 0), listener);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

/* --- documents ------------------------------------------------------------------------------------------ */

static void test_orders_are_read(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct qualify_options options = small();
    struct error error;
    assert_int_equal(qualify_order_read(STR("{\"tests\":[\"cpu\",\"disk\"],\"seconds\":7,"
                                            "\"golden\":{\"cpu/gflops\":12.5}}"),
                                        false, &arena, &options, &error),
                     0);
    assert_true(options.tests[QUALIFY_CPU] && options.tests[QUALIFY_DISK] && !options.tests[QUALIFY_MEMORY]);
    assert_true(options.budget_ns == 7 * NS_PER_SECOND && options.golden.given[figure("cpu/gflops")]);
    assert_true(options.golden.limit[figure("cpu/gflops")] == 12.5);
    assert_int_equal(qualify_order_read(STR("{\"listen\":\"10.0.0.1:29400\",\"epoch\":77,\"deadline\":9}"),
                                        true, &arena, &options, &error),
                     0);
    assert_true(options.tests[QUALIFY_PAIR] && !options.tests[QUALIFY_CPU] && options.pair.listens);
    assert_string_equal(options.pair.host, "10.0.0.1");
    assert_true(options.pair.port == 29400 && options.pair.epoch == 77);
    assert_true(options.pair.deadline_ns == 9 * NS_PER_SECOND);
}

static void test_wrong_orders_say_where(void **state)
{
    static const struct {
        const char *body, *why;
        bool pair;
    } cases[] = {
        {"", "1:1", false},
        {"[]", "expected an object", false},
        {"{\"speed\":1}", "speed: unknown field", false},
        {"{\"tests\":3}", "tests: expected a list", false},
        {"{\"tests\":[\"pair\"]}", "tests: no such test", false},
        {"{\"seconds\":0}", "1:12: seconds: expected a number from 1", false},
        {"{\"golden\":{\"cpu\":1}}", "cpu: no test gives this figure", false},
        {"{\"golden\":{\"cpu/gflops\":\"1\"}}", "cpu/gflops: expected a number", false},
        {"{\"epoch\":1}", "one of listen and connect", true},
        {"{\"listen\":\"a:1\",\"connect\":\"b:1\"}", "one of listen and connect", true},
        {"{\"listen\":\"10.0.0.1\"}", "listen: expected ADDRESS:PORT", true},
        {"{\"listen\":\"10.0.0.1:70000\"}", "listen: expected ADDRESS:PORT", true},
        {"{\"connect\":\"10.0.0.1:1\",\"epoch\":-1}", "epoch: expected a number from 0", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct qualify_options options = small();
        struct error error;
        assert_true(qualify_order_read(str_from(cases[i].body), cases[i].pair, &arena, &options, &error) < 0);
        if (!strstr(error.text, cases[i].why))
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].body, error.text, cases[i].why);
    }
}

/* The learnt limit lies between the median and the outliers, and is read back. */
static void test_thresholds_are_learnt(void **state)
{
    struct qualify_report reports[5] = {0};
    static const double gflops[5] = {100, 102, 98, 101, 60}, latency[5] = {20, 20, 20, 20, 20};
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    struct doc_list docs;
    struct qualify_golden golden;
    struct error error;
    for (int i = 0; i < 5; i++) {
        reports[i].measured[figure("cpu/gflops")] = reports[i].measured[figure("loopback/latency-us")] = true;
        reports[i].figures[figure("cpu/gflops")] = gflops[i];
        reports[i].figures[figure("loopback/latency-us")] = latency[i];
    }
    qualify_learn(reports, 5, &text);
    assert_int_equal(yaml_parse_all(&arena, buf_str(&text), &docs, &error), 0);
    assert_int_equal(qualify_golden_read(doc_get(docs.items[0], "golden"), &golden, &error), 0);
    /* median 100, deviations 0 1 2 2 40: MAD 2, 3 sigma 8.9; the outlier counts for nothing */
    assert_true(golden.given[figure("cpu/gflops")] && !golden.given[figure("gpu/gflops")]);
    assert_true(golden.limit[figure("cpu/gflops")] > 91 && golden.limit[figure("cpu/gflops")] < 91.2);
    assert_true(golden.limit[figure("loopback/latency-us")] == 21); /* no spread: a twentieth */
}

static void test_reports_are_json(void **state)
{
    struct qualify_report report = {.ok = false};
    struct qualify_golden golden = {0};
    struct arena arena ARENA_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    struct doc *doc;
    struct error error;
    report.tests[QUALIFY_CPU] = (struct qualify_result){.ran = true, .why = "a \"quoted\" reason"};
    report.measured[figure("cpu/gflops")] = golden.given[figure("cpu/gflops")] = true;
    report.figures[figure("cpu/gflops")] = 3.25;
    golden.limit[figure("cpu/gflops")] = 12;
    qualify_report_json(&report, &golden, &text);
    assert_int_equal(json_parse(&arena, buf_str(&text), &doc, &error), 0);
    const struct doc *test = doc_at(doc_get(doc, "tests"), 0);
    assert_false(doc_bool(doc_get(doc, "ok"), true));
    assert_true(str_is(doc_str(doc_get(test, "result"), STR("")), "failed"));
    assert_true(str_is(doc_str(doc_get(test, "why"), STR("")), "a \"quoted\" reason"));
    assert_true(doc_get(doc_at(doc_get(test, "figures"), 0), "value")->number == 3.25);
    assert_int_equal(doc_int(doc_get(doc_at(doc_get(test, "figures"), 0), "atLeast"), 0), 12);
}

int main(void)
{
    const char *build = getenv("PHX_BUILD");
    snprintf(stub, sizeof stub, "%s/stub_cuda.so", build ? build : "build");
    if (access(stub, R_OK) < 0)
        stub[0] = 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_machine_passes),
        cmocka_unit_test(test_thresholds_have_a_direction),
        cmocka_unit_test(test_what_is_wrong_hangs_or_dies_is_said),
        cmocka_unit_test(test_no_driver_is_no_failure_unless_devices_are_wanted),
        cmocka_unit_test(test_a_directory_that_cannot_be_written),
        cmocka_unit_test(test_a_pair_of_one_epoch_meets),
        cmocka_unit_test(test_orders_are_read),
        cmocka_unit_test(test_wrong_orders_say_where),
        cmocka_unit_test(test_thresholds_are_learnt),
        cmocka_unit_test(test_reports_are_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
