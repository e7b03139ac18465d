/* pace.h - straggler detection: which ranks of a job are slow, from windows of the time that each rank spends
 * on its own work.
 *
 * In a synchronous job all ranks take the same time for a step, because the fast ones wait for the slow one.
 * Therefore a rank's *own* work in a step is compared (libphalanx's phases, without communication and
 * checkpoints). A window is the mean over the steps that were made in it.
 *
 * A window of a rank is bad by either of two rules, both with MindCluster's defaults (slow-node detection
 * of ascend-faultdiag-online: nSigma 3, degradationPercentage 0.3, normalNumber 20, clusterMeanDistance
 * 1.3):
 *   peers  The ranks of its replicated job, at least PACE_PEERS_MIN, fall into two clusters (the split with
 *          the least squares). The mean of the upper cluster is more than 1.3 times that of the lower, and
 *          the upper cluster is the smaller. The rank is more than 30 % and more than 3 sigma above the lower
 *          cluster. The lower cluster is split again, which finds all ranks that are slow in different
 *          degrees.
 *   past   The rank is more than 30 % and more than 3 sigma above its own last PACE_BASELINE windows that
 *          were not bad. Each of these is taken relative to the median of the rank's peers in that window (of
 *          two, the faster one): if all ranks become slower, none is slow. A rank without peers is not
 *          judged, because a slow machine looks like another phase of the program.
 * PACE_WINDOWS bad windows in a row make a rank slow; as many good ones in a row make it normal again. A
 * window in which a rank made no step does not count for that rank. A window in which fewer than half of the
 * peers made a step counts for none of them.
 *
 * Integers only: equal windows give equal findings on every machine. Pure; no I/O; one owner.
 */
#ifndef PHX_CORE_PACE_PACE_H
#define PHX_CORE_PACE_PACE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/units.h"

enum {
    PACE_BASELINE = 20,
    PACE_SIGMAS = 3,
    PACE_WINDOWS = 3,
    PACE_PEERS_MIN = 3,        /* for the rule of peers: of two ranks, neither can be called the slow one */
    PACE_OWN_MAX_US = 1 << 28, /* own work in a step; longer values are cut to this */
};

struct pace_rank {
    uint32_t known;        /* number of windows in `sum`, at most PACE_BASELINE */
    uint64_t sum, squares; /* over its windows that were not bad; older ones fade */
    uint8_t bad, good;     /* consecutive windows, at most PACE_WINDOWS */
    bool slow;
};
/* The state of one attempt. Zeroed: no windows yet. */
struct pace {
    int32_t attempt;
    struct pace_rank *ranks; /* [count] by slot; owned */
    size_t count;
};

struct pace_finding {
    uint32_t slot;
    bool slow;         /* it has become slow; false: it is normal, for the first time or again */
    bool by_past;      /* slow only in comparison with its own past */
    uint32_t own_us;   /* own work in a step of this window */
    uint32_t usual_us; /* the usual time: that of its peers, or with by_past its own */
};

/* Takes one window. own_us[slot] is the rank's own work in a step, in microseconds; 0: it made no step. Slots
 * are grouped into peers: group g ends before ends[g], and ends[groups - 1] is `count`. The state is reset if
 * the attempt or the count differs from the last window's. Sets *ret_findings to the ranks whose state
 * changed, by slot, in `arena`, and returns their number. */
size_t pace_window(struct pace *pace, int32_t attempt, const uint32_t *own_us, size_t count,
                   const uint32_t *ends, size_t groups, struct arena *arena,
                   struct pace_finding **ret_findings);
void pace_done(struct pace *pace); /* frees and zeroes it */
/* For snapshots: whether these numbers could have come from windows. */
bool pace_rank_is_valid(const struct pace_rank *rank);

#endif
