#include "host/agent/values.h"

#include <math.h>

/* Fixed point, so that no float reaches the core. */
static int64_t to_micro(double value)
{
    if (value > 9.2e12 || value < -9.2e12)
        return value > 0 ? INT64_MAX : INT64_MIN + 1;
    return llround(value * 1e6);
}

void step_value(struct task_step *step, struct str name, double value)
{
    if (!isnan(value) && step->metric_count < METRICS_MAX)
        step->metrics[step->metric_count++] = (struct step_metric){name, to_micro(value)};
}
