/* driver.h - the interface of drivers for optical circuit switches.
 *
 * A switch joins ports by mirrors. Its ports have an A side (light comes in) and a B side (light goes out); a
 * cross-connect joins one port of each. A port is in at most one cross-connect. Port numbers are those of
 * the pod's wiring, from 1: A side 1 ... a_ports, B side a_ports + 1 ... a_ports + b_ports.
 *
 * A driver is a table of functions. Phalanx includes drivers for the SCPI and TL1 protocols of Polatis
 * switches, and for vendors' SAI libraries; a shared library can provide another. The table covers the SAI
 * OCS functions (ports, cross-connects, bulk with a status each, factory loss data) and adds optical power,
 * alarms, shutters, and batches that never take a port from another cross-connect.
 *
 *     struct phx_switch *sw;
 *     if (driver->open(&config, &sw, &error) < 0) ...
 *     driver->remove(sw, old, old_count, statuses, &error);
 *     driver->add(sw, fresh, fresh_count, PHX_SWITCH_SAFE, statuses, &error);
 *     driver->list(sw, now, capacity, &count, &error);                         the pairs that are joined now
 *     driver->close(sw);
 *
 * Threads. Functions block. At most one runs at a time for a switch, on any thread; functions of different
 * switches run at the same time. No function may block for longer than config.timeout_ms for each request
 * that it sends to the switch.
 *
 * Ownership. Arguments belong to the caller and are not kept, config included. Results are copied into the
 * caller's memory. A struct phx_switch belongs to the driver; close() frees it.
 *
 * Errors. A function returns PHX_SWITCH_OK or a negative enum phx_switch_status and describes it in *error.
 * A batch has at most PHX_SWITCH_PORTS_MAX members. It returns the status of the session, and a status for
 * each member in statuses[]. If members fail and the session does not, the batch returns PHX_SWITCH_OK and
 * *error describes one of the failures. After PHX_SWITCH_LOST or PHX_SWITCH_TIMEOUT the state of the switch
 * is not known: the caller closes the switch, opens it again, and lists its cross-connects. Results other
 * than statuses[] and *error are untouched on failure.
 *
 * Units. Power is in thousandths of dBm, loss in thousandths of dB, frequency in GHz, temperature in
 * thousandths of a degree Celsius, time in milliseconds.
 *
 * A library exports PHX_SWITCH_DRIVER_SYMBOL: a function without arguments that returns a table with static
 * storage. New versions only append fields to the table; `abi` is the version of the table.
 */
#ifndef PHALANX_DRIVER_H
#define PHALANX_DRIVER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PHX_SWITCH_DRIVER_ABI = 1 };
#define PHX_SWITCH_DRIVER_SYMBOL "phx_switch_driver"

enum phx_switch_status {
    PHX_SWITCH_OK = 0,
    PHX_SWITCH_INVALID = -1,     /* no such port, or both ports are of one side: correct the request */
    PHX_SWITCH_BUSY = -2,        /* a port is in another cross-connect, and the batch is safe */
    PHX_SWITCH_ABSENT = -3,      /* the cross-connect to remove does not exist */
    PHX_SWITCH_FAILED = -4,      /* the switch tried and did not succeed, e.g. a mirror is stuck */
    PHX_SWITCH_DENIED = -5,      /* the switch refuses user, password or command */
    PHX_SWITCH_UNSUPPORTED = -6, /* this switch, or its driver, cannot do that */
    PHX_SWITCH_LOST = -7,        /* the session broke: its last request may have been carried out */
    PHX_SWITCH_TIMEOUT = -8,     /* no answer within timeout_ms: the request may have been carried out */
    PHX_SWITCH_NOT_TRIED = -9,   /* an earlier member of the batch failed */
    PHX_SWITCH_GARBLED = -10,    /* the answer does not follow the protocol */
};

enum { PHX_SWITCH_TEXT_MAX = 64, PHX_SWITCH_MESSAGE_MAX = 256, PHX_SWITCH_PORTS_MAX = 640 };

struct phx_switch_error {
    enum phx_switch_status status;
    char message[PHX_SWITCH_MESSAGE_MAX]; /* UTF-8, NUL-terminated, one line */
};

struct phx_switch_config {
    const char *address;       /* "HOST:PORT"; a library may give it another meaning */
    const char *user, *secret; /* NULL: no login is needed */
    uint32_t timeout_ms;       /* for connecting, and for the answer to each request */
    uint32_t a_ports, b_ports; /* expected; 0: whatever the switch has */
};

struct phx_switch_identity {
    char vendor[PHX_SWITCH_TEXT_MAX], model[PHX_SWITCH_TEXT_MAX], serial[PHX_SWITCH_TEXT_MAX],
        firmware[PHX_SWITCH_TEXT_MAX];
    uint32_t a_ports, b_ports;
};

