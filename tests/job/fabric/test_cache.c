/* Folders of solved tables: what a rank keeps is what it finds, and whatever the folders of sixteen ranks
 * have, each rank a process on emulated chips, all load the same tables. */
#include "job/gang.h"

#include "base/arena.h"
#include "base/crc32c.h"
#include "core/fabric/pattern.h"
#include "job/fabric/cache.h"
#include "job/fabric/internal.h"
#include "sim/fabric/chips_serve.h"

enum { RANKS = 16, DARK = 5, MEMORY = 1 << 20 }; /* switch x5 joins nothing */

struct bed {
    struct gang gang;
    char chips[64], caches[64];
    pid_t emulator;
};

/* --- folders -------------------------------------------------------------------------------------------- */

static void make_torus(struct torus *ret_torus, uint32_t number)
{
    struct slice_shape shape = {.extent = {4, 4, 4}};
    torus_init(ret_torus, &shape);
    torus_kill_switch(ret_torus, pod_switch_at(number));
}

static void path_of(const struct bed *bed, uint32_t rank, char path[256])
{
    char key[PATTERN_KEY_MAX];
    struct torus torus;
    make_torus(&torus, DARK);
    pattern_key(&torus, key);
    snprintf(path, 256, "%s/%u/%s.route", bed->caches, rank, key);
    torus_done(&torus);
}

static struct buf read_file(const char *path)
{
    struct buf bytes = {0};
    char block[8192];
    FILE *file = fopen(path, "r");
    for (size_t len; file != NULL && (len = fread(block, 1, sizeof block, file)) > 0;)
        buf_add(&bytes, block, len);
    if (file != NULL)
        fclose(file);
    return bytes;
}

static void write_file(const char *path, const struct buf *bytes)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes->data, 1, bytes->len, file), bytes->len);
    assert_int_equal(fclose(file), 0);
}

static struct buf built_pattern(uint32_t number)
{
    struct torus torus;
    struct route route;
    struct buf bytes = {0};
    make_torus(&torus, number);
    assert_int_equal(route_build(&torus, &route, NULL), 0);
    pattern_pack(&torus, &route, &bytes);
    route_done(&route);
    torus_done(&torus);
    return bytes;
}

static void sum_again(struct buf *bytes)
{
    uint32_t sum = crc32c(0, bytes->data + 16, bytes->len - 16);
    for (uint32_t i = 0; i < 4; i++)
        bytes->data[12 + i] = (char)(sum >> 8 * i);
}

/* A pattern of the same links whose tables are as right as those that are built, and others. */
static struct buf other_pattern(void)
{
    struct torus torus;
    struct route route;
    struct proof proof;
    struct buf bytes = built_pattern(DARK);
    make_torus(&torus, DARK);
    for (size_t i = bytes.len; i-- > 24 + CUBE_CHIPS;) {
        char before = bytes.data[i];
        for (char port = 0; port < CHIP_PORTS; port++) {
            bytes.data[i] = port;
            sum_again(&bytes);
            if (port == before || pattern_routes(buf_str(&bytes), &torus, &route, &proof, NULL, NULL) < 0)
                continue;
            uint64_t digest = fabric_tables_digest(&route);
            route_done(&route);
            assert_int_equal(route_build(&torus, &route, NULL), 0);
            bool same = digest == fabric_tables_digest(&route);
            route_done(&route);
            if (same)
                continue;
            torus_done(&torus);
            return bytes;
        }
        bytes.data[i] = before;
    }
    fail_msg("every pattern of these links is the built one");
    return bytes;
}

static void everything_is_kept_and_read(void **state)
{
    char folder[] = "/tmp/phalanx-cache-XXXXXX", path[256], key[PATTERN_KEY_MAX];
    struct torus torus;
    struct route route;
    struct buf bytes = {0}, file = {0};
    struct error error = {0};
    assert_non_null(mkdtemp(folder));
    make_torus(&torus, DARK);
    assert_int_equal(route_build(&torus, &route, NULL), 0);
    assert_int_equal(route_cache_read(folder, &torus, &bytes, &error), ERROR_NOT_FOUND);
    assert_int_equal(route_cache_write("/nowhere", &torus, &route, &error), ERROR_IO);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(route_cache_write(folder, &torus, &route, &error), 0);
        buf_clear(&bytes);
        assert_int_equal(route_cache_read(folder, &torus, &bytes, &error), 0);
        file = built_pattern(DARK);
        assert_true(str_equal(buf_str(&bytes), buf_str(&file)));
        buf_done(&file);
    }
    pattern_key(&torus, key);
    snprintf(path, sizeof path, "%s/%s.route", folder, key);
    assert_int_equal(truncate(path, (off_t)pattern_size_max(&torus) + 1), 0);
    assert_int_equal(route_cache_read(folder, &torus, &bytes, &error), ERROR_LIMIT);
    assert_int_equal(unlink(path), 0); /* nothing else is left in the folder: */
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(route_cache_read(folder, &torus, &bytes, &error), ERROR_INVALID); /* it does not wait */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    buf_done(&bytes);
    route_done(&route);
    torus_done(&torus);
}

