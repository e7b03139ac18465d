/* values.h - the numbers that a training program reports with a step: from libphalanx (clients.c) and from
 * the groups of its step pattern (steplines.c). All of them enter here, as doubles; behind it they are fixed
 * point.
 */
#ifndef PHX_HOST_AGENT_VALUES_H
#define PHX_HOST_AGENT_VALUES_H

#include "core/agent/message.h"

/* Adds a metric to the step. `name` is not copied. What is no number (NaN) is left out, what is too large is
 * cut, and METRICS_MAX are taken. A loss that is not finite is noted with the step's number. */
void step_value(struct task_step *step, struct str name, double value);

#endif
