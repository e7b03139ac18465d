/* Real processes: a client, a head, workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "phalanx/flow.h"
#include "up.h"

static const char module[] = "module {\n"
                             "  func.func @double(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                             "    %0 = stablehlo.add %x, %x : tensor<2xf32>\n"
                             "    return %0 : tensor<2xf32>\n"
                             "  }\n"
                             "  func.func @sum(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                             "    %0 = \"stablehlo.all_reduce\"(%x) ({\n"
                             "      ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
                             "        %s = stablehlo.add %a, %b : tensor<f32>\n"
                             "        stablehlo.return %s : tensor<f32>\n"
                             "    }) {replica_groups = dense<[[0, 1, 2, 3, 4, 5]]> : tensor<1x6xi64>,\n"
                             "        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,\n"
                             "        use_global_device_ids} : (tensor<2xf32>) -> tensor<2xf32>\n"
                             "    return %0 : tensor<2xf32>\n"
                             "  }\n"
                             "}\n";

struct bed {
    struct up up;
    phx_flow *flow;
    struct phx_flow_mesh mesh;
    uint64_t twice, sum;
    struct phx_flow_type type;
    struct phx_flow_sharding cut;
    struct phx_error error;
};

static void bed_start(struct bed *bed, uint32_t devices)
{
    assert_true(up_start(&bed->up, "4", "2", NULL, NULL));
    assert_int_equal(phx_flow_connect(bed->up.address, NULL, &bed->flow, &bed->error), 0);
    struct phx_flow_mesh_options options = {.rank = 1, .dims = {devices}};
    assert_int_equal(phx_flow_mesh_new(bed->flow, &options, &bed->mesh, &bed->error), 0);
    if (phx_flow_function(bed->flow, module, sizeof module - 1, "double", &bed->twice, &bed->error) < 0 ||
        phx_flow_function(bed->flow, module, sizeof module - 1, "sum", &bed->sum, &bed->error) < 0)
        fail_msg("%s", bed->error.message);
    bed->type = (struct phx_flow_type){PHX_FLOW_FLOAT32, 1, {2 * devices}};
    bed->cut = (struct phx_flow_sharding){bed->mesh.id, {1}};
}

static void bed_stop(struct bed *bed)
{
    phx_flow_close(bed->flow);
    up_stop(&bed->up);
}

/* A program of `calls` calls of `function`, each on the result of the one before. */
static phx_flow_program *bed_chain(struct bed *bed, uint64_t function, int calls)
{
    phx_flow_program *program = phx_flow_program_new(bed->flow);
    uint32_t value = phx_flow_program_arg(program, &bed->type, &bed->cut);
    for (int i = 0; i < calls; i++)
        phx_flow_program_call(program, function, bed->mesh.id, &value, 1, &bed->cut, &value, 1, &bed->error);
    phx_flow_program_result(program, value);
    if (phx_flow_program_finish(program, &bed->error) < 0)
        fail_msg("%s", bed->error.message);
    return program;
}

static uint64_t bed_put(struct bed *bed, float first)
{
    float data[64];
    for (int i = 0; i < bed->type.dims[0]; i++)
        data[i] = first + (float)i;
    uint64_t handle =
        phx_flow_put(bed->flow, &bed->type, &bed->cut, data, (size_t)bed->type.dims[0] * 4, &bed->error);
    assert_int_not_equal(handle, 0);
    return handle;
}

static int bed_get(struct bed *bed, uint64_t value, float *data, struct phx_flow_failure *failure)
{
    return phx_flow_get(bed->flow, value, data, (size_t)bed->type.dims[0] * 4, 60000, failure, &bed->error);
}

static void launches_chain(void **state)
{
    struct bed bed = {0};
    float data[64];
    bed_start(&bed, 8);
    phx_flow_program *program = bed_chain(&bed, bed.twice, 3);
    uint64_t value = bed_put(&bed, 1);
    for (int i = 0; i < 100; i++) {
        uint64_t next;
        assert_int_equal(phx_flow_launch(bed.flow, program, &value, 1, &next, 1, &bed.error), 0);
        phx_flow_release(bed.flow, value);
        value = next;
        if (i % 8 == 7) {
            if (bed_get(&bed, value, data, NULL) < 0)
                fail_msg("%s", bed.error.message);
            phx_flow_release(bed.flow, value);
            value = bed_put(&bed, (float)i);
        }
    }
    assert_int_equal(phx_flow_wait(bed.flow, value, 60000, NULL, &bed.error), 0);
    assert_int_equal(bed_get(&bed, value, data, NULL), 0);
    for (int i = 0; i < 16; i++) /* 100 = 12 * 8 + 4 launches: the last value was put after the 96th */
        assert_float_equal(data[i], (95 + (float)i) * 4096, 0);
    phx_flow_program_free(program);
    bed_stop(&bed);
}

