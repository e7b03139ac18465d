/* light_serve.h - the light of emulated switches, for machines that are emulated by processes of their own.
 *
 *     light_serve_open(&settings, &serve, &error)      binds <folder>/light
 *     light_serve_follow(serve, number, &ocs)          a switch may have changed
 *     light_serve_watch(serve, fds)                    light_serve_fds() entries that poll() is to wait for
 *     light_serve_turn(serve, fds)                     serves what is ready
 *     light_serve_close(serve)
 *
 * The protocol is machinewire.h, which says why frames come this way; its other side is machine.h. A fibre
 * has light while a switch joins its two ends and the processes of both machines are connected. Each end is
 * then told so, and what comes in at one leaves at the other.
 *
 * Machines may be broken: a frame that is none, or that names another machine's fibre, ends the connection; a
 * machine that does not read is let go at MACHINEWIRE_OUT_MAX bytes. The newest connection of a machine ends
 * the one before. One thread.
 */
#ifndef PHX_SIM_FABRIC_LIGHT_SERVE_H
#define PHX_SIM_FABRIC_LIGHT_SERVE_H

#include <poll.h>

#include "base/error.h"
#include "sim/fabric/ocs.h"

struct light_serve_settings {
    const char *folder; /* is made, if it is missing; NULL: no light is served */
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
