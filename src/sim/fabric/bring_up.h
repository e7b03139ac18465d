/* bring_up.h - carries out the orders of a fabric session (core/fabric/session.h) on emulated chips.
 *
 * Every chip answers for itself: what it sees at its ports, and the round trip that it measures. The start of
 * a session runs from chip to chip over the emulated links, as each chip was told when its tables were
 * loaded; nothing here knows the shape of the slice.
 *
 *     up = bring_up_new(net, cubes)
 *     bring_up_carry_out(up, session)     until the session has no more orders
 *     bring_up_watch(up, session)         tells it of links whose light went; then carry out again
 *
 * A bring-up has one owner; the net must outlive it. Virtual time is the net's.
 */
#ifndef PHX_SIM_FABRIC_BRING_UP_H
#define PHX_SIM_FABRIC_BRING_UP_H

#include "core/fabric/session.h"
#include "sim/fabric/chips.h"

struct bring_up;

/* For a net of `cubes` cubes. */
struct bring_up *bring_up_new(struct chips *net, uint32_t cubes);
void bring_up_free(struct bring_up *up);

void bring_up_carry_out(struct bring_up *up, struct fabric_session *session);
/* Compares the light of all loaded chips with that of the last look; returns how many links went dark. */
uint32_t bring_up_watch(struct bring_up *up, struct fabric_session *session);

/* When the first and the last chip of the newest start let data flow. */
void bring_up_started(const struct bring_up *up, int64_t *ret_first_ns, int64_t *ret_last_ns);

#endif
