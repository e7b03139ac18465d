/* ledger.h - chip-second accounting: at every instant every chip has exactly one owner.
 *
 * Two books, both in integer chip-microseconds (stamps are first truncated to microseconds, so differences
 * are exact):
 *   the cluster's          chips of all machines by owner; sums to chips x time since the cluster was loaded
 *   an account of a gang   its wanted or held chips by owner; sums to the integral of that number over
 *                          its life
 * While the gang holds its chips, a change of its account also changes the cluster's book: no caller writes
 * both. Free chips are booked by their machine (core/job/hold.c).
 *
 * Productive time is booked as UNKEPT until a checkpoint, or the job's success, keeps it. The end of an
 * attempt turns UNKEPT time into REDONE, or into FAILED if the user's program ended it. If the training's
 * position is not known, the time stays UNKEPT until the end of the training decides. No module bases a
 * decision on the ledger.
 *   ETTR = (KEPT + UNKEPT) / (all owners of the account but SPARE)   (arXiv 2410.21680: R / W), at the
 *   present time: UNKEPT time counts until a fault takes it. Spares are not ranks of the job, so their time
 *   is left out.
 *
 * A third book counts the held chips of gangs by the size of their jobs (exposure), and the ends of their
 * attempts (failures). Readers derive failure rates and the MTTF by size from it.
 *
 * The cost of a change does not grow with machines or jobs: the books are counters and the times of their
 * last change.
 */
#ifndef PHX_CORE_LEDGER_LEDGER_H
#define PHX_CORE_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers are part of the snapshot's format. */
enum ledger_owner {
    OWNER_IDLE,        /* free: healthy, as is the whole machine, and not reserved */
    OWNER_DOWN,        /* free: its machine is not ready */
    OWNER_QUEUED,      /* wanted for the first time, not held (accounts only) */
    OWNER_STARTING,    /* held, from the order to start to the first step of the first attempt */
    OWNER_UNKEPT,      /* steps run, not yet covered by a checkpoint */
    OWNER_KEPT,        /* steps run and kept */
    OWNER_REDONE,      /* steps run and lost to a restart */
    OWNER_RESTARTING,  /* held, from a fault to the next step: ending, starting, loading */
    OWNER_DRAINING,    /* held while tasks end by order (suspend, delete, completion of the rest) */
    OWNER_SPARE,       /* wanted or held by tasks that wait for a rank */
    OWNER_PLACING,     /* held, and the order to start waits for ending processes or missing objects */
    OWNER_WIRING,      /* held while the cross-connects of its slice are made */
    OWNER_PREFLIGHT,   /* held while its machines are tested before the start */
    OWNER_STALLED,     /* held while steps pause for a checkpoint */
    OWNER_AWAITING,    /* wanted after a loss, not held; or held by ranks whose peer waits for a machine */
    OWNER_DEGRADED,    /* wanted or held by replicas that take no part while their job continues */
    OWNER_FAILED,      /* steps run and lost because the user's program failed */
    OWNER_FRAGMENTED,  /* free: healthy, but other chips of the machine are in use or reserved */
    OWNER_QUARANTINED, /* free: its machine was taken out of service for a fault */
    OWNER_REPAIR,      /* free: its machine is being reset or tested, or waits for a person */
    OWNER_RESERVED,    /* free and usable: admission keeps it for a JobSet (gang/reserve.c) */
    OWNER_STANDBY,     /* free: its machine is a spare */
    OWNER_CORDONED,    /* free: its machine takes no new work, by order */
    LEDGER_OWNERS
};
/* Returns "idle", "productive-unkept", "productive-kept", ... */
const char *ledger_owner_name(enum ledger_owner owner);
/* Whether the owner is one of free chips, which belong to no account. */
bool ledger_owner_is_free(enum ledger_owner owner);
/* Whether the owner is one of chips that make no steps yet, but are meant to. */
bool ledger_owner_prepares(enum ledger_owner owner);

/* Sizes of jobs in chips: class c has more than 2^(c-1) and at most 2^c. */
enum { LEDGER_SIZES = 24 };
/* Returns the class of a job that wants that many chips (0 and 1 are class 0). */
uint8_t ledger_size_of(int64_t chips);

/* The cause that ended an attempt, as far as it is known (health/attribute.h). */
enum ledger_cause {
    CAUSE_INFRASTRUCTURE, /* a machine was lost, or a fault of the hardware or the system struck */
    CAUSE_PROGRAM,        /* the user's program */
    CAUSE_ORDERED,        /* people or the control plane: drains, preemption, growth, maintenance */
    LEDGER_CAUSES
};
/* Returns "infrastructure", "program" or "ordered". */
const char *ledger_cause_name(enum ledger_cause cause);

struct ledger_size {
    int64_t chips;   /* held now by gangs of this size, without spares */
    int64_t chip_us; /* exposure: the integral of `chips` up to since_us */
    int64_t since_us;
    uint64_t ends[LEDGER_CAUSES]; /* attempts that ended, by cause */
};

/* The cost of all ends of one cause. */
struct ledger_loss {
    int64_t count;
    /* Lost chip-microseconds under the usual assumption of one checkpoint an hour: half an hour, or the whole
     * runtime if that is shorter (arXiv 2410.21680, goodput loss). */
    int64_t assumed_us;
};

