/* Plans: whatever is offered, damaged or not, the newest checkpoint that has a source for every rank is
 * found, nothing of another one gets into it, and the load is spread. */
#include "job/gang.h"

#include "job/gang/plan.h"

#define WORLD_MAX  12
#define OFFERS_MAX 400

struct scene {
    uint32_t world;
    uint64_t machines[WORLD_MAX], keys[WORLD_MAX];
    struct plan_offer offers[OFFERS_MAX];
    size_t count;
};

static struct plan_input input_of(const struct scene *scene)
{
    return (struct plan_input){.world = scene->world,
                               .machines = scene->machines,
                               .keys = scene->keys,
                               .offers = scene->offers,
                               .count = scene->count};
}

static void give(struct scene *scene, uint32_t holder, uint64_t step, uint32_t rank, uint64_t key,
                 enum offer_place place)
{
    assert_true(scene->count < OFFERS_MAX);
    scene->offers[scene->count++] = (struct plan_offer){.offer = {.step = step,
                                                                  .attempt = 0,
                                                                  .rank = rank,
                                                                  .world = scene->world,
                                                                  .key = key,
                                                                  .len = 10,
                                                                  .place = (uint8_t)place},
                                                        .holder = holder};
}

/* Each rank on a machine of its own, each with its own bytes of steps 10 and 20. */
static struct scene simple(uint32_t world)
{
    struct scene scene = {.world = world};
    for (uint32_t rank = 0; rank < world; rank++) {
        scene.machines[rank] = 100 + rank;
        give(&scene, rank, 10, rank, 0, OFFER_SLOT);
        give(&scene, rank, 20, rank, 0, OFFER_SLOT);
    }
    return scene;
}

static void test_newest_of_all(void **unused)
{
    struct scene scene = simple(4);
    struct plan_input input = input_of(&scene);
    struct plan_choice choice;
    uint32_t sources[WORLD_MAX];
    assert_int_equal(plan_make(&input, sources, &choice), PLAN_FOUND);
    assert_true(choice.step == 20 && !choice.stored);
    for (uint32_t rank = 0; rank < 4; rank++)
        assert_int_equal(scene.offers[sources[rank]].holder, rank);
    scene.offers[5].struck = true; /* step 20 of rank 2 */
    assert_int_equal(plan_make(&input, sources, &choice), PLAN_FOUND);
    assert_true(choice.step == 10);
    scene.offers[0].struck = true; /* step 10 of rank 0 */
    assert_int_equal(plan_make(&input, sources, &choice), PLAN_INCOMPLETE);
    assert_true(choice.step == 20 && choice.missing == 1 && choice.missing_first == 2);
    scene.count = 0;
    input = input_of(&scene);
    assert_int_equal(plan_make(&input, sources, &choice), PLAN_INCOMPLETE);
    assert_int_equal(choice.missing, 0);
}

/* Own memory before the machine's, that before another machine's, that before storage. */
static void test_preference(void **unused)
{
    struct scene scene = {.world = 2, .machines = {7, 8}};
    struct plan_choice choice;
    uint32_t sources[WORLD_MAX];
    static const enum offer_place places[] = {OFFER_STORED, OFFER_COPY, OFFER_SLOT};
    for (uint32_t i = 0; i < 3; i++) {
        struct plan_input input;
        give(&scene, 0, 10, 0, 0, OFFER_SLOT);
        give(&scene, i == 2 ? 1 : i == 1 ? 0 : 1, 10, 1, 0, places[i]);
        input = input_of(&scene);
        assert_int_equal(plan_make(&input, sources, &choice), PLAN_FOUND);
        assert_int_equal(scene.offers[sources[1]].offer.place, places[i]);
        assert_int_equal(choice.stored, false);
    }
}

