/* diagnose.h - which rank made a job's collectives hang, from what the ranks recorded. Pure.
 *
 *     struct flight *flight = flight_new();
 *     flight_add_dump(flight, rank, doc, &error);     for every rank that left one; the doc may go afterwards
 *     flight_add_log(flight, text);                   watchdog lines, for ranks that left none
 *     flight_judge(flight, &diagnosis);
 *     ... diagnosis.findings ...
 *     diagnosis_done(&diagnosis); flight_free(flight);
 *
 * A flight is the record of all ranks: process groups with their members, and for each rank the operations
 * that it put on a group, in order. A dump is PyTorch's (docs/diagnose.md has the form); fields that are
 * absent or of another form are ignored.
 *
 * The rule. Each group, and each pair of sender and receiver, is a lane. Operations on a lane are numbered,
 * and each member has finished all of them up to some number. A rank's head is its oldest unfinished
 * operation. A rank waits for the members of its head's lane that have not come as far: they have not joined,
 * or are still busy before it. The culprit is a rank that others wait for and that itself waits for none:
 *
 *     finding       the rank that is waited for, and waits for none
 *     ABSENT        has nothing open: its process never joined
 *     STUCK         has not finished its head, which all others have; or has not begun it, and others
 *                   have: its device hangs
 *     SILENT        left no record, and nothing can hold it up: no proved culprit is missing at one of
 *                   its operations, and no other rank is without a record
 *     UNDECIDED     is one of several ranks without a record, which may hold up each other
 *     ORDER, TYPE,  is at the same operation as all others, but calls it differently from the majority
 *     SIZE, DTYPE
 *     NETWORK       is at the same operation as all others, and all call it alike
 *     DEADLOCK      (none) the ranks wait for each other in a circle: they run different programs. If one
 *                   of them has only sends open, which need no answer to go on, it is ABSENT instead
 *
 * Cost: O(n log n) in operations and memberships. A flight owns copies of all it needs. Not thread-safe.
 */
#ifndef PHX_CORE_DIAGNOSE_DIAGNOSE_H
#define PHX_CORE_DIAGNOSE_DIAGNOSE_H

#include "doc/doc.h"
#include "base/error.h"
#include "base/vec.h"

enum {
    FLIGHT_RANKS_MAX = 1 << 17,
    FLIGHT_GROUPS_MAX = 1 << 20,  /* process groups of the whole job */
    FLIGHT_SEATS_MAX = 1 << 24,   /* members of all of them */
    FLIGHT_ENTRIES_MAX = 1 << 16, /* of one dump */
    FLIGHT_FINISHED_MAX = 64, /* newest finished operations kept of each rank; older ones only as numbers */
    DIAGNOSIS_FINDINGS_MAX = 4096, /* further ones are counted only */
};

struct flight;

struct flight *flight_new(void);
void flight_free(struct flight *flight); /* NULL allowed */
/* Declares that ranks 0 to count-1 exist, whether or not they left a record. Without this call, only
 * the ranks that a record names exist. */
int flight_expect(struct flight *flight, uint32_t count, struct error *error);

/* Takes the dump of one rank. A field of an unexpected form is ignored: then the result is 0, and
 * `error` (zeroed before) names the field. ERROR_INVALID / ERROR_LIMIT: "rank N: PATH: why", and
 * nothing was taken: the document is no dump, none of its operations can be read, or it belongs to
 * another rank. ERROR_EXISTS: the rank has a dump already. */
int flight_add_dump(struct flight *flight, uint32_t rank, const struct doc *dump, struct error *error);
/* Takes the lines of a process group's watchdog from one log and ignores all others. Returns how many
 * lines it took. They count only for ranks without a dump. */
size_t flight_add_log(struct flight *flight, struct str text);

/* Appends the record of a rank whose dump was taken, as a dump of the same form in one JSON object:
 * all its groups with their counters, and as many operations as `bytes_max` leaves room for, those
 * first that judging needs first. Members stand as ranges: "[0-7, 9, 16-56/8]". Returns the length, at
 * most `bytes_max` unless the groups alone are longer. */
