/* Many seeds of a world that breaks: nothing hangs, nothing leaks, tickets have no gaps, values are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flow/island/world.h"

/* The world's own parts: included, because a test is one program of one file. */
#include "flow/island/world_machines.h"
#include "flow/island/world_clients.h"

/* Resumes what is suspended, as far as there is room for it; the others wait for ever, as they should. */
static void resume_all(struct world *world)
{
    for (uint32_t c = 0; c < world->client_count; c++) {
        if (!world->clients[c].alive || !world->clients[c].suspended)
            continue;
        world_suspend(world, c, true);
        while (world_step(world, false))
            ;
    }
}

/* Workers have spilled what the head thinks that they have. */
static void check_spilled(const struct world *world, const struct world_client *client, uint64_t seed)
{
    for (size_t v = 0; v < client->values.len; v++) {
        const struct world_value *value = &client->values.items[v];
        bool told = head_has_spilled(world->head, value->handle);
        for (uint32_t d = 0; d < 16 && !value->failed; d++) {
            uint32_t end = world_end_of_birth(world, value->mesh.births[d]);
            if (end && worker_has_spilled(world->workers[end - 1].worker, value->handle) != told)
                fail_msg("seed %llu: the head counts %llx as %s, worker %u does not",
                         (unsigned long long)seed, (unsigned long long)value->handle,
                         told ? "spilled" : "on its device", end - 1);
        }
    }
}

static void check_quiet(const struct world *world, uint64_t seed)
{
    struct head_counts counts = head_count(world->head);
    if (counts.queued || counts.running)
        fail_msg("seed %llu: %llu launches queued and %llu running for ever", (unsigned long long)seed,
                 (unsigned long long)counts.queued, (unsigned long long)counts.running);
    for (uint32_t c = 0; c < world->client_count; c++) {
        const struct world_client *client = &world->clients[c];
        if (!client->alive || client->suspended)
            continue;
        if (client->finished != client->launched)
            fail_msg("seed %llu: client %u has heard of %llu of %llu launches", (unsigned long long)seed, c,
                     (unsigned long long)client->finished, (unsigned long long)client->launched);
        check_spilled(world, client, seed);
        for (size_t v = 0; v < client->values.len; v++)
            for (uint32_t d = 0; d < 16; d++)
                if (client->values.items[v].asked[d] && !client->values.items[v].failed &&
                    world_end_of_birth(world, client->values.items[v].mesh.births[d]))
                    fail_msg("seed %llu: client %u waits for a shard of %llx for ever",
                             (unsigned long long)seed, c, (unsigned long long)client->values.items[v].handle);
    }
    for (uint32_t w = 0; w < world->worker_count; w++)
        if (world->workers[w].alive && worker_count(world->workers[w].worker).instances)
            fail_msg("seed %llu: worker %u has instances that never end", (unsigned long long)seed, w);
}

static void check_empty(const struct world *world, uint64_t seed)
{
    struct head_counts counts = head_count(world->head);
    if (counts.objects || counts.used_bytes || counts.idle_bytes || counts.spilled_bytes || counts.meshes ||
        counts.clients || counts.loads)
        fail_msg("seed %llu: without clients the head has %llu objects, %lld bytes in use, %lld spilled, "
                 "%llu meshes, %llu loads",
                 (unsigned long long)seed, (unsigned long long)counts.objects, (long long)counts.used_bytes,
                 (long long)counts.spilled_bytes, (unsigned long long)counts.meshes,
                 (unsigned long long)counts.loads);
    for (uint32_t w = 0; w < world->worker_count; w++) {
        if (!world->workers[w].alive)
            continue;
        struct worker_counts left = worker_count(world->workers[w].worker);
        if (left.objects || left.cells || left.programs || left.functions || left.instances || left.clients)
            fail_msg("seed %llu: without clients worker %u has %llu objects, %llu cells, %llu programs, %llu "
                     "clients",
                     (unsigned long long)seed, w, (unsigned long long)left.objects,
                     (unsigned long long)left.cells, (unsigned long long)left.programs,
                     (unsigned long long)left.clients);
        if (world->workers[w].saved || world->workers[w].transfers.len)
            fail_msg("seed %llu: without clients worker %u keeps %u saved shards", (unsigned long long)seed,
                     w, world->workers[w].saved);
        for (size_t i = 0; i < world->workers[w].aborts.len; i++) {
            const struct run_id *run = &world->workers[w].aborts.items[i].id;
            if (worker_expects(world->workers[w].worker, run->client, run->launch, run->head))
                fail_msg("seed %llu: without clients worker %u expects a launch", (unsigned long long)seed,
                         w);
        }
    }
}

static struct world sum;

static const struct world_memory ample = {1 << 20, 0}, tight = {400, 0}, spills = {400, 3200},
                                 full = {400, 800};

