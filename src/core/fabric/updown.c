/* Up-down order on VC 2: routes for chips whose dimension order meets a dead link, to chips whose dimension
 * order works. */
#include "core/fabric/internal.h"

void updown_prepare(struct builder *builder, struct updown *updown)
{
    uint32_t chips = builder->torus->chips;
    uint16_t *steps = ARENA_ARRAY(builder->arena, uint16_t, chips);
    updown->rank = ARENA_ARRAY(builder->arena, uint16_t, chips);
    updown->queue = ARENA_ARRAY(builder->arena, uint16_t, chips);
    torus_distances(builder->torus, 0, updown->queue, steps);
    for (uint32_t i = 0; i < chips; i++)
        updown->rank[updown->queue[i]] = (uint16_t)i;
    CHECK(updown->rank[0] == 0);
}

/* Gives chips without an entry one that leads to the nearest chip with an entry, over links that lead down,
 * or up. */
static void spread(const struct builder *builder, struct updown *updown, uint8_t *row, bool down)
{
    const struct torus *torus = builder->torus;
    uint32_t first = 0, last = 0;
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        if (row[chip] != ROUTE_NONE)
            updown->queue[last++] = (uint16_t)chip;
    while (first < last) {
        uint16_t to = updown->queue[first++];
        for (uint32_t port = 0; port < CHIP_PORTS; port++) {
            uint16_t from = torus->next[to * CHIP_PORTS + port];
            if (!torus_link_live(torus, to, port) || row[from] != ROUTE_NONE ||
                (updown->rank[from] < updown->rank[to]) != down)
                continue;
            row[from] = route_entry(port ^ 1, ROUTE_VC_DETOUR);
            updown->queue[last++] = from;
        }
    }
    CHECK(last <= torus->chips);
}

void updown_row(const struct builder *builder, struct updown *updown, uint16_t destination)
{
    struct route *route = builder->route;
    uint8_t *transit = route->transit + (size_t)destination * route->chips;
    uint8_t *inject = route->inject + (size_t)destination * route->chips;
    CHECK(transit[destination] == ROUTE_SELF && updown->rank);
    /* A chip that can send down all the way does so, because chips after a step down may only send down. */
    spread(builder, updown, transit, true);
    spread(builder, updown, transit, false);
    for (uint32_t chip = 0; chip < route->chips; chip++) {
        CHECK(transit[chip] != ROUTE_NONE);
        if (inject[chip] == ROUTE_NONE)
            inject[chip] = transit[chip];
    }
}
