/* snapshot.h - functions shared by the writer and the reader of snapshots. Private to the core.
 *
 * Most write functions make records and pass each to `put`, which packs it before it returns. The others fill
 * in a part of *pb, with memory of `arena`. The read functions restore one record, or a part of one, into the
 * state that was read so far. They return false if it does not fit: a value is out of range, a uid is taken,
 * or it contradicts that state. The caller then discards the whole core.
 */
#ifndef PHX_CORE_LOG_SNAPSHOT_H
#define PHX_CORE_LOG_SNAPSHOT_H

#include <stdbool.h>

#include "proto/snapshot.pb-c.h"

enum { SNAPSHOT_VERSION = 1 };

/* Order of the bits of Task.flags and of Task.times. */
#define SNAPSHOT_TASK_FLAGS(task)                                                                            \
    {                                                                                                        \
        (task)->doomed, (task)->ready, (task)->joined, (task)->evicted, (task)->counted, (task)->holds,      \
            (task)->oom, (task)->fenced, (task)->peers_lost                                                  \
    }
#define SNAPSHOT_TASK_TIMES(task)                                                                            \
    {                                                                                                        \
        (task)->created_ns, (task)->placed_ns, (task)->start_sent_ns, (task)->started_ns, (task)->ended_ns,  \
            (task)->stopping_since_ns                                                                        \
    }
enum { SNAPSHOT_TASK_TIMES_COUNT = 6 };

struct arena;
struct cluster;
struct job_store;
struct jobset;

struct labels;
/* snapshot_labels.c: all memory comes from `arena`, except the texts of labels that were read: `list` owns
 * them. */
Snapshot__Label **snapshot_write_labels(struct arena *arena, const struct labels *labels, size_t *ret_count);
struct labels snapshot_read_labels(struct arena *arena, Snapshot__Label *const *list, size_t count);

struct core;
struct jobset_usage;
struct ledger;
struct ledger_account;
/* snapshot_ledger.c: the cluster's book, which is in the header; accounts; a JobSet's failure. */
void snapshot_write_ledger(struct arena *arena, const struct ledger *ledger, Snapshot__Header *header);
bool snapshot_read_ledger(const Snapshot__Header *pb, struct ledger *ledger);
Snapshot__Account *snapshot_write_account(struct arena *arena, const struct ledger_account *account);
bool snapshot_read_account(int64_t now_ns, const Snapshot__Account *pb, struct ledger_account *ret);
void snapshot_write_failure(struct arena *arena, const struct jobset_usage *usage, Snapshot__Jobset *pb);
bool snapshot_read_failure(const Snapshot__Jobset *pb, struct jobset_usage *usage);
/* Books chips as machines and gangs have them, once everything is read. Returns false if these are not the
 * chips that were booked. */
bool snapshot_ledger_restored(struct core *core);

/* snapshot_terms.c: a JobSet's terms and reservation. */
void snapshot_write_terms(struct arena *arena, const struct jobset *jobset, Snapshot__Jobset *pb);
bool snapshot_read_terms(struct job_store *store, const struct cluster *cluster, struct jobset *jobset,
                         const Snapshot__Jobset *pb);

/* snapshot_ends.c: the signatures and faults of a JobSet's ends, and the answers to them, which are parts of
 * the JobSet's record and of its restarts; and the record of its step times. */
void snapshot_write_ends(struct arena *arena, const struct jobset *jobset, Snapshot__Jobset *pb);
bool snapshot_read_ends(int64_t now_ns, struct jobset *jobset, const Snapshot__Jobset *pb);
void snapshot_write_pace(const struct jobset *jobset, void (*put)(void *context, Snapshot__Record *record),
                         void *context);
bool snapshot_read_pace(struct jobset *jobset, const Snapshot__Pace *pb);

/* snapshot_recovery.c: the recovery of a JobSet. Reading also returns false if `pb` is NULL. */
void snapshot_write_recovery(struct arena *arena, const struct jobset *jobset, Snapshot__Jobset *jobset_pb);
bool snapshot_read_recovery(const struct cluster *cluster, int64_t now_ns, struct jobset *jobset,
                            const Snapshot__Recovery *pb);

struct admit;
/* snapshot_admit.c: one record for each Workload, and one for the published status of each queue object. */
void snapshot_write_admit(const struct admit *admit, void (*put)(void *context, Snapshot__Record *record),
                          void *context);
bool snapshot_read_workload(struct admit *admit, const struct job_store *jobs, int64_t now_ns,
                            const Snapshot__Workload *pb);
