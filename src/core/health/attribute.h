/* attribute.h - what ended an attempt: the faults that struck the JobSet in the ten minutes before its
 * end, and the signatures that its tasks left (signature.h). The result is one primary cause with the others
 * as support, or none: "unattributed" is an answer. The window is Meta's (arXiv 2410.21680), but for one
 * thing: a cause comes before its effect.
 *
 * Faults. A fault struck a JobSet when it occurred on a machine or chip that the JobSet had, or had until
 * at most five minutes before. Each occurrence is copied on arrival (struct end_fault), so that later
 * changes of the fault do not rewrite why an attempt ended. Occurrences that began before the end, by the
 * clock of their machine, may arrive up to ATTRIBUTE_AFTER_NS later; occurrences that began after the end
 * are listed as `later` at most. Among the faults before the end, those of the machine where the end began
 * go first, then the largest level; of equal levels, hardware goes before software before the user, then
 * the earliest. A code that struck several chips of the job at once counts as software, whatever its table
 * says.
 *
 * Signatures. A root goes before a stopped task's root, then the heavier, then the earlier. Symptoms and
 * teardowns support and are never the cause. The same root on several machines within SOFTWARE_WINDOW_NS
 * is software rather than hardware.
 *
 * Deliberate acts. A fault that `phalanx inject` announces (codes injected/...) and an order of a user (a
 * drain, the deletion of a Pod) explain every end within ATTRIBUTE_ORDERED_NS after them, whatever else
 * was seen: a known cause need not be searched for. The domain is the user's, however many there
 * are.
 *
 * Both. The fault is the cause when there is no root, when it is on the root's machine and more than
 * SUB_HEALTH, or when it takes its machine out of service wherever that is; else the root is.
 */
#ifndef PHX_CORE_HEALTH_ATTRIBUTE_H
#define PHX_CORE_HEALTH_ATTRIBUTE_H

#include "core/health/signature.h"
#include "core/health/fault.h"

#define ATTRIBUTE_BEFORE_NS (600 * NS_PER_SECOND)
#define ATTRIBUTE_AFTER_NS  (300 * NS_PER_SECOND)
#define ATTRIBUTE_ORDERED_NS ON_PURPOSE_NS

enum {
    ATTRIBUTE_SUPPORT_MAX = 7,
    ATTRIBUTE_LATER_MAX = 4,
    END_SIGNATURES_MAX = 8,
    END_FAULTS_MAX = 16,
    END_MACHINE_MAX = 63,
    END_USER_MAX = 63,
};

/* A signature of an attempt's end, joined over all tasks that left it. */
struct end_signature {
    enum signature_kind kind;
    bool stopped;   /* only tasks that had been told to end before left it */
    bool many;      /* on several machines at once */
    uint32_t rank;  /* of the first task that left it */
    uint32_t tasks; /* how many did */
    int64_t at_ns;  /* stamp of the first arrival */
    char machine[END_MACHINE_MAX + 1]; /* of the first; empty: not known */
    char line[SIGNATURE_LINE_MAX + 1];
};
/* Zeroed: none. Bounded by END_SIGNATURES_MAX: the weakest signature makes room. */
struct end_signatures {
    struct end_signature *items; /* owned, in order of arrival */
    size_t count;
};
/* Adds a signature of one task (`tasks` is 1). Equal signatures become one: they have the same kind, and
 * exceptions the same type. */
void end_signatures_add(struct end_signatures *signatures, const struct end_signature *signature);
/* Forgets signatures from before the stamp. */
void end_signatures_forget(struct end_signatures *signatures, int64_t before_ns);
void end_signatures_done(struct end_signatures *signatures);
/* Returns the root that is the cause among the signatures; NULL: there is no root. */
const struct end_signature *end_signatures_root(const struct end_signatures *signatures);

/* A fault as it was when it struck the JobSet, or an order of a user. */
struct end_fault {
    obj_id fault; /* uid of the fault; 0: an order */
    enum fault_level level;
    enum fault_domain domain;
    bool software;                  /* on several chips of the JobSet within SOFTWARE_WINDOW_NS */
    int64_t at_ns;                  /* stamp at which it began ... */
    int64_t last_ns;                /* ... and at which it occurred last */
    char code[SIGNAL_CODE_MAX + 1]; /* "xid/79"; of an order ORDER_DRAIN, ... */
    char machine[END_MACHINE_MAX + 1];
    char user[END_USER_MAX + 1]; /* the user who caused or ordered it; empty: none */
    char name[NAME_MAX_BYTES + 1]; /* of the fault */
    char evidence[SIGNAL_EVIDENCE_MAX + 1];
};
/* Zeroed: none. Bounded by END_FAULTS_MAX: the weakest fault makes room. */
struct end_faults {
    struct end_fault *items; /* owned, in order of arrival */
    size_t count;
};
#define ORDER_DRAIN       "drain"       /* evicted from a machine that is cordoned */
#define ORDER_EVICTION    "eviction"    /* or from another */
#define ORDER_DELETION    "deletion"    /* of a Pod */
#define ORDER_AWAY        "controller-away" /* its lease expired, so the agent ended it */
#define ORDER_RESTORE     "log-restored" /* the controller's log is older than the machines' knowledge */
#define ORDER_MAINTENANCE "maintenance" /* its machine is freed for maintenance */

/* Copies the fault as it is now. `began_ns`: by the clock of its machine. */
void end_fault_of(const struct fault *fault, int64_t began_ns, int64_t now_ns, struct end_fault *ret);
/* Makes the record of an order that a user gave now for this machine; `user` empty: not known. */
void end_fault_ordered(const char *code, struct str machine, struct str user, struct str evidence,
                       int64_t now_ns, struct end_fault *ret);
/* Adds a fault. A further occurrence of a known fault replaces it, but keeps the earlier beginning. */
void end_faults_add(struct end_faults *faults, const struct end_fault *found);
const struct end_fault *end_faults_find(const struct end_faults *faults, const struct end_fault *wanted);
/* Forgets faults whose last occurrence is before the stamp; orders stay. */
void end_faults_forget(struct end_faults *faults, int64_t before_ns);
void end_faults_done(struct end_faults *faults);
/* Whether the end was caused on purpose. */
bool end_fault_is_ordered(const struct end_fault *found);

struct attribution {
    /* The cause: at most one of the two. Both NULL: no known fault or signature explains the end. */
    const struct end_fault *primary;
    const struct end_signature *signature;
    const struct end_fault *supporting[ATTRIBUTE_SUPPORT_MAX]; /* the next worst, in order */
    size_t supporting_count, more;                             /* more: beyond those */
    const struct end_fault *later[ATTRIBUTE_LATER_MAX];        /* began after the end: never the cause */
    size_t later_count;
    const struct end_signature *signatures[END_SIGNATURES_MAX]; /* all others, heaviest first */
    size_t signature_count;
    enum fault_domain domain;                              /* of the cause */
};

/* Finds why an attempt ended at `end_ns` (stamp). `faults` and `signatures` were collected for the attempt
 * (NULL: none) and outlive *ret; `machine` is that of the task which ended first, empty: not known. */
void attribute(const struct end_faults *faults, const struct end_signatures *signatures, struct str machine,
               int64_t end_ns, struct attribution *ret);
/* Appends the cause's name: "xid/79", "task/traceback", "unattributed". */
void attribution_cause(const struct attribution *found, struct buf *out);

#endif
