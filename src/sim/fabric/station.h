/* station.h - the orders that a fabric session gives to emulated chips: loads, starts, and lost light.
 *
 * A chip answers for itself: it reports what it sees at its ports, and measures round trips. A start runs
 * from chip to chip over the emulated links (chips_arm()), as each chip was told when its tables were loaded.
 * This module does not know the shape of a slice. Both the session in one process (bring_up.h) and tasks in
 * other processes (chips_serve.h) give their orders through these functions.
 *
 * Chips are named by label, 64 x cube + chip of the cube. One owner. The net must outlive the stations.
 */
#ifndef PHX_SIM_FABRIC_STATION_H
#define PHX_SIM_FABRIC_STATION_H

#include "core/fabric/session.h"
#include "sim/fabric/chips.h"

struct stations;

/* Makes stations for a net of `cubes` cubes, or for the net of one machine in such a pod. Free them with
 * stations_free(). */
struct stations *stations_new(struct chips *net, uint32_t cubes);
void stations_free(struct stations *stations);

/* Returns whether no link of the chip is in training, so that stations_look() gives the final state. */
bool stations_may_look(const struct stations *stations, uint32_t chip);
/* Writes what the chip sees at each port: its neighbours and round trips. */
void stations_look(const struct stations *stations, uint32_t chip,
                   struct fabric_neighbour ret_seen[CHIP_PORTS]);
/* Returns the number of the session for which the chip was last loaded, even after an unload. */
uint32_t stations_session(const struct stations *stations, uint32_t chip);

/* Stops the chip's data and gives it its part of a session. The caller loads its tables with chips_load(),
 * before or after. */
void stations_load(struct stations *stations, uint32_t chip, uint32_t number, uint8_t children,
                   int64_t wait_ns);
void stations_unload(struct stations *stations, uint32_t chip); /* also unloads its tables */

/* Begins a start at a chip. The start is passed on along the clock tree, and each chip that it reaches waits
 * as it was told and then lets data flow. Chips that are not loaded for this number are not reached. Returns
 * false if the root itself is not loaded for it. */
bool stations_start(struct stations *stations, uint32_t root, uint32_t number);
/* Takes the next chip that has let data flow. Returns false if there is none until the net has run. */
bool stations_take_started(struct stations *stations, struct chips_begun *ret_begun);
/* Returns when the first and the last chip, of those taken since the newest start, let data flow. */
void stations_started(const struct stations *stations, int64_t *ret_first_ns, int64_t *ret_last_ns);

/* Returns the ports of a loaded chip that have lost their light since the last call, one bit each. */
uint8_t stations_dark(struct stations *stations, uint32_t chip);

#endif
