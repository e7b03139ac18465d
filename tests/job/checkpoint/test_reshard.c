/* Regions that were cut in one way come back cut in another, element by element; what does not fit together
 * is refused by name. */
#include "job/gang.h"

#include "job/checkpoint/reshard.h"

enum { REGIONS = 6, RANKS = 7, DIMS = 4 };

/* A region of the whole gang's state, and how one world has it cut. */
struct whole {
    char name[8];
    int dtype;
    uint32_t dims;
    uint64_t shape[DIMS], size;
    uint8_t *data;
};
struct cut {
    uint32_t axis, count; /* count 1: every rank has the whole */
    uint64_t begin[RANKS + 1];
};
struct world {
    uint32_t ranks;
    struct cut cuts[REGIONS];
};

static uint32_t seed = 4711;

static void draw_whole(struct whole *whole, size_t number)
{
    snprintf(whole->name, sizeof whole->name, "r%zu", number * 7 % 10); /* not in their order */
    whole->dtype = (int)gang_draw(&seed, PHX_DTYPES);
    whole->dims = gang_draw(&seed, DIMS + 1);
    whole->size = safetensors_dtypes[whole->dtype].size;
    for (uint32_t d = 0; d < whole->dims; d++)
        whole->size *= whole->shape[d] = gang_draw(&seed, 12) == 0 ? 0 : 1 + gang_draw(&seed, 9);
    whole->data = malloc(whole->size + 1);
    for (uint64_t i = 0; i < whole->size; i++)
        whole->data[i] = (uint8_t)gang_draw(&seed, 256);
}

/* `even`: as new parts have to be; otherwise at any places. */
static void draw_cut(struct cut *cut, const struct whole *whole, uint32_t ranks, bool even)
{
    *cut = (struct cut){.count = 1};
    if (whole->dims == 0 || gang_draw(&seed, 4) == 0)
        return;
    cut->axis = gang_draw(&seed, whole->dims);
    cut->count = 1 + gang_draw(&seed, ranks);
    uint64_t len = whole->shape[cut->axis];
    for (uint32_t i = 1; i <= cut->count; i++) {
        uint64_t rest = len - cut->begin[i - 1];
        uint64_t part = even             ? len / cut->count + (i - 1 < len % cut->count)
                        : i < cut->count ? gang_draw(&seed, (uint32_t)rest + 1)
                                         : rest;
        cut->begin[i] = cut->begin[i - 1] + part;
    }
}

static uint32_t part_of(const struct cut *cut, uint32_t rank)
{
    return rank % cut->count; /* the ranks behind the last part are replicas */
}

/* Where an element of the own part is in the whole: both are walked in the same order. */
static void copy_part(const struct whole *whole, const struct cut *cut, uint32_t part, uint8_t *out)
{
    size_t element = safetensors_dtypes[whole->dtype].size;
    for (uint64_t i = 0; i * element < whole->size; i++) {
        uint64_t inner = 1, index = 0;
        for (uint32_t d = whole->dims; d-- > 0 && cut->count > 1;) {
            if (d == cut->axis)
                index = i / inner % whole->shape[d];
            inner *= whole->shape[d];
        }
        if (cut->count > 1 && (index < cut->begin[part] || index >= cut->begin[part + 1]))
            continue;
        memcpy(out, whole->data + i * element, element);
        out += element;
    }
}

static uint64_t describe(const struct whole *whole, const struct cut *cut, uint32_t rank,
                         struct phx_region *ret_region)
{
    uint32_t part = part_of(cut, rank);
    uint64_t size = safetensors_dtypes[whole->dtype].size;
    *ret_region = (struct phx_region){.name = whole->name, .dtype = whole->dtype, .dims = whole->dims};
    memcpy(ret_region->shape, whole->shape, sizeof whole->shape);
    if (cut->count > 1) {
        ret_region->shape[cut->axis] = cut->begin[part + 1] - cut->begin[part];
        ret_region->shard_axis = cut->axis;
        ret_region->shard_index = part;
        ret_region->shard_count = cut->count;
    }
    for (uint32_t d = 0; d < whole->dims; d++)
        size *= ret_region->shape[d];
    ret_region->data = malloc(size + 1);
    return size;
}

/* A rank's registered regions: with their contents, or with rubbish. */
static void make_rank(const struct whole *wholes, const struct world *world, uint32_t rank, bool filled,
                      struct phx_region regions[REGIONS], struct job_regions *ret_described)
{
    struct phx_error error;
    for (size_t i = 0; i < REGIONS; i++) {
        uint64_t size = describe(&wholes[i], &world->cuts[i], rank, &regions[i]);
        if (filled)
            copy_part(&wholes[i], &world->cuts[i], part_of(&world->cuts[i], rank), regions[i].data);
        else
            memset(regions[i].data, 0x5a, size);
    }
    assert_int_equal(job_regions_describe(regions, REGIONS, ret_described, &error), 0);
}

