/* ledger.h - chip-second accounting: at every instant every chip has exactly one owner.
 *
 * Two books, both in integer chip-microseconds (stamps are cut to microseconds first, so differences are
 * exact):
 *   the cluster's          chips of all machines by owner; sums to chips x time since the cluster was loaded
 *   an account of a gang   its wanted or held chips by owner; sums to the integral of that number over
 *                          its life
 * Productive time is booked as UNKEPT until a checkpoint (or the job's success) keeps it; a fault turns
 * UNKEPT time into REDONE, unless the training's position is not known: then its end decides. The ledger
 * only listens: no module bases a decision on it.
 *   ETTR = (KEPT + UNKEPT) / (KEPT + UNKEPT + REDONE + STARTING + RESTARTING + QUEUED + STOPPING)   (arXiv
 *   2410.21680: R / W), at the present time: UNKEPT time counts until a fault takes it. Time of spares is not
 *   time of the job's ranks and has no part in it.
 */
#ifndef PHX_CORE_LEDGER_LEDGER_H
#define PHX_CORE_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

enum ledger_owner {
    OWNER_IDLE,       /* machine ready, chip free (cluster's book only) */
    OWNER_DOWN,       /* machine not ready or cordoned, chip free (cluster's book only) */
    OWNER_QUEUED,     /* wanted, not held (accounts only) */
    OWNER_STARTING,   /* held, before the first step of the first attempt */
    OWNER_UNKEPT,     /* steps run, not yet covered by a checkpoint */
    OWNER_KEPT,       /* steps run and kept */
    OWNER_REDONE,     /* steps run and lost to a restart */
    OWNER_RESTARTING, /* from a fault to the next step: queueing, starting, loading */
    OWNER_STOPPING,   /* held while being told to end (suspend, delete, completion of the rest) */
    OWNER_SPARE,      /* wanted or held by tasks that wait for a rank */
    LEDGER_OWNERS
};
/* "idle", "productive-unkept", "productive-kept", ... */
const char *ledger_owner_name(enum ledger_owner owner);

struct ledger {
    int64_t chips[LEDGER_OWNERS];    /* owned now */
    int64_t chip_us[LEDGER_OWNERS];  /* up to since_us */
    int64_t all_chip_us;             /* integral of all chips: the sum of all owners */
    int64_t since_us;
    int64_t opened_us;               /* when the cluster was loaded */
};
struct ledger_account {
    int64_t chip_us[LEDGER_OWNERS];
    int64_t chips;                   /* wanted (QUEUED) or held (others) now */
    int64_t since_us, opened_us;
    int64_t wanted_chip_us;          /* integral of `chips`: the sum of all owners */
    enum ledger_owner owner;         /* of `chips` now */
};

void ledger_open(struct ledger *ledger, int64_t now_us);
/* Integrates up to now, then moves `chips` from one owner to another; `from` == LEDGER_OWNERS: they are
 * new (the cluster file grew), `to` == LEDGER_OWNERS: they are gone. */
void ledger_move(struct ledger *ledger, int64_t chips, enum ledger_owner from, enum ledger_owner to,
                 int64_t now_us);

void ledger_account_open(struct ledger_account *account, enum ledger_owner owner, int64_t chips,
                         int64_t now_us);
/* Integrates up to now, then the account has `chips` under `owner`. */
void ledger_account_set(struct ledger_account *account, enum ledger_owner owner, int64_t chips,
                        int64_t now_us);
/* Moves UNKEPT time up to now to KEPT (a checkpoint or success), or to REDONE (a fault: returns how much),
 * in both books. */
void ledger_account_keep(struct ledger_account *account, struct ledger *ledger, int64_t now_us);
int64_t ledger_account_lose(struct ledger_account *account, struct ledger *ledger, int64_t now_us);
/* Moves up to `chip_us` of a fault's loss from REDONE back to UNKEPT, in both books, because it turned out
 * to be kept. Returns how much there was. */
int64_t ledger_account_regain(struct ledger_account *account, struct ledger *ledger, int64_t chip_us,
                              int64_t now_us);
/* The account as it would stand at now. */
struct ledger_account ledger_account_at(const struct ledger_account *account, int64_t now_us);
/* ETTR in parts per million; -1 before anything was booked. */
int64_t ledger_ettr_ppm(const struct ledger_account *account);
/* Whether both books sum to their totals. */
bool ledger_balanced(const struct ledger *ledger);
bool ledger_account_balanced(const struct ledger_account *account);

#endif
