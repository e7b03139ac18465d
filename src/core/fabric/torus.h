/* torus.h - the chip graph of a slice: which chip each port leads to, and which links work.
 *
 * Chip (x, y, z) has the number x + X (y + Y z). A step along +axis adds 1 to that coordinate. The end of an
 * axis depends on the family (n is the X extent):
 *
 *   sub-cube      the port has no link
 *   whole-cube    the coordinate becomes 0
 *   (n, n, 2n)    from x = n-1 to (0, y, z + n mod 2n); from y = n-1 to (x, 0, z + n mod 2n); Z is plain
 *   (n, 2n, 2n)   from x = n-1 to (0, y + n mod 2n, z + n mod 2n); Y and Z are plain
 *
 * A ring is the circle of chips along one axis. In twisted families a ring of a shifted axis passes the end
 * of the axis twice and has 2n chips. torus_ring_at() numbers the chips of a ring. The step from the last
 * number to 0 is the ring's dateline (route.h).
 *
 * The shifts are multiples of 4, so a link that leaves a cube always arrives at the same place of the
 * opposite face. One switch {axis, index} therefore joins the cubes of a slice, twisted or not, and a dead
 * switch kills that link of every cube.
 *
 * A link has two directions, and both fail together. A torus has one owner, which frees its arrays with
 * torus_done().
 */
#ifndef PHX_CORE_FABRIC_TORUS_H
#define PHX_CORE_FABRIC_TORUS_H

#include "core/fabric/shape.h"
#include "core/fabric/wiring.h"

enum { TORUS_NONE = 0xffff }; /* no chip */
_Static_assert(CHIP_PORTS <= 8, "the live ports of a chip are bits of one byte");

struct torus {
    struct slice_shape shape;
    uint32_t chips;
    uint16_t *at[AXES];  /* [chips] coordinates */
    /* [chips * CHIP_PORTS] the chip that a port leads to, even over a dead link; TORUS_NONE: no link */
    uint16_t *next;
    uint8_t *live;       /* [chips] one bit for each port with a link that works */
    uint32_t dead[AXES]; /* number of dead links, by axis */
};

/* Makes the graph of a valid shape with all links alive. Free it with torus_done(). */
void torus_init(struct torus *torus, const struct slice_shape *shape);
void torus_copy(struct torus *torus, const struct torus *from);
void torus_done(struct torus *torus);

uint16_t torus_chip(const struct torus *torus, uint32_t x, uint32_t y, uint32_t z);
/* Returns the chip reached from `chip` by the steps that lead from chip 0 to `step`. */
uint16_t torus_add(const struct torus *torus, uint16_t chip, uint16_t step);

static inline bool torus_link_live(const struct torus *torus, uint32_t chip, uint32_t port)
{
    return torus->live[chip] >> port & 1;
}

/* Return the length of the rings along an axis, and the place of a chip in its ring. */
uint32_t torus_ring_length(const struct torus *torus, uint32_t axis);
uint32_t torus_ring_at(const struct torus *torus, uint32_t axis, uint16_t chip);

/* Finds the switch that a link passes. Returns false for copper. Both ends of a link name the same switch. */
bool torus_link_switch(const struct torus *torus, uint16_t chip, enum chip_port port,
                       struct pod_switch *ret_switch);

/* Kills a link in both directions. Returns false if the port has no link, or a dead one. */
bool torus_kill_link(struct torus *torus, uint16_t chip, enum chip_port port);
/* Kills every link that passes a switch, and returns their number. */
uint32_t torus_kill_switch(struct torus *torus, struct pod_switch which);

/* Returns whether every chip reaches every other over live links. */
bool torus_connected(const struct torus *torus);
/* Writes the number of steps over live links from chip `from` to each chip: ret_steps[chips], TORUS_NONE for
 * a chip that is not reached. `queue` has space for as many elements. */
void torus_distances(const struct torus *torus, uint16_t from, uint16_t *queue, uint16_t *ret_steps);

#endif
