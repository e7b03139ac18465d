#include "core/health/lease_hold.h"

#include "base/check.h"
#include "core/words/limits.h"

void lease_hold_set(struct lease_hold *hold, int64_t until_ns, uint64_t seq, int64_t now_ns)
{
    CHECK(until_ns >= 0 && seq > 0);
    if (until_ns == hold->until_ns)
        return;
    hold->number = seq;
    hold->until_ns = until_ns;
    int64_t left_ns = until_ns - now_ns;
    if (until_ns != 0 && left_ns > hold->owed_ns)
        hold->owed_ns = left_ns;
    CHECK(lease_hold_fits(hold));
}

void lease_hold_boot(struct lease_hold *hold, uint64_t seq)
{
    CHECK(seq > 0);
    if (hold->owed_ns > 0)
        hold->number = seq;
}

void lease_hold_over(struct lease_hold *hold, uint64_t number)
{
    if (hold->number == number && hold->until_ns == 0)
        hold->owed_ns = 0;
}

struct lease_grant lease_hold_grant(const struct lease_hold *hold, int64_t stamp_ns)
{
    struct lease_grant grant = {.number = hold->number};
    if (hold->until_ns > stamp_ns)
        grant.left_ns = hold->until_ns - stamp_ns < hold->owed_ns ? hold->until_ns - stamp_ns : hold->owed_ns;
    CHECK(grant.left_ns >= 0 && grant.left_ns <= LEASE_HOLD_MAX_NS);
    return grant;
}

bool lease_hold_fits(const struct lease_hold *hold)
{
    bool bounded = hold->until_ns >= 0 && hold->owed_ns >= 0 && hold->owed_ns <= LEASE_HOLD_MAX_NS;
    return bounded && (hold->until_ns == 0 || hold->owed_ns > 0) && (hold->number > 0 || hold->owed_ns == 0);
}