static void run_seed(uint64_t seed, struct world_memory memory, int habits)
{
    static struct world world;
    world_begin(&world, seed, memory, habits);
    for (int i = 0; i < 3000; i++)
        world_step(&world, true);
    long quiet = 0;
    while (world_step(&world, false))
        if (++quiet > 2000000)
            fail_msg("seed %llu: the world does not come to rest", (unsigned long long)seed);
    if (world.suspends)
        resume_all(&world);
    check_quiet(&world, seed);
    for (uint32_t c = 0; c < world.client_count; c++)
        if (world.clients[c].alive)
            world_kill_client(&world, c);
    while (world_step(&world, false))
        ;
    check_empty(&world, seed);
    sum.launches += world.launches;
    sum.shards += world.shards;
    sum.failures += world.failures;
    sum.kills += world.kills;
    sum.client_deaths += world.client_deaths;
    sum.memory_failures += world.memory_failures;
    sum.lost_failures += world.lost_failures;
    sum.head_deaths += world.head_deaths;
    sum.kept += world.kept;
    sum.refused += world.refused;
    sum.breaks += world.breaks;
    sum.suspended += world.suspended;
    sum.not_suspended += world.not_suspended;
    sum.resumed += world.resumed;
    sum.not_resumed += world.not_resumed;
    sum.moved += world.moved;
    sum.spills += world.spills;
    sum.fills += world.fills;
    if (world.calm && world.spoiled)
        fail_msg("seed %llu: %llu values were lost, and nobody had died", (unsigned long long)seed,
                 (unsigned long long)world.spoiled);
    world_end(&world);
}

static uint64_t seeds(uint64_t least)
{
    const char *asked = getenv("FLOW_SEEDS");
    return asked ? strtoull(asked, NULL, 10) : least;
}

static uint64_t first_seed(void)
{
    const char *asked = getenv("FLOW_SEED");
    return asked ? strtoull(asked, NULL, 10) : 1;
}

static void breaks_and_comes_to_rest(void **state)
{
    memset(&sum, 0, sizeof sum);
    for (uint64_t seed = first_seed(); seed <= seeds(60); seed++)
        run_seed(seed, ample, 0);
    printf(
        "# %llu launches, %llu shards right, %llu failures (%llu lost), %llu hosts and %llu clients killed\n",
        (unsigned long long)sum.launches, (unsigned long long)sum.shards, (unsigned long long)sum.failures,
        (unsigned long long)sum.lost_failures, (unsigned long long)sum.kills,
        (unsigned long long)sum.client_deaths);
    assert_true(sum.launches > 1000 && sum.shards > 1000 && sum.lost_failures > 10 && sum.kills > 50);
}

static void heads_are_killed(void **state)
{
    memset(&sum, 0, sizeof sum);
    for (uint64_t seed = first_seed(); seed <= seeds(60); seed++)
        run_seed(seed, seed % 4 ? ample : tight, WORLD_KILLS_HEADS);
    printf("# %llu launches, %llu shards right, %llu failures; %llu heads killed, %llu values told again, "
           "%llu workers refused, %llu connections broken\n",
           (unsigned long long)sum.launches, (unsigned long long)sum.shards, (unsigned long long)sum.failures,
           (unsigned long long)sum.head_deaths, (unsigned long long)sum.kept, (unsigned long long)sum.refused,
           (unsigned long long)sum.breaks);
    assert_true(sum.launches > 1000 && sum.shards > 1000 && sum.head_deaths > 100 && sum.kept > 1000);
}

static void memory_nearly_full(void **state)
{
    memset(&sum, 0, sizeof sum);
    for (uint64_t seed = first_seed(); seed <= seeds(60); seed++)
        run_seed(seed, tight, 0);
    printf("# %llu launches, %llu shards right, %llu failures, %llu for memory\n",
           (unsigned long long)sum.launches, (unsigned long long)sum.shards, (unsigned long long)sum.failures,
           (unsigned long long)sum.memory_failures);
    assert_true(sum.launches > 1000 && sum.memory_failures > 10);
}

static void print_spills(void)
{
    printf(
        "# %llu launches, %llu shards right, %llu failures, %llu for memory; %llu shards of values spilled, "
        "%llu filled\n",
        (unsigned long long)sum.launches, (unsigned long long)sum.shards, (unsigned long long)sum.failures,
        (unsigned long long)sum.memory_failures, (unsigned long long)sum.spills,
        (unsigned long long)sum.fills);
}

