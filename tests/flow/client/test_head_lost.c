/* Real processes: the head is killed under a running client, alone or with all workers, and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "phalanx/flow.h"

enum { WORKERS = 2, ELEMENTS = 8 };

static const char module[] = "module {\n"
                             "  func.func @next(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                             "    %c = stablehlo.constant dense<1.0> : tensor<2xf32>\n"
                             "    %0 = stablehlo.add %x, %c : tensor<2xf32>\n"
                             "    return %0 : tensor<2xf32>\n"
                             "  }\n"
                             "}\n";

struct process {
    pid_t pid;
    FILE *out;
};
struct bed {
    char folder[64], head_at[128];
    struct process head, workers[WORKERS];
    phx_flow *flow;
    struct phx_flow_mesh mesh, half;
    uint64_t function;
    phx_flow_program *next;
    struct phx_flow_type type;
    struct phx_flow_sharding cut;
    struct phx_error error;
};

/* Starts `phalanx flow ...` and waits for its line "ready". */
static struct process start(char *const *arguments)
{
    int out[2];
    assert_int_equal(pipe(out), 0);
    struct process process = {.pid = fork()};
    if (process.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const char *build = getenv("PHX_BUILD");
        char program[512];
        snprintf(program, sizeof program, "%s/phalanx-full", build ? build : "build");
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        execv(program, arguments);
        _exit(127);
    }
    close(out[1]);
    process.out = fdopen(out[0], "r");
    char line[512] = "";
    while (strncmp(line, "ready", 5) != 0)
        assert_non_null(fgets(line, sizeof line, process.out));
    return process;
}

static void stop(struct process *process)
{
    kill(process->pid, SIGKILL);
    waitpid(process->pid, NULL, 0);
    fclose(process->out);
}

static void start_head(struct bed *bed)
{
    char *arguments[] = {"phalanx", "flow", "head", "--listen", bed->head_at, NULL};
    bed->head = start(arguments);
}

/* --head-grace of the workers that start_workers starts. */
static char *head_grace = "30";

static void start_workers(struct bed *bed)
{
    for (int w = 0; w < WORKERS; w++) {
        char listen[128];
        snprintf(listen, sizeof listen, "unix:%s/worker-%d.sock", bed->folder, w);
        char *arguments[] = {"phalanx", "flow",      "worker", "--head",       bed->head_at, "--listen",
                             listen,    "--devices", "2",      "--head-grace", head_grace,   NULL};
        bed->workers[w] = start(arguments);
    }
}

static void bed_start(struct bed *bed, uint32_t grace_ms, uint32_t rerun_launches)
{
    snprintf(bed->folder, sizeof bed->folder, "/tmp/flow-lost-XXXXXX");
    assert_non_null(mkdtemp(bed->folder));
    snprintf(bed->head_at, sizeof bed->head_at, "unix:%s/head.sock", bed->folder);
    start_head(bed);
    start_workers(bed);
    struct phx_flow_options client = {.head_grace_ms = grace_ms, .rerun_launches = rerun_launches};
    if (phx_flow_connect(bed->head_at, &client, &bed->flow, &bed->error) < 0)
        fail_msg("%s", bed->error.message);
    struct phx_flow_mesh_options options = {.rank = 1, .dims = {4}};
    assert_int_equal(phx_flow_mesh_new(bed->flow, &options, &bed->mesh, &bed->error), 0);
    uint32_t from = 2, two = 2;
    assert_int_equal(phx_flow_mesh_slice(bed->flow, bed->mesh.id, &from, &two, &bed->half, &bed->error), 0);
    if (phx_flow_function(bed->flow, module, sizeof module - 1, "next", &bed->function, &bed->error) < 0)
        fail_msg("%s", bed->error.message);
    bed->type = (struct phx_flow_type){PHX_FLOW_FLOAT32, 1, {ELEMENTS}};
    bed->cut = (struct phx_flow_sharding){bed->mesh.id, {1}};
    bed->next = phx_flow_program_new(bed->flow);
    uint32_t value = phx_flow_program_arg(bed->next, &bed->type, &bed->cut);
    phx_flow_program_call(bed->next, bed->function, bed->mesh.id, &value, 1, &bed->cut, &value, 1,
                          &bed->error);
    phx_flow_program_result(bed->next, value);
    if (phx_flow_program_finish(bed->next, &bed->error) < 0)
        fail_msg("%s", bed->error.message);
}

