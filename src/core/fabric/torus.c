#include "core/fabric/torus.h"

#include "base/arena.h"
#include "base/check.h"

uint16_t torus_chip(const struct torus *torus, uint32_t x, uint32_t y, uint32_t z)
{
    const uint16_t *extent = torus->shape.extent;
    CHECK(x < extent[0] && y < extent[1] && z < extent[2]);
    return (uint16_t)(x + extent[0] * (y + extent[1] * z));
}

/* Returns whether leaving the end of `axis` shifts along `other`. */
static bool shifts(const struct slice_shape *shape, int axis, int other)
{
    return shape->twisted && shape->extent[axis] == shape->extent[0] &&
           shape->extent[other] == 2 * shape->extent[0];
}

/* Returns the chip at coordinates that are too large or too small by at most one extent. */
static uint16_t normal_chip(const struct torus *torus, int32_t at[AXES])
{
    const uint16_t *extent = torus->shape.extent;
    for (int axis = 0; axis < AXES; axis++) {
        int32_t turn = at[axis] >= extent[axis] ? -1 : at[axis] < 0 ? 1 : 0;
        at[axis] += turn * extent[axis];
        for (int other = axis + 1; turn != 0 && other < AXES; other++)
            if (shifts(&torus->shape, axis, other))
                at[other] += at[other] >= extent[0] ? -extent[0] : extent[0];
    }
    return torus_chip(torus, (uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]);
}

uint16_t torus_add(const struct torus *torus, uint16_t chip, uint16_t step)
{
    CHECK(chip < torus->chips && step < torus->chips);
    int32_t at[AXES];
    for (int axis = 0; axis < AXES; axis++)
        at[axis] = torus->at[axis][chip] + torus->at[axis][step];
    return normal_chip(torus, at);
}

static uint16_t neighbour(const struct torus *torus, uint16_t chip, uint32_t port)
{
    int32_t at[AXES] = {torus->at[0][chip], torus->at[1][chip], torus->at[2][chip]};
    uint32_t axis = port / 2;
    at[axis] += port % 2 ? -1 : 1;
    bool leaves = at[axis] < 0 || at[axis] >= torus->shape.extent[axis];
    return leaves && !slice_shape_is_whole(&torus->shape) ? TORUS_NONE : normal_chip(torus, at);
}

static void take_arrays(struct torus *torus)
{
    for (int axis = 0; axis < AXES; axis++)
        torus->at[axis] = mem_alloc(torus->chips * sizeof *torus->at[axis]);
    torus->next = mem_alloc(torus->chips * CHIP_PORTS * sizeof *torus->next);
    torus->live = mem_alloc(torus->chips);
}

void torus_init(struct torus *torus, const struct slice_shape *shape)
{
    CHECK(slice_shape_check(shape, NULL) == 0);
    *torus = (struct torus){.shape = *shape, .chips = slice_shape_chips(shape)};
    take_arrays(torus);
    uint32_t chip = 0;
    for (uint16_t z = 0; z < shape->extent[2]; z++)
        for (uint16_t y = 0; y < shape->extent[1]; y++)
            for (uint16_t x = 0; x < shape->extent[0]; x++, chip++) {
                torus->at[0][chip] = x;
                torus->at[1][chip] = y;
                torus->at[2][chip] = z;
            }
    CHECK(chip == torus->chips);
    for (chip = 0; chip < torus->chips; chip++)
        for (uint32_t port = 0; port < CHIP_PORTS; port++) {
            uint16_t next = neighbour(torus, (uint16_t)chip, port);
            torus->next[chip * CHIP_PORTS + port] = next;
            torus->live[chip] |= (uint8_t)((next != TORUS_NONE) << port);
        }
}

void torus_copy(struct torus *torus, const struct torus *from)
{
    *torus = *from;
    take_arrays(torus);
    for (int axis = 0; axis < AXES; axis++)
        mem_copy(torus->at[axis], from->at[axis], from->chips * sizeof *from->at[axis]);
    mem_copy(torus->next, from->next, from->chips * CHIP_PORTS * sizeof *from->next);
    mem_copy(torus->live, from->live, from->chips);
}

