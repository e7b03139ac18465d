/* Checkpoint files: what was saved is read back; any damage is noticed; deletion takes what it should and no
 * more. */
#include "job/gang.h"

#include <fcntl.h>

#include "job/crc.h"
#include "job/shard.h"

static void test_checksum(void **unused)
{
    assert_int_equal(job_crc32c(0, "123456789", 9),
                     0xe3069283); /* the check value of RFC 3720's polynomial */
    uint8_t zeros[32] = {0};
    assert_int_equal(job_crc32c(0, zeros, 32), 0x8a9136aa); /* RFC 3720, appendix B.4 */
    const char *text = "a sum of parts is the sum of the whole";
    for (size_t cut = 0; cut <= strlen(text); cut++)
        assert_int_equal(job_crc32c(job_crc32c(0, text, cut), text + cut, strlen(text) - cut),
                         job_crc32c(0, text, strlen(text)));
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
    struct shard_id id = {gang.dir, 12, 3, 1, 2};
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
                struct shard_id id = {gang.dir, step, attempt, rank, 2};
                assert_int_equal(write_one(&id, "x", 1, &size, &error), 0);
            }
    struct shard_id mark = {gang.dir, 8, 0, 0, 2};
    assert_int_equal(shard_mark_committed(&mark, &error), 0);
    struct shard_id own = {gang.dir, 0, 1, 1, 2}; /* rank 1 of attempt 1 */
    shard_delete_before(&own, 10, false);
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
    own = (struct shard_id){gang.dir, 0, 2, 0, 2};
    shard_delete_before(&own, 10, true);
    own.rank = 1;
    shard_delete_before(&own, 10, false);
    assert_false(has(gang.dir, "step-8") ||
                 has(gang.dir, "step-9")); /* the last one out removes the directory */
    gang_done(&gang);
}

static void test_nowhere(void **unused)
{
    struct phx_error error;
    struct shard_survey survey;
    uint64_t size;
    struct shard_id id = {"/dev/null/below", 1, 0, 0, 1};
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
        cmocka_unit_test(test_deletion),
        cmocka_unit_test(test_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
