#include "core/ledger/ledger.h"

#include "base/check.h"

const char *ledger_owner_name(enum ledger_owner owner)
{
    static const char *const names[LEDGER_OWNERS] = {
        "idle",   "down",       "queued",   "starting", "productive-unkept", "productive-kept",
        "redone", "restarting", "stopping", "spare",
    };
    CHECK((unsigned)owner < LEDGER_OWNERS && names[owner]);
    return names[owner];
}

static void integrate(struct ledger *ledger, int64_t now_us)
{
    CHECK(now_us >= ledger->since_us);
    int64_t elapsed_us = now_us - ledger->since_us;
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        ledger->chip_us[owner] += ledger->chips[owner] * elapsed_us;
        ledger->all_chip_us += ledger->chips[owner] * elapsed_us;
    }
    ledger->since_us = now_us;
}

void ledger_open(struct ledger *ledger, int64_t now_us)
{
    *ledger = (struct ledger){.since_us = now_us, .opened_us = now_us};
}

void ledger_move(struct ledger *ledger, int64_t chips, enum ledger_owner from, enum ledger_owner to,
                 int64_t now_us)
{
    CHECK((unsigned)from <= LEDGER_OWNERS && (unsigned)to <= LEDGER_OWNERS);
    integrate(ledger, now_us);
    CHECK(from != OWNER_QUEUED && to != OWNER_QUEUED && chips >= 0);
    if (from != LEDGER_OWNERS) {
        CHECK(ledger->chips[from] >= chips);
        ledger->chips[from] -= chips;
    }
    if (to != LEDGER_OWNERS)
        ledger->chips[to] += chips;
    CHECK(to == LEDGER_OWNERS || ledger->chips[to] >= chips);
}

static void account_integrate(struct ledger_account *account, int64_t now_us)
{
    CHECK(now_us >= account->since_us && (unsigned)account->owner < LEDGER_OWNERS);
    CHECK(account->chips >= 0);
    int64_t chip_us = account->chips * (now_us - account->since_us);
    account->chip_us[account->owner] += chip_us;
    account->wanted_chip_us += chip_us;
    account->since_us = now_us;
}

void ledger_account_open(struct ledger_account *account, enum ledger_owner owner, int64_t chips,
                         int64_t now_us)
{
    CHECK((unsigned)owner < LEDGER_OWNERS && owner != OWNER_IDLE && owner != OWNER_DOWN);
    CHECK(chips >= 0);
    *account =
        (struct ledger_account){.owner = owner, .chips = chips, .since_us = now_us, .opened_us = now_us};
}

void ledger_account_set(struct ledger_account *account, enum ledger_owner owner, int64_t chips,
                        int64_t now_us)
{
    CHECK((unsigned)owner < LEDGER_OWNERS);
    account_integrate(account, now_us);
    CHECK(chips >= 0 && owner != OWNER_IDLE && owner != OWNER_DOWN);
    account->owner = owner;
    account->chips = chips;
}

static int64_t reclassify(struct ledger_account *account, struct ledger *ledger, enum ledger_owner to,
                          int64_t now_us)
{
    CHECK(to == OWNER_KEPT || to == OWNER_REDONE);
    account_integrate(account, now_us);
    integrate(ledger, now_us);
    int64_t chip_us = account->chip_us[OWNER_UNKEPT];
    account->chip_us[OWNER_UNKEPT] = 0;
    account->chip_us[to] += chip_us;
    CHECK(ledger->chip_us[OWNER_UNKEPT] >= chip_us);
    ledger->chip_us[OWNER_UNKEPT] -= chip_us;
    ledger->chip_us[to] += chip_us;
    return chip_us;
}

void ledger_account_keep(struct ledger_account *account, struct ledger *ledger, int64_t now_us)
{
    reclassify(account, ledger, OWNER_KEPT, now_us);
}

int64_t ledger_account_lose(struct ledger_account *account, struct ledger *ledger, int64_t now_us)
{
    return reclassify(account, ledger, OWNER_REDONE, now_us);
}

int64_t ledger_account_regain(struct ledger_account *account, struct ledger *ledger, int64_t chip_us,
                              int64_t now_us)
{
    CHECK(chip_us >= 0);
    account_integrate(account, now_us);
    integrate(ledger, now_us);
    int64_t there = account->chip_us[OWNER_REDONE] < chip_us ? account->chip_us[OWNER_REDONE] : chip_us;
    CHECK(ledger->chip_us[OWNER_REDONE] >= there);
    account->chip_us[OWNER_REDONE] -= there;
    account->chip_us[OWNER_UNKEPT] += there;
    ledger->chip_us[OWNER_REDONE] -= there;
    ledger->chip_us[OWNER_UNKEPT] += there;
    return there;
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

bool ledger_balanced(const struct ledger *ledger)
{
    int64_t sum = 0;
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        if (ledger->chips[owner] < 0 || ledger->chip_us[owner] < 0)
            return false;
        sum += ledger->chip_us[owner];
    }
    return sum == ledger->all_chip_us && ledger->since_us >= ledger->opened_us;
}

bool ledger_account_balanced(const struct ledger_account *account)
{
    int64_t sum = 0;
    for (int owner = 0; owner < LEDGER_OWNERS; owner++)
        sum += account->chip_us[owner];
    return sum == account->wanted_chip_us && account->chips >= 0;
}
