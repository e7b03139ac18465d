/* The end of a log as clues: each known form, alone, behind prefixes, within other text; never anything
 * else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/health/clue.h"

#define TRACE(prefix, last)                                                                                  \
    prefix "Traceback (most recent call last):\n" prefix "  File \"train.py\", line 3, in <module>\n" prefix \
           "    step()\n" prefix "    ~~~~^^\n" prefix last "\n"

static struct arena arena;
static struct clue clues[CLUES_MAX];

static size_t read_clues(const char *text)
{
    arena_done(&arena);
    size_t count = clues_read(&arena, str_from(text), clues);
    for (size_t i = 0; i < count; i++) {
        assert_true(clue_is_valid(&clues[i]));
        assert_true(i == 0 || clue_weight(clues[i].kind) <= clue_weight(clues[i - 1].kind));
        for (size_t j = 0; j < i; j++)
            assert_true(clues[j].kind != clues[i].kind);
    }
    return count;
}

static void says(const char *text, enum clue_kind kind)
{
    size_t count = read_clues(text);
    if (count == 0 || clues[0].kind != kind)
        fail_msg("\"%s\" is %s, not %s", text, count ? clue_name(clues[0].kind) : "nothing", clue_name(kind));
}

/* As PyTorch, NCCL, gloo, CPython, glibc and shells print them. */
static void test_forms(void **state)
{
    (void)state;
    says(TRACE("", "ValueError: x"), CLUE_TRACEBACK);
    says(TRACE("[rank3]: ", "KeyError: 'a'"), CLUE_TRACEBACK);
    says(TRACE("", "my.package.Error"), CLUE_TRACEBACK);
    says(TRACE("", "RuntimeError: CUDA error: an illegal memory access was encountered"), CLUE_CHIP);
    says(TRACE("", "RuntimeError: CUDA error: uncorrectable ECC error encountered"), CLUE_CHIP_BROKEN);
    says(TRACE("", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."),
         CLUE_CHIP_MEMORY);
    says(TRACE("", "MemoryError"), CLUE_MEMORY);
    says(TRACE("", "OSError: [Errno 28] No space left on device: '/data'"), CLUE_DISK_FULL);
    says(TRACE("", "OSError: [Errno 116] Stale file handle"), CLUE_STORAGE);
    says(TRACE("", "OSError: [Errno 24] Too many open files"), CLUE_DESCRIPTORS);
    says(TRACE("", "KeyboardInterrupt"), CLUE_TEARDOWN);
    says(TRACE("", "ConnectionResetError: [Errno 104] Connection reset by peer"), CLUE_PEER);
    says(TRACE("[rank0]: ",
               "torch.distributed.DistBackendError: NCCL error, remote process exited or there was a "
               "network error"),
         CLUE_PEER);
    says("[rank5]:[E101] [PG ID 2 PG GUID 3(TP) Rank 1] Watchdog caught collective operation timeout: "
         "WorkNCCL(SeqNum=10, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran for 1800001 "
         "ms",
         CLUE_WATCHDOG);
    says("PG status: last enqueued work: 12, last completed work: 9", CLUE_WATCHDOG);
    says("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
         "[10.0.0.2]",
         CLUE_PEER);
    says("[../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation",
         CLUE_WATCHDOG);
    says("node3:1:7 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2 with "
         "status=12 "
         "opcode=0 len=0 vendor err 129 (Send) error 12",
         CLUE_NETWORK);
    says("terminate called after throwing an instance of 'std::bad_alloc'", CLUE_MEMORY);
    says("a.out: a.c:7: main: Assertion `x == 1' failed.", CLUE_ABORT);
    says("run.sh: line 3: 4711 Segmentation fault      (core dumped) ./train", CLUE_ABORT);
    says("run.sh: line 3: 4711 Killed                  python train.py", CLUE_KILLED);
    says("Killed", CLUE_KILLED);
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
         CLUE_PEER);
    says(TRACE("", "KeyError: 1") "\nThe above exception was the direct cause of the following "
                                  "exception:\n\n" TRACE("", "RuntimeError: bad batch"),
         CLUE_TRACEBACK);
    says(TRACE("", "ValueError: the worker's") TRACE("", "torch.distributed.elastic.multiprocessing.errors."
                                                         "ChildFailedError: "),
         CLUE_TRACEBACK);
    assert_string_equal(clues[0].line.data, "ValueError: the worker's");
    says(TRACE("", "KeyError: handled") "step 1\n" TRACE("", "ValueError: last"), CLUE_TRACEBACK);
    assert_string_equal(clues[0].line.data, "ValueError: last");
    /* Lines of others in between, and a root beside a symptom. */
    says("Traceback (most recent call last):\n  File \"a\"\n[rank1]: step 7, loss 1\n    x()\nIndexError: y\n"
         "Connection reset by peer\n",
         CLUE_TRACEBACK);
    assert_string_equal(clues[0].line.data, "IndexError: y");
    assert_int_equal(clues[1].kind, CLUE_PEER);
}

