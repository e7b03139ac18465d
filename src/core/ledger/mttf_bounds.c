#include "core/ledger/mttf_bounds.h"

#include "base/check.h"

#define PPM         INT64_C(1000000)
#define QUANTILE_95 INT64_C(1644854) /* of the normal distribution, in millionths */

enum { SHAPES = 10 };
/* Quantiles of the gamma distribution of shapes 1 to 10, in millionths: for 0.05 and for 0.95. */
static const int64_t low_ppm[SHAPES] = {51293,   355362,  817691,  1366318, 1970150,
                                        2613015, 3285316, 3980823, 4695228, 5425406};
static const int64_t high_ppm[SHAPES] = {2995732,  4743865,  6295794,  7753657,  9153519,
                                         10513035, 11842396, 13148114, 14434650, 15705216};

static uint64_t square_root(unsigned __int128 square)
{
    unsigned __int128 root = 0;
    for (int bit = 63; bit >= 0; bit--) {
        unsigned __int128 next = root | (unsigned __int128)1 << bit;
        if (next * next <= square)
            root = next;
    }
    CHECK(root * root <= square);
    return (uint64_t)root;
}

/* Returns the quantile of a shape in millionths: shape * (1 - 1 / (9 shape) +- z / (3 sqrt(shape)))^3. */
static __int128 gamma_quantile_ppm(uint64_t shape, int sign)
{
    CHECK(shape > 0 && (sign == 1 || sign == -1));
    if (shape <= SHAPES)
        return sign > 0 ? high_ppm[shape - 1] : low_ppm[shape - 1];
    int64_t root_ppm = (int64_t)square_root((unsigned __int128)shape * PPM * PPM);
    __int128 factor = PPM - PPM / (__int128)(9 * shape) + sign * (__int128)QUANTILE_95 * PPM / (3 * root_ppm);
    CHECK(factor > 0 && factor < 2 * PPM);
    return factor * factor / PPM * factor / PPM * (__int128)shape;
}

struct ledger_bounds ledger_mttf_bounds(uint64_t failures, int64_t exposure_us)
{
    CHECK(exposure_us >= 0 && failures < UINT64_C(1) << 40);
    __int128 exposure = (__int128)exposure_us * PPM;
    struct ledger_bounds bounds = {.high_us = -1};
    bounds.low_us = (int64_t)(exposure / gamma_quantile_ppm(failures + 1, 1));
    if (failures > 0) {
        __int128 high = exposure / gamma_quantile_ppm(failures, -1);
        bounds.high_us = high > INT64_MAX ? INT64_MAX : (int64_t)high;
    }
    CHECK(bounds.high_us < 0 || bounds.low_us <= bounds.high_us);
    return bounds;
}
