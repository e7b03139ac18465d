/* spec.pods[].fabric of the cluster file: the optical switches that it gives, and where mistakes are. */
#include "core/words/switch.h"
#include "settings.h"

#define HEAD                                                                                                 \
    "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n  addresses: 127.0.1.1\n"        \
    "  pods:\n"
#define DIGITS_70 "'0123456789012345678901234567890123456789012345678901234567890123456789'"

static void ports_follow_each_other_over_the_pods(void **state)
{
    struct cluster cluster;
    struct buf out BUF_CLEANUP = {0};
    assert_true(load(HEAD
                     "  - {name: bare, racks: [{machines: 1, chips: 4}]}\n"
                     "  - {namePattern: 'pod-{pod}', count: 2, cubes: 2, racks: [{machines: 1, chips: 4}],\n"
                     "     fabric: {switches: '10.0.0.1:5000', timeout: 2s}}\n",
                     &cluster, &out));
    assert_int_equal(cluster.switch_count, 2 * POD_SWITCHES);
    assert_int_equal(cluster.pods[0].first_switch, SWITCH_NONE);
    assert_int_equal(cluster.pods[1].first_switch, 0);
    assert_int_equal(cluster.pods[2].first_switch, POD_SWITCHES);
    assert_int_equal(cluster.pods[2].cube_count, 2);
    const struct optical_switch *first = &cluster.switches[0],
                                *last = &cluster.switches[2 * POD_SWITCHES - 1];
    assert_true(str_is(first->name, "pod-2-x0") && str_is(first->address, "10.0.0.1:5000"));
    assert_true(str_is(last->name, "pod-3-z15") && str_is(last->address, "10.0.0.1:5095"));
    assert_true(last->pod == 2 && last->number == POD_SWITCHES - 1 && last->timeout_ns == 2 * NS_PER_SECOND);
    assert_true(str_is(last->protocol, "scpi"));
    cluster_done(&cluster);
}

static void a_list_gives_each_switch_its_address(void **state)
{
    struct cluster cluster;
    struct buf out BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
    buf_printf(&text, HEAD "  - cubes: 1\n    fabric:\n      protocol: tl1\n      switches:\n");
    for (int i = 0; i < POD_SWITCHES; i++)
        buf_printf(&text, "      - ocs-%d.example.com:3082\n", i);
    assert_true(load(text.data, &cluster, &out));
    assert_true(str_is(cluster.switches[17].name, "pod-1-y1"));
    assert_true(str_is(cluster.switches[17].address, "ocs-17.example.com:3082"));
    assert_true(str_is(cluster.switches[17].protocol, "tl1"));
    cluster_done(&cluster);
}

/* Chips are named by cube of the pod and machine of the cube; racks have none. */
static void each_machine_of_a_cube_has_its_chips(void **state)
{
    struct cluster cluster;
    struct buf out BUF_CLEANUP = {0};
    ARENA_CLEANUP struct arena arena = {0};
    assert_true(load(HEAD
                     "  - {name: bare, racks: [{machines: 1, chips: 4}]}\n"
                     "  - {cubes: 2, racks: [{machines: 1, chips: 4}], fabric: {switches: '10.0.0.1:5000',\n"
                     "     chips: 'emulated:/run/c{cube}/m{machine}.sock'}}\n",
                     &cluster, &out));
    assert_int_equal(machine_chips_at(&cluster, &cluster.machines[0], &arena).len, 0);
    assert_true(str_is(machine_chips_at(&cluster, &cluster.machines[1], &arena), "emulated:/run/c0/m0.sock"));
    assert_true(
        str_is(machine_chips_at(&cluster, &cluster.machines[32], &arena), "emulated:/run/c1/m15.sock"));
    assert_int_equal(machine_chips_at(&cluster, &cluster.machines[33], &arena).len, 0);
    cluster_done(&cluster);
}

/* The addresses of SAI and of shared libraries mean what these say. */
static void drivers_may_have_addresses_of_their_own(void **state)
{
    static const char *const protocols[] = {"sai", "/usr/lib/ocs.so"};
    for (size_t p = 0; p < 2; p++) {
        struct cluster cluster;
        struct buf out BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        buf_printf(&text, HEAD "  - cubes: 1\n    fabric:\n      protocol: %s\n      switches:\n",
                   protocols[p]);
        for (int i = 0; i < POD_SWITCHES; i++)
            buf_printf(&text, "      - /usr/lib/libsai.so?ocs%d\n", i);
        assert_true(load(text.data, &cluster, &out));
        assert_int_equal(cluster.switch_count, POD_SWITCHES);
        assert_true(str_is(cluster.switches[47].protocol, protocols[p]));
        assert_true(str_is(cluster.switches[47].address, "/usr/lib/libsai.so?ocs47"));
        cluster_done(&cluster);
    }
}