size_t flight_summarise(struct flight *flight, uint32_t rank, size_t bytes_max, struct buf *out);
/* Appends a list of ranks as dumps and summaries have it, with ranges where they are shorter. */
void flight_write_ranks(struct buf *out, const uint32_t *ranks, size_t count);

/* Takes the answer of an agent about one task of a running job, one JSON object:
 *     {"ranks": [{"rank": 3, "state": "S", "waitsIn": "futex_wait", "step": 41, "stepAgeMs": 61000,
 *                 "flight": {a dump}}, ...]}
 * `state` and `waitsIn` are those of the rank's process in /proc; all members but rank may be absent. Returns
 * the number of ranks; ERROR_INVALID / ERROR_EXISTS / ERROR_LIMIT name the place, and ranks before it stay.
 */
int flight_add_answer(struct flight *flight, struct str text, struct error *error);

enum finding_kind {
    FINDING_ABSENT,   /* its process never joined */
    FINDING_STUCK,    /* its device makes no progress */
    FINDING_SILENT,   /* it left no record, and is the one missing */
    FINDING_STOPPED,  /* of a running job: its process cannot run, and those of the others can */
    FINDING_BEHIND,   /* of a running job: it has not made the step that the others have */
    FINDING_ORDER,    /* `ranks` call operations of a group in another order than the others */
    FINDING_TYPE,     /* ... another operation */
    FINDING_SIZE,     /* ... with another size */
    FINDING_DTYPE,    /* ... with another element type */
    FINDING_DEADLOCK, /* `ranks` wait for each other in a circle */
    FINDING_NETWORK,  /* all members of the group joined, none makes progress */
    FINDING_UNDECIDED, /* one of `ranks` is missing: none left a record, and each may wait for another */
};
enum finding_action { ACTION_RESTART, ACTION_REPLACE, ACTION_FIX_PROGRAM, ACTION_CHECK_NETWORK };

/* Whether the finding blames a rank, and not the program or the network. */
static inline bool finding_blames(enum finding_kind kind)
{
    return kind <= FINDING_BEHIND;
}

struct finding {
    enum finding_kind kind;
    enum finding_action action;
    uint32_t *ranks; /* ascending: the culprit, the ranks that differ, or the whole group */
    size_t rank_count;
    struct str group, group_desc, op; /* the place that shows it best; op without its backend:
                                       * "all_reduce" */
    size_t group_size;
    bool p2p;
    int64_t seq; /* number of the unjoined or unfinished operation */
    /* Ranks that wait for the culprit directly, and those that wait directly or indirectly. */
    size_t waiting, waiting_all;
    int64_t first_ns, last_ns; /* wall clock: first and last of the waiting operations begun; 0: not known */
    struct str evidence, advice; /* a sentence or two each */
};

struct diagnosis {
    bool hang; /* some operation is not finished */
    VEC(struct finding) findings;
    size_t findings_left_out;
    VEC(uint32_t) culprits; /* ascending: ranks for which finding_blames; not ranks whose program is to
                             * blame */
    VEC(uint32_t) silent;   /* ascending: ranks that exist but left nothing */
    size_t ranks, dumped, logged, waiting, groups, operations;
    struct arena arena; /* owns the memory of the findings */
};

void flight_judge(struct flight *flight, struct diagnosis *ret_diagnosis);
void diagnosis_done(struct diagnosis *diagnosis);

const char *finding_kind_name(enum finding_kind kind);       /* "absent" */
const char *finding_action_name(enum finding_action action); /* "restart-process" */
/* "0-3, 9": ranks as ranges, at most `max` of them, then "and N more". */
void ranks_describe(struct buf *out, const uint32_t *ranks, size_t count, size_t max);
/* "one of 12 and 13" */
void ranks_describe_one(struct buf *out, const uint32_t *ranks, size_t count);
/* Appends one sentence: "Ranks 9, 14 made it hang.", "No hang was found." */
void diagnosis_summary(struct buf *out, const struct diagnosis *diagnosis);
void diagnosis_write_json(struct buf *out, const struct diagnosis *diagnosis); /* one object, one line */

#endif
