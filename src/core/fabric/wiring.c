#include "core/fabric/wiring.h"

#include "base/check.h"

static const char *const switch_names[POD_SWITCHES] = {
    "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
    "y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7", "y8", "y9", "y10", "y11", "y12", "y13", "y14", "y15",
    "z0", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "z8", "z9", "z10", "z11", "z12", "z13", "z14", "z15",
};

uint32_t pod_switch_number(struct pod_switch which)
{
    CHECK(which.axis < AXES && which.index < FACE_LINKS);
    return which.axis * (uint32_t)FACE_LINKS + which.index;
}

struct pod_switch pod_switch_at(uint32_t number)
{
    CHECK(number < POD_SWITCHES);
    return (struct pod_switch){(uint8_t)(number / FACE_LINKS), (uint8_t)(number % FACE_LINKS)};
}

const char *pod_switch_name(struct pod_switch which)
{
    return switch_names[pod_switch_number(which)];
}

int pod_switch_parse(struct str text, struct pod_switch *ret_switch, struct error *error)
{
    for (uint32_t i = 0; i < POD_SWITCHES; i++)
        if (str_is(text, switch_names[i])) {
            *ret_switch = pod_switch_at(i);
            return 0;
        }
    return error_set(error, ERROR_INVALID,
                     "switch \"" STR_FORMAT "\": expected an axis and an index from 0 to 15, such as x5",
                     STR_ARG(str_head_utf8(text, 64)));
}

uint32_t cube_chip_machine(uint32_t chip)
{
    CHECK(chip < CUBE_CHIPS);
    uint32_t x = chip % 4, y = chip / 4 % 4, z = chip / 16;
    return x / 2 + 2 * (y / 2) + 4 * z;
}

bool cube_chip_optical(uint16_t cube, uint32_t chip, enum chip_port port, struct link_end *ret_end)
{
    CHECK(cube < POD_CUBES_MAX && chip < CUBE_CHIPS && port < CHIP_PORTS);
    uint32_t at[AXES] = {chip % 4, chip / 4 % 4, chip / 16};
    uint32_t axis = port / 2, polarity = port % 2;
    if (at[axis] != (polarity == POLARITY_PLUS ? CUBE_SIDE - 1u : 0))
        return false;
    uint32_t low = axis == 0 ? 1 : 0, high = axis == 2 ? 1 : 2;
    *ret_end =
        (struct link_end){cube, (uint8_t)axis, (uint8_t)(at[low] + CUBE_SIDE * at[high]), (uint8_t)polarity};
    return true;
}

uint32_t link_end_chip(struct link_end end)
{
    CHECK(end.axis < AXES && end.index < FACE_LINKS && end.polarity <= POLARITY_MINUS);
    uint32_t at[AXES], low = end.axis == 0 ? 1 : 0, high = end.axis == 2 ? 1 : 2;
    at[end.axis] = end.polarity == POLARITY_PLUS ? CUBE_SIDE - 1 : 0;
    at[low] = end.index % CUBE_SIDE;
    at[high] = end.index / CUBE_SIDE;
    return at[0] + 4 * at[1] + 16 * at[2];
}

static uint32_t ports_of_plus(uint32_t cubes)
{
    CHECK(cubes > 0 && cubes <= POD_CUBES_MAX);
    return cubes <= SMALL_POD_CUBES ? SMALL_POD_CUBES : POD_CUBES_MAX;
}

uint32_t link_end_port(uint32_t cubes, struct link_end end)
{
    CHECK(end.cube < cubes);
    return 1 + end.cube + (end.polarity == POLARITY_MINUS ? ports_of_plus(cubes) : 0);
}

bool switch_port_end(uint32_t cubes, struct pod_switch which, uint32_t port, struct link_end *ret_end)
{
    uint32_t plus = ports_of_plus(cubes);
    if (port == 0 || port > 2 * plus || (port - 1) % plus >= cubes)
        return false;
    CHECK(which.axis < AXES && which.index < FACE_LINKS);
    *ret_end = (struct link_end){(uint16_t)((port - 1) % plus), which.axis, which.index,
                                 port > plus ? POLARITY_MINUS : POLARITY_PLUS};
    return true;
}
