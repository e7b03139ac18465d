/* Thousands of machines in one process. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/resource.h>

#include "host/agent/agent_host.h"
#include "host/agent/fake.h"

enum { SIMULATED = 1000 };

static void start_simulated(struct fake *fake, struct wire_conn *conn)
{
    struct str argv[] = {STR("simulated")};
    struct env_var env[] = {{.name = STR("PHX_SIM_RUN_MS"), .value = STR("300")},
                            {.name = STR("PHX_SIM_STEP_MS"), .value = STR("50")}};
    struct task_launch launch = {.task = (uint64_t)fake->hellos,
                                 .name = STR("sim"),
                                 .argv = argv,
                                 .argc = 1,
                                 .env = env,
                                 .env_count = 2,
                                 .run_as_user = -1,
                                 .run_as_group = -1,
                                 .chips = 1,
                                 .world = SIMULATED,
                                 .restore_step = -1};
    wire_send_controller(conn, &(struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
}

static int count_ends(struct fake *fake)
{
    int ends = 0;
    for (size_t i = 0; i < fake->told.len; i++)
        ends += fake->told.items[i].exited == 1 && fake->told.items[i].exit_code == 0 &&
                fake->told.items[i].joined == 1 && fake->told.items[i].step > 0;
    return ends;
}

static void note_closed(void *context)
{
    *(bool *)context = true;
}

static void test_simulated_machines(void **state)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 2 * SIMULATED + 64)
        skip();
    struct fake fake;
    fake_init(&fake);
    fake.heartbeat_ns = NS_PER_SECOND;
    fake.on_hello = start_simulated;
    struct agent_host *host;
    struct error error;
    struct agent_host_options options = {.machine = "m-{n}",
                                         .machines = SIMULATED,
                                         .first = 100,
                                         .simulate = true,
                                         .controller = "127.0.0.1",
                                         .port = fake.port,
                                         .chips = 4,
                                         .seed = 1};
    assert_int_equal(agent_host_new(&fake.loop, &options, &host, &error), 0);
    uint64_t start_ns = uv_hrtime();
    RUN_UNTIL(&fake, agent_host_welcome_count(host) == SIMULATED);
    printf("%d machines connected in %.0f ms\n", SIMULATED, (double)(uv_hrtime() - start_ns) / 1e6);
    RUN_UNTIL(&fake, count_ends(&fake) == SIMULATED);
    int beats = fake.heartbeats;
    RUN_UNTIL(&fake, fake.heartbeats >= beats + SIMULATED);
    assert_int_equal(fake.hellos, SIMULATED);
    assert_int_equal(fake.closed, 0);
    bool closed = false;
    agent_host_shutdown(host, false, note_closed, &closed);
    RUN_UNTIL(&fake, closed && fake.closed == SIMULATED);
    fake_done(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simulated_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
