/* internal.h - the core's whole state, shared by the files that make up core_step: core.c (routing), write.c
 * (API writes), node.c (machines), snapshot.c. Nobody else includes it. */
#ifndef PHX_CORE_INTERNAL_H
#define PHX_CORE_INTERNAL_H

#include "core/core.h"
#include "core/errand/errand.h"
#include "core/hang/hang.h"
#include "core/health/fault.h"
#include "core/job/life.h"
#include "core/health/lease_hold.h"
#include "core/repair/repair.h"
#include "core/lemon/lemon.h"

struct core {
    uint64_t seq, epoch;
    struct outage outage;
    struct lease_hold hold;
    uint64_t identity; /* of the cluster, from its first boot; 0: none yet */
    int64_t now_ns;
    struct cluster cluster;
    struct cluster retired;  /* the one before, until the next step, so that effects can name its machines */
    struct buf cluster_json; /* the document it was loaded from */
    struct job_store jobs;
    struct object_store *objects;
    struct admit *admit;
    struct health *health;
    struct lemon_store *lemons;
    struct errands *errands;
    struct hangs *hangs;
    struct repairs *repairs;
    uint64_t fault_table_version; /* of the FaultTables that `health` judges by */
    VEC(machine_id) leaving; /* quarantined machines whose tasks were told and not stopped yet; ascending */
    struct ledger ledger;
    struct note_ring notes;
    struct arena reply; /* what the last step's effects point into */
    /* Only while a snapshot is read: a task's place in its gang, and the job whose index it is the newest
     * task of. */
    struct u64_map restore_places, restore_newest;
};

/* write.c: the step's EVENT_WRITE; always leaves one REPLY. `dry`: only a refusal is replied, nothing
 * changes. Returns whether it was (would be) accepted. */
bool core_write(struct core *core, struct step *step, const struct write_event *write, bool dry);

/* core.c: after everything else of a snapshot was read. */
void core_admit_restored(struct core *core);

/* collect.c: deletion and what follows from it, over all kinds. */
struct collected {
    size_t jobsets, jobs, tasks; /* of the dead ones in job_store, those that were looked at */
    size_t objects;              /* of the removed ones, likewise */
};
/* After jobs have settled; true: jobs must settle again. */
bool core_collect(struct step *step, struct collected *seen);
void core_check_objects(const struct core *core); /* audit_objects.c */
void core_collect_restored(struct object_store *store, const struct job_store *jobs);
/* Likewise, but what it made stays and is nobody's; nothing of it waits (jobset_hide). */
void core_orphan_jobset(struct step *step, struct jobset *jobset);
void core_delete_jobset(struct step *step, struct jobset *jobset, enum propagation propagation);
void namespaces_boot(struct step *step); /* those that every cluster has, and those in use */
void namespace_need(struct step *step, struct str name); /* makes it if there is none */
bool namespace_is_permanent(struct str name);

/* quarantine.c */
void core_signals(struct core *core, struct step *step, const struct machine *machine,
                  const struct reports *reports);
/* One signal; everything but `job` of the sighting is set. As health_signal. */
struct fault *core_sighted(struct core *core, struct step *step, struct sighting *sighting);
/* Carries out what health/ has ordered; true: jobs must settle again. */
bool core_isolate(struct core *core, struct step *step);
void core_read_fault_table(struct core *core); /* it, or all, may have changed */
void core_leaving_restored(struct core *core); /* from the machines */
int64_t core_leaving_deadline(const struct core *core); /* stamp; INT64_MAX: none */

/* lemons.c */
/* Gangs that have living tasks on the machine fail because of it. */
/* What happens to it now is on purpose, or the doing of the control plane: no lemon is made of that. */
bool core_excuses(const struct step *step, const struct machine *machine);
void core_failed_on(struct core *core, struct step *step, const struct machine *machine);
/* A new JobSet: the machines that its user excludes by name. */
void core_excluded_by(struct core *core, struct step *step, const struct jobset_spec *spec);
/* Tells of machines that have become lemons, or are none any more, and opens and ends their faults; true:
 * core_isolate has something to do. */
bool core_judge_lemons(struct core *core, struct step *step);

/* injections.c: what an agent said of a fault on purpose that it was asked for. */
void core_injection_ended(struct core *core, struct step *step, const struct errand *errand,
                          const struct errand_end *end);

/* errands.c: ends of errands to their owners; true: jobs must settle again. */
bool core_errands(struct core *core, struct step *step);

/* hangs.c: what verdicts on jobs that hang ask for; true: jobs must settle again. */
bool core_hangs(struct core *core, struct step *step);
void core_hangs_forget(struct core *core, struct step *step); /* JobSets that this step has removed */

/* slow.c: one window of an attempt: ranks that are slow become faults of their machines, and their JobSet
 * leaves these as its policy says. */
void core_pace(struct core *core, struct step *step, const struct pace_event *window);
/* A machine has become suspect: the JobSets on it leave it as their policies say. */
void core_sub_health(struct core *core, struct step *step, const struct machine *machine,
                     const struct fault *fault);

/* node.c */
void node_boot(struct core *core, struct step *step,
               bool paused); /* no agent is connected to a new controller */
void node_cluster(struct core *core, struct step *step, struct str document);
void node_hello(struct core *core, struct step *step, const struct hello *hello);
void node_away(struct core *core, struct step *step, struct str name, struct str evidence);
void node_lost(struct core *core, struct step *step, struct str name, struct str evidence);
/* Peers have reported ranks of the machine gone: lost, if that is all there is. */
void node_judge(struct core *core, struct step *step, struct machine *machine);
/* A user's write to a Node: cordon, taints, labels. False: refused with a reply. */
void node_replace(struct core *core, struct step *step, struct machine *machine, const struct doc *document);

#endif