/* Two of 64 replicas are left, each on a machine: each serves half of the others. */
static void test_replicas(void **unused)
{
    enum { WORLD = 64 };
    uint64_t machines[WORLD], keys[WORLD];
    struct plan_offer offers[2] = {
        {.offer = {.step = 5, .rank = 3, .world = WORLD, .key = 9}, .holder = 3},
        {.offer = {.step = 5, .rank = 40, .world = WORLD, .key = 9}, .holder = 40}};
    uint32_t sources[WORLD], served[2] = {0};
    struct plan_choice choice;
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        machines[rank] = rank;
        keys[rank] = 9;
    }
    struct plan_input input = {WORLD, machines, keys, offers, 2};
    assert_int_equal(plan_make(&input, sources, &choice), PLAN_FOUND);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        served[sources[rank]]++;
    assert_true(served[0] == 32 && served[1] == 32);
    assert_true(sources[3] == 0 && sources[40] == 1);
    keys[7] = 0; /* nobody knows what rank 7 is made of */
    assert_int_equal(plan_make(&input, sources, &choice), PLAN_INCOMPLETE);
    assert_true(choice.missing == 1 && choice.missing_first == 7);
}

/* A rank's own damaged shard still says what its replicas are. */
static void test_key_of_the_damaged(void **unused)
{
    struct scene scene = {.world = 2, .machines = {1, 2}};
    struct plan_choice choice;
    uint32_t sources[WORLD_MAX];
    give(&scene, 0, 10, 0, 77, OFFER_SLOT);
    give(&scene, 1, 10, 1, 77, OFFER_SLOT);
    scene.offers[1].struck = true;
    struct plan_input input = input_of(&scene);
    assert_int_equal(plan_make(&input, sources, &choice), PLAN_FOUND);
    assert_int_equal(sources[1], 0);
}

/* ---- anything that may be offered ---- */

static struct scene draw(uint32_t *seed)
{
    struct scene scene = {.world = 1 + gang_draw(seed, WORLD_MAX)};
    uint32_t machines = 1 + gang_draw(seed, scene.world), replicas = 1 + gang_draw(seed, 4);
    for (uint32_t rank = 0; rank < scene.world; rank++) {
        scene.machines[rank] = gang_draw(seed, machines);
        scene.keys[rank] = gang_draw(seed, 3) == 0 ? 0 : 1 + rank / replicas;
    }
    uint32_t count = gang_draw(seed, 10 * scene.world);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = gang_draw(seed, scene.world);
        uint64_t key = gang_draw(seed, 4) == 0 ? 0 : 1 + rank / replicas;
        give(&scene, gang_draw(seed, scene.world), gang_draw(seed, 4), rank, key,
             (enum offer_place)gang_draw(seed, OFFER_PLACES));
        struct plan_offer *last = &scene.offers[scene.count - 1];
        last->offer.attempt = gang_draw(seed, 2);
        last->offer.world = gang_draw(seed, 9) == 0 ? scene.world + 1 : scene.world;
        last->struck = gang_draw(seed, 8) == 0;
    }
    return scene;
}

/* The rule, as it is said in words. */
static bool serves(const struct scene *scene, const struct plan_offer *at, uint32_t rank)
{
    uint64_t own_key = 0;
    for (size_t i = 0; i < scene->count; i++) {
        const struct offer *offer = &scene->offers[i].offer;
        if (offer->step == at->offer.step && offer->attempt == at->offer.attempt && offer->rank == rank &&
            offer->world == scene->world && offer->key != 0)
            own_key = offer->key;
    }
    uint64_t key = own_key != 0 ? own_key : scene->keys[rank];
    if (at->struck)
        return false;
    if (at->offer.key != 0)
        return at->offer.key == key;
    return at->offer.rank == rank && at->offer.world == scene->world;
}

static bool is_whole(const struct scene *scene, uint64_t step, uint32_t attempt, bool memory_only)
{
    for (uint32_t rank = 0; rank < scene->world; rank++) {
        bool found = false;
        for (size_t i = 0; i < scene->count && !found; i++) {
            const struct plan_offer *at = &scene->offers[i];
            found = at->offer.step == step && at->offer.attempt == attempt && serves(scene, at, rank) &&
                    !(memory_only && !offer_in_memory(&at->offer));
        }
        if (!found)
            return false;
    }
    return true;
}

/* 0: own memory, 1: the machine's, 2: another one's, 3: storage. */
static int distance(const struct scene *scene, const struct plan_offer *at, uint32_t rank)
{
    if (!offer_in_memory(&at->offer))
        return 3;
    return at->holder == rank ? 0 : scene->machines[at->holder] == scene->machines[rank] ? 1 : 2;
}

