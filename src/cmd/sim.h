/* sim.h - the parts of `phalanx sim` (cmd_sim.c): what is printed, and the figure. */
#ifndef PHX_CMD_SIM_H
#define PHX_CMD_SIM_H

#include "sim/capacity/capacity.h"

/* Appends tables of one outcome for people. */
void sim_report_text(struct buf *out, const struct sim_scenario *scenario,
                     const struct simulation_outcome *outcome);
/* Appends one JSON object. */
struct json_writer;
void sim_report_json(struct json_writer *json, const struct sim_scenario *scenario,
                     const struct simulation_outcome *outcome);
/* Appends an SVG: chips at work and machines out over time, and ETTR by the size of jobs. */
void sim_picture(struct buf *out, const struct sim_scenario *scenario,
                 const struct simulation_outcome *outcome);

#endif
