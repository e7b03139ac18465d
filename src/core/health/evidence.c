#include "core/health/evidence.h"

#include "base/check.h"

int64_t evidence_span_ns(int64_t lease_ns)
{
    CHECK(lease_ns > 0 && lease_ns <= INT64_MAX / 2);
    return lease_ns + lease_ns / 10;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t evidence_silent_at(const struct evidence *evidence, int64_t lease_ns)
{
    int64_t granted_ns = later(evidence->granted_ns, evidence->granted_before_ns);
    return later(evidence->renewed_ns + evidence_span_ns(lease_ns), granted_ns);
}

bool evidence_is_silent(const struct evidence *evidence, int64_t lease_ns, int64_t mono_ns)
{
    return evidence_silent_at(evidence, lease_ns) <= mono_ns;
}

void evidence_granted(struct evidence *evidence, const struct lease_grant *grant, int64_t lease_ns)
{
    CHECK(grant->left_ns >= 0 && grant->number >= evidence->grant);
    if (grant->number != evidence->grant) {
        evidence->granted_before_ns = later(evidence->granted_before_ns, evidence->granted_ns);
        evidence->granted_ns = 0;
        evidence->grant = grant->number;
    }
    CHECK(evidence->grant == grant->number);
    int64_t until_ns = evidence->renewed_ns + evidence_span_ns(lease_ns + grant->left_ns);
    if (grant->left_ns > 0)
        evidence->granted_ns = later(evidence->granted_ns, until_ns);
}

void evidence_owed(struct evidence *evidence, int64_t owed_ns, int64_t lease_ns, int64_t mono_ns)
{
    CHECK(owed_ns >= 0);
    if (owed_ns > 0)
        evidence->granted_before_ns =
            later(evidence->granted_before_ns, mono_ns + evidence_span_ns(lease_ns + owed_ns));
}

void evidence_counted(struct evidence *evidence, uint64_t number)
{
    evidence->counted = number;
    if (number == evidence->grant)
        evidence->granted_before_ns = 0;
}

bool evidence_is_older(const struct evidence *evidence, const struct hello *hello, int64_t lease_ns,
                       int64_t mono_ns)
{
    bool older = hello->incarnation != evidence->incarnation ? hello->incarnation < evidence->incarnation
                                                             : hello->connection < evidence->connection;
    return older && (evidence->connected || !evidence_is_silent(evidence, lease_ns, mono_ns));
}

/* Whether the controller has received the tether of the newest connection, which the machine's tasks hold. */
static bool own_tether_heard(const struct evidence *evidence)
{
    return evidence->tether_incarnation == evidence->incarnation &&
           evidence->tether_connection == evidence->connection;
}

static void disconnected(struct evidence *evidence)
{
    if (evidence->connected)
        evidence->tether_blind |= !own_tether_heard(evidence);
    evidence->connected = false;
}

void evidence_hello(struct evidence *evidence, const struct hello *hello, int64_t mono_ns)
{
    disconnected(evidence);
    evidence->connected = true;
    evidence->incarnation = hello->incarnation;
    evidence->connection = hello->connection;
    evidence->renewed_ns = mono_ns;
}

void evidence_renew(struct evidence *evidence, int64_t mono_ns)
{
    evidence->renewed_ns = mono_ns;
}

void evidence_dropped(struct evidence *evidence)
{
    disconnected(evidence);
}

void evidence_tether_opened(struct evidence *evidence, const struct hello *hello, int64_t stamp_ns)
{
    CHECK(evidence->tethers < UINT32_MAX);
    evidence->tether_incarnation = hello->incarnation;
    evidence->tether_connection = hello->connection;
    if (evidence->tethers++ > 0)
        return;
    evidence->tether_since_ns = stamp_ns;
    evidence->tether_blind = false;
}

/* Whether tethers were open when the oldest task was told to start. If both happened at the same instant, the
 * order to start may have come first. */
static bool covers(const struct evidence *evidence, int64_t oldest_start_ns)
{
    bool tethered = evidence->tether_since_ns != 0 && !evidence->tether_blind && own_tether_heard(evidence);
    return oldest_start_ns == INT64_MAX || (tethered && oldest_start_ns > evidence->tether_since_ns);
}

static enum verdict judge(const struct evidence *evidence, int64_t oldest_start_ns)
{
    if (evidence->connected)
        return VERDICT_NONE;
    return evidence->tethers == 0 && covers(evidence, oldest_start_ns) ? VERDICT_GONE : VERDICT_AWAY;
}

enum verdict evidence_closed(struct evidence *evidence, bool proves, int64_t oldest_start_ns)
{
    disconnected(evidence);
    return proves ? judge(evidence, oldest_start_ns) : VERDICT_AWAY;
}

enum verdict evidence_tether_closed(struct evidence *evidence, bool proves, int64_t oldest_start_ns)
{
    CHECK(evidence->tethers > 0);
    evidence->tethers--;
    evidence->tether_blind |= !proves;
    return judge(evidence, oldest_start_ns);
}
