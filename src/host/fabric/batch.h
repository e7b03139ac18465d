/* batch.h - what a batch of cross-connects means for a switch whose present ones are known: which members are
 * possible, in place already or refused, and which cross-connects STEAL removes first. Pure.
 */
#ifndef PHX_HOST_FABRIC_BATCH_H
#define PHX_HOST_FABRIC_BATCH_H

#include <stdbool.h>

#include "phalanx/driver.h"

struct switch_size {
    uint32_t a_ports, b_ports;
};

/* The peer of each port, 0: none. */
struct peers {
    uint16_t of[PHX_SWITCH_PORTS_MAX + 1];
};

/* True if the pair has a port of each side. */
bool batch_pair_is_possible(struct switch_size size, struct phx_crossconnect pair);

/* Sets every status; returns `status`. */
int batch_all_statuses(int *statuses, uint32_t count, int status);

/* Decides which members of an addition are sent to the switch: their statuses become NOT_TRIED, the others'
 * are final, but for batch_end_repeats(). `stolen`, with room for 2 * `count`, gets the cross-connects that
 * STEAL removes first; returns their number. *now becomes the state that is wanted. */
uint32_t batch_sort_out(struct switch_size size, struct peers *now, const struct phx_crossconnect *pairs,
                        uint32_t count, enum phx_batch_mode mode, int *statuses,
                        struct phx_crossconnect *stolen);

/* Decides the same of a removal. */
void batch_sort_out_removal(struct switch_size size, const struct peers *now,
                            const struct phx_crossconnect *pairs, uint32_t count, int *statuses);

/* Gives each member of an addition that repeats an earlier one the status of that one, once the members that
 * were sent have theirs. `before` is the state in which the batch began. */
void batch_end_repeats(const struct peers *before, const struct phx_crossconnect *pairs, uint32_t count,
                       int *statuses);

#endif
