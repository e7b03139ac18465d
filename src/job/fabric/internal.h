/* internal.h - what the parts of libphalanx_fabric share.
 *
 *   driver.c    finds the driver of the machine's chips       emulated.c   the driver of emulated chips
 *   gather.c    every rank's word to all others               bring_up.c   a session from look to start
 *   tables.c    the same tables on all ranks                  cache.c      a folder of solved ones
 *   watch.c     what ends a session early                     sum.c        the collective
 *   fabric.c    open, close, and beginning again
 *
 * The library uses libphalanx by phalanx.h alone. Each bringing-up has a generation: the ranks count them
 * alike, because each takes part in all.
 */
#ifndef PHX_JOB_FABRIC_INTERNAL_H
#define PHX_JOB_FABRIC_INTERNAL_H

#include <stdbool.h>

#include "core/fabric/session.h"
#include "job/fabric/cache.h"
#include "job/fabric/gather.h"
#include "phalanx/chips.h"
#include "phalanx/fabric.h"

_Static_assert(PHX_CHIP_PORTS == (int)CHIP_PORTS, "ports are those of the wiring");

/* A call has to begin again after another bringing-up. Never leaves the library. */
enum { FABRIC_AGAIN = 1 };

/* A write's tag: number of the operation, and of the write among those of the operation to the same chip. */
enum { TAG_NUMBER_BITS = 16 };

/* The writes that have arrived: bit n of a chip: number n of an operation, by the operation's parity. */
struct fabric_arrivals {
    uint64_t *bits[2][PHX_SLICE_CHIPS];
    uint32_t words; /* of each */
    uint64_t operation[2];
};

struct phx_fabric {
    phx_context *ctx;
    const struct phx_chips_driver *driver;
    struct phx_chips *chips;
    bool keeps_routes;
    uint32_t rank, world;
    struct phx_slice slice; /* as of the newest bringing-up */
    struct slice_shape shape;
    struct torus torus;          /* whole, for plans */
    struct fabric_word *words;   /* [world] of the newest gathering */
    uint32_t opened, generation; /* names of keys: opens of this attempt before this one, bringings-up */
    uint32_t session, bring_ups;
    uint32_t memory_bytes;         /* the least of all chips */
    uint32_t started;              /* bits: chips of this machine that the start has reached */
    uint8_t live[PHX_SLICE_CHIPS]; /* ports of this machine's chips that the tables use */
    struct fabric_session_summary summary;
    struct {
        char *folder;                /* owned; NULL: the rank has none */
        struct route_keeper *keeper; /* of the newest tables that were built; NULL: none */
        bool used;                   /* some rank has one: digests are compared */
        bool is_off;                 /* all ranks build their tables in this generation */
        bool distrusted;             /* this rank asks for such a generation */
        char note[sizeof((struct phx_fabric_about *)0)->cache_note];
    } cache;
    uint64_t without; /* switches that the tables avoid by the controller's word */
    uint64_t wrong;   /* switches with wrong wires, also those that are avoided */
    uint64_t done;    /* sums that this rank has finished */
    bool behind;      /* another rank has not finished the sum before this one yet */
    struct fabric_arrivals arrivals;
    struct {
        void *values; /* what the last sum began with, for `behind` */
        uint32_t count;
        int dtype;
    } last;
};

int fabric_fail(struct phx_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* driver.c: `text` is that of phx_fabric_options.chips. *ret_address points into it. */
int fabric_driver(const char *text, const struct phx_chips_driver **ret_driver, const char **ret_address,
                  struct phx_error *error);
extern const struct phx_chips_driver fabric_emulated; /* emulated.c */
/* The emulated chips at the other end of a socket, which is theirs from now on, also after an error. */
int fabric_emulated_on(int fd, struct phx_chips **ret_chips, struct phx_error *error);

/* fabric.c: the name of a key of this fabric, as fabric_gather_key(). */
void fabric_key(const struct phx_fabric *fabric, const char *name, uint32_t generation, int64_t rank,
                char key[FABRIC_KEY_MAX]);

/* bring_up.c: the bit of the switch that a port of a chip is wired to, as in phx_slice.without; 0: the port
 * has a copper link within the cube. */
uint64_t fabric_switch_bit(const struct phx_chip_about *chip, uint32_t port);
/* Takes part in a new generation: 0, FABRIC_AGAIN (a link went meanwhile), or an error. */
int fabric_bring_up(struct phx_fabric *fabric, struct phx_error *error);

/* tables.c: what the words say of caches holds for all ranks of the generation. */
uint8_t fabric_cache_word(const struct phx_fabric *fabric);
void fabric_cache_agree(struct phx_fabric *fabric);
/* Appends what the cache has for the links that are alive; nothing: the tables are to be built. */
void fabric_cache_find(struct phx_fabric *fabric, const struct torus *torus, struct buf *ret_pattern);
/* Begins to keep tables that were built; a folder that does not take them is noted. */
void fabric_cache_keep(struct phx_fabric *fabric, const struct torus *torus, const struct route *route);
/* Says why the cache did not serve; phx_fabric_get(). */
void fabric_cache_note(struct phx_fabric *fabric, const struct error *why);
/* Lets go of the folder; `hurry` as in route_cache_end(). */
void fabric_cache_done(struct phx_fabric *fabric, bool hurry);
uint64_t fabric_tables_digest(const struct route *route);
/* Compares the digest of this rank's tables with rank 0's. 0: they are the same; FABRIC_AGAIN: they differ,
 * so another generation was asked for, in which all ranks build theirs; or an error: those differ as well. */
int fabric_tables_agree(struct phx_fabric *fabric, uint64_t digest, struct phx_error *error);

/* watch.c: takes the chips' events and the controller's word. 0: go on; FABRIC_AGAIN: this rank or another
 * one has asked for a new generation; or an error. `wait`: blocks until something happens, for a while. */
int fabric_watch(struct phx_fabric *fabric, bool wait, struct phx_error *error);
/* Sends what writes have left to be sent, and takes the chips' events, as fabric_watch(). */
int fabric_flush(struct phx_fabric *fabric, struct phx_error *error);
/* FABRIC_AGAIN: a rank has asked for a new generation; 0, or an error. */
int fabric_is_asked(struct phx_fabric *fabric, struct phx_error *error);
/* Asks all ranks for one. */
int fabric_ask_again(struct phx_fabric *fabric, struct phx_error *error);
/* Waits until all chips of this machine have started in this session. */
int fabric_await_start(struct phx_fabric *fabric, struct phx_error *error);
bool fabric_arrived(const struct phx_fabric *fabric, uint64_t operation, uint32_t chip, uint32_t number);
void fabric_forget_arrivals(struct phx_fabric *fabric);

/* sum.c: one operation over at most fabric_sum_max() elements. `done` numbers it. 0, FABRIC_AGAIN or an
 * error; `values` stays as it was but for 0. */
uint32_t fabric_sum_max(const struct phx_fabric *fabric, int dtype);
int fabric_sum_once(struct phx_fabric *fabric, void *values, uint32_t count, int dtype, uint64_t operation,
                    struct phx_error *error);
size_t fabric_dtype_size(int dtype); /* 0: it cannot be summed */

#endif
