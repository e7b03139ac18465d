/* Named regions: their header is safetensors', the same for the same description, and nothing else is taken
 * for it. */
#include "job/gang.h"

#include "job/checkpoint/regions.h"

static void test_header(void **unused)
{
    float w[6] = {1, 2, 3, 4, 5, 6};
    uint8_t flag = 1;
    struct phx_region list[] = {
        {.name = "layer.0/w",
         .data = w,
         .dtype = PHX_F32,
         .dims = 2,
         .shape = {2, 3},
         .shard_axis = 1,
         .shard_index = 2,
         .shard_count = 4},
        {.name = "flag", .data = &flag, .dtype = PHX_BOOL},
        {.name = "none", .dtype = PHX_BF16, .dims = 1, .shape = {0}},
    };
    static const char expected[] =
        "{\"__metadata__\":{\"format\":\"phalanx\",\"phalanx.shard.layer.0/w\":\"axis 1, part 2 of 4\"},"
        "\"layer.0/w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
        "\"flag\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[24,25]},"
        "\"none\":{\"dtype\":\"BF16\",\"shape\":[0],\"data_offsets\":[25,25]}}";
    struct job_regions regions;
    struct phx_error error;
    assert_int_equal(job_regions_describe(list, 3, &regions, &error), 0);
    const uint8_t *header = regions.parts[0].iov_base;
    size_t len = regions.parts[0].iov_len;
    assert_int_equal(len % 64, 0);
    assert_int_equal(header[0] | header[1] << 8, len - 8);
    assert_memory_equal(header + 8, expected, sizeof expected - 1);
    for (size_t i = 8 + sizeof expected - 1; i < len; i++)
        assert_int_equal(header[i], ' ');
    assert_true(regions.count == 3 && regions.len == len + 25 && regions.parts[1].iov_base == w);
    job_regions_done(&regions);
    assert_int_equal(regions.count, 0);
}

static void refuse(struct phx_region *list, size_t count, const char *what)
{
    struct job_regions regions;
    struct phx_error error;
    assert_int_equal(job_regions_describe(list, count, &regions, &error), PHX_ERROR_INVALID);
    if (strstr(error.message, what) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, what);
}

static void test_mistakes(void **unused)
{
    char long_name[PHX_REGION_NAME_MAX + 1], byte;
    memset(long_name, 'a', sizeof long_name);
    long_name[PHX_REGION_NAME_MAX] = 0;
    struct phx_region good = {.name = "a", .data = &byte, .dtype = PHX_U8};
    const char *const names[] = {"", NULL, "a b", "a\"", "a\\", "\x7f", "__metadata__", long_name};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct phx_region region = good;
        region.name = names[i];
        refuse(&region, 1, "name");
    }
    struct phx_region region = good;
    region.dtype = PHX_DTYPES;
    refuse(&region, 1, "region a: unknown dtype");
    region = good;
    region.dims = PHX_REGION_DIMS_MAX + 1;
    refuse(&region, 1, "dimensions");
    region = good;
    region.dims = 2;
    region.shape[0] = UINT64_MAX / 2;
    region.shape[1] = 3;
    refuse(&region, 1, "too large");
    region = good;
    region.data = NULL;
    refuse(&region, 1, "NULL");
    region = good;
    region.shard_count = 2;
    refuse(&region, 1, "axis");
    struct phx_region twice[] = {good, good};
    refuse(twice, 2, "taken");
    refuse(twice, 0, "regions");
}

/* Regions that were gathered are filled in again; a byte more or less, or another shape of the same size, is
 * not. */
static void test_round_trip(void **unused)
{
    static const size_t sizes[PHX_DTYPES] = {1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 8, 8, 8};
    uint32_t seed = 99;
    for (int trial = 0; trial < 200; trial++) {
        enum { MAX = 9 };
        struct phx_region list[MAX] = {0};
        uint8_t *memory[MAX];
        char names[MAX][8];
        size_t count = 1 + gang_draw(&seed, MAX), bytes[MAX], at = 0;
        for (size_t i = 0; i < count; i++) {
            snprintf(names[i], sizeof names[i], "r%zu", i);
            list[i].name = names[i];
            list[i].dtype = (int)gang_draw(&seed, PHX_DTYPES);
            list[i].dims = gang_draw(&seed, 4);
            bytes[i] = sizes[list[i].dtype];
            for (uint32_t d = 0; d < list[i].dims; d++)
                bytes[i] *= list[i].shape[d] = gang_draw(&seed, 6);
            list[i].data = memory[i] = malloc(bytes[i] + 1);
            for (size_t k = 0; k < bytes[i]; k++)
                memory[i][k] = (uint8_t)gang_draw(&seed, 256);
        }
        struct job_regions regions;
        struct phx_error error;
        assert_int_equal(job_regions_describe(list, count, &regions, &error), 0);
        uint8_t *gathered = malloc(regions.len + 1);
        for (size_t i = 0; i <= count; at += regions.parts[i++].iov_len)
            memcpy(gathered + at, regions.parts[i].iov_base, regions.parts[i].iov_len);
        assert_int_equal(at, regions.len);
        for (size_t i = 0; i < count; i++)
            memset(memory[i], 0, bytes[i]);
        assert_int_equal(job_regions_fill(&regions, gathered, regions.len + 1, &error), PHX_ERROR_INVALID);
        assert_int_equal(job_regions_fill(&regions, gathered, regions.len - 1, &error), PHX_ERROR_INVALID);
        gathered[8 + gang_draw(&seed, 40)] ^= 1;
        assert_int_equal(job_regions_fill(&regions, gathered, regions.len, &error), PHX_ERROR_INVALID);
        memcpy(gathered, regions.parts[0].iov_base, regions.parts[0].iov_len);
        assert_int_equal(job_regions_fill(&regions, gathered, regions.len, &error), 0);
        at = regions.parts[0].iov_len;
        for (size_t i = 0; i < count; at += bytes[i], free(memory[i++]))
            assert_memory_equal(memory[i], gathered + at, bytes[i]);
        free(gathered);
        job_regions_done(&regions);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
