/* Offers: what lies in a machine's folder is offered once, whoever left it; what is damaged or strange is
 * not; keys and machines. */
#include "job/gang.h"

#include <fcntl.h>

#include "job/checkpoint/held.h"
#include "job/gang/keys.h"
#include "job/link/machine.h"
#include "job/gang/offer.h"

static void hold(const char *dir, uint32_t rank, uint32_t world, uint32_t attempt, int slot, uint64_t step,
                 size_t len)
{
    struct held held;
    struct phx_error error;
    static char data[4000];
    memset(data, (int)('a' + rank), sizeof data);
    assert_int_equal(held_open(&held, dir, true, rank, world, attempt, &error), 0);
    struct iovec part = {data, len};
    assert_int_equal(held_copy(&held, slot, &part, 1, &error), 0);
    assert_int_equal(held_seal(&held, slot, step, len, 40 + rank, &error), 0);
    held_close(&held);
}

static void rename_in(const char *dir, const char *from, const char *to)
{
    char old[160], new[160];
    snprintf(old, sizeof old, "%s/%s", dir, from);
    snprintf(new, sizeof new, "%s/%s", dir, to);
    assert_int_equal(rename(old, new), 0);
}

static struct offer_list scan(const char *dir, uint32_t rank, uint32_t world, const uint64_t *machines)
{
    struct offer_list list = {0};
    struct offer_share share = offer_share_of(rank, world, machines);
    offer_scan(dir, &share, &list);
    return list;
}

/* Ranks 0 and 1 are here; 2 and 3 were, and rank 5 has sent a copy. */
static void test_folder(void **unused)
{
    struct gang gang;
    static const uint64_t machines[] = {1, 1, 2, 2};
    char path[160];
    size_t seen[6] = {0}, copies = 0, count = 0;
    gang_init(&gang, 1);
    for (uint32_t rank = 0; rank < 4; rank++)
        for (int slot = 0; slot < HELD_SLOTS; slot++)
            hold(gang.dir, rank, 4, 3, slot, 10 * ((uint64_t)slot + 1), 1000 + rank);
    hold(gang.dir, 5, 6, 2, 0, 20, 10);
    rename_in(gang.dir, "rank-5.0", "peer-5.1");
    rename_in(gang.dir, "rank-3.1", "rank-30.1"); /* says of whom it is, inside */
    snprintf(path, sizeof path, "%s/rank-7.0", gang.dir);
    assert_int_equal(symlink("rank-0.0", path), 0);
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct offer_list list = scan(gang.dir, rank, 4, machines);
        for (size_t i = 0; i < list.count; i++, count++) {
            const struct offer *offer = &list.items[i];
            uint8_t data[2000], bytes[OFFER_SIZE];
            struct offer back;
            struct phx_error error;
            assert_true(offer->rank >= 2 || offer->rank == rank);
            seen[offer->rank]++;
            copies += offer->place == OFFER_COPY;
            assert_int_equal(offer_read(gang.dir, offer, data, &error), 0);
            assert_true(data[0] == 'a' + offer->rank && data[offer->len - 1] == data[0]);
            offer_put(offer, bytes);
            assert_true(offer_get(bytes, &back) && back.step == offer->step && back.key == 40 + offer->rank &&
                        back.crc == offer->crc && back.slot == offer->slot && back.place == offer->place);
        }
    }
    for (uint32_t rank = 0; rank < 4; rank++)
        assert_int_equal(seen[rank], rank < 3 ? HELD_SLOTS : HELD_SLOTS - 1);
    assert_true(seen[5] == 1 && copies == 1 && count == 4 * HELD_SLOTS);
    assert_int_equal(scan("/nowhere", 0, 4, machines).count, 0);
    gang_done(&gang);
}

/* Sweeping removes slots of ranks that are here no more, of older attempts, and copies from another world. */
static void test_sweep(void **unused)
{
    struct gang gang;
    static const uint64_t machines[] = {1, 2};
    gang_init(&gang, 1);
    hold(gang.dir, 0, 2, 1, 0, 10, 10); /* its own */
    hold(gang.dir, 1, 2, 1, 0, 10, 10);
    rename_in(gang.dir, "rank-1.0", "peer-1.0"); /* the only one of this world elsewhere */
    hold(gang.dir, 6, 7, 1, 0, 10, 10);          /* of a rank that is no more */
    hold(gang.dir, 2, 4, 4, 0, 10, 10);          /* of this attempt, whoever it is */
    hold(gang.dir, 3, 4, 1, 0, 10, 10);          /* of a rank that is no more */
    hold(gang.dir, 5, 6, 1, 0, 10, 10);
    rename_in(gang.dir, "rank-5.0", "peer-5.0");
    assert_int_equal(scan(gang.dir, 0, 2, machines).count, 6);
    struct offer_share share = offer_share_of(0, 2, machines);
    offer_sweep(gang.dir, &share, 4);
    struct offer_list list = scan(gang.dir, 0, 2, machines);
    unsigned left = 0;
    for (size_t i = 0; i < list.count; i++)
        left |= 1u << list.items[i].rank;
    assert_int_equal(left, 1u << 0 | 1u << 1 | 1u << 2);
    gang_done(&gang);
}

