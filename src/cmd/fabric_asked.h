/* fabric_asked.h - the options of `phalanx fabric`, and the functions that carry out its actions.
 *
 * An action is a bit. Each option belongs to some actions (fabric_options.c), and is refused for the others.
 * A process has one command line; the texts point into argv.
 */
#ifndef PHX_CMD_FABRIC_ASKED_H
#define PHX_CMD_FABRIC_ASKED_H

#include <getopt.h>

#include "cmd/fabric_availability.h"
#include "core/fabric/crossconnect.h"
#include "sim/cycle/traffic.h"

enum fabric_action {
    FABRIC_CHECK = 1 << 0,
    FABRIC_PLAN = 1 << 1,
    FABRIC_ROUTE = 1 << 2,
    FABRIC_SIMULATE = 1 << 3,
    FABRIC_SESSION = 1 << 4,
    FABRIC_COLLECTIVE = 1 << 5,
    FABRIC_DIFF = 1 << 6,
    FABRIC_APPLY = 1 << 7,
    FABRIC_CLEAR = 1 << 8,
    FABRIC_AVAILABILITY = 1 << 9,
    FABRIC_PLACE = 1 << 10,
    FABRIC_DEFRAG = 1 << 11,
    FABRIC_OPTICS = 1 << 12,
    FABRIC_ACTIONS_ALL = (1 << 13) - 1,
    FABRIC_LIVE = FABRIC_DIFF | FABRIC_APPLY | FABRIC_CLEAR, /* change switches, or show what would change */
    FABRIC_ON_SWITCHES = FABRIC_LIVE | FABRIC_OPTICS,        /* need --switches or --cluster */
    FABRIC_ON_CUBES = FABRIC_LIVE | FABRIC_PLAN,             /* need --cubes */
};

enum { FABRIC_WORDS_MAX = 64 };
struct fabric_words {
    const char *items[FABRIC_WORDS_MAX];
    int count;
};

struct fabric_asked {
    enum fabric_action action;
    struct slice_shape shape; /* of actions that take one */
    struct fabric_words switches, links, running, joined, cubes_out;
    const char *crossed, *cubes, *svg, *cache, *switch_list, *cluster, *in, *plot; /* NULL: not given */
    const char *torus3d, *busy, *server;                                           /* NULL: not given */
    int64_t pod, random_links, seed, attempts, bytes;
    int64_t timeout_ns, frequency_ghz;              /* 0: not given */
    int64_t packets, cycles, buffers, pace_percent; /* packets 0: not given */
    int64_t whole, trials;
    int64_t slices, moves, nodes; /* nodes 0: not given */
    double hosts[AVAILABILITY_HOSTS_MAX], confidence, switch_up;
    int host_count;
    enum traffic_pattern traffic;
    bool json, keep_partial, move, paths;
};

/* --- fabric_options.c ------------------------------------------------------------------------------- */

/* Sets all options to their defaults. */
void fabric_options_default(struct fabric_asked *ret_asked);
/* Returns the options for getopt_long(); static. */
const struct option *fabric_options(void);
/* Takes the value of the option that getopt returned as `letter`. Returns false, after a message with the
 * expected form, if the value is not valid. */
bool fabric_take_option(struct fabric_asked *asked, int letter, const char *value);
/* Returns true if each option that was taken belongs to the action; false after a message that names the
 * first one that does not. */
bool fabric_options_fit(enum fabric_action action, const char *name);
/* Appends a line or more for each option of the actions. */
void fabric_options_help(struct buf *out, uint32_t actions);

/* --- the actions: each prints its result and returns an exit status --------------------------------- */

int fabric_run_check(const struct fabric_asked *asked);   /* fabric_shape.c */
int fabric_run_session(const struct fabric_asked *asked); /* fabric_shape.c */
int fabric_run_plan(const struct fabric_asked *asked);    /* fabric_plan.c */
int fabric_run_live(const struct fabric_asked *asked);    /* fabric_plan.c: diff, apply, clear */
int fabric_run_tables(const struct fabric_asked *asked);  /* fabric_tables.c: route, simulate, collective */
int fabric_run_availability(const struct fabric_asked *asked);
int fabric_run_place(const struct fabric_asked *asked);
int fabric_run_defrag(const struct fabric_asked *asked);
int fabric_run_optics(const struct fabric_asked *asked);

/* Prints the error; returns EXIT_FAILED. */
int fabric_refuse(const struct error *error);
/* Reads "3,9" into cubes[SLICE_CUBES_MAX]. ERROR_INVALID names the part that is not the number of a cube. */
int fabric_cubes_parse(struct str text, uint16_t *cubes, uint32_t *ret_count, struct error *error);

#endif
