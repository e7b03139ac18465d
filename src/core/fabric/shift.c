#include "core/fabric/internal.h"

/* Returns the live ports of the chip at `place` of the first cube, as seen from a torus whose chip 0 is
 * `shift`. */
static uint8_t live_after(const struct torus *torus, uint16_t shift, uint16_t place)
{
    return torus->live[torus_add(torus, place, shift)];
}

uint16_t route_shift(const struct torus *torus, const struct solved *solved)
{
    uint16_t best = 0;
    for (uint32_t i = 0; i < solved->count && solved->repeats; i++) {
        uint16_t shift = solved->destinations[i];
        int order = 0;
        for (uint32_t k = 0; k < solved->count && order == 0; k++)
            order = live_after(torus, shift, solved->destinations[k]) -
                    live_after(torus, best, solved->destinations[k]);
        best = order < 0 ? shift : best;
    }
    CHECK(best < torus->chips);
    return best;
}

void torus_shifted(const struct torus *torus, uint16_t shift, struct torus *ret_torus)
{
    torus_copy(ret_torus, torus);
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        ret_torus->live[chip] = torus->live[torus_add(torus, (uint16_t)chip, shift)];
}

uint16_t route_canonical(const struct torus *torus, struct torus *ret_canonical)
{
    struct solved *solved = mem_alloc(sizeof *solved);
    route_solved(torus, solved);
    uint16_t shift = route_shift(torus, solved);
    torus_shifted(torus, shift, ret_canonical);
    mem_free(solved);
    return shift;
}

/* Copies the row of a destination to the row of the destination `shift` further, by whole lines along X. */
static void shift_row(const struct torus *torus, uint16_t shift, const uint8_t *from, uint8_t *ret_row)
{
    uint32_t extent = torus->shape.extent[0], first = extent - torus->at[0][shift];
    CHECK(first > 0 && first <= extent);
    for (uint32_t line = 0; line < torus->chips; line += extent) {
        mem_copy(ret_row + torus_add(torus, (uint16_t)line, shift), from + line, first);
        if (first < extent)
            mem_copy(ret_row + torus_add(torus, (uint16_t)(line + first), shift), from + line + first,
                     extent - first);
    }
}

static void shift_table(const struct torus *torus, uint16_t shift, uint8_t **table)
{
    if (!*table)
        return;
    uint8_t *moved = mem_alloc((size_t)torus->chips * torus->chips);
    for (uint32_t to = 0; to < torus->chips; to++)
        shift_row(torus, shift, *table + (size_t)to * torus->chips,
                  moved + (size_t)torus_add(torus, (uint16_t)to, shift) * torus->chips);
    mem_free(*table);
    *table = moved;
}

void route_shift_tables(const struct torus *torus, uint16_t shift, struct route *route)
{
    CHECK(route->chips == torus->chips && shift < torus->chips);
    shift_table(torus, shift, &route->transit);
    shift_table(torus, shift, &route->inject);
    CHECK(route->transit[0] == ROUTE_SELF);
}

int route_shift_check(const struct torus *torus, const struct torus *canonical, uint16_t shift,
                      struct error *error)
{
    CHECK(torus->chips == canonical->chips && shift < torus->chips);
    for (uint32_t chip = 0; chip < torus->chips; chip++) {
        uint16_t image = torus_add(torus, (uint16_t)chip, shift);
        for (uint32_t port = 0; port < CHIP_PORTS; port++) {
            uint16_t next = canonical->next[chip * CHIP_PORTS + port],
                     of_image = torus->next[image * (uint32_t)CHIP_PORTS + port];
            bool same =
                next == TORUS_NONE ? of_image == TORUS_NONE : of_image == torus_add(torus, next, shift);
            if (!same || torus_link_live(canonical, chip, port) != torus_link_live(torus, image, port))
                return error_set(error, ERROR_CORRUPT,
                                 "chip %u port %u: a shift by chip %u does not lead its link to that of "
                                 "chip %u",
                                 chip, port, shift, image);
        }
    }
    return 0;
}
