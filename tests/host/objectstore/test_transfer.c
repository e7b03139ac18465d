/* Shards to a store and back; the store is a folder, the same calls as for a server (tests/e2e/test_store has
 * one). What is overwritten, damaged or something else never becomes a checkpoint; what was sent is not sent
 * again. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/hash.h"
#include "host/objectstore/transfer.h"
#include "job/checkpoint/shard_format.h"

enum { MIB = 1 << 20, PART = 5 * MIB };

struct bed {
    char folder[64], record[96];
    struct store_place place;
    struct shard_transfer transfer;
    int slot, back;
    uint8_t *bytes;
    size_t len;
};

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    return remove(path);
}

/* A shard of `len` bytes of data in a file that is longer, as a slot is. */
static void bed_init(struct bed *bed, size_t len)
{
    char url[128], path[96];
    memset(bed, 0, sizeof *bed);
    snprintf(bed->folder, sizeof bed->folder, "/tmp/phalanx-test-XXXXXX");
    assert_non_null(mkdtemp(bed->folder));
    snprintf(url, sizeof url, "file://%s/store?part=5Mi&parallel=3", bed->folder);
    assert_int_equal(store_place_parse(url, &bed->place, NULL), 0);
    snprintf(bed->record, sizeof bed->record, "%s/record", bed->folder);
    snprintf(path, sizeof path, "%s/slot", bed->folder);
    bed->slot = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    snprintf(path, sizeof path, "%s/back", bed->folder);
    bed->back = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bed->len = SHARD_HEADER_SIZE + len;
    bed->bytes = malloc(bed->len + 1000);
    for (size_t i = 0; i < bed->len + 1000; i++)
        bed->bytes[i] = (uint8_t)(i * 2654435761u >> 11);
    struct shard_header header = {.step = 7,
                                  .attempt = 2,
                                  .rank = 3,
                                  .world = 4,
                                  .len = len,
                                  .data_crc = crc32c(0, bed->bytes + SHARD_HEADER_SIZE, len)};
    shard_header_put(&header, crc32c, bed->bytes);
    assert_int_equal(pwrite(bed->slot, bed->bytes, bed->len + 1000, 0), (ssize_t)bed->len + 1000);
    bed->transfer = (struct shard_transfer){
        &bed->place, NULL, "ns/job/step-7/attempt-2-rank-3.shard", bed->slot, 7, 2, 3, bed->record};
}

