/* Placement: properties on random clusters and gangs, checked against an independent count, and a few
 * stories. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/sched/capacity.h"
#include "core/sched/sched.h"
#include "core/sched/random_cluster.h"

enum { TASKS_MAX = 4096, JOBS_MAX = 8, MACHINES = 128 };

static struct taint random_taints[2] = {{STR("team"), STR("b"), STR("NoSchedule")},
                                        {STR("slow"), STR(""), STR("PreferNoSchedule")}};
static struct toleration team_b = {.key = STR("team"), .op = STR("Equal"), .value = STR("b")};
static struct label zone_label = {STR("zone"), STR("z1")};
static const struct labels zone_selector = {&zone_label, 1};

struct scene {
    struct cluster cluster;
    struct place_job jobs[JOBS_MAX];
    struct place_request request;
    machine_id prefer[JOBS_MAX][TASKS_MAX];
    machine_id avoid[2];
    uint64_t own[MACHINES];
    obj_id occupants[MACHINES];
    struct placement places[TASKS_MAX], again[TASKS_MAX];
    size_t tasks;
};

static obj_id occupant(const void *context, machine_id machine, obj_id job)
{
    const struct scene *scene = context;
    return scene->occupants[machine] != job ? scene->occupants[machine] : 0;
}

/* --- the oracle: written from the rules, not from the code --------------------------------------------- */

static bool in_list(const machine_id *list, size_t len, machine_id id)
{
    for (size_t i = 0; i < len; i++)
        if (list[i] == id)
            return true;
    return false;
}

static uint64_t oracle_fits(const struct scene *scene, const struct place_job *job, machine_id id,
                            bool spare_allowed)
{
    const struct machine *machine = &scene->cluster.machines[id];
    struct str zone;
    if (machine->state != MACHINE_READY || machine->cordoned || (machine->spare && !spare_allowed))
        return 0;
    if (job->node_selector && (!machine_label(machine, STR("zone"), &zone) || !str_is(zone, "z1")))
        return 0;
    if (machine->taint_count && str_is(machine->taints[0].effect, "NoSchedule") && !job->toleration_count)
        return 0;
    uint64_t free = machine->free_mask | (scene->request.own_chips ? scene->own[id] : 0);
    uint64_t count = job->chips ? (uint64_t)__builtin_popcountll(free) / job->chips : TASKS_MAX;
    if (machine->cpu_milli && job->cpu_milli) {
        uint64_t more = (uint64_t)((machine->cpu_milli - machine->cpu_used_milli) / job->cpu_milli);
        count = more < count ? more : count;
    }
    if (machine->memory_bytes && job->memory_bytes) {
        uint64_t more = (uint64_t)((machine->memory_bytes - machine->memory_used_bytes) / job->memory_bytes);
        count = more < count ? more : count;
    }
    return count;
}

/* --- random scenes ------------------------------------------------------------------------------------- */

static void random_job(struct rng *rng, struct scene *scene, size_t index, bool prefers)
{
    struct place_job *job = &scene->jobs[index];
    *job = (struct place_job){.count = (uint32_t)rng_below(rng, 12),
                              .chips = (uint32_t)rng_below(rng, 5),
                              .cpu_milli = rng_below(rng, 2) ? 1000 : 0,
                              .memory_bytes = rng_below(rng, 3) ? 0 : 300,
                              .job = index + 1};
    if (!rng_below(rng, 4))
        job->node_selector = &zone_selector;
    if (!rng_below(rng, 3)) {
        job->tolerations = &team_b;
        job->toleration_count = 1;
    }
    if (!prefers)
        return;
    for (uint32_t t = 0; t < job->count; t++)
        scene->prefer[index][t] =
            rng_below(rng, 3) ? (machine_id)rng_below(rng, scene->cluster.machine_count) : MACHINE_NONE;
    job->prefer = scene->prefer[index];
}

static void random_scene(struct rng *rng, struct scene *scene, size_t jobs)
{
    memset(scene, 0, sizeof *scene);
    random_cluster(rng, &scene->cluster);
    disturb(rng, &scene->cluster, random_taints);
    assert_true(scene->cluster.machine_count <= MACHINES);
    scene->request =
        (struct place_request){.jobs = scene->jobs, .job_count = jobs, .use_spares = rng_below(rng, 2)};
    bool prefers = rng_below(rng, 2);
    for (size_t j = 0; j < jobs; j++) {
        random_job(rng, scene, j, prefers);
        scene->tasks += scene->jobs[j].count;
    }
    if (rng_below(rng, 2)) {
        for (size_t i = 0; i < 2; i++)
            scene->avoid[i] = (machine_id)rng_below(rng, scene->cluster.machine_count);
        scene->request.avoid = scene->avoid;
        scene->request.avoid_count = 2;
    }
    if (rng_below(rng, 2)) { /* some of the taken chips are the gang's own */
        for (size_t i = 0; i < scene->cluster.machine_count; i++)
            scene->own[i] = rng_next(rng) & machine_all_chips(&scene->cluster.machines[i]) &
                            ~scene->cluster.machines[i].free_mask;
        scene->request.own_chips = scene->own;
    }
}

