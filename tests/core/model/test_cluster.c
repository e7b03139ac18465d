/* Cluster files: the shipped ones, what each rule of docs/cluster-file.md gives, and what a broken file is
 * told. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "doc/yaml.h"
#include "core/model/model.h"

static void read_file(const char *path, struct buf *out)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char chunk[4096];
    size_t len;
    while ((len = fread(chunk, 1, sizeof chunk, file)) > 0)
        buf_add(out, chunk, len);
    fclose(file);
}

/* Loads a text; what is wrong with it (one line an error) goes to `out`. */
static bool load(struct str text, struct cluster *ret_cluster, struct buf *out)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 64 << 20};
    struct error error;
    struct doc_list docs;
    assert_int_equal(yaml_parse_all(&arena, text, &docs, &error), 0);
    struct arena messages ARENA_CLEANUP = {0};
    struct field_errors errors = {.arena = &messages};
    bool good = cluster_load(docs.len ? docs.items[0] : NULL, ret_cluster, &errors);
    assert_int_equal(good, errors.list.len == 0);
    field_errors_print(&errors, out);
    field_errors_done(&errors);
    return good;
}

static void load_good(const char *text, struct cluster *ret_cluster)
{
    struct buf errors BUF_CLEANUP = {0};
    if (!load(str_from(text), ret_cluster, &errors))
        fail_msg("%s", errors.data);
}

static void load_path(const char *path, struct cluster *ret_cluster)
{
    struct buf text BUF_CLEANUP = {0};
    read_file(path, &text);
    load_good(text.data, ret_cluster);
}

/* The document fails, and the messages hold each of the NULL-terminated texts. */
static void expect_errors(const char *text, ...)
{
    struct cluster cluster;
    memset(&cluster, 0x5a, sizeof cluster);
    struct buf errors BUF_CLEANUP = {0};
    assert_false(load(str_from(text), &cluster, &errors));
    for (size_t i = 0; i < sizeof cluster; i++)
        assert_int_equal(((unsigned char *)&cluster)[i], 0x5a); /* untouched on failure */
    va_list list;
    va_start(list, text);
    for (const char *part; (part = va_arg(list, const char *));)
        if (!strstr(errors.data, part))
            fail_msg("no \"%s\" in:\n%s", part, errors.data);
    va_end(list);
}

static void assert_str(struct str actual, const char *expected)
{
    if (!str_is(actual, expected))
        fail_msg("\"" STR_FORMAT "\" is not \"%s\"", STR_ARG(actual), expected);
}

static struct str label(const struct machine *machine, const char *key)
{
    struct str value = STR("(none)");
    machine_label(machine, str_from(key), &value);
    return value;
}

/* Rules that hold for every cluster, whatever its file says. */
static void check_whole(const struct cluster *cluster)
{
    uint64_t chips = 0;
    size_t machines = 0, blocks = 0;
    for (uint32_t p = 0; p < cluster->pod_count; p++) {
        const struct pod *pod = &cluster->pods[p];
        assert_int_equal(pod->first, machines);
        assert_int_equal(pod->first_block, blocks);
        for (uint32_t b = pod->first_block; b < pod->first_block + pod->block_count; b++) {
            const struct block *block = &cluster->blocks[b];
            assert_int_equal(block->pod, p);
            assert_int_equal(block->first, machines);
            machines += block->count;
        }
        blocks += pod->block_count;
        assert_int_equal(pod->count, machines - pod->first);
    }
    assert_int_equal(machines, cluster->machine_count);
    assert_int_equal(blocks, cluster->block_count);
    for (machine_id i = 0; i < cluster->machine_count; i++) {
        const struct machine *machine = &cluster->machines[i];
        const struct block *block = &cluster->blocks[machine->block];
        assert_int_equal(machine->id, i);
        assert_true(i >= block->first && i < block->first + block->count);
        assert_int_equal(machine->pod, block->pod);
        assert_ptr_equal(cluster_find(cluster, machine->name), machine);
        assert_int_equal(__builtin_popcountll(machine->free_mask), machine->chip_count);
        assert_true(str_equal(label(machine, "kubernetes.io/hostname"), machine->name));
        assert_true(str_equal(label(machine, "phalanx.dev/pod"), cluster->pods[machine->pod].name));
        for (size_t k = 1; k < machine->labels.len; k++)
            assert_true(str_compare(machine->labels.items[k - 1].key, machine->labels.items[k].key) < 0);
        chips += machine->chip_count;
    }
    assert_int_equal(chips, cluster->chip_count);
}

