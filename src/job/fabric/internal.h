/* internal.h - what the parts of libphalanx_fabric share.
 *
 *   driver.c    finds the driver of the machine's chips       emulated.c   the driver of emulated chips
 *   gather.c    all-gather of one word per rank               bring_up.c   a session from look to start
 *   tables.c    the same tables on all ranks                  cache.c      a folder of solved ones
 *   watch.c     events that end a session early               sum.c        the collective
 *   fabric.c    open, close, and repeating calls
 *
 * The library uses libphalanx through phalanx.h alone. Each time the ranks bring the network up is a
 * generation. All ranks take part in every generation, so they number them alike.
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

/* A call must be repeated after the network is brought up again. Never returned by a public function. */
enum { FABRIC_AGAIN = 1 };

/* Low bits of a write's tag: the number of the write among the operation's writes to the same chip. The other
 * bits are the number of the operation. */
enum { TAG_NUMBER_BITS = 16 };

/* The writes that have arrived: bit n of bits[p][chip] is write n of operation[p], whose parity is p. */
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
    struct phx_slice slice; /* as of the current generation */
    struct slice_shape shape;
    struct torus torus;          /* whole, for plans */
    struct fabric_word *words;   /* [world] of the current generation */
    uint32_t opened, generation; /* for names of keys: fabrics opened earlier in this attempt; generation */
    uint32_t session, bring_ups;
    uint32_t memory_bytes;         /* of the chip with the least memory */
    uint32_t started;              /* bits: chips of this machine that have started */
    uint8_t live[PHX_SLICE_CHIPS]; /* ports of this machine's chips that the tables use */
    struct fabric_session_summary summary;
    struct {
        char *folder;                /* owned; NULL: the rank has none */
        struct route_keeper *keeper; /* of the newest tables that were built; NULL: none */
        bool used;                   /* a rank has a cache: digests are compared */
        bool is_off;                 /* all ranks build their tables in this generation */
        bool distrusted;             /* this rank asks for such a generation */
        char note[sizeof((struct phx_fabric_about *)0)->cache_note];
    } cache;
    uint64_t without; /* switches that the controller's tables avoid */
    uint64_t wrong;   /* switches with wrong wires, including those that are avoided */
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

/* driver.c: finds the driver that `text` names, in the form of phx_fabric_options.chips. *ret_address points
 * into `text`. */
int fabric_driver(const char *text, const struct phx_chips_driver **ret_driver, const char **ret_address,
                  struct phx_error *error);
extern const struct phx_chips_driver fabric_emulated; /* emulated.c */
/* Opens the emulated chips at the other end of a socket. Takes the socket, even after an error. */
int fabric_emulated_on(int fd, struct phx_chips **ret_chips, struct phx_error *error);

/* fabric.c: the name of a key of this fabric, as fabric_gather_key(). */
void fabric_key(const struct phx_fabric *fabric, const char *name, uint32_t generation, int64_t rank,
                char key[FABRIC_KEY_MAX]);

/* bring_up.c: returns the bit of the switch that a port of a chip is wired to, as in phx_slice.without; 0 if
 * the port has a copper link within the cube. */
uint64_t fabric_switch_bit(const struct phx_chip_about *chip, uint32_t port);
/* Takes part in a new generation. Returns 0, FABRIC_AGAIN if yet another generation is needed, or an
 * error. */
int fabric_bring_up(struct phx_fabric *fabric, struct phx_error *error);

/* tables.c: returns this rank's fabric_word.cache. */
uint8_t fabric_cache_word(const struct phx_fabric *fabric);
/* Derives from the words of all ranks whether caches are used in this generation. */
void fabric_cache_agree(struct phx_fabric *fabric);
/* Appends the cache's pattern for the links that are alive. Appends nothing if the tables must be built. */
void fabric_cache_find(struct phx_fabric *fabric, const struct torus *torus, struct buf *ret_pattern);
/* Begins to write built tables to the folder. phx_fabric_get() reports a failure. */
void fabric_cache_keep(struct phx_fabric *fabric, const struct torus *torus, const struct route *route);
/* Records, for phx_fabric_get(), why the cache was of no use. */
void fabric_cache_note(struct phx_fabric *fabric, const struct error *why);
/* Frees the cache; `hurry` as in route_cache_end(). */
void fabric_cache_done(struct phx_fabric *fabric, bool hurry);
uint64_t fabric_tables_digest(const struct route *route);
/* Compares the digest of this rank's tables with rank 0's. Returns 0 if they are equal. If they differ, asks
 * for another generation, in which all ranks build their tables, and returns FABRIC_AGAIN; if they differ in
 * that generation too, returns an error. */
int fabric_tables_agree(struct phx_fabric *fabric, uint64_t digest, struct phx_error *error);

/* watch.c: takes the chips' events and the controller's tables. Returns 0, FABRIC_AGAIN if a rank has asked
 * for a new generation, or an error. With `wait` blocks for an event, at most 20 ms. */
int fabric_watch(struct phx_fabric *fabric, bool wait, struct phx_error *error);
/* Sends the writes that are not yet sent, and takes the chips' events. Returns as fabric_watch(). */
int fabric_flush(struct phx_fabric *fabric, struct phx_error *error);
/* Returns FABRIC_AGAIN if a rank has asked for a new generation, otherwise 0 or an error. */
int fabric_is_asked(struct phx_fabric *fabric, struct phx_error *error);
/* Asks all ranks for a new generation. Returns FABRIC_AGAIN or an error. */
int fabric_ask_again(struct phx_fabric *fabric, struct phx_error *error);
/* Waits until all chips of this machine have started in this session. Returns as fabric_watch(), or
 * PHX_ERROR_TIMEOUT after a minute. */
int fabric_await_start(struct phx_fabric *fabric, struct phx_error *error);
/* Returns true if write `number` of the operation has arrived at `chip`, an index in this machine. */
bool fabric_arrived(const struct phx_fabric *fabric, uint64_t operation, uint32_t chip, uint32_t number);
void fabric_forget_arrivals(struct phx_fabric *fabric);

/* sum.c: sums at most fabric_sum_max() elements, as the numbered operation. Returns 0, FABRIC_AGAIN or an
 * error; `values` is changed only by success. fabric_sum_max() returns 0 if the chips have too little
 * memory. */
uint32_t fabric_sum_max(const struct phx_fabric *fabric, int dtype);
int fabric_sum_once(struct phx_fabric *fabric, void *values, uint32_t count, int dtype, uint64_t operation,
                    struct phx_error *error);
size_t fabric_dtype_size(int dtype); /* bytes; 0: values of this type cannot be summed */

#endif