static void bed_done(struct bed *bed)
{
    close(bed->slot);
    close(bed->back);
    free(bed->bytes);
    nftw(bed->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void expect_back(struct bed *bed)
{
    uint64_t bytes;
    struct error error;
    struct shard_transfer down = bed->transfer;
    uint8_t *got = malloc(bed->len);
    down.fd = bed->back;
    assert_int_equal(shard_download(&down, &bytes, &error), 0);
    assert_int_equal(bytes, bed->len);
    assert_int_equal(pread(bed->back, got, bed->len, 0), (ssize_t)bed->len);
    assert_memory_equal(got, bed->bytes, bed->len);
    free(got);
}

static void test_there_and_back(void **unused)
{
    static const size_t lengths[] = {0, 1, PART - SHARD_HEADER_SIZE, PART - SHARD_HEADER_SIZE + 1,
                                     4 * PART + 17};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct bed bed;
        struct error error;
        uint64_t bytes;
        bed_init(&bed, lengths[i]);
        assert_int_equal(shard_upload(&bed.transfer, &bytes, &error), 0);
        assert_int_equal(bytes, bed.len);
        assert_int_not_equal(access(bed.record, F_OK), 0);
        expect_back(&bed);
        assert_int_equal(shard_upload(&bed.transfer, &bytes, &error), 0); /* it is there already */
        bed_done(&bed);
    }
}

static void test_wrong_shards(void **unused)
{
    struct bed bed;
    struct error error;
    uint64_t bytes;
    bed_init(&bed, 2 * PART);
    struct shard_transfer other = bed.transfer;
    other.step = 8;
    assert_int_equal(shard_upload(&other, &bytes, &error), ERROR_CORRUPT);
    other = bed.transfer;
    other.fd = bed.back;
    assert_int_equal(shard_download(&other, &bytes, &error), ERROR_NOT_FOUND);
    uint8_t byte = (uint8_t)~bed.bytes[PART + 5];
    assert_int_equal(pwrite(bed.slot, &byte, 1, PART + 5), 1); /* no shard any more */
    assert_int_equal(shard_upload(&bed.transfer, &bytes, &error), ERROR_CORRUPT);
    assert_int_not_equal(access(bed.record, F_OK), 0);
    other = bed.transfer;
    other.fd = bed.back;
    assert_int_equal(shard_download(&other, &bytes, &error), ERROR_NOT_FOUND); /* nothing was published */
    bed_done(&bed);
}

static void test_damaged_at_rest(void **unused)
{
    struct bed bed;
    struct error error;
    uint64_t bytes;
    char path[160];
    uint8_t head[SHARD_HEADER_SIZE];
    static const uint8_t zero[SHARD_HEADER_SIZE];
    bed_init(&bed, 2 * PART);
    assert_int_equal(shard_upload(&bed.transfer, &bytes, &error), 0);
    snprintf(path, sizeof path, "%s/store/%s", bed.folder, bed.transfer.key);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    uint8_t byte = (uint8_t)~bed.bytes[PART + 5];
    assert_int_equal(pwrite(fd, &byte, 1, PART + 5), 1);
    struct shard_transfer down = bed.transfer;
    down.fd = bed.back;
    assert_int_equal(shard_download(&down, &bytes, &error), ERROR_CORRUPT);
    assert_int_equal(pread(bed.back, head, sizeof head, 0), (ssize_t)sizeof head);
    assert_memory_equal(head, zero, sizeof head); /* what came is no shard */
    assert_int_equal(ftruncate(fd, PART), 0);
    assert_int_equal(shard_download(&down, &bytes, &error), ERROR_CORRUPT);
    close(fd);
    bed_done(&bed);
}

/* A record of two parts, one line of which is half: only they are not sent again. */
static void test_resumed(void **unused)
{
    struct bed bed;
    struct error error;
    uint64_t bytes;
    char id[STORE_ID_MAX], tag[2][STORE_TAG_MAX], hex[2 * SHARD_HEADER_SIZE + 1];
    bed_init(&bed, 3 * PART + 99);
    struct object_store *store;
    assert_int_equal(object_store_open(&bed.place, NULL, &store, &error), 0);
    assert_int_equal(upload_begin(store, bed.transfer.key, id, &error), 0);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(upload_part(store, bed.transfer.key, id, i + 1,
                                     (struct str){(char *)bed.bytes + i * PART, PART}, tag[i], &error),
                         0);
    object_store_close(store);
    hex_encode(bed.bytes, SHARD_HEADER_SIZE, hex);
    FILE *file = fopen(bed.record, "w");
    fprintf(file, "phalanx-upload 1\n%s/\n%s\n%s\n%d\n%s\n", bed.place.bucket, bed.transfer.key, hex, PART,
            id);
    fprintf(file, "part 1 %08x %s\n", crc32c(0, bed.bytes + SHARD_HEADER_SIZE, PART - SHARD_HEADER_SIZE),
            tag[0]);
    fprintf(file, "part 2 %08x %s\npart 3 0", crc32c(0, bed.bytes + PART, PART), tag[1]);
    assert_int_equal(fclose(file), 0);
    uint8_t byte = (uint8_t)~bed.bytes[PART + 5]; /* were it sent again, the sum would be wrong */
    assert_int_equal(pwrite(bed.slot, &byte, 1, PART + 5), 1);
    assert_int_equal(shard_upload(&bed.transfer, &bytes, &error), 0);
    expect_back(&bed);
    bed_done(&bed);
}

/* The store knows nothing of the upload in the record: it begins anew. */
static void test_forgotten_upload(void **unused)
{
    struct bed bed;
    struct error error;
    uint64_t bytes;
    char hex[2 * SHARD_HEADER_SIZE + 1];
    bed_init(&bed, 3 * PART);
    hex_encode(bed.bytes, SHARD_HEADER_SIZE, hex);
    FILE *file = fopen(bed.record, "w");
    fprintf(file, "phalanx-upload 1\n%s/\n%s\n%s\n%d\nupload-gone\npart 1 00000000 x\n", bed.place.bucket,
            bed.transfer.key, hex, PART);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(shard_upload(&bed.transfer, &bytes, &error), 0);
    expect_back(&bed);
    file = fopen(bed.record, "w");
    fprintf(file, "phalanx-upload 1\n%s/\n%s\n%s\n%d\nupload-gone\n", bed.place.bucket, bed.transfer.key, hex,
            PART);
    assert_int_equal(fclose(file), 0);
    shard_upload_drop(&bed.place, NULL, bed.record);
    assert_int_not_equal(access(bed.record, F_OK), 0);
    bed_done(&bed);
}

static void test_lists(void **unused)
{
    struct bed bed;
    struct error error;
    struct arena arena = {0};
    struct object_list list;
    struct object_store *store;
    uint64_t step;
    uint32_t attempt, rank;
    bed_init(&bed, 10);
    assert_int_equal(object_store_open(&bed.place, NULL, &store, &error), 0);
    for (uint32_t i = 0; i < 3; i++) {
        char key[SHARD_KEY_MAX];
        shard_key("ns/job/", 10 * i, i, 5, key);
        assert_int_equal(bucket_put(store, key, STR("x"), &error), 0);
    }
    assert_int_equal(bucket_put(store, "../out", STR("x"), &error), ERROR_INVALID);
    assert_int_equal(bucket_list(store, "ns/job/step-", &arena, &list, &error), 0);
    assert_int_equal(list.entries.len, 3);
    assert_true(str_is(list.entries.items[1].key, "ns/job/step-10/attempt-1-rank-5.shard"));
    assert_true(shard_key_parse(STR("step-10/attempt-1-rank-5.shard"), &step, &attempt, &rank) &&
                step == 10 && attempt == 1 && rank == 5);
    assert_false(shard_key_parse(STR("step-10/attempt-1-rank-5.shard.tmp"), &step, &attempt, &rank));
    vec_done(&list.entries);
    assert_int_equal(bucket_delete(store, "ns/job/step-10/attempt-1-rank-5.shard", &error), 0);
    assert_int_equal(bucket_delete(store, "ns/job/step-10/attempt-1-rank-5.shard", &error), 0);
    assert_int_equal(bucket_list(store, "ns/", &arena, &list, &error), 0);
    assert_int_equal(list.entries.len, 2);
    vec_done(&list.entries);
    object_store_close(store);
    arena_done(&arena);
    bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),   cmocka_unit_test(test_wrong_shards),
        cmocka_unit_test(test_damaged_at_rest),  cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_forgotten_upload), cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