static void all_reduce_meets_over_hosts(void **state)
{
    struct bed bed = {0};
    float data[64];
    bed_start(&bed, 6);
    phx_flow_program *program = bed_chain(&bed, bed.sum, 1);
    uint64_t value = bed_put(&bed, 0), result;
    assert_int_equal(phx_flow_launch(bed.flow, program, &value, 1, &result, 1, &bed.error), 0);
    if (bed_get(&bed, result, data, NULL) < 0)
        fail_msg("%s", bed.error.message);
    for (int i = 0; i < 12; i++) /* 0 + 2 + ... + 10, and 6 more for the odd ones */
        assert_float_equal(data[i], (i % 2 ? 36 : 30), 0);
    phx_flow_program_free(program);
    bed_stop(&bed);
}

/* A worker that is stopped cannot take part; killed, it takes its devices along, and what waits is told. */
static void worker_killed(void **state)
{
    struct bed bed = {0};
    struct phx_flow_failure failure;
    float data[64];
    bed_start(&bed, 6);
    phx_flow_program *program = bed_chain(&bed, bed.sum, 2);
    uint64_t value = bed_put(&bed, 0), result, after;
    assert_int_equal(phx_flow_launch(bed.flow, program, &value, 1, &result, 1, &bed.error), 0);
    assert_int_equal(bed_get(&bed, result, data, &failure), 0);
    phx_flow_release(bed.flow, result);
    kill(bed.up.workers[1], SIGSTOP);
    assert_int_equal(phx_flow_launch(bed.flow, program, &value, 1, &result, 1, &bed.error), 0);
    assert_int_equal(phx_flow_launch(bed.flow, program, &result, 1, &after, 1, &bed.error), 0);
    assert_int_equal(phx_flow_get(bed.flow, result, data, 48, 200, &failure, &bed.error), PHX_ERROR_TIMEOUT);
    kill(bed.up.workers[1], SIGKILL);
    assert_int_equal(bed_get(&bed, result, data, &failure), PHX_ERROR_PEER);
    assert_int_equal(failure.reason, PHX_FLOW_DEVICE_LOST);
    assert_int_equal(failure.island, 0);
    assert_true(failure.device == 2 || failure.device == 3);
    assert_int_equal(failure.incarnation, 1);
    assert_int_equal(bed_get(&bed, after, data, &failure), PHX_ERROR_PEER);
    assert_true(failure.reason == PHX_FLOW_ARGUMENT_FAILED || failure.reason == PHX_FLOW_DEVICE_LOST);

    /* The mesh is on other devices now. */
    uint64_t again = bed_put(&bed, 0);
    assert_int_equal(phx_flow_launch(bed.flow, program, &again, 1, &result, 1, &bed.error), 0);
    if (bed_get(&bed, result, data, &failure) < 0)
        fail_msg("%s", bed.error.message);
    assert_float_equal(data[0], 180, 0);
    phx_flow_program_free(program);
    bed_stop(&bed);
}

/* A call that would never end takes its device only until it has done the work that it may do. */
static void endless_call_ends(void **state)
{
    static const char endless[] = "module {\n"
                                  "  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                                  "    %true = stablehlo.constant dense<true> : tensor<i1>\n"
                                  "    %0 = stablehlo.while(%i = %x) : tensor<2xf32>\n"
                                  "     cond {\n"
                                  "      stablehlo.return %true : tensor<i1>\n"
                                  "    } do {\n"
                                  "      %1 = stablehlo.add %i, %i : tensor<2xf32>\n"
                                  "      stablehlo.return %1 : tensor<2xf32>\n"
                                  "    }\n"
                                  "    return %0 : tensor<2xf32>\n"
                                  "  }\n"
                                  "}\n";
    struct bed bed = {0};
    struct phx_flow_failure failure;
    float data[64];
    uint64_t function, result;
    up_work_limit = "100000";
    bed_start(&bed, 2);
    up_work_limit = "0";
    if (phx_flow_function(bed.flow, endless, sizeof endless - 1, "main", &function, &bed.error) < 0)
        fail_msg("%s", bed.error.message);
    phx_flow_program *program = bed_chain(&bed, function, 1), *good = bed_chain(&bed, bed.twice, 1);
    uint64_t value = bed_put(&bed, 1);
    assert_int_equal(phx_flow_launch(bed.flow, program, &value, 1, &result, 1, &bed.error), 0);
    assert_int_equal(bed_get(&bed, result, data, &failure), PHX_ERROR_PEER);
    assert_int_equal(failure.reason, PHX_FLOW_FUNCTION_FAILED);
    assert_non_null(strstr(failure.message, "out of the work"));
    assert_int_equal(phx_flow_launch(bed.flow, good, &value, 1, &result, 1, &bed.error), 0);
    assert_int_equal(bed_get(&bed, result, data, &failure), 0);
    assert_float_equal(data[1], 4, 0);
    phx_flow_program_free(program);
    phx_flow_program_free(good);
    bed_stop(&bed);
}