/* Is the choice the rule's, and each source the nearest that its kind of shard has? */
static void check_sources(const struct scene *scene, const uint32_t *sources,
                          const struct plan_choice *choice)
{
    for (uint32_t rank = 0; rank < scene->world; rank++) {
        const struct plan_offer *source = &scene->offers[sources[rank]];
        assert_true(source->offer.step == choice->step && source->offer.attempt == choice->attempt);
        assert_true(serves(scene, source, rank));
        for (size_t i = 0; i < scene->count; i++) {
            const struct plan_offer *at = &scene->offers[i];
            if (at->offer.step == choice->step && at->offer.attempt == choice->attempt &&
                at->offer.key == source->offer.key && serves(scene, at, rank))
                assert_true(distance(scene, at, rank) >= distance(scene, source, rank));
        }
    }
}

/* Is the one to go back to the newest that is whole below `key` = step * 2 + attempt? */
static void check_older(const struct scene *scene, const struct plan_choice *choice, uint64_t key)
{
    bool found = false;
    while (key-- > 0 && !found) {
        found = is_whole(scene, key / 2, (uint32_t)(key % 2), false);
        if (found)
            assert_true(choice->older_step == key / 2 && choice->older_attempt == key % 2);
    }
    assert_int_equal(choice->any_older, found);
}

static void test_any_offers(void **unused)
{
    uint32_t seed = 4711, found_count = 0;
    for (int trial = 0; trial < 4000; trial++) {
        struct scene scene = draw(&seed);
        struct plan_input input = input_of(&scene);
        for (;;) { /* until the last offer is struck, or nothing is whole */
            uint32_t sources[WORLD_MAX];
            struct plan_choice choice;
            bool found = false;
            enum plan_result result = plan_make(&input, sources, &choice);
            for (uint64_t key = 8; key-- > 0 && !found;) {
                found = is_whole(&scene, key / 2, (uint32_t)(key % 2), false);
                if (found)
                    assert_true(result == PLAN_FOUND && choice.step == key / 2 && choice.attempt == key % 2);
            }
            assert_int_equal(result, found ? PLAN_FOUND : PLAN_INCOMPLETE);
            if (!found)
                break;
            found_count++;
            check_sources(&scene, sources, &choice);
            check_older(&scene, &choice, choice.step * 2 + choice.attempt);
            scene.offers[sources[gang_draw(&seed, scene.world)]].struck = true;
        }
    }
    assert_true(found_count > 2000);
}

/* ---- checkpoints of another world ---- */

enum { MEMBERS_MAX = 5 };

/* The shards that a world of `old` ranks has left, offered by ranks of another one, and parts of it in
 * storage. */
static struct scene draw_left(uint32_t *seed, uint32_t old, uint32_t members)
{
    struct scene scene = {.world = old};
    uint32_t replicas = 1 + gang_draw(seed, 3), count = gang_draw(seed, 8 * old);
    for (uint32_t i = 0; i < count; i++) {
        bool stored = gang_draw(seed, 3) == 0;
        uint32_t holder = gang_draw(seed, members), rank = gang_draw(seed, old);
        give(&scene, holder, gang_draw(seed, 3), stored ? holder : rank,
             stored || gang_draw(seed, 9) == 0 ? 0 : 1 + rank / replicas, OFFER_COPY);
        struct plan_offer *last = &scene.offers[scene.count - 1];
        last->struck = gang_draw(seed, 8) == 0;
        if (stored) {
            last->offer.place = OFFER_SHARE;
            last->offer.world = members;
            last->offer.len = gang_draw(seed, 9) == 0 ? old + 1 : old;
        }
    }
    for (uint32_t rank = 0; rank < old; rank++)
        scene.keys[rank] = gang_draw(seed, 3) == 0 ? 0 : 1 + rank / replicas;
    return scene;
}

/* In memory, or, where it is nowhere there, in storage. */
static bool gives(const struct scene *scene, uint32_t members, const struct plan_offer *at, uint32_t rank)
{
    if (offer_in_memory(&at->offer))
        return at->offer.key != 0 && serves(scene, at, rank);
    return !at->struck && at->offer.rank == rank % members && at->offer.len == scene->world;
}

static bool has_part(const struct scene *scene, uint32_t members, uint64_t step, uint32_t rank, bool memory)
{
    for (size_t i = 0; i < scene->count; i++)
        if (scene->offers[i].offer.step == step && gives(scene, members, &scene->offers[i], rank) &&
            (!memory || offer_in_memory(&scene->offers[i].offer)))
            return true;
    return false;
}

