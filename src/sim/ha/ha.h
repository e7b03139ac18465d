/* ha.h - torture of several controllers: the core and driver that ship, on a simulated etcd.
 *
 *     struct torture_outcome outcome;
 *     ha_run(&(struct torture_options){.seed = 7, .controllers = 3}, &outcome);
 *
 * One to five controllers share their log through a model of etcd: linearizable transactions, leases that may
 * end late, watches that lag or fail silently. Any two places may be cut off from each other. Calls to etcd
 * are delayed, lost, or carried out without an answer. Controllers are killed, paused, asked to hand over, or
 * taken for dead while they live. A run is a pure function of its options and has the two phases of
 * torture.h.
 *
 * Invariants, checked at each transaction and each event:
 *   - one history: a record that etcd holds never changes, and each controller applies exactly these records;
 *   - only the leader appends; epochs grow; equal sequence numbers mean equal digests;
 *   - an effect, and thus an acknowledgement, leaves only after its record is in the log;
 *   - acknowledged writes exist after every take-over;
 *   - the core's own invariants, such as no chip with two owners.
 * At the end exactly one controller leads and acknowledges writes, and all controllers have the same
 * state. */
#ifndef PHX_SIM_HA_HA_H
#define PHX_SIM_HA_HA_H

#include "sim/torture.h"

/* Runs `options->controllers` controllers, 1 to TORTURE_CONTROLLERS_MAX. Otherwise like torture_run(). */
void ha_run(const struct torture_options *options, struct torture_outcome *ret_outcome);
/* Describes the options that a seed draws, for people. Cuts the text to `size` bytes. */
void ha_draw_text(uint64_t seed, uint32_t controllers, char *ret_text, size_t size);

#endif
