/* ladder.c - the choice of the rung that answers a loss. */
#include "core/ladder/ladder.h"

#include "base/backoff.h"

#include <stdio.h>

void ladder_means_none(struct ladder_means *ret)
{
    *ret = (struct ladder_means){0};
    for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++)
        ret->lacks[rung] = "it cannot be done here";
}

/* --- uses ------------------------------------------------------------------------------------- */

uint32_t ladder_used(const struct ladder *ladder, enum rung rung, int64_t window_ns, int64_t now_ns)
{
    CHECK((unsigned)rung < RUNGS && window_ns >= 0);
    uint32_t count = 0;
    for (size_t i = 0; i < ladder->uses.len; i++)
        count += ladder->uses.items[i].rung == rung && now_ns - ladder->uses.items[i].at_ns < window_ns;
    return count;
}

uint32_t ladder_caused(const struct ladder *ladder, enum loss_cause cause, int64_t window_ns, int64_t now_ns)
{
    CHECK((unsigned)cause < LOSS_CAUSES && window_ns >= 0);
    uint32_t count = 0;
    for (size_t i = 0; i < ladder->uses.len; i++) {
        const struct ladder_use *use = &ladder->uses.items[i];
        count += use->cause == cause && !use->fell && now_ns - use->at_ns < window_ns;
    }
    return count;
}

int64_t ladder_backoff_ns(int32_t stalled)
{
    CHECK(stalled >= 0);
    if (stalled < 2)
        return 0;
    return backoff_wait(LADDER_BACKOFF_FIRST_NS, LADDER_BACKOFF_MAX_NS, (uint32_t)stalled - 2);
}

/* --- rungs that are passed over --------------------------------------------------------------- */

/* Returns why the rung cannot answer this kind of loss, or NULL if it can. */
static const char *unsuited(enum rung rung, const struct ladder_incident *incident)
{
    enum loss_cause cause = incident->cause;
    switch (rung) {
    case RUNG_RETRY:
        return incident->processes_live ? NULL : "a process was lost";
    case RUNG_RESTART_PROCESS:
        if (cause == LOSS_MACHINE)
            return "its machine is lost";
        if (cause == LOSS_EVICTED || cause == LOSS_SLOW)
            return "its machine is to be left";
        if (cause == LOSS_USER)
            return "its Pod was deleted";
        return incident->place_is_bad ? "its machine is to be avoided" : NULL;
    default:
        return NULL;
    }
}

/* Returns whether one more use would exceed the budget. */
static bool is_spent(const struct ladder_budget *budget, uint32_t used)
{
    return budget->given && used >= budget->count;
}

static bool say_spent(char *why, size_t size, const char *whose, const struct ladder_budget *budget,
                      uint32_t used)
{
    char window[24];
    if (!is_spent(budget, used))
        return false;
    duration_format(budget->window_ns, window);
    snprintf(why, size, "%s budget is used up, %u of %u in %s", whose, used, budget->count, window);
    return true;
}

/* Returns whether the answer exceeds the budget of its rung or of its cause, and then sets `why`. An incident
 * that falls to the next rung is not counted for its cause again. */
static bool is_over_budget(const struct ladder *ladder, const struct ladder_settings *settings,
                           const struct ladder_incident *incident, enum rung rung, char *why, size_t size)
{
    const struct ladder_budget *own = &settings->rungs[rung], *cause = &settings->causes[incident->cause];
    char whose[64];
    CHECK(rung > RUNG_NONE && rung < RUNG_REQUEUE);
    if (incident->again)
        return false;
    if (say_spent(why, size, "its", own, ladder_used(ladder, rung, own->window_ns, incident->now_ns)))
        return true;
    snprintf(whose, sizeof whose, "the %s", loss_name(incident->cause));
    return incident->below == RUNG_NONE &&
           say_spent(why, size, whose, cause,
                     ladder_caused(ladder, incident->cause, cause->window_ns, incident->now_ns));
}

/* Returns whether the rung is passed over, and then sets `why`. */
static bool is_passed(const struct ladder *ladder, const struct ladder_settings *settings,
                      const struct ladder_means *means, const struct ladder_incident *incident,
                      enum rung rung, char *why, size_t size)
{
    const char *reason = NULL;
    if (settings->off || !settings->allowed[rung])
        reason = "not allowed";
    else if (rung <= incident->below)
        reason = rung == incident->below ? "it did not help in its time" : "a coarser one is under way";
    else
        reason = unsuited(rung, incident);
    if (!reason && is_over_budget(ladder, settings, incident, rung, why, size))
        return true;
    if (!reason)
        reason = means->lacks[rung];
    if (reason)
        snprintf(why, size, "%s", reason);
    return reason != NULL;
}

