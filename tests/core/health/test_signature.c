/* The end of a log as signatures: each known form, alone, behind prefixes, within other text; never anything
 * else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/health/signature.h"

#define TRACE(prefix, last)                                                                                  \
    prefix "Traceback (most recent call last):\n" prefix "  File \"train.py\", line 3, in <module>\n" prefix \
           "    step()\n" prefix "    ~~~~^^\n" prefix last "\n"

static struct arena arena;
static struct signature signatures[SIGNATURES_MAX];

static size_t read_signatures(const char *text)
{
    arena_done(&arena);
    size_t count = signatures_read(&arena, str_from(text), signatures);
    for (size_t i = 0; i < count; i++) {
        assert_true(signature_is_valid(&signatures[i]));
        assert_true(i == 0 ||
                    signature_weight(signatures[i].kind) <= signature_weight(signatures[i - 1].kind));
        for (size_t j = 0; j < i; j++)
            assert_true(signatures[j].kind != signatures[i].kind);
    }
    return count;
}

static void says(const char *text, enum signature_kind kind)
{
    size_t count = read_signatures(text);
    if (count == 0 || signatures[0].kind != kind)
        fail_msg("\"%s\" is %s, not %s", text, count ? signature_name(signatures[0].kind) : "nothing",
                 signature_name(kind));
}

/* As PyTorch, NCCL, gloo, CPython, glibc and shells print them. */
static void test_forms(void **state)
{
    (void)state;
    says(TRACE("", "ValueError: x"), SIGNATURE_TRACEBACK);
    says(TRACE("[rank3]: ", "KeyError: 'a'"), SIGNATURE_TRACEBACK);
    says(TRACE("", "my.package.Error"), SIGNATURE_TRACEBACK);
    says(TRACE("", "RuntimeError: CUDA error: an illegal memory access was encountered"), SIGNATURE_CHIP);
    says(TRACE("", "RuntimeError: CUDA error: uncorrectable ECC error encountered"), SIGNATURE_CHIP_BROKEN);
    says(TRACE("", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
         SIGNATURE_CHIP_MEMORY);
    says(TRACE("", "MemoryError"), SIGNATURE_MEMORY);
    says(TRACE("", "OSError: [Errno 28] No space left on device: '/data'"), SIGNATURE_DISK_FULL);
    says(TRACE("", "OSError: [Errno 116] Stale file handle"), SIGNATURE_STORAGE);
    says(TRACE("", "OSError: [Errno 24] Too many open files"), SIGNATURE_DESCRIPTORS);
    says(TRACE("", "KeyboardInterrupt"), SIGNATURE_TEARDOWN);
    says(TRACE("", "ConnectionResetError: [Errno 104] Connection reset by peer"), SIGNATURE_PEER);
    says(TRACE("[rank0]: ",
               "torch.distributed.DistBackendError: NCCL error, remote process exited or there was a "
               "network error"),
         SIGNATURE_PEER);
    says("[rank5]:[E101] [PG ID 2 PG GUID 3(TP) Rank 1] Watchdog caught collective operation timeout: "
         "WorkNCCL(SeqNum=10, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800001 "
         "ms",
         SIGNATURE_WATCHDOG);
    says("PG status: last enqueued work: 12, last completed work: 9", SIGNATURE_WATCHDOG);
    says("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
         "[10.0.0.2]",
         SIGNATURE_PEER);
    says("[../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation",
         SIGNATURE_WATCHDOG);
    says("node3:1:7 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2 with "
         "status=12 "
         "opcode=0 len=0 vendor err 129 (Send) error 12",
         SIGNATURE_NETWORK);
    says("terminate called after throwing an instance of 'std::bad_alloc'", SIGNATURE_MEMORY);
    says("a.out: a.c:7: main: Assertion `x == 1' failed.", SIGNATURE_ABORT);
    says("run.sh: line 3: 4711 Segmentation fault      (core dumped) ./train", SIGNATURE_ABORT);
    says("run.sh: line 3: 4711 Killed                  python train.py", SIGNATURE_KILLED);
    says("Killed", SIGNATURE_KILLED);
}

/* A victim says so wherever in its chain; a launcher adds nothing; the last exception is the one. */
static void test_tracebacks(void **state)
{
    (void)state;
    says(TRACE("",
               "ConnectionResetError: [Errno 104] Connection reset by peer") "\nDuring handling of the above "
                                                                             "exception, another exception "
                                                                             "occurred:\n\n" TRACE(
                                                                                 "", "RuntimeError: training "
                                                                                     "failed"),
         SIGNATURE_PEER);
    says(TRACE("", "KeyError: 1") "\nThe above exception was the direct cause of the following "
                                  "exception:\n\n" TRACE("", "RuntimeError: bad batch"),
         SIGNATURE_TRACEBACK);
    says(TRACE("", "ValueError: the worker's") TRACE("", "torch.distributed.elastic.multiprocessing.errors."
                                                         "ChildFailedError: "),
         SIGNATURE_TRACEBACK);
    assert_string_equal(signatures[0].line.data, "ValueError: the worker's");
    says(TRACE("", "KeyError: handled") "step 1\n" TRACE("", "ValueError: last"), SIGNATURE_TRACEBACK);
    assert_string_equal(signatures[0].line.data, "ValueError: last");
    /* Lines of others in between, and a root beside a symptom. */
    says("Traceback (most recent call last):\n  File \"a\"\n[rank1]: step 7, loss 1\n    x()\nIndexError: y\n"
         "Connection reset by peer\n",
         SIGNATURE_TRACEBACK);
    assert_string_equal(signatures[0].line.data, "IndexError: y");
    assert_int_equal(signatures[1].kind, SIGNATURE_PEER);
}

static void test_nothing(void **state)
{
    (void)state;
    assert_int_equal(read_signatures(""), 0);
    assert_int_equal(read_signatures("step 1, loss 2.5\nsaved\n\n\nKilled time: 3 s\n"), 0);
    assert_int_equal(read_signatures("Traceback (most recent call last):\n  File \"x\"\n"), 0);
    assert_int_equal(signatures_read(&arena, (struct str){0}, signatures), 0);
}

static void test_lines_are_clean(void **state)
{
    (void)state;
    char text[4096];
    memset(text, 'x', sizeof text);
    memcpy(text, "\x1b[31mCUDA error: \x01\xff\xc3\xa4", 21);
    text[4095] = 0;
    assert_int_equal(read_signatures(text), 1);
    assert_int_equal(signatures[0].line.len, SIGNATURE_LINE_MAX);
    assert_memory_equal(signatures[0].line.data, "CUDA error: ??\xc3\xa4x", 17); /* colours are for screens */
    for (size_t i = 0; i < SIGNATURE_KINDS; i++)
        assert_true(i == 0 ? !signature_name(0) : signature_name((uint32_t)i) != NULL);
    assert_null(signature_name(SIGNATURE_KINDS));
}

/* Pieces of known forms, joined at random: always valid, at most one of a kind. */
static void test_random_texts(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "Traceback (most recent call last):",
        "  File \"x\"",
        "ValueError: y",
        "[rank1]: ",
        "\n",
        "\n",
        "\r\n",
        "CUDA error: z",
        "Connection reset by peer",
        "No space left on device",
        "Killed",
        "\xff\xfe",
        "\x01",
        "During handling of the above exception",
        "Watchdog caught collective operation timeout",
        "ab\tc",
    };
    struct rng rng;
    rng_seed(&rng, 11);
    for (int i = 0; i < 3000; i++) {
        struct buf text BUF_CLEANUP = {0};
        for (uint64_t n = rng_below(&rng, 40); n > 0; n--)
            buf_add_str(&text, str_from(pieces[rng_below(&rng, sizeof pieces / sizeof *pieces)]));
        read_signatures(text.data ? text.data : "");
    }
}

