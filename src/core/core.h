/* core.h - START HERE: the controller's brain, one deterministic machine.
 *
 *     core_step(core, event, effects):   state x event -> state', effects
 *
 * The contract:
 *   - Pure. It does no I/O, reads no clock, draws no random number, starts no thread; the event's stamp is
 *     its only time. The same events in the same order give the same state, byte for byte: core_digest()
 *     proves it.
 *   - Total. Every well-formed event is accepted in every state; an event that cannot be carried out gets a
 *     REPLY or is ignored, and never crashes. Events come in log order: seq is the last one plus 1, stamps
 *     never run backwards.
 *   - The host appends an event to the log and makes it durable BEFORE it calls core_step, and carries the
 *     effects out afterwards. After a restart: core_new, core_snapshot_read (if any), core_step for each
 *     later record with effects thrown away, then EVENT_BOOT. Lost effects are repeated when agents say
 *     Hello.
 *   - Timers are state: the host asks core_deadline() and appends an EVENT_TICK when it is due.
 *   - Reads go straight to the structs (job/job.h, model/model.h, note.h) between steps and never change
 *     anything.
 * One owner thread; nothing here locks.
 *
 * Inside, from the highest to the lowest; a folder sees lower ones only (tests/tidy checks it):
 *
 *     core.c             routes events, then settles; invariants.c audit_objects.c
 *     write  react  log  API writes; verdicts into orders, machines, deletion; records and snapshots
 *     admit  hang        queues and quota; jobs that make no steps, judged by diagnose
 *     recover  launch    what answers an incident, by the ladder; the messages that start tasks
 *     job                JobSets, Jobs, tasks, gangs
 *     repair             the return of machines to service
 *     slice              cubes and optical switches of gangs that ask for a shape
 *     health  lemon  errand  sched  object   faults; failure counts; agents' work; placement; stored objects
 *     model              machines and chips, from the cluster file
 *     spec               documents of users: schema, defaults, validation
 *     ladder             the recovery ladder: its rules and its books
 *     fabric  ledger  pace  diagnose         pure rules that know no other folder
 *     receipt            what was answered to writes that may come again
 *     kinds              the table of API kinds: names, verbs, limits, rules, view
 *     step.h event.h effect.h note.h         of the root: what a step gets, and leaves
 *     words              ids, limits, lifecycles, containers, signals, errands, places, switches
 *
 * agent/ is the brain of one machine: another deterministic machine of this form, see agent/agent.h. Its
 * messages are words of job, too.
 */
#ifndef PHX_CORE_CORE_H
#define PHX_CORE_CORE_H

#include "core/effect.h"
#include "core/event.h"
#include "core/job/job.h"
#include "core/ledger/ledger.h"
#include "core/model/model.h"
#include "core/note.h"
#include "core/object/object.h"

struct core;

struct core *core_new(void); /* empty: no cluster, seq 0 */
void core_free(struct core *core);

/* Applies one event; appends its effects (cleared first) by the contract above. */
void core_step(struct core *core, const struct event *event, struct effects *effects);

uint64_t core_seq(const struct core *core);       /* of the last event applied; 0: none */
uint64_t core_epoch(const struct core *core);     /* of the last EVENT_BOOT */
uint32_t core_level(const struct core *core);     /* up to which records may be written (record.h) */
/* Returns the cluster's identity as machines are told it: a hash of the first boot's random bits, the same
 * for every controller and every copy of the log, and never 0. There has been a boot. */
uint64_t core_identity(const struct core *core);
/* Makes the key by which the ranks of this attempt of a JobSet know each other, from the secret of the first
 * boot that had one: the same after a replay. Zeros: no boot had one yet. */
void core_gang_key(const struct core *core, obj_id jobset, int32_t attempt, uint8_t ret_key[GANG_KEY_BYTES]);
/* Whether the log was restored, and no task starts yet (recover/hearing.c). */
bool core_is_hearing(const struct core *core);
size_t core_stranger_count(const struct core *core); /* living tasks of the lost part that are known */
int64_t core_now(const struct core *core);        /* its stamp */
/* Stamp at which an EVENT_TICK is wanted; INT64_MAX: none. */
int64_t core_deadline(const struct core *core);
/* Returns the digest of the whole state: core_snapshot_digest of its snapshot. */
uint64_t core_digest(const struct core *core);