/* A header that stands over other data; data that is no more. */
static void test_damage(void **unused)
{
    struct gang gang;
    struct phx_error error;
    static const uint64_t machines[] = {1};
    char path[160];
    uint8_t data[2000];
    gang_init(&gang, 1);
    hold(gang.dir, 0, 1, 0, 0, 10, 2000);
    struct offer_list list = scan(gang.dir, 0, 1, machines);
    assert_int_equal(list.count, 1);
    struct offer other = list.items[0];
    other.step = 11;
    assert_int_equal(offer_read(gang.dir, &other, data, &error), PHX_ERROR_CORRUPT);
    offer_path(gang.dir, &list.items[0], path, sizeof path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && pwrite(fd, "x", 1, 1000) == 1);
    assert_int_equal(offer_read(gang.dir, &list.items[0], data, &error), PHX_ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "checksum"));
    assert_int_equal(ftruncate(fd, 1000), 0);
    assert_int_equal(scan(gang.dir, 0, 1, machines).count, 0);
    assert_int_equal(offer_read(gang.dir, &list.items[0], data, &error), PHX_ERROR_CORRUPT);
    close(fd);
    gang_done(&gang);
}

/* More than may be offered: the rank's own stay, of the others the newest. */
static void test_full(void **unused)
{
    struct gang gang;
    static const uint64_t machines[] = {1};
    char from[32], to[32];
    uint64_t oldest = UINT64_MAX;
    size_t own = 0;
    gang_init(&gang, 1);
    for (uint32_t rank = 1; rank <= 30; rank++) {
        hold(gang.dir, rank, 40, 0, 0, 100 + rank, 8);
        snprintf(from, sizeof from, "rank-%u.0", rank);
        snprintf(to, sizeof to, "peer-%u.0", rank);
        rename_in(gang.dir, from, to);
    }
    hold(gang.dir, 0, 1, 0, 0, 3, 8);
    struct offer_list list = scan(gang.dir, 0, 1, machines);
    assert_int_equal(list.count, OFFER_MEMORY_MAX);
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].place == OFFER_SLOT)
            own++;
        else if (list.items[i].step < oldest)
            oldest = list.items[i].step;
    }
    assert_true(own == 1 && oldest == 130 - OFFER_MEMORY_MAX + 2);
    gang_done(&gang);
}

static void test_wrong_bytes(void **unused)
{
    struct offer offer = {.step = 1, .rank = 2, .world = 3, .place = OFFER_COPY, .slot = 1}, back;
    uint8_t bytes[OFFER_SIZE];
    offer_put(&offer, bytes);
    assert_true(offer_get(bytes, &back));
    bytes[OFFER_SIZE - 1] = PEER_SLOTS;
    assert_false(offer_get(bytes, &back));
    bytes[OFFER_SIZE - 1] = 0;
    bytes[OFFER_SIZE - 2] = OFFER_PLACES;
    assert_false(offer_get(bytes, &back));
    offer.rank = 3;
    offer_put(&offer, bytes);
    assert_false(offer_get(bytes, &back));
}

static void test_keys(void **unused)
{
    struct gang gang;
    struct phx_error error;
    uint64_t list[] = {1, UINT64_MAX, 3};
    struct keys keys = {list, 3, 7}, back = {0};
    char path[160];
    gang_init(&gang, 1);
    assert_false(keys_load(gang.dir, &back));
    assert_int_equal(keys_save(gang.dir, &keys, &error), 0);
    assert_true(keys_load(gang.dir, &back));
    assert_true(back.world == 3 && back.attempt == 7 && back.list[1] == UINT64_MAX && back.list[2] == 3);
    keys_done(&back);
    snprintf(path, sizeof path, "%s/keys", gang.dir);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && pwrite(fd, "x", 1, 17) == 1);
    assert_false(keys_load(gang.dir, &back));
    assert_int_equal(ftruncate(fd, 9), 0);
    assert_false(keys_load(gang.dir, &back));
    close(fd);
    assert_false(keys_decode((const uint8_t *)"1234567", 7, 0, &back));
    assert_false(keys_decode(NULL, 0, 0, &back));
    assert_int_equal(keys_save("/nowhere", &keys, &error), PHX_ERROR_IO);
    gang_done(&gang);
}

static void test_machines(void **unused)
{
    struct gang gang;
    char here[96], there[96];
    gang_init(&gang, 1);
    snprintf(here, sizeof here, "%s/a/memory", gang.dir);
    snprintf(there, sizeof there, "%s/b/memory", gang.dir);
    assert_true(machine_of(here, "x").id == machine_of(here, "y").id);
    assert_true(machine_of(here, "x").id != machine_of(there, "x").id);
    assert_true(machine_of("", "x").id != machine_of("", "y").id && machine_of("", "x").id != 0);
    assert_int_equal(machine_of(here, "x").rack, 0);
    setenv("PHX_RACK", "r1", 1);
    uint64_t rack = machine_of(here, "x").rack;
    setenv("PHX_RACK", "r2", 1);
    assert_true(rack != 0 && machine_of(here, "x").rack != rack);
    unsetenv("PHX_RACK");
    gang_done(&gang);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder),   cmocka_unit_test(test_sweep),       cmocka_unit_test(test_damage),
        cmocka_unit_test(test_full),     cmocka_unit_test(test_wrong_bytes), cmocka_unit_test(test_keys),
        cmocka_unit_test(test_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
