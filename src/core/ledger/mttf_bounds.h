/* mttf_bounds.h - confidence bounds of a measured mean time to failure.
 *
 * Failures are a Poisson process. After n of them in an exposure T, the mean time to failure lies between
 * T / G^-1(0.95; n + 1) and T / G^-1(0.05; n) with 90 % confidence, where G^-1 is the quantile of the gamma
 * distribution of that shape and rate 1. The bounds are computed in integers, so every machine and every
 * replay gets the same result: shapes up to 10 come from a table, larger ones from Wilson and Hilferty's
 * approximation, whose error is below 0.1 %. sim/model/rate.h computes exact bounds for any confidence.
 */
#ifndef PHX_CORE_LEDGER_MTTF_BOUNDS_H
#define PHX_CORE_LEDGER_MTTF_BOUNDS_H

#include <stdint.h>

enum { LEDGER_CONFIDENCE_PPM = 900000 };

struct ledger_bounds {
    int64_t low_us, high_us; /* high_us -1: unbounded, because nothing has failed */
};
/* Returns the bounds after `failures` in an exposure of at least 0. */
struct ledger_bounds ledger_mttf_bounds(uint64_t failures, int64_t exposure_us);

#endif