static void test_mini(void **state)
{
    struct cluster cluster;
    load_path("clusters/mini.yaml", &cluster);
    check_whole(&cluster);
    assert_str(cluster.name, "mini");
    assert_int_equal(cluster.machine_count, 6);
    assert_int_equal(cluster.chip_count, 24);
    assert_int_equal(cluster.policy.lease_ns, 3 * NS_PER_SECOND);
    for (size_t i = 0; i < 6; i++) {
        char name[16], address[16];
        snprintf(name, sizeof name, "m-%zu", i + 1);
        snprintf(address, sizeof address, "127.0.1.%zu", i + 1);
        assert_str(cluster.machines[i].name, name);
        assert_str(cluster.machines[i].address, address);
        assert_int_equal(cluster.machines[i].spare, i == 5);
        assert_int_equal(cluster.machines[i].chip_count, 4);
        assert_int_equal(cluster.machines[i].state, MACHINE_UNSEEN);
    }
    assert_str(label(&cluster.machines[0], "phalanx.dev/rack"), "pod-1.rack-1");
    assert_str(labels_get(&cluster.priority_classes, STR("high"), STR("")), "1000");
    cluster_done(&cluster);
}

static void test_shipped(void **state)
{
    static const struct {
        const char *path;
        size_t machines, chips, blocks, pods;
    } shipped[] = {{"clusters/mini.yaml", 6, 24, 1, 1},
                   {"clusters/pod2.yaml", 32, 128, 2, 1},
                   {"clusters/rack64.yaml", 64, 256, 1, 1},
                   {"clusters/pod4096.yaml", 1024, 4096, 64, 1},
                   {"clusters/big.yaml", 16384, 65536, 1024, 16}};
    for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++) {
        struct cluster cluster;
        struct buf text BUF_CLEANUP = {0};
        load_path(shipped[i].path, &cluster);
        check_whole(&cluster);
        assert_int_equal(cluster.machine_count, shipped[i].machines);
        assert_int_equal(cluster.chip_count, shipped[i].chips);
        assert_int_equal(cluster.block_count, shipped[i].blocks);
        assert_int_equal(cluster.pod_count, shipped[i].pods);
        cluster_describe(&cluster, &text);
        assert_non_null(strstr(text.data, "POD"));
        cluster_done(&cluster);
    }
}

#define HEAD "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n"

static void test_patterns(void **state)
{
    struct cluster cluster;
    load_good(HEAD "  addresses: 10.0.0.254/24\n"
                   "  pods:\n"
                   "  - count: 2\n"
                   "    machineNames: p{pod}-r{rack:02}-{n}\n"
                   "    racks:\n"
                   "    - {count: 2, machines: 2, chips: 8}\n"
                   "  - name: solo\n"
                   "    racks:\n"
                   "    - {name: odd, machines: 2, chips: 0, machineNames: '{podName}.{blockName}.{n:03}'}\n"
                   "    - {namePattern: 'rack-{rack}', machines: 1, chips: 1}\n"
                   "    - {namePattern: 'rack-{rack}', machines: 1, chips: 1}\n",
              &cluster);
    check_whole(&cluster);
    static const char *const names[] = {"p1-r01-1",     "p1-r01-2",     "p1-r02-1", "p1-r02-2",
                                        "p2-r01-1",     "p2-r01-2",     "p2-r02-1", "p2-r02-2",
                                        "solo.odd.001", "solo.odd.002", "m-1",      "m-2"};
    static const char *const addresses[] = {"10.0.0.254", "10.0.1.1", "10.0.1.2", "10.0.1.3"};
    assert_int_equal(cluster.machine_count, 12);
    for (size_t i = 0; i < 12; i++)
        assert_str(cluster.machines[i].name, names[i]);
    for (size_t i = 0; i < 4; i++)
        assert_str(cluster.machines[i].address, addresses[i]);
    assert_str(cluster.blocks[6].name, "rack-3");
    assert_str(label(&cluster.machines[9], "phalanx.dev/rack"), "solo.odd");
    cluster_done(&cluster);
}

