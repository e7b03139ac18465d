/* Real processes whose devices are too small for all values: those that are not in use are spilled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "flow/host/watch.h"
#include "phalanx/flow.h"
#include "up.h"

/* A shard of a value has 100 floats; each of two devices has room for 10, and hosts for as many more. */
enum { SHARD = 100, VALUES = 16, ROUNDS = 6 };

static const char module[] = "module {\n"
                             "  func.func @more(%x: tensor<100xf32>) -> tensor<100xf32> {\n"
                             "    %c = stablehlo.constant dense<1.0> : tensor<100xf32>\n"
                             "    %0 = stablehlo.add %x, %c : tensor<100xf32>\n"
                             "    return %0 : tensor<100xf32>\n"
                             "  }\n"
                             "}\n";

struct bed {
    struct up up;
    phx_flow *flow;
    phx_flow_program *program;
    struct phx_flow_type type;
    struct phx_flow_sharding cut;
    struct phx_error error;
};

static void bed_start(struct bed *bed, const char *host_memory)
{
    *bed = (struct bed){0};
    up_host_memory = host_memory;
    assert_true(up_start(&bed->up, "2", "1", "4000", NULL));
    struct phx_flow_mesh_options options = {.rank = 1, .dims = {2}};
    struct phx_flow_mesh mesh;
    uint64_t more = 0;
    if (phx_flow_connect(bed->up.address, NULL, &bed->flow, &bed->error) < 0 ||
        phx_flow_mesh_new(bed->flow, &options, &mesh, &bed->error) < 0 ||
        phx_flow_function(bed->flow, module, sizeof module - 1, "more", &more, &bed->error) < 0)
        fail_msg("%s", bed->error.message);
    bed->type = (struct phx_flow_type){PHX_FLOW_FLOAT32, 1, {2 * SHARD}};
    bed->cut = (struct phx_flow_sharding){mesh.id, {1}};
    bed->program = phx_flow_program_new(bed->flow);
    uint32_t value = phx_flow_program_arg(bed->program, &bed->type, &bed->cut);
    phx_flow_program_call(bed->program, more, mesh.id, &value, 1, &bed->cut, &value, 1, &bed->error);
    phx_flow_program_result(bed->program, value);
    if (phx_flow_program_finish(bed->program, &bed->error) < 0)
        fail_msg("%s", bed->error.message);
}

static void bed_stop(struct bed *bed)
{
    phx_flow_program_free(bed->program);
    phx_flow_close(bed->flow);
    up_stop(&bed->up);
}

static uint64_t bed_put(struct bed *bed, float first)
{
    float data[2 * SHARD];
    for (int i = 0; i < 2 * SHARD; i++)
        data[i] = first + (float)i;
    uint64_t handle = phx_flow_put(bed->flow, &bed->type, &bed->cut, data, sizeof data, &bed->error);
    assert_int_not_equal(handle, 0);
    return handle;
}

static int bed_get(struct bed *bed, uint64_t value, float *data, struct phx_flow_failure *failure)
{
    return phx_flow_get(bed->flow, value, data, 2 * SHARD * sizeof *data, 60000, failure, &bed->error);
}

/* Sums of all hosts: what is spilled now, what was, and what has come back. */
struct seen {
    uint64_t used, spilled, filled;
};
static struct seen bed_look(const struct bed *bed)
{
    struct flow_watch *watch;
    struct flow_status status = {0};
    struct error error;
    struct seen seen = {0};
    if (flow_watch_open(bed->up.address, NULL, &watch, &error) < 0 ||
        flow_watch_status(watch, -1, &status, &error) < 0)
        fail_msg("%s", error.text);
    for (size_t i = 0; i < status.hosts.len; i++) {
        const struct flow_status_host *host = &status.hosts.items[i];
        seen.used += host->spilled_bytes;
        seen.spilled += host->spilled_in_all;
        seen.filled += host->filled_in_all;
        assert_true(host->spilled_bytes <= host->host_bytes);
    }
    for (size_t i = 0; i < status.devices.len; i++)
        assert_true(status.devices.items[i].used_bytes <= 4000);
    flow_status_done(&status);
    flow_watch_close(watch);
    return seen;
}

/* More values than devices hold are used in turn; each is right in the end. */
static void use_more_values(const char *pjrt)
{
    struct bed bed;
    up_pjrt = pjrt;
    uint64_t values[VALUES];
    float data[2 * SHARD];
    bed_start(&bed, NULL);
    for (int v = 0; v < VALUES; v++)
        values[v] = bed_put(&bed, (float)(1000 * v));
    for (int round = 0; round < ROUNDS; round++)
        for (int v = 0; v < VALUES; v++) {
            uint64_t next;
            assert_int_equal(phx_flow_launch(bed.flow, bed.program, &values[v], 1, &next, 1, &bed.error), 0);
            phx_flow_release(bed.flow, values[v]);
            values[v] = next;
        }
    for (int v = 0; v < VALUES; v++) {
        if (bed_get(&bed, values[v], data, NULL) < 0)
            fail_msg("value %d: %s", v, bed.error.message);
        for (int i = 0; i < 2 * SHARD; i++)
            assert_float_equal(data[i], 1000 * v + i + ROUNDS, 0);
    }
    struct seen seen = bed_look(&bed);
    printf("# %llu bytes spilled, %llu came back, %llu are on hosts\n", (unsigned long long)seen.spilled,
           (unsigned long long)seen.filled, (unsigned long long)seen.used);
    assert_true(seen.spilled > 0 && seen.filled > 0);
    assert_true(seen.used >= (VALUES - 10) * 2 * SHARD * sizeof(float));
    bed_stop(&bed);
}

static void more_values_than_devices_hold(void **state)
{
    use_more_values(NULL);
}

static void more_values_than_a_plugin_s_devices_hold(void **state)
{
    use_more_values("libphalanx_pjrt.so");
    up_pjrt = NULL;
}

/* Without host memory the eleventh value has no room, so what is launched with it fails. */
static void no_host_memory(void **state)
{
    struct bed bed;
    struct phx_flow_failure failure;
    float data[2 * SHARD];
    bed_start(&bed, "0");
    for (int v = 0; v < 10; v++)
        assert_int_equal(phx_flow_wait(bed.flow, bed_put(&bed, 0), 60000, NULL, &bed.error), 0);
    uint64_t value = bed_put(&bed, 0), result;
    assert_int_equal(phx_flow_launch(bed.flow, bed.program, &value, 1, &result, 1, &bed.error), 0);
    assert_true(bed_get(&bed, result, data, &failure) < 0);
    assert_int_equal(failure.reason, PHX_FLOW_ARGUMENT_FAILED);
    if (!strstr(bed.error.message, "a value needs 400 bytes on device"))
        fail_msg("%s", bed.error.message);
    assert_int_equal(bed_look(&bed).spilled, 0);
    bed_stop(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_values_than_devices_hold),
        cmocka_unit_test(more_values_than_a_plugin_s_devices_hold),
        cmocka_unit_test(no_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