static uint64_t bed_user(struct bed *bed, const char *name)
{
    static const char text[] = "user \"stub_flow_user.so\"\n"
                               "func @add1(tensor<2xf32>) -> (tensor<2xf32>)\n"
                               "func @meet(tensor<2xf32>) -> (tensor<2xf32>)\n"
                               "func @bad(tensor<2xf32>) -> (tensor<2xf32>)\n";
    uint64_t function;
    if (phx_flow_function(bed->flow, text, sizeof text - 1, name, &function, &bed->error) < 0)
        fail_msg("%s", bed->error.message);
    return function;
}

/* @bad fails on the first device, while the others wait for it in a collective. */
static void shared_object_runs(void **state)
{
    struct bed bed = {0};
    struct phx_flow_failure failure;
    float data[64];
    bed_start(&bed, 4);
    static const char *const names[] = {"add1", "meet", "bad"};
    phx_flow_program *programs[3];
    uint64_t value = bed_put(&bed, 0), results[3];
    for (int i = 0; i < 3; i++) {
        programs[i] = bed_chain(&bed, bed_user(&bed, names[i]), 1);
        assert_int_equal(phx_flow_launch(bed.flow, programs[i], &value, 1, &results[i], 1, &bed.error), 0);
    }
    assert_int_equal(bed_get(&bed, results[0], data, &failure), 0);
    for (int i = 0; i < 8; i++)
        assert_float_equal(data[i], (float)i + 1, 0);
    assert_int_equal(bed_get(&bed, results[1], data, &failure), 0);
    for (int i = 0; i < 8; i++)
        assert_float_equal(data[i], (i % 2 ? 16 : 12), 0);
    assert_int_equal(bed_get(&bed, results[2], data, &failure), PHX_ERROR_PEER);
    assert_int_equal(failure.reason, PHX_FLOW_FUNCTION_FAILED);
    assert_string_equal(failure.message, "bad on purpose");
    assert_int_equal(failure.launch, 3);
    for (int i = 0; i < 3; i++)
        phx_flow_program_free(programs[i]);
    bed_stop(&bed);
}

/* A client that dies leaves nothing: the next one finds all devices free and all memory there. */
static void client_leaves_nothing(void **state)
{
    struct bed bed = {0};
    struct phx_flow_island island;
    uint32_t count;
    float data[64];
    assert_true(up_start(&bed.up, "2", "2", "100", NULL));
    for (int round = 0; round < 20; round++) {
        assert_int_equal(phx_flow_connect(bed.up.address, NULL, &bed.flow, &bed.error), 0);
        do /* until the head has seen the last one go */
            assert_int_equal(phx_flow_islands(bed.flow, &island, 1, &count, &bed.error), 0);
        while (island.free_devices < 4);
        struct phx_flow_mesh_options options = {.rank = 1, .dims = {4}};
        assert_int_equal(phx_flow_mesh_new(bed.flow, &options, &bed.mesh, &bed.error), 0);
        assert_int_equal(
            phx_flow_function(bed.flow, module, sizeof module - 1, "double", &bed.twice, &bed.error), 0);
        bed.type = (struct phx_flow_type){PHX_FLOW_FLOAT32, 1, {8}};
        bed.cut = (struct phx_flow_sharding){bed.mesh.id, {1}};
        phx_flow_program *program = bed_chain(&bed, bed.twice, 3);
        uint64_t values[5] = {bed_put(&bed, 1)};
        for (int i = 0; i < 4; i++)
            assert_int_equal(phx_flow_launch(bed.flow, program, &values[i], 1, &values[i + 1], 1, &bed.error),
                             0);
        if (bed_get(&bed, values[4], data, NULL) < 0)
            fail_msg("round %d: %s", round, bed.error.message);
        phx_flow_program_free(program);
        phx_flow_close(bed.flow);
    }
    up_stop(&bed.up);
}

static void wrong_program_is_refused(void **state)
{
    struct bed bed = {0};
    bed_start(&bed, 3);
    phx_flow_program *program = phx_flow_program_new(bed.flow);
    bed.type.dims[0] = 7;
    uint32_t x = phx_flow_program_arg(program, &bed.type, &bed.cut);
    phx_flow_program_result(program, x);
    assert_int_equal(phx_flow_program_finish(program, &bed.error), PHX_ERROR_INVALID);
    assert_non_null(strstr(bed.error.message, "does not divide"));
    phx_flow_program_free(program);
    uint64_t function;
    assert_int_equal(phx_flow_function(bed.flow, "module { oops", 13, "f", &function, &bed.error),
                     PHX_ERROR_INVALID);
    struct phx_flow_mesh mesh;
    assert_int_equal(phx_flow_mesh_new(bed.flow, &(struct phx_flow_mesh_options){.rank = 1, .dims = {9}},
                                       &mesh, &bed.error),
                     PHX_ERROR_INVALID);
    bed_stop(&bed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_chain),
        cmocka_unit_test(all_reduce_meets_over_hosts),
        cmocka_unit_test(worker_killed),
        cmocka_unit_test(endless_call_ends),
        cmocka_unit_test(shared_object_runs),
        cmocka_unit_test(client_leaves_nothing),
        cmocka_unit_test(wrong_program_is_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
