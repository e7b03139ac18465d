/* lifecycle.h - a lifecycle as a table: the states, their names, and the states that may follow each.
 *
 *     static const struct lifecycle task_lifecycle = { "task", TASK_STATES, names, allowed };
 *     lifecycle_move(&task_lifecycle, &task->state, TASK_RUNNING);     // CHECKs that the table has the move
 */
#ifndef PHX_CORE_WORDS_LIFECYCLE_H
#define PHX_CORE_WORDS_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

struct lifecycle {
    const char *what;         /* "task", for messages */
    uint8_t states;           /* number of states, <= 32 */
    const char *const *names; /* [states] */
    const uint32_t *next;     /* [states]: bit s set: state s may follow */
};

#define LIFECYCLE_TO(state) (UINT32_C(1) << (state))

static inline bool lifecycle_allows(const struct lifecycle *lifecycle, uint8_t from, uint8_t to)
{
    return from < lifecycle->states && to < lifecycle->states && (lifecycle->next[from] >> to & 1);
}
/* Moves *state to `to`. A move that the table does not have is a bug: prints it to standard error and
 * aborts. */
void lifecycle_move(const struct lifecycle *lifecycle, uint8_t *state, uint8_t to);

#endif
