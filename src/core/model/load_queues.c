/* load_queues.c - reads spec.queues.fairSharing.preemptionStrategies, which is not in the policy's table
 * because it is a list. */
#include "core/model/load.h"

void load_queues(struct loader *loader, const struct field *field)
{
    struct queue_settings *queues = &loader->cluster->policy.queues;
    struct field fair = field_get(field, "fairSharing");
    struct field strategies = field_get(&fair, "preemptionStrategies");
    queues->strategies[0] = FAIR_LESS_OR_EQUAL_FINAL;
    queues->strategies[1] = FAIR_LESS_INITIAL;
    queues->strategy_count = 2;
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