static void test_addresses(void **state)
{
    struct cluster cluster;
    load_good(HEAD "  addresses: 127.0.1.254\n"
                   "  pods:\n"
                   "  - racks:\n"
                   "    - {machines: 3, chips: 1}\n"
                   "    - {machines: 2, chips: 1, addresses: {from: 10.1.0.0, step: 256}}\n"
                   "    - {machines: 2, chips: 1, addresses: [10.9.9.9, 10.9.9.7]}\n"
                   "    - {machines: 1, chips: 1}\n"
                   "  machines:\n"
                   "  - {name: m-2, address: 192.168.7.7}\n",
              &cluster);
    static const char *const expected[] = {"127.0.1.254", "192.168.7.7", "127.0.2.0", "10.1.0.0",
                                           "10.1.1.0",    "10.9.9.9",    "10.9.9.7",  "127.0.2.1"};
    for (size_t i = 0; i < 8; i++)
        assert_str(cluster.machines[i].address, expected[i]);
    cluster_done(&cluster);
}

static void test_inheritance(void **state)
{
    struct cluster cluster;
    load_good(HEAD "  addresses: 10.0.0.1\n"
                   "  cpu: 64\n"
                   "  labels: {a: spec, b: spec, zone: z}\n"
                   "  settings: {numberFrom: 0}\n"
                   "  pods:\n"
                   "  - labels: {b: pod, c: pod}\n"
                   "    memory: 1Ki\n"
                   "    racks:\n"
                   "    - {machines: 3, chips: 8, spares: [m-16], labels: {c: rack}, cpu: 1500m}\n"
                   "    cubes: 1\n"
                   "  machines:\n"
                   "  - {name: m-18, chips: 7, spare: true, cordoned: true, labels: {a: own}, cpu: 1}\n",
              &cluster);
    check_whole(&cluster);
    const struct machine *cube = &cluster.machines[0], *rack = &cluster.machines[17],
                         *own = &cluster.machines[18];
    assert_int_equal(cluster.blocks[0].kind, BLOCK_CUBE);
    assert_str(label(cube, "phalanx.dev/cube"), "pod-0.cube-0");
    assert_str(label(rack, "phalanx.dev/rack"), "pod-0.rack-1");
    assert_str(label(rack, "a"), "spec");
    assert_str(label(rack, "b"), "pod");
    assert_str(label(rack, "c"), "rack");
    assert_str(label(own, "a"), "own");
    assert_str(label(own, "zone"), "z");
    assert_int_equal(cube->cpu_milli, 64000);
    assert_int_equal(rack->cpu_milli, 1500);
    assert_int_equal(own->cpu_milli, 1000);
    assert_int_equal(cube->memory_bytes, 1024);
    assert_int_equal(own->chip_count, 7);
    assert_true(own->spare && own->cordoned && cluster.machines[16].spare && !rack->spare && !cube->cordoned);
    cluster_done(&cluster);
}

