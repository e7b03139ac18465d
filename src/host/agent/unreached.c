#include "host/agent/unreached.h"

#include "base/check.h"
#include "base/units.h"

bool unreached_says(struct unreached *unreached, int64_t now_ns)
{
    CHECK(now_ns > 0 && now_ns >= unreached->since_ns);
    if (unreached->since_ns == 0)
        *unreached = (struct unreached){.since_ns = now_ns, .say_ns = now_ns + NS_PER_SECOND};
    if (now_ns < unreached->say_ns)
        return false;
    int64_t ten_ns = unreached->since_ns + 10 * NS_PER_SECOND;
    unreached->say_ns = now_ns < ten_ns ? ten_ns : now_ns + 60 * NS_PER_SECOND;
    CHECK(unreached->say_ns > now_ns);
    return true;
}