static uint8_t *gather(const struct job_regions *described)
{
    uint8_t *data = malloc(described->len + 1), *to = data;
    for (size_t i = 0; i <= described->count; i++) {
        if (described->parts[i].iov_len > 0)
            memcpy(to, described->parts[i].iov_base, described->parts[i].iov_len);
        to += described->parts[i].iov_len;
    }
    return data;
}

static void drop_rank(struct phx_region regions[REGIONS], struct job_regions *described)
{
    for (size_t i = 0; i < REGIONS; i++)
        free(regions[i].data);
    job_regions_done(described);
}

struct shard {
    uint8_t *data;
    size_t len;
};

static int load(const struct job_regions *described, const struct shard *shards, uint32_t first,
                uint32_t ranks, uint32_t *ret_read, struct phx_error *error)
{
    struct reshard *reshard;
    struct safetensors tensors;
    uint32_t rank;
    int status = reshard_new(described, &reshard, error);
    assert_int_equal(status, 0);
    for (uint32_t i = 0; i < ranks && status == 0 && !reshard_complete(reshard); i++) {
        const struct shard *shard = &shards[(first + i) % ranks];
        size_t len = safetensors_header_len(shard->data, shard->len);
        assert_true(len > 0);
        status = safetensors_read(shard->data, len, shard->len, "test", &tensors, error);
        assert_int_equal(status, 0);
        status = reshard_add(reshard, (first + i) % ranks, &tensors, error);
        safetensors_done(&tensors);
    }
    if (status == 0)
        status = reshard_plan(reshard, error);
    for (*ret_read = 0; status == 0 && reshard_next(reshard, &rank); ++*ret_read)
        status = reshard_fill(reshard, shards[rank].data, shards[rank].len, error);
    reshard_free(reshard);
    return status;
}

static void check_rank(const struct whole *wholes, const struct world *world, uint32_t rank,
                       const struct shard *shards, uint32_t old_ranks)
{
    struct phx_region regions[REGIONS], expected[REGIONS];
    struct job_regions described, wanted;
    struct phx_error error = {0};
    uint32_t read;
    make_rank(wholes, world, rank, false, regions, &described);
    make_rank(wholes, world, rank, true, expected, &wanted);
    if (load(&described, shards, rank % old_ranks, old_ranks, &read, &error) != 0)
        fail_msg("%s", error.message);
    assert_true(read <= old_ranks); /* each shard once */
    uint8_t *is = gather(&described), *should = gather(&wanted);
    assert_true(described.len == wanted.len && memcmp(is, should, wanted.len) == 0);
    free(is);
    free(should);
    drop_rank(regions, &described);
    drop_rank(expected, &wanted);
}

static void test_any_cut(void **unused)
{
    for (int trial = 0; trial < 400; trial++) {
        struct whole wholes[REGIONS];
        struct world old = {.ranks = 1 + gang_draw(&seed, RANKS)},
                     new = {.ranks = 1 + gang_draw(&seed, RANKS)};
        struct shard shards[RANKS];
        for (size_t i = 0; i < REGIONS; i++) {
            draw_whole(&wholes[i], i);
            draw_cut(&old.cuts[i], &wholes[i], old.ranks, false);
            draw_cut(&new.cuts[i], &wholes[i], new.ranks, true);
        }
        for (uint32_t rank = 0; rank < old.ranks; rank++) {
            struct phx_region regions[REGIONS];
            struct job_regions described;
            make_rank(wholes, &old, rank, true, regions, &described);
            shards[rank] = (struct shard){gather(&described), described.len};
            drop_rank(regions, &described);
        }
        for (uint32_t rank = 0; rank < new.ranks; rank++)
            check_rank(wholes, &new, rank, shards, old.ranks);
        for (uint32_t rank = 0; rank < old.ranks; rank++)
            free(shards[rank].data);
        for (size_t i = 0; i < REGIONS; i++)
            free(wholes[i].data);
    }
}

/* ---- what is refused ---- */

static float memory[64];

static struct phx_region part(uint64_t len, uint32_t index, uint32_t count)
{
    return (struct phx_region){.name = "w",
                               .data = memory,
                               .dtype = PHX_F32,
                               .dims = 2,
                               .shape = {len, 2},
                               .shard_index = index,
                               .shard_count = count};
}

static struct shard shard_of(struct phx_region region)
{
    struct job_regions described;
    struct phx_error error;
    assert_int_equal(job_regions_describe(&region, 1, &described, &error), 0);
    struct shard shard = {gather(&described), described.len};
    job_regions_done(&described);
    return shard;
}