static enum signature_kind exits(int32_t exit_code, int32_t signal, bool oom, bool stopped)
{
    struct signature_exit how = {.exit_code = exit_code, .signal = signal, .oom = oom, .stopped = stopped};
    return signature_of_exit(&how);
}

/* A signal or status repeats what the log said; a kill from elsewhere does not. */
static void test_exits_of_explained_ends(void **state)
{
    (void)state;
    static const struct {
        int32_t exit_code, signal;
        enum signature_kind kind;
    } cases[] = {{-1, 6, SIGNATURE_NONE},   {-1, 11, SIGNATURE_NONE},  {134, 0, SIGNATURE_NONE},
                 {139, 0, SIGNATURE_NONE},  {1, 0, SIGNATURE_NONE},    {75, 0, SIGNATURE_NONE},
                 {-1, 9, SIGNATURE_SIGNAL}, {137, 0, SIGNATURE_SIGNAL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct signature_exit how = {
            .exit_code = cases[i].exit_code, .signal = cases[i].signal, .explained = true};
        assert_int_equal(signature_of_exit(&how), cases[i].kind);
    }
}

static void test_exits(void **state)
{
    (void)state;
    assert_int_equal(exits(0, 0, false, false), SIGNATURE_NONE);
    assert_int_equal(exits(0, 0, false, true), SIGNATURE_NONE);
    assert_int_equal(exits(1, 0, false, false), SIGNATURE_EXIT);
    assert_int_equal(exits(75, 0, false, false), SIGNATURE_PEER);
    assert_int_equal(exits(-1, 11, false, false), SIGNATURE_SIGNAL);
    assert_int_equal(exits(137, 0, false, false), SIGNATURE_SIGNAL);
    assert_int_equal(exits(-1, 9, true, false), SIGNATURE_OOM);
    assert_int_equal(exits(-1, 15, false, true), SIGNATURE_TEARDOWN);
    assert_int_equal(exits(143, 0, false, true), SIGNATURE_TEARDOWN);
    assert_int_equal(exits(1, 0, false, true), SIGNATURE_TEARDOWN);
    assert_int_equal(exits(-1, 11, false, true), SIGNATURE_SIGNAL); /* that was not our doing */
    assert_int_equal(exits(255, 0, false, false), SIGNATURE_EXIT);
    assert_int_equal(exits(-1, 13, false, false), SIGNATURE_PEER);
}

static int done(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_tracebacks),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_lines_are_clean),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_exits_of_explained_ends),
    };
    return cmocka_run_group_tests(tests, NULL, done);
}
