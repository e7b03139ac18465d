#include "cmd/log_walk.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"

bool log_limits_parse(const char *text, struct log_limits *limits)
{
    int64_t number;
    if (time_parse(str_from(text), &limits->until_ns))
        return true;
    if (!str_to_i64(str_from(text), 1, INT64_MAX, &number))
        return false;
    limits->until_seq = (uint64_t)number;
    return true;
}

int log_walk_begin(const struct log_store *log, const struct log_limits *limits, struct core *core,
                   struct error *error)
{
    struct store_stats stats;
    int rc = log->stats(log->context, &stats, error);
    return rc < 0 || stats.first_seq <= 1 ? rc : controller_load(log, limits->until_seq, core, error);
}

struct log_walk {
    controller_replay_step *seen;
    void *context;
    uint64_t last, shown; /* last record of the log; record shown last */
};

static void log_walk_step(void *context, struct core *core, const struct event *event,
                          const struct effects *effects)
{
    struct log_walk *walk = context;
    walk->seen(walk->context, core, event, effects);
    if (event->seq - walk->shown <= walk->last / 100)
        return;
    walk->shown = event->seq;
    fprintf(stderr, "\rrecord %" PRIu64 " of %" PRIu64, event->seq, walk->last);
}

int log_walk(const struct log_store *log, const struct log_limits *limits, bool bar, struct core *core,
             controller_replay_step *seen, void *context, struct error *error)
{
    struct log_walk walk = {seen, context, log->ends(log->context).last, 0};
    int rc = controller_apply(log, limits->until_seq, limits->until_ns, core, bar ? log_walk_step : seen,
                              bar ? &walk : context, error);
    if (walk.shown)
        fprintf(stderr, "\r%*s\r", 50, "");
    return rc;
}
