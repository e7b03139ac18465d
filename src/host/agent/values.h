/* values.h - the numbers that a training program reports with a step: from libphalanx (clients.c) and from
 * the groups of its step pattern (steplines.c). All enter here as doubles and are stored as fixed point.
 */
#ifndef PHX_HOST_AGENT_VALUES_H
#define PHX_HOST_AGENT_VALUES_H

#include "core/agent/message.h"

/* Adds a metric to the step. `name` is not copied. NaN is left out, values beyond the range of the fixed
 * point are clamped, and at most METRICS_MAX are taken. A loss that is not finite is noted with the step's
 * number. */
void step_value(struct task_step *step, struct str name, double value);

#endif
