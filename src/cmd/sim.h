/* sim.h - the reports and figures of `phalanx sim` (cmd_sim.c). */
#ifndef PHX_CMD_SIM_H
#define PHX_CMD_SIM_H

#include "sim/capacity/study.h"

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

/* Appends one JSON object: the cluster document, JobSets and failures with which real machines can reproduce
 * the scenario, which must be planned (sim_scenario_is_planned). */
void sim_plan_json(struct json_writer *json, const struct sim_scenario *scenario);

/* Append the outcome of a study of several seeds or points: means, and their confidence intervals. */
void sim_study_text(struct buf *out, const struct study *study, uint64_t seed);
void sim_study_json(struct json_writer *json, const struct study *study, uint64_t seed);
/* Appends both points of a study that study_read_beside read: the settings that differ, and every figure of
 * both with the difference. `history` (NULL: none) is the trace that was played; its recorded outcomes are
 * shown too. */
void sim_compare(struct buf *out, const struct study *study, const struct history *history, uint64_t seed,
                 bool as_json);
/* Appends an SVG: ETTR by the first swept field, a line for each value of the others; without a sweep, ETTR
 * by seed. */
void sim_study_picture(struct buf *out, const struct study *study);

#endif
