#include "sim/capacity/availability.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

/* Computes the binomial distribution of `count` events, adding one event after another. */
static void binomial(uint32_t count, double probability, double *ret_pmf)
{
    ret_pmf[0] = 1;
    for (uint32_t n = 1; n <= count; n++) {
        ret_pmf[n] = ret_pmf[n - 1] * probability;
        for (uint32_t k = n - 1; k > 0; k--)
            ret_pmf[k] = ret_pmf[k] * (1 - probability) + ret_pmf[k - 1] * probability;
        ret_pmf[0] *= 1 - probability;
    }
}

void availability_distribution(uint32_t cubes, double host_up, double *ret_pmf)
{
    CHECK(cubes <= POD_CUBES_MAX && host_up >= 0 && host_up <= 1);
    binomial(cubes, pow(host_up, CUBE_MACHINES), ret_pmf);
}

/* Clamps a sum of probabilities, which may end an ulp above 1. */
static double at_most_one(double share)
{
    return share < 1 ? share : 1;
}

struct availability availability_exact(uint32_t cubes, uint32_t slice, double host_up)
{
    double pmf[POD_CUBES_MAX + 1];
    CHECK(slice >= 1 && slice <= cubes);
    availability_distribution(cubes, host_up, pmf);
    struct availability exact = {.slice_static = pow(host_up, (double)CUBE_MACHINES * slice)};
    for (uint32_t whole = slice; whole <= cubes; whole++) {
        exact.slice += pmf[whole];
        exact.goodput += pmf[whole] * (whole / slice * slice) / cubes;
    }
    exact.slice = at_most_one(exact.slice);
    exact.goodput = at_most_one(exact.goodput);
    exact.goodput_static = exact.slice_static * (cubes / slice * slice) / cubes;
    return exact;
}

static double deviation_of(double probability)
{
    return sqrt(probability * (1 - probability));
}

struct availability availability_deviation(uint32_t cubes, uint32_t slice, double host_up)
{
    double pmf[POD_CUBES_MAX + 1], square = 0;
    struct availability exact = availability_exact(cubes, slice, host_up);
    availability_distribution(cubes, host_up, pmf);
    for (uint32_t whole = 0; whole <= cubes; whole++) {
        double off = (double)(whole / slice * slice) / cubes - exact.goodput;
        square += pmf[whole] * off * off;
    }
    return (struct availability){.slice = deviation_of(exact.slice),
                                 .slice_static = deviation_of(exact.slice_static) / sqrt(cubes / slice),
                                 .goodput = sqrt(square),
                                 .goodput_static = deviation_of(exact.slice_static) *
                                                   sqrt((double)(cubes / slice)) * slice / cubes};
}

static bool draw_cube(struct rng *rng, double host_up)
{
    bool whole = true;
    for (int host = 0; host < CUBE_MACHINES; host++)
        whole = rng_unit(rng) < host_up && whole;
    return whole;
}

static void count_pod(const bool *whole, uint32_t cubes, uint32_t slice, struct availability *sums)
{
    uint32_t found = 0, groups = 0;
    for (uint32_t group = 0; group < cubes / slice; group++) {
        bool all = true;
        for (uint32_t i = 0; i < slice; i++)
            all = all && whole[group * slice + i];
        groups += all;
    }
    for (uint32_t cube = 0; cube < cubes; cube++)
        found += whole[cube];
    sums->slice += found >= slice;
    sums->slice_static += (double)groups / (cubes / slice);
    sums->goodput += (double)(found / slice * slice) / cubes;
    sums->goodput_static += (double)(groups * slice) / cubes;
}

void availability_draw(uint32_t cubes, const uint32_t *slices, uint32_t count, double host_up,
                       uint32_t trials, uint64_t seed, struct availability *ret_means)
{
    bool whole[POD_CUBES_MAX];
    struct rng rng;
    CHECK(cubes <= POD_CUBES_MAX && trials > 0);
    rng_seed(&rng, seed);
    for (uint32_t i = 0; i < count; i++)
        ret_means[i] = (struct availability){0};
    for (uint32_t trial = 0; trial < trials; trial++) {
        for (uint32_t cube = 0; cube < cubes; cube++)
            whole[cube] = draw_cube(&rng, host_up);
        for (uint32_t i = 0; i < count; i++)
            count_pod(whole, cubes, slices[i], &ret_means[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        ret_means[i].slice /= trials;
        ret_means[i].slice_static /= trials;
        ret_means[i].goodput /= trials;
        ret_means[i].goodput_static /= trials;
    }
}

uint32_t availability_whole_cubes(uint32_t cubes, double host_up, double probability)
{
    double pmf[POD_CUBES_MAX + 1], sum = 0;
    availability_distribution(cubes, host_up, pmf);
    for (uint32_t whole = cubes; whole > 0; whole--)
        if ((sum += pmf[whole]) >= probability)
            return whole;
    return 0;
}

double availability_host_for(uint32_t cubes, uint32_t whole, double probability)
{
    double low = 0, high = 1;
    CHECK(whole <= cubes && probability < 1);
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (availability_whole_cubes(cubes, middle, probability) >= whole)
            high = middle;
        else
            low = middle;
    }
    return high;
}

double availability_switches(double switch_up, uint32_t out_max)
{
    double pmf[POD_SWITCHES + 1], sum = 0;
    CHECK(out_max <= POD_SWITCHES);
    binomial(POD_SWITCHES, switch_up, pmf);
    for (uint32_t out = 0; out <= out_max; out++)
        sum += pmf[POD_SWITCHES - out];
    return at_most_one(sum);
}
