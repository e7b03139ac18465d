#include "host/agent/values.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Converts to fixed point, so that no float reaches the core. */
static int64_t to_micro(double value)
{
    if (value > 9.2e12 || value < -9.2e12)
        return value > 0 ? INT64_MAX : INT64_MIN + 1;
    return llround(value * 1e6);
}

/* Returns whether the metric is a loss. A loss scale is not. */
static bool is_loss(struct str name)
{
    char lower[64];
    size_t len = name.len < sizeof lower - 1 ? name.len : sizeof lower - 1;
    for (size_t i = 0; i < len; i++)
        lower[i] = (char)tolower((unsigned char)name.data[i]);
    lower[len] = 0;
    return strstr(lower, "loss") && !strstr(lower, "scale");
}

void step_value(struct task_step *step, struct str name, double value)
{
    bool loss = is_loss(name);
    if (loss && !isfinite(value) && step->not_finite.len == 0) {
        step->not_finite = name;
        step->not_finite_step = step->step;
    }
    step->finite_loss = step->finite_loss || (loss && isfinite(value));
    if (!isnan(value) && step->metric_count < METRICS_MAX)
        step->metrics[step->metric_count++] = (struct step_metric){name, to_micro(value)};
}
