#include "core/ledger/ledger.h"

#include "base/check.h"

const char *ledger_owner_name(enum ledger_owner owner)
{
    static const char *const names[LEDGER_OWNERS] = {
        "idle",
        "down",
        "queued",
        "starting",
        "productive-unkept",
        "productive-kept",
        "redone",
        "restarting",
        "draining",
        "spare",
        "placing",
        "wiring",
        "preflight",
        "checkpoint-stall",
        "waiting-for-machine",
        "degraded",
        "failed-by-user",
        "fragmented",
        "quarantined",
        "in-repair",
        "reserved",
        "spare-machine",
        "cordoned",
    };
    CHECK((unsigned)owner < LEDGER_OWNERS && names[owner]);
    return names[owner];
}

bool ledger_owner_is_free(enum ledger_owner owner)
{
    CHECK((unsigned)owner < LEDGER_OWNERS);
    return owner == OWNER_IDLE || owner == OWNER_DOWN || owner >= OWNER_FRAGMENTED;
}

bool ledger_owner_prepares(enum ledger_owner owner)
{
    CHECK((unsigned)owner < LEDGER_OWNERS);
    return owner == OWNER_QUEUED || owner == OWNER_STARTING || owner == OWNER_RESTARTING ||
           owner == OWNER_PLACING || owner == OWNER_WIRING || owner == OWNER_PREFLIGHT ||
           owner == OWNER_AWAITING || owner == OWNER_DEGRADED;
}

const char *ledger_cause_name(enum ledger_cause cause)
{
    static const char *const names[LEDGER_CAUSES] = {"infrastructure", "program", "ordered"};
    CHECK((unsigned)cause < LEDGER_CAUSES && names[cause]);
    return names[cause];
}

uint8_t ledger_size_of(int64_t chips)
{
    CHECK(chips >= 0);
    uint8_t size = 0;
    while (size < LEDGER_SIZES - 1 && (int64_t)1 << size < chips)
        size++;
    return size;
}

/* --- the cluster's book ----------------------------------------------------------------------- */

static void integrate(struct ledger *ledger, int64_t now_us)
{
    CHECK(now_us >= ledger->since_us);
    int64_t elapsed_us = now_us - ledger->since_us;
    if (elapsed_us == 0)
        return;
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        ledger->chip_us[owner] += ledger->chips[owner] * elapsed_us;
        ledger->all_chip_us += ledger->chips[owner] * elapsed_us;
    }
    ledger->since_us = now_us;
}

/* Adds chips to an owner. Within a step, chips that move from one owner to another may have none, or two. */
static void own(struct ledger *ledger, enum ledger_owner owner, int64_t chips, int64_t now_us)
{
    CHECK((unsigned)owner < LEDGER_OWNERS && owner != OWNER_QUEUED);
    integrate(ledger, now_us);
    ledger->chips[owner] += chips;
    CHECK(ledger->chips[owner] >= 0);
}

/* Adds chips to the exposure of their job's size. Spares are not exposed, because their end ends no
 * attempt. */
static void expose(struct ledger *ledger, const struct ledger_account *account, int64_t chips, int64_t now_us)
{
    CHECK(account->size < LEDGER_SIZES);
    struct ledger_size *size = &ledger->sizes[account->size];
    CHECK(now_us >= size->since_us);
    size->chip_us += size->chips * (now_us - size->since_us);
    size->since_us = now_us;
    size->chips += chips;
    CHECK(size->chips >= 0);
}

void ledger_open(struct ledger *ledger, int64_t now_us)
{
    *ledger = (struct ledger){.since_us = now_us, .opened_us = now_us};
    for (int size = 0; size < LEDGER_SIZES; size++)
        ledger->sizes[size].since_us = now_us;
}

void ledger_free_chips(struct ledger *ledger, enum ledger_owner owner, int64_t chips, int64_t now_us)
{
    CHECK(ledger_owner_is_free(owner));
    own(ledger, owner, chips, now_us);
}

void ledger_count_end(struct ledger *ledger, uint8_t size, enum ledger_cause cause)
{
    CHECK(size < LEDGER_SIZES && (unsigned)cause < LEDGER_CAUSES);
    ledger->sizes[size].ends[cause]++;
}

