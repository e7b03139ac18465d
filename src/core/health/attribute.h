/* attribute.h - what ended an attempt: the faults that struck the JobSet in the ten minutes before its end,
 * and the clues that its tasks left (clue.h); one primary cause with the others as support, or none:
 * "unattributed" is an answer. The window is Meta's (arXiv 2410.21680), but for one thing: a cause comes
 * before its effect.
 *
 * Faults. A fault struck a JobSet when it occurred on a machine or chip that the JobSet had, or had until at
 * most five minutes before. Each occurrence is copied when it is heard of (struct end_fault), so that nothing
 * that happens to the fault afterwards rewrites why an attempt ended. Occurrences that began before the end,
 * by the clock of their machine, may be heard of for ATTRIBUTE_AFTER_NS; what began later is listed as
 * `later` at most. Of those before the end the first has the largest level; of equal ones hardware goes
 * before software before the user, then the earliest. Those of the machine where it began go before all
 * others. A code that struck several chips of the job at once counts as software, whatever its table says.
 *
 * Clues. A root goes before a stopped task's root, then the heavier, then the earlier. Symptoms and teardowns
 * support and are never the cause. The same root on several machines within SOFTWARE_WINDOW_NS is software
 * rather than hardware.
 *
 * On purpose. What `phalanx inject` tells of before it does it (codes injected/...), and what a user orders
 * (drains, deletions of Pods), explains every end within ATTRIBUTE_ORDERED_NS behind it, whatever else was
 * seen: nobody is to look for a cause that is known. The domain is the user's, however many such faults there
 * are.
 *
 * Both. The fault is the cause when there is no root, when it is on the root's machine and more than
 * SUB_HEALTH, or when it takes its machine out of service wherever that is; else the root is.
 */
#ifndef PHX_CORE_HEALTH_ATTRIBUTE_H
#define PHX_CORE_HEALTH_ATTRIBUTE_H

#include "core/health/clue.h"
#include "core/health/fault.h"

#define ATTRIBUTE_BEFORE_NS (600 * NS_PER_SECOND)
#define ATTRIBUTE_AFTER_NS  (300 * NS_PER_SECOND)
#define ATTRIBUTE_ORDERED_NS ON_PURPOSE_NS

enum {
    ATTRIBUTE_SUPPORT_MAX = 7,
    ATTRIBUTE_LATER_MAX = 4,
    END_CLUES_MAX = 8,
    END_FAULTS_MAX = 16,
    END_MACHINE_MAX = 63,
    END_USER_MAX = 63,
};

/* One clue of an attempt's end, over all of its tasks that left it. */
struct end_clue {
    enum clue_kind kind;
    bool stopped;   /* by tasks that had been told to end before, only */
    bool many;      /* on several machines at once */
    uint32_t rank;  /* of the first task that left it */
    uint32_t tasks; /* how many did */
    int64_t at_ns;  /* stamp at which the first was heard of */
    char machine[END_MACHINE_MAX + 1]; /* of the first; empty: none */
    char line[CLUE_LINE_MAX + 1];
};
/* Zeroed: none. Bounded by END_CLUES_MAX: the weakest makes room. */
struct end_clues {
    struct end_clue *items; /* owned, in the order in which they were heard of */
    size_t count;
};
/* `clue` is of one task: `tasks` is 1. Equal ones become one: the same kind, and of an exception the same
 * type. */
void end_clues_add(struct end_clues *clues, const struct end_clue *clue);
/* Forgets those from before the stamp. */
void end_clues_forget(struct end_clues *clues, int64_t before_ns);
void end_clues_done(struct end_clues *clues);
/* The cause among them; NULL: there is no root. */
const struct end_clue *end_clues_root(const struct end_clues *clues);

/* A fault as it was when it struck the JobSet, or what a user ordered. */
struct end_fault {
    obj_id fault; /* uid; 0: an order */
    enum fault_level level;
    enum fault_domain domain;
    bool software;                  /* on several chips of the JobSet within SOFTWARE_WINDOW_NS */
    int64_t at_ns;                  /* stamp at which it began ... */
    int64_t last_ns;                /* ... and at which it occurred last */
    char code[SIGNAL_CODE_MAX + 1]; /* "xid/79"; of an order ORDER_DRAIN, ... */
    char machine[END_MACHINE_MAX + 1];
    char user[END_USER_MAX + 1]; /* who did or ordered it; empty: nobody */
    char name[NAME_MAX_BYTES + 1]; /* of the fault */
    char evidence[SIGNAL_EVIDENCE_MAX + 1];
};
/* Zeroed: none. Bounded by END_FAULTS_MAX: the weakest makes room. */
struct end_faults {
    struct end_fault *items; /* owned, in the order in which they were heard of */
    size_t count;
};
#define ORDER_DRAIN       "drain"       /* evicted from a machine that is cordoned */
#define ORDER_EVICTION    "eviction"    /* or from another */
#define ORDER_DELETION    "deletion"    /* of a Pod */
#define ORDER_AWAY        "controller-away" /* nobody renewed its lease: it ended itself */
#define ORDER_RESTORE     "log-restored" /* the controller's log is older than what machines know */
#define ORDER_MAINTENANCE "maintenance" /* its machine is to be free for that */

/* The fault as it is now. `began_ns`: by the clock of its machine. */
void end_fault_of(const struct fault *fault, int64_t began_ns, int64_t now_ns, struct end_fault *ret);
/* What a user ordered now, on this machine; `user` empty: it is not known who. */
void end_fault_ordered(const char *code, struct str machine, struct str user, struct str evidence,
                       int64_t now_ns, struct end_fault *ret);
/* A further occurrence of a fault that is there takes its place, but began when the first did. */
void end_faults_add(struct end_faults *faults, const struct end_fault *found);
const struct end_fault *end_faults_find(const struct end_faults *faults, const struct end_fault *wanted);
/* Forgets the faults that occurred last before the stamp; orders stay. */
void end_faults_forget(struct end_faults *faults, int64_t before_ns);
void end_faults_done(struct end_faults *faults);
/* Somebody did it on purpose. */
bool end_fault_is_ordered(const struct end_fault *found);

struct attribution {
    /* The cause: one of the two at most. Both NULL: nothing is known that explains it. */
    const struct end_fault *primary;
    const struct end_clue *clue;
    const struct end_fault *supporting[ATTRIBUTE_SUPPORT_MAX]; /* the next worst, in order */
    size_t supporting_count, more;                             /* more: beyond those */
    const struct end_fault *later[ATTRIBUTE_LATER_MAX];        /* began after the end: never the cause */
    size_t later_count;
    const struct end_clue *clues[END_CLUES_MAX]; /* all others, heaviest first */
    size_t clue_count;
    enum fault_domain domain;                              /* of the cause */
};

/* Why did an attempt end at `end_ns` (stamp)? `faults` and `clues` are what was kept of it (NULL: none) and
 * outlive *ret; `machine` is that of the task which ended first, empty: it is not known. */
void attribute(const struct end_faults *faults, const struct end_clues *clues, struct str machine,
               int64_t end_ns, struct attribution *ret);
/* "xid/79", "task/traceback", "unattributed"; into `out`. */
void attribution_cause(const struct attribution *found, struct buf *out);

#endif
