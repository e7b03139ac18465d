/* papers.h - figures of published papers, computed from the models, beside the values that the papers print.
 *
 * A figure is built by its name. Some need a history of faults; the others read nothing but the models.
 * Random draws are determined by `seed`. No function does I/O.
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
    const struct fault_trace *trace; /* NULL: none */
    uint32_t trace_machines;         /* total number of machines */
    uint64_t seed;
};
struct paper_figure {
    const char *name, *brief;
    bool needs_trace;
    void (*build)(const struct papers_input *input, struct figure *figure); /* `figure` must be zeroed */
};

/* Returns all figures, in the order of the documentation. The array is static. */
const struct paper_figure *papers_all(uint32_t *ret_count);
/* Builds a figure; free it with figure_done(). input->trace must be set if the figure needs one. */
void papers_build(const struct paper_figure *paper, const struct papers_input *input,
                  struct figure *ret_figure);

#endif
