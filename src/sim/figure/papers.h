/* papers.h - figures of published papers, from the models, with what the papers print beside.
 *
 * A figure is built by its name. One that needs a history of faults is given it; the others read nothing but
 * the models. Draws are by `seed`. Pure.
 *
 * Sources: "Revisiting Reliability in Large-Scale Machine Learning Research Clusters" (arXiv 2410.21680) for
 * mttf, ettr, contour, mix, loss and lemons; "TPU v4" (ISCA 2023) and "Resiliency at Scale" (NSDI 2024) for
 * availability, goodput and switch; InfiniteHBD-Trace for trace.
 */
#ifndef PHX_SIM_FIGURE_PAPERS_H
#define PHX_SIM_FIGURE_PAPERS_H

#include "sim/figure/figure.h"
#include "sim/model/fault_trace.h"

struct papers_input {
    const struct fault_trace *trace; /* NULL: there is none */
    uint32_t trace_machines;         /* in all */
    uint64_t seed;
};
struct paper_figure {
    const char *name, *brief;
    bool needs_trace;
    void (*build)(const struct papers_input *input, struct figure *figure); /* of a zeroed figure */
};

/* Returns all, in the order of the documents. */
const struct paper_figure *papers_all(uint32_t *ret_count);
/* Builds one; figure_done() frees it. A figure that needs a trace is given one. */
void papers_build(const struct paper_figure *paper, const struct papers_input *input,
                  struct figure *ret_figure);

#endif
