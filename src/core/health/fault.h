/* fault.h - faults: what signals mean, how they add up, and what has to be done about their machine.
 *
 *   signal.h  an observation  ->  table.h  its meaning  ->  a fault here  ->  an order to core.c
 *
 * A fault is one code at one place of one machine. It is open from its first occurrence until it recovers
 * or a person clears it; a momentary signal (SIGNAL_ONCE) below LEVEL_PRE_SEPARATE closes its fault at
 * once. A closed fault is kept as history and opens again when the code recurs.
 *
 * The level of a fault is the largest of the levels by its code, frequency, duration and relation. If one
 * code occurs on several chips of a job within SOFTWARE_WINDOW_NS, the job's software is to blame: the fault
 * is marked as software and not counted for frequency (MindCluster's ClusterD).
 *
 * The isolation of a machine (model.h) follows from its open faults and its repair:
 *   none, NOT_HANDLE                      HEALTHY
 *   SUB_HEALTH                            SUSPECT       shown, nothing else
 *   PRE_SEPARATE, FREE_RESET              DRAINING      takes no new work; running work continues
 *   RESET ... MANUALLY_SEPARATE, low      DRAINING      until it is idle, then QUARANTINED
 *   RESET ... MANUALLY_SEPARATE, high     QUARANTINED   its tasks are notified and stopped
 * A high RESTART_REQUEST or RESTART_BUSINESS restarts the machine's jobs once for each occurrence and leaves
 * the machine as it is. If one more isolated machine would exceed the limit of the breaker (table.h), the
 * breaker holds it at SUSPECT, reports that once, and tries again when the limit allows. The isolation that a
 * machine's repair or maintenance requires (machine.kept) is joined with that of its faults, without the
 * breaker.
 *
 * Bounded: FAULTS_MAX in all, FAULTS_PER_MACHINE_MAX of one machine. A new fault replaces the oldest closed
 * one; if all are open, the signal is counted and dropped. A storm of equal signals is one fault with a large
 * count, of which watchers are notified at most once in FAULT_SHOW_NS.
 *
 * The core's thread owns the faults (core.h). This module knows no jobs: core.c carries out its orders.
 */
#ifndef PHX_CORE_HEALTH_FAULT_H
#define PHX_CORE_HEALTH_FAULT_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "core/health/table.h"
#include "core/words/ids.h"
#include "core/model/model.h"
#include "core/words/place.h"

struct step;
struct sender;

/* The machine ended attempts of different jobs (recover/suspect.c). It is shown, and placement avoids it if
 * possible. */
#define SUSPECT_FAULT "phalanx/suspect-machine"

/* A process on the machine does not join its gang, though its peers have (recover/unjoined.c). */
#define UNJOINED_FAULT "phalanx/unjoined"
/* The state directory of the machine's agent was deleted (host/agent/state.c). */
#define STATE_FAULT "agent/state"
/* The machine's agent found other chips than the cluster file says (node.c). */
#define CHIPS_FAULT "inventory/chips"

enum { FAULTS_MAX = 50000, FAULTS_PER_MACHINE_MAX = 256, FAULT_JOBS_MAX = 8 };
#define SOFTWARE_WINDOW_NS (30 * NS_PER_SECOND)
#define FAULT_SHOW_NS      (1 * NS_PER_SECOND)
#define ON_PURPOSE_NS      (60 * NS_PER_SECOND)
#define AGENT_STOP_CODE    "agent/stop" /* the machine's agent ended because of SIGTERM */

/* The reaction to a fault. */
enum fault_action {
    FAULT_NOTED,
    FAULT_RESTARTED, /* the machine's jobs were restarted */
    FAULT_HELD,      /* the machine takes no new work */
    FAULT_EVICTED,   /* the machine takes no new work, and its tasks were stopped */
    FAULT_HELD_BACK, /* the fault asked for isolation, but the breaker held it back */
    FAULT_ACTIONS
};
extern const char *const fault_action_names[FAULT_ACTIONS];

