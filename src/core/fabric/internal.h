/* internal.h - shared by the parts of route_build(): the builder, dimension order, the levelling search and
 * the up-down order. */
#ifndef PHX_CORE_FABRIC_INTERNAL_H
#define PHX_CORE_FABRIC_INTERNAL_H

#include "base/arena.h"
#include "base/check.h"
#include "core/fabric/bound.h"
#include "core/fabric/route.h"

/* The destinations for which first hops are chosen; the others follow by symmetry. */
struct solved {
    bool repeats; /* the dead links of all cubes are alike: one cube's destinations suffice */
    uint32_t count;
    uint16_t destinations[SLICE_CHIPS_MAX];
};
/* Fills in the destinations. Returns how many need a choice of first hops: all, or 0 if dimension order is
 * optimal. */
uint32_t route_solved(const struct torus *torus, struct solved *ret_solved);
/* As route_build(), with first hops of the canonical torus that were found before: count * chips ports by
 * destination. If `hops` is NULL, searches for them. */
int route_build_with(const struct torus *torus, const uint8_t *hops, struct route *ret_route,
                     struct error *error);

/* shift.c: dead links that repeat in every cube are the same pattern after a shift of the torus. Returns the
 * shift to the canonical torus: the chip of the first cube from which the live ports of the first cube, in
 * the order of its chips, are the least. Returns 0 if the torus is canonical itself or its pattern does not
 * repeat. `solved` must be the result for `torus`. */
uint16_t route_shift(const struct torus *torus, const struct solved *solved);
/* Makes the torus as seen from chip `shift`: its chip c is chip c + shift of `torus`. */
void torus_shifted(const struct torus *torus, uint16_t shift, struct torus *ret_torus);
/* Turns tables of torus_shifted(torus, shift) into tables of `torus`. */
void route_shift_tables(const struct torus *torus, uint16_t shift, struct route *route);

struct builder {
    const struct torus *torus;
    struct route *route;
    struct arena *arena;
    bool whole;   /* no link is missing: none is dead, and the shape is no mesh */
    bool repeats; /* the dead links of every cube are alike */
    bool clean[AXES];
    /* plain shapes: number of consecutive live links from each chip, by port; at most the extent */
    uint16_t *run[CHIP_PORTS];
    /* twisted shapes, by the parity of the chip and its step from the destination: the port of dimension
     * order, and how many hops follow along the same axis; then all steps, sorted by distance */
    uint8_t *step_port[2];
    uint16_t *step_hops[2];
    uint16_t *steps;
};

/* order.c: the rows of dimension order. */
void order_prepare(struct builder *builder);
/* Fills row[chips] for one destination. An entry is ROUTE_NONE if dimension order meets a dead link. */
void order_row(const struct builder *builder, uint16_t destination, uint8_t *row);

/* level.c: chooses the first hop of each pair, by dimension order or a detour, for the given destinations.
 * Reads their transit rows and writes ports to their injection rows, ROUTE_NONE if neither serves a pair. */
void level_loads(struct builder *builder, const uint16_t *destinations, uint32_t count);

/* updown.c: fills the gaps of a destination's transit row, and copies these entries to the gaps of its
 * injection row. */
struct updown {
    uint16_t *rank;  /* [chips] in breadth-first order */
    uint16_t *queue; /* [chips] */
};
void updown_prepare(struct builder *builder, struct updown *updown);
void updown_row(const struct builder *builder, struct updown *updown, uint16_t destination);

#endif
