/* ha.h - torture of several controllers: the core and driver that ship, on a simulated etcd.
 *
 *     struct torture_outcome outcome;
 *     ha_run(&(struct torture_options){.seed = 7, .controllers = 3}, &outcome);
 *
 * One to five controllers share their log through a model of etcd: linearizable transactions, leases that may
 * end late, watches that lag or fail in silence. Any two places may be cut off from each other; calls to etcd
 * are delayed, lost, or carried out without an answer. Controllers are killed, stopped, handed over, taken
 * for dead while they live. A run is a pure function of its options and has the two phases of torture.h.
 *
 * Invariants, checked as each transaction and each event happens:
 *   - one history: a record that etcd holds never changes, and each controller applies just these records;
 *   - only who leads appends; epochs grow; equal sequence numbers mean equal digests;
 *   - an effect, so an acknowledgement as well, leaves only behind its record;
 *   - what a client was promised is there after every take-over;
 *   - the core's own invariants, no chip with two owners among them.
 * At the end one controller leads, takes a write, and all hold the same state. */
#ifndef PHX_SIM_HA_HA_H
#define PHX_SIM_HA_HA_H

#include "sim/torture.h"

/* Runs `options->controllers` controllers, at least 1. The log is read by up to 5. */
void ha_run(const struct torture_options *options, struct torture_outcome *ret_outcome);
/* Writes what the seed draws, for people. */
void ha_draw_text(uint64_t seed, uint32_t controllers, char *ret_text, size_t size);

#endif
