/* internal.h - the core's whole state, shared by the root of src/core and the three rooms that see all of it:
 * write/, react/ and log/. No other folder includes it. */
#ifndef PHX_CORE_INTERNAL_H
#define PHX_CORE_INTERNAL_H

#include "base/hash.h"
#include "core/core.h"
#include "core/errand/errand.h"
#include "core/hang/hang.h"
#include "core/health/fault.h"
#include "core/recover/recover.h"
#include "core/health/lease_hold.h"
#include "core/receipt/receipt.h"
#include "core/repair/repair.h"
#include "core/slice/slice.h"
#include "core/lemon/lemon.h"

struct core {
    uint64_t seq;
    uint64_t epoch, first_epoch; /* of the newest boot, and of the first one; 0: none yet */
    uint64_t uids_ahead;         /* log positions by which uids are ahead (ids.h) */
    struct outage outage;
    struct hearing hearing;
    struct lease_hold hold;
    uint64_t identity; /* identity of the cluster, from its first boot; 0: none yet */
    uint8_t secret[GANG_KEY_BYTES]; /* from which gangs' keys are made (core_keep_secret) */
    struct hmac keys;               /* keyed by `secret` */
    bool has_secret;
    uint32_t level; /* record.h */
    int64_t now_ns;
    struct cluster cluster;
    struct cluster retired;  /* the last cluster, until the next step, so that effects can name its
                              * machines */
    struct buf cluster_json; /* the document that `cluster` was loaded from */
    struct job_store jobs;
    struct object_store *objects;
    struct admit *admit;
    struct health *health;
    struct lemon_store *lemons;
    struct errands *errands;
    struct hangs *hangs;
    struct slices *slices;
    struct repairs *repairs;
    struct receipts *receipts;
    uint64_t fault_table_version; /* version of the FaultTables that `health` uses */
    VEC(machine_id)
    leaving; /* quarantined machines with tasks that have a notice and no stop order yet;
                              * ascending */
    struct ledger ledger;
    struct note_ring notes;
    struct arena reply;       /* owns the memory of the last step's effects */
    struct arena check_reply; /* owns the memory of the last core_check_write's effects */
    /* Used only while a snapshot is read: each task's index in its gang, and the job in which a task is the
     * newest one of its index. */
    struct u64_map restore_places, restore_newest;
};

/* core.c */
/* Stores the secret of the first boot that has one: GANG_KEY_BYTES bytes, copied. */
void core_keep_secret(struct core *core, struct str secret);
/* Derives admission's lists and bookings; called after the rest of a snapshot was read. */
void core_admit_restored(struct core *core);

/* audit_objects.c: checks the invariants of stored objects; aborts through CHECK. */
void core_check_objects(const struct core *core);

#endif
