/* Real processes with records of their own, as tasks have them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "core/diagnose/diagnose.h"
#include "host/collect/collect.h"
#include "job/link/wire.h"

enum { WORLD = 3 };

struct bed {
    char folder[64];
    uint64_t task; /* of rank 0; the others follow it */
    pid_t pids[WORLD];
    int ready[2];
};

/* The work of a rank once its environment is its own. */
static int be_rank(int argc, char **argv)
{
    int64_t number = -1;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind who holds its output */
    str_to_i64(str_from(getenv("RANK")), 0, WORLD - 1, &number);
    uint32_t rank = (uint32_t)number;
    struct jobwire_flight record = {.rank = rank,
                                    .world = WORLD,
                                    .pid = (uint32_t)getpid(),
                                    .begun = rank == 1 ? 7 : 8,
                                    .ended = 7,
                                    .step = 41,
                                    .step_ns = 1,
                                    .magic = JOBWIRE_FLIGHT_MAGIC};
    const char *pipe_prefix = getenv("TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
    if (!getenv("WITHOUT_RECORD")) {
        int fd = memfd_create(JOBWIRE_FLIGHT_NAME, MFD_CLOEXEC);
        if (fd < 0 || write(fd, &record, sizeof record) != sizeof record)
            return 1;
    }
    char path[256];
    int asked = -1;
    if (pipe_prefix) {
        snprintf(path, sizeof path, "%s%u.pipe", pipe_prefix, rank);
        if (mkfifo(path, 0600) < 0 || (asked = open(path, O_RDWR | O_CLOEXEC)) < 0)
            return 2;
    }
    if (write(STDOUT_FILENO, "r", 1) != 1) /* here it is */
        return 3;
    struct pollfd wait = {asked, POLLIN, 0};
    poll(&wait, 1, -1);
    snprintf(path, sizeof path, "%s%u", getenv("TORCH_FR_DUMP_TEMP_FILE"), rank);
    FILE *file = fopen(path, "we");
    fprintf(file,
            "{\"pg_config\":{\"0\":{\"name\":\"0\",\"desc\":\"pg\",\"ranks\":\"[0, 1, "
            "2]\"}},\"entries\":[{\"record_id\":1,"
            "\"process_group\":[\"0\",\"pg\"],\"collective_seq_id\":1,\"profiling_name\":\"nccl:all_reduce\","
            "\"input_sizes\":[[%u]],\"state\":\"scheduled\"}]}",
            rank == 2 ? 9 : 4);
    fclose(file);
    pause();
    return 0;
}

static void start(struct bed *bed, const char *more)
{
    static uint64_t next;
    char self[256];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = 0;
    snprintf(bed->folder, sizeof bed->folder, "/tmp/phalanx-collect-XXXXXX");
    assert_non_null(mkdtemp(bed->folder));
    bed->task = (uint64_t)getpid() << 20 | (next += WORLD);
    assert_int_equal(pipe(bed->ready), 0);
    for (int i = 0; i < WORLD; i++) {
        bed->pids[i] = fork();
        if (bed->pids[i] != 0)
            continue;
        char task[64], rank[16], dump[128], pipe_prefix[128];
        snprintf(task, sizeof task, "PHX_TASK_UID=%llu", (unsigned long long)bed->task + (unsigned)i);
        snprintf(rank, sizeof rank, "RANK=%d", i);
        snprintf(dump, sizeof dump, "TORCH_FR_DUMP_TEMP_FILE=%s/dump-", bed->folder);
        snprintf(pipe_prefix, sizeof pipe_prefix, "%s=%s/pipe-", more, bed->folder);
        dup2(bed->ready[1], STDOUT_FILENO);
        char *const argv[] = {self, "rank", NULL}, *const env[] = {task, rank, dump, pipe_prefix, NULL};
        execve(self, argv, env);
        _exit(126);
    }
    char byte;
    for (int i = 0; i < WORLD; i++)
        assert_int_equal(read(bed->ready[0], &byte, 1), 1);
}

static void stop(struct bed *bed)
{
    char command[128];
    for (int i = 0; i < WORLD; i++) {
        kill(bed->pids[i], SIGKILL);
        waitpid(bed->pids[i], NULL, 0);
    }
    close(bed->ready[0]);
    close(bed->ready[1]);
    snprintf(command, sizeof command, "rm -r %s", bed->folder);
    assert_int_equal(system(command), 0);
}

static void collect(struct bed *bed, struct diagnosis *ret_diagnosis)
{
    struct flight *flight = flight_new();
    for (unsigned i = 0; i < WORLD; i++) {
        struct buf out BUF_CLEANUP = {0};
        struct error error;
        struct collect_order order = {.task = bed->task + i, .bytes = 4096, .within_ns = 60 * NS_PER_SECOND};
        assert_int_equal(collect_task(&order, &out, &error), 0);
        assert_true(out.len <= order.bytes);
        if (flight_add_answer(flight, buf_str(&out), &error) != 1)
            fail_msg("%s in %s", error.text, out.data);
    }
    flight_judge(flight, ret_diagnosis);
    flight_free(flight);
}

static void assert_found(struct diagnosis *diagnosis, enum finding_kind kind, uint32_t rank)
{
    assert_int_equal(diagnosis->findings.len, 1);
    assert_int_equal(diagnosis->findings.items[0].kind, kind);
    assert_int_equal(diagnosis->findings.items[0].rank_count, 1);
    assert_int_equal(diagnosis->findings.items[0].ranks[0], rank);
    diagnosis_done(diagnosis);
}

/* Rank 1 does not come to barrier 8; it cannot answer either, and need not. */
static void memory_of_a_stopped_process(void **state)
{
    struct bed bed;
    struct diagnosis diagnosis;
    start(&bed, "NOTHING");
    int how;
    kill(bed.pids[1], SIGSTOP);
    assert_int_equal(waitpid(bed.pids[1], &how, WUNTRACED), bed.pids[1]);
    collect(&bed, &diagnosis);
    assert_found(&diagnosis, FINDING_ABSENT, 1);
    stop(&bed);
}

static void processes_without_a_record(void **state)
{
    struct bed bed;
    struct diagnosis diagnosis;
    start(&bed, "WITHOUT_RECORD");
    int how;
    kill(bed.pids[2], SIGSTOP);
    assert_int_equal(waitpid(bed.pids[2], &how, WUNTRACED), bed.pids[2]);
    collect(&bed, &diagnosis);
    assert_found(&diagnosis, FINDING_STOPPED, 2);
    stop(&bed);
}

/* PyTorch is asked, and what it says goes before libphalanx's barriers. */
static void dumps_on_demand(void **state)
{
    struct bed bed;
    struct diagnosis diagnosis;
    start(&bed, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
    collect(&bed, &diagnosis);
    assert_found(&diagnosis, FINDING_SIZE, 2);
    stop(&bed);
}

static void collect_one(uint64_t task)
{
    struct buf out BUF_CLEANUP = {0};
    struct error error;
    struct collect_order order = {.task = task, .bytes = 4096, .within_ns = 100 * NS_PER_MS};
    assert_int_equal(collect_task(&order, &out, &error), 0);
}

/* A process names the pipe by which it is asked. What is no pipe is not written to, whatever a link leads
 * to. */
static void what_is_no_pipe_is_not_written_to(void **state)
{
    struct bed bed;
    char target[128], pipes[2][128];
    start(&bed, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE");
    snprintf(target, sizeof target, "%s/target", bed.folder);
    FILE *file = fopen(target, "we");
    fputs("kept", file);
    fclose(file);
    for (int i = 0; i < 2; i++) {
        snprintf(pipes[i], sizeof pipes[i], "%s/pipe-%d.pipe", bed.folder, i);
        assert_int_equal(unlink(pipes[i]), 0);
        assert_int_equal(i ? symlink(target, pipes[i]) : link(target, pipes[i]), 0);
        collect_one(bed.task + (unsigned)i);
    }
    char text[8] = "";
    file = fopen(target, "re");
    assert_int_equal(fread(text, 1, sizeof text - 1, file), 4);
    fclose(file);
    assert_string_equal(text, "kept");
    stop(&bed);
}

/* The agent is root, and opens nothing that the process's own user may not open. */
static void it_asks_with_the_rights_of_the_process(void **state)
{
    char folder[] = "/tmp/phalanx-collect-XXXXXX", task[64], dump[128], prefix[128], path[160], byte;
    int ready[2];
    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(path, sizeof path, "%s/pipe-0.pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    int asked = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(asked >= 0 && pipe2(ready, O_CLOEXEC) == 0);
    uint64_t uid = (uint64_t)getpid() << 20 | 1;
    snprintf(task, sizeof task, "PHX_TASK_UID=%llu", (unsigned long long)uid);
    snprintf(dump, sizeof dump, "TORCH_FR_DUMP_TEMP_FILE=%s/dump-", folder);
    snprintf(prefix, sizeof prefix, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=%s/pipe-", folder);
    pid_t pid = fork();
    if (pid == 0) {
        char *const argv[] = {"sleep", "1000", NULL}, *const env[] = {task, "RANK=0", dump, prefix, NULL};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (setgid(65534) == 0 && setuid(65534) == 0)
            execve("/bin/sleep", argv, env);
        _exit(126);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0); /* the command runs */
    collect_one(uid);
    assert_true(read(asked, &byte, 1) < 0 && errno == EAGAIN);
    assert_int_equal(chmod(path, 0622), 0);
    collect_one(uid);
    assert_int_equal(read(asked, &byte, 1), 1); /* what it may write to is written to */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(asked);
    close(ready[0]);
    unlink(path);
    rmdir(folder);
}

static void nobody_is_there(void **state)
{
    struct buf out BUF_CLEANUP = {0};
    struct error error;
    struct collect_order order = {.task = (uint64_t)getpid() << 21, .bytes = 4096};
    assert_int_equal(collect_task(&order, &out, &error), 0);
    assert_string_equal(buf_str(&out).data, "{\"ranks\":[]}\n");
}

static void orders(void **state)
{
    struct collect_order order;
    struct error error;
    assert_int_equal(collect_order_read(STR("{\"task\":\"77\",\"rank\":3,\"bytes\":1024,\"withinMs\":500}"),
                                        &order, &error),
                     0);
    assert_true(order.task == 77 && order.bytes == 1024 && order.within_ns == 500 * NS_PER_MS);
    static const char *const bad[] = {"",
                                      "[]",
                                      "{\"task\":77}",
                                      "{\"task\":\"-1\"}",
                                      "{\"task\":\"7\",\"bytes\":0}",
                                      "{\"task\":\"7\",\"bytes\":99999999}",
                                      "{\"task\":\"7\",\"withinMs\":-1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(collect_order_read(str_from(bad[i]), &order, &error), ERROR_INVALID);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_a_stopped_process),
        cmocka_unit_test(processes_without_a_record),
        cmocka_unit_test(dumps_on_demand),
        cmocka_unit_test(what_is_no_pipe_is_not_written_to),
        cmocka_unit_test(it_asks_with_the_rights_of_the_process),
        cmocka_unit_test(nobody_is_there),
        cmocka_unit_test(orders),
    };
    if (argc == 2 && strcmp(argv[1], "rank") == 0)
        return be_rank(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
