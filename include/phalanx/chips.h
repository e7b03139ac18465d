/* chips.h - the interface of drivers for the chips of one machine, as libphalanx_fabric uses it.
 *
 * A machine of a pod has a few chips. Each has six ports, two for each axis (X+, X-, Y+, Y-, Z+, Z-), a link
 * layer that delivers packets in order and once, two forwarding tables, and memory into which other chips
 * write. A driver is a table of functions for one machine's chips. Phalanx includes a driver for emulated
 * chips (phalanx switch-sim --chips); a shared library can provide another.
 *
 *     struct phx_chips *chips;
 *     if (driver->open(address, &chips, &error) < 0) ...
 *     driver->look(chips, 0, &about, &error);            label, and the neighbour at each port
 *     driver->load(chips, 0, &load, &error);             tables; no data flows yet
 *     driver->start(chips, 0, session, &error);          at the root of the clock tree alone
 *     driver->write(chips, 0, to, address, bytes, len, tag, &error);
 *     while (driver->next(chips, &event, &error) == 1) ...
 *     driver->unload(chips, 0, &error);
 *     driver->close(chips);
 *
 * Threads. One thread at a time uses a struct phx_chips. Functions may wait for the driver's own hardware,
 * never for another machine.
 *
 * Ownership. Arguments belong to the caller and are not kept. A struct phx_chips belongs to the driver;
 * close() unloads the chips that are still loaded and frees it.
 *
 * Errors. A function returns 0 or a negative enum phx_code, with the reason in *error, which may be NULL.
 * PHX_ERROR_IO means that the chips can no longer be reached. Results are untouched on failure.
 *
 * A library exports PHX_CHIPS_DRIVER_SYMBOL: a function without arguments that returns a table with static
 * storage. New versions only append fields to the table; `abi` is the version of the table.
 */
#ifndef PHALANX_CHIPS_H
#define PHALANX_CHIPS_H

#include "phalanx/phalanx.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PHX_CHIPS_DRIVER_ABI = 1 };
#define PHX_CHIPS_DRIVER_SYMBOL "phx_chips_driver"

enum { PHX_CHIP_PORTS = 6 };

/* The neighbour at one port. */
struct phx_chip_port {
    uint8_t light; /* 1: the link has light and is trained; else the other fields are 0 */
    uint8_t port;  /* of the neighbour */
    uint32_t chip; /* the neighbour's label */
    uint32_t rtt_ns;
};

/* A chip and its neighbours, as look() finds them. */
struct phx_chip_about {
    uint32_t label;        /* 64 x cube + x + 4 y + 16 z, the chip's place in its cube */
    uint32_t session;      /* the session for which the chip was loaded last; 0: none since its reset */
    uint32_t memory_bytes; /* memory into which other chips can write */
    struct phx_chip_port ports[PHX_CHIP_PORTS];
};

/* A chip's part of a session. */
struct phx_chip_load {
    uint32_t session;                      /* not 0; the chip refuses packets of other sessions */
    uint16_t number;                       /* of the chip in the slice */
    uint16_t chips;                        /* number of chips in the slice: entries of a table */
    const uint8_t *transit, *inject;       /* by destination: port, and 8 times the virtual channel */
    uint32_t buffer_bytes[PHX_CHIP_PORTS]; /* for each virtual channel of the port's link */
    uint8_t parent;                        /* port towards the root of the clock tree; 0xff: the root */
    uint8_t children;                      /* bits: ports to which the chip passes the start on */
    int64_t wait_ns;                       /* from the start's arrival to the first data */
};

enum phx_chip_event_kind {
    PHX_CHIP_STARTED = 1, /* data may flow at `chip`, in this session */
    PHX_CHIP_DARK = 2,    /* `port` lost its light while the chip was loaded */
    PHX_CHIP_ARRIVED = 3, /* a whole write of another chip is in the memory of `chip` */
    PHX_CHIP_LOST = 4,    /* a write that `chip` began was not delivered whole */
};
struct phx_chip_event {
    uint32_t kind; /* enum phx_chip_event_kind */
    uint8_t chip;  /* index in the machine */
    uint8_t port;
    uint32_t session;
    uint64_t tag; /* of the write */
};

struct phx_chips; /* the chips of one machine; `chip` below is an index among them, from 0 */
struct phx_chips_driver {
    uint32_t abi;     /* PHX_CHIPS_DRIVER_ABI */
    const char *name; /* "emulated" */
    /* Connects to the chips at `address`, whose form the driver defines. */
    int (*open)(const char *address, struct phx_chips **ret_chips, struct phx_error *error);
    void (*close)(struct phx_chips *chips);
    uint32_t (*count)(const struct phx_chips *chips); /* number of chips */
    /* Reads the chip's label, its last session and its neighbours. */
    int (*look)(struct phx_chips *chips, uint32_t chip, struct phx_chip_about *ret_about,
                struct phx_error *error);
    /* Stops the chip's data and loads its part of a session. */
    int (*load)(struct phx_chips *chips, uint32_t chip, const struct phx_chip_load *load,
                struct phx_error *error);
    /* Starts a session at the root of its clock tree; the start then runs along the tree by itself. */
    int (*start)(struct phx_chips *chips, uint32_t chip, uint32_t session, struct phx_error *error);
    /* Stops the chip's data and takes its tables away. */
    int (*unload)(struct phx_chips *chips, uint32_t chip, struct phx_error *error);
    /* Begins to write `len` bytes, which are copied, at `address` in the memory of chip `to` of the slice.
     * Writes may arrive in any order. The events of the write carry `tag`. */
    int (*write)(struct phx_chips *chips, uint32_t chip, uint16_t to, uint32_t address, const void *bytes,
                 uint32_t len, uint64_t tag, struct phx_error *error);
    /* Copies from the chip's own memory. */
    int (*read)(struct phx_chips *chips, uint32_t chip, uint32_t address, void *bytes, uint32_t len,
                struct phx_error *error);
    /* Sends the writes that are not yet sent. Returns 1 with the next event, or 0 if there is none now. */
    int (*next)(struct phx_chips *chips, struct phx_chip_event *ret_event, struct phx_error *error);
    /* Returns a descriptor that becomes readable when an event may have come. Call next() until it returns 0
     * before polling. */
    int (*fd)(const struct phx_chips *chips);
};
typedef const struct phx_chips_driver *phx_chips_driver_fn(void);

#ifdef __cplusplus
}
#endif

#endif
