/* log_walk.h - applies a log's records to a core, in order: `phalanx replay`, `phalanx trace extract`.
 *
 *     struct core *core = core_new();
 *     log_walk_begin(&log, &limits, core, &error);        // the state before the first record of the log
 *     log_walk(&log, &limits, bar, core, seen, context, &error);
 */
#ifndef PHX_CMD_LOG_WALK_H
#define PHX_CMD_LOG_WALK_H

#include "host/controller/controller.h"

/* Where a walk ends: at the last record that both members allow. */
struct log_limits {
    uint64_t until_seq; /* UINT64_MAX: none */
    int64_t until_ns;   /* INT64_MAX: none */
};
/* No limit. */
#define LOG_LIMITS_NONE ((struct log_limits){UINT64_MAX, INT64_MAX})

/* Reads the value of --until: the number of a record, or a time such as 2026-03-01T12:00:00Z. */
bool log_limits_parse(const char *text, struct log_limits *limits);
/* Prepares a fresh core for the walk: leaves it empty if the log still has its first record, otherwise loads
 * the newest snapshot up to until_seq. Returns ERROR_NOT_FOUND if a trimmed log has no such snapshot. */
int log_walk_begin(const struct log_store *log, const struct log_limits *limits, struct core *core,
                   struct error *error);
/* Applies the records after the core's own, up to the limits, and calls `seen` after each step. With `bar`
 * shows the number of the record on standard error meanwhile. */
int log_walk(const struct log_store *log, const struct log_limits *limits, bool bar, struct core *core,
             controller_replay_step *seen, void *context, struct error *error);

#endif
