/* react.h - the glue between modules: verdicts of one module become orders to others.
 *
 * Modules do not call each other upwards. If health finds a machine bad, hang a job that makes no steps, or
 * an agent reconnects, the lower module leaves a value. core.c passes it to a function of this folder, which
 * gives orders to the modules concerned. The functions below are called while an event is applied, or while
 * the step settles. Those that return bool then return whether jobs must settle again.
 *
 *   node.c            machines: hello, away, lost; users' writes to a Node
 *   quarantine.c      signals become faults; health's orders take machines out of service and back
 *   lemons.c          counts of failures; machines that fail too often
 *   injections.c      faults on purpose
 *   errands.c         ends of errands, to their owners
 *   fabric_faults.c   faults of the switches and links of pods
 *   slices.c          slices that are made, moved and lost, to their JobSets
 *   hangs.c           verdicts on jobs that hang
 *   slow.c            slow ranks, and machines that become suspect
 *   collect.c         deletion and its consequences
 *   disruption.c      budgets of evictions
 *
 * None of these functions fails: a step is total. One owner thread. */
#ifndef PHX_CORE_REACT_REACT_H
#define PHX_CORE_REACT_REACT_H

#include "core/internal.h"

/* collect.c: deletion and its consequences, over all kinds. */
struct collected {
    size_t jobsets, jobs, tasks; /* number of dead ones in job_store that were processed */
    size_t objects;              /* number of removed objects that were processed */
};
/* Processes deletions after jobs have settled. `seen` begins zeroed. Returns whether jobs must settle
 * again. */
bool core_collect(struct step *step, struct collected *seen);
/* Derives owners and waiting objects after a snapshot was read. */
void core_collect_restored(struct object_store *store, const struct job_store *jobs);
/* Deletes the JobSet as core_delete_jobset does, but leaves the objects that it made as orphans, and waits
 * for none of them (jobset_hide). */
void core_orphan_jobset(struct step *step, struct jobset *jobset);
void core_delete_jobset(struct step *step, struct jobset *jobset, enum propagation propagation);
void namespaces_boot(struct step *step);                 /* makes the namespaces that every cluster has */
void namespace_need(struct step *step, struct str name); /* makes the namespace if it does not exist */
bool namespace_is_permanent(struct str name);            /* users cannot delete it */

/* quarantine.c */
/* Handles the signals in an agent's report. */
void core_signals(struct core *core, struct step *step, const struct machine *machine,
                  const struct reports *reports);
/* Handles one signal: sets sighting->job, reports it to health and records it for the JobSets that it struck.
 * The caller sets the other members. Returns the fault, as health_signal does. */
struct fault *core_sighted(struct core *core, struct step *step, struct sighting *sighting);
/* Carries out the orders of health/. Returns whether jobs must settle again. */
bool core_isolate(struct core *core, struct step *step);
void core_read_fault_table(struct core *core);          /* called when the FaultTables may have changed */
void core_leaving_restored(struct core *core);          /* derives core->leaving from the machines */
int64_t core_leaving_deadline(const struct core *core); /* a stamp; INT64_MAX: none */

/* lemons.c */
/* Returns whether events on the machine are deliberate, or caused by the control plane, so that they do not
 * count towards a lemon. */
bool core_excuses(const struct step *step, const struct machine *machine);
/* Counts one failure of the machine for each gang that has living tasks on it. */
void core_failed_on(struct core *core, struct step *step, const struct machine *machine);
/* Counts an exclusion for each machine that a new JobSet's user excludes by name. */
void core_excluded_by(struct core *core, struct step *step, const struct jobset_spec *spec);
/* Announces machines that have become lemons, or ceased to be, and opens and closes their faults. Returns
 * whether core_isolate has work. */
bool core_judge_lemons(struct core *core, struct step *step);

/* injections.c: handles an agent's answer about a fault injection. */
void core_injection_ended(struct core *core, struct step *step, const struct errand *errand,
                          const struct errand_end *end);

/* errands.c: hands the ends of errands to their owners. Returns whether jobs must settle again. */
bool core_errands(struct core *core, struct step *step);

/* fabric_faults.c: opens and closes the faults of switches and links of pods that changed in this step.
 * Returns whether a fault changed. */
bool core_fabric_faults(struct step *step);

/* slices.c: stops the tasks of slices that move from a drained cube now. Called before the step settles, so
 * that no task is told to start in the step that stops it. */
void core_slices_leave(struct step *step);
/* Hands the state of slices to their JobSets. Returns whether jobs must settle again. */
bool core_slices_act(struct core *core, struct step *step);

/* hangs.c: carries out verdicts on hanging jobs. Returns whether jobs must settle again. */
bool core_hangs(struct core *core, struct step *step);
void core_hangs_forget(struct core *core, struct step *step); /* for JobSets that this step has removed */

/* slow.c: handles one window of an attempt. Slow ranks become faults of their machines, which their JobSet
 * then leaves if its policy says so. */
void core_pace(struct core *core, struct step *step, const struct pace_event *window);
/* Called when a machine has become suspect: the JobSets on it leave it if their policies say so. */
void core_sub_health(struct core *core, struct step *step, const struct machine *machine,
                     const struct fault *fault);

/* node.c */
void node_boot(struct core *core, struct step *step,
               bool paused); /* READY machines become AWAY: a new controller has no connected agents */
/* Loads a new cluster file. Refuses one that removes a machine with tasks, or changes its chips. */
void node_cluster(struct core *core, struct step *step, struct str document);
/* Apply a machine's hello, its broken connection, and its loss. Unknown machines are ignored. */
void node_hello(struct core *core, struct step *step, const struct hello *hello);
void node_away(struct core *core, struct step *step, struct str name, struct str evidence);
void node_lost(struct core *core, struct step *step, struct str name, struct str evidence);
/* Declares the machine lost if its agent is away and peers have reported all of its ranks gone. */
void node_judge(struct core *core, struct step *step, struct machine *machine);
/* Applies a user's write to a Node: cordon, taints, labels, annotations. The document is valid. */
void node_replace(struct core *core, struct step *step, struct machine *machine, const struct doc *document);

#endif
