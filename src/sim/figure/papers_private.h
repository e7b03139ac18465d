/* papers_private.h - builders of figures that papers.c lists and other files define; private to
 * sim/figure. */
#ifndef PHX_SIM_FIGURE_PAPERS_PRIVATE_H
#define PHX_SIM_FIGURE_PAPERS_PRIVATE_H

#include "sim/figure/papers.h"

/* papers_pods.c */
void paper_availability(const struct papers_input *input, struct figure *figure);
void paper_goodput(const struct papers_input *input, struct figure *figure);
void paper_switch(const struct papers_input *input, struct figure *figure);
/* papers_trace.c */
void paper_trace(const struct papers_input *input, struct figure *figure);

#endif