static void refuse(struct phx_region wanted, const struct shard *shards, uint32_t count, int code,
                   const char *what)
{
    struct job_regions described;
    struct phx_error error = {0};
    uint32_t read;
    assert_int_equal(job_regions_describe(&wanted, 1, &described, &error), 0);
    int status = load(&described, shards, 0, count, &read, &error);
    if (status != code || strstr(error.message, what) == NULL)
        fail_msg("%d: \"%s\" does not say \"%s\"", status, error.message, what);
    job_regions_done(&described);
}

static void test_mistakes(void **unused)
{
    struct shard shards[2] = {shard_of(part(3, 0, 2)), shard_of(part(4, 1, 2))};
    struct phx_region region = part(4, 0, 2);
    refuse(part(7, 0, 1), shards, 1, PHX_ERROR_CORRUPT, "part 1 of 2 is in no shard");
    refuse(part(3, 0, 2), shards, 2, PHX_ERROR_INVALID, "has 4 along dimension 0 for part 0 of 2");
    refuse(part(7, 0, 2), shards, 2, PHX_ERROR_INVALID, "here are 7");
    region.shape[1] = 3;
    refuse(region, shards, 2, PHX_ERROR_INVALID, "has 2 along dimension 1");
    region = part(7, 0, 1);
    region.dtype = PHX_I32;
    refuse(region, shards, 2, PHX_ERROR_INVALID, "region w is F32 of 2 dimensions in the checkpoint");
    region = part(7, 0, 1);
    region.name = "v";
    refuse(region, shards, 2, PHX_ERROR_INVALID, "no region v");
    free(shards[1].data);
    shards[1] = shard_of(part(4, 1, 3));
    refuse(part(7, 0, 1), shards, 2, PHX_ERROR_CORRUPT, "rank 1's shard describes it differently");
    shards[1].len = safetensors_header_len(shards[1].data, shards[1].len); /* its data is gone */
    struct safetensors tensors;
    struct phx_error error;
    assert_int_equal(safetensors_read(shards[1].data, shards[1].len, shards[1].len, "here", &tensors, &error),
                     PHX_ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "here: region w"));
    free(shards[0].data);
    free(shards[1].data);
}

static void test_headers(void **unused)
{
    static const struct {
        const char *text, *what;
    } wrong[] = {
        {"", "an object"},
        {"{", "a string"},
        {"{}x", "bytes behind the header"},
        {"{\"a\":{}}", "no dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", "no offsets"},
        {"{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", "dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "number"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551616],\"data_offsets\":[0,4]}}", "too large"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", "too many"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", "region a"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}", "region a"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", "unknown member"},
        {"{\"a\\n\":{}}", "printable ASCII"},
        {"{\"__metadata__\":{\"phalanx.shard.a\":\"axis 0, part 0 of 2\"}}", "that the header lacks"},
        {"{\"__metadata__\":{\"phalanx.shard.a\":\"axis 0, part 2 of 2\"}}", "the part of a region"},
        {"{\"__metadata__\":{\"phalanx.shard.a\":\"axis 0, part 0 of 2 \"}}", "the part of a region"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
         "\"__metadata__\":{\"phalanx.shard.a\":\"axis 0, part 0 of 2\"}}",
         "axis that it does not have"},
    };
    struct safetensors tensors;
    struct phx_error error;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char header[256] = {0};
        size_t len = 8 + (size_t)snprintf(header + 8, sizeof header - 8, "%s", wrong[i].text);
        int status = safetensors_read((uint8_t *)header, len, len + 8, "here", &tensors, &error);
        if (status != PHX_ERROR_CORRUPT || strstr(error.message, wrong[i].what) == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", wrong[i].text, error.message, wrong[i].what);
    }
    static const char good[] =
        " { \"a\" : {\"data_offsets\":[4,8], \"shape\" : [ 2 , 1 ],\"dtype\":\"U16\"} }  ";
    char header[128] = {0};
    memcpy(header + 8, good, sizeof good - 1);
    size_t len = 8 + sizeof good - 1;
    assert_int_equal(safetensors_read((uint8_t *)header, len, len + 8, "here", &tensors, &error), 0);
    assert_true(tensors.count == 1 && tensors.regions[0].begin == len + 4 && tensors.regions[0].size == 4);
    assert_true(tensors.regions[0].dims == 2 && tensors.regions[0].count == 1);
    safetensors_done(&tensors);
    header[0] = (char)(sizeof good - 1);
    assert_int_equal(safetensors_header_len((uint8_t *)header, len), len);
    assert_int_equal(safetensors_header_len((uint8_t *)header, len - 1), 0);
    assert_int_equal(safetensors_header_len((uint8_t *)header, 7), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_cut),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
