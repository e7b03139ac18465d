/* gamma.h - the distribution of a gamma variable of rate 1, and its quantiles; private to sim/model.
 *
 * gamma_below() is P(shape, x), the regularised lower incomplete gamma function, and gamma_above() is Q = 1 -
 * P. The smaller one of the two is computed directly, so that small tails keep their digits. The relative
 * error is about 1e-12 for shapes up to 1e5 and 1e-8 up to 1e9. Sources: Abramowitz and Stegun 6.5.29
 * (series) and 6.5.31 (continued fraction, by Lentz's method); Stirling's series in front of both for large
 * shapes.
 */
#ifndef PHX_SIM_MODEL_GAMMA_H
#define PHX_SIM_MODEL_GAMMA_H

/* shape > 0, x >= 0. */
double gamma_below(double shape, double x);
double gamma_above(double shape, double x);
/* Return the x with P(shape, x) = probability, or Q(shape, x) = probability; probability is in (0, 1). */
double gamma_quantile_below(double shape, double probability);
double gamma_quantile_above(double shape, double probability);

#endif
