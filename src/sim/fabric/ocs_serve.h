/* ocs_serve.h - emulated switches on real TCP sockets: a port for each switch and protocol.
 *
 *     ocs_serve_open(&settings, &serve, &error)     binds all ports
 *     ocs_serve_port(serve, number, OCS_TL1)        the port of a switch
 *     ocs_serve_run(serve, &script, &stop)          serves until *stop is set by a signal handler
 *     ocs_serve_close(serve)
 *
 * With `chips`, the chips of the pod are emulated too (chips_serve.h), and their light follows the switches.
 * With `light`, so does the light of machines that have emulators of their own (light_serve.h). Each line
 * that is read from `orders_fd` is a script and is carried out at once, so that people can break things while
 * the switches serve.
 *
 * The server is one thread with one poll() loop. The clock is CLOCK_MONOTONIC and starts with
 * ocs_serve_run(). A switch accepts OCS_SESSIONS_MAX sessions at a time and closes further ones at once, as
 * real switches do.
 */
#ifndef PHX_SIM_FABRIC_OCS_SERVE_H
#define PHX_SIM_FABRIC_OCS_SERVE_H

#include <signal.h>

#include "sim/fabric/chips_serve.h"
#include "sim/fabric/light_serve.h"
#include "sim/fabric/ocs_script.h"
#include "sim/fabric/ocs_session.h"

enum { OCS_SESSIONS_MAX = 8, OCS_SWITCHES_MAX = 48 };

struct ocs_serve_settings {
    const char *address; /* IPv4, such as 127.0.0.1 */
    uint16_t port; /* port of switch 0's first protocol; the others follow. 0: the system chooses each */
    uint32_t switches;
    bool protocol[2];                         /* which protocols to serve, by enum ocs_protocol */
    struct ocs_settings ocs;                  /* for every switch; the seed is that of switch 0 */
    const struct chips_serve_settings *chips; /* NULL: none */
    const struct light_serve_settings *light; /* NULL: none */
    int orders_fd;                            /* -1: none */
    void (*complain)(const char *why);        /* called with the reason why an order is wrong */
};
struct ocs_serve;

int ocs_serve_open(const struct ocs_serve_settings *settings, struct ocs_serve **ret_serve,
                   struct error *error);
uint16_t ocs_serve_port(const struct ocs_serve *serve, uint32_t which, enum ocs_protocol protocol);
/* `script` may be NULL. */
void ocs_serve_run(struct ocs_serve *serve, const struct ocs_script *script,
                   const volatile sig_atomic_t *stop);
void ocs_serve_close(struct ocs_serve *serve);

#endif
