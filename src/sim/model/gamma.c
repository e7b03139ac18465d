/* gamma.c - see gamma.h. */
#include "sim/model/gamma.h"

#include <math.h>
#include <stdbool.h>

#include "base/check.h"

enum { TERMS_MAX = 10000000, STEPS_MAX = 400 };

/* Returns x^shape e^-x / Gamma(shape). For large shapes the two large logarithms cancel, so Stirling's series
 * gives their difference instead. */
static double gamma_front(double shape, double x)
{
    if (shape < 50) {
        int sign;
        return exp(shape * log(x) - x - lgamma_r(shape, &sign));
    }
    double off = (x - shape) / shape, square = shape * shape;
    double stirling = (1.0 / 12 - (1.0 / 360 - 1.0 / (1260 * square)) / square) / shape;
    return sqrt(shape / (2 * M_PI)) * exp(-shape * (off - log1p(off)) - stirling);
}

static double below_by_series(double shape, double x)
{
    double term = 1 / shape, sum = term;
    for (double k = 1; k < TERMS_MAX && term > sum * 1e-17; k++)
        sum += term *= x / (shape + k);
    return sum * gamma_front(shape, x);
}

static double above_by_fraction(double shape, double x)
{
    double b = x + 1 - shape, c = 1e300, d = 1 / b, fraction = d;
    for (double k = 1; k < TERMS_MAX; k++) {
        double a = -k * (k - shape);
        b += 2;
        d = 1 / (a * d + b);
        c = b + a / c;
        fraction *= d * c;
        if (fabs(d * c - 1) < 1e-15)
            break;
    }
    return fraction * gamma_front(shape, x);
}

double gamma_below(double shape, double x)
{
    CHECK(shape > 0);
    if (x <= 0)
        return 0;
    return x < shape + 1 ? below_by_series(shape, x) : 1 - above_by_fraction(shape, x);
}

double gamma_above(double shape, double x)
{
    CHECK(shape > 0);
    if (x <= 0)
        return 1;
    return x < shape + 1 ? 1 - below_by_series(shape, x) : above_by_fraction(shape, x);
}

/* Finds a quantile by Newton's steps inside a bracket that every evaluation narrows. `upper` inverts Q, which
 * falls. */
static double gamma_quantile(double shape, double probability, bool upper)
{
    CHECK(probability > 0 && probability < 1);
    double low = 0, high = shape + 1;
    while (upper ? gamma_above(shape, high) > probability : gamma_below(shape, high) < probability)
        high *= 2;
    double x = shape + 1.0 / 3 < high ? fmax(shape - 1.0 / 3, high / 4) : high / 2;
    for (int i = 0; i < STEPS_MAX && high - low > 1e-15 * high; i++) {
        double off = upper ? probability - gamma_above(shape, x) : gamma_below(shape, x) - probability;
        if (off < 0)
            low = x;
        else
            high = x;
        double slope = gamma_front(shape, x) / x;
        double next = slope > 0 ? x - off / slope : low;
        if (fabs(next - x) <= 1e-15 * x)
            break;
        x = next > low && next < high ? next : (low + high) / 2;
    }
    return x;
}

double gamma_quantile_below(double shape, double probability)
{
    return gamma_quantile(shape, probability, false);
}

double gamma_quantile_above(double shape, double probability)
{
    return gamma_quantile(shape, probability, true);
}
