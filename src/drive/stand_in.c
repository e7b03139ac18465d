#include "drive/stand_in.h"

#include "base/check.h"

void stand_in_busy(struct stand_in_clock *clock, int64_t now_ns)
{
    CHECK(now_ns > 0);
    if (!clock->busy_ns)
        clock->busy_ns = now_ns;
}

bool stand_in_due(const struct stand_in_clock *clock, int64_t now_ns)
{
    int64_t limit_ns = clock->limit_ns ? clock->limit_ns : STAND_IN_LIMIT_NS;
    int64_t due_ns =
        clock->round_ns ? clock->round_ns + STAND_IN_PERIOD_NS : clock->busy_ns + STAND_IN_LATE_NS;
    return clock->busy_ns != 0 && now_ns >= due_ns && now_ns - clock->busy_ns < limit_ns;
}

void stand_in_round(struct stand_in_clock *clock, int64_t now_ns)
{
    CHECK(clock->busy_ns != 0 && now_ns >= clock->round_ns);
    if (clock->round_ns && now_ns - clock->round_ns <= STAND_IN_GAP_NS)
        clock->attended_ns += now_ns - clock->round_ns;
    clock->round_ns = now_ns;
}

int64_t stand_in_turn(struct stand_in_clock *clock)
{
    int64_t attended_ns = clock->attended_ns;
    *clock = (struct stand_in_clock){.limit_ns = clock->limit_ns};
    return attended_ns;
}
