/* history.h - judges imported failures of the past as lemon.h judges present ones.
 *
 *     struct lemon_history *history = lemon_history_new(&settings);
 *     lemon_history_at(history, start_ns);                  // in order of time
 *     lemon_history_failed(history, machine);               // the machine's hardware failed
 *     while (lemon_history_next(history, &machine)) ...     // the machine became a lemon
 *
 * A history belongs to one thread, and keeps a record for each machine with failures in the window.
 */
#ifndef PHX_CORE_LEMON_HISTORY_H
#define PHX_CORE_LEMON_HISTORY_H

#include "core/lemon/lemon.h"

struct lemon_history;

struct lemon_history *lemon_history_new(const struct lemon_settings *settings); /* copied */
void lemon_history_free(struct lemon_history *history);                         /* NULL is allowed */
/* Moves the time to `now_ns`, which never decreases, and drops entries older than the window. */
void lemon_history_at(struct lemon_history *history, int64_t now_ns);
/* Counts a failure that took the machine out of service and failed a gang on several machines. */
void lemon_history_failed(struct lemon_history *history, struct str machine);
/* Gets the next machine that has become a lemon; false: none is left. The name is valid until the next call
 * of a function that changes `history`, this one included. */
bool lemon_history_next(struct lemon_history *history, struct str *ret_machine);
const struct lemon_store *lemon_history_store(const struct lemon_history *history);

#endif
