/* Real processes: a client is suspended while it runs, others take its devices, and it goes on elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "base/units.h"
#include "flow/client/up.h"
#include "flow/host/watch.h"
#include "phalanx/flow.h"

enum { ELEMENTS = 8 };

static const char module[] = "module {\n"
                             "  func.func @next(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                             "    %c = stablehlo.constant dense<1.0> : tensor<4xf32>\n"
                             "    %0 = stablehlo.add %x, %c : tensor<4xf32>\n"
                             "    return %0 : tensor<4xf32>\n"
                             "  }\n"
                             "}\n";

/* A client with a mesh of two devices and a program that adds 1. */
struct tenant {
    phx_flow *flow;
    struct phx_flow_mesh mesh;
    struct phx_flow_type type;
    struct phx_flow_sharding cut;
    phx_flow_program *next;
};

static struct phx_error error;

static struct tenant tenant_start(const struct up *up, const char *name, uint32_t reruns)
{
    struct tenant tenant = {.type = {PHX_FLOW_FLOAT32, 1, {ELEMENTS}}};
    struct phx_flow_options options = {.name = name, .rerun_launches = reruns};
    struct phx_flow_mesh_options mesh = {.rank = 1, .dims = {2}};
    uint64_t function;
    if (phx_flow_connect(up->address, &options, &tenant.flow, &error) < 0 ||
        phx_flow_mesh_new(tenant.flow, &mesh, &tenant.mesh, &error) < 0 ||
        phx_flow_function(tenant.flow, module, sizeof module - 1, "next", &function, &error) < 0)
        fail_msg("%s", error.message);
    tenant.cut = (struct phx_flow_sharding){tenant.mesh.id, {1}};
    tenant.next = phx_flow_program_new(tenant.flow);
    uint32_t value = phx_flow_program_arg(tenant.next, &tenant.type, &tenant.cut);
    phx_flow_program_call(tenant.next, function, tenant.mesh.id, &value, 1, &tenant.cut, &value, 1, &error);
    phx_flow_program_result(tenant.next, value);
    if (phx_flow_program_finish(tenant.next, &error) < 0)
        fail_msg("%s", error.message);
    return tenant;
}

static void tenant_stop(struct tenant *tenant)
{
    phx_flow_program_free(tenant->next);
    phx_flow_close(tenant->flow);
}

