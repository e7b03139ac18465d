/* load_queues.c - spec.queues: the settings of admission (docs/queues.md). */
#include "core/model/load.h"

#define YEAR_NS (INT64_C(365) * 24 * 3600 * NS_PER_SECOND)
#define DAY_NS  (INT64_C(24) * 3600 * NS_PER_SECOND)

static void read_requeuing(struct loader *loader, const struct field *field, struct queue_settings *queues)
{
    static const char *const known[] = {"timestamp", "backoffLimitCount", "backoffBaseSeconds",
                                        "backoffMaxSeconds", NULL};
    struct field timestamp = field_get(field, "timestamp"), limit = field_get(field, "backoffLimitCount");
    struct field base = field_get(field, "backoffBaseSeconds"), most = field_get(field, "backoffMaxSeconds");
    int64_t base_s = 60, most_s = 3600;
    struct str text;
    load_object(loader, field, known);
    if (load_text(loader, &timestamp, &text)) {
        queues->creation_timestamp = str_is(text, "Creation");
        if (!queues->creation_timestamp && !str_is(text, "Eviction"))
            load_fail(loader, &timestamp, "FieldValueNotSupported",
                      "Unsupported value: \"" STR_FORMAT "\": supported values: \"Eviction\", \"Creation\"",
                      STR_ARG(load_excerpt(text)));
    }
    load_int(loader, &limit, 0, INT32_MAX, &queues->backoff_limit);
    load_int(loader, &base, 0, INT32_MAX, &base_s);
    load_int(loader, &most, 0, INT32_MAX, &most_s);
    if (most_s < base_s)
        load_fail(loader, &most, "FieldValueInvalid",
                  "Invalid value: must not be less than backoffBaseSeconds");
    queues->backoff_base_ns = base_s * NS_PER_SECOND;
    queues->backoff_max_ns = most_s * NS_PER_SECOND;
}

static void read_wait_for_pods(struct loader *loader, const struct field *field,
                               struct queue_settings *queues)
{
    static const char *const known[] = {"enable",         "timeout",           "recoveryTimeout",
                                        "blockAdmission", "requeuingStrategy", NULL};
    struct field enable = field_get(field, "enable"), timeout = field_get(field, "timeout");
    struct field recovery = field_get(field, "recoveryTimeout"), block = field_get(field, "blockAdmission");
    struct field requeuing = field_get(field, "requeuingStrategy");
    load_object(loader, field, known);
    load_bool(loader, &enable, &queues->wait_ready);
    queues->block_admission = false;
    load_bool(loader, &block, &queues->block_admission);
    load_duration(loader, &timeout, NS_PER_SECOND, YEAR_NS, &queues->ready_timeout_ns);
    load_duration(loader, &recovery, NS_PER_SECOND, YEAR_NS, &queues->recovery_timeout_ns);
    read_requeuing(loader, &requeuing, queues);
}

static void read_fair_sharing(struct loader *loader, const struct field *field, struct queue_settings *queues)
{
    static const char *const known[] = {"enable", "preemptionStrategies", NULL};
    struct field enable = field_get(field, "enable");
    struct field strategies = field_get(field, "preemptionStrategies");
    load_object(loader, field, known);
    load_bool(loader, &enable, &queues->fair);
    if (!load_list(loader, &strategies) || doc_len(strategies.doc) == 0)
        return;
    queues->strategy_count = 0;
    for (size_t i = 0; i < doc_len(strategies.doc); i++) {
        struct field item = field_at(&strategies, i);
        struct str text;
        if (!load_text(loader, &item, &text))
            continue;
        bool final = str_is(text, "LessThanOrEqualToFinalShare");
        if ((!final && !str_is(text, "LessThanInitialShare")) || queues->strategy_count == 2)
            load_fail(loader, &item, "FieldValueNotSupported",
                      "Unsupported value: \"" STR_FORMAT "\": supported values: "
                      "\"LessThanOrEqualToFinalShare\", \"LessThanInitialShare\"",
                      STR_ARG(load_excerpt(text)));
        else
            queues->strategies[queues->strategy_count++] =
                final ? FAIR_LESS_OR_EQUAL_FINAL : FAIR_LESS_INITIAL;
    }
}

void load_queues(struct loader *loader, const struct field *field)
{
    static const char *const known[] = {"minimumRunTime",   "maximumLifetime", "preemptionsPerRequeue",
                                        "waitForPodsReady", "fairSharing",     NULL};
    struct queue_settings *queues = &loader->cluster->queues;
    struct field run = field_get(field, "minimumRunTime"), life = field_get(field, "maximumLifetime");
    struct field victims = field_get(field, "preemptionsPerRequeue");
    struct field wait = field_get(field, "waitForPodsReady"), fair = field_get(field, "fairSharing");
    *queues = (struct queue_settings){
        .min_run_ns = 2 * 3600 * NS_PER_SECOND,
        .max_life_ns = 7 * DAY_NS,
        .ready_timeout_ns = 1800 * NS_PER_SECOND,
        .recovery_timeout_ns = -1,
        .backoff_limit = -1,
        .strategies = {FAIR_LESS_OR_EQUAL_FINAL, FAIR_LESS_INITIAL},
        .strategy_count = 2,
    };
    load_object(loader, field, known);
    load_duration(loader, &run, 0, YEAR_NS, &queues->min_run_ns);
    load_duration(loader, &life, 0, YEAR_NS, &queues->max_life_ns);
    load_int(loader, &victims, 0, INT32_MAX, &queues->victims_max);
    read_wait_for_pods(loader, &wait, queues);
    read_fair_sharing(loader, &fair, queues);
}
