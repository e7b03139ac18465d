/* table.h - the fault table: the meaning of each code, and how often or how long it may occur before its
 * level rises.
 *
 * The defaults are in table_default.c: NVIDIA's XIDs by the answers of its catalogue, and the codes of
 * signal.h by the severities that Meta's health checks use (arXiv 2410.21680). A FaultTable object named
 * "default" (group phalanx.dev) overrides them: it replaces the rules of the codes that it names, and leaves
 * all others. Its relations replace the default ones as a whole. Levels and rules are MindCluster's
 * (faultCode.json, faultCustomization.json, relationFaultCustomization.json) under Phalanx's names.
 *
 * Read-only once made; one owner.
 */
#ifndef PHX_CORE_HEALTH_TABLE_H
#define PHX_CORE_HEALTH_TABLE_H

#include "doc/doc.h"
#include "core/words/signal.h"

/* Levels, from harmless to worst. Where two apply, the larger wins. */
enum fault_level {
    LEVEL_NOT_HANDLE,        /* recorded, nothing else */
    LEVEL_SUB_HEALTH,        /* slow: the job's own policy decides */
    LEVEL_RESTART_REQUEST,   /* the step must be repeated: the job restarts in place */
    LEVEL_RESTART_BUSINESS,  /* the job restarts; the machine is healthy */
    LEVEL_PRE_SEPARATE,      /* no new work; running work continues until it fails by itself */
    LEVEL_FREE_RESET,        /* no new work; the machine is reset when idle */
    LEVEL_RESET,             /* the machine is reset now */
    LEVEL_SEPARATE,          /* the machine is unusable until it is repaired */
    LEVEL_MANUALLY_SEPARATE, /* by escalation: out of service until a person or the release time ends it */
    LEVELS
};
enum fault_domain { DOMAIN_UNKNOWN, DOMAIN_USER, DOMAIN_SOFTWARE, DOMAIN_NETWORK, DOMAIN_HARDWARE, DOMAINS };
/* Names as users write them: "Separate", "hardware". */
extern const char *const fault_level_names[LEVELS];
extern const char *const fault_domain_names[DOMAINS];

enum { FAULT_TIMES_MAX = 100, FAULT_PUBLIC_MAX = 1000000 /* the largest value of a limit of fault_public */ };
#define FAULT_TABLE_NAME "default" /* the name of the FaultTable that is used */

/* The rule of one code. Zero means "not given". */
struct fault_rule {
    struct str code; /* "xid/79"; "xid/" and a star: the rest of the family; a star and "-end": its names that
                      * end so */
    enum fault_level level;
    enum fault_domain domain;
    bool high;         /* act now, instead of when the job has ended */
    struct str action; /* for hooks and people: "reboot", "reset-gpu", "inspect"; empty: none */
    /* Frequency: the `times`th occurrence within the window raises the fault to `frequent`; 0: no such
     * rule. The fault is closed when none has occurred for release_ns; 0: only a person closes it. */
    uint32_t times;
    int64_t window_ns, release_ns;
    enum fault_level frequent;
    /* Duration: a fault that lasts for settle_ns is raised to `lasting`. A recovery counts only after it has
     * lasted for recover_ns. */
    int64_t settle_ns, recover_ns;
    enum fault_level lasting;
};
/* Raises the fault `then` to `level` if it follows `first` on the same machine within the time. */
struct fault_relation {
    struct str first, then;
    int64_t within_ns;
    enum fault_level level;
};
/* The largest share of machines that faults may take out of service, in percent of all, but at least one
 * machine: within the breaker's window (an hour by default), and at one time. In the hour's share, a machine
 * counts each time that it is taken out, and 100 means no limit. */
struct fault_breaker {
    uint32_t hour_percent, total_percent;
};

/* Another system that may report over the API (sender.h). */
struct fault_sender {
    struct str name;
    struct str *users, *codes; /* the users and codes of its reports; none: any */
    size_t user_count, code_count;
};
struct fault_public {
    bool listed; /* only the listed senders may report; false: every user who may write Faults */
    struct fault_sender *senders;
    size_t sender_count;
    uint32_t per_second, burst; /* limits on the reports of one sender */
    uint32_t per_sender, total; /* limits on open faults: of one sender, of all senders */
};

struct fault_table;

/* Makes a table from a FaultTable document that satisfies the schema and rules of spec/; NULL: only the
 * defaults. The document is copied. The caller frees the table. */
struct fault_table *fault_table_new(const struct doc *document);
void fault_table_free(struct fault_table *table);

/* Returns the rule of a code: its own, else its family's, else that of its severity, whose `code` is empty.
 * Without other entries in the table, notice and minor are LEVEL_NOT_HANDLE, major is LEVEL_PRE_SEPARATE, and
 * critical is LEVEL_SEPARATE. Never NULL; valid as long as the table. */
const struct fault_rule *fault_table_rule(const struct fault_table *table, struct str code,
                                          enum signal_severity severity);
/* Returns the relations, in the order of the table. */
const struct fault_relation *fault_table_relations(const struct fault_table *table, size_t *ret_count);
struct fault_breaker fault_table_breaker(const struct fault_table *table);
const struct fault_public *fault_table_public(const struct fault_table *table);

#endif