static uint64_t put(struct tenant *tenant, float first)
{
    float data[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        data[i] = first + (float)i;
    uint64_t value = phx_flow_put(tenant->flow, &tenant->type, &tenant->cut, data, sizeof data, &error);
    assert_int_not_equal(value, 0);
    return value;
}

static uint64_t launch(struct tenant *tenant, uint64_t value)
{
    uint64_t result;
    if (phx_flow_launch(tenant->flow, tenant->next, &value, 1, &result, 1, &error) < 0)
        fail_msg("%s", error.message);
    return result;
}

static void expect(struct tenant *tenant, uint64_t value, float first)
{
    float data[ELEMENTS];
    struct phx_flow_failure failure;
    if (phx_flow_get(tenant->flow, value, data, sizeof data, -1, &failure, &error) < 0)
        fail_msg("%s", error.message);
    for (int i = 0; i < ELEMENTS; i++)
        assert_float_equal(data[i], first + (float)i, 0);
}

static struct flow_watch *watch_open(const struct up *up)
{
    struct flow_watch *watch;
    struct error why;
    if (flow_watch_open(up->address, NULL, &watch, &why) < 0)
        fail_msg("%s", why.text);
    return watch;
}

static void suspend(struct flow_watch *watch, const char *name, uint64_t bytes)
{
    struct flow_suspension done;
    struct error why;
    if (flow_watch_suspend(watch, name, 60 * NS_PER_SECOND, -1, &done, &why) < 0)
        fail_msg("%s", why.text);
    assert_int_equal(done.clients, 1);
    assert_int_equal(done.bytes, bytes);
}

static void resume(struct flow_watch *watch, const char *name)
{
    struct flow_suspension done;
    struct error why;
    if (flow_watch_resume(watch, name, &done, &why) < 0)
        fail_msg("%s", why.text);
    assert_int_equal(done.clients, 1);
}

/* Virtual devices and bytes on the two devices of a host. */
static void host_use(struct flow_watch *watch, uint32_t host, uint32_t *ret_load, int64_t *ret_bytes)
{
    struct flow_status status = {0};
    struct error why;
    if (flow_watch_status(watch, -1, &status, &why) < 0)
        fail_msg("%s", why.text);
    *ret_load = 0;
    *ret_bytes = 0;
    for (size_t i = 0; i < status.devices.len; i++)
        if (status.devices.items[i].host == host) {
            *ret_load += status.devices.items[i].load;
            *ret_bytes += status.devices.items[i].used_bytes;
        }
    flow_status_done(&status);
}

/* Waits until the head counts so many bytes on the devices of a host. Hosts may answer for a value that is
 * put before the head has heard of it. */
static void await_use(struct flow_watch *watch, uint32_t host, int64_t bytes)
{
    uint32_t load;
    int64_t counted = -1;
    while (counted != bytes)
        host_use(watch, host, &load, &counted);
}

struct late {
    struct tenant *tenant;
    uint64_t result;
};
static void *late_main(void *arg)
{
    struct late *late = arg;
    late->result = launch(late->tenant, put(late->tenant, 50)); /* the put waits */
    expect(late->tenant, late->result, 51);
    return NULL;
}

/* Values are saved and the devices are free; another tenant takes them; the first one goes on, elsewhere. */
static void values_move(void **state)
{
    struct up up;
    uint32_t load;
    int64_t bytes;
    assert_true(up_start(&up, "2", "2", NULL, NULL));
    struct tenant first = tenant_start(&up, "first", 0);
    struct flow_watch *watch = watch_open(&up);
    uint64_t value = put(&first, 1), result = launch(&first, value);
    expect(&first, result, 2);
    host_use(watch, 0, &load, &bytes);
    assert_int_equal(load, 2);
    suspend(watch, "first", 2 * ELEMENTS * sizeof(float));
    host_use(watch, 0, &load, &bytes);
    assert_int_equal(load, 0);
    assert_int_equal(bytes, 0);
    struct tenant second = tenant_start(&up, "second", 0);
    expect(&second, launch(&second, put(&second, 100)), 101);
    host_use(watch, 0, &load, &bytes);
    assert_int_equal(load, 2);
    uint64_t queued = launch(&first, result); /* gets no ticket */
    struct late late = {&first, 0};
    pthread_t thread;
    pthread_create(&thread, NULL, late_main, &late);
    float data[ELEMENTS];
    assert_int_equal(phx_flow_get(first.flow, queued, data, sizeof data, 20, NULL, &error),
                     PHX_ERROR_TIMEOUT);
    resume(watch, "first");
    expect(&first, queued, 3);
    expect(&first, value, 1);
    expect(&first, result, 2);
    expect(&first, launch(&first, queued), 4);
    pthread_join(thread, NULL);
    host_use(watch, 1, &load, &bytes);
    assert_int_equal(load, 2);
    flow_watch_close(watch);
    tenant_stop(&second);
    tenant_stop(&first);
    up_stop(&up);
}

/* A client whose values have no room any more stays suspended, and loses nothing. */
static void no_room_is_refused(void **state)
{
    struct up up;
    up_host_memory = "0";
    assert_true(up_start(&up, "1", "2", "100", NULL));
    up_host_memory = NULL;
    struct tenant first = tenant_start(&up, "first", 0);
    struct flow_watch *watch = watch_open(&up);
    uint64_t values[4], others[5];
    for (int i = 0; i < 4; i++) /* 64 of 100 bytes on each device */
        values[i] = put(&first, (float)i);
    suspend(watch, "first", 4 * ELEMENTS * sizeof(float));
    struct tenant second = tenant_start(&up, "second", 0);
    for (int i = 0; i < 5; i++)
        others[i] = put(&second, (float)(10 + i));
    struct flow_suspension done;
    struct error why;
    for (int i = 0; i < 5; i++)
        expect(&second, others[i], (float)(10 + i));
    await_use(watch, 0, 5 * ELEMENTS * sizeof(float));
    assert_int_equal(flow_watch_resume(watch, "first", &done, &why), ERROR_CONFLICT);
    assert_non_null(strstr(why.text, "has no room"));
    tenant_stop(&second);
    while (flow_watch_resume(watch, "first", &done, &why) < 0) /* until the head has seen the second one go */
        assert_non_null(strstr(why.text, "has no room"));
    for (int i = 0; i < 4; i++)
        expect(&first, values[i], (float)i);
    assert_int_equal(flow_watch_resume(watch, "first", &done, &why), ERROR_CONFLICT);
    assert_non_null(strstr(why.text, "no client of that name is suspended"));
    assert_int_equal(flow_watch_suspend(watch, "third", NS_PER_SECOND, -1, &done, &why), ERROR_CONFLICT);
    flow_watch_close(watch);
    tenant_stop(&first);
    up_stop(&up);
}

/* Launches, and gives the result back. */
static void launch_once(struct tenant *tenant, uint64_t value, float want)
{
    uint64_t result = launch(tenant, value);
    expect(tenant, result, want);
    phx_flow_release(tenant->flow, result);
}

/* Values for which devices have no room come back to host memory, and to a device with the launch that takes
 * them. */
static void what_has_no_room_comes_back_to_the_host(void **state)
{
    struct up up;
    assert_true(up_start(&up, "1", "2", "100", NULL));
    struct tenant first = tenant_start(&up, "first", 0);
    struct flow_watch *watch = watch_open(&up);
    uint64_t values[4], others[5];
    for (int i = 0; i < 4; i++)
        values[i] = put(&first, (float)i);
    suspend(watch, "first", 4 * ELEMENTS * sizeof(float));
    struct tenant second = tenant_start(&up, "second", 0);
    for (int i = 0; i < 5; i++)
        others[i] = put(&second, (float)(10 + i));
    for (int i = 0; i < 5; i++)
        expect(&second, others[i], (float)(10 + i));
    resume(watch, "first");
    for (int i = 0; i < 4; i++) {
        expect(&first, values[i], (float)i);
        launch_once(&first, values[i], (float)i + 1);
    }
    for (int i = 0; i < 5; i++)
        launch_once(&second, others[i], (float)(10 + i) + 1);
    flow_watch_close(watch);
    tenant_stop(&second);
    tenant_stop(&first);
    up_stop(&up);
}

/* A host that has saved values dies meanwhile: lineage makes them again on devices that live. */
static void host_lost_meanwhile(void **state)
{
    struct up up;
    uint32_t load;
    int64_t bytes;
    assert_true(up_start(&up, "2", "2", NULL, NULL));
    struct tenant first = tenant_start(&up, "first", 10);
    struct flow_watch *watch = watch_open(&up);
    uint64_t result = launch(&first, put(&first, 1));
    expect(&first, result, 2);
    suspend(watch, "first", 2 * ELEMENTS * sizeof(float));
    kill(up.workers[0], SIGKILL);
    struct flow_status status;
    do { /* until the head has seen it go */
        status = (struct flow_status){0};
        assert_int_equal(flow_watch_status(watch, -1, &status, NULL), 0);
        load = (uint32_t)status.hosts.len;
        flow_status_done(&status);
    } while (load == 2);
    resume(watch, "first");
    uint64_t next = launch(&first, result);
    expect(&first, next, 3);
    expect(&first, result, 2);
    host_use(watch, 1, &load, &bytes);
    assert_int_equal(load, 2);
    flow_watch_close(watch);
    tenant_stop(&first);
    up_stop(&up);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_move),
        cmocka_unit_test(no_room_is_refused),
        cmocka_unit_test(what_has_no_room_comes_back_to_the_host),
        cmocka_unit_test(host_lost_meanwhile),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
