/* custom.h - the custom calls that can be computed: functions of the CHLO dialect, "@mhlo.erf" and the like.
 * Private to src/flow/exec. special.c has the functions that the C library lacks.
 */
#ifndef PHX_FLOW_EXEC_CUSTOM_H
#define PHX_FLOW_EXEC_CUSTOM_H

#include "flow/ir/ir.h"

/* Returns whether interpret_custom computes this call with its operands and results. */
bool custom_known(const struct ir_op *op);

/* Logarithm of the absolute value of the gamma function, without C's global sign. */
double special_lgamma(double x);
/* Derivative of log gamma; NaN at 0, -1, -2, … as in XLA. */
double special_digamma(double x);
/* The n-th derivative of digamma, n ≥ 0 a whole number, at x > 0. For n > 0 it is infinite at 0 and NaN
 * below; NaN for any other n. */
double special_polygamma(double n, double x);
/* Hurwitz' zeta function, sum over k ≥ 0 of (k + q)^-s, for s > 1 and q > 0. */
double special_zeta(double s, double q);
/* The inverse of erf on [-1, 1]; NaN elsewhere. */
double special_erf_inv(double x);
/* exp(-|x|) times the modified Bessel function I1. */
double special_bessel_i1e(double x);

#endif
