/* ocs.h - an emulated optical circuit switch: mirrors, light, and what breaks.
 *
 * The model is a value that is told the time; it has no socket and no clock, so the same switch serves on
 * real sockets (phalanx switch-sim), in tests, and in a simulated world.
 *
 *     struct ocs ocs;
 *     ocs_init(&ocs, &settings);
 *     session: ocs_session_take() / ocs_session_next()      SCPI and TL1, ocs_session.h
 *
 * Ports are numbered from 1: the A side first, then the B side. Joining two free ports moves their mirrors
 * for `tuning_ns`; all mirrors move at the same time. Light enters at the A side of a lit port and leaves at
 * the B side of its cross-connect, weaker by the loss of the pair, once the mirrors have settled. The loss of
 * a pair is 0.8 to 2.0 dB, the same whenever the pair is joined.
 *
 * Joining a port with a stuck mirror succeeds as far as the answer says; the mirrors then fail, no light
 * comes out, an alarm stands, and the switch no longer lists the cross-connect.
 *
 * Units: dBm and dB in thousandths. Owner: one thread.
 */
#ifndef PHX_SIM_FABRIC_OCS_H
#define PHX_SIM_FABRIC_OCS_H

#include <stdbool.h>
#include <stdint.h>

enum { OCS_PORTS_MAX = 640, OCS_DARK_MDBM = -60000, OCS_TUNING_NS = 25 * 1000000 };

struct ocs_settings {
    uint32_t a_ports, b_ports;
    int64_t tuning_ns;
    uint64_t seed;      /* of the losses; another one for each switch */
    int32_t light_mdbm; /* at lit A ports */
    /* The user as whom TL1 sessions must log in; NULL: any login does, and none is needed. The caller's, for
     * as long as the switch serves. SCPI has no login. */
    const char *user, *password;
};

struct ocs_port {
    uint16_t peer;  /* 0: none */
    uint16_t fibre; /* the port whose fibre is plugged in here; 0: its own */
    bool stuck, dark, shutter_closed;
    bool failed;        /* the mirror failed at the last try */
    int64_t settled_ns; /* of its cross-connect */
};
struct ocs {
    struct ocs_settings settings;
    struct ocs_port port[OCS_PORTS_MAX + 1];
    int64_t settled_ns;  /* all mirrors are at rest from then on */
    uint64_t joins;      /* cross-connects made since the start */
    uint64_t joins_left; /* the switch dies after so many more; UINT64_MAX: never */
    bool dead;           /* sessions are closed, and none is taken */
};

enum ocs_result { OCS_DONE, OCS_NO_PORT, OCS_WRONG_SIDE, OCS_IN_USE, OCS_NOT_JOINED, OCS_DIED };

void ocs_init(struct ocs *ocs, const struct ocs_settings *settings);

/* Whether a and b could be joined now. Joined already counts as OCS_DONE. */
enum ocs_result ocs_may_join(const struct ocs *ocs, uint32_t a, uint32_t b);
enum ocs_result ocs_join(struct ocs *ocs, uint32_t a, uint32_t b, int64_t now_ns);
/* Parts the cross-connect of a with b; b 0: with any port. */
enum ocs_result ocs_part(struct ocs *ocs, uint32_t a, uint32_t b, int64_t now_ns);

/* The port that `port` is joined with, 0: none. */
uint32_t ocs_peer(const struct ocs *ocs, uint32_t port);
/* Swaps the fibres that are plugged in two ports of one side, as a person may who mixes them up; the switch
 * does not notice. Other pairs are ignored. */
void ocs_swap(struct ocs *ocs, uint32_t a, uint32_t b);
/* The port whose fibre is plugged in `port`, and the port in which the fibre of `fibre` is plugged. */
uint32_t ocs_fibre_in(const struct ocs *ocs, uint32_t port);
uint32_t ocs_port_of(const struct ocs *ocs, uint32_t fibre);
bool ocs_side_a(const struct ocs *ocs, uint32_t port);
uint32_t ocs_ports(const struct ocs *ocs);
/* The light at a port: what enters an A port, what leaves a B port. */
int32_t ocs_power_mdbm(const struct ocs *ocs, uint32_t port, int64_t now_ns);
int32_t ocs_loss_mdb(const struct ocs *ocs, uint32_t a, uint32_t b);

/* A restart: sessions end (the caller closes them); cross-connects stay unless `forget`. */
void ocs_restart(struct ocs *ocs, bool forget, int64_t now_ns);

#endif