/* --- what holds for every answer ----------------------------------------------------------------------- */

/* Chips are the task's own, the machine may take it, capacities hold. */
static void check_sound(const struct scene *scene)
{
    uint64_t used[MACHINES] = {0};
    int64_t cpu[MACHINES] = {0}, memory[MACHINES] = {0};
    size_t at = 0;
    for (size_t j = 0; j < scene->request.job_count; j++)
        for (uint32_t t = 0; t < scene->jobs[j].count; t++, at++) {
            const struct place_job *job = &scene->jobs[j];
            struct placement place = scene->places[at];
            assert_true(place.machine < scene->cluster.machine_count);
            const struct machine *machine = &scene->cluster.machines[place.machine];
            uint64_t free = machine->free_mask | (scene->request.own_chips ? scene->own[place.machine] : 0);
            bool stays = job->prefer && job->prefer[t] == place.machine;
            assert_int_equal(__builtin_popcountll(place.chips), job->chips);
            assert_int_equal(place.chips & ~free, 0);
            assert_int_equal(place.chips & used[place.machine], 0);
            assert_true(oracle_fits(scene, job, place.machine, stays || scene->request.use_spares) > 0);
            used[place.machine] |= place.chips;
            cpu[place.machine] += job->cpu_milli;
            memory[place.machine] += job->memory_bytes;
            assert_true(!machine->cpu_milli || !cpu[place.machine] ||
                        cpu[place.machine] + machine->cpu_used_milli <= machine->cpu_milli);
            assert_true(!machine->memory_bytes || !memory[place.machine] ||
                        memory[place.machine] + machine->memory_used_bytes <= machine->memory_bytes);
        }
}

static bool place(struct scene *scene)
{
    struct buf why BUF_CLEANUP = {0}, why_again BUF_CLEANUP = {0};
    memset(scene->places, 0x77, sizeof scene->places);
    memset(scene->again, 0x77, sizeof scene->again);
    bool placed = sched_place(&scene->cluster, &scene->request, occupant, scene, scene->places, &why);
    assert_int_equal(
        placed, sched_place(&scene->cluster, &scene->request, occupant, scene, scene->again, &why_again));
    assert_memory_equal(scene->places, scene->again,
                        sizeof scene->places); /* deterministic; untouched if not placed */
    assert_true(str_equal(buf_str(&why), buf_str(&why_again)));
    assert_int_equal(placed, why.len == 0);
    if (placed)
        check_sound(scene);
    else
        assert_int_equal(scene->places[0].machine, 0x77777777);
    return placed;
}

static bool avoided(const struct scene *scene, machine_id id)
{
    return in_list(scene->request.avoid, scene->request.avoid_count, id);
}

/* Survivors keep their machines as far as these hold them; spares and machines to avoid come last. */
static void check_preferences(const struct scene *scene)
{
    const struct place_job *job = &scene->jobs[0];
    uint64_t wish[MACHINES] = {0}, kept[MACHINES] = {0}, all[MACHINES] = {0};
    bool plain_left = false, spare_left = false, new_on_spare = false, new_on_avoided = false;
    for (uint32_t t = 0; t < job->count; t++) {
        machine_id id = scene->places[t].machine, was = job->prefer ? job->prefer[t] : MACHINE_NONE;
        all[id]++;
        if (was != MACHINE_NONE && !avoided(scene, was))
            wish[was]++;
        if (was == id && !avoided(scene, id))
            kept[id]++;
        else if (avoided(scene, id))
            new_on_avoided = true;
        else if (scene->cluster.machines[id].spare)
            new_on_spare = true;
    }
    for (machine_id id = 0; id < scene->cluster.machine_count; id++) {
        uint64_t most = oracle_fits(scene, job, id, true);
        bool spare = scene->cluster.machines[id].spare;
        assert_true(kept[id] >= (wish[id] < most ? wish[id] : most));
        if (avoided(scene, id) || (spare && !scene->request.use_spares))
            continue;
        spare_left |= spare && all[id] < most;
        plain_left |= !spare && all[id] < most;
    }
    assert_false(new_on_spare && plain_left);
    assert_false(new_on_spare && !scene->request.use_spares);
    assert_false(new_on_avoided && (plain_left || spare_left));
}