void torus_done(struct torus *torus)
{
    for (int axis = 0; axis < AXES; axis++)
        mem_free(torus->at[axis]);
    mem_free(torus->next);
    mem_free(torus->live);
    *torus = (struct torus){0};
}

uint32_t torus_ring_length(const struct torus *torus, uint32_t axis)
{
    CHECK(axis < AXES);
    bool shifted = shifts(&torus->shape, (int)axis, 2);
    return torus->shape.extent[axis] * (shifted ? 2u : 1u);
}

uint32_t torus_ring_at(const struct torus *torus, uint32_t axis, uint16_t chip)
{
    CHECK(axis < AXES && chip < torus->chips);
    const uint16_t *extent = torus->shape.extent;
    bool second = shifts(&torus->shape, (int)axis, 2) && torus->at[2][chip] >= extent[0];
    return torus->at[axis][chip] + (second ? extent[axis] : 0u);
}

bool torus_link_switch(const struct torus *torus, uint16_t chip, enum chip_port port,
                       struct pod_switch *ret_switch)
{
    CHECK(chip < torus->chips && port < CHIP_PORTS);
    uint32_t inside =
        torus->at[0][chip] % 4u + 4 * (torus->at[1][chip] % 4u) + 16 * (torus->at[2][chip] % 4u);
    struct link_end end;
    if (!slice_shape_is_whole(&torus->shape) || !cube_chip_optical(0, inside, port, &end))
        return false;
    *ret_switch = (struct pod_switch){end.axis, end.index};
    return true;
}

bool torus_kill_link(struct torus *torus, uint16_t chip, enum chip_port port)
{
    CHECK(chip < torus->chips && port < CHIP_PORTS);
    if (!torus_link_live(torus, chip, port))
        return false;
    uint16_t other = torus->next[chip * (uint32_t)CHIP_PORTS + port];
    CHECK(torus_link_live(torus, other, port ^ 1u));
    torus->live[chip] &= (uint8_t) ~(1u << port);
    torus->live[other] &= (uint8_t) ~(1u << (port ^ 1u));
    torus->dead[port / 2]++;
    return true;
}

uint32_t torus_kill_switch(struct torus *torus, struct pod_switch which)
{
    uint32_t killed = 0;
    for (uint32_t chip = 0; chip < torus->chips; chip++) {
        struct pod_switch passed;
        enum chip_port port = 2u * which.axis + POLARITY_PLUS;
        if (torus_link_switch(torus, (uint16_t)chip, port, &passed) && passed.index == which.index)
            killed += torus_kill_link(torus, (uint16_t)chip, port);
    }
    return killed;
}

void torus_distances(const struct torus *torus, uint16_t from, uint16_t *queue, uint16_t *ret_steps)
{
    CHECK(from < torus->chips);
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        ret_steps[chip] = TORUS_NONE;
    uint32_t first = 0, last = 0;
    ret_steps[from] = 0;
    queue[last++] = from;
    while (first < last) {
        uint16_t chip = queue[first++];
        for (uint32_t port = 0; port < CHIP_PORTS; port++) {
            uint16_t next = torus->next[chip * CHIP_PORTS + port];
            if (torus_link_live(torus, chip, port) && ret_steps[next] == TORUS_NONE) {
                ret_steps[next] = (uint16_t)(ret_steps[chip] + 1);
                queue[last++] = next;
            }
        }
    }
    CHECK(last <= torus->chips);
}

bool torus_connected(const struct torus *torus)
{
    uint16_t *steps = mem_alloc(2 * torus->chips * sizeof *steps);
    torus_distances(torus, 0, steps + torus->chips, steps);
    bool connected = true;
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        connected = connected && steps[chip] != TORUS_NONE;
    mem_free(steps);
    return connected;
}
