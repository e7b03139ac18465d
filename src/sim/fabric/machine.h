/* machine.h - the emulator of one machine's chips, a process of its own among those of a pod.
 *
 *     machine_open(&settings, &machine, &error)
 *     machine_watch(machine, fds, &wake_ns)       machine_fds() entries for poll(), and how long
 *     machine_turn(machine, fds)                  serves what is ready
 *     machine_close(machine)                      its links go dark at the others
 *
 * The machine's four chips live here (chips.h, the net of one machine), and its task finds them at
 * <network>/<cube>-<machine> as it finds those of a pod in one process (chips_serve.h). The links to other
 * machines lead through sockets (machinewire.h): copper to the machine beside it, and light through the
 * switches, which serve it at <network>/light (light_serve.h). The machines may begin in any order: a machine
 * tries again every MACHINE_RETRY_NS to reach the neighbours with higher numbers, and the switches. When a
 * process dies, its links go dark at the others; when it is back, they train anew.
 *
 * The other processes may be broken. A frame that no working link end sends takes the light of its link away:
 * copper is connected anew, and the switches are asked to give light anew. One thread.
 */
#ifndef PHX_SIM_FABRIC_MACHINE_H
#define PHX_SIM_FABRIC_MACHINE_H

#include <poll.h>
#include <stdint.h>

#include "base/error.h"

enum { MACHINE_RETRY_NS = 100 * 1000000 };

struct machine_settings {
    const char *network;   /* the folder of the sockets; is made, if it is missing */
    uint32_t machine;      /* 16 x cube + machine of the cube */
    uint32_t memory_bytes; /* of each chip */
    uint32_t loss_ppm;     /* frames that arrive damaged */
};
struct machine;

int machine_open(const struct machine_settings *settings, struct machine **ret_machine, struct error *error);
void machine_close(struct machine *machine);

uint32_t machine_fds(const struct machine *machine);
/* *ret_wake_ns: by CLOCK_MONOTONIC; INT64_MAX: never. */
void machine_watch(const struct machine *machine, struct pollfd *fds, int64_t *ret_wake_ns);
void machine_turn(struct machine *machine, const struct pollfd *fds);

#endif
