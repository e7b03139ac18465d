/* chips_serve.h - emulated chips for real tasks: a Unix socket for each machine.
 *
 *     chips_serve_open(&settings, &serve, &error)      binds <folder>/<cube>-<machine> for the machines
 *     chips_serve_follow(serve, number, &ocs)          a switch may have changed: reported in the next turn
 *     chips_serve_watch(serve, fds)                    fills chips_serve_fds() entries for poll()
 *     chips_serve_turn(serve, fds)                     serves what is ready
 *     chips_serve_close(serve)                         removes the sockets
 *
 * The protocol is job/fabric/chipwire.h; its other side is the driver `emulated` of libphalanx_fabric. Chips
 * of a machine are counted as ranks see them: along X first, then Y.
 *
 * With all machines of a pod, the network between the chips lives in virtual time (chips.h), and what is sent
 * arrives within the turn, as far as light and tables allow. With one machine (`one_machine`), its chips live
 * in CLOCK_MONOTONIC, and the owner carries what leads out of the machine (machine.h), through
 * chips_serve_net(). A request for a chip's neighbours waits until the chip's links have trained.
 *
 * Clients do not trust each other and may be broken. A malformed request ends its connection, an order that
 * cannot be carried out is refused with a reason, and a client that does not read is disconnected at
 * CHIPS_SERVE_OUT_MAX bytes. One thread.
 */
#ifndef PHX_SIM_FABRIC_CHIPS_SERVE_H
#define PHX_SIM_FABRIC_CHIPS_SERVE_H

#include <poll.h>

#include "base/error.h"
#include "sim/fabric/chips.h"

enum { CHIPS_SERVE_OUT_MAX = 64 << 20, CHIPS_SERVE_MEMORY = 4 << 20 };

struct chips_serve_settings {
    const char *folder;    /* created if it is missing */
    uint32_t cubes;        /* 1 to POD_CUBES_MAX */
    uint32_t memory_bytes; /* of each chip */
    uint32_t loss_ppm;     /* share of frames that arrive damaged */
    bool one_machine;      /* only `machine`, 16 x cube + machine of the cube */
    uint32_t machine;
};
struct chips_serve;

int chips_serve_open(const struct chips_serve_settings *settings, struct chips_serve **ret_serve,
                     struct error *error);
void chips_serve_close(struct chips_serve *serve);

/* Returns the number of entries that chips_serve_watch() fills. */
uint32_t chips_serve_fds(const struct chips_serve *serve);
void chips_serve_watch(const struct chips_serve *serve, struct pollfd *fds);
void chips_serve_turn(struct chips_serve *serve, const struct pollfd *fds);
/* Returns when a turn is due without any descriptor, by CLOCK_MONOTONIC, for one machine only; INT64_MAX:
 * never. */
int64_t chips_serve_wake_ns(const struct chips_serve *serve);
void chips_serve_follow(struct chips_serve *serve, uint32_t switch_number, const struct ocs *ocs);

/* Returns the net, which belongs to `serve`. After a change of its links' light the owner calls
 * chips_serve_look_at_light(). */
struct chips *chips_serve_net(struct chips_serve *serve);
void chips_serve_look_at_light(struct chips_serve *serve);

#endif
