/* lemon.h - lemons, machines that fail repeatedly: the counts of each machine, and when it is called a lemon.
 *
 * Seven signals over a window of at most 28 days (Meta, arXiv 2410.21680, "lemon nodes"):
 *
 *    excl_jobid_count               JobSets whose users excluded the machine by name
 *    xid_cnt                        errors of its chips, counted each time that one opens
 *    tickets                        repairs that a person was asked to make
 *    out_count                      times it left service: lost, or isolated by its faults
 *    multi_node_node_fails          gangs on several machines that failed because of it
 *    single_node_node_fails         gangs on it alone that failed because of it
 *    single_node_node_failure_rate  of the gangs that were placed on it alone, in per cent
 *
 * A signal at or above its threshold (model.h's lemon_settings) makes the machine a lemon. The first signal
 * only adds to the score, because it proves nothing on its own (the same paper). The score is the sum of the
 * signals' value / threshold in per cent, each at most LEMON_SHARE_MAX: a ranking, not a probability.
 *
 * Only evidence about the hardware counts: no faults of programs, no injected faults, no orderly stop of
 * an agent, no outage of the controller.
 *
 * Any module may call lemon_count() at any point of a step; core.c asks for the verdicts at the step's end.
 * Counts are kept in buckets of a day of the log's time (UTC); a record is removed with its last bucket.
 * Bounded: a record for each machine, with LEMON_COUNTERS entries for each day of the window. Records are
 * kept by machine name: a machine that leaves the cluster file and returns within the window keeps its
 * history.
 */
#ifndef PHX_CORE_LEMON_LEMON_H
#define PHX_CORE_LEMON_LEMON_H

#include "base/vec.h"
#include "core/words/ids.h"
#include "core/model/model.h"

struct step;

#define LEMON_FAULT  "lemon/repeated-failures" /* the fault of a lemon that is taken out of service */
#define LEMON_DAY_NS (INT64_C(24) * 3600 * NS_PER_SECOND)

enum {
    LEMON_SHARE_MAX = 300,       /* per cent: largest share of one signal in the score */
    LEMON_RATE_FAILURES_MIN = 2, /* with fewer failures, the rate is 0 */
};

/* The counters. The first six are signals; the seventh is the base of the rate. Part of snapshots. */
enum lemon_counter {
    LEMON_EXCLUSION,
    LEMON_XID,
    LEMON_TICKET,
    LEMON_OUT,
    LEMON_MULTI_NODE_FAILURE,
    LEMON_SINGLE_NODE_FAILURE,
    LEMON_SINGLE_NODE_RUN,
    LEMON_COUNTERS
};
_Static_assert((int)LEMON_COUNTERS == (int)LEMON_SIGNALS, "the last signal is the rate");

/* Returns the signal's name in the paper: "xid_cnt". */
const char *lemon_signal_name(enum lemon_signal signal);

struct lemon_entry {
    int32_t day; /* since 1970 */
    uint16_t counter, count;
};

struct lemon {
    struct str machine; /* name; owned */
    uint32_t totals[LEMON_COUNTERS];
    bool is_lemon;    /* by the last verdict */
    int64_t since_ns; /* stamp at which is_lemon last changed; 0: never */
    uint64_t changed_seq;

    /* Private. */
    VEC(struct lemon_entry) entries; /* ascending by day, then counter */
    bool stirred, grew;              /* it must be judged; it has new counts */
};

struct lemon_store; /* one for each core; `lemons` of struct step */
struct lemon_store *lemon_store_new(void);
void lemon_store_free(struct lemon_store *store);
/* Sets a function that is asked before each failure is counted. The failure is not counted if it returns
 * true: events on the machine then prove nothing about its hardware. */
void lemon_store_excuse(struct lemon_store *store,
                        bool (*excused)(const struct step *step, const struct machine *machine));

/* Counts an event that happens now, unless it is excused. */
void lemon_count(struct step *step, const struct machine *machine, enum lemon_counter counter);

/* --- for readers ---------------------------------------------------------------------------------------- */

const struct lemon *lemon_find(const struct lemon_store *store, struct str machine); /* NULL: no counts */
/* Returns the counter's sum over all machines, within the window. */
int64_t lemon_sum(const struct lemon_store *store, enum lemon_counter counter);
/* Returns the signal's count, or for the rate, whole per cents. */
int64_t lemon_value(const struct lemon *lemon, enum lemon_signal signal);
bool lemon_exceeds(const struct lemon *lemon, const struct lemon_settings *settings,
                   enum lemon_signal signal);
int64_t lemon_score(const struct lemon *lemon, const struct lemon_settings *settings);
/* Appends the signals at or above their thresholds: "multi_node_node_fails 3 (threshold 2), out_count 4
 * (threshold 4)". If there are none, appends all nonzero signals without thresholds. */
void lemon_describe(const struct lemon *lemon, const struct lemon_settings *settings, struct buf *out);

/* --- for core.c ----------------------------------------------------------------------------------------- */

/* A verdict on a machine. */
struct lemon_verdict {
    const struct lemon *lemon;
    bool turned; /* it has become a lemon, or has ceased to be one */
    bool grew;   /* it has new counts since the last verdict */
};
/* Judges the machines whose counts changed, and gets the next one that has turned, or that is a lemon with
 * new counts. Called until it returns false, before the step ends; verdicts are valid until then. */
bool lemon_next_verdict(struct step *step, struct lemon_verdict *ret_verdict);
void lemon_tick(struct step *step); /* drops entries that are older than the window */
/* Has all machines judged again after a change of settings; `before` are the old ones. If lemons are taken
 * out of service from now on, present lemons count as having new counts. */
void lemon_cluster(struct step *step, const struct lemon_settings *before);
/* Returns the stamp of the next lemon_tick that drops entries; INT64_MAX: none. */
int64_t lemon_deadline(const struct lemon_store *store, const struct lemon_settings *settings);

/* --- for snapshots -------------------------------------------------------------------------------------- */

void lemon_visit(const struct lemon_store *store, void (*visit)(void *context, const struct lemon *lemon),
                 void *context); /* in order of their first count */
/* Restores a record from a snapshot: entries are copied, totals computed from them. Returns false if it does
 * not fit. */
bool lemon_restore(struct lemon_store *store, const struct lemon *saved);
void lemon_check(const struct lemon_store *store); /* totals and entries agree; aborts through CHECK */

#endif
