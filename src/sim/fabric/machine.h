/* machine.h - the emulator of one machine's chips, in a process of its own beside those of the pod's other
 * machines.
 *
 *     machine_open(&settings, &machine, &error)
 *     machine_watch(machine, fds, &wake_ns)       fills machine_fds() entries for poll(), and its timeout
 *     machine_turn(machine, fds)                  serves what is ready
 *     machine_close(machine)                      its links go dark at the other ends
 *
 * The machine's four chips live in this process (chips.h, the net of one machine). Its task finds them at
 * <network>/<cube>-<machine>, as it does for a pod in one process (chips_serve.h). Links to other machines
 * lead through sockets (machinewire.h): copper to the machine beside it, and light through the switches,
 * which serve it at <network>/light (light_serve.h). Machines may start in any order: every MACHINE_RETRY_NS,
 * a machine tries again to reach the neighbours with higher numbers and the switches. When a process dies,
 * its links go dark at the other ends; when it returns, they train again.
 *
 * The other processes are untrusted. A frame that no working link end sends takes the light of its link away:
 * copper is reconnected, and the switches are asked to give the light again. One thread.
 */
#ifndef PHX_SIM_FABRIC_MACHINE_H
#define PHX_SIM_FABRIC_MACHINE_H

#include <poll.h>
#include <stdint.h>

#include "base/error.h"

enum { MACHINE_RETRY_NS = 100 * 1000000 };

struct machine_settings {
    const char *network;   /* folder of the sockets; created if it is missing */
    uint32_t machine;      /* 16 x cube + machine of the cube */
    uint32_t memory_bytes; /* of each chip */
    uint32_t loss_ppm;     /* share of frames that arrive damaged */
};
struct machine;

int machine_open(const struct machine_settings *settings, struct machine **ret_machine, struct error *error);
void machine_close(struct machine *machine);

uint32_t machine_fds(const struct machine *machine);
/* Fills the entries for poll(). *ret_wake_ns is when a turn is due without one, by CLOCK_MONOTONIC;
 * INT64_MAX: never. */
void machine_watch(const struct machine *machine, struct pollfd *fds, int64_t *ret_wake_ns);
void machine_turn(struct machine *machine, const struct pollfd *fds);

#endif