/* One shape: the answer is exact. */
static void test_single(void **state)
{
    struct scene *scene = malloc(sizeof *scene);
    int placed_count = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        random_scene(&rng, scene, 1);
        const struct place_job *job = &scene->jobs[0];
        uint64_t room = 0, kept_on_spares = 0;
        for (machine_id id = 0; id < scene->cluster.machine_count; id++) {
            room += oracle_fits(scene, job, id, scene->request.use_spares);
            uint64_t wish = 0, most = oracle_fits(scene, job, id, true);
            for (uint32_t t = 0; job->prefer && t < job->count; t++)
                wish += job->prefer[t] == id && !avoided(scene, id);
            if (scene->cluster.machines[id].spare && !scene->request.use_spares)
                kept_on_spares += wish < most ? wish : most;
        }
        bool placed = place(scene);
        if (placed != (room + kept_on_spares >= job->count))
            fail_msg("seed %d: %d tasks, room for %d", (int)seed, (int)job->count, (int)room);
        if (placed)
            check_preferences(scene);
        placed ? placed_count++ : refused++;
        cluster_done(&scene->cluster);
    }
    assert_true(placed_count > 500 && refused > 500); /* the scenes are worth something */
    free(scene);
}

/* Several shapes: sound and deterministic. */
static void test_several(void **state)
{
    struct scene *scene = malloc(sizeof *scene);
    int placed_count = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        random_scene(&rng, scene, 1 + rng_below(&rng, JOBS_MAX));
        for (size_t j = 0; j < JOBS_MAX; j++) {
            scene->tasks -= scene->jobs[j].count - scene->jobs[j].count / 3;
            scene->jobs[j].count /= 3;
        }
        placed_count += place(scene);
        cluster_done(&scene->cluster);
    }
    assert_true(placed_count > 500);
    free(scene);
}

/* Tries every machine for every task: the truth about small scenes. */
static bool exhaustive(const struct scene *scene, uint32_t *chips, size_t job, uint32_t task, machine_id from)
{
    while (job < scene->request.job_count && task == scene->jobs[job].count) {
        job++;
        task = 0;
        from = 0;
    }
    if (job == scene->request.job_count)
        return true;
    const struct place_job *next = &scene->jobs[job];
    for (machine_id id = from; id < scene->cluster.machine_count; id++) {
        if (chips[id] < next->chips || !oracle_fits(scene, next, id, scene->request.use_spares))
            continue;
        chips[id] -= next->chips;
        bool found = exhaustive(scene, chips, job, task + 1, id);
        chips[id] += next->chips;
        if (found)
            return true;
    }
    return false;
}

/* Several shapes that compete for the same machines are a packing problem; the search is a heuristic with
 * two orders. It must find nearly all that an exhaustive search finds. */
static void test_quality(void **state)
{
    struct scene *scene = malloc(sizeof *scene);
    int possible = 0, missed = 0;
    for (uint64_t seed = 1; seed <= 5000; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        random_scene(&rng, scene, 2 + rng_below(&rng, 2));
        uint32_t chips[MACHINES];
        for (size_t i = 0; i < scene->cluster.machine_count; i++)
            chips[i] = (uint32_t)__builtin_popcountll(scene->cluster.machines[i].free_mask |
                                                      (scene->request.own_chips ? scene->own[i] : 0));
        bool small = scene->cluster.machine_count <= 12;
        for (size_t j = 0; j < scene->request.job_count; j++) {
            scene->jobs[j].count %= 4;
            scene->jobs[j].chips += !scene->jobs[j].chips;
            scene->jobs[j].cpu_milli = scene->jobs[j].memory_bytes = 0;
            scene->jobs[j].prefer = NULL;
        }
        if (small && exhaustive(scene, chips, 0, 0, 0)) {
            possible++;
            missed += !place(scene);
        }
        cluster_done(&scene->cluster);
    }
    print_message("%d of %d possible placements of several shapes missed\n", missed, possible);
    assert_true(possible > 300 && missed * 100 <= possible);
    free(scene);
}

/* A gang that fits in a block is in one block; in one pod if it fits there. */
static void test_locality(void **state)
{
    struct scene *scene = malloc(sizeof *scene);
    int blocks = 0, pods = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        random_scene(&rng, scene, 1);
        struct place_job *job = &scene->jobs[0];
        job->prefer = NULL;
        job->chips += !job->chips;
        scene->request.use_spares = false;
        scene->request.avoid_count = 0;
        for (size_t i = 0; i < scene->cluster.machine_count; i++)
            scene->cluster.machines[i].taint_count = 0;
        uint64_t block_room[64] = {0}, pod_room[8] = {0};
        bool block_fits = false, pod_fits = false;
        for (machine_id id = 0; id < scene->cluster.machine_count; id++) {
            const struct machine *machine = &scene->cluster.machines[id];
            uint64_t room = oracle_fits(scene, job, id, false);
            block_fits |= (block_room[machine->block] += room) >= job->count;
            pod_fits |= (pod_room[machine->pod] += room) >= job->count;
        }
        if (place(scene) && job->count) {
            const struct machine *first = &scene->cluster.machines[scene->places[0].machine];
            for (uint32_t t = 0; t < job->count; t++) {
                const struct machine *machine = &scene->cluster.machines[scene->places[t].machine];
                assert_true(!block_fits || machine->block == first->block);
                assert_true(!pod_fits || machine->pod == first->pod);
                assert_true(t == 0 ||
                            scene->places[t - 1].machine <= machine->id); /* ranks follow the hall */
            }
            blocks += block_fits;
            pods += pod_fits && !block_fits;
        }
        cluster_done(&scene->cluster);
    }
    assert_true(blocks > 100 && pods > 50);
    free(scene);
}