void ledger_recount_end(struct ledger *ledger, uint8_t size, enum ledger_cause from, enum ledger_cause to)
{
    CHECK(size < LEDGER_SIZES && (unsigned)from < LEDGER_CAUSES && (unsigned)to < LEDGER_CAUSES);
    CHECK(ledger->sizes[size].ends[from] > 0);
    ledger->sizes[size].ends[from]--;
    ledger->sizes[size].ends[to]++;
}

int64_t ledger_assumed_loss(int64_t ran_us, int64_t chips)
{
    const int64_t most_us = (int64_t)30 * 60 * 1000000;
    CHECK(ran_us >= 0 && chips >= 0);
    return (ran_us < most_us ? ran_us : most_us) * chips;
}

void ledger_count_loss(struct ledger_loss *loss, int sign, int64_t assumed_us)
{
    CHECK(sign == 1 || sign == -1);
    loss->count += sign;
    loss->assumed_us += assumed_us;
    CHECK(loss->count >= 0 && loss->assumed_us >= 0);
}

void ledger_bury(struct ledger *ledger, const struct ledger_account *account)
{
    CHECK(account->chips == 0 && ledger_account_balanced(account));
    for (int owner = 0; owner < LEDGER_OWNERS; owner++)
        ledger->gone_chip_us[owner] += account->chip_us[owner];
    ledger->gone_wanted_chip_us += account->wanted_chip_us;
}

struct ledger ledger_at(const struct ledger *ledger, int64_t now_us)
{
    struct ledger copy = *ledger;
    integrate(&copy, now_us > copy.since_us ? now_us : copy.since_us);
    for (int i = 0; i < LEDGER_SIZES; i++) {
        struct ledger_size *size = &copy.sizes[i];
        CHECK(copy.since_us >= size->since_us);
        size->chip_us += size->chips * (copy.since_us - size->since_us);
        size->since_us = copy.since_us;
    }
    return copy;
}

/* --- accounts --------------------------------------------------------------------------------- */

static void account_integrate(struct ledger_account *account, int64_t now_us)
{
    CHECK(now_us >= account->since_us && (unsigned)account->owner < LEDGER_OWNERS);
    CHECK(account->chips >= 0);
    int64_t chip_us = account->chips * (now_us - account->since_us);
    account->chip_us[account->owner] += chip_us;
    account->wanted_chip_us += chip_us;
    account->since_us = now_us;
}

void ledger_account_open(struct ledger_account *account, uint8_t size, enum ledger_owner owner, int64_t chips,
                         int64_t now_us)
{
    CHECK(!ledger_owner_is_free(owner) && size < LEDGER_SIZES);
    CHECK(chips >= 0);
    *account = (struct ledger_account){
        .size = size, .owner = owner, .chips = chips, .since_us = now_us, .opened_us = now_us};
}

/* Puts the account's chips, if it holds any, into the cluster's book (sign 1), or takes them out (-1). */
static void carry(const struct ledger_account *account, struct ledger *ledger, int sign, int64_t now_us)
{
    CHECK(sign == 1 || sign == -1);
    if (!account->held || account->chips == 0)
        return;
    own(ledger, account->owner, sign * account->chips, now_us);
    if (account->owner != OWNER_SPARE)
        expose(ledger, account, sign * account->chips, now_us);
}

static void account_set(struct ledger_account *account, struct ledger *ledger, enum ledger_owner owner,
                        int64_t chips, bool held, int64_t now_us)
{
    CHECK(!ledger_owner_is_free(owner) && chips >= 0);
    CHECK(!held || owner != OWNER_QUEUED);
    account_integrate(account, now_us);
    carry(account, ledger, -1, now_us);
    account->owner = owner;
    account->chips = chips;
    account->held = held;
    carry(account, ledger, 1, now_us);
}

void ledger_account_book(struct ledger_account *account, struct ledger *ledger, enum ledger_owner owner,
                         int64_t now_us)
{
    if (account->owner != owner)
        account_set(account, ledger, owner, account->chips, account->held, now_us);
}

void ledger_account_take(struct ledger_account *account, struct ledger *ledger, enum ledger_owner owner,
                         int64_t now_us)
{
    CHECK(!account->held);
    account_set(account, ledger, owner, account->chips, true, now_us);
}

void ledger_account_want(struct ledger_account *account, struct ledger *ledger, enum ledger_owner owner,
                         int64_t chips, int64_t now_us)
{
    CHECK(account->held);
    account_set(account, ledger, owner, chips, false, now_us);
}

