/* attribute.h - finds what ended an attempt, from the faults that struck the JobSet in the ten minutes before
 * the end, and from the signatures that its tasks left (signature.h). The result is one primary cause, with
 * the other candidates as support; or none: "unattributed" is an answer. The window is Meta's (arXiv
 * 2410.21680), except that a cause must precede its effect.
 *
 * Faults. A fault struck a JobSet if it occurred on a machine or chip that the JobSet had, or had until at
 * most five minutes before. Each occurrence is copied on arrival (struct end_fault), so later changes of the
 * fault do not rewrite why an attempt ended. An occurrence that began before the end, by the clock of its
 * machine, may arrive up to ATTRIBUTE_AFTER_NS after it. An occurrence that began after the end is never the
 * cause; it is only listed in `later`. Among the faults before the end, those of the machine where the end
 * began rank first, then the largest level, then hardware before network before software before the user,
 * then the earliest. A code that struck several chips of the job at once counts as software, whatever the
 * fault table says.
 *
 * Signatures. A root of a task that ended by itself ranks before that of a stopped task, then the heavier
 * root, then the earlier. Symptoms and teardowns are support and never the cause. A hardware root that
 * several machines left within SOFTWARE_WINDOW_NS counts as software.
 *
 * Deliberate acts. A fault that `phalanx inject` announces (codes injected/...) and a user's order (a drain,
 * the deletion of a Pod) explain every end within ATTRIBUTE_ORDERED_NS after them, whatever else was seen.
 * Their domain is the user's, however many chips they strike.
 *
 * Both. The fault is the cause if there is no root, if it is on the root's machine and above SUB_HEALTH, or,
 * on any machine, if it takes that machine out of service (LEVEL_RESET and above). Otherwise the root is the
 * cause.
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
    bool stopped;   /* every task that left it had been told to end before */
    bool many;      /* tasks on several machines left it at once */
    uint32_t rank;  /* rank of the first task that left it */
    uint32_t tasks; /* number of tasks that left it */
    int64_t at_ns;  /* stamp of the first arrival */
    char machine[END_MACHINE_MAX + 1]; /* machine of the first task; empty: not known */
    char line[SIGNATURE_LINE_MAX + 1];
};
/* Zeroed: none. At most END_SIGNATURES_MAX: a stronger signature replaces the weakest. */
struct end_signatures {
    struct end_signature *items; /* owned, in order of arrival */
    size_t count;
};
/* Adds a signature of one task (`tasks` is 1). Signatures of one kind are joined; exceptions also must have
 * one type. */
void end_signatures_add(struct end_signatures *signatures, const struct end_signature *signature);
/* Drops signatures from before the stamp. */
void end_signatures_forget(struct end_signatures *signatures, int64_t before_ns);
void end_signatures_done(struct end_signatures *signatures);
/* Returns the root that explains the most, or NULL if there is no root. */
const struct end_signature *end_signatures_root(const struct end_signatures *signatures);

/* A fault as it was when it struck the JobSet, or an order. */
struct end_fault {
    obj_id fault; /* uid of the fault; 0: an order */
    enum fault_level level;
    enum fault_domain domain;
    bool software;                  /* on several chips of the JobSet within SOFTWARE_WINDOW_NS */
    int64_t at_ns;                  /* stamp of its beginning */
    int64_t last_ns;                /* stamp of its last occurrence */
    char code[SIGNAL_CODE_MAX + 1]; /* "xid/79"; of an order, ORDER_DRAIN and so on */
    char machine[END_MACHINE_MAX + 1];
    char user[END_USER_MAX + 1]; /* the user who caused or ordered it; empty: none */
    char name[NAME_MAX_BYTES + 1]; /* of the fault */
    char evidence[SIGNAL_EVIDENCE_MAX + 1];
};
/* Zeroed: none. At most END_FAULTS_MAX: a stronger fault replaces the weakest. */
struct end_faults {
    struct end_fault *items; /* owned, in order of arrival */
    size_t count;
};
#define ORDER_DRAIN       "drain"           /* eviction from a machine that is cordoned */
#define ORDER_EVICTION    "eviction"        /* eviction from another machine */
#define ORDER_DELETION    "deletion"        /* deletion of a Pod */
#define ORDER_AWAY        "controller-away" /* the lease expired, so the agent ended the task */
#define ORDER_RESTORE     "log-restored"    /* the controller's log is older than what the machines know */
#define ORDER_MAINTENANCE "maintenance" /* its machine is freed for maintenance */

/* Copies the fault as it is now. `began_ns` is its beginning by the clock of its machine. */
void end_fault_of(const struct fault *fault, int64_t began_ns, int64_t now_ns, struct end_fault *ret);
/* Makes the record of an order (ORDER_DRAIN ...) that was given now for this machine; `user` empty: not
 * known. */
void end_fault_ordered(const char *code, struct str machine, struct str user, struct str evidence,
                       int64_t now_ns, struct end_fault *ret);
/* Adds a fault. A further occurrence of a known fault replaces it, but keeps the earlier beginning. */
void end_faults_add(struct end_faults *faults, const struct end_fault *found);
/* Finds the same fault, or the same order for the same machine. Returns NULL if there is none. */
const struct end_fault *end_faults_find(const struct end_faults *faults, const struct end_fault *wanted);
/* Drops faults whose last occurrence is before the stamp; orders stay. */
void end_faults_forget(struct end_faults *faults, int64_t before_ns);
void end_faults_done(struct end_faults *faults);
/* Whether it is an order, or a fault that was caused on purpose. */
bool end_fault_is_ordered(const struct end_fault *found);

struct attribution {
    /* The cause: at most one of the two is set. Both NULL: no known fault or signature explains the end. */
    const struct end_fault *primary;
    const struct end_signature *signature;
    const struct end_fault *supporting[ATTRIBUTE_SUPPORT_MAX]; /* other faults before the end, worst first */
    size_t supporting_count, more;                             /* more: number of further ones */
    const struct end_fault *later[ATTRIBUTE_LATER_MAX];        /* began after the end: never the cause */
    size_t later_count;
    const struct end_signature *signatures[END_SIGNATURES_MAX]; /* all others, heaviest first */
    size_t signature_count;
    enum fault_domain domain;                              /* of the cause */
};

/* Finds why an attempt ended at the stamp `end_ns`. `faults` and `signatures` were collected for the attempt
 * (NULL: none); *ret points into them. `machine` is that of the task that ended first; empty: not known. */
void attribute(const struct end_faults *faults, const struct end_signatures *signatures, struct str machine,
               int64_t end_ns, struct attribution *ret);
/* Appends the cause's name: "xid/79", "task/traceback", "unattributed". */
void attribution_cause(const struct attribution *found, struct buf *out);

#endif