/* --- exclusive topology -------------------------------------------------------------------------------- */

static int larger_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

/* One shape of exclusive jobs over racks: exact too (sorted by size, each job must fit in the domain of
 * its rank). */
static bool oracle_exclusive(const struct scene *scene)
{
    uint64_t room[64] = {0}, need[JOBS_MAX] = {0};
    for (size_t b = 0; b < scene->cluster.block_count; b++) {
        const struct block *block = &scene->cluster.blocks[b];
        bool held = false;
        for (machine_id id = block->first; id < block->first + block->count; id++) {
            held |= scene->occupants[id] && scene->cluster.machines[id].task_count;
            room[b] += oracle_fits(scene, &scene->jobs[0], id, scene->request.use_spares);
        }
        room[b] = held ? 0 : room[b];
    }
    for (size_t j = 0; j < scene->request.job_count; j++)
        need[j] = scene->jobs[j].count;
    qsort(room, 64, sizeof *room, larger_first);
    qsort(need, JOBS_MAX, sizeof *need, larger_first);
    for (size_t j = 0; j < scene->request.job_count; j++)
        if (need[j] > room[j])
            return false;
    return true;
}

static void test_exclusive(void **state)
{
    struct scene *scene = malloc(sizeof *scene);
    int placed_count = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        random_scene(&rng, scene, 1 + rng_below(&rng, 5));
        for (size_t j = 0; j < scene->request.job_count; j++) {
            struct place_job shape = scene->jobs[0];
            shape.exclusive_topology = STR("phalanx.dev/rack");
            shape.count = 1 + (uint32_t)rng_below(&rng, 5);
            shape.job = 100 + j;
            shape.prefer = NULL;
            scene->jobs[j] = shape;
        }
        for (size_t i = 0; i < scene->cluster.machine_count; i++)
            if (scene->cluster.machines[i].task_count && rng_below(&rng, 2))
                scene->occupants[i] = 7;
        bool placed = place(scene);
        if (placed != oracle_exclusive(scene))
            fail_msg("seed %d: placed is %d", (int)seed, (int)placed);
        uint32_t owner[64] = {0};
        size_t at = 0;
        for (size_t j = 0; placed && j < scene->request.job_count; j++) {
            uint32_t block = scene->cluster.machines[scene->places[at].machine].block;
            assert_int_equal(owner[block], 0);
            owner[block] = 1;
            for (uint32_t t = 0; t < scene->jobs[j].count; t++, at++)
                assert_int_equal(scene->cluster.machines[scene->places[at].machine].block, block);
        }
        placed ? placed_count++ : refused++;
        cluster_done(&scene->cluster);
    }
    assert_true(placed_count > 300 && refused > 300);
    free(scene);
}

/* --- stories ------------------------------------------------------------------------------------------- */

#define HEAD "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n  addresses: 127.0.1.1\n"
#define SIX  HEAD "  pods: [{racks: [{machines: 6, chips: 4, spares: 1}]}]\n"

static obj_id holder(const void *context, machine_id machine)
{
    return machine < 2 ? 1 : 2;
}

static void holder_name(const void *context, machine_id machine, struct buf *out)
{
    buf_printf(out, machine < 2 ? "default/llm" : "team-b/x");
}

static bool ask(const struct cluster *cluster, struct place_request *request, struct placement *places,
                struct buf *why)
{
    buf_clear(why);
    request->holder = holder;
    request->holder_name = holder_name;
    return sched_place(cluster, request, NULL, NULL, places, why);
}