static void test_header_errors(void **state)
{
    expect_errors("kind: Clutter\nmetadata: {name: No_Good, extra: 1}\nspec: {}\nmore: 1\n",
                  "apiVersion: ", "1:7: kind: ", "metadata.name: Invalid value: \"No_Good\"",
                  "metadata.extra: ", "4:1: more: unknown field", "spec.pods: Required value", NULL);
    expect_errors("[1]\n", "must be of type object", NULL);
    expect_errors(HEAD "  - 1\n", "5:3: spec: Invalid value: array: must be of type object", NULL);
}

static void test_field_errors(void **state)
{
    expect_errors(
        HEAD "  addresses: 10.0.0.300\n"
             "  cpu: -1\n"
             "  settings: {lease: soon, heartbeat: 5h, priorityClasses: {a: x}, chipResource: tpu}\n"
             "  pods:\n"
             "  - count: 2\n"
             "    name: p\n"
             "    racks:\n"
             "    - {machines: many, chips: 65, spares: 9}\n"
             "    - {machines: 1}\n"
             "    - {machines: 1, chips: 1, colour: red, labels: {x: 1, phalanx.dev/pod: me}}\n"
             "    - {machines: 1, chips: 1, namePattern: 'r{n', machineNames: '{x}'}\n"
             "    cubes: some\n",
        "5:14: spec.addresses: Invalid value: \"10.0.0.300\"",
        "spec.cpu: ", "spec.settings.lease: ", "spec.settings.heartbeat: ",
        "spec.settings.priorityClasses.a: ", "spec.settings.chipResource: ", "spec.pods[0].count: Forbidden",
        "12:18: spec.pods[0].racks[0].machines: Invalid value: string",
        "spec.pods[0].racks[0].chips: Invalid value: 65: must be from 0 to 64",
        "spec.pods[0].racks[1].chips: Required value", "spec.pods[0].racks[2].colour: unknown field",
        "spec.pods[0].racks[2].labels.x: ", "spec.pods[0].racks[2].labels.phalanx.dev/pod: Forbidden",
        "spec.pods[0].racks[3].namePattern: ", "spec.pods[0].racks[3].machineNames: ", "spec.pods[0].cubes: ",
        NULL);
}

/* Settings of how bad machines are found, and what jobs do about them. */
static void test_sub_health(void **state)
{
    struct cluster cluster;
    load_good(HEAD "  addresses: 10.0.0.1\n  pods: [{racks: [{machines: 1, chips: 1}]}]\n", &cluster);
    assert_true(cluster.policy.sub_health == SUB_HEALTH_IGNORE &&
                cluster.policy.pace_window_ns == PACE_WINDOW_DEFAULT_NS);
    cluster_done(&cluster);
    load_good(HEAD "  addresses: 10.0.0.1\n  settings: {subHealth: hotSwitch, paceWindow: 5s}\n"
                   "  pods: [{racks: [{machines: 1, chips: 1}]}]\n",
              &cluster);
    assert_true(cluster.policy.sub_health == SUB_HEALTH_HOT_SWITCH &&
                cluster.policy.pace_window_ns == 5 * NS_PER_SECOND);
    cluster_done(&cluster);
    expect_errors(HEAD "  settings: {subHealth: maybe, paceWindow: 1ms}\n",
                  "spec.settings.subHealth: Unsupported value: \"maybe\"", "spec.settings.paceWindow: ",
                  NULL);
}

