/* chips.h - the interface of drivers for the chips of one machine, as libphalanx_fabric uses it.
 *
 * A machine of a pod has a few chips. Each has six ports, two for each axis (X+, X-, Y+, Y-, Z+, Z-), a link
 * layer that delivers packets in order and once, two forwarding tables, and memory into which other chips
 * write. A driver is a table of functions for one machine's chips. Phalanx brings one for emulated chips
 * (phalanx switch-sim --chips); a shared library can bring another.
 *
 *     struct phx_chips *chips;
 *     if (driver->open(address, &chips, &error) < 0) ...
 *     driver->look(chips, 0, &about, &error);            label, and what is at the other end of each port
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
 * close() frees it, and chips that are still loaded are unloaded.
 *
 * Errors. A function returns 0 or a negative enum phx_code, with the reason in *error. PHX_ERROR_IO: the
 * chips can no longer be reached.
 *
 * A library exports PHX_CHIPS_DRIVER_SYMBOL: a function without arguments that returns a table with static
 * storage. Tables only grow at the end; `abi` tells how far one goes.
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

struct phx_chip_about {
    uint32_t label;        /* 64 x cube + x + 4 y + 16 z, the chip's place in its cube */
    uint32_t session;      /* number of the session for which it was loaded last; 0: none since its reset */
    uint32_t memory_bytes; /* into which other chips can write */
    struct phx_chip_port ports[PHX_CHIP_PORTS];
};

/* A chip's part of a session. */
struct phx_chip_load {
    uint32_t session;                      /* packets of other numbers are refused; not 0 */
    uint16_t number;                       /* of the chip in the slice */
    uint16_t chips;                        /* of the slice: entries of a table */
    const uint8_t *transit, *inject;       /* by destination: port, and 8 times the virtual channel */
    uint32_t buffer_bytes[PHX_CHIP_PORTS]; /* for each virtual channel of the port's link */
    uint8_t parent;                        /* port that leads to the root of the clock tree; 0xff: root */
    uint8_t children;                      /* bits: ports to which the start is passed on */
    int64_t wait_ns;                       /* from the start's arrival to the first data */
};

enum phx_chip_event_kind {
    PHX_CHIP_STARTED = 1, /* data may flow at `chip`, in this session */
    PHX_CHIP_DARK = 2,    /* the light of `port` went while the chip was loaded */
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

struct phx_chips;
struct phx_chips_driver {
    uint32_t abi;
    const char *name;
    int (*open)(const char *address, struct phx_chips **ret_chips, struct phx_error *error);
    void (*close)(struct phx_chips *chips);
    uint32_t (*count)(const struct phx_chips *chips);
    int (*look)(struct phx_chips *chips, uint32_t chip, struct phx_chip_about *ret_about,
                struct phx_error *error);
    /* Stops the chip's data first. */
    int (*load)(struct phx_chips *chips, uint32_t chip, const struct phx_chip_load *load,
                struct phx_error *error);
    /* Begins the start of a session at its root: it runs along the clock tree by itself. */
    int (*start)(struct phx_chips *chips, uint32_t chip, uint32_t session, struct phx_error *error);
    int (*unload)(struct phx_chips *chips, uint32_t chip, struct phx_error *error);
    /* Begins a write into the memory of chip `to` of the slice; the bytes are copied. Writes may arrive in
     * any order. */
    int (*write)(struct phx_chips *chips, uint32_t chip, uint16_t to, uint32_t address, const void *bytes,
                 uint32_t len, uint64_t tag, struct phx_error *error);
    /* Copies from the chip's own memory. */
    int (*read)(struct phx_chips *chips, uint32_t chip, uint32_t address, void *bytes, uint32_t len,
                struct phx_error *error);
    /* 1: *ret_event is the next event; 0: there is none now. Sends what writes have left to be sent. */
    int (*next)(struct phx_chips *chips, struct phx_chip_event *ret_event, struct phx_error *error);
    /* Readable when next() may have an event. */
    int (*fd)(const struct phx_chips *chips);
};
typedef const struct phx_chips_driver *phx_chips_driver_fn(void);

#ifdef __cplusplus
}
#endif

#endif
