/* torus.h - the chip graph of a slice: which chip each port leads to, and which links work.
 *
 * Chip (x, y, z) has the number x + X (y + Y z). A step along +axis adds 1 to that coordinate. What happens
 * at the end of an axis depends on the family (n is the X extent):
 *
 *   sub-cube      the port has no link
 *   whole-cube    the coordinate becomes 0
 *   (n, n, 2n)    from x = n-1 to (0, y, z + n mod 2n); from y = n-1 to (x, 0, z + n mod 2n); Z is plain
 *   (n, 2n, 2n)   from x = n-1 to (0, y + n mod 2n, z + n mod 2n); Y and Z are plain
 *
 * A ring is the circle of chips along one axis. In twisted families a ring of a shifted axis passes its end
 * twice and has 2n chips. `ring_at` numbers the chips of a ring, and the step from the last number to 0 is
 * the ring's dateline (route.h).
 *
 * The shifts are multiples of 4, so a link that leaves a cube always arrives at the same place of the
 * opposite face: one switch {axis, index} joins the cubes of a slice, twisted or not. A dead switch kills
 * that link of every cube.
 *
 * Links are pairs of directions and die in both. One owner; torus_done() frees the arrays.
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
    uint16_t *next;      /* [chips * CHIP_PORTS] the chip that a port leads to, dead or alive; TORUS_NONE */
    uint8_t *live;       /* [chips] one bit for each port with a link that works */
    uint32_t dead[AXES]; /* links that were killed, by axis */
};

/* Makes the graph of a valid shape with all links alive. */
void torus_init(struct torus *torus, const struct slice_shape *shape);
void torus_copy(struct torus *torus, const struct torus *from);
void torus_done(struct torus *torus);

uint16_t torus_chip(const struct torus *torus, uint32_t x, uint32_t y, uint32_t z);
/* The chip reached from `chip` by the same steps that lead from chip 0 to `step`. */
uint16_t torus_add(const struct torus *torus, uint16_t chip, uint16_t step);

static inline bool torus_link_live(const struct torus *torus, uint32_t chip, uint32_t port)
{
    return torus->live[chip] >> port & 1;
}

/* Length of the rings along an axis, and the place of a chip in its ring. */
uint32_t torus_ring_length(const struct torus *torus, uint32_t axis);
uint32_t torus_ring_at(const struct torus *torus, uint32_t axis, uint16_t chip);

/* The switch that a link passes; false for copper. Both ends of a link name the same switch. */
bool torus_link_switch(const struct torus *torus, uint16_t chip, enum chip_port port,
                       struct pod_switch *ret_switch);

/* Kills one link, in both directions; false where there is none or it is dead already. */
bool torus_kill_link(struct torus *torus, uint16_t chip, enum chip_port port);
/* Kills every link that passes a switch; returns how many. */
uint32_t torus_kill_switch(struct torus *torus, struct pod_switch which);

/* Whether every chip reaches every other over live links. */
bool torus_connected(const struct torus *torus);
/* Steps from chip `from` to each chip over live links: ret_steps[chips], TORUS_NONE where there is no way.
 * `queue` has room for as many. */
void torus_distances(const struct torus *torus, uint16_t from, uint16_t *queue, uint16_t *ret_steps);

#endif