/* Why the fault's level is higher than its code's own. */
enum fault_reason { RAISED_NOT, RAISED_FREQUENCY, RAISED_DURATION, RAISED_RELATION, FAULT_REASONS };
extern const char *const fault_reason_names[FAULT_REASONS];

struct fault {
    obj_id uid;
    struct str name;    /* unique: "<machine>.<family>-<code>.<suffix>", or the writer's choice */
    /* Name of the machine, which may have left the cluster file since. For a switch, cube or link of a pod,
     * "switch/NAME" and so on, which no machine can be named (fault_place). */
    struct str machine;
    struct str code, place;
    struct buf evidence; /* of the newest occurrence */
    int32_t chip;        /* -1: none or unknown */
    enum signal_severity severity;
    enum fault_domain domain;
    bool high, open, software;   /* software: on several chips of one job */
    enum fault_level level, own; /* own: the level of its code */
    enum fault_reason reason;
    enum fault_action action;
    struct str remedy;            /* the rule's `action`; empty: none */
    uint64_t count;               /* number of occurrences */
    int64_t first_ns, last_ns;    /* stamps of the first and the last occurrence */
    int64_t opened_ns, closed_ns; /* stamps of the newest opening and of its end; closed_ns 0: open */
    /* stamp of a recovery that must still last for the rule's recover_ns; 0: none */
    int64_t recovered_ns;
    VEC(int64_t) recent;          /* the newest FAULT_TIMES_MAX counted occurrences, oldest first */
    obj_id job;                   /* JobSet that had the chip or machine at the newest occurrence; 0: none */
    struct str jobs[FAULT_JOBS_MAX]; /* "namespace/name" of the JobSets that it struck; owned */
    uint32_t job_count, jobs_more;   /* jobs_more: number of further ones */
    int64_t created_ns;
    uint64_t changed_seq;
    struct str user;   /* the user who wrote it; empty: an agent reported it */
    struct str sender; /* the system that reported it (sender.h); empty: none */

    /* Private. */
    struct heap_node due;    /* its next timer; not in the heap: none is set */
    struct heap_node closed; /* closed faults by their end: the first is replaced first */
    int64_t shown_ns;        /* when watchers were last notified */
    bool unshown;            /* it has changed since shown_ns */
    struct list_node on_machine;
    struct machine_faults *at_machine;
    struct sender *from; /* NULL: none */
    struct arena text;   /* owns the strings */
    struct str key;      /* machine, code and place: the index's key */
};

struct health; /* one for each core; `health` of struct step */

struct health *health_new(void);
void health_free(struct health *health);
void health_bury(struct health *health); /* called first in a step: frees faults that the last one removed */

/* --- for readers ---------------------------------------------------------------------------------------- */

/* Whether the subject of a fault is a switch, cube or link of a pod ("switch/NAME"), not a machine. */
bool subject_is_place(struct str subject);
/* Returns the kind of place that has the fault, and its name, which points into the fault. */
enum place_kind fault_place(const struct fault *fault, struct str *ret_name);
const struct fault *fault_find(const struct health *health, struct str name); /* NULL: none */
/* Visits all faults in order of their names. */
void fault_visit(const struct health *health, void (*visit)(void *context, const struct fault *fault),
                 void *context);
/* Appends "xid/79 at gpu/0000:9b:00.0 (Separate)", for people. */
void fault_describe(const struct fault *fault, struct buf *out);
/* Whether the code means a deliberate act: a fault that `phalanx inject` announces, or an orderly stop of an
 * agent. */
bool fault_is_on_purpose(struct str code);
/* Whether a deliberate fault of the machine is open, or occurred at most ON_PURPOSE_NS ago. Events on the
 * machine then prove nothing about its hardware. */