static void test_story(void **state)
{
    struct cluster cluster;
    struct buf why BUF_CLEANUP = {0};
    load_text(SIX, &cluster);
    make_ready(&cluster);
    struct place_job job = {.count = 4, .chips = 4};
    struct place_request request = {.jobs = &job, .job_count = 1};
    struct placement places[32];

    /* A gang of four lies on the first four machines, whole. */
    assert_true(ask(&cluster, &request, places, &why));
    for (machine_id i = 0; i < 4; i++) {
        assert_int_equal(places[i].machine, i);
        assert_int_equal(places[i].chips, 15);
        machine_take(&cluster.machines[i], places[i].chips, 0, 0);
    }
    /* Another one does not fit, and says why. */
    assert_false(ask(&cluster, &request, places, &why));
    assert_string_equal(why.data,
                        "needs 4 machines with 4 free google.com/tpu chips; 1 of 6 has them: 2 taken by "
                        "default/llm, 2 by team-b/x, 1 kept as spares (m-6)");
    /* m-2 dies: its task moves to m-5 and not to the spare, the others stay. */
    const machine_id before[] = {0, 1, 2, 3};
    uint64_t own[6] = {15, 15, 15, 15, 0, 0};
    machine_set_state(&cluster.machines[1], MACHINE_LOST, 0, 0);
    job.prefer = before;
    request.own_chips = own;
    request.use_spares = true;
    assert_true(ask(&cluster, &request, places, &why));
    assert_int_equal(places[0].machine, 0);
    assert_int_equal(places[1].machine, 4);
    assert_int_equal(places[2].machine, 2);
    /* m-5 is cordoned: now the spare. Without leave to use it the gang waits. */
    cluster.machines[4].cordoned = true;
    assert_true(ask(&cluster, &request, places, &why));
    assert_int_equal(places[1].machine, 5);
    request.use_spares = false;
    assert_false(ask(&cluster, &request, places, &why));
    assert_string_equal(why.data,
                        "needs 1 machine with 4 free google.com/tpu chips; 0 of 6 have them: 3 used by this "
                        "gang's other tasks (m-1, m-3, m-4), 1 drained (m-5), 1 lost (m-2), 1 kept as spares "
                        "(m-6)");
    /* A gang that can never fit is told apart from one that does not fit now. */
    job = (struct place_job){.count = 6, .chips = 4};
    assert_false(sched_feasible(&cluster, &request, NULL, &why));
    job.count = 5;
    assert_true(sched_feasible(&cluster, &request, NULL, &why));
    job = (struct place_job){.count = 1, .chips = 8};
    buf_clear(&why);
    assert_false(sched_feasible(&cluster, &request, NULL, &why));
    assert_string_equal(
        why.data, "needs 1 machine with 8 google.com/tpu chips; 0 of 6 have them: 6 with fewer chips in "
                  "all (m-1, m-2, m-3 and 3 more)");
    cluster_done(&cluster);
}

/* The replacement of a lost machine comes from the same block, else from the same pod, though others fit
 * better. */
static void test_near(void **state)
{
    struct cluster cluster;
    struct buf why BUF_CLEANUP = {0};
    load_text(
        "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n  addresses: 127.0.1.1\n"
        "  pods: [{racks: [{machines: 1, chips: 4}, {machines: 1, chips: 4}]},\n"
        "         {racks: [{machines: 2, chips: 4}, {machines: 5, chips: 4}, {machines: 1, chips: 4}]}]\n",
        &cluster);
    make_ready(&cluster);
    const machine_id before[] = {4, 5};
    struct place_job job = {.count = 2, .chips = 4, .prefer = before};
    struct place_request request = {.jobs = &job, .job_count = 1};
    struct placement places[2];
    machine_set_state(&cluster.machines[5], MACHINE_LOST, 0, 0);
    assert_true(ask(&cluster, &request, places, &why));
    assert_int_equal(places[0].machine, 4);
    assert_int_equal(places[1].machine, 6); /* in the rack of m-5, not in one of the racks with one machine */
    for (machine_id id = 6; id < 9; id++)
        machine_take(&cluster.machines[id], 15, 0, 0);
    assert_true(ask(&cluster, &request, places, &why));
    assert_int_equal(places[1].machine, 9); /* in the pod of m-5, in the rack where it fits best */
    job = (struct place_job){.count = 1, .chips = 4, .prefer = &before[1]};
    assert_true(ask(&cluster, &request, places, &why)); /* alone: still where it was */
    assert_int_equal(places[0].machine, 4);
    cluster_done(&cluster);
}

/* Small tasks share machines, in runs that leave large holes whole. */
static void test_packing(void **state)
{
    struct cluster cluster;
    struct buf why BUF_CLEANUP = {0};
    load_text(SIX, &cluster);
    make_ready(&cluster);
    struct place_job jobs[2] = {{.count = 6, .chips = 1}, {.count = 2, .chips = 2}};
    struct place_request request = {.jobs = jobs, .job_count = 2};
    struct placement places[8];
    machine_take(&cluster.machines[3], 1, 0, 0); /* three chips are left here: used up first */
    assert_true(ask(&cluster, &request, places, &why));
    uint64_t used[6] = {0};
    for (size_t i = 0; i < 8; i++)
        used[places[i].machine] |= places[i].chips;
    assert_int_equal(used[3], 14);
    int touched = 0;
    for (size_t i = 0; i < 6; i++)
        touched += used[i] != 0;
    assert_int_equal(touched, 3); /* ten chips: three on m-4, the rest on two more machines */
    for (size_t i = 6; i < 8; i++)
        assert_true(places[i].chips == 3 || places[i].chips == 12); /* aligned pairs */
    /* Tasks without chips go one to a machine. */
    struct place_job light = {.count = 5};
    struct place_request other = {.jobs = &light, .job_count = 1};
    assert_true(ask(&cluster, &other, places, &why));
    uint64_t seen = 0;
    for (size_t i = 0; i < 5; i++)
        seen |= UINT64_C(1) << places[i].machine;
    assert_int_equal(__builtin_popcountll(seen),
                     5 - 1); /* m-4 has a task already: somebody else gets a second */
    cluster_done(&cluster);
}

