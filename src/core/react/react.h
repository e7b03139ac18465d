/* react.h - what follows when one module has spoken and another must act.
 *
 * Modules do not call each other upwards: health says that a machine is bad, hang that a job stands still,
 * an agent that a machine is back. Each leaves a value; core.c gives it to a function of this folder, which
 * gives the orders to the modules concerned. The functions below are called while an event is applied, or
 * while the step settles; those that return bool then say whether jobs must settle again.
 *
 *   node.c            machines: hello, away, lost, what users write to a Node
 *   quarantine.c      signals become faults, and verdicts of health take machines out and let them in
 *   lemons.c          counts of failures; machines that fail too often
 *   injections.c      faults on purpose
 *   errands.c         ends of errands, to their owners
 *   fabric_faults.c   switches and links of pods become faults
 *   slices.c          slices that are made, moved and lost, to their JobSets
 *   hangs.c           verdicts on jobs that stand still
 *   slow.c            slow ranks, and machines that become suspect
 *   collect.c         deletion and its consequences
 *   disruption.c      budgets of evictions
 *
 * Errors: none; a step is total. One owner thread. */
#ifndef PHX_CORE_REACT_REACT_H
#define PHX_CORE_REACT_REACT_H

#include "core/internal.h"

/* collect.c: deletion and its consequences, over all kinds. */
struct collected {
    size_t jobsets, jobs, tasks; /* number of the dead ones in job_store that were processed */
    size_t objects;              /* number of the removed ones that were processed */
};
/* Called after jobs have settled; true: jobs must settle again. */
bool core_collect(struct step *step, struct collected *seen);
void core_collect_restored(struct object_store *store, const struct job_store *jobs);
/* As core_delete_jobset, but the objects that it made stay as orphans, and none of them waits
 * (jobset_hide). */
void core_orphan_jobset(struct step *step, struct jobset *jobset);
void core_delete_jobset(struct step *step, struct jobset *jobset, enum propagation propagation);
void namespaces_boot(struct step *step); /* makes the namespaces that every cluster has, and those in use */
void namespace_need(struct step *step, struct str name); /* makes it if there is none */
bool namespace_is_permanent(struct str name);

/* quarantine.c */
void core_signals(struct core *core, struct step *step, const struct machine *machine,
                  const struct reports *reports);
/* Handles one signal; all members of the sighting but `job` are set. As health_signal. */
struct fault *core_sighted(struct core *core, struct step *step, struct sighting *sighting);
/* Carries out the orders of health/; true: jobs must settle again. */
bool core_isolate(struct core *core, struct step *step);
void core_read_fault_table(struct core *core);          /* it, or all of them, may have changed */
void core_leaving_restored(struct core *core);          /* from the machines */
int64_t core_leaving_deadline(const struct core *core); /* stamp; INT64_MAX: none */

/* lemons.c */
/* Whether events on the machine are deliberate, or caused by the control plane, so that they do not count
 * towards a lemon. */
bool core_excuses(const struct step *step, const struct machine *machine);
/* Counts a failure of the gangs that have living tasks on the machine. */
void core_failed_on(struct core *core, struct step *step, const struct machine *machine);
/* Counts the machines that a new JobSet's user excludes by name. */
void core_excluded_by(struct core *core, struct step *step, const struct jobset_spec *spec);
/* Announces machines that have become lemons, or ceased to be, and opens and closes their faults; true:
 * core_isolate has work. */
bool core_judge_lemons(struct core *core, struct step *step);

/* injections.c: handles an agent's answer about a fault injection. */
void core_injection_ended(struct core *core, struct step *step, const struct errand *errand,
                          const struct errand_end *end);

/* errands.c: hands the ends of errands to their owners; true: jobs must settle again. */
bool core_errands(struct core *core, struct step *step);

/* fabric_faults.c: opens and closes the faults of switches and links of pods that changed in this step; true:
 * some did. */
bool core_fabric_faults(struct step *step);

/* slices.c: stops the tasks of slices that move from a drained cube now. Called before the step settles, so
 * that no task is told to start in the step that stops it. */
void core_slices_leave(struct step *step);
/* Hands the state of slices to their JobSets; true: jobs must settle again. */
bool core_slices_act(struct core *core, struct step *step);

/* hangs.c: carries out verdicts on hanging jobs; true: jobs must settle again. */
bool core_hangs(struct core *core, struct step *step);
void core_hangs_forget(struct core *core, struct step *step); /* for JobSets that this step has removed */

/* slow.c: handles one window of an attempt: slow ranks become faults of their machines, and their JobSet
 * leaves these as its policy says. */
void core_pace(struct core *core, struct step *step, const struct pace_event *window);
/* A machine has become suspect: the JobSets on it leave it as their policies say. */
void core_sub_health(struct core *core, struct step *step, const struct machine *machine,
                     const struct fault *fault);

/* node.c */
void node_boot(struct core *core, struct step *step,
               bool paused); /* a new controller has no connected agents */
void node_cluster(struct core *core, struct step *step, struct str document);
void node_hello(struct core *core, struct step *step, const struct hello *hello);
void node_away(struct core *core, struct step *step, struct str name, struct str evidence);
void node_lost(struct core *core, struct step *step, struct str name, struct str evidence);
/* Peers have reported ranks of the machine gone: declares it lost if they reported all of them. */
void node_judge(struct core *core, struct step *step, struct machine *machine);
/* Applies a user's write to a Node: cordon, taints, labels. False: refused with a reply. */
void node_replace(struct core *core, struct step *step, struct machine *machine, const struct doc *document);

#endif
