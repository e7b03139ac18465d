/* bring_up.h - carries out the orders of a fabric session (core/fabric/session.h) on emulated chips.
 *
 * Every chip answers for itself: what it sees at its ports, and the round trip that it measures. The start of
 * a session runs from chip to chip over the emulated links, as each chip was told when its tables were
 * loaded. This module does not know the shape of the slice.
 *
 *     up = bring_up_new(net, cubes)
 *     bring_up_carry_out(up, session)     until the session has no more orders
 *     bring_up_watch(up, session)         reports links that lost their light; then carry out again
 *
 * A bring-up has one owner. The net must outlive it. Time is the net's virtual time.
 */
#ifndef PHX_SIM_FABRIC_BRING_UP_H
#define PHX_SIM_FABRIC_BRING_UP_H

#include "core/fabric/session.h"
#include "sim/fabric/chips.h"

struct bring_up;

/* Makes a bring-up for a net of `cubes` cubes. Free it with bring_up_free(). */
struct bring_up *bring_up_new(struct chips *net, uint32_t cubes);
void bring_up_free(struct bring_up *up);

void bring_up_carry_out(struct bring_up *up, struct fabric_session *session);
/* Reports to the session each link of a loaded chip that has lost its light since the last call. Returns the
 * number of links that the session accepted. */
uint32_t bring_up_watch(struct bring_up *up, struct fabric_session *session);

/* Returns when the first and the last chip of the newest start let data flow. */
void bring_up_started(const struct bring_up *up, int64_t *ret_first_ns, int64_t *ret_last_ns);

#endif
