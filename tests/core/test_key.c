/* The keys of gangs: each attempt of each JobSet has its own, from the secret of the first boot that had one,
 * and a replay or a snapshot gives the same. So does the identity that machines are told. */
#include "harness.h"

static void boot_as(struct core *core, uint64_t seq, uint64_t identity, const char *secret)
{
    struct effects effects = {0};
    struct event event = {
        .kind = EVENT_BOOT, .seq = seq, .boot = {.epoch = seq, .version = STR("test"), .identity = identity}};
    if (secret)
        event.boot.secret = (struct str){secret, GANG_KEY_BYTES};
    core_step(core, &event, &effects);
    vec_done(&effects.list);
}

static void boot(struct core *core, uint64_t seq, const char *secret)
{
    boot_as(core, seq, 7, secret);
}

static const char first[] = "thirty-two bytes: the first ones", second[] = "thirty-two bytes: the other ones";

static bool same(const struct core *a, const struct core *b, obj_id jobset, int32_t attempt)
{
    uint8_t of_a[GANG_KEY_BYTES], of_b[GANG_KEY_BYTES];
    core_gang_key(a, jobset, attempt, of_a);
    core_gang_key(b, jobset, attempt, of_b);
    return memcmp(of_a, of_b, sizeof of_a) == 0;
}

static void each_attempt_has_its_own(void **state)
{
    struct core *core = core_new();
    uint8_t keys[6][GANG_KEY_BYTES];
    boot(core, 1, first);
    core_gang_key(core, 17, 0, keys[0]);
    core_gang_key(core, 17, 1, keys[1]);
    core_gang_key(core, 18, 0, keys[2]);
    core_gang_key(core, 18, 1, keys[3]);
    core_gang_key(core, UINT64_MAX, INT32_MAX, keys[4]);
    memset(keys[5], 0, GANG_KEY_BYTES);
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(keys[i], keys[j], GANG_KEY_BYTES);
    core_free(core);
}

static void the_first_secret_counts(void **state)
{
    struct core *core = core_new(), *other = core_new(), *old = core_new();
    const uint8_t zeros[GANG_KEY_BYTES] = {0};
    uint8_t key[GANG_KEY_BYTES];
    boot(core, 1, first);
    boot(other, 1, second);
    boot(old, 1, NULL); /* a log of an earlier version */
    core_gang_key(old, 17, 3, key);
    assert_memory_equal(key, zeros, sizeof key);
    assert_false(same(core, other, 17, 3));
    boot(core, 2, second);
    boot(old, 2, second);
    assert_false(same(core, other, 17, 3));
    assert_true(same(old, other, 17, 3));
    core_free(core);
    core_free(other);
    core_free(old);
}

static void a_snapshot_keeps_it(void **state)
{
    struct core *core = core_new(), *copy = core_new();
    struct buf bytes BUF_CLEANUP = {0};
    struct error error;
    boot(core, 1, first);
    core_snapshot_write(core, &bytes);
    assert_int_equal(core_snapshot_read(copy, buf_str(&bytes), &error), 0);
    assert_true(same(core, copy, 17, 3));
    boot(copy, 2, second);
    assert_true(same(core, copy, 17, 3));
    core_free(core);
    core_free(copy);
}

static void a_cluster_has_one_identity(void **state)
{
    struct core *core = core_new(), *copy = core_new(), *other = core_new();
    struct buf bytes BUF_CLEANUP = {0};
    struct error error;
    boot_as(core, 1, 7, first);
    uint64_t identity = core_identity(core);
    assert_true(identity != 0 && identity != 7); /* a hash: uids are made from the bits themselves */
    boot_as(core, 2, 8, second);
    core_snapshot_write(core, &bytes);
    assert_int_equal(core_snapshot_read(copy, buf_str(&bytes), &error), 0);
    boot_as(copy, 3, 9, NULL);
    boot_as(other, 1, 8, first);
    assert_true(core_identity(core) == identity && core_identity(copy) == identity);
    assert_true(core_identity(other) != identity);
    core_free(core);
    core_free(copy);
    core_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_attempt_has_its_own),
        cmocka_unit_test(the_first_secret_counts),
        cmocka_unit_test(a_snapshot_keeps_it),
        cmocka_unit_test(a_cluster_has_one_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
