/* policy.h - the constants of the controller's behaviour that a cluster's document may set.
 *
 * One table (policy.c) names each field of struct policy by its path in the document, with its type,
 * default, bounds and meaning. The rest follows from the row: the loader reads the field (load_policy.c),
 * `phalanx cluster policy` prints it, and with --markdown that command prints docs/policy.md. To add a
 * constant, add a member here and a row there.
 *
 * A policy is fixed while a controller runs. It is part of the cluster's document, and so of the log: a
 * replay decides as the controller did. Limits that protect the controller are in limits.h. */
#ifndef PHX_CORE_MODEL_POLICY_H
#define PHX_CORE_MODEL_POLICY_H

#include <stddef.h>

#include "base/str.h"
#include "core/words/limits.h"

/* The rules by which fair sharing chooses victims, tried in the order that the document gives. */
enum fair_strategy { FAIR_LESS_OR_EQUAL_FINAL, FAIR_LESS_INITIAL };
struct queue_settings {
    int64_t min_run_ns;     /* protection from preemption after an admission */
    int64_t max_life_ns;    /* of one admission; 0: no limit */
    int64_t victims_max;    /* victims of one gang while it waits; 0: no limit */
    bool wait_ready;        /* waitForPodsReady.enable */
    bool block_admission;   /* no workload is admitted while an admitted one is not ready */
    int creation_timestamp; /* requeuingStrategy.timestamp: 1 Creation, 0 Eviction */
    int64_t ready_timeout_ns;
    int64_t recovery_timeout_ns; /* -1: none */
    int64_t backoff_limit;       /* requeuings before it is deactivated; -1: no limit */
    int64_t backoff_base_ns, backoff_max_ns;
    bool fair; /* fairSharing.enable */
    enum fair_strategy strategies[2];
    size_t strategy_count;
};

/* The signals by which a machine is classified as a lemon: one that fails repeatedly (core/lemon/lemon.h). */
enum lemon_signal {
    LEMON_SIGNAL_EXCLUSIONS,
    LEMON_SIGNAL_XIDS,
    LEMON_SIGNAL_TICKETS,
    LEMON_SIGNAL_OUTS,
    LEMON_SIGNAL_MULTI_NODE_FAILURES,
    LEMON_SIGNAL_SINGLE_NODE_FAILURES,
    LEMON_SIGNAL_FAILURE_RATE,
    LEMON_SIGNALS
};
enum { LEMON_WINDOW_DAYS_MAX = 28 };
struct lemon_settings {
    int64_t window_days;
    int64_t thresholds[LEMON_SIGNALS]; /* counts, the last one per cent; 0: the signal is not used */
    bool remove;                       /* lemons are drained: a fault is opened on them */
};

/* A job's policy for a machine that is slow or otherwise unhealthy (LEVEL_SUB_HEALTH): the annotation
 * phalanx.dev/sub-health, else the cluster's setting. */
enum sub_health {
    SUB_HEALTH_IGNORE,
    /* Ranks on the machine are given notice, save, and restart elsewhere, at the latest after their grace. */
    SUB_HEALTH_GRACE_EXIT,
    SUB_HEALTH_FORCE_EXIT, /* ranks on the machine restart elsewhere at once */
    SUB_HEALTH_HOT_SWITCH, /* as graceExit, but only to an available machine, and never without a save */
    SUB_HEALTHS
};
extern const char *const sub_health_names[SUB_HEALTHS]; /* as users write them: "graceExit" */
bool sub_health_read(struct str text, enum sub_health *ret); /* false: not one of the names */

/* When a job that makes no steps is suspected to hang (core/hang/hang.h). */
struct hang_settings {
    bool enabled;          /* false: only jobs with the annotation are watched */
    int64_t factor;        /* multiple of the longest time between two steps, but ... */
    int64_t minimum_ns;    /* ... at least this */
    int64_t first_step_ns; /* for start, restore and the first steps */
    int64_t checkpoint_ns; /* while a checkpoint is being saved */
    int64_t answer_ns;     /* wait for a rank's record */
    int64_t join_ns; /* how long a rank may run without joining after its peers joined (recover/unjoined.c) */
};

