/* Ports of RDMA devices: made-up ones, and the tree of a real H100 machine. */
#include "fixture.h"

#define PORT "/sys/class/infiniband/mlx5_0/ports/1"

static void port(struct fixture *f, const char *state, const char *phys, const char *rate)
{
    put(f, PORT "/state", "%s\n", state);
    put(f, PORT "/phys_state", "%s\n", phys);
    put(f, PORT "/rate", "%s\n", rate);
    put(f, PORT "/link_layer", "InfiniBand\n");
}

static void ports_down_and_up(void **state)
{
    struct fixture *f = *state;
    port(f, "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)"); /* never was up: nobody uses it */
    begin(f, "infiniband", NULL);
    look_after(f, 0);
    expect_none(f);
    port(f, "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)");
    look_after(f, 10);
    expect_none(f);
    port(f, "2: INIT", "5: LinkUp", "400 Gb/sec (4X NDR)");
    look_after(f, 10);
    const struct kept *kept = expect_one(f, SIGNAL_OCCUR, "ib/port-down", "port/mlx5_0/1");
    assert_string_equal(kept->evidence, "state 2: INIT, physical state 5: LinkUp");
    look_after(f, 10);
    expect_none(f);
    port(f, "4: ACTIVE", "5: LinkUp", "200 Gb/sec (4X HDR)");
    look_after(f, 10);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_RECOVER, "ib/port-down", "port/mlx5_0/1");
    expect(f, 1, SIGNAL_OCCUR, "ib/rate", "port/mlx5_0/1");
    port(f, "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)");
    look_after(f, 10);
    expect_one(f, SIGNAL_RECOVER, "ib/rate", "port/mlx5_0/1");
}

static void ports_that_flap(void **state)
{
    struct fixture *f = *state;
    port(f, "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)");
    put(f, PORT "/counters/link_downed", "2\n");
    begin(f, "infiniband", NULL);
    look_after(f, 0);
    expect_none(f);
    for (int i = 1; i <= 2; i++) { /* down and up between two looks: the counter alone knows */
        put(f, PORT "/counters/link_downed", "%d\n", 2 + i);
        look_after(f, 60);
        expect_one(f, SIGNAL_ONCE, "ib/errors", "port/mlx5_0/1");
    }
    put(f, PORT "/counters/link_downed", "5\n");
    look_after(f, 60);
    assert_int_equal(f->kept.len, 2);
    assert_int_equal(expect(f, 0, SIGNAL_ONCE, "ib/port-flap", "port/mlx5_0/1")->count, 3);
    expect(f, 1, SIGNAL_ONCE, "ib/errors", "port/mlx5_0/1");
    put(f, PORT "/counters/link_downed", "6\n");
    look_after(f, 3700);
    put(f, PORT "/counters/link_downed", "7\n");
    look_after(f, 3700); /* two hours for two: no flapping */
    assert_int_equal(f->kept.len, 1);
}

static void counters(void **state)
{
    struct fixture *f = *state;
    port(f, "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)");
    put(f, PORT "/counters/symbol_error", "1000\n");
    put(f, PORT "/counters/port_xmit_wait", "5\n");
    begin(f, "infiniband", "probes: {infiniband: {countersPerHour: {symbol_error: 5}, exclude: [mlx5_9*]}}");
    look_after(f, 0);
    put(f, PORT "/counters/symbol_error", "1004\n");
    put(f, PORT "/counters/port_xmit_wait", "500000000\n"); /* load, not an error */
    put(f, "/sys/class/infiniband/mlx5_90/ports/1/state", "4: ACTIVE\n");
    look_after(f, 10);
    expect_none(f);
    put(f, PORT "/counters/symbol_error", "1005\n");
    put(f, "/sys/class/infiniband/mlx5_90/ports/1/state", "1: DOWN\n"); /* excluded */
    look_after(f, 10);
    assert_int_equal(expect_one(f, SIGNAL_ONCE, "ib/errors", "port/mlx5_0/1")->count, 5);
    put(f, PORT "/counters/symbol_error", "N/A (no PMA)\n"); /* a restricted function */
    look_after(f, 10);
    put(f, PORT "/counters/symbol_error", "18446744073709551615\n");
    look_after(f, 10);
    expect_one(f, SIGNAL_ONCE, "ib/errors", "port/mlx5_0/1");
}

static void manifest(void **state)
{
    struct fixture *f = *state;
    port(f, "1: DOWN", "3: Disabled", "10 Gb/sec");
    begin(f, "infiniband",
          "manifest:\n  infiniband:\n  - {device: mlx5_0, port: 1, rate: 400}\n  - {device: mlx5_1}\n");
    look_after(f, 0);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_OCCUR, "ib/port-down", "port/mlx5_0/1");
    expect(f, 1, SIGNAL_OCCUR, "ib/missing", "port/mlx5_1/1");
    port(f, "4: ACTIVE", "5: LinkUp", "200 Gb/sec (4X HDR)");
    put(f, "/sys/class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n");
    look_after(f, 10);
    assert_int_equal(f->kept.len, 3);
    expect(f, 0, SIGNAL_RECOVER, "ib/port-down", "port/mlx5_0/1");
    expect(f, 1, SIGNAL_OCCUR, "ib/rate", "port/mlx5_0/1");
    expect(f, 2, SIGNAL_RECOVER, "ib/missing", "port/mlx5_1/1");
}

/* The tree of a real machine, in ../shared/data; its folder is copied, then a cable is pulled. */
static void real_machine(void **state)
{
    struct fixture *f = *state;
    char command[512];
    if (access("../shared/data/sysfs-infiniband-h100", R_OK) < 0) {
        print_message("skip real_machine: no ../shared/data/sysfs-infiniband-h100\n");
        skip();
    }
    put(f, "/sys/class/empty", " ");
    snprintf(command, sizeof command,
             "cp -r ../shared/data/sysfs-infiniband-h100 %s/sys/class/infiniband && chmod -R u+w %s", f->root,
             f->root);
    assert_int_equal(system(command), 0);
    begin(f, "infiniband",
          "manifest: {infiniband: [{device: mlx5_0, rate: 400}, {device: mlx5_1, rate: 400},"
          " {device: mlx5_4, rate: 400}, {device: mlx5_9, rate: 400}, {device: mlx5_bond_0, rate: 200}]}");
    for (int i = 0; i < 3; i++) {
        look_after(f, 10);
        expect_none(f);
    }
    put(f, PORT "/state", "1: DOWN\n");
    put(f, PORT "/phys_state", "2: Polling\n");
    put(f, PORT "/counters/link_downed", "1\n");
    look_after(f, 10);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_ONCE, "ib/errors", "port/mlx5_0/1");
    expect(f, 1, SIGNAL_OCCUR, "ib/port-down", "port/mlx5_0/1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(ports_down_and_up), CASE(ports_that_flap), CASE(counters),
                                       CASE(manifest), CASE(real_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