/* A constrained job finds its machines though a larger one could take them. */
static void test_orders(void **state)
{
    struct cluster cluster;
    struct buf why BUF_CLEANUP = {0};
    load_text(
        "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n  addresses: 127.0.1.1\n"
        "  pods: [{racks: [{machines: 2, chips: 4, labels: {zone: z1}}, {machines: 2, chips: 4}]}]\n",
        &cluster);
    make_ready(&cluster);
    struct place_job jobs[2] = {{.count = 2, .chips = 4},
                                {.count = 2, .chips = 3, .node_selector = &zone_selector}};
    struct place_request request = {.jobs = jobs, .job_count = 2};
    struct placement places[4];
    assert_true(ask(&cluster, &request, places, &why));
    assert_true(places[0].machine >= 2 && places[1].machine >= 2 && places[2].machine < 2 &&
                places[3].machine < 2);
    assert_true(sched_competes(&cluster, &request, &request));
    cluster_done(&cluster);
}

/* A domain held by another job keeps everybody else out; its own job comes back to it. */
static void test_owned(void **state)
{
    struct cluster cluster;
    struct buf why BUF_CLEANUP = {0};
    load_text(
        "apiVersion: phalanx.dev/v1\nkind: Cluster\nmetadata: {name: c}\nspec:\n  addresses: 127.0.1.1\n"
        "  pods: [{racks: [{machines: 2, chips: 4, count: 2}]}]\n",
        &cluster);
    make_ready(&cluster);
    struct place_job job = {.count = 1, .chips = 2, .job = 5};
    const obj_id owners[] = {9, 9, 0, 0};
    const machine_id before[] = {1};
    struct place_request request = {.jobs = &job, .job_count = 1, .domain_owner = owners};
    struct placement places[4];
    assert_true(ask(&cluster, &request, places, &why));
    assert_int_equal(places[0].machine, 2);
    job.count = 5;
    assert_false(ask(&cluster, &request, places, &why));
    assert_string_equal(
        why.data, "needs room for 5 tasks of 2 free google.com/tpu chips; there is room for 4 on 2 of 4 "
                  "machines: 2 held exclusively by other jobs (m-1, m-2)");
    job = (struct place_job){
        .count = 1, .chips = 2, .job = 9, .exclusive_topology = STR("phalanx.dev/rack"), .prefer = before};
    assert_true(ask(&cluster, &request, places, &why));
    assert_int_equal(places[0].machine, 1);
    cluster_done(&cluster);
}

static void test_taints(void **state)
{
    struct cluster cluster;
    struct buf why BUF_CLEANUP = {0};
    load_text(HEAD "  pods: [{racks: [{machines: 3, chips: 4}]}]\n", &cluster);
    make_ready(&cluster);
    struct taint taints[3] = {{STR("slow"), STR(""), STR("PreferNoSchedule")},
                              {STR("team"), STR("a"), STR("NoSchedule")},
                              {STR("bad"), STR(""), STR("NoExecute")}};
    for (size_t i = 0; i < 3; i++) {
        cluster.machines[i].taints = &taints[i];
        cluster.machines[i].taint_count = 1;
    }
    struct toleration tolerations[2] = {{.key = STR("team"), .value = STR("b")},
                                        {.op = STR("Exists"), .effect = STR("NoExecute")}};
    struct place_job job = {.count = 1, .chips = 4, .tolerations = tolerations, .toleration_count = 1};
    struct place_request request = {.jobs = &job, .job_count = 1};
    struct placement places[3];
    assert_true(ask(&cluster, &request, places, &why)); /* the soft one, when there is nothing else */
    assert_int_equal(places[0].machine, 0);
    job.count = 2;
    assert_false(ask(&cluster, &request, places, &why)); /* team b's toleration is not for team a */
    assert_non_null(strstr(why.data, "2 tainted (m-2, m-3)"));
    job.toleration_count = 2; /* any NoExecute */
    assert_true(ask(&cluster, &request, places, &why));
    assert_int_equal(places[1].machine, 2);
    job.count = 1;
    assert_true(ask(&cluster, &request, places, &why)); /* the soft taint is the last preference */
    assert_int_equal(places[0].machine, 2);
    tolerations[0].value = STR("a");
    job.count = 3;
    assert_true(ask(&cluster, &request, places, &why));
    cluster_done(&cluster);
}

static obj_id first_two_tenants(const void *context, machine_id machine, obj_id job)
{
    const obj_id *tenants = context; /* two a machine */
    for (size_t i = 0; i < 2; i++)
        if (tenants[machine * 2 + i] && tenants[machine * 2 + i] != job)
            return tenants[machine * 2 + i];
    return 0;
}

/* Exclusive jobs: the domain that fits best, all in one pod where one has enough, none where somebody else
 * is, and no other task of the same gang beside them. */
