/* diagnose.h - finds the rank that made a job's collectives hang, from the records of its ranks. Pure.
 *
 *     struct flight *flight = flight_new();
 *     flight_add_dump(flight, rank, doc, &error);     for every rank that left a dump; copies the doc
 *     flight_add_log(flight, text);                   watchdog lines, for ranks without a dump
 *     flight_judge(flight, &diagnosis);
 *     ... diagnosis.findings ...
 *     diagnosis_done(&diagnosis); flight_free(flight);
 *
 * A flight is the record of all ranks: process groups with their members, and for each rank the operations
 * that it put on a group, in order. A dump has PyTorch's form (docs/diagnose.md); fields that are absent or
 * of another form are ignored.
 *
 * The rule. Each group is a lane, and so is each pair of sender and receiver. Operations on a lane are
 * numbered, and each member has finished all of them up to some number. A rank's head is its oldest
 * unfinished operation. A rank waits for the members of its head's lane that have made less progress: they
 * have not joined the operation, or an earlier one keeps them busy. The culprit is a rank that others wait
 * for and that waits for no rank:
 *
 *     finding       the culprit
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
 *                   of them has only sends open, which need no answer to proceed, it is ABSENT instead
 *
 * Cost: O(n log n) in operations and memberships. A flight owns copies of all that it needs. Not thread-safe.
 */
#ifndef PHX_CORE_DIAGNOSE_DIAGNOSE_H
#define PHX_CORE_DIAGNOSE_DIAGNOSE_H

#include "doc/doc.h"
#include "base/error.h"
#include "base/vec.h"

enum {
    FLIGHT_RANKS_MAX = 1 << 17,
    FLIGHT_GROUPS_MAX = 1 << 20,  /* process groups of the whole job */
    FLIGHT_SEATS_MAX = 1 << 24,   /* members of all groups */
    FLIGHT_ENTRIES_MAX = 1 << 16, /* entries of one dump */
    FLIGHT_FINISHED_MAX = 64, /* newest finished operations kept of each rank; older ones only as numbers */
    DIAGNOSIS_FINDINGS_MAX = 4096, /* further findings are only counted */
};

struct flight;

struct flight *flight_new(void);
void flight_free(struct flight *flight); /* NULL allowed */
/* Declares that ranks 0 to count-1 exist, whether or not they left a record. Without this call, only the
 * ranks that a record names exist. Returns ERROR_LIMIT if `count` exceeds FLIGHT_RANKS_MAX. */
int flight_expect(struct flight *flight, uint32_t count, struct error *error);

/* Takes the dump of one rank. Fields of an unexpected form are ignored: the result is then 0, and `error`,
 * which the caller has zeroed, names the first of them. Returns ERROR_EXISTS if the rank has a dump already.
 * Returns ERROR_INVALID or ERROR_LIMIT, with "rank N: PATH: why", if the document is no dump, if none of its
 * operations can be read, or if it belongs to another rank. Of a refused dump, only the groups are kept. */
int flight_add_dump(struct flight *flight, uint32_t rank, const struct doc *dump, struct error *error);
/* Takes the lines of process groups' watchdogs from one log and ignores all others. Returns how many lines it
 * took. They count only for ranks without a dump. */
size_t flight_add_log(struct flight *flight, struct str text);

/* Appends the record of a rank whose dump was taken, as one JSON object in the form of a dump. The object has
 * all the rank's groups with their counters, and as many operations as fit into `bytes_max` bytes, starting
 * with those that judging needs most. Members are written as ranges: "[0-7, 9, 16-56/8]". Returns the length,
 * which exceeds `bytes_max` only if the groups alone do. */
size_t flight_summarise(struct flight *flight, uint32_t rank, size_t bytes_max, struct buf *out);
/* Appends a list of ranks in the form of dumps and summaries, with ranges where they are shorter. */
void flight_write_ranks(struct buf *out, const uint32_t *ranks, size_t count);

/* Takes an agent's answer about one task of a running job, one JSON object:
 *     {"ranks": [{"rank": 3, "state": "S", "waitsIn": "futex_wait", "step": 41, "stepAgeMs": 61000,
 *                 "flight": {a dump}}, ...]}
 * `state` and `waitsIn` describe the rank's process as in /proc. All members but `rank` may be absent.
 * Returns the number of ranks. On an error (ERROR_INVALID, ERROR_EXISTS, ERROR_LIMIT, or one of json_parse),
 * `error` names the place, and the ranks before it are kept.
 */
int flight_add_answer(struct flight *flight, struct str text, struct error *error);

enum finding_kind {
    FINDING_ABSENT,    /* the rank's process never joined */
    FINDING_STUCK,     /* the rank's device makes no progress */
    FINDING_SILENT,    /* the rank left no record, and is the missing one */
    FINDING_STOPPED,   /* of a running job: the rank's process cannot run, and those of the others can */
    FINDING_BEHIND,    /* of a running job: the rank has not made the step that the others have */
    FINDING_ORDER,     /* `ranks` call operations of a group in another order than the others */
    FINDING_TYPE,      /* `ranks` call another operation */
    FINDING_SIZE,      /* `ranks` call the operation with another size */
    FINDING_DTYPE,     /* `ranks` call the operation with another element type */
    FINDING_DEADLOCK,  /* `ranks` wait for each other in a circle */
    FINDING_NETWORK,   /* all members of the group joined, and none makes progress */
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
    struct str group, group_desc, op; /* the operation that shows it best; op without its backend:
                                       * "all_reduce" */
    size_t group_size;
    bool p2p;    /* a send or receive */
    int64_t seq; /* number of the unjoined or unfinished operation */
    /* Ranks that wait for the culprit directly, and those that wait directly or indirectly. */
    size_t waiting, waiting_all;
    int64_t first_ns, last_ns;   /* wall clock: first and last call at which ranks wait; 0: not known */
    struct str evidence, advice; /* a sentence or two each */
};

struct diagnosis {
    bool hang; /* some operation is not finished */
    VEC(struct finding) findings;
    size_t findings_left_out;
    VEC(uint32_t) culprits; /* ascending: ranks whose findings satisfy finding_blames */
    VEC(uint32_t) silent;   /* ascending: ranks that exist but left no record */
    size_t ranks, dumped, logged, waiting, groups, operations; /* numbers of them */
    struct arena arena; /* owns the memory of the findings */
};

/* Judges the flight. The caller frees the result, which does not refer to the flight, with diagnosis_done.
 * More records may be added, and judged again, afterwards. */
void flight_judge(struct flight *flight, struct diagnosis *ret_diagnosis);
void diagnosis_done(struct diagnosis *diagnosis);

const char *finding_kind_name(enum finding_kind kind);       /* "absent" */
const char *finding_action_name(enum finding_action action); /* "restart-process" */
/* Appends ascending ranks as at most `max` ranges: "0-3, 9 and 12 more". */
void ranks_describe(struct buf *out, const uint32_t *ranks, size_t count, size_t max);
/* Appends "one of 12 and 13". */
void ranks_describe_one(struct buf *out, const uint32_t *ranks, size_t count);
/* Appends one sentence: "Ranks 9, 14 made it hang.", "No hang was found." */
void diagnosis_summary(struct buf *out, const struct diagnosis *diagnosis);
void diagnosis_write_json(struct buf *out, const struct diagnosis *diagnosis); /* one object, one line */

#endif