static void test_nothing(void **state)
{
    (void)state;
    assert_int_equal(read_clues(""), 0);
    assert_int_equal(read_clues("step 1, loss 2.5\nsaved\n\n\nKilled time: 3 s\n"), 0);
    assert_int_equal(read_clues("Traceback (most recent call last):\n  File \"x\"\n"), 0);
    assert_int_equal(clues_read(&arena, (struct str){0}, clues), 0);
}

static void test_lines_are_clean(void **state)
{
    (void)state;
    char text[4096];
    memset(text, 'x', sizeof text);
    memcpy(text, "\x1b[31mCUDA error: \xff\xc3\xa4 ", 20);
    text[4095] = 0;
    assert_int_equal(read_clues(text), 1);
    assert_int_equal(clues[0].line.len, CLUE_LINE_MAX);
    assert_memory_equal(clues[0].line.data, "?[31mCUDA error: ?\xc3\xa4", 19);
    for (size_t i = 0; i < CLUE_KINDS; i++)
        assert_true(i == 0 ? !clue_name(0) : clue_name((uint32_t)i) != NULL);
    assert_null(clue_name(CLUE_KINDS));
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
        read_clues(text.data ? text.data : "");
    }
}

static enum clue_kind exits(int32_t exit_code, int32_t signal, bool oom, bool stopped)
{
    struct clue_exit how = {.exit_code = exit_code, .signal = signal, .oom = oom, .stopped = stopped};
    return clue_of_exit(&how);
}

/* A signal or status repeats what the log said; a kill from elsewhere does not. */
static void test_exits_of_explained_ends(void **state)
{
    (void)state;
    static const struct {
        int32_t exit_code, signal;
        enum clue_kind kind;
    } cases[] = {{-1, 6, CLUE_NONE}, {-1, 11, CLUE_NONE}, {134, 0, CLUE_NONE},  {139, 0, CLUE_NONE},
                 {1, 0, CLUE_NONE},  {75, 0, CLUE_NONE},  {-1, 9, CLUE_SIGNAL}, {137, 0, CLUE_SIGNAL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct clue_exit how = {
            .exit_code = cases[i].exit_code, .signal = cases[i].signal, .explained = true};
        assert_int_equal(clue_of_exit(&how), cases[i].kind);
    }
}

static void test_exits(void **state)
{
    (void)state;
    assert_int_equal(exits(0, 0, false, false), CLUE_NONE);
    assert_int_equal(exits(0, 0, false, true), CLUE_NONE);
    assert_int_equal(exits(1, 0, false, false), CLUE_EXIT);
    assert_int_equal(exits(75, 0, false, false), CLUE_PEER);
    assert_int_equal(exits(-1, 11, false, false), CLUE_SIGNAL);
    assert_int_equal(exits(137, 0, false, false), CLUE_SIGNAL);
    assert_int_equal(exits(-1, 9, true, false), CLUE_OOM);
    assert_int_equal(exits(-1, 15, false, true), CLUE_TEARDOWN);
    assert_int_equal(exits(143, 0, false, true), CLUE_TEARDOWN);
    assert_int_equal(exits(1, 0, false, true), CLUE_TEARDOWN);
    assert_int_equal(exits(-1, 11, false, true), CLUE_SIGNAL); /* that was not our doing */
    assert_int_equal(exits(255, 0, false, false), CLUE_EXIT);
    assert_int_equal(exits(-1, 13, false, false), CLUE_PEER);
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
