/* GPUs by NVML, with a stub in the place of its library. */
#include "fixture.h"

#define STUB "/nvml"
#define GPU0 "gpu/0000:1a:00.0"
#define GPU1 "gpu/0000:1b:00.0"

static void begin_nvml(struct fixture *f, const char *more)
{
    char path[512], settings[1024], library[256];
    const char *build = getenv("PHX_BUILD");
    snprintf(path, sizeof path, "%s" STUB, f->root);
    setenv("NVML_STUB", path, 1);
    snprintf(library, sizeof library, "%s/stub_nvml.so", build ? build : ".");
    if (access(library, R_OK) < 0) {
        print_message("skip: no %s\n", library);
        skip();
    }
    snprintf(settings, sizeof settings, "probes: {nvml: {library: '%s', period: 250ms, timeout: 60s}}\n%s",
             library, more);
    begin(f, "nvml", settings);
}

static bool has(struct fixture *f, enum signal_assertion assertion, const char *code, const char *place)
{
    for (size_t i = 0; i < f->kept.len; i++)
        if (strcmp(f->kept.items[i].code, code) == 0 && strcmp(f->kept.items[i].place, place) == 0 &&
            f->kept.items[i].assertion == assertion)
            return true;
    return false;
}

/* The child looks by its own clock: rounds until it has told. */
static void await(struct fixture *f, enum signal_assertion assertion, const char *code, const char *place)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        f->now_ns += 20 * NS_PER_MS;
        probes_round(f->probes, f->now_ns, keep, f);
        if (has(f, assertion, code, place))
            return;
        struct pollfd ready = {probes_fd(f->probes), POLLIN, 0};
        poll(&ready, 1, 20);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < 60);
    fail_msg("%s %s was not told", code, place);
}

static void gpus(void **state)
{
    struct fixture *f = *state;
    put(f, STUB, "0 ecc 5\n0 replay 1000\n");
    begin_nvml(f, "");
    settle(f); /* until it has first spoken */
    expect_none(f);
    put(f, STUB, "0 ecc 7\n0 replay 1000\n");
    await(f, SIGNAL_ONCE, "gpu/ecc-uncorrected", GPU0);
    assert_int_equal(f->kept.items[0].count, 2);
    put(f, STUB, "0 ecc 7\n0 replay 1000\n1 failed 1\n");
    await(f, SIGNAL_OCCUR, "gpu/row-remap-failed", GPU1);
    put(f, STUB, "0 ecc 7\n0 replay 1000\n1 pending 1\n1 temperature 88\n");
    await(f, SIGNAL_RECOVER, "gpu/row-remap-failed", GPU1);
    await(f, SIGNAL_OCCUR, "gpu/row-remap-pending", GPU1);
    await(f, SIGNAL_OCCUR, "gpu/temperature", GPU1);
    put(f, STUB, "0 ecc 7\n0 replay 1200\n0 clocks 72\n");
    await(f, SIGNAL_RECOVER, "gpu/temperature", GPU1);
    await(f, SIGNAL_ONCE, "gpu/nvlink-errors", GPU0);
    await(f, SIGNAL_OCCUR, "gpu/clocks", GPU0);
    put(f, STUB, "0 ecc 7\n0 replay 1200\n1 link 0\n1 xid 63\n");
    await(f, SIGNAL_RECOVER, "gpu/clocks", GPU0);
    await(f, SIGNAL_OCCUR, "gpu/nvlink", GPU1 "/0");
    await(f, SIGNAL_ONCE, "xid/63", GPU1);
    put(f, STUB, "0 ecc 7\n0 replay 1200\n1 lost 1\n1 xid 63\n");
    await(f, SIGNAL_OCCUR, "gpu/missing", GPU1);
}

static void fewer_than_expected(void **state)
{
    struct fixture *f = *state;
    put(f, STUB, "0 count 2\n");
    begin_nvml(f, "manifest: {gpus: ['0000:1a:00.0', '0000:1b:00.0', '0000:1c:00.0']}\n");
    settle(f);
    expect_one(f, SIGNAL_OCCUR, "gpu/missing", "");
}

static void no_driver(void **state)
{
    struct fixture *f = *state;
    struct probes_standing standing;
    put(f, STUB, "0 init 9\n");
    begin_nvml(f, "");
    settle(f);
    expect_none(f); /* a machine without GPUs has no fault */
    for (size_t i = 0; i < probes_count(); i++) {
        probes_standing(f->probes, i, &standing);
        if (strcmp(standing.name, "nvml") == 0)
            assert_string_equal(standing.note, "Driver Not Loaded");
    }
    probes_free(f->probes);
    begin_nvml(f, "manifest: {gpus: ['0000:1a:00.0']}\n");
    settle(f);
    expect_one(f, SIGNAL_OCCUR, "gpu/driver", "");
}

static void library_that_hangs(void **state)
{
    struct fixture *f = *state;
    put(f, STUB, "0 hang 1\n");
    begin_nvml(f, "");
    probes_round(f->probes, f->now_ns, keep, f);
    assert_true(probes_busy(f->probes));
    advance(f, 70);
    expect_one(f, SIGNAL_OCCUR, "gpu/driver", "");
    put(f, STUB, "0 hang 0\n");
    vec_clear(&f->kept);
    f->now_ns += NS_PER_SECOND;
    await(f, SIGNAL_RECOVER, "gpu/driver", "");
}

static void library_that_crashes(void **state)
{
    struct fixture *f = *state;
    put(f, STUB, "0 crash 1\n");
    begin_nvml(f, "");
    await(f, SIGNAL_OCCUR, "gpu/driver", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(gpus), CASE(fewer_than_expected), CASE(no_driver),
                                       CASE(library_that_hangs), CASE(library_that_crashes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
