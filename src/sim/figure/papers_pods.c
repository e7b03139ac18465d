/* papers_pods.c - figures of optically switched pods: availability, goodput, one switch out. */
#include <math.h>

#include "base/check.h"
#include "core/fabric/bound.h"
#include "core/fabric/collective.h"
#include "core/fabric/prove.h"
#include "sim/capacity/availability.h"
#include "sim/figure/papers_private.h"

enum { POD_CUBES = 64, HOSTS = 3 };
static const double hosts[HOSTS] = {.99, .995, .999};

/* Begins a figure over slices of 1 to POD_CUBES cubes. For each host availability it has a line with optical
 * switches, a dashed line for a static pod, and the values that a paper quotes. */
static void begin_pod_figure(struct figure *figure, const char *x_label)
{
    static const char *const names[2][HOSTS] = {{"ocs_0.99", "ocs_0.995", "ocs_0.999"},
                                                {"static_0.99", "static_0.995", "static_0.999"}};
    figure->x_label = x_label;
    figure_add_column(figure, "cubes", FIGURE_HIDDEN, 0);
    for (int i = 0; i < 2 * HOSTS; i++)
        figure_add_column(figure, names[i / HOSTS][i % HOSTS], i < HOSTS ? FIGURE_LINE : FIGURE_DASHED, 4);
    figure_add_column(figure, "quoted", FIGURE_QUOTED, 2);
}

void paper_availability(const struct papers_input *input, struct figure *figure)
{
    figure->title = "How often a slice finds its cubes in a pod of 64";
    figure->y_label = "probability";
    figure->y_high = 1.02;
    begin_pod_figure(figure, "cubes of the slice");
    for (uint32_t slice = 1; slice <= POD_CUBES; slice++) {
        figure_add(figure, slice);
        for (int i = 0; i < HOSTS; i++)
            figure_add(figure, availability_exact(POD_CUBES, slice, hosts[i]).slice);
        for (int i = 0; i < HOSTS; i++)
            figure_add(figure, availability_exact(POD_CUBES, slice, hosts[i]).slice_static);
        figure_add(figure, slice == 50 ? .94 : NAN);
    }
    figure_add_note(
        figure,
        "Hosts up with 0.99, 0.995 and 0.999. Quoted: about 94 %% up to 50 cubes (0.99 gives %.1f "
        "%%, without link failures).",
        100 * availability_exact(POD_CUBES, 50, .99).slice);
    figure_add_note(
        figure,
        "All 48 switches are up with %.2f %%, all but one with %.4f %%, each with 99.98 %%; quoted: "
        "99.98 %% when one may be out.",
        100 * availability_switches(.9998, 0), 100 * availability_switches(.9998, 1));
}

void paper_goodput(const struct papers_input *input, struct figure *figure)
{
    figure->title = "Share of a pod that works in slices of one size";
    figure->y_label = "goodput";
    figure->y_high = 1;
    begin_pod_figure(figure, "cubes of a slice");
    for (uint32_t slice = 1; slice <= POD_CUBES; slice++) {
        figure_add(figure, slice);
        for (int i = 0; i < HOSTS; i++)
            figure_add(figure, availability_exact(POD_CUBES, slice, hosts[i]).goodput);
        for (int i = 0; i < HOSTS; i++)
            figure_add(figure, availability_exact(POD_CUBES, slice, hosts[i]).goodput_static);
        figure_add(figure, slice == 32 ? .5 : slice == 48 ? .75 : NAN);
    }
    figure_add_note(figure,
                    "Quoted: 50 %% at 2,048 chips (32 cubes) and 75 %% at 3,072 (48): the rest is spares.");
}

/* --- one switch out ------------------------------------------------------------------------------------- */

struct switch_load {
    uint32_t all_to_all; /* load of the busiest link */
    uint64_t all_reduce_ns;
};

/* Builds and proves tables for the live links, and returns what traffic costs on them. */
static struct switch_load load_of(const struct torus *torus)
{
    static const struct collective_rates rates = {.element_bytes = 4, .bytes_per_us = 50000, .hop_ns = 0};
    struct route route = {0};
    struct proof proof;
    struct collective_cost cost;
    struct error error = {0};
    CHECK(route_build(torus, &route, &error) == 0);
    CHECK(route_prove(torus, &route, &proof, NULL, &error) == 0);
    struct collective_plan plan = collective_plan(torus, COLLECTIVE_ALL_REDUCE, COLLECTIVE_ROTATED, 1 << 24);
    collective_cost(&plan, &route, &rates, &cost);
    route_done(&route);
    return (struct switch_load){.all_to_all = proof.load_max, .all_reduce_ns = cost.ns};
}

static void switch_row(struct figure *figure, const char *shape_text, uint32_t axis)
{
    struct slice_shape shape;
    struct torus torus;
    CHECK(slice_shape_parse(str_from(shape_text), &shape, NULL) == 0);
    torus_init(&torus, &shape);
    struct switch_load whole = load_of(&torus);
    uint64_t bound = load_bound_ceiling(torus_load_bound(&torus));
    torus_kill_switch(&torus, (struct pod_switch){.axis = (uint8_t)axis, .index = 5});
    struct switch_load out = load_of(&torus);
    struct str family = str_from(shape_text), sizes = family, rest;
    bool twisted = str_cut(family, '-', &sizes, &rest);
    figure_add_word(figure, STR_FORMAT "%s %c", STR_ARG(sizes), twisted ? "t" : "", "xyz"[axis]);
    figure_add(figure, (double)bound);
    figure_add(figure, whole.all_to_all);
    figure_add(figure, out.all_to_all);
    figure_add(figure, 100.0 * whole.all_to_all / out.all_to_all);
    figure_add(figure, 100.0 * (double)whole.all_reduce_ns / (double)out.all_reduce_ns);
    figure_add(figure, 92.2);
    figure_add(figure, 101.7);
    figure_add(figure, 50);
    torus_done(&torus);
}

void paper_switch(const struct papers_input *input, struct figure *figure)
{
    figure->title = "Throughput that is kept with one optical switch out";
    figure->x_label = "shape and the axis of the switch";
    figure->y_label = "% of fault-free";
    figure->categories = true;
    figure->y_high = 110;
    figure_add_column(figure, "slice", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "bound", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "load", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "out", FIGURE_HIDDEN, 0);
    figure_add_column(figure, "all_to_all_%", FIGURE_BARS, 1);
    figure_add_column(figure, "all_reduce_%", FIGURE_BARS, 1);
    figure_add_column(figure, "quoted_min", FIGURE_DASHED, 1);
    figure_add_column(figure, "quoted_max", FIGURE_DASHED, 1);
    figure_add_column(figure, "quoted_ring", FIGURE_DASHED, 0);
    switch_row(figure, "4x4x4", 0);
    switch_row(figure, "4x4x8", 2);
    switch_row(figure, "4x4x8-twisted", 0);
    switch_row(figure, "4x8x8", 1);
    switch_row(figure, "4x8x8-twisted", 0);
    switch_row(figure, "8x8x8", 0);
    switch_row(figure, "8x8x16", 2);
    figure_add_note(
        figure, "Loads are of the busiest link when each chip sends one unit to each other, by tables that "
                "were built and proved now.");
    figure_add_note(figure, "Quoted: all-to-all keeps 92.2 to 101.7 %%, rings on the switch 50 %%.");
}