/* Whether the write would be accepted if it were stamped `now_ns` (core_now(), if that is later). Makes
 * the same checks as the step, so that refusals need not pass through the log. Refused (false): `effects`
 * has the one REPLY that the step would give; accepted: WARNINGs. Both are valid until the next check.
 * Changes nothing: neither the state nor the effects of the last step.
 * `ret_prepared` (NULL: not wanted; set to NULL when there is none) gets the parsed, defaulted and validated
 * document, for write_event.prepared of this same write: the step applies it and parses nothing. The caller
 * frees it, after that step. */
bool core_check_write(struct core *core, const struct write_event *write, int64_t now_ns,
                      struct effects *effects, struct prepared_write **ret_prepared);
/* Does the part of checking a stored object's create or replacement that needs no state: reads, converts and
 * checks its document, which may take tens of milliseconds. The result is for write_event.prepared of the
 * check and of the step of this same write; a refusal is given by the check, in its place. NULL: the write
 * has no such part. Reads nothing but `write`, so any thread may call it. */
struct prepared_write *core_prepare_write(const struct write_event *write);
void prepared_write_free(struct prepared_write *prepared); /* NULL is fine */

/* Appends the whole state as bytes (proto/snapshot.proto, zero or more length-delimited records;
 * canonical). */
void core_snapshot_write(const struct core *core, struct buf *out);
/* Returns the core_digest of the core that wrote these bytes: a hash over its records' hashes, in their
 * order. */
uint64_t core_snapshot_digest(struct str bytes);
/* Reads a snapshot into a fresh core. ERROR_CORRUPT / ERROR_UNSUPPORTED name the record. The core is
 * unusable after a failure. */
int core_snapshot_read(struct core *core, struct str bytes, struct error *error);

/* Checks every invariant that can be seen in one state; aborts through CHECK. Linear. */
void core_check_invariants(const struct core *core);

/* Whether no JobSet has anything left to do: on a copy, a tick that looks at all of them gives the state that
 * one gives which looks at those that are due. False: an earlier event has made something possible and has
 * not had it done (jobset_mark is missing), so it waits for a later event. For tests; costs two snapshots. */
bool core_is_settled(const struct core *core);

/* For readers. The pointers stay valid until the next step that changes the list. */
const struct cluster *core_cluster(const struct core *core);
const struct job_store *core_jobs(const struct core *core);
const struct object_store *core_objects(const struct core *core);
/* Returns how much of a ResourceQuota's key ("count/jobsets.jobset.x-k8s.io", "requests.cpu") the
 * namespace uses, in thousandths; false: the key counts nothing. */
bool core_quota_used(const struct core *core, struct str namespace_, struct str key, int64_t *ret_milli);
struct admit;
const struct admit *core_admit(const struct core *core); /* admit/admit.h */
struct health;
const struct health *core_health(const struct core *core); /* health/fault.h */
struct hangs;
const struct hangs *core_hang_watches(const struct core *core); /* hang/hang.h */
struct slices;
const struct slices *core_slices(const struct core *core); /* slice/slice.h */
struct lemon_store;
const struct lemon_store *core_lemons(const struct core *core); /* lemon/lemon.h */
struct errands;
const struct errands *core_errands_store(const struct core *core); /* errand/errand.h */
struct repairs;
const struct repairs *core_repairs(const struct core *core); /* repair/repair.h */
struct receipts;
const struct receipts *core_receipts(const struct core *core); /* receipt/receipt.h */
struct lease_hold;
const struct lease_hold *core_lease_hold(const struct core *core); /* lease_hold.h */
const struct ledger *core_ledger(const struct core *core);
int64_t core_machine_mttf_s(const struct core *core); /* machine_mttf_s() now; launch/launch.h */
const struct note_ring *core_notes(const struct core *core);

#endif
