/* Topology rules against brute force on small clusters: a domain is found if and only if there is one, the
 * smallest is taken, slices stay whole, what is lost is replaced beside the rest. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/sched/sched.h"
#include "random_cluster.h"

enum { ROUNDS = 1500, TASKS_MAX = 64 };

#define RACK STR("phalanx.dev/rack")
#define POD  STR("phalanx.dev/pod")
#define HOST STR("kubernetes.io/hostname")

static struct taint taints[] = {{STR("k"), STR("v"), STR("NoSchedule")},
                                {STR("k"), STR("v"), STR("PreferNoSchedule")}};

struct world {
    struct rng rng;
    struct cluster cluster;
    struct topology_rule rule;
    struct place_job job;
    struct place_request request;
    struct placement places[TASKS_MAX];
};

static void make(struct world *world)
{
    random_cluster(&world->rng, &world->cluster);
    disturb(&world->rng, &world->cluster, taints);
    world->rule = (struct topology_rule){0};
    world->job = (struct place_job){
        .count = 1 + (uint32_t)rng_below(&world->rng, 12),
        .chips = 1 + (uint32_t)rng_below(&world->rng, 4),
        .topology = &world->rule,
    };
    world->request = (struct place_request){.jobs = &world->job, .job_count = 1};
}

static void unmake(struct world *world)
{
    for (size_t i = 0; i < world->cluster.machine_count; i++) {
        world->cluster.machines[i].taints = NULL;
        world->cluster.machines[i].taint_count = 0;
    }
    cluster_done(&world->cluster);
}

static bool place(struct world *world)
{
    struct buf why BUF_CLEANUP = {0};
    bool placed = sched_place(&world->cluster, &world->request, NULL, NULL, world->places, &why);
    assert_true(placed == (why.len == 0));
    return placed;
}

/* Tasks that the machine takes, told without the code under test. */
static uint32_t takes(const struct world *world, machine_id id)
{
    const struct machine *machine = &world->cluster.machines[id];
    bool repelled = machine->taint_count && str_is(machine->taints[0].effect, "NoSchedule");
    if (!machine_schedulable(machine) || machine->spare || repelled)
        return 0;
    return (uint32_t)__builtin_popcountll(machine->free_mask) / world->job.chips;
}

/* The machine's domain, by its whole path. */
static uint32_t domain(const struct world *world, struct str key, machine_id id)
{
    const struct machine *machine = &world->cluster.machines[id];
    struct str value = {0};
    if (str_equal(key, POD))
        return machine->pod;
    if (str_equal(key, RACK))
        return machine->block;
    if (str_equal(key, HOST))
        return id;
    return machine_label(machine, key, &value) ? (uint32_t)(value.data[1] - '0') : UINT32_MAX;
}

static uint64_t room(const struct world *world, struct str key, uint32_t at)
{
    uint64_t sum = 0;
    for (machine_id id = 0; id < world->cluster.machine_count; id++)
        if (domain(world, key, id) == at)
            sum += takes(world, id);
    return sum;
}

/* The least room of a domain that has enough; UINT64_MAX: none has. */
static uint64_t least_room(const struct world *world, struct str key, uint64_t tasks)
{
    uint64_t least = UINT64_MAX;
    for (machine_id id = 0; id < world->cluster.machine_count; id++) {
        uint64_t here = room(world, key, domain(world, key, id));
        if (here >= tasks && here < least)
            least = here;
    }
    return least;
}

static void required_is_best_fit(void **state)
{
    struct world world;
    rng_seed(&world.rng, 1);
    const struct str keys[] = {RACK, POD, HOST, STR("zone")};
    uint32_t found = 0, refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        make(&world);
        world.rule.mode = TOPOLOGY_REQUIRED;
        world.rule.key = keys[rng_below(&world.rng, 4)];
        uint64_t least = least_room(&world, world.rule.key, world.job.count);
        bool placed = place(&world);
        assert_true(placed == (least != UINT64_MAX));
        placed ? found++ : refused++;
        uint32_t at = placed ? domain(&world, world.rule.key, world.places[0].machine) : 0;
        for (uint32_t t = 0; placed && t < world.job.count; t++)
            assert_int_equal((int)domain(&world, world.rule.key, world.places[t].machine), (int)at);
        if (placed)
            assert_int_equal((int)room(&world, world.rule.key, at), (int)least);
        unmake(&world);
    }
    assert_true(found > ROUNDS / 5 && refused > ROUNDS / 5);
}

