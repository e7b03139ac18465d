/* station.h - what the chips of an emulated net were told by a fabric session: loads, starts, lost light.
 *
 * A chip answers for itself: it says what it sees at its ports and measures round trips, and a start runs
 * from chip to chip over the emulated links (chips_arm()), as each chip was told when its tables were
 * loaded. Nothing here knows the shape of a slice. Both the session in one process (bring_up.h) and tasks
 * that are elsewhere (chips_serve.h) give their orders by these functions.
 *
 * Chips are named by label, 64 x cube + chip of the cube. One owner; the net must outlive the stations.
 */
#ifndef PHX_SIM_FABRIC_STATION_H
#define PHX_SIM_FABRIC_STATION_H

#include "core/fabric/session.h"
#include "sim/fabric/chips.h"

struct stations;

/* For a net of `cubes` cubes, or of one machine of such. */
struct stations *stations_new(struct chips *net, uint32_t cubes);
void stations_free(struct stations *stations);

/* Whether no link of the chip is in training, so that a look tells what will be. */
bool stations_may_look(const struct stations *stations, uint32_t chip);
void stations_look(const struct stations *stations, uint32_t chip,
                   struct fabric_neighbour ret_seen[CHIP_PORTS]);
/* The number of the session for which the chip was loaded last; it is kept when the chip is unloaded. */
uint32_t stations_session(const struct stations *stations, uint32_t chip);

/* Stops the chip's data and gives it its part of a session; its tables were loaded, or are loaded next, by
 * chips_load(). */
void stations_load(struct stations *stations, uint32_t chip, uint32_t number, uint8_t children,
                   int64_t wait_ns);
void stations_unload(struct stations *stations, uint32_t chip); /* and its tables */

/* Begins a start at a chip: it is passed on along the clock tree, each chip that it reaches waits as it was
 * told, and then lets data flow. Chips that are not loaded for this number are not reached. False: the root
 * itself is not loaded for it. */
bool stations_start(struct stations *stations, uint32_t root, uint32_t number);
/* The next chip that has let data flow; false: no more until the net has run. */
bool stations_take_started(struct stations *stations, struct chips_begun *ret_begun);
/* When the first and the last chip that were taken since the newest start let data flow. */
void stations_started(const struct stations *stations, int64_t *ret_first_ns, int64_t *ret_last_ns);

/* Bits of the ports of a loaded chip whose light went since the last call. */
uint8_t stations_dark(struct stations *stations, uint32_t chip);

#endif