struct phx_crossconnect {
    uint32_t a, b;
};

enum phx_batch_mode {
    PHX_SWITCH_SAFE = 0,  /* a member whose port is in another cross-connect gets PHX_SWITCH_BUSY */
    PHX_SWITCH_STEAL = 1, /* such a cross-connect is removed first */
};

enum phx_port_state {
    PHX_PORT_UNKNOWN = 0,
    PHX_PORT_BLOCKED = 1, /* in no cross-connect, or its shutter is closed */
    PHX_PORT_TUNING = 2,  /* the mirrors are moving */
    PHX_PORT_TUNED = 3,
    PHX_PORT_FAILED = 4,
};
enum { PHX_POWER_UNKNOWN = INT32_MIN }; /* of a port without a power meter */

struct phx_switch_port {
    uint32_t port;
    enum phx_port_state state;
    uint32_t peer; /* the other port of its cross-connect; 0: none */
    uint8_t shutter_closed;
    int32_t power_mdbm; /* light measured at the port, or PHX_POWER_UNKNOWN */
};

enum phx_alarm_severity { PHX_ALARM_MINOR = 1, PHX_ALARM_MAJOR = 2, PHX_ALARM_CRITICAL = 3 };
struct phx_switch_alarm {
    enum phx_alarm_severity severity;
    uint32_t port;                       /* 0: the alarm is about the whole switch */
    char condition[PHX_SWITCH_TEXT_MAX]; /* the vendor's name for it, such as "LOS" */
};

/* Loss between two ports as the factory measured it. */
struct phx_switch_loss {
    uint32_t a, b;
    uint32_t frequency_ghz;
    int32_t temperature_mc, loss_mdb, accuracy_mdb;
};

struct phx_switch; /* one session with one switch */

struct phx_switch_driver {
    uint32_t abi;     /* PHX_SWITCH_DRIVER_ABI */
    const char *name; /* "scpi" */

    /* Connects and logs in. Returns INVALID if the size of the switch is not the expected one. */
    int (*open)(const struct phx_switch_config *config, struct phx_switch **ret_switch,
                struct phx_switch_error *error);
    /* Ends the session and frees it. Cross-connects stay. */
    void (*close)(struct phx_switch *sw);

    int (*identify)(struct phx_switch *sw, struct phx_switch_identity *ret_identity,
                    struct phx_switch_error *error);

    /* Lists all cross-connects by ascending A port, including those that other clients made. Returns INVALID
     * if there are more than `capacity`. */
    int (*list)(struct phx_switch *sw, struct phx_crossconnect *ret_pairs, uint32_t capacity,
                uint32_t *ret_count, struct phx_switch_error *error);

    /* Joins the pairs and returns when their mirrors have settled. A pair that is joined already is OK. With
     * SAFE no cross-connect is removed; with STEAL only those that use a port of the pairs are. */
    int (*add)(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
               enum phx_batch_mode mode, int *ret_statuses, struct phx_switch_error *error);

    /* Removes the cross-connects of exactly these pairs. The status of a pair that is not joined is
     * ABSENT. */
    int (*remove)(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
                  int *ret_statuses, struct phx_switch_error *error);

    /* Reads the state and the light of `count` ports, from port `first` (1 or above) on. Returns INVALID if
     * the switch has not that many. */
    int (*ports)(struct phx_switch *sw, uint32_t first, uint32_t count, struct phx_switch_port *ret_ports,
                 struct phx_switch_error *error);

    /* Closes (1) or opens (0) the shutters of ports. May be NULL if the switch has no shutters; otherwise
     * returns UNSUPPORTED for a port without one. */
    int (*shutter)(struct phx_switch *sw, const uint32_t *ports, uint32_t count, uint8_t closed,
                   struct phx_switch_error *error);

    /* Lists the active alarms, at most `capacity` of them, most severe first. May be NULL if the switch
     * reports no alarms. */
    int (*alarms)(struct phx_switch *sw, struct phx_switch_alarm *ret_alarms, uint32_t capacity,
                  uint32_t *ret_count, struct phx_switch_error *error);

    /* Reads the factory's loss data, one for each of the pairs, at the frequency nearest to `frequency_ghz`.
     * May be NULL if there is no such data. */
    int (*loss)(struct phx_switch *sw, const struct phx_crossconnect *pairs, uint32_t count,
                uint32_t frequency_ghz, struct phx_switch_loss *ret_losses, struct phx_switch_error *error);
};

typedef const struct phx_switch_driver *phx_switch_driver_fn(void);

#ifdef __cplusplus
}
#endif
#endif