struct ledger {
    int64_t chips[LEDGER_OWNERS];    /* owned now */
    int64_t chip_us[LEDGER_OWNERS];  /* integrals of `chips` up to since_us */
    int64_t all_chip_us;             /* integral of all chips: the sum over all owners */
    int64_t since_us;
    int64_t opened_us;               /* when the cluster was loaded */
    int64_t gone_chip_us[LEDGER_OWNERS]; /* sums over the accounts of removed JobSets */
    int64_t gone_wanted_chip_us;
    struct ledger_size sizes[LEDGER_SIZES];
    /* First order: ends of attempts, by cause. Second order: preemptions by a job that needed machines again,
     * by the cause of that job's last end (ORDERED: it had none). */
    struct ledger_loss first_order[LEDGER_CAUSES], second_order[LEDGER_CAUSES];
};
struct ledger_account {
    int64_t chip_us[LEDGER_OWNERS];
    int64_t chips; /* wanted or held now */
    int64_t since_us, opened_us;
    int64_t wanted_chip_us;          /* integral of `chips`: the sum over all owners */
    enum ledger_owner owner;         /* owner of `chips` now */
    bool held;                       /* the chips are held, and in the cluster's book */
    uint8_t size;                    /* class of the job (ledger_size_of) */
};

/* --- the cluster's book ------------------------------------------------------------------------------- */

/* Begins an empty book at now. */
void ledger_open(struct ledger *ledger, int64_t now_us);
/* Integrates up to now, then adds `chips` (negative: removes) to the free chips under `owner`. */
void ledger_free_chips(struct ledger *ledger, enum ledger_owner owner, int64_t chips, int64_t now_us);
/* Counts the end of an attempt of a job of this size. */
void ledger_count_end(struct ledger *ledger, uint8_t size, enum ledger_cause cause);
/* Corrects the cause of an end that was counted. */
void ledger_recount_end(struct ledger *ledger, uint8_t size, enum ledger_cause from, enum ledger_cause to);
/* Returns the loss, in chip-microseconds, that is assumed for the end of an attempt that ran for `ran_us` on
 * `chips` chips. */
int64_t ledger_assumed_loss(int64_t ran_us, int64_t chips);
/* Adds an end (sign 1), or takes one back (-1, with a negative `assumed_us`). */
void ledger_count_loss(struct ledger_loss *loss, int sign, int64_t assumed_us);
/* Adds the final account of a removed JobSet, which holds and wants no chips. */
void ledger_bury(struct ledger *ledger, const struct ledger_account *account);
/* Returns the book as it would be at now. */
struct ledger ledger_at(const struct ledger *ledger, int64_t now_us);

/* --- accounts ----------------------------------------------------------------------------------------- */

/* Opens an account of chips that are wanted and not held. */
void ledger_account_open(struct ledger_account *account, uint8_t size, enum ledger_owner owner, int64_t chips,
                         int64_t now_us);
/* Integrates up to now, then books the account's chips under `owner`. */
void ledger_account_book(struct ledger_account *account, struct ledger *ledger, enum ledger_owner owner,
                         int64_t now_us);
/* Books the wanted chips as held from now on. */
void ledger_account_take(struct ledger_account *account, struct ledger *ledger, enum ledger_owner owner,
                         int64_t now_us);
/* Books the held chips, if any are left, as given back; the account wants `chips` again. */
void ledger_account_want(struct ledger_account *account, struct ledger *ledger, enum ledger_owner owner,
                         int64_t chips, int64_t now_us);
/* Removes `count` chips, which the account no longer wants or holds. */
void ledger_account_leave(struct ledger_account *account, struct ledger *ledger, int64_t count,
                          int64_t now_us);
/* Moves `chips` of `account` to a new account *ret, under the same owner. */
void ledger_account_split(struct ledger_account *account, int64_t chips, int64_t now_us,
                          struct ledger_account *ret);
/* Adds the time of a closed account, which has no chips, to a sum. */
void ledger_account_add(struct ledger_account *sum, const struct ledger_account *account);

/* Moves up to `chip_us` of booked time from one owner to another, in both books, when it turns out to have
 * been spent otherwise. Returns how much was moved. */
int64_t ledger_account_move(struct ledger_account *account, struct ledger *ledger, enum ledger_owner from,
                            enum ledger_owner to, int64_t chip_us, int64_t now_us);
/* Moves UNKEPT time up to now to KEPT (a checkpoint or success), in both books. */
void ledger_account_keep(struct ledger_account *account, struct ledger *ledger, int64_t now_us);
/* Moves UNKEPT time up to now to `to`, which is REDONE or FAILED. Returns how much was moved. */
int64_t ledger_account_lose(struct ledger_account *account, struct ledger *ledger, enum ledger_owner to,
                            int64_t now_us);

/* Returns the account as it would be at now. */
struct ledger_account ledger_account_at(const struct ledger_account *account, int64_t now_us);
/* Returns the ETTR in parts per million; -1: nothing was booked yet. */
int64_t ledger_ettr_ppm(const struct ledger_account *account);
/* Whether the book, or the account, sums to its totals. */
bool ledger_balanced(const struct ledger *ledger);
bool ledger_account_balanced(const struct ledger_account *account);

#endif