static void bed_clean(const struct bed *bed)
{
    char name[160];
    for (int w = 0; w < WORKERS; w++) {
        snprintf(name, sizeof name, "%s/worker-%d.sock", bed->folder, w);
        unlink(name);
    }
    unlink(bed->head_at + 5);
    snprintf(name, sizeof name, "%s.board", bed->head_at + 5); /* a head that is killed leaves it */
    unlink(name);
    assert_int_equal(rmdir(bed->folder), 0);
}

static void bed_stop(struct bed *bed)
{
    phx_flow_program_free(bed->next);
    phx_flow_close(bed->flow);
    for (int w = 0; w < WORKERS; w++)
        stop(&bed->workers[w]);
    stop(&bed->head);
    bed_clean(bed);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static uint64_t put(struct bed *bed, float first)
{
    float data[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = first;
    uint64_t value = phx_flow_put(bed->flow, &bed->type, &bed->cut, data, sizeof data, &bed->error);
    if (!value)
        fail_msg("%s", bed->error.message);
    return value;
}

static uint64_t launch(struct bed *bed, uint64_t value)
{
    uint64_t result = 0;
    if (phx_flow_launch(bed->flow, bed->next, &value, 1, &result, 1, &bed->error) < 0)
        fail_msg("%s", bed->error.message);
    return result;
}

static void expect(struct bed *bed, uint64_t value, float first)
{
    float data[ELEMENTS];
    struct phx_flow_failure failure;
    if (phx_flow_get(bed->flow, value, data, sizeof data, 60000, &failure, &bed->error) < 0)
        fail_msg("%d: %s", failure.reason, bed->error.message);
    for (int i = 0; i < ELEMENTS; i++)
        assert_float_equal(data[i], first, 0);
}

/* The values of a client outlive the head, and its launches go on from them; meshes and slices stay. */
static void values_outlive_the_head(void **state)
{
    struct bed bed = {0};
    bed_start(&bed, 0, 0);
    uint64_t zero = put(&bed, 0), one = launch(&bed, zero);
    assert_int_equal(phx_flow_wait(bed.flow, one, 60000, NULL, &bed.error), 0);
    for (int round = 0; round < 2; round++) {
        int64_t killed_ns = now_ns();
        stop(&bed.head);
        start_head(&bed);
        int64_t started_ns = now_ns();
        uint64_t two = launch(&bed, one);
        expect(&bed, two, 2);
        int64_t over_ns = now_ns();
        printf(
            "# head killed with kill -9: next step over after %.1f ms, of them %.1f ms until the next head "
            "listened\n",
            (double)(over_ns - killed_ns) / 1e6, (double)(started_ns - killed_ns) / 1e6);
        expect(&bed, zero, 0);
        expect(&bed, one, 1);
        phx_flow_release(bed.flow, two);
    }
    struct phx_flow_mesh mesh;
    uint32_t from = 1, size = 1; /* of the slice that the first head has made */
    if (phx_flow_mesh_slice(bed.flow, bed.half.id, &from, &size, &mesh, &bed.error) < 0)
        fail_msg("%s", bed.error.message);
    assert_true(mesh.id > bed.half.id);
    bed_stop(&bed);
}

/* The head is killed with launches under way: those whose end nobody knows fail typed, and may go again. */
static void launches_go_on(void **state)
{
    struct bed bed = {0};
    bed_start(&bed, 0, 0);
    float data[ELEMENTS], good = 0;
    uint64_t value = put(&bed, 0), steps = 0, cancelled = 0;
    while (good < 400) {
        for (int i = 0; i < 20; i++) { /* the head is lost with launches under way */
            uint64_t next = launch(&bed, value);
            phx_flow_release(bed.flow, value);
            value = next;
            if (++steps % 110 == 0 && steps < 400) {
                stop(&bed.head);
                start_head(&bed);
            }
        }
        struct phx_flow_failure failure;
        if (phx_flow_get(bed.flow, value, data, sizeof data, 60000, &failure, &bed.error) == 0) {
            good += 20;
            for (int i = 0; i < ELEMENTS; i++)
                assert_float_equal(data[i], good, 0);
            continue;
        }
        if (failure.reason != PHX_FLOW_CANCELLED && failure.reason != PHX_FLOW_ARGUMENT_FAILED)
            fail_msg("%d: %s", failure.reason, bed.error.message);
        assert_in_range(failure.launch, 1, steps);
        cancelled++;
        phx_flow_release(bed.flow, value);
        value = put(&bed, good);
    }
    assert_in_range(cancelled, 0, 3);
    bed_stop(&bed);
}

/* With lineage the client hears of nothing: what was under way goes again. */
static void lineage_hides_the_loss(void **state)
{
    struct bed bed = {0};
    struct phx_flow_reruns reruns;
    bed_start(&bed, 0, 100);
    uint64_t value = put(&bed, 0);
    for (int step = 1; step <= 300; step++) {
        uint64_t next = launch(&bed, value);
        phx_flow_release(bed.flow, value);
        value = next;
        if (step % 70 == 0) {
            stop(&bed.head);
            start_head(&bed);
        }
        if (step % 20 == 0) {
            expect(&bed, value, (float)step);
            assert_int_equal(phx_flow_checkpoint(bed.flow, value, 60000, NULL, &bed.error), 0);
        }
    }
    phx_flow_count_reruns(bed.flow, &reruns);
    printf("# 4 heads killed under 300 steps: %llu lost values found, %llu launches went again, no failure\n",
           (unsigned long long)reruns.losses, (unsigned long long)reruns.launches);
    assert_in_range(reruns.launches, 0, 4 * 20);
    bed_stop(&bed);
}

/* As a JobSet restarts: workers too. Values are gone, typed; the client puts them again and goes on. */
static void everything_restarts(void **state)
{
    struct bed bed = {0};
    bed_start(&bed, 0, 0);
    uint64_t one = launch(&bed, put(&bed, 0));
    expect(&bed, one, 1);
    phx_flow_release(bed.flow, one);
    uint64_t kept = put(&bed, 5);
    assert_int_equal(phx_flow_wait(bed.flow, kept, 60000, NULL, &bed.error), 0);
    for (int w = 0; w < WORKERS; w++)
        stop(&bed.workers[w]);
    stop(&bed.head);
    start_head(&bed);
    start_workers(&bed);
    struct phx_flow_failure failure;
    float data[ELEMENTS];
    assert_int_equal(phx_flow_get(bed.flow, kept, data, sizeof data, 60000, &failure, &bed.error),
                     PHX_ERROR_PEER);
    assert_int_equal(failure.reason, PHX_FLOW_DEVICE_LOST);
    uint64_t result;
    int rc = PHX_ERROR_PEER;
    for (int i = 0; i < 100 && rc < 0; i++) { /* until the mesh has the new devices */
        result = launch(&bed, put(&bed, 5));
        rc = phx_flow_get(bed.flow, result, data, sizeof data, 60000, &failure, &bed.error);
        assert_true(rc == 0 || failure.reason == PHX_FLOW_DEVICE_LOST ||
                    failure.reason == PHX_FLOW_ARGUMENT_FAILED);
    }
    if (rc < 0)
        fail_msg("%d: %s", failure.reason, bed.error.message);
    assert_float_equal(data[0], 6, 0);
    bed_stop(&bed);
}

/* No head comes: workers end by themselves, and calls of the client fail, whether they wait or begin. */
static void grace_is_over(void **state)
{
    struct bed bed = {0};
    head_grace = "1";
    bed_start(&bed, 300, 0);
    head_grace = "30";
    uint64_t one = put(&bed, 1), next;
    expect(&bed, one, 1);
    int64_t killed_ns = now_ns();
    stop(&bed.head);
    struct phx_flow_mesh mesh;
    struct phx_flow_mesh_options options = {.rank = 1, .dims = {1}};
    assert_int_equal(phx_flow_mesh_new(bed.flow, &options, &mesh, &bed.error), PHX_ERROR_IO);
    assert_in_range((now_ns() - killed_ns) / 1000000, 250, 60000);
    assert_int_equal(phx_flow_launch(bed.flow, bed.next, &one, 1, &next, 1, &bed.error), PHX_ERROR_IO);
    float data[ELEMENTS];
    assert_int_equal(phx_flow_put(bed.flow, &bed.type, &bed.cut, data, sizeof data, &bed.error), 0);
    assert_int_equal(bed.error.code, PHX_ERROR_IO);
    for (int w = 0; w < WORKERS; w++) {
        int status;
        assert_int_equal(waitpid(bed.workers[w].pid, &status, 0), bed.workers[w].pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    }
    phx_flow_program_free(bed.next);
    phx_flow_close(bed.flow);
    for (int w = 0; w < WORKERS; w++)
        fclose(bed.workers[w].out);
    bed_clean(&bed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_outlive_the_head), cmocka_unit_test(launches_go_on),
        cmocka_unit_test(lineage_hides_the_loss),  cmocka_unit_test(everything_restarts),
        cmocka_unit_test(grace_is_over),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
