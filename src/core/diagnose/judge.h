/* judge.h - state and functions shared by the steps of judging: lanes -> waits -> blame -> missing -> words.
 * Private. */
#ifndef PHX_CORE_DIAGNOSE_JUDGE_H
#define PHX_CORE_DIAGNOSE_JUDGE_H

#include "core/diagnose/flight.h"

struct judge {
    struct flight *flight;
    struct arena arena;       /* lanes of sends */
    struct u64_map channels;  /* lanes of sends by group, sender and receiver */
    VEC(struct lane *) lanes; /* lanes with an unfinished operation */
    VEC(struct lane *) sends; /* all lanes of sends */
    VEC(struct lane *) missing; /* lanes where all known members wait for unknown ones */
    VEC(uint32_t) queue;      /* of ranks, for the search */
    uint32_t visit;
    struct diagnosis *out;
};

/* lanes.c: the progress of each rank. */
/* Computes the heads, seats and lanes from the records, and orders the seats for judging. */
void judge_lanes(struct judge *judge);
void judge_lanes_done(struct judge *judge); /* restores the order of seats, and frees all but the result */
/* Whether the members of the lane give the same numbers to the same operations. The two ends of a pair do if
 * they are alone in their group; in larger groups, each also counts its exchanges with other members. Then
 * only the order is known, and both ends are assumed to have finished the same operations.
 */
bool lane_numbered(const struct lane *lane);
bool record_idle(const struct rank_record *record);   /* whether the rank left a record with nothing open */
bool record_silent(const struct rank_record *record); /* whether the rank left no record */
/* Whether the operation is open and not skipped. */
bool op_counts(const struct rank_record *record, const struct op *op);

/* waits.c: the waits between ranks. */
/* Marks every rank that waits for `rank`, directly or not, as reached. */
void judge_reach(struct judge *judge, uint32_t rank);
/* Counts the ranks that wait for `rank` directly, and with `all` also those that wait indirectly. *ret_seat
 * is the seat of `rank` where most of them wait; NULL: none waits. */
void judge_count(struct judge *judge, uint32_t rank, bool all, size_t *ret_direct, size_t *ret_all,
                 const struct seat **ret_seat);
/* Returns the first seat at a head that waits for no known seat of the lane, or NULL if there is none. */
struct seat *lane_foremost(const struct lane *lane);

/* mismatch.c: compares the calls of one operation by all members. Returns true, and makes a finding, if they
 * disagree. */
bool judge_mismatch(struct judge *judge, struct lane *lane, int64_t seq);

/* blame.c */
/* Makes the findings and the list of culprits. */
void judge_blame(struct judge *judge);
/* Marks the rank of the seat as a culprit, unless it is one already. */
void judge_culprit(struct judge *judge, const struct seat *seat, enum finding_kind kind);

/* missing.c: ranks without a record. */
void judge_missing(struct judge *judge); /* judges judge->missing, once the proved culprits are known */
void judge_silent(struct judge *judge);  /* called if nothing else explains the hang */

/* answer.c: explains a hang of a running job where the records do not. */
void judge_facts(struct judge *judge);

/* words.c: findings with their sentences. */
void find_culprit(struct judge *judge, const struct rank_record *record);
/* Adds a finding about an operation of the lane; `lane` NULL: about none. Returns NULL, and counts the
 * finding as left out, if there are too many already. The result is valid until the next finding is added. */
struct finding *finding_new(struct judge *judge, enum finding_kind kind, const struct lane *lane, int64_t seq,
                            struct str op);
void finding_set_ranks(struct judge *judge, struct finding *finding, const uint32_t *ranks, size_t count);
void find_network(struct judge *judge, struct lane *lane, int64_t seq, size_t at_it, size_t finished);
void find_undecided(struct judge *judge, const struct seat *seat, const uint32_t *ranks, size_t count);
void find_deadlock(struct judge *judge, const uint32_t *circle, size_t count);
/* Appends "all_reduce 7503 of group 67 (TP, 4 ranks)". */
void lane_describe(struct buf *out, const struct lane *lane, struct str op, int64_t seq);

#endif
