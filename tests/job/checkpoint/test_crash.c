/* A save that is killed at any of its system calls leaves the last good checkpoint as it was, and the new one
 * whole or not there at all; so does one that the disk has no room for. The saver is traced (ptrace): it is
 * killed at its first system call, then at its second, and so on until it lives to the end. */
#include "job/gang.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include "job/checkpoint/shard.h"

enum { SMALL = 5000, LARGE = 5 << 20 };

static uint8_t *data, *back;

static void fill(uint64_t step, size_t len)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i * 31 + step * 77 + (i >> 9));
}

static int save(const struct gang *gang, uint64_t step, size_t len, struct phx_error *error)
{
    struct shard_id id = {.dir = gang->dir, .step = step, .world = 1};
    struct iovec part = {data, len};
    uint64_t size;
    fill(step, len);
    return shard_write(&id, &part, 1, &size, error);
}

/* Is it whole? If it is anything else than missing, it must be. */
static bool is_whole(const struct gang *gang, uint64_t step, size_t len)
{
    struct shard_id id = {.dir = gang->dir, .step = step, .world = 1};
    struct phx_error error;
    char path[128];
    size_t got;
    snprintf(path, sizeof path, "%s/step-%llu/attempt-0-rank-0.shard", gang->dir, (unsigned long long)step);
    if (access(path, F_OK) != 0)
        return false;
    assert_int_equal(shard_read(&id, back, LARGE, &got, &error), 0);
    assert_int_equal(got, len);
    fill(step, len);
    assert_memory_equal(data, back, len);
    return true;
}

/* The next event of the saver or one of its threads: false when the saver has ended. */
static bool next_call(pid_t saver, pid_t *ret_thread)
{
    for (;;) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        assert_true(thread > 0);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (thread != saver)
                continue;
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            return false;
        }
        assert_true(WIFSTOPPED(status));
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            *ret_thread = thread;
            return true;
        }
        ptrace(PTRACE_SYSCALL, thread, NULL, NULL); /* it was cloned, or begins */
    }
}

static void reap(pid_t saver)
{
    int status;
    kill(saver, SIGKILL);
    for (pid_t thread; (thread = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;)
        if (thread == saver && (WIFEXITED(status) || WIFSIGNALED(status)))
            return;
}

/* Kills it at its n-th stop; false: it had fewer. */
static bool killed_at(const struct gang *gang, size_t n, uint64_t step, size_t len)
{
    struct phx_error error;
    int status;
    pid_t saver = fork();
    assert_true(saver >= 0);
    if (saver == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(77);
        raise(SIGSTOP);
        _exit(save(gang, step, len, &error) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(saver, &status, 0), saver);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* this place lets nobody be traced */
    ptrace(PTRACE_SETOPTIONS, saver, NULL,
           (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL));
    ptrace(PTRACE_SYSCALL, saver, NULL, NULL);
    pid_t thread;
    for (size_t stop = 0; next_call(saver, &thread); stop++) {
        if (stop == n) {
            reap(saver);
            return true;
        }
        ptrace(PTRACE_SYSCALL, thread, NULL, NULL);
    }
    return false;
}

/* At every `stride`-th call. */
static void kill_everywhere(size_t len, size_t stride)
{
    struct gang gang;
    struct phx_error error;
    size_t whole = 0, n = 0;
    gang_init(&gang, 1);
    assert_int_equal(save(&gang, 1, len, &error), 0);
    for (bool killed = true; killed; n += stride) {
        char path[128];
        killed = killed_at(&gang, n, 2, len);
        assert_true(is_whole(&gang, 1, len));
        bool there = is_whole(&gang, 2, len);
        assert_true(killed || there);
        whole += there;
        assert_int_equal(save(&gang, 3, len, &error), 0); /* what was left behind is in nobody's way */
        for (uint64_t step = 2; step <= 3; step++) {
            snprintf(path, sizeof path, "%s/step-%llu", gang.dir, (unsigned long long)step);
            gang_remove_tree(path);
        }
    }
    assert_true(n > 10 && whole >= 1); /* between its name and its end it is whole already */
    gang_done(&gang);
}

static void test_small(void **unused)
{
    kill_everywhere(SMALL, 1);
}

static void test_large(void **unused)
{
    kill_everywhere(LARGE, 3);
}

/* A limit of the size of files, at any place of it, stands for a disk that is full. */
static void test_no_room(void **unused)
{
    static const size_t lengths[] = {SMALL, LARGE};
    struct gang gang;
    struct phx_error error;
    struct rlimit none, limit;
    gang_init(&gang, 1);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &none), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(save(&gang, 1, lengths[i], &error), 0);
        for (size_t part = 0; part < 8; part++) {
            limit = none;
            limit.rlim_cur = lengths[i] / 8 * part;
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
            int status = save(&gang, 2, lengths[i], &error);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
            assert_int_equal(status, PHX_ERROR_IO);
            assert_false(is_whole(&gang, 2, lengths[i]));
            assert_true(is_whole(&gang, 1, lengths[i]));
        }
    }
    gang_done(&gang);
}

int main(void)
{
    data = malloc(LARGE);
    back = malloc(LARGE);
    if (data == NULL || back == NULL)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
