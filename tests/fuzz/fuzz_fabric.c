/* Any bytes to the readers of shapes, switch names and solved route patterns: no crash, a shape that is read
 * is written the same, and tables from a pattern are used only with their proof. The bytes of a pattern get
 * the right checksum here, so that what is behind it is reached. */
#include <stdint.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "core/fabric/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_shape(struct str text)
{
    struct slice_shape shape, back;
    struct error error;
    char written[SHAPE_TEXT_MAX];
    if (slice_shape_parse(text, &shape, &error) < 0) {
        CHECK(error.code == ERROR_INVALID);
        return;
    }
    CHECK(slice_shape_check(&shape, NULL) == 0 && slice_shape_cubes(&shape) <= SLICE_CUBES_MAX);
    slice_shape_format(&shape, written);
    CHECK(slice_shape_parse(str_from(written), &back, NULL) == 0);
    CHECK(memcmp(back.extent, shape.extent, sizeof back.extent) == 0 && back.twisted == shape.twisted);
}

static void check_switch(struct str text)
{
    struct pod_switch which;
    if (pod_switch_parse(text, &which, NULL) == 0)
        CHECK(str_is(text, pod_switch_name(which)));
}

struct sample {
    const char *shape;
    struct torus torus;
    struct buf pattern;
};

static void make(struct sample *sample)
{
    struct slice_shape shape;
    struct route route;
    CHECK(slice_shape_parse(str_from(sample->shape), &shape, NULL) == 0);
    torus_init(&sample->torus, &shape);
    if (slice_shape_is_whole(&shape))
        torus_kill_switch(&sample->torus, (struct pod_switch){0, 5});
    else
        torus_kill_link(&sample->torus, 0, PORT_X_PLUS);
    CHECK(route_build(&sample->torus, &route, NULL) == 0);
    pattern_pack(&sample->torus, &route, &sample->pattern);
    route_done(&route);
}

/* Changes single bytes of a pattern that holds: three of the input are a place and a value. */
static void check_pattern(struct sample *sample, const uint8_t *data, size_t size)
{
    struct route route;
    struct proof proof;
    struct buf bytes BUF_CLEANUP = {0};
    if (sample->torus.chips == 0)
        make(sample);
    buf_add_str(&bytes, buf_str(&sample->pattern));
    for (size_t i = 0; i + 2 < size; i += 3) {
        size_t at = 16 + (data[i] | (size_t)data[i + 1] << 8) % (bytes.len - 16);
        bytes.data[at] = (char)data[i + 2];
    }
    uint32_t crc = crc32c(0, bytes.data + 16, bytes.len - 16);
    for (int i = 0; i < 4; i++)
        bytes.data[12 + i] = (char)(crc >> 8 * i);
    if (pattern_routes(buf_str(&bytes), &sample->torus, &route, &proof, NULL, NULL) < 0)
        return;
    CHECK(proof.pairs == (uint64_t)route.chips * (route.chips - 1) && proof.vcs <= ROUTE_VCS);
    route_done(&route);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sample mesh = {.shape = "2x2x4"}, cube = {.shape = "4x4x4"};
    struct str text = {(const char *)data, size};
    check_shape(text);
    check_switch(text);
    check_pattern(&mesh, data, size);
    check_pattern(&cube, data, size);
    return 0;
}