static bool can_be_cut(const struct scene *scene, uint32_t members, uint64_t step)
{
    for (uint32_t rank = 0; rank < scene->world; rank++)
        if (!has_part(scene, members, step, rank, false))
            return false;
    return true;
}

static void test_cut(void **unused)
{
    uint32_t seed = 815, found_count = 0, mixed = 0;
    for (int trial = 0; trial < 4000; trial++) {
        uint32_t old = 1 + gang_draw(&seed, WORLD_MAX), members = 1 + gang_draw(&seed, MEMBERS_MAX);
        uint32_t sources[WORLD_MAX], in_memory = 0;
        struct scene scene = draw_left(&seed, old, members);
        struct plan_input input = {
            .world = old, .keys = scene.keys, .offers = scene.offers, .count = scene.count};
        struct plan_choice choice;
        int64_t step = 2;
        while (step >= 0 && !can_be_cut(&scene, members, (uint64_t)step))
            step--;
        enum plan_result result = plan_reshard(&input, members, sources, &choice);
        assert_int_equal(result, step >= 0 ? PLAN_FOUND : PLAN_INCOMPLETE);
        for (uint32_t rank = 0; result == PLAN_FOUND && rank < old; rank++) {
            const struct plan_offer *source = &scene.offers[sources[rank]];
            bool memory = offer_in_memory(&source->offer);
            assert_true(source->offer.step == (uint64_t)step && gives(&scene, members, source, rank));
            assert_true(memory || !has_part(&scene, members, (uint64_t)step, rank, true));
            in_memory += memory;
        }
        assert_true(result != PLAN_FOUND || choice.stored == (in_memory == 0));
        found_count += result == PLAN_FOUND;
        mixed += result == PLAN_FOUND && in_memory > 0 && in_memory < old;
    }
    assert_true(found_count > 500 && mixed > 100);
}

static void test_other_worlds(void **unused)
{
    struct scene scene = {.world = 4};
    give(&scene, 0, 10, 0, 7, OFFER_SLOT);
    give(&scene, 0, 10, 0, 7, OFFER_SLOT);
    give(&scene, 0, 10, 0, 7, OFFER_COPY);
    give(&scene, 0, 10, 0, 7, OFFER_SHARE);
    give(&scene, 0, 10, 0, 0, OFFER_SLOT); /* bytes */
    static const uint32_t worlds[] = {9, 4, 3, 5, 6};
    for (size_t i = 0; i < scene.count; i++)
        scene.offers[i].offer.world = worlds[i];
    struct plan_input input = input_of(&scene);
    assert_int_equal(plan_other_world(&input, 0), 3);
    assert_int_equal(plan_other_world(&input, 3), 9);
    assert_int_equal(plan_other_world(&input, 9), 0);
}

/* ---- dying checkpoints ---- */

/* `world` ranks in `copies` replicas that follow each other: rank i, i + world / copies, ... are the same. A
 * rank that is up to date has sealed its shard of its step; one that is in the middle of an update has not.
 * */
struct ttp {
    uint32_t world, copies;
    bool alive[WORLD_MAX], updated[WORLD_MAX];
    uint64_t step[WORLD_MAX];
};

static bool ttp_whole(const struct ttp *ttp, uint64_t lock_step)
{
    uint32_t offset = ttp->world / ttp->copies;
    for (uint32_t i = 0; i < offset; i++) {
        bool found = false;
        for (uint32_t rank = i; rank < ttp->world && !found; rank += offset)
            found = ttp->alive[rank] && ttp->updated[rank] && ttp->step[rank] == lock_step;
        if (!found)
            return false;
    }
    return true;
}

