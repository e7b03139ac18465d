/* ocs.h - an emulated optical circuit switch: mirrors, light, and failures.
 *
 * The model is a value that is told the time. It has no socket and no clock, so the same switch serves on
 * real sockets (phalanx switch-sim), in tests, and in a simulated world.
 *
 *     struct ocs ocs;
 *     ocs_init(&ocs, &settings);
 *     session: ocs_session_take() / ocs_session_next()      SCPI and TL1, ocs_session.h
 *
 * Ports are numbered from 1: the A side first, then the B side. Joining two free ports moves their mirrors
 * for `tuning_ns`; all mirrors move at the same time. Light enters at the A side of a lit port. Once the
 * mirrors have settled, it leaves at the B side of the cross-connect, weaker by the loss of the pair. The
 * loss of a pair is 0.8 to 2.0 dB, the same whenever the pair is joined.
 *
 * Joining a port with a stuck mirror is answered as a success. The mirrors then fail: no light comes out, an
 * alarm is raised, and the switch does not list the cross-connect.
 *
 * Units are thousandths of dBm and dB. One thread owns a switch.
 */
#ifndef PHX_SIM_FABRIC_OCS_H
#define PHX_SIM_FABRIC_OCS_H

#include <stdbool.h>
#include <stdint.h>

enum { OCS_PORTS_MAX = 640, OCS_DARK_MDBM = -60000, OCS_TUNING_NS = 25 * 1000000 };

struct ocs_settings {
    uint32_t a_ports, b_ports;
    int64_t tuning_ns;
    uint64_t seed;      /* determines the losses; different for each switch */
    int32_t light_mdbm; /* power at lit A ports */
    /* User and password of TL1 sessions, which must log in. `user` NULL: any login is accepted, and none is
     * required. Borrowed while the switch serves. SCPI has no login. */
    const char *user, *password;
};

struct ocs_port {
    uint16_t peer;  /* 0: none */
    uint16_t fibre; /* port whose fibre is plugged in here; 0: its own */
    bool stuck, dark, shutter_closed;
    bool failed;        /* the mirror failed at the last attempt to join */
    int64_t settled_ns; /* when its mirror settles */
};
struct ocs {
    struct ocs_settings settings;
    struct ocs_port port[OCS_PORTS_MAX + 1];
    int64_t settled_ns;  /* when all mirrors have settled */
    uint64_t joins;      /* cross-connects made since ocs_init() */
    uint64_t joins_left; /* further cross-connects until the switch dies; UINT64_MAX: never dies */
    bool dead;           /* sessions are closed, and new ones refused */
};

enum ocs_result { OCS_DONE, OCS_NO_PORT, OCS_WRONG_SIDE, OCS_IN_USE, OCS_NOT_JOINED, OCS_DIED };

void ocs_init(struct ocs *ocs, const struct ocs_settings *settings);

/* Returns whether a and b can be joined now: OCS_DONE if so, or if they are joined already, else the
 * reason. */
enum ocs_result ocs_may_join(const struct ocs *ocs, uint32_t a, uint32_t b);
enum ocs_result ocs_join(struct ocs *ocs, uint32_t a, uint32_t b, int64_t now_ns);
/* Removes the cross-connect of a with b, or with any port if b is 0. */
enum ocs_result ocs_part(struct ocs *ocs, uint32_t a, uint32_t b, int64_t now_ns);

/* Returns the port that `port` is joined with, or 0. */
uint32_t ocs_peer(const struct ocs *ocs, uint32_t port);
/* Swaps the fibres in two ports of one side, as a person may do by mistake; the switch does not notice. Other
 * pairs are ignored. */
void ocs_swap(struct ocs *ocs, uint32_t a, uint32_t b);
/* Return the port whose fibre is plugged in `port`, and the port in which the fibre of `fibre` is plugged. */
uint32_t ocs_fibre_in(const struct ocs *ocs, uint32_t port);
uint32_t ocs_port_of(const struct ocs *ocs, uint32_t fibre);
bool ocs_side_a(const struct ocs *ocs, uint32_t port);
uint32_t ocs_ports(const struct ocs *ocs);
/* Returns the light at a port: entering an A port, or leaving a B port. */
int32_t ocs_power_mdbm(const struct ocs *ocs, uint32_t port, int64_t now_ns);
int32_t ocs_loss_mdb(const struct ocs *ocs, uint32_t a, uint32_t b);

/* Restarts the switch. The caller closes its sessions. Cross-connects stay unless `forget` is set. */
void ocs_restart(struct ocs *ocs, bool forget, int64_t now_ns);

#endif