/* --- sixteen ranks -------------------------------------------------------------------------------------- */

/* The process of the emulated chips: serves until it is killed. */
static void emulate(const struct bed *bed, int ready)
{
    struct ocs_settings ports = {.a_ports = 64, .b_ports = 64};
    struct chips_serve_settings pod = {.folder = bed->chips, .cubes = 1, .memory_bytes = MEMORY};
    struct chips_serve *serve;
    if (chips_serve_open(&pod, &serve, NULL) < 0)
        _exit(1);
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        struct ocs *ocs = mem_alloc(sizeof *ocs);
        ocs_init(ocs, &ports);
        ocs_join(ocs, 1, 65, 0);
        ocs->dead = number == DARK;
        chips_serve_follow(serve, number, ocs);
    }
    struct pollfd *fds = mem_alloc(4096 * sizeof *fds);
    if (write(ready, "", 1) != 1)
        _exit(1);
    for (;;) {
        chips_serve_watch(serve, fds);
        if (poll(fds, chips_serve_fds(serve), -1) < 0)
            _exit(1);
        chips_serve_turn(serve, fds);
    }
}

static int set_up(void **state)
{
    struct bed *bed = mem_alloc(sizeof *bed);
    int ready[2];
    char byte, path[256];
    snprintf(bed->chips, sizeof bed->chips, "/tmp/phalanx-chips-XXXXXX");
    snprintf(bed->caches, sizeof bed->caches, "/tmp/phalanx-caches-XXXXXX");
    assert_true(mkdtemp(bed->chips) != NULL && mkdtemp(bed->caches) != NULL);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        snprintf(path, sizeof path, "%s/%u", bed->caches, rank);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    assert_int_equal(pipe(ready), 0);
    bed->emulator = fork();
    assert_true(bed->emulator >= 0);
    if (bed->emulator == 0)
        emulate(bed, ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    *state = bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    kill(bed->emulator, SIGKILL);
    waitpid(bed->emulator, NULL, 0);
    gang_remove_tree(bed->chips);
    gang_remove_tree(bed->caches);
    mem_free(bed);
    return 0;
}

/* The tables that the ranks are to find. */
struct run {
    const struct bed *bed;
    uint32_t anew;     /* bits: ranks that build their tables */
    uint32_t reroutes; /* after the first bringing-up */
    int without;       /* a rank without a folder; -1: none */
    int missing;       /* a rank whose folder does not exist; 0: none */
    const char *notes[RANKS];
};

static int take_part(void *argument)
{
    const struct run *run = argument;
    struct phx_error error = {0};
    struct phx_fabric_about about;
    phx_fabric *fabric;
    char network[128], folder[128];
    phx_context *ctx = gang_join();
    uint32_t rank = phx_rank(ctx);
    int64_t value = 1 + (int64_t)rank;
    snprintf(network, sizeof network, "emulated:%s/0-%u", run->bed->chips, rank);
    snprintf(folder, sizeof folder, "%s/%u", run->bed->caches, rank);
    if (run->without == (int)rank)
        folder[0] = '\0';
    if (run->missing == (int)rank && rank > 0)
        snprintf(folder, sizeof folder, "%s/none", run->bed->caches);
    struct phx_fabric_options options = {.size = sizeof options, .chips = network, .route_cache = folder};
    EXPECT(phx_fabric_open(ctx, &options, &fabric, &error) == 0);
    EXPECT(phx_fabric_sum(fabric, &value, 1, PHX_I64, &error) == 0 && value == RANKS * (RANKS + 1) / 2);
    phx_fabric_get(fabric, &about);
    snprintf(error.message, sizeof error.message, "cached %d, %u reroutes, %.200s", about.cached,
             about.reroutes, about.cache_note);
    EXPECT(about.cached == !(run->anew >> rank & 1) && about.reroutes == run->reroutes);
    const char *note = run->notes[rank] != NULL ? run->notes[rank] : "";
    while (run->missing == (int)rank && rank > 0 && about.cache_note[0] == '\0')
        phx_fabric_get(fabric, &about); /* a thread finds that out */
    EXPECT(note[0] == '\0' ? about.cache_note[0] == '\0' : strstr(about.cache_note, note) != NULL);
    EXPECT(phx_fabric_close(fabric, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

/* All ranks bring the network up and sum; the folders then have what is built. */
static void bring_up(struct bed *bed, struct run *run)
{
    run->bed = bed;
    gang_init(&bed->gang, RANKS);
    bed->gang.slice = "4x4x4";
    gang_run(&bed->gang, take_part, run);
    gang_done(&bed->gang);
    struct buf right = built_pattern(DARK);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        char path[256];
        path_of(bed, rank, path);
        struct buf bytes = read_file(path);
        if (run->without != (int)rank && !str_equal(buf_str(&bytes), buf_str(&right)))
            fail_msg("%s has other tables than those that are built", path);
        buf_done(&bytes);
    }
    buf_done(&right);
}

static void put_pattern(const struct bed *bed, uint32_t rank, struct buf bytes)
{
    char path[256];
    path_of(bed, rank, path);
    write_file(path, &bytes);
    buf_done(&bytes);
}

static const uint32_t all_ranks = (1u << RANKS) - 1;

static void what_was_built_once_is_found(void **state)
{
    bring_up(*state, &(struct run){.anew = all_ranks, .without = -1});
    bring_up(*state, &(struct run){.without = -1});
    bring_up(*state, &(struct run){.anew = 1u << 2, .without = 2});
    bring_up(*state,
             &(struct run){.anew = 1u << 4, .without = -1, .missing = 4, .notes = {[4] = "No such file"}});
}

static void files_that_are_damaged_or_foreign_are_not_used(void **state)
{
    const struct bed *bed = *state;
    char path[256];
    bring_up(*state, &(struct run){.anew = all_ranks, .without = -1});
    struct buf damaged = built_pattern(DARK);
    damaged.data[damaged.len - 1] ^= 1;
    put_pattern(bed, 3, damaged);
    put_pattern(bed, 7, built_pattern(40)); /* of another axis */
    path_of(bed, 9, path);
    assert_int_equal(unlink(path), 0);
    struct buf broken = built_pattern(DARK); /* whole, but no way leads there */
    memset(broken.data + 24 + CUBE_CHIPS, 0, CUBE_CHIPS);
    sum_again(&broken);
    put_pattern(bed, 11, broken);
    bring_up(*state, &(struct run){.anew = 1u << 3 | 1u << 7 | 1u << 9 | 1u << 11,
                                   .without = -1,
                                   .notes = {[3] = "the checksum does not match",
                                             [7] = "of another shape or other dead links",
                                             [11] = "route pattern: "}});
    bring_up(*state, &(struct run){.without = -1});
}

/* Tables that are right, but not those of the other ranks: all ranks end with the same ones. */
static void ranks_with_other_tables_come_to_the_same(void **state)
{
    struct run anew = {.anew = all_ranks, .reroutes = 1, .without = -1};
    for (uint32_t rank = 0; rank < RANKS; rank++)
        anew.notes[rank] = "different tables";
    bring_up(*state, &(struct run){.anew = all_ranks, .without = -1});
    put_pattern(*state, 5, other_pattern());
    bring_up(*state, &anew);
    bring_up(*state, &(struct run){.without = -1});
    put_pattern(*state, 0, other_pattern());
    bring_up(*state, &anew);
    bring_up(*state, &(struct run){.without = -1});
}

/* --- ranks that cannot agree ---------------------------------------------------------------------------- */

static int differ(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    struct phx_fabric fabric = {.ctx = ctx, .rank = phx_rank(ctx), .world = 3, .generation = 1};
    uint64_t digest = 0xabc0 + (fabric.rank == 2);
    EXPECT(fabric_tables_agree(&fabric, digest, &error) == 0); /* no rank has a folder */
    fabric.cache.used = true;
    EXPECT(fabric_tables_agree(&fabric, digest, &error) == (fabric.rank == 2 ? FABRIC_AGAIN : 0));
    EXPECT(fabric.cache.distrusted == (fabric.rank == 2));
    EXPECT(phx_barrier(ctx, -1, &error) == 0);
    EXPECT(fabric_is_asked(&fabric, &error) == FABRIC_AGAIN); /* by a rank, of all */
    fabric.generation++;
    fabric.cache.is_off = true;
    EXPECT(fabric_tables_agree(&fabric, digest, &error) == (fabric.rank == 2 ? PHX_ERROR_INVALID : 0));
    if (fabric.rank == 2)
        EXPECT(strstr(error.message, "rank 2 built routing tables 000000000000abc1 and rank 0 "
                                     "000000000000abc0") != NULL);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void built_tables_that_differ_are_both_named(void **state)
{
    struct gang gang;
    gang_init(&gang, 3);
    gang_run(&gang, differ, NULL);
    gang_done(&gang);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_kept_and_read),
        cmocka_unit_test_setup_teardown(what_was_built_once_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_are_damaged_or_foreign_are_not_used, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranks_with_other_tables_come_to_the_same, set_up, tear_down),
        cmocka_unit_test(built_tables_that_differ_are_both_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
