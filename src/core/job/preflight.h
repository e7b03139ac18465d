/* preflight.h - inside job/: a gang that has its places, and whose machines are tested before it starts.
 *
 *     PREFLIGHT_ALONE     each machine whose last test is too old is tested (ERRAND_QUALIFY)
 *        | all are valid
 *        v
 *     PREFLIGHT_NEIGHBOURS, then PREFLIGHT_EXTREMES: its machines in pairs, where pairs are asked for
 *        | all went well
 *        v
 *     none: its tasks are told to start
 *
 * What a machine's test found is the machine's (machine->qualified_ns, ->paired_ns): it counts for every gang
 * until it is too old, so valid machines cost nothing. A machine that fails becomes a verdict, which core.c's
 * files make a fault of; the fault takes the machine away, and the gang goes back to the queue, with the same
 * tasks: nothing of the user's has run. Where the machine stays (the fault's row or the breaker leaves it at
 * work), it is let through.
 *
 * A machine on which others work is not tested: the test would disturb them, and they it.
 */
#ifndef PHX_CORE_JOB_PREFLIGHT_H
#define PHX_CORE_JOB_PREFLIGHT_H

#include "core/errand/errand.h"
#include "core/job/internal.h"

enum preflight_phase { PREFLIGHT_ALONE = 1, PREFLIGHT_NEIGHBOURS, PREFLIGHT_EXTREMES, PREFLIGHT_PHASES };
enum { PREFLIGHT_ROUNDS = 2 };

/* A machine's part in the rounds: what each took; 0: it failed, -1: it had no part in it. */
struct paired {
    machine_id machine;
    int64_t times_ns[PREFLIGHT_ROUNDS];
    machine_id partners[PREFLIGHT_ROUNDS]; /* MACHINE_NONE: none */
};
struct pair {
    machine_id machines[2]; /* the first one listens */
    obj_id errands[2];      /* 0: it has ended */
    int64_t times_ns[2];    /* 0: it failed */
};
struct preflight {
    uint8_t phase; /* enum preflight_phase */
    bool in_pairs;
    int64_t begun_ns;
    uint32_t alive;             /* tasks of the gang when `machines` was made */
    VEC(machine_id) machines;   /* derived: of the gang's living tasks, each once, ascending */
    VEC(struct paired) members; /* of the rounds, by machine */
    VEC(struct pair) pairs;     /* of the round under way */
};

/* preflight_pairs.c */
/* Begins the first round, among the machines that want one and some to help them; false: nobody does, or
 * there is no pair. */
bool preflight_pairs_begin(struct step *step, struct gang *gang);
/* Every pair of the round has ended: the next round, or the judgement; then the phase is ALONE again. */
void preflight_pairs_go_on(struct step *step, struct gang *gang);
void preflight_pairs_cancel(struct step *step, struct preflight *preflight);
void preflight_pair_ended(struct step *step, struct gang *gang, const struct errand *errand,
                          const struct errand_end *end);

/* preflight.c */
bool preflight_is_quiet(const struct step *step, const struct machine *machine); /* nobody works there */
bool preflight_is_valid(const struct step *step, const struct gang *gang, int64_t tested_ns);
void preflight_blame(struct step *step, machine_id machine, const char *test, struct str evidence);

#endif
