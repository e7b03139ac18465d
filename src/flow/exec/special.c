/* special.c - special functions that the C library lacks, in double. Formulas: NIST Digital Library of
 * Mathematical Functions, dlmf.nist.gov, by number. */
#include <math.h>

#include "flow/exec/custom.h"

/* Bernoulli numbers B2, B4, …, B20. */
static const double BERNOULLI[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                   -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};
enum { BERNOULLIS = sizeof BERNOULLI / sizeof *BERNOULLI };

double special_lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

/* 5.5.2 raises the argument until the asymptotic series 5.11.2 has full precision; 5.5.4 reflects. */
double special_digamma(double x)
{
    if (x <= 0 && floor(x) == x)
        return NAN;
    if (x < 0)
        return special_digamma(1 - x) - M_PI / tan(M_PI * (x - floor(x)));
    double sum = 0;
    for (; x < 10; x++)
        sum -= 1 / x;
    double square = 1 / (x * x), power = square;
    for (int k = 0; k < BERNOULLIS; k++, power *= square)
        sum -= BERNOULLI[k] / (2 * (k + 1)) * power;
    return sum + log(x) - 0.5 / x;
}

/* Euler and Maclaurin's sum, 25.2.9 for the Hurwitz function (25.11.5 integrated by parts). */
double special_zeta(double s, double q)
{
    enum { DIRECT = 12 };
    if (s == 1)
        return INFINITY;
    if (!(s > 1) || isnan(q))
        return NAN;
    if (q <= 0) {
        if (floor(q) == q)
            return INFINITY;
        if (floor(s) != s)
            return NAN;
    }
    double sum = 0;
    for (int k = 0; k < DIRECT || q < DIRECT; k++, q++) {
        double term = pow(q, -s);
        sum += term;
        if (q > 0 && term < 1e-18 * fabs(sum))
            return sum;
    }
    double power = pow(q, -s);
    sum += q * power / (s - 1) + power / 2;
    double factor = s * power / (2 * q); /* s (s + 1) … (s + 2k - 2) q^-(s + 2k - 1) / (2k)!, k = 1 first */
    for (int k = 1; k <= BERNOULLIS; k++) {
        sum += BERNOULLI[k - 1] * factor;
        factor *= (s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1) * (2.0 * k + 2) * q * q);
    }
    return sum;
}

/* 5.15.1: (-1)^(n + 1) n! zeta(n + 1, x). */
double special_polygamma(double n, double x)
{
    if (n == 0)
        return special_digamma(x);
    if (n < 0 || floor(n) != n || !(x > 0))
        return x == 0 && n > 0 && floor(n) == n ? INFINITY : NAN;
    double magnitude = tgamma(n + 1) * special_zeta(n + 1, x);
    return fmod(n, 2) == 0 ? -magnitude : magnitude;
}

/* Newton's steps with the second derivative (Halley) from Winitzki's approximation, "A handy approximation
 * for the error function and its inverse", 2008. */
double special_erf_inv(double x)
{
    if (isnan(x) || fabs(x) > 1)
        return NAN;
    if (fabs(x) == 1)
        return copysign(INFINITY, x);
    if (x == 0)
        return x;
    double magnitude = fabs(x), a = 0.147, logarithm = log1p(-x * x);
    double half = 2 / (M_PI * a) + logarithm / 2;
    double y = sqrt(sqrt(half * half - logarithm / a) - half);
    for (int k = 0; k < 4; k++) {
        double apart = magnitude > 0.5 ? (1 - magnitude) - erfc(y) : erf(y) - magnitude;
        double step = apart / (M_2_SQRTPI * exp(-y * y));
        y -= step / (1 + y * step);
    }
    return copysign(y, x);
}

/* The power series 10.25.2, all of whose terms are positive; beyond 30 the asymptotic one, 10.40.1. */
double special_bessel_i1e(double x)
{
    double magnitude = fabs(x), sum, term;
    if (isnan(x))
        return x;
    if (magnitude < 30) {
        term = sum = magnitude / 2;
        for (int k = 1; term > 1e-18 * sum; k++) {
            term *= magnitude * magnitude / (4.0 * k * (k + 1));
            sum += term;
        }
        return copysign(sum * exp(-magnitude), x);
    }
    term = sum = 1;
    for (int k = 1; k < 30 && fabs(term) > 1e-18; k++) {
        term *= -(4 - (2.0 * k - 1) * (2 * k - 1)) / (k * 8 * magnitude);
        sum += term;
    }
    return isinf(x) ? copysign(0, x) : copysign(sum / sqrt(2 * M_PI * magnitude), x);
}