static void test_domains(void **state)
{
    struct cluster cluster;
    struct buf why BUF_CLEANUP = {0};
    load_text(
        HEAD
        "  pods: [{racks: [{machines: 2, chips: 4}]},\n"
        "         {racks: [{machines: 5, chips: 4}, {machines: 3, chips: 4}, {machines: 4, chips: 4}]}]\n",
        &cluster);
    make_ready(&cluster);
    struct place_job jobs[3] = {
        {.count = 2, .chips = 4, .exclusive_topology = STR("phalanx.dev/rack"), .job = 1},
        {.count = 2, .chips = 4, .exclusive_topology = STR("phalanx.dev/rack"), .job = 2},
        {.count = 4, .chips = 1, .job = 3}};
    struct place_request request = {.jobs = jobs, .job_count = 1};
    struct placement places[8];
    obj_id tenants[28] = {0};
    assert_true(sched_place(&cluster, &request, first_two_tenants, tenants, places, &why));
    assert_int_equal(places[0].machine, 0); /* two machines for two tasks */
    request.job_count = 3;
    assert_true(sched_place(&cluster, &request, first_two_tenants, tenants, places, &why));
    uint32_t one = cluster.machines[places[0].machine].block, two = cluster.machines[places[2].machine].block;
    assert_true(one == 2 && two == 3); /* the second pod has room for both; its smallest racks */
    for (size_t i = 4; i < 8; i++) {
        uint32_t block = cluster.machines[places[i].machine].block;
        assert_true(block != one && block != two);
    }
    machine_take(&cluster.machines[0], 1, 0, 0);
    tenants[0] = 1;
    request.job_count = 1;
    jobs[0].count = 1;
    assert_true(sched_place(&cluster, &request, first_two_tenants, tenants, places, &why));
    assert_int_equal(places[0].machine, 1); /* only itself so far */
    tenants[1] = 9; /* a stranger beside it: the rack stays job 1's, because a job is never split */
    assert_true(sched_place(&cluster, &request, first_two_tenants, tenants, places, &why));
    assert_int_equal(places[0].machine, 1);
    jobs[0].job = 4; /* another job does not get the rack; */
    assert_true(sched_place(&cluster, &request, first_two_tenants, tenants, places, &why));
    assert_int_equal(cluster.machines[places[0].machine].block, 2);
    tenants[0] = 0;
    assert_true(sched_place(&cluster, &request, first_two_tenants, tenants, places, &why));
    assert_int_equal(cluster.machines[places[0].machine].block, 2);
    jobs[0].count = 6;
    assert_false(sched_place(&cluster, &request, first_two_tenants, tenants, places, &why));
    assert_string_equal(
        why.data,
        "needs 1 domain of phalanx.dev/rack with room for 6 tasks of 4 google.com/tpu chips each; of 4 "
        "domains 1 is in use and 3 too small now (the roomiest takes 5); machines: 1 taken (m-1)");
    cluster_done(&cluster);
}

/* A task that stays keeps the chips that its gang holds there, and does not take a neighbour's free ones. */
static void test_own_chips(void **state)
{
    struct cluster cluster;
    struct buf why BUF_CLEANUP = {0};
    load_text(HEAD "  cpu: 4\n  pods: [{racks: [{machines: 2, chips: 4}]}]\n", &cluster);
    make_ready(&cluster);
    machine_take(&cluster.machines[1], 12, 3000, 0);
    const machine_id before[] = {1};
    const uint64_t own[] = {0, 12};
    const int64_t own_cpu[] = {0, 3000};
    struct place_job job = {.count = 1, .chips = 2, .cpu_milli = 3000, .prefer = before};
    struct place_request request = {.jobs = &job, .job_count = 1, .own_chips = own};
    struct placement places[1];
    assert_true(ask(&cluster, &request, places, &why));
    assert_int_equal(places[0].machine, 0); /* the cpu is said to be somebody's */
    request.own_cpu_milli = own_cpu;
    assert_true(ask(&cluster, &request, places, &why));
    assert_int_equal(places[0].machine, 1);
    assert_int_equal(places[0].chips, 12);
    cluster_done(&cluster);
}

/* --- kept capacity -------------------------------------------------------------------------------------- */

static struct label second_label = {STR("zone"), STR("z0")};
static const struct labels second_selector = {&second_label, 1};

static obj_id tenant(const void *context, machine_id machine)
{
    const struct scene *scene = context;
    return (obj_id)__builtin_popcountll(scene->cluster.machines[machine].free_mask);
}

static void tenant_name(const void *context, machine_id machine, struct buf *out)
{
    buf_printf(out, "default/tenant-%d", (int)tenant(context, machine));
}