static void test_cross_errors(void **state)
{
    expect_errors(HEAD "  pods: [{racks: [{machines: 2, chips: 1}]}]\n", "machine m-1 gets no address", NULL);
    expect_errors(HEAD
                  "  addresses: 10.0.0.1\n  machineNames: m\n  pods: [{racks: [{machines: 2, chips: 1}]}]\n",
                  "Duplicate value: \"m\"", NULL);
    expect_errors(HEAD "  pods: [{racks: [{machines: 2, chips: 1, addresses: [10.0.0.1, 10.0.0.1]}]}]\n",
                  "m-1 and m-2 get the same address", NULL);
    expect_errors(HEAD "  pods: [{racks: [{machines: 2, chips: 1, addresses: [10.0.0.1]}]}]\n", "Too few: 1",
                  NULL);
    expect_errors(HEAD "  pods: [{racks: [{machines: 1, chips: 1, addresses: [10.0.0.1, 10.0.0.2]}]}]\n",
                  "Too many: 2", NULL);
    expect_errors(HEAD "  addresses: 223.255.255.255\n  pods: [{racks: [{machines: 2, chips: 1}]}]\n",
                  "do not reach machine m-2", NULL);
    expect_errors(HEAD "  addresses: 10.0.0.1\n  pods: [{cubes: 1, count: 131072}]\n", "Too many machines",
                  NULL);
    expect_errors(HEAD "  addresses: 10.0.0.1\n  pods: [{name: a, cubes: 1}, {name: a, cubes: 1}]\n",
                  "two pods get this name", NULL);
    expect_errors(HEAD "  addresses: 10.0.0.1\n  pods: [{cubes: [{name: x}, {name: x}]}]\n",
                  "two cubes or racks of pod pod-1", NULL);
    expect_errors(
        HEAD "  addresses: 10.0.0.1\n  pods: [{cubes: [{spares: [m-17]}]}]\n  machines:\n"
             "  - {name: m-99}\n  - {name: m-1, chips: 5, address: x}\n  - {name: m-1}\n  - {chips: 1}\n",
        "spec.pods[0].cubes[0].spares[0]: Not found: \"m-17\"", "spec.machines[0].name: Not found: \"m-99\"",
        "spec.machines[1].chips: Forbidden", "spec.machines[1].address: Invalid value",
        "spec.machines[2].name: Duplicate value", "spec.machines[3].name: Required value", NULL);
}

static void test_take_give(void **state)
{
    struct cluster cluster;
    load_path("clusters/mini.yaml", &cluster);
    struct machine *machine = &cluster.machines[2];
    machine_take(machine, 5, 100, 7);
    machine_take(machine, 2, 0, 0);
    assert_int_equal(machine->free_mask, 8);
    assert_int_equal(machine->task_count, 2);
    machine_give(machine, 5, 100, 7);
    machine_give(machine, 2, 0, 0);
    assert_int_equal(machine->free_mask, 15);
    assert_int_equal(machine->cpu_used_milli + machine->memory_used_bytes + machine->task_count, 0);
    assert_false(machine_schedulable(machine));
    machine_set_state(machine, MACHINE_READY, 5, 9);
    assert_true(machine_schedulable(machine));
    assert_int_equal(machine->changed_seq, 9);
    machine->cordoned = true;
    assert_false(machine_schedulable(machine));
    struct label added = {STR("zone"), STR("b")};
    machine->user_labels = (struct labels){&added, 1};
    assert_str(label(machine, "zone"), "b");
    cluster_done(&cluster);
}

/* A position that a reader noted in one cluster's journal is not the end of the next cluster's journal. */
static void test_changes_are_numbered_on(void **state)
{
    struct cluster before, after;
    load_path("clusters/mini.yaml", &before);
    load_path("clusters/mini.yaml", &after);
    machine_changed(&before.machines[0]);
    machine_changed(&before.machines[1]);
    uint64_t read = cluster_next_change(&before);
    cluster_number_changes_after(&after, &before);
    assert_true(cluster_next_change(&after) > read);
    uint64_t next = cluster_next_change(&after);
    machine_changed(&after.machines[0]);
    assert_int_equal(cluster_next_change(&after), next + 1);
    cluster_done(&before);
    cluster_done(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mini),
        cmocka_unit_test(test_shipped),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_inheritance),
        cmocka_unit_test(test_header_errors),
        cmocka_unit_test(test_field_errors),
        cmocka_unit_test(test_cross_errors),
        cmocka_unit_test(test_take_give),
        cmocka_unit_test(test_sub_health),
        cmocka_unit_test(test_changes_are_numbered_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