void ledger_account_leave(struct ledger_account *account, struct ledger *ledger, int64_t count,
                          int64_t now_us)
{
    CHECK(count >= 0 && account->chips >= count);
    account_set(account, ledger, account->owner, account->chips - count, account->held, now_us);
}

void ledger_account_split(struct ledger_account *account, int64_t chips, int64_t now_us,
                          struct ledger_account *ret)
{
    CHECK(chips >= 0 && account->chips >= chips);
    account_integrate(account, now_us);
    ledger_account_open(ret, account->size, account->owner, chips, now_us);
    ret->held = account->held;
    account->chips -= chips; /* the cluster's book has them under the same owner and size */
}

void ledger_account_add(struct ledger_account *sum, const struct ledger_account *account)
{
    for (int owner = 0; owner < LEDGER_OWNERS; owner++)
        sum->chip_us[owner] += account->chip_us[owner];
    sum->wanted_chip_us += account->wanted_chip_us;
    CHECK(sum->wanted_chip_us >= 0);
}

int64_t ledger_account_move(struct ledger_account *account, struct ledger *ledger, enum ledger_owner from,
                            enum ledger_owner to, int64_t chip_us, int64_t now_us)
{
    CHECK(chip_us >= 0 && !ledger_owner_is_free(from) && !ledger_owner_is_free(to));
    account_integrate(account, now_us);
    integrate(ledger, now_us);
    int64_t there = account->chip_us[from] < chip_us ? account->chip_us[from] : chip_us;
    CHECK(ledger->chip_us[from] >= there);
    account->chip_us[from] -= there;
    account->chip_us[to] += there;
    ledger->chip_us[from] -= there;
    ledger->chip_us[to] += there;
    return there;
}

void ledger_account_keep(struct ledger_account *account, struct ledger *ledger, int64_t now_us)
{
    ledger_account_move(account, ledger, OWNER_UNKEPT, OWNER_KEPT, INT64_MAX, now_us);
}

int64_t ledger_account_lose(struct ledger_account *account, struct ledger *ledger, enum ledger_owner to,
                            int64_t now_us)
{
    CHECK(to == OWNER_REDONE || to == OWNER_FAILED);
    return ledger_account_move(account, ledger, OWNER_UNKEPT, to, INT64_MAX, now_us);
}

struct ledger_account ledger_account_at(const struct ledger_account *account, int64_t now_us)
{
    struct ledger_account copy = *account;
    account_integrate(&copy, now_us > copy.since_us ? now_us : copy.since_us);
    return copy;
}

int64_t ledger_ettr_ppm(const struct ledger_account *account)
{
    int64_t total = 0;
    for (int owner = 0; owner < LEDGER_OWNERS; owner++)
        total += owner == OWNER_SPARE ? 0 : account->chip_us[owner];
    if (total <= 0)
        return -1;
    /* 128 bits, because a large job's chip-microseconds times a million pass 63. */
    int64_t made = account->chip_us[OWNER_KEPT] + account->chip_us[OWNER_UNKEPT];
    return (int64_t)((__int128)made * 1000000 / total);
}

static bool sizes_balance(const struct ledger *ledger)
{
    int64_t held = 0, exposed = 0;
    for (int owner = 0; owner < LEDGER_OWNERS; owner++)
        held +=
            ledger_owner_is_free((enum ledger_owner)owner) || owner == OWNER_SPARE ? 0 : ledger->chips[owner];
    for (int size = 0; size < LEDGER_SIZES; size++) {
        if (ledger->sizes[size].chips < 0 || ledger->sizes[size].chip_us < 0)
            return false;
        exposed += ledger->sizes[size].chips;
    }
    return held == exposed;
}

bool ledger_balanced(const struct ledger *ledger)
{
    int64_t sum = 0;
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        if (ledger->chips[owner] < 0 || ledger->chip_us[owner] < 0)
            return false;
        sum += ledger->chip_us[owner];
    }
    return sum == ledger->all_chip_us && ledger->since_us >= ledger->opened_us && sizes_balance(ledger);
}

bool ledger_account_balanced(const struct ledger_account *account)
{
    int64_t sum = 0;
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        if (account->chip_us[owner] < 0)
            return false;
        sum += account->chip_us[owner];
    }
    return sum == account->wanted_chip_us && account->chips >= 0;
}
