/* flight.h - the record of all ranks, as the files of this module share it (private). */
#ifndef PHX_CORE_DIAGNOSE_FLIGHT_H
#define PHX_CORE_DIAGNOSE_FLIGHT_H

#include "base/map.h"
#include "core/diagnose/diagnose.h"

#define NUMBER_NONE INT64_MIN /* of a sequence number: not known */
#define RANK_NONE   UINT32_MAX
/* Higher or negative operation numbers count as not known, so that twice a number fits. */
#define NUMBER_MAX (INT64_C(1) << 60)

/* A text that many operations share: compared by its address. */
struct term {
    struct str text;
    int64_t elements; /* of all sizes together */
};

enum op_state { OP_SCHEDULED, OP_STARTED, OP_COMPLETED };

struct op {
    int64_t record_id, seq, created_ns;
    int64_t other_seq; /* of a send: how many collectives the rank had called; NUMBER_NONE: not said */
    struct group *group;
    struct seat *seat; /* the rank's own in the group's lane */
    const struct term *name, *input, *output, *input_type, *output_type;
    uint32_t source, target; /* of a send or recv: ranks of the job; RANK_NONE otherwise */
    uint32_t batch;          /* not 0: parts of one coalesced call share it */
    enum op_state state;
    bool p2p;
};

/* A member of a lane. */
struct seat {
    struct lane *lane;
    uint32_t rank;
    struct seat *next_of_rank;
    /* Read from the record, of collectives. */
    int64_t enqueued, completed; /* highest seen among entries */
    int64_t status_enqueued,
        status_completed; /* from pg_status or the watchdog; may count sends instead */
    /* Computed by judging. */
    const struct op *first; /* the oldest unfinished operation; NULL: none */
    int64_t done;           /* all up to this number are finished */
    int64_t key;            /* 2 * done + at_head: others wait for seats with a lower key */
    bool known, at_head;
};

/* A sequence of operations with one order: a group's collectives, or the sends from one member to
 * another. */
struct lane {
    struct group *group;
    bool p2p;
    uint32_t source, target;  /* of sends: ranks of the job */
    VEC(struct seat *) seats; /* by rank; while judged: unknown ones, then by key, then by rank */
    bool open;                /* an operation on it is unfinished */
    size_t heads;             /* seats that are at their rank's head */
    size_t unknown;           /* seats of which nothing is known */
    size_t marked_from;       /* seats from here on were reached */
    uint32_t visit;           /* the search that was here last, and ... */
    size_t visited_from;      /* ... from where on */
};

struct group {
    struct str name, desc, ranks_text;
    uint32_t index;
    uint32_t *members; /* by local rank; NULL: the dump does not say */
    size_t member_count;
    bool ascending;
    struct lane lane;
    int64_t seq_max, p2p_max; /* highest numbers seen in either count */
    struct group *next;       /* the next group of the same name, with other members */
};

/* A rank's process as the kernel and the library see it; of running jobs only. */
struct rank_facts {
    bool known;
    char state; /* as /proc has it: R S D T t Z X; 0: not said */
    struct str waits_in;
    int64_t step; /* its last step; NUMBER_NONE: not said */
    int64_t step_age_ms; /* since then */
};

struct rank_record {
    uint32_t rank;
    bool dumped, logged, mentioned;
    struct rank_facts facts;
    VEC(struct op) ops; /* by record_id; finished ones only the newest */
    struct seat *seats;
    /* Computed by judging. */
    struct seat *channels; /* seats in lanes of sends */
    const struct op *head;
    size_t head_count; /* ops of the batch that head begins */
    bool skip_sends, reached;
    bool culprit;
    enum finding_kind kind; /* of a culprit */
    const struct seat *blamed_at;
    uint32_t visit;
};

struct flight {
    struct arena arena;
    VEC(struct group *) groups;
    struct str_map group_names, terms;
    VEC(struct rank_record *) ranks; /* by rank; never NULL */
    uint32_t batches, expected;
    size_t operations, seats;
    size_t answered; /* ranks of which facts are known */
};

/* flight.c */
struct rank_record *flight_rank(struct flight *flight,
                                uint32_t rank); /* made when new; rank < FLIGHT_RANKS_MAX */
const struct term *flight_term(struct flight *flight, struct str text, int64_t elements);
/* Finds the group of this name and these members (a list as text, empty: not said), made when new.
 * ERROR_INVALID: the text is no list of ranks; ERROR_LIMIT: there are too many groups or members. */
int flight_group(struct flight *flight, struct str name, struct str desc, struct str ranks_text,
                 struct group **ret_group, struct error *error);
struct group *flight_group_named(struct flight *flight, struct str name); /* NULL: none */
/* Returns the rank's seat in the group's lane; NULL: the rank is no member. A group of unknown members
 * takes the rank in. */
struct seat *flight_seat(struct flight *flight, struct group *group, uint32_t rank);
/* Returns the number of an operation, or NUMBER_NONE for a value that cannot be one. */
static inline int64_t number_checked(int64_t number)
{
    return number >= 0 && number <= NUMBER_MAX ? number : NUMBER_NONE;
}
struct seat *seat_new(struct arena *arena, struct lane *lane, uint32_t rank);

#endif
