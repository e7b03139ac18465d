/* availability.h - how much of a pod works when hosts fail: closed forms, and the same by Monte-Carlo.
 *
 * A cube has 16 hosts and is whole when all of them are up: q = p^16 for hosts that are up with probability
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
 * functions of doubles and a seed; nothing of it is for the core.
 */
#ifndef PHX_SIM_CAPACITY_AVAILABILITY_H
#define PHX_SIM_CAPACITY_AVAILABILITY_H

#include <stdint.h>

#include "core/fabric/wiring.h"

struct availability {
    double slice, slice_static;     /* probability that a slice finds its cubes */
    double goodput, goodput_static; /* share of the pod */
};

/* The probability that k of `cubes` cubes are whole: ret_pmf[cubes + 1]. cubes <= POD_CUBES_MAX. */
void availability_distribution(uint32_t cubes, double host_up, double *ret_pmf);
/* Closed forms for slices of `slice` cubes, 1 to `cubes`. */
struct availability availability_exact(uint32_t cubes, uint32_t slice, double host_up);
/* The standard deviations of one draw: those of the mean of n draws are smaller by sqrt(n). */
struct availability availability_deviation(uint32_t cubes, uint32_t slice, double host_up);
/* The means of `trials` pods, for each of slices[count]. */
void availability_draw(uint32_t cubes, const uint32_t *slices, uint32_t count, double host_up,
                       uint32_t trials, uint64_t seed, struct availability *ret_means);

/* The most cubes that are whole together with at least this probability; 0: none. */
uint32_t availability_whole_cubes(uint32_t cubes, double host_up, double probability);
/* The least host_up with which `whole` of `cubes` cubes are whole with this probability. */
double availability_host_for(uint32_t cubes, uint32_t whole, double probability);
/* The probability that at most `out_max` of a pod's 48 switches are out; each is up with `switch_up`. */
double availability_switches(double switch_up, uint32_t out_max);

#endif
