/* internal.h - what the parts of route_build() share: the builder, dimension order, the levelling search and
 * the up-down order. */
#ifndef PHX_CORE_FABRIC_INTERNAL_H
#define PHX_CORE_FABRIC_INTERNAL_H

#include "base/arena.h"
#include "base/check.h"
#include "core/fabric/bound.h"
#include "core/fabric/route.h"

/* The destinations for which first hops are chosen; the others follow by symmetry. */
struct solved {
    bool repeats; /* the dead links of all cubes are alike: the destinations of one cube do */
    uint32_t count;
    uint16_t destinations[SLICE_CHIPS_MAX];
};
/* Returns how many of them need a choice: all, or 0 where dimension order is optimal. */
uint32_t route_solved(const struct torus *torus, struct solved *ret_solved);
/* route_build() with first hops of the canonical torus that were found before: count * chips of them, by
 * destination. NULL: searches. */
int route_build_with(const struct torus *torus, const uint8_t *hops, struct route *ret_route,
                     struct error *error);

/* shift.c: dead links that repeat with every cube are the same pattern after a shift of the torus.
 * Returns the shift, a chip of the first cube, under which the live ports of the first cube are the least in
 * the order of its chips: the torus seen from that chip is the canonical one. 0: canonical itself, or a
 * pattern that does not repeat. `solved` is the torus's. */
uint16_t route_shift(const struct torus *torus, const struct solved *solved);
/* Makes the torus as seen from the chip `shift`: chip c of it is chip c + shift of `torus`. */
void torus_shifted(const struct torus *torus, uint16_t shift, struct torus *ret_torus);
/* Turns tables of torus_shifted(torus, shift) into tables of `torus`. */
void route_shift_tables(const struct torus *torus, uint16_t shift, struct route *route);

struct builder {
    const struct torus *torus;
    struct route *route;
    struct arena *arena;
    bool whole;   /* no link is missing: neither dead nor beyond a mesh */
    bool repeats; /* the dead links of every cube are alike */
    bool clean[AXES];
    /* plain shapes: live links in a row from each chip, by port; at most the extent */
    uint16_t *run[CHIP_PORTS];
    /* twisted shapes, by the parity of the chip and its step from the destination: the port of dimension
     * order, and how many hops follow along the same axis; steps by distance */
    uint8_t *step_port[2];
    uint16_t *step_hops[2];
    uint16_t *steps;
};

/* order.c: the rows of dimension order. */
void order_prepare(struct builder *builder);
/* Fills row[chips] for one destination; ROUTE_NONE where the way meets a dead link. */
void order_row(const struct builder *builder, uint16_t destination, uint8_t *row);

/* level.c: chooses the first hop of each pair among dimension order and detours, for the destinations given.
 * Reads their transit rows and fills their injection rows with ports; ROUTE_NONE where none serves. */
void level_loads(struct builder *builder, const uint16_t *destinations, uint32_t count);

/* updown.c: completes the transit row of a destination, and takes its entries for the injection row's
 * gaps. */
struct updown {
    uint16_t *rank;  /* [chips] in breadth-first order */
    uint16_t *queue; /* [chips] */
};
void updown_prepare(struct builder *builder, struct updown *updown);
void updown_row(const struct builder *builder, struct updown *updown, uint16_t destination);

#endif