/* The fewest domains, inside one of the wider key or anywhere, that have room for the tasks. */
static uint32_t fewest(const struct world *world, struct str key, struct str inside, uint32_t at,
                       uint64_t tasks)
{
    bool used[64] = {0};
    for (uint32_t count = 0;; count++) {
        uint64_t best = 0;
        uint32_t chosen = 0;
        if (!tasks)
            return count;
        for (machine_id id = 0; id < world->cluster.machine_count; id++) {
            uint32_t d = domain(world, key, id);
            if (used[d] || (inside.len && domain(world, inside, id) != at) || room(world, key, d) <= best)
                continue;
            best = room(world, key, d);
            chosen = d;
        }
        if (!best)
            return UINT32_MAX;
        used[chosen] = true;
        tasks -= best < tasks ? best : tasks;
    }
}

static uint32_t spread(const struct world *world, struct str key)
{
    bool used[64] = {0};
    uint32_t count = 0;
    for (uint32_t t = 0; t < world->job.count; t++) {
        uint32_t d = domain(world, key, world->places[t].machine);
        count += !used[d];
        used[d] = true;
    }
    return count;
}

static void preferred_climbs(void **state)
{
    struct world world;
    rng_seed(&world.rng, 2);
    uint32_t one_rack = 0, one_pod = 0, several = 0;
    for (int round = 0; round < ROUNDS; round++) {
        make(&world);
        world.rule.mode = TOPOLOGY_PREFERRED;
        world.rule.key = RACK;
        uint32_t tasks = world.job.count;
        bool placed = place(&world);
        assert_true(placed == (fewest(&world, HOST, STR(""), 0, tasks) != UINT32_MAX));
        if (placed && least_room(&world, RACK, tasks) != UINT64_MAX) {
            assert_int_equal((int)spread(&world, RACK), 1);
            one_rack++;
        } else if (placed && least_room(&world, POD, tasks) != UINT64_MAX) {
            uint32_t pod = domain(&world, POD, world.places[0].machine);
            assert_int_equal((int)spread(&world, POD), 1);
            assert_int_equal((int)room(&world, POD, pod), (int)least_room(&world, POD, tasks));
            assert_int_equal((int)spread(&world, RACK), (int)fewest(&world, RACK, POD, pod, tasks));
            one_pod++;
        } else if (placed) {
            assert_int_equal((int)spread(&world, POD), (int)fewest(&world, POD, STR(""), 0, tasks));
            several++;
        }
        unmake(&world);
    }
    assert_true(one_rack > 50 && one_pod > 50 && several > 20);
}

/* Room in whole slices of two layers: `outer` tasks in a rack, `inner` on a machine. */
static uint64_t sliced_room(const struct world *world, uint32_t pod, uint64_t outer, uint64_t inner)
{
    uint64_t sum = 0;
    for (uint32_t b = 0; b < world->cluster.block_count; b++) {
        uint64_t rack = 0;
        for (machine_id id = 0; id < world->cluster.machine_count; id++)
            if (world->cluster.machines[id].block == b)
                rack += takes(world, id) / inner * inner;
        sum += world->cluster.blocks[b].pod == pod ? rack / outer * outer : 0;
    }
    return sum;
}

