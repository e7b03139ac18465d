/* Checkpoint files: what was saved is read back; any damage is noticed; deletion takes what it should and no
 * more. */
#include "job/gang.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "job/checkpoint/blocks.h"
#include "base/crc32c.h"
#include "job/checkpoint/retention.h"
#include "job/checkpoint/shard.h"

static void test_checksum(void **unused)
{
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283); /* the check value of RFC 3720's polynomial */
    uint8_t zeros[32] = {0};
    assert_int_equal(crc32c(0, zeros, 32), 0x8a9136aa); /* RFC 3720, appendix B.4 */
    const char *text = "a sum of parts is the sum of the whole";
    for (size_t cut = 0; cut <= strlen(text); cut++)
        assert_int_equal(crc32c(crc32c(0, text, cut), text + cut, strlen(text) - cut),
                         crc32c(0, text, strlen(text)));
}

static uint32_t bit_by_bit(const uint8_t *bytes, size_t len)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < 8 * len; i++) {
        bool odd = ((crc ^ bytes[i / 8] >> i % 8) & 1) != 0;
        crc = crc >> 1 ^ (odd ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* Lengths around what is summed at once, from and to any place. */
static void test_checksum_of_copies(void **unused)
{
    static uint8_t from[1200], to[1200 + 64];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 2654435761u >> 11);
    for (size_t len = 0; len <= 1100; len += len < 300 ? 1 : 37)
        for (size_t at = 0; at < 40; at += 13) {
            uint32_t crc = bit_by_bit(from + at, len), begun = crc32c(0, from, 5);
            assert_int_equal(crc32c(0, from + at, len), crc);
            memset(to, 0xee, sizeof to);
            assert_int_equal(crc32c_copy(0, to + at, from + at, len), crc);
            assert_memory_equal(to + at, from + at, len);
            assert_true((at == 0 || to[at - 1] == 0xee) && to[at + len] == 0xee);
            assert_int_equal(crc32c_copy(begun, to, from + 5, len), bit_by_bit(from, 5 + len));
        }
}

static void shard_file(const struct shard_id *id, char *path, size_t size)
{
    snprintf(path, size, "%s/step-%llu/attempt-%u-rank-%u.shard", id->dir, (unsigned long long)id->step,
             id->attempt, id->rank);
}

static int write_one(const struct shard_id *id, const char *data, size_t len, uint64_t *ret_size,
                     struct phx_error *error)
{
    char *bytes = (char *)(uintptr_t)data;
    struct iovec parts[2] = {{bytes, len / 3}, {bytes + len / 3, len - len / 3}};
    return shard_write(id, parts, 2, ret_size, error);
}

static void test_damage(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    struct shard_id id = {.dir = gang.dir, .step = 12, .attempt = 3, .rank = 1, .world = 2};
    struct phx_error error;
    char data[100], back[100], path[256];
    uint64_t size;
    size_t len;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    assert_int_equal(shard_read(&id, back, sizeof back, &len, &error), PHX_ERROR_CORRUPT); /* missing */
    assert_int_equal(write_one(&id, data, sizeof data, &size, &error), 0);
    assert_int_equal(size, 164);
    shard_file(&id, path, sizeof path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    for (off_t at = 0; at < 164; at++) { /* every byte matters */
        uint8_t byte, wrong;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        wrong = byte ^ 0x10;
        assert_int_equal(pwrite(fd, &wrong, 1, at), 1);
        assert_int_equal(shard_read(&id, back, sizeof back, &len, &error), PHX_ERROR_CORRUPT);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    assert_int_equal(shard_read(&id, back, sizeof back, &len, &error), 0);
    assert_memory_equal(data, back, sizeof data);
    for (off_t cut = 163; cut >= 0; cut -= 9) {
        assert_int_equal(ftruncate(fd, cut), 0);
        assert_int_equal(shard_length(&id, &len, &error), PHX_ERROR_CORRUPT);
    }
    close(fd);
    assert_int_equal(write_one(&id, data, 0, &size, &error), 0); /* an empty shard is one too */
    assert_int_equal(shard_read(&id, NULL, 0, &len, &error), 0);
    assert_int_equal(len, 0);
    id.world = 3;
    assert_int_equal(shard_read(&id, back, sizeof back, &len, &error), PHX_ERROR_INVALID);
    gang_done(&gang);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

/* Whatever the umask: tasks have 022, and the folder above may be everybody's. */
static void test_shards_are_their_users_alone(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    struct phx_error error;
    static char large[1 << 20];
    char above[256], dir[300], path[600];
    uint64_t size;
    snprintf(above, sizeof above, "%s/above", gang.dir);
    snprintf(dir, sizeof dir, "%s/workers", above);
    struct shard_id id = {.dir = dir, .step = 3, .attempt = 0, .rank = 0, .world = 2};
    mode_t umask_before = umask(0);
    assert_int_equal(write_one(&id, "x", 1, &size, &error), 0);
    id.rank = 1;
    assert_int_equal(write_one(&id, large, sizeof large, &size, &error), 0);
    assert_int_equal(shard_mark_committed(&id, &error), 0);
    umask(umask_before);
    assert_int_equal(mode_of(above), 0711);
    assert_int_equal(mode_of(dir), 0700);
    snprintf(path, sizeof path, "%s/step-3", dir);
    assert_int_equal(mode_of(path), 0700);
    for (id.rank = 0; id.rank < 2; id.rank++) {
        shard_file(&id, path, sizeof path);
        assert_int_equal(mode_of(path), 0600);
    }
    gang_done(&gang);
}

static bool has(const char *dir, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void test_deletion(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    struct phx_error error;
    uint64_t size;
    for (uint64_t step = 8; step <= 12; step++)
        for (uint32_t attempt = 0; attempt < 3; attempt++)
            for (uint32_t rank = 0; rank < 2; rank++) {
                struct shard_id id = {
                    .dir = gang.dir, .step = step, .attempt = attempt, .rank = rank, .world = 2};
                assert_int_equal(write_one(&id, "x", 1, &size, &error), 0);
            }
    struct shard_id mark = {.dir = gang.dir, .step = 8, .attempt = 0, .rank = 0, .world = 2};
    assert_int_equal(shard_mark_committed(&mark, &error), 0);
    struct shard_id own = {
        .dir = gang.dir, .step = 0, .attempt = 1, .rank = 1, .world = 2}; /* rank 1 of attempt 1 */
    shard_delete_before(&own, 10, 0, false);
    assert_false(has(gang.dir, "step-9/attempt-0-rank-1.shard"));
    assert_false(has(gang.dir, "step-8/attempt-1-rank-1.shard"));
    assert_true(has(gang.dir, "step-9/attempt-2-rank-1.shard")); /* a newer attempt's */
    assert_true(has(gang.dir, "step-9/attempt-1-rank-0.shard")); /* another rank's */
    assert_true(has(gang.dir, "step-10/attempt-0-rank-1.shard") &&
                has(gang.dir, "step-12/attempt-1-rank-1.shard"));
    assert_true(has(gang.dir, "step-8/attempt-0.commit"));
    struct shard_survey survey;
    assert_int_equal(shard_survey(gang.dir, &survey, &error), 0);
    assert_true(survey.committed && survey.step == 8 && survey.attempt == 0 && survey.next_attempt == 3);
    own = (struct shard_id){.dir = gang.dir, .step = 0, .attempt = 2, .rank = 0, .world = 2};
    shard_delete_before(&own, 10, 4, true);
    assert_true(has(gang.dir, "step-8/attempt-0-rank-0.shard")); /* a multiple of 4 */
    assert_false(has(gang.dir, "step-9/attempt-0-rank-0.shard"));
    shard_delete_before(&own, 10, 0, true);
    own.rank = 1;
    shard_delete_before(&own, 10, 0, false);
    assert_false(has(gang.dir, "step-8") ||
                 has(gang.dir, "step-9")); /* the last one out removes the directory */
    gang_done(&gang);
}

/* Several threads, in blocks, past the page cache where that is possible: every length around the sizes that
 * they work in gives the file that the page of the format says. */
static void test_large(void **unused)
{
    enum { BLOCK = 4 << 20, MIB = 1 << 20 };
    static const size_t lengths[] = {MIB - 1,        MIB,   MIB + 1,           BLOCK - 65,    BLOCK - 64,
                                     BLOCK - 64 + 1, BLOCK, 2 * BLOCK + 12345, 3 * BLOCK - 64};
    struct gang gang;
    gang_init(&gang, 1);
    uint8_t *data = malloc(3 * BLOCK), *back = malloc(3 * BLOCK);
    assert_true(data != NULL && back != NULL);
    for (size_t i = 0; i < 3 * BLOCK; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 13);
    for (uint64_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct shard_id id = {.dir = gang.dir, .step = i, .attempt = 0, .rank = 0, .world = 1};
        struct iovec parts[3] = {{data, 1000}, {NULL, 0}, {data + 1000, lengths[i] - 1000}};
        struct phx_error error;
        char path[256];
        uint64_t size;
        size_t len;
        assert_int_equal((i % 2 ? shard_write : shard_write_verified)(&id, parts, 3, &size, &error), 0);
        assert_int_equal(size, lengths[i] + 64);
        memset(back, 0, lengths[i]);
        assert_int_equal(shard_read(&id, back, 3 * BLOCK, &len, &error), 0);
        assert_int_equal(len, lengths[i]);
        assert_memory_equal(data, back, len);
        assert_int_equal(shard_verify(&id, &error), 0);
        shard_file(&id, path, sizeof path);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        uint8_t header[64], wrong;
        uint32_t crc = crc32c(0, data, len);
        assert_int_equal(pread(fd, header, 64, 0), 64);
        assert_int_equal((uint32_t)header[36] | (uint32_t)header[37] << 8 | (uint32_t)header[38] << 16 |
                             (uint32_t)header[39] << 24,
                         crc);
        assert_int_equal(lseek(fd, 0, SEEK_END), (off_t)size);
        off_t at = (off_t)(size - 1 - size / 3);
        wrong = (uint8_t)~data[at - 64];
        assert_int_equal(pwrite(fd, &wrong, 1, at), 1);
        close(fd);
        assert_int_equal(shard_verify(&id, &error), PHX_ERROR_CORRUPT);
        assert_int_equal(shard_read(&id, back, 3 * BLOCK, &len, &error), PHX_ERROR_CORRUPT);
    }
    free(data);
    free(back);
    gang_done(&gang);
}

/* A shard file that is in memory already goes to storage as it is, whatever follows it there. */
static void test_sealed(void **unused)
{
    static const size_t lengths[] = {0, 5, BLOCKS_SMALL - SHARD_HEADER_SIZE, BLOCKS_SMALL + 4033, 9000017};
    struct gang gang;
    struct phx_error error;
    gang_init(&gang, 1);
    uint8_t *file = aligned_alloc(4096, 9000017 / 4096 * 4096 + 8192), *back = malloc(9000017);
    uint8_t *data = file + SHARD_HEADER_SIZE;
    for (size_t i = 0; i < 9000017; i++)
        data[i] = (uint8_t)(i * 2654435761u >> 17);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct shard_id id = {.dir = gang.dir, .step = i, .attempt = 3, .rank = 1, .world = 2};
        size_t len = lengths[i], got;
        struct shard_header header = {
            .step = i, .attempt = 3, .rank = 1, .world = 2, .len = len, .data_crc = crc32c(0, data, len)};
        shard_header_put(&header, crc32c, file);
        assert_int_equal(shard_write_sealed(&id, i % 2, file, SHARD_HEADER_SIZE + len, &error), 0);
        assert_int_equal(shard_read(&id, back, 9000017, &got, &error), 0);
        assert_int_equal(got, len);
        assert_memory_equal(back, data, len);
        if (len == 0)
            continue;
        data[len / 2] ^= 1; /* damaged in memory, after the sum was made */
        assert_int_equal(shard_write_sealed(&id, false, file, SHARD_HEADER_SIZE + len, &error), 0);
        assert_int_equal(shard_read(&id, back, 9000017, &got, &error), PHX_ERROR_CORRUPT);
        assert_int_equal(shard_write_sealed(&id, true, file, SHARD_HEADER_SIZE + len, &error),
                         PHX_ERROR_CORRUPT);
        data[len / 2] ^= 1;
    }
    free(file);
    free(back);
    gang_done(&gang);
}

static void test_joined_sums(void **unused)
{
    uint8_t data[1000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i);
    for (size_t cut = 0; cut <= sizeof data; cut += 37)
        assert_int_equal(
            crc32c_join(crc32c(0, data, cut), crc32c(0, data + cut, sizeof data - cut), sizeof data - cut),
            crc32c(0, data, sizeof data));
}

static void test_retention(void **unused)
{
    struct retention keep;
    static const char *const wrong[] = {
        "last=0", "last=65",       "every=0",         "last=3,", "last=3 every=4",
        "3",      "last=1,last=2", "every=2,every=3", "last=",   "every=99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(retention_parse(wrong[i], &keep));
    assert_true(retention_parse("", &keep) && keep.last == 2 && keep.every == 0);
    assert_true(retention_parse("every=1000,last=64", &keep) && keep.last == 64 && keep.every == 1000);
    assert_true(retention_parse("last=3,every=100", &keep));
    retention_commit(&keep, 90);
    retention_commit(&keep, 100);
    assert_true(retention_keeps(&keep, 1)); /* two are known: who knows what else there is */
    retention_commit(&keep, 110);
    assert_true(!retention_keeps(&keep, 89) && retention_keeps(&keep, 90));
    retention_commit(&keep, 120);
    retention_commit(&keep, 120);
    retention_commit(&keep, 130);
    assert_int_equal(retention_floor(&keep), 110);
    assert_true(retention_keeps(&keep, 100) && !retention_keeps(&keep, 90)); /* a multiple of 100 */
    retention_commit(&keep, 115); /* a restart: what was above it counts no more */
    assert_int_equal(retention_floor(&keep), 0);
    retention_commit(&keep, 116);
    assert_int_equal(retention_floor(&keep), 110);
    assert_true(retention_parse("last=1", &keep));
    retention_commit(&keep, 5);
    retention_commit(&keep, 6);
    assert_int_equal(retention_floor(&keep), 6);
}

static void test_nowhere(void **unused)
{
    struct phx_error error;
    struct shard_survey survey;
    uint64_t size;
    struct shard_id id = {.dir = "/dev/null/below", .step = 1, .attempt = 0, .rank = 0, .world = 1};
    assert_int_equal(write_one(&id, "x", 1, &size, &error), PHX_ERROR_IO);
    assert_non_null(strstr(error.message, "Not a directory"));
    assert_int_equal(shard_survey("/nonexistent", &survey, &error), 0);
    assert_true(!survey.committed && survey.next_attempt == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_shards_are_their_users_alone),
        cmocka_unit_test(test_deletion),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_joined_sums),
        cmocka_unit_test(test_retention),
        cmocka_unit_test(test_nowhere),
        cmocka_unit_test(test_sealed),
        cmocka_unit_test(test_checksum_of_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
