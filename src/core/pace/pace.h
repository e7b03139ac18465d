/* pace.h - straggler detection: which ranks of a job are slow, from windows of the time that each spends
 * on its own work.
 *
 * In a synchronous job all ranks make a step in the same time, because the fast ones wait for the slow
 * one. Therefore a rank's *own* work in a step is compared (libphalanx's phases, without communication and
 * checkpoints). One window is the mean over the steps that were made in it.
 *
 * A window of a rank is bad by either of two rules, both with MindCluster's defaults (slow-node detection
 * of ascend-faultdiag-online: nSigma 3, degradationPercentage 0.3, normalNumber 20, clusterMeanDistance
 * 1.3):
 *   peers  the ranks of its replicated job, at least PACE_PEERS_MIN, fall into two clusters (the split with
 *          the least squares), the mean of the upper more than 1.3 times that of the lower; the upper is the
 *          smaller half; and the rank is more than 30 % and more than 3 sigma above the lower. The rest is
 *          split again, so that ranks that are slow in different degrees are all found.
 *   past   it is more than 30 % and more than 3 sigma above its own last PACE_BASELINE windows that were not
 *          bad, each taken relative to the median of its peers of that window (of two the faster one): if
 *          all become slower, no rank is slow. A rank without peers is not judged, because a slow machine
 *          looks like another phase of the program.
 * PACE_WINDOWS bad windows in a row make a rank slow, as many good ones in a row well again. A window in
 * which a rank made no step does not count for it; one in which fewer than half of the peers made one
 * counts for none of them.
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
    PACE_PEERS_MIN = 3,        /* of two ranks, neither can be called the slow one */
    PACE_OWN_MAX_US = 1 << 28, /* a step's own work; longer values are cut to this */
};

struct pace_rank {
    uint32_t known;        /* windows in `sum`, at most PACE_BASELINE */
    uint64_t sum, squares; /* of its windows that were not bad; older ones fade */
    uint8_t bad, good;     /* consecutive, at most PACE_WINDOWS */
    bool slow;
};
/* State of one attempt; zeroed: no windows yet. */
struct pace {
    int32_t attempt;
    struct pace_rank *ranks; /* [count] by slot; owned */
    size_t count;
};

struct pace_finding {
    uint32_t slot;
    bool slow;         /* it has become slow; false: it is well, at first or again */
    bool by_past;      /* slow compared with its own past only */
    uint32_t own_us;   /* of this window */
    uint32_t usual_us; /* the usual time: of its peers or, with by_past, its own */
};

/* Takes one window. `own_us` by slot: microseconds of own work a step, 0: no step was made. Slots are
 * grouped into peers: group g ends before ends[g], the last of them is `count`. An attempt or count that
 * differs from the last window's begins anew. Findings, by slot, are in `arena`. */
size_t pace_window(struct pace *pace, int32_t attempt, const uint32_t *own_us, size_t count,
                   const uint32_t *ends, size_t groups, struct arena *arena,
                   struct pace_finding **ret_findings);
void pace_done(struct pace *pace); /* makes it zeroed again */
/* For snapshots: whether these numbers could have come from windows. */
bool pace_rank_is_valid(const struct pace_rank *rank);

#endif