bool snapshot_read_shown(struct admit *admit, int64_t now_ns, const Snapshot__QueueShown *pb);

struct receipts;
/* snapshot_receipt.c: one record for each receipt. */
void snapshot_write_receipts(const struct receipts *receipts,
                             void (*put)(void *context, Snapshot__Record *record), void *context);
bool snapshot_read_receipt(struct receipts *receipts, int64_t now_ns, const Snapshot__Receipt *pb);

struct health;
/* snapshot_health.c: one record for each fault, one for each sender of faults, and one for the breaker. */
void snapshot_write_health(const struct health *health, void (*put)(void *context, Snapshot__Record *record),
                           void *context);
bool snapshot_read_fault(struct health *health, int64_t now_ns, const Snapshot__Fault *pb);
bool snapshot_read_sender(struct health *health, int64_t now_ns, const Snapshot__FaultSender *pb);
bool snapshot_read_breaker(struct health *health, int64_t now_ns, const Snapshot__Breaker *pb);

struct hangs;
/* snapshot_hang.c: one record for each watched JobSet. */
void snapshot_write_hangs(const struct hangs *hangs, void (*put)(void *context, Snapshot__Record *record),
                          void *context);
bool snapshot_read_hang(struct hangs *hangs, int64_t now_ns, const Snapshot__Hang *pb);

struct slices;
/* snapshot_slice.c: one record for the totals, and one for each slice, and for each switch and cube that
 * differs from a new one. */
void snapshot_write_slices(const struct slices *slices, void (*put)(void *context, Snapshot__Record *record),
                           void *context);
bool snapshot_read_slice_totals(struct slices *slices, const Snapshot__SliceTotals *pb);
bool snapshot_read_switch(struct slices *slices, int64_t now_ns, const Snapshot__Switch *pb);
bool snapshot_read_cube(struct slices *slices, int64_t now_ns, const Snapshot__Cube *pb);
bool snapshot_read_slice(struct slices *slices, const struct job_store *jobs, const struct cluster *cluster,
                         int64_t now_ns, const Snapshot__Slice *pb);

struct lemon_store;
/* snapshot_lemon.c: one record for each machine with counts. */
void snapshot_write_lemons(const struct lemon_store *store,
                           void (*put)(void *context, Snapshot__Record *record), void *context);
bool snapshot_read_lemon(struct lemon_store *store, int64_t now_ns, const Snapshot__Lemon *pb);

struct gang;
/* snapshot_preflight.c: at most one record for each gang. */
void snapshot_write_preflight(const struct gang *gang, void (*put)(void *context, Snapshot__Record *record),
                              void *context);
/* Reads a record of the gang that was read last. */
bool snapshot_read_preflight(struct jobset *jobset, const struct cluster *cluster, int64_t now_ns,
                             const Snapshot__Preflight *pb);

struct errands;
/* snapshot_errand.c: one record for each errand. */
void snapshot_write_errands(const struct errands *errands,
                            void (*put)(void *context, Snapshot__Record *record), void *context);
/* Errands are read after the machines. */
bool snapshot_read_errand(struct errands *errands, const struct cluster *cluster, int64_t now_ns,
                          const Snapshot__Errand *pb);

struct object_store;
/* snapshot_object.c: one record for each object. */
void snapshot_write_objects(const struct object_store *store,
                            void (*put)(void *context, Snapshot__Record *record), void *context);
bool snapshot_read_object(struct object_store *store, int64_t now_ns, const Snapshot__Object *pb);

struct job_store;
/* snapshot_folder.c: one record for each checkpoint folder of a removed JobSet. */
void snapshot_write_folders(const struct job_store *store,
                            void (*put)(void *context, Snapshot__Record *record), void *context);
bool snapshot_read_folder(struct job_store *store, const Snapshot__CheckpointFolder *pb);

struct repairs;
struct step;
/* snapshot_repair.c: one record for the totals, one for each repair, and one for each maintenance. */
void snapshot_write_repairs(const struct repairs *repairs,
                            void (*put)(void *context, Snapshot__Record *record), void *context);
/* `step` holds the state that was restored so far. */
bool snapshot_read_repair(struct step *step, const Snapshot__Repair *pb);
bool snapshot_read_maintenance(struct step *step, const Snapshot__Maintenance *pb);
bool snapshot_read_repair_totals(struct repairs *repairs, const Snapshot__RepairTotals *pb);

#endif