static void slices_are_whole(void **state)
{
    struct world world;
    rng_seed(&world.rng, 3);
    uint32_t found = 0;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        make(&world);
        uint32_t inner = 1 + (uint32_t)rng_below(&world.rng, 3);
        uint32_t outer = inner * (1 + (uint32_t)rng_below(&world.rng, 3));
        uint32_t whole = world.job.count = outer * (1 + (uint32_t)rng_below(&world.rng, 3));
        if (rng_below(&world.rng, 2)) { /* a last slice that is not whole takes the room of one */
            world.job.count += (uint32_t)rng_below(&world.rng, outer);
            whole += world.job.count > whole ? outer : 0;
        }
        bool required = rng_below(&world.rng, 2);
        world.rule.mode = required ? TOPOLOGY_REQUIRED : TOPOLOGY_UNCONSTRAINED;
        world.rule.key = required ? POD : STR("");
        world.rule.slices[world.rule.slice_count++] = (struct topology_slice){RACK, (int32_t)outer};
        if (inner > 1)
            world.rule.slices[world.rule.slice_count++] = (struct topology_slice){HOST, (int32_t)inner};
        uint64_t best = 0, all = 0;
        for (uint32_t p = 0; p < world.cluster.pod_count; p++) {
            uint64_t here = sliced_room(&world, p, outer, inner);
            best = here > best ? here : best;
            all += here;
        }
        bool placed = place(&world);
        assert_true(placed == ((required ? best : all) >= whole));
        found += placed;
        for (uint32_t t = 0; placed && t < world.job.count; t++) {
            uint32_t head = t / outer * outer, host = t / inner * inner;
            assert_int_equal((int)domain(&world, RACK, world.places[t].machine),
                             (int)domain(&world, RACK, world.places[head].machine));
            assert_int_equal((int)world.places[t].machine, (int)world.places[host].machine);
            if (required)
                assert_int_equal((int)domain(&world, POD, world.places[t].machine),
                                 (int)domain(&world, POD, world.places[0].machine));
        }
        unmake(&world);
    }
    assert_true(found > ROUNDS / 5);
}

/* One machine of a placed gang is lost: the others stay if their domain has room for what was on it, else the
 * whole gang moves, if there is another domain. Racks are slices' domains half of the time. */
static void hot_swap(void **state)
{
    struct world world;
    rng_seed(&world.rng, 4);
    uint32_t swapped = 0, moved = 0, waits = 0;
    for (int round = 0; round < 4 * ROUNDS; round++) {
        make(&world);
        world.rule.mode = TOPOLOGY_REQUIRED;
        world.rule.key = rng_below(&world.rng, 2) ? RACK : POD;
        machine_id prefer[TASKS_MAX];
        if (!place(&world)) {
            unmake(&world);
            continue;
        }
        for (uint32_t t = 0; t < world.job.count; t++)
            prefer[t] = world.places[t].machine;
        uint32_t at = domain(&world, world.rule.key, prefer[0]);
        machine_id lost = prefer[rng_below(&world.rng, world.job.count)];
        machine_set_state(&world.cluster.machines[lost], MACHINE_LOST, 0, 0);
        world.job.prefer = prefer;
        bool some_left = false;
        for (uint32_t t = 0; t < world.job.count; t++)
            some_left |= prefer[t] != lost;
        bool stays = some_left && room(&world, world.rule.key, at) >= world.job.count;
        bool exists = least_room(&world, world.rule.key, world.job.count) != UINT64_MAX;
        bool placed = place(&world);
        assert_true(placed == exists);
        uint32_t now = placed ? domain(&world, world.rule.key, world.places[0].machine) : 0;
        for (uint32_t t = 0; placed && t < world.job.count; t++) {
            assert_int_equal((int)domain(&world, world.rule.key, world.places[t].machine), (int)now);
            if (stays && prefer[t] != lost)
                assert_int_equal((int)world.places[t].machine, (int)prefer[t]);
        }
        !placed ? waits++ : stays ? swapped++ : moved++;
        unmake(&world);
    }
    assert_true(swapped > 50 && moved > 50 && waits > 50);
}

/* Tasks that run already bind the others, slice by slice. */
static void others_bind(void **state)
{
    struct world world;
    rng_seed(&world.rng, 5);
    uint32_t found = 0;
    for (int round = 0; round < ROUNDS; round++) {
        make(&world);
        world.job.count = 1;
        world.rule.mode = TOPOLOGY_UNCONSTRAINED;
        world.rule.slices[world.rule.slice_count++] = (struct topology_slice){RACK, 2};
        machine_id peer = (machine_id)rng_below(&world.rng, world.cluster.machine_count);
        struct placed_task others[] = {{0, peer}, {3, (machine_id)rng_below(&world.rng, peer + 1)}};
        uint32_t ordinal = 1;
        world.job.ordinals = &ordinal;
        world.job.others = others;
        world.job.other_count = 2;
        bool placed = place(&world);
        assert_true(placed == (room(&world, RACK, world.cluster.machines[peer].block) > 0));
        if (placed)
            assert_int_equal((int)world.cluster.machines[world.places[0].machine].block,
                             (int)world.cluster.machines[peer].block);
        found += placed;
        unmake(&world);
    }
    assert_true(found > 50);
}

