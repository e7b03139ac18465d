/* load_lemons.c - spec.settings.lemons: when a machine is called a lemon (docs/lemons.md). */
#include "core/model/load.h"

static const struct {
    const char *key;
    int64_t fallback, most;
} signals[LEMON_SIGNALS] = {
    [LEMON_SIGNAL_EXCLUSIONS] = {"exclJobidCount", 5, UINT16_MAX},
    [LEMON_SIGNAL_XIDS] = {"xidCnt", 10, UINT16_MAX},
    [LEMON_SIGNAL_TICKETS] = {"tickets", 3, UINT16_MAX},
    [LEMON_SIGNAL_OUTS] = {"outCount", 5, UINT16_MAX},
    [LEMON_SIGNAL_MULTI_NODE_FAILURES] = {"multiNodeNodeFails", 3, UINT16_MAX},
    [LEMON_SIGNAL_SINGLE_NODE_FAILURES] = {"singleNodeNodeFails", 3, UINT16_MAX},
    [LEMON_SIGNAL_FAILURE_RATE] = {"singleNodeNodeFailureRatePercent", 50, 100},
};

static void read_thresholds(struct loader *loader, const struct field *field, struct lemon_settings *lemons)
{
    const char *known[LEMON_SIGNALS + 1] = {NULL};
    for (int s = 0; s < LEMON_SIGNALS; s++)
        known[s] = signals[s].key;
    load_object(loader, field, known);
    for (int s = 0; s < LEMON_SIGNALS; s++) {
        struct field threshold = field_get(field, signals[s].key);
        lemons->thresholds[s] = signals[s].fallback;
        load_int(loader, &threshold, 0, signals[s].most, &lemons->thresholds[s]);
    }
}

void load_lemons(struct loader *loader, const struct field *field)
{
    static const char *const known[] = {"windowDays", "thresholds", "remove", NULL};
    struct lemon_settings *lemons = &loader->cluster->lemons;
    struct field window = field_get(field, "windowDays"), thresholds = field_get(field, "thresholds");
    struct field remove = field_get(field, "remove");
    *lemons = (struct lemon_settings){.window_days = LEMON_WINDOW_DAYS_MAX};
    load_object(loader, field, known);
    load_int(loader, &window, 1, LEMON_WINDOW_DAYS_MAX, &lemons->window_days);
    load_bool(loader, &remove, &lemons->remove);
    read_thresholds(loader, &thresholds, lemons);
}
