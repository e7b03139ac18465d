/* flight.h - the record of all ranks, as the files of this module share it (private). */
#ifndef PHX_CORE_DIAGNOSE_FLIGHT_H
#define PHX_CORE_DIAGNOSE_FLIGHT_H

#include "base/map.h"
#include "core/diagnose/diagnose.h"

#define NUMBER_NONE INT64_MIN /* a sequence number that is not known */
#define RANK_NONE   UINT32_MAX
/* Higher or negative operation numbers count as not known, so that twice a number fits an int64_t. */
#define NUMBER_MAX (INT64_C(1) << 60)

/* A text that many operations share. Equal texts have one address. */
struct term {
    struct str text;
    int64_t elements; /* of sizes: the number of elements of all tensors; otherwise 0 */
};

enum op_state { OP_SCHEDULED, OP_STARTED, OP_COMPLETED };

struct op {
    int64_t record_id, seq, created_ns;
    /* the rank's count of operations of the other kind (sends, collectives), or NUMBER_NONE */
    int64_t other_seq;
    struct group *group;
    struct seat *seat; /* the rank's own seat in the group's lane */
    const struct term *name, *input, *output, *input_type, *output_type;
    uint32_t source, target; /* of a send or recv: ranks of the job; RANK_NONE otherwise */
    uint32_t batch;          /* the coalesced call that the operation is part of; 0: none */
    enum op_state state;
    bool p2p;
};

/* A member of a lane. */
struct seat {
    struct lane *lane;
    uint32_t rank;
    struct seat *next_of_rank;
    /* Read from the record: numbers of collectives. */
    int64_t enqueued, completed; /* highest numbers among entries */
    /* Highest numbers in pg_status or the watchdog's lines, which may count sends instead. */
    int64_t status_enqueued, status_completed;
    /* Computed by judging. */
    const struct op *first; /* the oldest unfinished operation; NULL: none */
    int64_t done;           /* all operations up to this number are finished */
    int64_t key;            /* 2 * done + at_head: a seat at a head waits for all seats with a lower key */
    bool known, at_head;    /* `done` is known; `first` is the rank's head, or part of its batch */
};

/* A sequence of operations with one order: a group's collectives, or the sends from one member to
 * another. */
struct lane {
    struct group *group;
    bool p2p;
    uint32_t source, target;  /* of sends: ranks of the job */
    VEC(struct seat *) seats; /* by rank; during judging: unknown ones first, then by key, then by rank */
    bool open;                /* an operation on it is unfinished */
    size_t heads;             /* number of seats that are at their rank's head */
    size_t unknown;           /* number of seats of which nothing is known */
    size_t marked_from;       /* seats from here on were reached */
    uint32_t visit;           /* the last search that came to this lane */
    size_t visited_from;      /* the search has visited the seats from here on */
};

struct group {
    struct str name, desc, ranks_text;
    uint32_t index;
    uint32_t *members; /* by local rank; NULL: not known */
    size_t member_count;
    bool ascending; /* the members' ranks ascend */
    struct lane lane;
    int64_t seq_max, p2p_max; /* highest numbers of collectives and of sends */
    struct group *next;       /* the next group of the same name, with other members */
};

/* The kernel's and libphalanx's view of a rank's process; for running jobs only. */
struct rank_facts {
    bool known;
    char state; /* as in /proc: R S D T t Z X; 0: not given */
    struct str waits_in;
    int64_t step;        /* its last step; NUMBER_NONE: not given */
    int64_t step_age_ms; /* time since that step */
};

struct rank_record {
    uint32_t rank;
    bool dumped, logged, mentioned; /* has a dump; has watchdog lines; exists */
    struct rank_facts facts;
    VEC(struct op) ops; /* by record_id; of the finished ones, only the newest */
    struct seat *seats; /* seats in lanes of groups */
    /* Computed by judging. */
    struct seat *channels; /* seats in lanes of sends */
    const struct op *head;
    size_t head_count; /* ops of the batch that head begins */
    bool skip_sends, reached; /* its open sends are ignored; its wait is explained, or it is to blame */
    bool culprit;
    enum finding_kind kind; /* of a culprit */
    const struct seat *blamed_at;
    uint32_t visit; /* the last search that came to this rank */
};

struct flight {
    struct arena arena;
    VEC(struct group *) groups;
    struct str_map group_names, terms;
    VEC(struct rank_record *) ranks; /* by rank; never NULL */
    uint32_t batches, expected;
    size_t operations, seats;
    size_t answered; /* number of ranks with known facts */
};

/* flight.c */
/* Returns the record of a rank below FLIGHT_RANKS_MAX, made if it is new. */
struct rank_record *flight_rank(struct flight *flight, uint32_t rank);
/* Returns the term with this text, made if it is new. */
const struct term *flight_term(struct flight *flight, struct str text, int64_t elements);
/* Finds the group with this name and these members, or makes it. `ranks_text` lists the members; empty: not
 * known. Returns ERROR_INVALID if the text is no list of ranks, ERROR_LIMIT if there are too many groups or
 * members. */
int flight_group(struct flight *flight, struct str name, struct str desc, struct str ranks_text,
                 struct group **ret_group, struct error *error);
struct group *flight_group_named(struct flight *flight, struct str name); /* NULL: none */
/* Returns the rank's seat in the group's lane, or NULL if the rank is no member. If the group's members are
 * not known, makes the rank a member. */
struct seat *flight_seat(struct flight *flight, struct group *group, uint32_t rank);
/* Returns the number of an operation, or NUMBER_NONE for a value that cannot be one. */
static inline int64_t number_checked(int64_t number)
{
    return number >= 0 && number <= NUMBER_MAX ? number : NUMBER_NONE;
}
struct seat *seat_new(struct arena *arena, struct lane *lane, uint32_t rank);

#endif