static void says_why(void **state)
{
    struct world world = {0};
    load_text(
        "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: r}\nspec:\n  addresses: 10.0.0.1\n"
        "  machineNames: m-{n}\n  pods:\n  - racks: [{machines: 3, chips: 4}, {machines: 4, chips: 4}]\n",
        &world.cluster);
    make_ready(&world.cluster);
    world.cluster.machines[3].cordoned = true;
    machine_take(&world.cluster.machines[4], 0x1, 0, 0);
    world.rule = (struct topology_rule){.mode = TOPOLOGY_REQUIRED, .key = RACK};
    world.job = (struct place_job){.count = 5, .chips = 4, .topology = &world.rule};
    world.request = (struct place_request){.jobs = &world.job, .job_count = 1};
    struct buf why BUF_CLEANUP = {0};
    assert_false(sched_place(&world.cluster, &world.request, NULL, NULL, world.places, &why));
    assert_string_equal(why.data,
                        "needs 5 machines with 4 free google.com/tpu chips in one rack; pod-1.rack-1 has 3, "
                        "and no more machines");
    world.job.count = 4;
    machine_take(&world.cluster.machines[0], 0x1, 0, 0);
    machine_take(&world.cluster.machines[1], 0x1, 0, 0);
    buf_clear(&why);
    assert_false(sched_place(&world.cluster, &world.request, NULL, NULL, world.places, &why));
    assert_string_equal(why.data,
                        "needs 4 machines with 4 free google.com/tpu chips in one rack; pod-1.rack-2 has 2: "
                        "m-4 drained, m-5 taken");
    world.cluster.machines[5].cordoned = world.cluster.machines[6].cordoned = true;
    buf_clear(&why); /* one that is large enough is nearer than one that never was */
    assert_false(sched_place(&world.cluster, &world.request, NULL, NULL, world.places, &why));
    assert_string_equal(why.data,
                        "needs 4 machines with 4 free google.com/tpu chips in one rack; pod-1.rack-2 has "
                        "0: m-4 drained, m-5 taken, m-6 drained, m-7 drained");
    world.rule.key = STR("example.com/hall");
    buf_clear(&why);
    assert_false(sched_place(&world.cluster, &world.request, NULL, NULL, world.places, &why));
    assert_string_equal(why.data,
                        "needs 4 machines with 4 free google.com/tpu chips in one example.com/hall; no "
                        "machine has the label example.com/hall");
    struct str levels[] = {POD, RACK};
    world.job.levels = levels;
    world.job.level_count = 2;
    buf_clear(&why);
    assert_false(sched_place(&world.cluster, &world.request, NULL, NULL, world.places, &why));
    assert_string_equal(why.data, "no topology level is called example.com/hall");
    cluster_done(&world.cluster);
}

/* Two shapes of one group come into one domain, if there is one for both. */
static void groups_share_a_domain(void **state)
{
    struct world world;
    rng_seed(&world.rng, 6);
    uint32_t found = 0;
    for (int round = 0; round < ROUNDS; round++) {
        make(&world);
        world.rule = (struct topology_rule){.mode = TOPOLOGY_REQUIRED, .key = RACK, .group = STR("g")};
        struct topology_rule second = world.rule;
        struct place_job jobs[2] = {world.job, world.job};
        jobs[1].topology = &second;
        jobs[1].count = 1 + (uint32_t)rng_below(&world.rng, 4);
        world.request = (struct place_request){.jobs = jobs, .job_count = 2};
        bool placed = place(&world);
        assert_true(placed ==
                    (least_room(&world, RACK, (uint64_t)jobs[0].count + jobs[1].count) != UINT64_MAX));
        for (uint32_t t = 0; placed && t < jobs[0].count + jobs[1].count; t++)
            assert_int_equal((int)world.cluster.machines[world.places[t].machine].block,
                             (int)world.cluster.machines[world.places[0].machine].block);
        found += placed;
        unmake(&world);
    }
    assert_true(found > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(required_is_best_fit),  cmocka_unit_test(preferred_climbs),
        cmocka_unit_test(slices_are_whole),      cmocka_unit_test(hot_swap),
        cmocka_unit_test(others_bind),           cmocka_unit_test(says_why),
        cmocka_unit_test(groups_share_a_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
