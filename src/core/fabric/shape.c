#include "core/fabric/shape.h"

#include <stdio.h>

#include "base/check.h"

static const char axis_name[AXES] = {'X', 'Y', 'Z'};

uint32_t slice_shape_chips(const struct slice_shape *shape)
{
    return (uint32_t)shape->extent[0] * shape->extent[1] * shape->extent[2];
}

bool slice_shape_is_whole(const struct slice_shape *shape)
{
    for (int axis = 0; axis < AXES; axis++)
        if (shape->extent[axis] == 0 || shape->extent[axis] % CUBE_SIDE != 0)
            return false;
    return true;
}

uint32_t slice_shape_cubes(const struct slice_shape *shape)
{
    return slice_shape_is_whole(shape) ? slice_shape_chips(shape) / CUBE_CHIPS : 1;
}

void slice_shape_format(const struct slice_shape *shape, char text[SHAPE_TEXT_MAX])
{
    int len = snprintf(text, SHAPE_TEXT_MAX, "%ux%ux%u%s", shape->extent[0], shape->extent[1],
                       shape->extent[2], shape->twisted ? "-twisted" : "");
    CHECK(len > 0 && len < SHAPE_TEXT_MAX);
}

/* Checks that a shape which is not made of whole cubes is part of one. The error names the axis that prevents
 * both. */
static int check_part_of_cube(const struct slice_shape *shape, struct error *error)
{
    char text[SHAPE_TEXT_MAX];
    bool larger = false;
    slice_shape_format(shape, text);
    for (int axis = 0; axis < AXES; axis++)
        larger |= shape->extent[axis] > CUBE_SIDE;
    for (int axis = 0; axis < AXES; axis++) {
        uint16_t extent = shape->extent[axis];
        if (larger && extent % CUBE_SIDE != 0)
            return error_set(error, ERROR_INVALID,
                             "slice shape %s: %u chips along %c: expected a multiple of 4, because a slice "
                             "larger than a cube is made of whole cubes",
                             text, extent, axis_name[axis]);
        if (!larger && extent != 2 && extent != 4 && !(axis == 2 && extent == 1))
            return error_set(error, ERROR_INVALID, "slice shape %s: %u chips along %c: expected %s", text,
                             extent, axis_name[axis],
                             axis == 2 ? "1, 2 or 4 within a cube"
                                       : "2 or 4, because a machine has 2x2x1 chips");
    }
    return 0;
}

static int check_twisted(const struct slice_shape *shape, const char *text, struct error *error)
{
    uint16_t short_side = shape->extent[0], middle = shape->extent[1], long_side = shape->extent[2];
    if (short_side % CUBE_SIDE == 0 && long_side == 2 * short_side &&
        (middle == short_side || middle == long_side))
        return 0;
    return error_set(
        error, ERROR_INVALID,
        "slice shape %s: only (4k, 4k, 8k) and (4k, 8k, 8k) can be twisted, such as 4x4x8-twisted "
        "or 8x16x16-twisted",
        text);
}

int slice_shape_check(const struct slice_shape *shape, struct error *error)
{
    char text[SHAPE_TEXT_MAX];
    slice_shape_format(shape, text);
    if (!slice_shape_is_whole(shape)) {
        if (check_part_of_cube(shape, error) < 0)
            return ERROR_INVALID;
    } else {
        uint64_t cubes = 1;
        for (int axis = 0; axis < AXES; axis++)
            cubes *= shape->extent[axis] / CUBE_SIDE;
        if (cubes > SLICE_CUBES_MAX)
            return error_set(error, ERROR_INVALID,
                             "slice shape %s: %llu cubes of 4x4x4 chips: a pod has at most %d", text,
                             (unsigned long long)cubes, SLICE_CUBES_MAX);
    }
    return shape->twisted ? check_twisted(shape, text, error) : 0;
}

int slice_shape_parse(struct str text, struct slice_shape *ret_shape, struct error *error)
{
    struct slice_shape shape = {0};
    struct str rest = text, twist = {0}, part;
    if (str_cut(rest, '-', &part, &twist)) {
        rest = part;
        if (!str_is(twist, "twisted"))
            return error_set(error, ERROR_INVALID,
                             "slice shape \"" STR_FORMAT "\": suffix \"-" STR_FORMAT
                             "\": expected \"-twisted\"",
                             STR_ARG(str_head_utf8(text, 64)), STR_ARG(str_head_utf8(twist, 64)));
        shape.twisted = true;
    }
    for (int axis = 0; axis < AXES; axis++) {
        bool last = axis == AXES - 1;
        int64_t extent;
        if (last)
            part = rest;
        else if (!str_cut(rest, 'x', &part, &rest))
            return error_set(error, ERROR_INVALID,
                             "slice shape \"" STR_FORMAT "\": expected three extents such as 4x4x8",
                             STR_ARG(str_head_utf8(text, 64)));
        if (!str_to_i64(part, 1, SLICE_CUBES_MAX * CUBE_SIDE, &extent))
            return error_set(error, ERROR_INVALID,
                             "slice shape \"" STR_FORMAT "\": extent along %c is \"" STR_FORMAT
                             "\": expected a number of chips from 1 to %d",
                             STR_ARG(str_head_utf8(text, 64)), axis_name[axis],
                             STR_ARG(str_head_utf8(part, 64)), SLICE_CUBES_MAX * CUBE_SIDE);
        shape.extent[axis] = (uint16_t)extent;
    }
    if (slice_shape_check(&shape, error) < 0)
        return ERROR_INVALID;
    CHECK(slice_shape_chips(&shape) <= SLICE_CHIPS_MAX);
    *ret_shape = shape;
    return 0;
}
