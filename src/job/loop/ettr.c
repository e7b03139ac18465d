/* ettr.c - see ettr.h. Searches are by bisection on functions that are known to be monotone: slow and
 * sure. */
#include "job/loop/ettr.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

enum { HALVINGS = 200 }; /* enough for any pair of doubles */

#define SECONDS_PER_DAY 86400.0

double ettr_failures_per_s(double machines, double per_1000_machine_days)
{
    return machines * per_1000_machine_days / 1000 / SECONDS_PER_DAY;
}

double ettr_exact(const struct ettr_terms *terms)
{
    double rate = terms->failures_per_s;
    double segment = expm1(rate * (terms->interval_s + terms->write_s)) * exp(rate * terms->restart_s);
    return rate * terms->interval_s / ((1 + rate * terms->queue_s) * segment);
}

double ettr_linear(const struct ettr_terms *terms)
{
    double rate = terms->failures_per_s;
    double kept = 1 - rate * (terms->restart_s + terms->interval_s / 2);
    return kept / ((1 + rate * terms->queue_s) * (1 + terms->write_s / terms->interval_s));
}

/* --- the best interval ---------------------------------------------------------------------------------- */

/* The sign of the derivative of d / (e^(L (d + w)) - 1): that of 1 - e^-x - L d with x = L (d + w). */
static bool longer_is_better(const struct ettr_terms *terms, double interval_s)
{
    double rate = terms->failures_per_s;
    return -expm1(-rate * (interval_s + terms->write_s)) > rate * interval_s;
}

double ettr_best_interval(const struct ettr_terms *terms)
{
    double low = 0, high = 1 / terms->failures_per_s;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (longer_is_better(terms, middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}

double ettr_young_interval(const struct ettr_terms *terms)
{
    return sqrt(2 * terms->write_s / terms->failures_per_s);
}

double ettr_daly_interval(const struct ettr_terms *terms)
{
    double mttf_s = 1 / terms->failures_per_s, ratio = terms->write_s / (2 * mttf_s);
    if (ratio >= 1)
        return mttf_s;
    return sqrt(2 * terms->write_s * mttf_s) * (1 + sqrt(ratio) / 3 + ratio / 9) - terms->write_s;
}

static double ettr_with(const struct ettr_terms *terms, double interval_s, bool restart_too)
{
    struct ettr_terms tried = *terms;
    tried.interval_s = interval_s;
    if (restart_too)
        tried.restart_s = interval_s;
    return ettr_exact(&tried);
}

/* Where it is largest: a longer interval costs a longer restart too then, so its best is a shorter one. */
static double best_with_restart(const struct ettr_terms *terms)
{
    double low = 0, high = ettr_best_interval(terms);
    for (int i = 0; i < HALVINGS; i++) {
        double left = low + (high - low) / 3, right = high - (high - low) / 3;
        if (ettr_with(terms, left, true) < ettr_with(terms, right, true))
            low = left;
        else
            high = right;
    }
    return high;
}

double ettr_interval_for(const struct ettr_terms *terms, double ettr, int restart_too)
{
    assert(ettr > 0 && ettr < 1);
    double low = restart_too ? best_with_restart(terms) : ettr_best_interval(terms);
    double high = 1000 / terms->failures_per_s; /* where nothing is left */
    if (low <= 0)
        low = high * 1e-18; /* writes cost nothing: the shorter the better, but nothing is not an interval */
    if (ettr_with(terms, low, restart_too) < ettr)
        return 0;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (ettr_with(terms, middle, restart_too) >= ettr)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* --- bounds --------------------------------------------------------------------------------------------- */

/* P[a variable of Gamma(shape, rate 1) <= x] by its series, or by Lentz's continued fraction of the rest
 * where that converges faster (Abramowitz and Stegun 6.5.29 and 6.5.31). */
static double gamma_below(double shape, double x)
{
    if (x <= 0)
        return 0;
    int sign;
    double scale = exp(shape * log(x) - x - lgamma_r(shape, &sign));
    if (x < shape + 1) {
        double term = 1 / shape, sum = term;
        for (double k = 1; term > sum * 1e-17; k++)
            sum += term *= x / (shape + k);
        return sum * scale;
    }
    double b = x + 1 - shape, c = 1e300, d = 1 / b, fraction = d;
    for (double k = 1; k < 100000; k++) {
        double a = -k * (k - shape);
        b += 2;
        d = 1 / (a * d + b);
        c = b + a / c;
        fraction *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return 1 - scale * fraction;
}

static double gamma_quantile(double shape, double probability)
{
    double low = 0, high = shape + 1;
    while (gamma_below(shape, high) < probability)
        high *= 2;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (gamma_below(shape, middle) < probability)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void mttf_bounds(uint64_t failures, double exposure, double confidence, double *ret_low, double *ret_high)
{
    assert(confidence > 0 && confidence < 1);
    double tail = (1 - confidence) / 2, count = (double)failures;
    *ret_low = exposure / gamma_quantile(count + 1, 1 - tail);
    *ret_high = failures ? exposure / gamma_quantile(count, tail) : INFINITY;
}

double goodput_loss_chip_hours(double runtime_s, double chips)
{
    return fmin(runtime_s, 1800) * chips / 3600;
}
