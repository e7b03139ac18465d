/* light_serve.h - the light of emulated switches, for machines that are emulated by separate processes.
 *
 *     light_serve_open(&settings, &serve, &error)      binds <folder>/light
 *     light_serve_follow(serve, number, &ocs)          a switch may have changed
 *     light_serve_watch(serve, fds)                    fills light_serve_fds() entries for poll()
 *     light_serve_turn(serve, fds)                     serves what is ready
 *     light_serve_close(serve)
 *
 * The protocol is machinewire.h, which explains why frames take this way; its other side is machine.h. A
 * fibre has light while a switch joins its two ends and the processes of both machines are connected. Both
 * ends are told so, and frames that arrive at one end leave at the other.
 *
 * Machines are untrusted. A malformed frame, or one that names another machine's fibre, ends the connection.
 * A machine that does not read is disconnected at MACHINEWIRE_OUT_MAX bytes. A new connection of a machine
 * ends its previous one. One thread.
 */
#ifndef PHX_SIM_FABRIC_LIGHT_SERVE_H
#define PHX_SIM_FABRIC_LIGHT_SERVE_H

#include <poll.h>

#include "base/error.h"
#include "sim/fabric/ocs.h"

struct light_serve_settings {
    const char *folder; /* created if it is missing; NULL: no light is served */
    uint32_t cubes;     /* 1 to POD_CUBES_MAX */
};
struct light_serve;

int light_serve_open(const struct light_serve_settings *settings, struct light_serve **ret_serve,
                     struct error *error);
void light_serve_close(struct light_serve *serve);

uint32_t light_serve_fds(const struct light_serve *serve);
void light_serve_watch(const struct light_serve *serve, struct pollfd *fds);
void light_serve_turn(struct light_serve *serve, const struct pollfd *fds);
void light_serve_follow(struct light_serve *serve, uint32_t switch_number, const struct ocs *ocs);

#endif