/* A gang of one or a few jobs whose tasks are alike, of one of a few dozen shapes. */
static void plain_request(struct rng *rng, struct scene *scene)
{
    size_t jobs = 1 + rng_below(rng, 3);
    struct place_job like = {.chips = 1 + (uint32_t)rng_below(rng, 4),
                             .cpu_milli = rng_below(rng, 3) ? 0 : 1000,
                             .memory_bytes = rng_below(rng, 3) ? 0 : 300};
    if (!rng_below(rng, 4))
        like.node_selector = rng_below(rng, 2) ? &zone_selector : &second_selector;
    if (!rng_below(rng, 3)) {
        like.tolerations = &team_b;
        like.toleration_count = 1;
    }
    scene->tasks = 0;
    for (size_t j = 0; j < jobs; j++) {
        scene->jobs[j] = like;
        scene->jobs[j].job = j + 1;
        scene->jobs[j].count = (uint32_t)rng_below(rng, rng_below(rng, 3) ? 6 : 40);
        scene->tasks += scene->jobs[j].count;
    }
    scene->request =
        (struct place_request){.jobs = scene->jobs, .job_count = jobs, .use_spares = rng_below(rng, 2)};
    scene->request.holder = tenant;
    scene->request.holder_name = tenant_name;
}

/* Changes a machine at random, and tells the cluster of it as the core does. */
static void change_machine(struct rng *rng, struct scene *scene, uint64_t *taken)
{
    machine_id id = (machine_id)rng_below(rng, scene->cluster.machine_count);
    struct machine *machine = &scene->cluster.machines[id];
    struct machine_user user = machine_user(machine);
    switch (rng_below(rng, 6)) {
    case 0:
        machine_set_state(machine, machine->state == MACHINE_READY ? MACHINE_LOST : MACHINE_READY, 0, 0);
        break;
    case 1:
        machine->cordoned = !machine->cordoned;
        user.taints = &random_taints[rng_below(rng, 2)];
        user.taint_count = rng_below(rng, 2);
        machine_set_user(machine, &user);
        break;
    case 2:
        machine->suspect = !machine->suspect;
        machine_changed(machine);
        break;
    case 3:
        if (machine->task_count)
            machine_give(machine, taken[id], machine->cpu_used_milli, machine->memory_used_bytes);
        taken[id] = 0;
        break;
    default:
        if (machine->task_count)
            break;
        taken[id] = rng_next(rng) & machine->free_mask;
        machine_take(machine, taken[id], (int64_t)rng_below(rng, 3) * 1000, (int64_t)rng_below(rng, 500));
    }
}

/* The search that looks at every machine is the oracle: the same places, the same sentence. */
static bool alike_with_capacity(struct scene *scene, struct capacity *capacity)
{
    struct buf why BUF_CLEANUP = {0}, why_again BUF_CLEANUP = {0};
    memset(scene->places, 0, sizeof scene->places);
    memset(scene->again, 0, sizeof scene->again);
    bool placed = sched_place(&scene->cluster, &scene->request, NULL, scene, scene->places, &why);
    bool feasible = sched_feasible(&scene->cluster, &scene->request, scene, NULL);
    for (int time = 0; time < 2; time++) { /* a sentence may have been kept */
        scene->request.capacity = capacity;
        buf_clear(&why_again);
        assert_int_equal(
            placed, sched_place(&scene->cluster, &scene->request, NULL, scene, scene->again, &why_again));
        for (size_t t = 0; t < scene->tasks; t++)
            assert_true(scene->places[t].machine == scene->again[t].machine &&
                        scene->places[t].chips == scene->again[t].chips);
        assert_true(str_equal(buf_str(&why), buf_str(&why_again)));
        assert_int_equal(feasible, sched_feasible(&scene->cluster, &scene->request, scene, NULL));
    }
    return placed;
}

static void test_capacity(void **state)
{
    struct scene *scene = malloc(sizeof *scene);
    int placed_count = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct rng rng;
        uint64_t taken[MACHINES] = {0};
        struct capacity *capacity = capacity_new();
        rng_seed(&rng, seed);
        random_scene(&rng, scene, 1);
        cluster_done(&scene->cluster);
        random_cluster(&rng, &scene->cluster);
        for (int i = 0; i < 200; i++) {
            plain_request(&rng, scene);
            alike_with_capacity(scene, capacity) ? placed_count++ : refused++;
            for (uint64_t changes = rng_below(&rng, 4); changes; changes--)
                change_machine(&rng, scene, taken);
            if (!rng_below(&rng, 10))
                capacity_check(capacity, &scene->cluster); /* kept sums are those of a recount */
            if (!rng_below(&rng, 100))
                for (int c = 0; c < 70000; c++) /* the journal begins anew */
                    machine_changed(&scene->cluster.machines[0]);
        }
        capacity_free(capacity);
        cluster_done(&scene->cluster);
    }
    assert_true(placed_count > 5000 && refused > 5000);
    free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single),    cmocka_unit_test(test_several),   cmocka_unit_test(test_locality),
        cmocka_unit_test(test_exclusive), cmocka_unit_test(test_story),     cmocka_unit_test(test_packing),
        cmocka_unit_test(test_orders),    cmocka_unit_test(test_near),      cmocka_unit_test(test_taints),
        cmocka_unit_test(test_domains),   cmocka_unit_test(test_own_chips), cmocka_unit_test(test_quality),
        cmocka_unit_test(test_owned),     cmocka_unit_test(test_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
