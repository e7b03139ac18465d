/* availability.h - how much of a pod works when hosts fail: closed forms, and a Monte-Carlo check.
 *
 * A cube has 16 hosts and is whole when all of them are up: q = p^16, where each host is up with probability
 * p, independently. Of a pod's C cubes H are whole, a binomial variable. A slice takes m cubes.
 *
 *   reconfigurable   switches join any whole cubes:     slice up  P(H >= m)
 *                                                       goodput   E[floor(H / m)] m / C
 *   static           cables join fixed groups of m:     slice up  p^(16 m)
 *                                                       goodput   floor(C / m) m p^(16 m) / C
 *
 * Goodput is the share of the pod's cubes that work in slices of m. Sources: "TPU v4" (ISCA 2023, section
 * 2.3), "Resiliency at Scale" (NSDI 2024, figure 1).
 *
 * The Monte-Carlo draws every host and counts groups; it shares no formula with the closed forms. Pure
 * functions of doubles and a seed, so not for the core.
 */
#ifndef PHX_SIM_CAPACITY_AVAILABILITY_H
#define PHX_SIM_CAPACITY_AVAILABILITY_H

#include <stdint.h>

#include "core/fabric/wiring.h"

struct availability {
    double slice, slice_static;     /* probability that a slice finds its cubes */
    double goodput, goodput_static; /* share of the pod */
};

/* Computes the probability that k of `cubes` cubes are whole: ret_pmf[cubes + 1]. cubes <= POD_CUBES_MAX. */
void availability_distribution(uint32_t cubes, double host_up, double *ret_pmf);
/* Returns the closed forms for slices of `slice` cubes, 1 to `cubes`. */
struct availability availability_exact(uint32_t cubes, uint32_t slice, double host_up);
/* Returns the standard deviations of one draw. Those of the mean of n draws are smaller by sqrt(n). */
struct availability availability_deviation(uint32_t cubes, uint32_t slice, double host_up);
/* Computes the means over `trials` random pods, for each of slices[count]. */
void availability_draw(uint32_t cubes, const uint32_t *slices, uint32_t count, double host_up,
                       uint32_t trials, uint64_t seed, struct availability *ret_means);

/* Returns the largest number of cubes that are whole at the same time with at least this probability, or
 * 0. */
uint32_t availability_whole_cubes(uint32_t cubes, double host_up, double probability);
/* Returns the least host_up with which `whole` of `cubes` cubes are whole with this probability. */
double availability_host_for(uint32_t cubes, uint32_t whole, double probability);
/* Returns the probability that at most `out_max` of a pod's 48 switches are out. Each is up with probability
 * `switch_up`. */
double availability_switches(double switch_up, uint32_t out_max);

#endif
