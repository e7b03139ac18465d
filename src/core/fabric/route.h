/* route.h - forwarding tables of a slice: which port and which virtual channel a packet takes next.
 *
 * A chip has at most two tables, both indexed by destination: `inject` for packets that start at the chip,
 * and `transit` for packets that arrive on a link. An entry names a port and a virtual channel (VC) and
 * depends on nothing else. The tables are built from published ingredients:
 *
 *   dimension order  a packet follows one axis after the other, the short way round each ring. Between two
 *                    equally short ways the parity of x + y + z of the current chip decides. Axes with dead
 *                    links come first. A ring of a plain torus that is cut on the short side is taken the
 *                    long way. In twisted shapes the next axis is the first one along which a shortest way
 *                    leads.
 *   datelines        on a ring a packet is on VC 0 while the step from the ring's last chip to its first is
 *                    still ahead, else on VC 1.
 *   detour hop       the injection table may first send a packet over any live port on VC 2, if the dimension
 *                    order of that neighbour reaches the destination. The choice levels the load of uniform
 *                    all-to-all traffic, and leads around dead links.
 *   up-down order    where neither works, the transit table leads over links on VC 2, first up and then down
 *                    in the breadth-first order of the chips, to the next chip whose dimension order works.
 *
 * Packets cannot wait for each other in a circle, for three reasons. A packet uses VC 2 only before VCs 0 and
 * 1. On VC 2 a packet never turns from down to up. VCs 0 and 1 follow the order of the axes, and within a
 * ring the dateline breaks the circle. This argument is not relied on: prove.h checks every table that is
 * built.
 *
 * A pattern of dead links that repeats in every cube (one or several dead switches) is solved for the 64
 * destinations of one cube and copied to the others. If a shift of the torus maps one such pattern onto
 * another, the same shift maps their tables. The 16 switches of an axis therefore need one search and one
 * proof (route_shift_check() completes the proof). Every other pattern is solved for all pairs. Sources that
 * need not avoid a dead link then take part too, nearest to dead links first, while pairs <= ROUTE_PAIRS_MAX.
 *
 * The computation uses integers only, so equal fabrics give equal tables on every machine. Tables have one
 * owner, which frees them with route_done().
 */
#ifndef PHX_CORE_FABRIC_ROUTE_H
#define PHX_CORE_FABRIC_ROUTE_H

#include "core/fabric/torus.h"

enum {
    ROUTE_VCS = 3,
    ROUTE_VC_DETOUR = 2,
    ROUTE_SELF = 0xff, /* the entry of the chip itself */
    ROUTE_NONE = 0xfe, /* no packet for this destination passes */
    ROUTE_PAIRS_MAX = 1 << 20,
};

_Static_assert(((CHIP_PORTS - 1) | (ROUTE_VCS - 1) << 3) < ROUTE_NONE, "entries differ from the marks");

struct route {
    uint32_t chips;
    uint8_t order[AXES]; /* axes, in the order in which packets follow them */
    uint8_t *transit;    /* [destination * chips + chip] entries */
    uint8_t *inject;     /* indexed in the same way; NULL: the transit table serves both */
};

static inline uint8_t route_entry(uint32_t port, uint32_t vc)
{
    return (uint8_t)(port | vc << 3);
}
static inline uint32_t route_port(uint8_t entry)
{
    return entry & 7;
}
static inline uint32_t route_vc(uint8_t entry)
{
    return entry >> 3;
}

/* Builds the tables for the live links, without a proof. Returns ERROR_UNAVAILABLE if the links do not
 * connect all chips. Free the tables with route_done(). */
int route_build(const struct torus *torus, struct route *ret_route, struct error *error);
void route_done(struct route *route);

/* Makes the canonical pattern of a torus, for which route_build() searches, and returns the shift: chip c of
 * the canonical torus is chip torus_add(c, shift) of this torus. Free ret_canonical with torus_done(). */
uint16_t route_canonical(const struct torus *torus, struct torus *ret_canonical);
/* Checks that the shift maps each link of `canonical` onto a link of `torus` with the same port, and live
 * links onto live ones. If so, a proof of tables for one holds for the shifted tables of the other. Returns
 * ERROR_CORRUPT and names the first link that is mapped wrongly. */
int route_shift_check(const struct torus *torus, const struct torus *canonical, uint16_t shift,
                      struct error *error);

/* Writes the table to load into one chip: ret_entries[chips], indexed by destination. */
void route_chip_table(const struct route *route, uint16_t chip, bool inject, uint8_t *ret_entries);

#endif