bool health_on_purpose(const struct health *health, struct str machine, int64_t now_ns);
size_t fault_count(const struct health *health);
/* Returns the number of signals that were dropped because too many faults were open. */
uint64_t fault_dropped(const struct health *health);
/* Finds the open fault of that code whose place is the machine as a whole; NULL: none. */
const struct fault *fault_find_open(const struct health *health, struct str machine, struct str code);
/* Finds the machine's open fault with the largest level; of equals, the oldest. NULL: none is open. */
const struct fault *fault_of_machine(const struct health *health, struct str machine);
const struct fault_table *health_table(const struct health *health);
/* Whether the fault's level follows from its severity, because the table has no row for its code. */
bool fault_is_unknown(const struct health *health, const struct fault *fault);

/* --- for core.c ----------------------------------------------------------------------------------------- */

/* A signal, and what the core knows about it. All texts are copied. */
struct sighting {
    struct str machine; /* a machine of the cluster file, or "switch/NAME" and so on, as in struct fault */
    const struct signal *signal;
    obj_id job;        /* JobSet that it may concern; 0: none */
    struct str user;   /* the user who wrote it; empty: the machine's agent reported it */
    struct str name;   /* the name for a new fault; empty: one is made */
    struct str sender; /* the sender, accepted by sender_judge; empty: an agent */
};
/* Applies the signal and returns its fault. Returns NULL if there are too many open faults, if the name is
 * taken, or if the signal ends a fault that does not exist. */
struct fault *health_signal(struct step *step, const struct sighting *sighting);
/* Closes the fault for a person, or at the end of a repair. */
void health_clear(struct step *step, struct fault *fault);
/* Closes the fault and removes its history too. */
void health_remove(struct step *step, struct fault *fault);
/* Records that the fault struck this JobSet now; keeps each JobSet's name, "namespace/name", once. */
void fault_strike(struct step *step, struct fault *fault, struct str name);
/* Replaces the FaultTable (NULL: only the defaults). Later signals and timers are judged by it. */
void health_set_table(struct health *health, const struct doc *document);
void health_cluster(struct step *step);                             /* called after machines changed */
void health_kept(struct step *step, const struct machine *machine); /* called after machine.kept changed */
/* Sets `ret` to the machine's open faults that keep it from work (LEVEL_PRE_SEPARATE and above), by uid, and
 * returns their number. `ret` has room for FAULTS_PER_MACHINE_MAX of them. */
size_t health_blocking(const struct health *health, struct str machine, struct fault **ret);
uint64_t health_closings(const struct health *health); /* grows with each fault that closes; not saved */
void health_tick(struct step *step);
/* Returns the stamp of the next timer; INT64_MAX: none. */
int64_t health_deadline(const struct health *health, const struct policy *policy);

/* An order of this module for core.c. */
struct health_order {
    /* Not empty: a fault takes this switch, cube or link ("switch/NAME") out of service, and nothing below is
     * set. Empty: the order is about `machine`. */
    struct str place;
    struct machine *machine;
    bool restart;             /* restart the machine's jobs and leave it as it is; false: isolate it */
    enum isolation isolation; /* the machine's isolation from now on */
    struct fault *fault;      /* the cause; NULL: no fault asks for isolation any more */
    bool held_back;           /* the faults ask for more than `isolation`, but the breaker held it back */
};
/* Gets the next order to be carried out; false: none is left. Called until false at the end of a step, when
 * tasks have settled. */
bool health_next_order(struct step *step, struct health_order *ret_order);

/* --- for snapshots -------------------------------------------------------------------------------------- */

/* Restores a fault from a snapshot: its public fields, shown_ns and unshown. Strings are copied. Returns
 * false if the fault does not fit: its name or key is taken, a value exceeds its limit, or there are too
 * many. */
bool health_restore(struct health *health, const struct fault *saved);
/* Returns the stamps at which faults took machines out of service in the breaker's window, ascending. */
const int64_t *health_isolations(const struct health *health, size_t *ret_count);
void health_restore_breaker(struct health *health, const int64_t *isolations, size_t count, uint64_t dropped);
/* Derives the remaining state once everything else is restored. Returns false if machines and faults
 * disagree. */
bool health_restored(struct health *health, const struct cluster *cluster);
/* Checks that every index agrees with the faults; aborts through CHECK. */
void health_check(const struct health *health, const struct cluster *cluster);

#endif
