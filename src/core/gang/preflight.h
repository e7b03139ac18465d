/* preflight.h - tests of the machines of a placed gang before it starts. Private to gang/ and snapshots.
 *
 *     PREFLIGHT_ALONE     each machine whose last test is too old is tested (ERRAND_QUALIFY)
 *        | all are valid
 *        v
 *     PREFLIGHT_NEIGHBOURS, then PREFLIGHT_EXTREMES: its machines in pairs, if pairs are configured
 *        | all went well
 *        v
 *     none: its tasks are told to start
 *
 * The result of a test belongs to the machine (machine->qualified_ns, ->paired_ns). It counts for every gang
 * until it is too old, so machines with valid results cost nothing. A machine that fails becomes a verdict,
 * from which react/ makes a fault. The fault takes the machine out of service, and the gang returns to the
 * queue with the same tasks, because none of the user's processes has run. If the machine stays in service
 * (by the fault's row or the breaker), it counts as tested.
 *
 * A machine with running tasks of others is not tested: test and tasks would disturb each other.
 */
#ifndef PHX_CORE_GANG_PREFLIGHT_H
#define PHX_CORE_GANG_PREFLIGHT_H

#include "core/errand/errand.h"
#include "core/gang/internal.h"

enum preflight_phase { PREFLIGHT_ALONE = 1, PREFLIGHT_NEIGHBOURS, PREFLIGHT_EXTREMES, PREFLIGHT_PHASES };
enum { PREFLIGHT_ROUNDS = 2 };

/* The times of a machine in the two rounds; 0: the test failed, -1: the machine had no part in the round. */
struct paired {
    machine_id machine;
    int64_t times_ns[PREFLIGHT_ROUNDS];
    machine_id partners[PREFLIGHT_ROUNDS]; /* MACHINE_NONE: none */
};
struct pair {
    machine_id machines[2]; /* the first one listens */
    obj_id errands[2];      /* 0: the errand has ended */
    int64_t times_ns[2];    /* of each end; 0: it failed, or has not ended */
};
struct preflight {
    uint8_t phase; /* enum preflight_phase */
    bool in_pairs;
    int64_t begun_ns;
    uint32_t alive;             /* number of living tasks of the gang when `machines` was made */
    VEC(machine_id) machines;   /* derived: machines of the gang's living tasks, each once, ascending */
    VEC(struct paired) members; /* members of the rounds, by machine */
    VEC(struct pair) pairs;     /* pairs of the present round */
};

/* preflight_pairs.c */
/* Begins the first round, among the machines that need a test and partners for them. Returns false if no
 * machine needs a test, or if there are fewer than two machines to pair. */
bool preflight_pairs_begin(struct step *step, struct gang *gang);
/* Called when a round has ended. Begins the next, or judges the machines and sets the phase to ALONE. */
void preflight_pairs_go_on(struct step *step, struct gang *gang);
void preflight_pairs_cancel(struct step *step, struct preflight *preflight); /* cancels its errands */
/* Gives the rounds up and sets the phase to ALONE: rounds begin again among the machines that are left. */
void preflight_pairs_give_up(struct step *step, struct preflight *preflight);
/* Stores the result of one end of a pair. */
void preflight_pair_ended(struct step *step, struct gang *gang, const struct errand *errand,
                          const struct errand_end *end);

/* preflight.c */
/* Returns whether every task on the machine waits for its own preflight, so that none disturbs a test. */
bool preflight_is_quiet(const struct step *step, const struct machine *machine);
/* Returns whether a test at that stamp (0: never) is still valid for the gang. */
bool preflight_is_valid(const struct step *step, const struct gang *gang, int64_t tested_ns);
/* Adds the verdict qualify/TEST about the machine; the evidence is copied and cut. */
void preflight_blame(struct step *step, machine_id machine, const char *test, struct str evidence);

#endif
