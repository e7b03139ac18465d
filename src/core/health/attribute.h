/* attribute.h - what ended an attempt: Meta's rule (arXiv 2410.21680), "detected within ten minutes before or
 * five minutes after the end of the job", over the faults of its machines and the clues that its tasks left
 * (clue.h); one primary cause with the others as support, or none: "unattributed" is an answer.
 *
 * Faults. One struck a JobSet when it occurred on a machine or chip that the JobSet had, or had until at most
 * five minutes before. Of those in the window the first has the largest level; of equal ones hardware goes
 * before software before the user, then the earliest. Those of the machine where it began go before all
 * others. A code that struck several chips of the job at once counts as software, whatever its table says.
 *
 * Clues. A root goes before a stopped task's root, then the heavier, then the earlier. Symptoms and teardowns
 * support and are never the cause. The same root on several machines within SOFTWARE_WINDOW_NS is software
 * rather than hardware.
 *
 * On purpose. What `phalanx inject` tells of before it does it (codes injected/...) explains every end within
 * ATTRIBUTE_INJECTED_NS behind it, whatever else was seen: nobody is to look for a cause that is known.
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
#define ATTRIBUTE_INJECTED_NS (60 * NS_PER_SECOND)

enum { ATTRIBUTE_SUPPORT_MAX = 7, END_CLUES_MAX = 8, END_MACHINE_MAX = 63 };

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

struct attribution {
    /* The cause: one of the two at most. Both NULL: nothing is known that explains it. */
    const struct fault *primary;
    const struct end_clue *clue;
    const struct fault *supporting[ATTRIBUTE_SUPPORT_MAX]; /* the next worst, in order */
    size_t supporting_count, more;                         /* more: beyond those */
    const struct end_clue *clues[END_CLUES_MAX]; /* all others, heaviest first */
    size_t clue_count;
    enum fault_domain domain;                              /* of the cause */
};

/* Why did an attempt of this JobSet end at `end_ns` (stamp)? `machine` is that of the task which ended first,
 * empty: it is not known; `clues` NULL: none. Looks at every fault: for one object at a time, not for
 * lists. */
void attribute(const struct health *health, obj_id job, struct str machine, int64_t end_ns,
               const struct end_clues *clues, struct attribution *ret);
/* "xid/79", "task/traceback", "unattributed"; into `out`. */
void attribution_cause(const struct attribution *found, struct buf *out);

#endif
