#include "core/lemon/history.h"

#include "core/step.h"

/* The parts of a core's step that lemons need: time and settings. */
struct lemon_history {
    struct cluster cluster;
    struct step step;
};

struct lemon_history *lemon_history_new(const struct lemon_settings *settings)
{
    struct lemon_history *history = mem_alloc(sizeof(*history));
    history->cluster = (struct cluster){.policy.lemons = *settings};
    history->step = (struct step){.cluster = &history->cluster, .lemons = lemon_store_new()};
    return history;
}

void lemon_history_free(struct lemon_history *history)
{
    if (!history)
        return;
    lemon_store_free(history->step.lemons);
    mem_free(history);
}

void lemon_history_at(struct lemon_history *history, int64_t now_ns)
{
    CHECK(now_ns >= history->step.now_ns);
    history->step.now_ns = now_ns;
    history->step.seq++;
    lemon_tick(&history->step);
}

void lemon_history_failed(struct lemon_history *history, struct str name)
{
    const struct machine machine = {.name = name};
    lemon_count(&history->step, &machine, LEMON_OUT);
    lemon_count(&history->step, &machine, LEMON_MULTI_NODE_FAILURE);
}

bool lemon_history_next(struct lemon_history *history, struct str *ret_machine)
{
    struct lemon_verdict verdict;
    while (lemon_next_verdict(&history->step, &verdict))
        if (verdict.turned && verdict.lemon->is_lemon) {
            *ret_machine = verdict.lemon->machine;
            return true;
        }
    return false;
}

const struct lemon_store *lemon_history_store(const struct lemon_history *history)
{
    return history->step.lemons;
}
