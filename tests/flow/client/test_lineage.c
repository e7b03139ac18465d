/* Real processes: what is lost with a worker is made again from checkpoints and what was put, in a bound.
 * Prints what a loss costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <time.h>

#include "flow/client/up.h"
#include "phalanx/flow.h"

enum { ELEMENTS = 64, STEPS = 60, KILL_AT = 37, CHECKPOINT_EVERY = 10 };

/* A step of a descent: w - 0.1 (w - target of the batch), and its loss. */
static const char module[] =
    "module {\n"
    "  func.func @step(%w: tensor<16xf32>, %b: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>) {\n"
    "    %r = stablehlo.constant dense<0.1> : tensor<16xf32>\n"
    "    %d = stablehlo.subtract %w, %b : tensor<16xf32>\n"
    "    %s = stablehlo.multiply %d, %r : tensor<16xf32>\n"
    "    %n = stablehlo.subtract %w, %s : tensor<16xf32>\n"
    "    %l = stablehlo.multiply %d, %d : tensor<16xf32>\n"
    "    return %n, %l : tensor<16xf32>, tensor<16xf32>\n"
    "  }\n"
    "}\n";

struct bench {
    struct up up;
    phx_flow *flow;
    struct phx_flow_mesh mesh;
    phx_flow_program *step;
    struct phx_flow_type type;
    struct phx_flow_sharding cut;
    struct phx_error error;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void bench_start(struct bench *bench, uint32_t rerun_launches, uint64_t rerun_bytes)
{
    assert_true(up_start(&bench->up, "3", "2", NULL, NULL));
    struct phx_flow_options options = {.rerun_launches = rerun_launches, .rerun_bytes = rerun_bytes};
    if (phx_flow_connect(bench->up.address, &options, &bench->flow, &bench->error) < 0)
        fail_msg("%s", bench->error.message);
    struct phx_flow_mesh_options mesh = {.rank = 1, .dims = {4}};
    uint64_t function;
    uint32_t args[2], results[2];
    if (phx_flow_mesh_new(bench->flow, &mesh, &bench->mesh, &bench->error) < 0 ||
        phx_flow_function(bench->flow, module, sizeof module - 1, "step", &function, &bench->error) < 0)
        fail_msg("%s", bench->error.message);
    bench->type = (struct phx_flow_type){PHX_FLOW_FLOAT32, 1, {ELEMENTS}};
    bench->cut = (struct phx_flow_sharding){bench->mesh.id, {1}};
    const struct phx_flow_sharding cuts[2] = {bench->cut, bench->cut};
    bench->step = phx_flow_program_new(bench->flow);
    args[0] = phx_flow_program_arg(bench->step, &bench->type, &bench->cut);
    args[1] = phx_flow_program_arg(bench->step, &bench->type, &bench->cut);
    phx_flow_program_call(bench->step, function, bench->mesh.id, args, 2, cuts, results, 2, &bench->error);
    phx_flow_program_result(bench->step, results[0]);
    phx_flow_program_result(bench->step, results[1]);
    if (phx_flow_program_finish(bench->step, &bench->error) < 0)
        fail_msg("%s", bench->error.message);
}

static void bench_stop(struct bench *bench)
{
    phx_flow_program_free(bench->step);
    phx_flow_close(bench->flow);
    up_stop(&bench->up);
}

static uint64_t put(struct bench *bench, float first)
{
    float data[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = first + 0.25f * (float)i;
    uint64_t value = phx_flow_put(bench->flow, &bench->type, &bench->cut, data, sizeof data, &bench->error);
    if (!value)
        fail_msg("%s", bench->error.message);
    return value;
}

static float loss_of(struct bench *bench, uint64_t value)
{
    float data[ELEMENTS], sum = 0;
    struct phx_flow_failure failure;
    if (phx_flow_get(bench->flow, value, data, sizeof data, 60000, &failure, &bench->error) < 0)
        fail_msg("%d: %s", failure.reason, bench->error.message);
    for (int i = 0; i < ELEMENTS; i++)
        sum += data[i];
    return sum;
}

/* Trains; the worker is killed before step `kill_at` (0: never). Losses are read as late as `lag` steps. */
static void train(struct bench *bench, int kill_at, int lag, float *losses)
{
    uint64_t w = put(bench, 3), waiting[STEPS] = {0};
    int64_t killed_ns = 0;
    for (int step = 1; step <= STEPS; step++) {
        uint64_t args[2] = {w, put(bench, (float)(step % 7))}, results[2];
        if (step == kill_at) {
            killed_ns = now_ns();
            kill(bench->up.workers[0], SIGKILL);
        }
        if (phx_flow_launch(bench->flow, bench->step, args, 2, results, 2, &bench->error) < 0)
            fail_msg("%s", bench->error.message);
        phx_flow_release(bench->flow, args[0]);
        phx_flow_release(bench->flow, args[1]);
        w = results[0];
        waiting[step - 1] = results[1];
        if (step > lag) {
            losses[step - 1 - lag] = loss_of(bench, waiting[step - 1 - lag]);
            phx_flow_release(bench->flow, waiting[step - 1 - lag]);
        }
        if (step == kill_at && lag == 0)
            printf("# worker killed: next step over after %.1f ms\n", (double)(now_ns() - killed_ns) / 1e6);
        struct phx_flow_failure failure;
        if (step % CHECKPOINT_EVERY == 0 &&
            phx_flow_checkpoint(bench->flow, w, 60000, &failure, &bench->error) < 0)
            fail_msg("%d: %s", failure.reason, bench->error.message);
    }
    for (int step = STEPS - lag; step < STEPS; step++) {
        losses[step] = loss_of(bench, waiting[step]);
        phx_flow_release(bench->flow, waiting[step]);
    }
    phx_flow_release(bench->flow, w);
}

/* The client hears of no failure, and every loss is that of an undisturbed run, bit by bit. */
static void lost_values_are_made_again(void **state)
{
    float calm[STEPS], losses[STEPS];
    for (int lag = 0; lag <= 8; lag += 8) {
        struct bench bench = {0};
        struct phx_flow_reruns reruns;
        bench_start(&bench, CHECKPOINT_EVERY + 8, 0);
        train(&bench, 0, lag, calm);
        phx_flow_count_reruns(bench.flow, &reruns);
        assert_int_equal(reruns.launches, 0);
        train(&bench, KILL_AT, lag, losses);
        phx_flow_count_reruns(bench.flow, &reruns);
        assert_memory_equal(calm, losses, sizeof calm);
        printf(
            "# losses read %d steps late: %d of %d steps, %llu lost values found, %llu launches went again, "
            "%llu values put again; losses equal\n",
            lag, STEPS, STEPS, (unsigned long long)reruns.losses, (unsigned long long)reruns.launches,
            (unsigned long long)reruns.puts);
        assert_in_range(reruns.launches, 1, 3 * (CHECKPOINT_EVERY + 8));
        bench_stop(&bench);
    }
}

/* Beyond the bound, and beyond what is kept here, the failure is typed; what is put anew works. */
static void beyond_the_bound(void **state)
{
    for (int round = 0; round < 2; round++) {
        struct bench bench = {0};
        struct phx_flow_failure failure;
        struct phx_flow_reruns reruns;
        float data[ELEMENTS];
        bench_start(&bench, round ? 16 : 3, round ? 1 : 0);
        uint64_t args[2] = {put(&bench, 3), put(&bench, 1)}, results[2];
        for (int step = 0; step < 5; step++) {
            if (phx_flow_launch(bench.flow, bench.step, args, 2, results, 2, &bench.error) < 0)
                fail_msg("%s", bench.error.message);
            args[0] = results[0];
        }
        loss_of(&bench, results[1]);
        kill(bench.up.workers[0], SIGKILL);
        int rc = 0;
        while (rc == 0) { /* until the loss is known */
            phx_flow_launch(bench.flow, bench.step, args, 2, results, 2, &bench.error);
            rc = phx_flow_get(bench.flow, results[0], data, sizeof data, 60000, &failure, &bench.error);
        }
        assert_int_equal(rc, PHX_ERROR_PEER);
        assert_true(failure.reason == PHX_FLOW_DEVICE_LOST || failure.reason == PHX_FLOW_ARGUMENT_FAILED);
        phx_flow_count_reruns(bench.flow, &reruns);
        assert_int_equal(reruns.launches, 0);
        args[0] = put(&bench, 3);
        args[1] = put(&bench, 1);
        assert_int_equal(phx_flow_launch(bench.flow, bench.step, args, 2, results, 2, &bench.error), 0);
        loss_of(&bench, results[1]);
        bench_stop(&bench);
    }
}

/* A released value that is still fetched keeps a chain of released values by its lineage. The loss of its
 * host ends them all at once, amid the client's walk over its values. */
static void values_that_end_together(void **state)
{
    enum { CHAIN = 24 };
    struct bench bench = {0};
    struct phx_flow_failure failure;
    bench_start(&bench, 64, 1 << 20);
    uint64_t kept = put(&bench, 1), w = put(&bench, 3);
    for (int i = 0; i < CHAIN; i++) {
        uint64_t args[2] = {w, put(&bench, (float)i)}, results[2];
        if (phx_flow_launch(bench.flow, bench.step, args, 2, results, 2, &bench.error) < 0)
            fail_msg("%s", bench.error.message);
        phx_flow_release(bench.flow, args[0]);
        phx_flow_release(bench.flow, args[1]);
        phx_flow_release(bench.flow, results[1]);
        w = results[0];
    }
    if (phx_flow_wait(bench.flow, w, 60000, &failure, &bench.error) < 0)
        fail_msg("%d: %s", failure.reason, bench.error.message);
    kill(bench.up.workers[0], SIGSTOP); /* the fetch is under way until the host is lost */
    assert_int_equal(phx_flow_fetch(bench.flow, w, &bench.error), 0);
    phx_flow_release(bench.flow, w);
    kill(bench.up.workers[0], SIGKILL);
    assert_true(loss_of(&bench, kept) > 0); /* the client has heard of the loss */
    bench_stop(&bench);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_values_are_made_again),
        cmocka_unit_test(beyond_the_bound),
        cmocka_unit_test(values_that_end_together),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