static void add_passed(char *text, size_t size, enum rung rung, const char *why)
{
    size_t len = strlen(text);
    CHECK(len < size);
    snprintf(text + len, size - len, "%s%s: %s", len ? "; " : "", rung_name(rung), why);
}

void ladder_decide(const struct ladder *ladder, const struct ladder_settings *settings,
                   const struct ladder_means *means, const struct ladder_incident *incident,
                   struct ladder_decision *ret)
{
    CHECK(incident->cause > LOSS_NONE && incident->cause < LOSS_CAUSES && incident->below <= RUNG_REQUEUE);
    CHECK(ladder->stalled >= 0 && ladder->uses.len <= LADDER_USES_MAX);
    *ret = (struct ladder_decision){0};
    bool new = incident->below == RUNG_NONE && !incident->again;
    if (new && settings->no_progress_attempts > 0 && ladder->stalled >= settings->no_progress_attempts) {
        ret->no_progress = true;
        return;
    }
    ret->rung = RUNG_REQUEUE;
    for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++) {
        char why[LADDER_WHY_MAX] = "";
        if (!is_passed(ladder, settings, means, incident, (enum rung)rung, why, sizeof why)) {
            ret->rung = (enum rung)rung;
            break;
        }
        add_passed(ret->passed, sizeof ret->passed, (enum rung)rung, why);
    }
    ret->limit_ns = settings->limit_ns[ret->rung];
    ret->wait_ns = new ? ladder_backoff_ns(ladder->stalled) : 0;
    CHECK(ret->rung > incident->below || ret->rung == RUNG_REQUEUE);
    CHECK(ret->limit_ns >= 0 && ret->wait_ns >= 0);
}

/* --- events ----------------------------------------------------------------------------------- */

void ladder_loss(struct ladder *ladder, const struct ladder_incident *incident)
{
    enum loss_cause cause = incident->cause;
    CHECK(cause > LOSS_NONE && cause < LOSS_CAUSES && ladder->stalled >= 0);
    bool asked = cause == LOSS_EVICTED || cause == LOSS_SLOW || cause == LOSS_USER;
    if (ladder->progressed || incident->runs_long)
        ladder->stalled = 0;
    else if (!asked && ladder->stalled < INT32_MAX)
        ladder->stalled++;
    ladder->progressed = false;
}

void ladder_begin(struct ladder *ladder, const struct ladder_incident *incident,
                  const struct ladder_decision *decision)
{
    CHECK(!decision->no_progress && decision->rung > RUNG_NONE && decision->wait_ns >= 0);
    bool counts = !incident->again || ladder->rung != decision->rung;
    ladder->rung = (uint8_t)decision->rung;
    ladder->cause = (uint8_t)incident->cause;
    ladder->decided_ns = incident->now_ns;
    ladder->wait_ns = decision->wait_ns ? incident->now_ns + decision->wait_ns : 0;
    ladder->due_ns = decision->limit_ns ? incident->now_ns + decision->wait_ns + decision->limit_ns : 0;
    if (!counts)
        return;
    if (ladder->uses.len == LADDER_USES_MAX)
        vec_remove(&ladder->uses, 0);
    struct ladder_use use = {.at_ns = incident->now_ns,
                             .rung = ladder->rung,
                             .cause = ladder->cause,
                             .fell = incident->below > RUNG_NONE || incident->again};
    vec_push(&ladder->uses, use);
    CHECK(ladder->uses.len <= LADDER_USES_MAX);
}

bool ladder_stepped(struct ladder *ladder, int64_t step)
{
    CHECK(step >= -1 && ladder->rung < RUNGS);
    bool under_way = ladder->rung != RUNG_NONE;
    if (step > ladder->best_step) {
        ladder->best_step = step;
        ladder->progressed = true;
    }
    ladder_stop(ladder);
    return under_way;
}

void ladder_stop(struct ladder *ladder)
{
    ladder->rung = ladder->cause = 0;
    ladder->decided_ns = ladder->due_ns = ladder->wait_ns = 0;
    CHECK(ladder->best_step >= -1);
}

void ladder_done(struct ladder *ladder)
{
    vec_done(&ladder->uses);
}
