/* options.h - the command line of the example. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
    const char *text, *hash_file;
    uint64_t steps, batch, checkpoint_every, hold_every, log_every, seed;
    double rate;
    uint64_t state_mb; /* of state that nobody needs, for measurements */
    uint64_t spoil_at; /* steps; 0: never */
    uint64_t step_ms;  /* the least time of a step */
    bool check_gradients, no_rejoin;
    bool fabric; /* sums go over the chips of the slice */
};

/* 0 go on, 1 help was printed, -1 wrong arguments (said on standard error). */
int options_parse(struct options *ret_options, int argc, char **argv);

#endif