/* The breaker that limits how many machines faults may take out of work (core/health/isolate.c). */
struct fault_settings {
    int64_t breaker_window_ns; /* over which the breaker counts isolations */
};

/* Limits of the bytes of stored documents (core/object/keep.c). */
struct stored_bytes_settings {
    int64_t namespace_max, cluster_max;
};

/* How machines are repaired; the hooks are read by load_repair.c. */
struct repair_hook {
    struct str action; /* the name in fault rules, and of the agent's script */
    struct str on;     /* machine that runs it; empty: the machine under repair */
    int64_t timeout_ns;
    int64_t retries;    /* tries after the first one */
    int64_t backoff_ns; /* before the first retry; doubles */
    bool reboots;       /* the machine reboots; the hook succeeds when its agent registers again */
};
enum { REPAIR_HOOKS_MAX = 16 };
struct repair_settings {
    struct repair_hook *hooks; /* from the mildest to the hardest; in the cluster's arena */
    size_t hook_count;
    bool qualify;        /* tests the machine by spec.qualification before it returns to work */
    int64_t absent_ns;   /* a machine whose agent is away for longer cannot be repaired by a hook */
    int64_t watch_ns;    /* how long a repaired machine stays ISOLATION_RETURNED */
    int64_t recall_ns;   /* how long an earlier repair counts */
    int64_t reboots_max; /* reboots for one fault code within that time; after them, a ticket */
    int64_t history_max; /* number of ended Repairs that are kept */
};

struct policy {
    int64_t lease_ns, heartbeat_ns;
    int64_t backfill_window_ns; /* how long later gangs may overtake a waiting head */
    int64_t chip_teraflops;     /* peak of one chip, 10^12 operations a second; 0: unknown */
    int64_t pace_window_ns;     /* window of a comparison of ranks (core/pace/pace.h) */
    enum sub_health sub_health;
    bool act_on_failure; /* a JobSet acts on a Job's failure at once; false: when the Job's pods have ended */
    struct queue_settings queues;
    struct lemon_settings lemons;
    struct hang_settings hangs;
    struct fault_settings faults;
    struct stored_bytes_settings stored_bytes;
    struct repair_settings repair;
};

enum policy_type {
    POLICY_COUNT,    /* int64_t: a number */
    POLICY_DURATION, /* int64_t of nanoseconds, written as "250ms", "3s" or "2m30s" */
    POLICY_SECONDS,  /* int64_t of nanoseconds, written as a number of seconds */
    POLICY_BYTES,    /* int64_t, written as a quantity: "256Mi" */
    POLICY_SWITCH,   /* bool */
    POLICY_CHOICE    /* an int, the index of a name */
};

struct policy_field {
    const char *path; /* below spec: "settings.hangs.factor" */
    enum policy_type type;
    size_t offset; /* of the member in struct policy */
    int64_t fallback, min, max;
    const char *const *names;  /* POLICY_CHOICE: [max + 1] */
    const char *fallback_text; /* how the fallback is printed; NULL: as its value */
    const char *text;          /* the field's meaning for people, as part of a sentence */
};
/* All fields, those of one object together. */
extern const struct policy_field policy_fields[];
extern const size_t policy_field_count;

/* Returns the defaults of the table. The loader alone sets repair.hooks and queues.strategies, and derives
 * heartbeat_ns (0 here) from the lease. */
struct policy policy_default(void);
int64_t policy_get(const struct policy *policy, const struct policy_field *field);
/* CHECKs that the value is the field's fallback or within its bounds. */
void policy_set(struct policy *policy, const struct policy_field *field, int64_t value);
/* Appends a value of the field in the form of the document, such as 5, 3s, true or graceExit. The fallback is
 * printed as its text, if it has one. */
void policy_print_value(const struct policy_field *field, int64_t value, struct buf *out);
/* Appends the range of the field's values, for people: "100ms to 1h". */
void policy_print_range(const struct policy_field *field, struct buf *out);
/* Appends the text of docs/policy.md: a table of all fields. */
void policy_document(struct buf *out);

#endif
