/* core.h - START HERE: the controller's brain, one deterministic machine.
 *
 *     core_step(core, event, effects):   state x event -> state', effects
 *
 * The contract:
 *   - Pure. It does no I/O, reads no clock, draws no random number, starts no thread; the event's stamp is
 *     its only time. The same events in the same order give the same state, byte for byte: core_digest()
 *     proves it.
 *   - Total. Every well-formed event is accepted in every state. An event that cannot be carried out is
 *     ignored or answered with a REPLY. Events come in log order: each seq is the previous one plus 1, and
 *     stamps never decrease.
 *   - The host appends an event to the log and makes it durable BEFORE it calls core_step, and carries out
 *     the effects afterwards. After a restart it calls core_new, core_snapshot_read (if there is a snapshot)
 *     and core_step for each later record, discards those effects, and appends EVENT_BOOT. Lost effects are
 *     repeated when agents say Hello.
 *   - Timers are state: the host asks core_deadline() and appends an EVENT_TICK when it is due.
 *   - Readers look straight at the structs (job/job.h, model/model.h, note.h) between steps, and never
 *     change anything.
 * A core belongs to one thread; nothing here locks.
 *
 * Folders, from the highest to the lowest; a folder sees lower ones only (tests/tidy checks it):
 *
 *     core.c             routes events, then settles; invariants.c, audit_objects.c: checks of the state
 *     write  react  log  API writes; orders that follow from verdicts; records and snapshots
 *     admit  hang        queues and quota; jobs that make no steps, judged by diagnose
 *     recover  launch    answers to incidents, by the ladder; the messages that start tasks
 *     life               lives of JobSets, Jobs and tasks, from creation to deletion
 *     gang               gangs: forming, placement, preflight, start
 *     job                JobSets, Jobs, tasks and gangs as data
 *     repair             the return of machines to service
 *     slice              cubes and optical switches of gangs that ask for a shape
 *     health  lemon  errand  sched  object   faults; failure counts; agents' work; placement; stored objects
 *     model              machines and chips, from the cluster file
 *     spec               documents of users: schema, defaults, validation
 *     ladder             the recovery ladder: its rules, and the rungs that an incident has used
 *     fabric  ledger  pace  diagnose         pure rules that know no other folder
 *     receipt            answers to writes that clients may repeat
 *     kinds              the table of API kinds: names, verbs, limits, rules, view
 *     step.h event.h effect.h note.h         of the root: the input and the output of a step
 *     words              ids, limits, lifecycles, containers, signals, errands, places, switches
 *
 * agent/ is the brain of one machine: another deterministic state machine of this form (agent/agent.h). Its
 * messages (agent/message.h) are part of the core's events and effects.
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

struct core *core_new(void);       /* empty: no cluster, seq 0; never fails */
void core_free(struct core *core); /* NULL is fine */

/* Applies one event: clears `effects`, then appends those of the event, by the contract above. */
void core_step(struct core *core, const struct event *event, struct effects *effects);

uint64_t core_seq(const struct core *core);   /* of the last event applied; 0: none */
uint64_t core_epoch(const struct core *core); /* of the last EVENT_BOOT; 0: none */
/* Returns the highest level at which records may be written (log/record.h). */
uint32_t core_level(const struct core *core);
/* Returns the cluster's identity as machines receive it: a hash of the first boot's random bits. All
 * controllers and all copies of the log have the same identity, which is never 0. There must have been a
 * boot. */
uint64_t core_identity(const struct core *core);
/* Makes the key by which the ranks of this attempt of a JobSet recognise each other, from the secret of the
 * first boot that had one. Replay gives the same key. Zeroes `ret_key` if no boot had a secret yet. */
void core_gang_key(const struct core *core, obj_id jobset, int32_t attempt, uint8_t ret_key[GANG_KEY_BYTES]);
/* Returns whether the log was restored from a backup and starts are still held back (recover/hearing.c). */
bool core_is_hearing(const struct core *core);
/* Returns the number of living tasks that agents have named and that only the lost part of a restored log
 * knows. */
size_t core_stranger_count(const struct core *core);
int64_t core_now(const struct core *core); /* the stamp of the last event applied */
/* Returns the stamp at which an EVENT_TICK is due, or INT64_MAX if no timer runs. */
int64_t core_deadline(const struct core *core);
/* Returns the digest of the whole state: core_snapshot_digest of its snapshot. */
uint64_t core_digest(const struct core *core);

/* Returns whether the write would be accepted if it were stamped `now_ns`, or core_now() if that is later.
 * Makes the same checks as the step, so that refusals need not pass through the log. For a refused write,
 * `effects` gets the one REPLY that the step would give; for an accepted one, its WARNINGs. They are valid
 * until the next check. Changes neither the state nor the effects of the last step.
 * `ret_prepared` may be NULL. Otherwise *ret_prepared becomes the parsed, defaulted and validated document,
 * or NULL if the kind has none. Passed as write_event.prepared of this same write, it saves the step the
 * parsing. The caller frees it after that step. */
bool core_check_write(struct core *core, const struct write_event *write, int64_t now_ns,
                      struct effects *effects, struct prepared_write **ret_prepared);
/* Does the part of checking a stored object's create or replacement that needs no state: reads, converts and
 * checks its document, which may take tens of milliseconds. The caller passes the result as
 * write_event.prepared to the check and to the step of this same write, and frees it after both. If the
 * document is invalid, the check then gives the refusal. Returns NULL if the write has no such part. Any
 * thread may call it, because it reads nothing but `write`. */
struct prepared_write *core_prepare_write(const struct write_event *write);
void prepared_write_free(struct prepared_write *prepared); /* NULL is fine */

/* Appends the whole state as bytes (proto/snapshot.proto: zero or more length-delimited records;
 * canonical). */
void core_snapshot_write(const struct core *core, struct buf *out);
/* Returns the core_digest of the core that wrote these bytes: a hash over its records' hashes, in their
 * order. The bytes must be a snapshot that core_snapshot_write wrote. */
uint64_t core_snapshot_digest(struct str bytes);
/* Reads a snapshot into a fresh core. Returns 0, ERROR_CORRUPT or ERROR_UNSUPPORTED; `error` (may be NULL)
 * names the record. After a failure the core can only be freed. */
int core_snapshot_read(struct core *core, struct str bytes, struct error *error);

/* Checks every invariant that is visible in a single state; aborts through CHECK. Linear in objects. */
void core_check_invariants(const struct core *core);

/* Returns whether no JobSet has anything left to do. Applies a tick to two copies: one looks at all JobSets,
 * the other at those that are due, and both must reach the same state. If they differ, an earlier event made
 * something possible without marking the JobSet (jobset_mark), which therefore waits for a later event. For
 * tests; costs two snapshots. */
bool core_is_settled(const struct core *core);

/* For readers. The pointers live as long as the core; what they point to may change with each step. */
const struct cluster *core_cluster(const struct core *core);
const struct job_store *core_jobs(const struct core *core);
const struct object_store *core_objects(const struct core *core);
/* Sets *ret_milli to how much of a ResourceQuota's key ("count/jobsets.jobset.x-k8s.io", "requests.cpu") the
 * namespace uses, in thousandths. Returns false if the key counts nothing. */
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
/* Returns machine_mttf_s() (launch/launch.h) of this cluster at core_now(), in seconds. */
int64_t core_machine_mttf_s(const struct core *core);
const struct note_ring *core_notes(const struct core *core);

#endif
