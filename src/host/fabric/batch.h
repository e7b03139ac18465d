/* batch.h - sorts a batch of cross-connects, given the present ones of a switch: which members are possible,
 * already in place or refused, and which cross-connects STEAL removes first. Pure functions.
 */
#ifndef PHX_HOST_FABRIC_BATCH_H
#define PHX_HOST_FABRIC_BATCH_H

#include <stdbool.h>

#include "phalanx/driver.h"

struct switch_size {
    uint32_t a_ports, b_ports;
};

/* The peer of each port; 0: none. */
struct peers {
    uint16_t of[PHX_SWITCH_PORTS_MAX + 1];
};

/* Returns whether the pair has a port of each side of the switch. */
bool batch_pair_is_possible(struct switch_size size, struct phx_crossconnect pair);

/* Sets every status to `status`, and returns it. */
int batch_all_statuses(int *statuses, uint32_t count, int status);

/* Returns PHX_SWITCH_OK, or refuses a batch of more than PHX_SWITCH_PORTS_MAX members: INVALID, as is the
 * status of each member. */
int batch_check_count(uint32_t count, int *ret_statuses, struct phx_switch_error *error);

/* Decides which members of an addition to send to the switch: their statuses become PHX_SWITCH_NOT_TRIED.
 * Other statuses are final, except for batch_end_repeats(). Writes the cross-connects that STEAL removes
 * first to stolen[2 * count] and returns their number. Updates *now to the intended state. */
uint32_t batch_sort_out(struct switch_size size, struct peers *now, const struct phx_crossconnect *pairs,
                        uint32_t count, enum phx_batch_mode mode, int *statuses,
                        struct phx_crossconnect *stolen);

/* Decides which members of a removal to send to the switch, in the same way. */
void batch_sort_out_removal(struct switch_size size, const struct peers *now,
                            const struct phx_crossconnect *pairs, uint32_t count, int *statuses);

/* Gives each member of an addition that repeats an earlier member the status of that member. Called once the
 * sent members have their statuses. `before` is the state before the batch. */
void batch_end_repeats(const struct peers *before, const struct phx_crossconnect *pairs, uint32_t count,
                       int *statuses);

#endif
