/* Any bytes as the words of the recovery ladder, one a line: no crash; what is refused changes nothing and
 * says why; what is taken keeps to the limits, and decides. */
#include "core/ladder/ladder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_settings(const struct ladder_settings *settings)
{
    CHECK(settings->allowed[RUNG_REQUEUE] && settings->limit_ns[RUNG_REQUEUE] == 0);
    CHECK(settings->no_progress_attempts >= 0 && settings->no_progress_attempts <= LADDER_ATTEMPTS_MAX);
    for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++) {
        const struct ladder_budget *budget = &settings->rungs[rung];
        CHECK(settings->limit_ns[rung] > 0 && settings->limit_ns[rung] <= LADDER_LIMIT_MAX_NS);
        CHECK(!budget->given || (budget->count <= LADDER_BUDGET_MAX && budget->window_ns > 0));
    }
}

static void decide(const struct ladder_settings *settings)
{
    struct ladder ladder = {.best_step = -1};
    struct ladder_means means = {0};
    for (int cause = LOSS_NONE + 1; cause < LOSS_CAUSES; cause++) {
        struct ladder_incident incident = {.cause = (enum loss_cause)cause, .now_ns = NS_PER_SECOND};
        struct ladder_decision decision;
        ladder_decide(&ladder, settings, &means, &incident, &decision);
        CHECK(decision.no_progress || settings->allowed[decision.rung]);
        CHECK(!settings->off || decision.rung == RUNG_REQUEUE);
        if (!decision.no_progress)
            ladder_begin(&ladder, &incident, &decision);
    }
    ladder_done(&ladder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size}, line, theirs[LADDER_WORDS_ALL] = {0};
    struct ladder_settings settings, before;
    ladder_defaults(&settings);
    for (int word = 0; word < LADDER_WORDS_ALL; word++) {
        if (!str_cut(text, '\n', &line, &text)) {
            line = text;
            text.len = 0;
        }
        if (word >= LADDER_WORDS) {
            theirs[word] = line;
            continue;
        }
        struct error error = {0};
        before = settings;
        if (!ladder_take(&settings, (enum ladder_word)word, line, &error))
            CHECK(error.text[0] && memcmp(&before, &settings, sizeof before) == 0);
        check_settings(&settings);
    }
    ladder_take_theirs(&settings, theirs);
    check_settings(&settings);
    decide(&settings);
    return 0;
}