/* All switches of an entry have its login; the file is a path, whether there is one or not. */
static void an_entry_has_a_login(void **state)
{
    struct cluster cluster;
    struct buf out BUF_CLEANUP = {0};
    assert_true(load(HEAD "  - {cubes: 1, fabric: {switches: 'a:5000', protocol: tl1, user: admin,\n"
                          "     secretFile: /nowhere/ocs}}\n"
                          "  - {cubes: 1, fabric: {switches: 'b:5000', protocol: tl1, user: guest}}\n"
                          "  - {cubes: 1, fabric: {switches: 'c:5000', protocol: tl1}}\n",
                     &cluster, &out));
    assert_int_equal(cluster.switch_count, 3 * POD_SWITCHES);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        const struct switch_login *first = cluster.switches[i].login,
                                  *second = cluster.switches[POD_SWITCHES + i].login;
        assert_true(first && str_is(first->user, "admin") && str_is(first->secret_file, "/nowhere/ocs"));
        assert_true(second && str_is(second->user, "guest") && second->secret_file.len == 0);
        assert_null(cluster.switches[2 * POD_SWITCHES + i].login);
    }
    cluster_done(&cluster);
}

static void a_shared_library_may_have_a_login(void **state)
{
    struct cluster cluster;
    struct buf out BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
    buf_printf(&text, HEAD "  - cubes: 1\n    fabric:\n      protocol: /usr/lib/ocs.so\n"
                           "      user: 'a:b;c'\n      switches:\n");
    for (int i = 0; i < POD_SWITCHES; i++)
        buf_printf(&text, "      - ocs%d\n", i);
    assert_true(load(text.data, &cluster, &out));
    assert_true(cluster.switches[47].login && str_is(cluster.switches[47].login->user, "a:b;c"));
    cluster_done(&cluster);
}

static void mistakes_are_named(void **state)
{
    static const struct mistake mistakes[] = {
        {"  - {cubes: 1, fabric: {protocol: snmp, switches: 'h:1'}}",
         "spec.pods[0].fabric.protocol: Unsupported"},
        {"  - {cubes: 1, fabric: {protocol: sai, switches: '/usr/lib/libsai.so'}}", "must be a list of 48"},
        {"  - {cubes: 1, fabric: {protocol: sai, switches: ['/usr/lib/libsai.so']}}",
         "a pod has 48 switches"},
        {"  - {cubes: 1, fabric: {protocol: lib/ocs.so, switches: ['a']}}", "begins with '/'"},
        {"  - {cubes: 1, fabric: {}}", "spec.pods[0].fabric.switches: Required"},
        {"  - {cubes: 1, fabric: {switches: '10.0.0.1'}}", "must be HOST:PORT"},
        {"  - {cubes: 1, fabric: {switches: '10.0.0.1:0'}}", "must be HOST:PORT"},
        {"  - {cubes: 1, fabric: {switches: '10.0.0.1:99999'}}", "must be HOST:PORT"},
        {"  - {cubes: 1, fabric: {switches: ':5000'}}", "must be HOST:PORT"},
        {"  - {cubes: 1, fabric: {switches: '10.0.0.1:65500'}}", "consecutive ports"},
        {"  - {cubes: 1, fabric: {switches: ['a:1']}}", "1 addresses: a pod has 48 switches"},
        {"  - {namePattern: 'p{pod}', count: 2, cubes: 1, fabric: {switches: ['a:1']}}", "one pod"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', timeout: 1ms}}", "spec.pods[0].fabric.timeout"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', speed: 1}}", "speed"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', chips: 'emulated:/run/{cube}'}}",
         "spec.pods[0].fabric.chips"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', chips: 'emulated:/run/{machine}/{cube}'}}",
         "must be DRIVER:"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', chips: '/run/{cube}-{machine}'}}", "must be DRIVER:"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', chips: 'e:{cube}{machine}{n}'}}", "must be DRIVER:"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', user: admin}}",
         "spec.pods[0].fabric.user: Forbidden: the protocol scpi has no login"},
        {"  - {cubes: 1, fabric: {switches: ['a'], protocol: sai, user: admin}}",
         "spec.pods[0].fabric.user: Forbidden: the protocol sai has no login"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', protocol: tl1, secretFile: /etc/ocs}}",
         "spec.pods[0].fabric.secretFile: Forbidden: the file has the password of a user"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', protocol: tl1, user: admin, secretFile: etc/ocs}}",
         "spec.pods[0].fabric.secretFile: Invalid value: must be the absolute path"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', protocol: tl1, user: admin, secretFile: \"/etc/o\\ncs\"}}",
         "spec.pods[0].fabric.secretFile: Invalid value: must be the absolute path"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', protocol: tl1, user: ''}}",
         "spec.pods[0].fabric.user: Invalid value: \"\": must not be empty"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', protocol: tl1, user: 'a:b'}}",
         "spec.pods[0].fabric.user: Invalid value: \"a:b\": must be a name of 1 to 63 bytes"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', protocol: tl1, user: \"a\\nb\"}}",
         "spec.pods[0].fabric.user: Invalid value"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', protocol: tl1, user: " DIGITS_70 "}}",
         "spec.pods[0].fabric.user: Invalid value"},
        {"  - {cubes: 1, fabric: {switches: 'a:1', protocol: tl1, user: 7}}", "spec.pods[0].fabric.user"},
        {"  - {cubes: 151, fabric: {switches: 'a:1'}}", "151 cubes"},
    };
    assert_mistakes(HEAD, mistakes, sizeof mistakes / sizeof *mistakes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_follow_each_other_over_the_pods),
        cmocka_unit_test(a_list_gives_each_switch_its_address),
        cmocka_unit_test(each_machine_of_a_cube_has_its_chips),
        cmocka_unit_test(drivers_may_have_addresses_of_their_own),
        cmocka_unit_test(an_entry_has_a_login),
        cmocka_unit_test(a_shared_library_may_have_a_login),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