/* With host memory as well, more launches run, and back-pressure stays where both are full. */
static void values_are_spilled(void **state)
{
    memset(&sum, 0, sizeof sum);
    for (uint64_t seed = first_seed(); seed <= seeds(60); seed++)
        run_seed(seed, tight, 0);
    uint64_t without = sum.memory_failures;
    memset(&sum, 0, sizeof sum);
    for (uint64_t seed = first_seed(); seed <= seeds(60); seed++)
        run_seed(seed, spills, 0);
    print_spills();
    printf("# %llu for memory without host memory\n", (unsigned long long)without);
    assert_true(sum.launches > 1000 && sum.shards > 1000 && sum.spills > 1000 && sum.fills > 200);
    assert_true(sum.memory_failures > 0 && sum.memory_failures < without);
}

/* Heads that die in the middle of it, hosts, and clients that are suspended. */
static void values_are_spilled_while_all_breaks(void **state)
{
    memset(&sum, 0, sizeof sum);
    for (uint64_t seed = first_seed(); seed <= seeds(60); seed++)
        run_seed(seed, seed % 2 ? spills : full,
                 seed % 3 ? WORLD_KILLS_HEADS | WORLD_SUSPENDS : WORLD_KILLS_HEADS);
    print_spills();
    assert_true(sum.launches > 1000 && sum.shards > 1000 && sum.spills > 500 && sum.fills > 50 &&
                sum.head_deaths > 100 && sum.kills > 50 && sum.suspended > 10);
}

/* As long as nobody dies, spilling loses nothing, beside suspensions either. */
static void spilling_loses_nothing(void **state)
{
    memset(&sum, 0, sizeof sum);
    for (uint64_t seed = first_seed(); seed <= seeds(40); seed++)
        run_seed(seed, spills, seed % 2 ? WORLD_IS_CALM | WORLD_SUSPENDS : WORLD_IS_CALM);
    print_spills();
    assert_true(sum.shards > 1000 && sum.spills > 1000 && sum.fills > 200 && sum.suspended > 10);
}

static void clients_are_suspended(void **state)
{
    memset(&sum, 0, sizeof sum);
    for (uint64_t seed = first_seed(); seed <= seeds(60); seed++)
        run_seed(seed, seed % 4 ? ample : tight,
                 seed % 2 ? WORLD_SUSPENDS : WORLD_SUSPENDS | WORLD_KILLS_HEADS);
    printf(
        "# %llu launches, %llu shards right, %llu failures; %llu suspensions, %llu given up, %llu resumed, "
        "%llu without room, %llu values moved\n",
        (unsigned long long)sum.launches, (unsigned long long)sum.shards, (unsigned long long)sum.failures,
        (unsigned long long)sum.suspended, (unsigned long long)sum.not_suspended,
        (unsigned long long)sum.resumed, (unsigned long long)sum.not_resumed, (unsigned long long)sum.moved);
    assert_true(sum.launches > 1000 && sum.shards > 1000 && sum.suspended > 50 && sum.not_suspended > 10 &&
                sum.resumed > 50 && sum.moved > 100);
}

/* As long as nobody dies, a client that is suspended and resumed loses nothing. */
static void suspension_loses_nothing(void **state)
{
    memset(&sum, 0, sizeof sum);
    for (uint64_t seed = first_seed(); seed <= seeds(40); seed++)
        run_seed(seed, ample, WORLD_SUSPENDS | WORLD_IS_CALM);
    printf(
        "# %llu launches, %llu shards right, %llu failures; %llu suspensions, %llu given up, %llu resumed, "
        "%llu values moved\n",
        (unsigned long long)sum.launches, (unsigned long long)sum.shards, (unsigned long long)sum.failures,
        (unsigned long long)sum.suspended, (unsigned long long)sum.not_suspended,
        (unsigned long long)sum.resumed, (unsigned long long)sum.moved);
    assert_true(sum.shards > 1000 && sum.suspended > 50 && sum.resumed > 50 && sum.moved > 100);
}

static void seeds_that_found_something(void **state)
{
    /* A host dies while a value is put to it and to another one, the connection to which breaks. */
    run_seed(163, ample, 0);
    run_seed(73, tight, 0);
    /* Data of a launch arrives when its head, its client and its sender are dead, and no head tells of it. */
    run_seed(145, ample, WORLD_KILLS_HEADS);
    /* A client's connection breaks while it puts a value to a host that has yet to come to the next head. */
    run_seed(1406, ample, WORLD_KILLS_HEADS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(breaks_and_comes_to_rest),   cmocka_unit_test(memory_nearly_full),
        cmocka_unit_test(values_are_spilled),         cmocka_unit_test(values_are_spilled_while_all_breaks),
        cmocka_unit_test(spilling_loses_nothing),     cmocka_unit_test(heads_are_killed),
        cmocka_unit_test(clients_are_suspended),      cmocka_unit_test(suspension_loses_nothing),
        cmocka_unit_test(seeds_that_found_something),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