static void test_dump_rule(void **unused)
{
    uint32_t seed = 99, found_count = 0, refused_count = 0;
    for (int trial = 0; trial < 4000; trial++) {
        struct ttp ttp = {.copies = 1 + gang_draw(&seed, 3)};
        struct scene scene = {0};
        uint64_t lock_step = 0;
        uint32_t alive = 0;
        ttp.world = scene.world = ttp.copies * (1 + gang_draw(&seed, 4));
        uint32_t offset = ttp.world / ttp.copies, loads[WORLD_MAX] = {0}, sources[WORLD_MAX];
        for (uint32_t rank = 0; rank < ttp.world; rank++) {
            ttp.alive[rank] = gang_draw(&seed, 3) != 0;
            ttp.updated[rank] = gang_draw(&seed, 6) != 0;
            ttp.step[rank] = 30 + (gang_draw(&seed, 8) == 0);
            scene.keys[rank] = 1 + rank % offset;
            if (!ttp.alive[rank] || !ttp.updated[rank])
                continue;
            give(&scene, alive++, ttp.step[rank], rank, 1 + rank % offset, OFFER_SLOT);
            lock_step = ttp.step[rank] > lock_step ? ttp.step[rank] : lock_step;
        }
        struct plan_input input = input_of(&scene);
        struct plan_choice choice;
        enum plan_result result = plan_dump(&input, NULL, sources, &choice);
        bool whole = alive > 0 && ttp_whole(&ttp, lock_step);
        uint64_t step = whole ? lock_step : 30; /* what came before the lock step may be whole, too */
        whole = whole || (alive > 0 && ttp_whole(&ttp, 30));
        assert_int_equal(result, whole ? PLAN_FOUND : PLAN_INCOMPLETE);
        refused_count += !whole && alive > 0;
        if (!whole)
            continue;
        found_count++;
        assert_int_equal(choice.step, step);
        for (uint32_t rank = 0; rank < ttp.world; rank++) {
            const struct plan_offer *from = &scene.offers[sources[rank]];
            assert_true(from->offer.step == step && from->offer.rank % offset == rank % offset);
            loads[from->holder]++;
        }
        for (uint32_t i = 0; ttp.copies > 1 && i < alive; i++) /* its own and a fair part of the lost ones' */
            assert_true(loads[i] <= ttp.copies);
        struct offer stored = {.step = step};
        assert_int_equal(plan_dump(&input, &stored, sources, &choice),
                         step == 30 && lock_step == 31 && ttp_whole(&ttp, 31) ? PLAN_FOUND : PLAN_INCOMPLETE);
    }
    assert_true(found_count > 500 && refused_count > 500);
}

/* A missing region is named, and storage is no source. */
static void test_dump_refused(void **unused)
{
    struct scene scene = {.world = 3};
    struct plan_choice choice;
    uint32_t sources[WORLD_MAX];
    give(&scene, 0, 20, 0, 0, OFFER_SLOT);
    give(&scene, 1, 20, 1, 0, OFFER_COPY);
    give(&scene, 1, 20, 2, 0, OFFER_STORED);
    struct plan_input input = input_of(&scene);
    assert_int_equal(plan_dump(&input, NULL, sources, &choice), PLAN_INCOMPLETE);
    assert_true(choice.step == 20 && choice.missing == 1 && choice.missing_first == 2);
    give(&scene, 0, 20, 2, 0, OFFER_COPY);
    input = input_of(&scene);
    assert_int_equal(plan_dump(&input, NULL, sources, &choice), PLAN_FOUND);
    assert_true(sources[0] == 0 && sources[1] == 1 && sources[2] == 3);
}

/* ---- keys ---- */

static void test_extended_keys(void **unused)
{
    uint64_t four[] = {5, 6, 5, 6}, out[8];
    plan_extend_keys(four, 4, out, 8);
    for (uint32_t rank = 0; rank < 8; rank++)
        assert_int_equal(out[rank], 5 + rank % 2);
    plan_extend_keys(four, 4, out, 2);
    assert_true(out[0] == 5 && out[1] == 6);
    plan_extend_keys(four, 4, out, 3); /* no whole number of replicas */
    assert_true(out[0] == 0 && out[2] == 0);
    plan_extend_keys(four, 2, out, 4); /* one replica: what a second one is, nobody knows */
    assert_true(out[0] == 0 && out[3] == 0);
    plan_extend_keys(four, 4, four, 4);
    assert_true(four[0] == 5 && four[3] == 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_of_all), cmocka_unit_test(test_preference),
        cmocka_unit_test(test_replicas),      cmocka_unit_test(test_key_of_the_damaged),
        cmocka_unit_test(test_any_offers),    cmocka_unit_test(test_cut),
        cmocka_unit_test(test_other_worlds),  cmocka_unit_test(test_dump_rule),
        cmocka_unit_test(test_dump_refused),  cmocka_unit_test(test_extended_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
