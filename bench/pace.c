/* bench/pace - windows of pace: what one of 65,536 ranks costs the controller's loop, how soon a slow rank is
 * found, and how often one is found that is not there. The limit of a window is a sort of its numbers. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"
#include "core/pace/pace.h"

#include "timing.h"

enum { MANY = 65536, FEW = 64, RUNS = 15, WINDOWS = 10000, STEP_US = 100000 };

static struct rng rng;

/* Twelve uniform numbers: close to normal. */
static uint32_t noisy(uint32_t value, uint32_t permille)
{
    int64_t sum = -6000;
    for (int i = 0; i < 12; i++)
        sum += (int64_t)rng_below(&rng, 1001);
    return (uint32_t)((int64_t)value + (int64_t)value * sum / 1000 * permille / 1000);
}

static size_t slow_of(struct pace *pace, const uint32_t *own_us, uint32_t count)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct pace_finding *findings;
    size_t slow = 0, found = pace_window(pace, 0, own_us, count, &count, 1, &arena, &findings);
    for (size_t i = 0; i < found; i++)
        slow += findings[i].slow;
    return slow;
}

static void bench_cost(void)
{
    static uint32_t own_us[MANY];
    static int64_t sorted[MANY];
    int64_t times[RUNS], sorts[RUNS];
    struct pace pace = {0};
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < MANY; i++)
            sorted[i] = own_us[i] = noisy(STEP_US, 50);
        int64_t begin_ns = now_ns();
        slow_of(&pace, own_us, MANY);
        times[run] = now_ns() - begin_ns;
        begin_ns = now_ns();
        qsort(sorted, MANY, sizeof *sorted, ascending_ns);
        sorts[run] = now_ns() - begin_ns;
    }
    pace_done(&pace);
    qsort(times, RUNS, sizeof *times, ascending_ns);
    qsort(sorts, RUNS, sizeof *sorts, ascending_ns);
    double ms = (double)times[RUNS / 2] / NS_PER_MS, limit = (double)sorts[RUNS / 2] / NS_PER_MS;
    printf(
        "{\"bench\":\"pace\",\"case\":\"a window of %d ranks\",\"value\":%.3f,\"unit\":\"ms\",\"limit\":%.3f,"
        "\"ratio_limit\":%.2f}\n",
        MANY, ms, limit, ms / limit);
}

/* Windows until a rank that is slower by `permille` is found, at most and in 200 lives. */
static void bench_detection(uint32_t permille)
{
    int most = 0;
    for (int life = 0; life < 200; life++) {
        struct pace pace = {0};
        uint32_t own_us[FEW], slow = (uint32_t)rng_below(&rng, FEW);
        for (int window = 1; window <= 100; window++) {
            for (uint32_t i = 0; i < FEW; i++)
                own_us[i] = noisy(i == slow ? STEP_US / 1000 * permille : STEP_US, 10);
            if (slow_of(&pace, own_us, FEW) == 0)
                continue;
            most = window > most ? window : most;
            break;
        }
        CHECK(pace.ranks[slow].slow);
        pace_done(&pace);
    }
    printf(
        "{\"bench\":\"pace\",\"case\":\"slower by %u.%02u: windows until it is found, at most\",\"value\":%d,"
        "\"unit\":\"windows\",\"limit\":3,\"ratio_limit\":%.2f}\n",
        permille / 1000, permille % 1000 / 10, most, most / 3.0);
}

static void bench_noise(uint32_t permille)
{
    struct pace pace = {0};
    uint32_t own_us[FEW];
    size_t alarms = 0;
    for (int window = 0; window < WINDOWS; window++) {
        for (uint32_t i = 0; i < FEW; i++)
            own_us[i] = noisy(STEP_US, permille);
        alarms += slow_of(&pace, own_us, FEW);
    }
    pace_done(&pace);
    printf(
        "{\"bench\":\"pace\",\"case\":\"%u %% noise: false alarms in %d windows of %d ranks\",\"value\":%zu,"
        "\"unit\":\"alarms\"}\n",
        permille / 10, WINDOWS, FEW, alarms);
}

int main(void)
{
    rng_seed(&rng, 1);
    bench_cost();
    bench_detection(1350);
    bench_detection(1500);
    bench_detection(2000);
    bench_noise(10);
    bench_noise(50);
    bench_noise(100);
    return 0;
}
