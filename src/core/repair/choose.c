/* choose.c - the choice of the next action. */
#include "core/repair/internal.h"

#include <stdio.h>

int hook_rank(const struct repair_settings *settings, struct str action)
{
    for (size_t i = 0; i < settings->hook_count; i++)
        if (str_equal(settings->hooks[i].action, action))
            return (int)i;
    return -1;
}

bool hook_clears(const struct repair_settings *settings, int rank, const struct fault *fault)
{
    CHECK(rank < (int)settings->hook_count);
    int asked = hook_rank(settings, fault->remedy);
    return asked >= 0 && asked <= rank && fault->level != LEVEL_MANUALLY_SEPARATE;
}

static bool has_code(const struct repair *repair, struct str code)
{
    for (size_t i = 0; i < repair->code_count; i++)
        if (str_equal(repair->codes[i], code))
            return true;
    return false;
}

size_t take_codes(const struct step *step, struct repair *repair)
{
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    size_t count = health_blocking(step->health, repair->subject, faults);
    for (size_t i = 0; i < count && repair->code_count < REPAIR_CODES_MAX; i++)
        if (!has_code(repair, faults[i]->code))
            repair->codes[repair->code_count++] = arena_str(&repair->text, faults[i]->code);
    CHECK(count == 0 || repair->code_count > 0);
    return count;
}

static bool share_code(const struct repair *a, const struct repair *b)
{
    for (size_t i = 0; i < a->code_count; i++)
        if (has_code(b, a->codes[i]))
            return true;
    return false;
}

/* Counts recent successful uses of the hook on this machine for one of the repair's codes. For a hook that
 * reboots, uses of any such hook count. */
static int64_t times_done(const struct step *step, const struct repair *repair,
                          const struct repair_hook *hook)
{
    const struct repairs *repairs = step->repairs;
    int64_t since_ns = step->now_ns - step->cluster->policy.repair.recall_ns, times = 0;
    for (size_t i = 0; i < repairs->all.len; i++) {
        const struct repair *other = repairs->all.items[i];
        if (!str_equal(other->subject, repair->subject) || !share_code(repair, other))
            continue;
        for (size_t k = 0; k < other->attempt_count; k++) {
            const struct repair_attempt *attempt = &other->attempts[k];
            bool same = hook->reboots ? attempt->reboots : str_equal(attempt->action, hook->action);
            times += same && !attempt->test && attempt->outcome == REPAIR_OK && attempt->ended_ns >= since_ns;
        }
    }
    return times;
}

static struct choice ticket(const char *why, struct str what)
{
    struct choice choice = {.rank = -1};
    snprintf(choice.why, sizeof(choice.why), "%s" STR_FORMAT, why, STR_ARG(what));
    return choice;
}

static struct choice question(struct str code)
{
    struct choice choice = {.rank = -1};
    snprintf(choice.why, sizeof(choice.why),
             "the fault table has no row for " STR_FORMAT ": set spec.done if the machine is fine, or the "
             "spec.action that it needs",
             STR_ARG(code));
    return choice;
}

/* Returns the hardest action that the faults ask for, at least that of `rank`; or a ticket if a fault needs a
 * person. */
static struct choice by_faults(const struct step *step, struct fault **faults, size_t count, int rank)
{
    const struct repair_settings *settings = &step->cluster->policy.repair;
    struct choice choice = {.rank = rank};
    for (size_t i = 0; i < count; i++) {
        int asked = hook_rank(settings, faults[i]->remedy);
        if (faults[i]->level == LEVEL_MANUALLY_SEPARATE)
            return ticket("it has been too often: a person decides about ", faults[i]->code);
        if (!faults[i]->remedy.len && fault_is_unknown(step->health, faults[i]))
            return question(faults[i]->code);
        if (!faults[i]->remedy.len)
            return ticket("nothing is known that clears ", faults[i]->code);
        if (asked < 0)
            return ticket("a person must do it: ", faults[i]->remedy);
        choice.rank = asked > choice.rank ? asked : choice.rank;
    }
    CHECK(choice.rank >= rank);
    return choice;
}

struct choice choose_action(const struct step *step, const struct repair *repair, int least)
{
    const struct repair_settings *settings = &step->cluster->policy.repair;
    struct fault *faults[FAULTS_PER_MACHINE_MAX];
    size_t count = health_blocking(step->health, repair->subject, faults);
    struct choice choice = {.rank = least};
    CHECK(least >= -1 && least <= (int)settings->hook_count && settings->hook_count <= REPAIR_HOOKS_MAX);
    if (repair->asked) {
        choice.rank = hook_rank(settings, repair->action);
        return choice.rank < 0       ? ticket("no such hook is known: ", repair->action)
               : least > choice.rank ? ticket("it did not help: ", repair->action)
                                     : choice;
    }
    choice = by_faults(step, faults, count, least);
    if (choice.why[0])
        return choice;
    if (choice.rank < 0)
        return (struct choice){.rank = -1, .test = true};
    while ((size_t)choice.rank < settings->hook_count) {
        const struct repair_hook *hook = &settings->hooks[choice.rank];
        if (times_done(step, repair, hook) < settings->reboots_max)
            return choice;
        if (hook->reboots)
            return ticket("it was rebooted for it before, and it is back: inspect ", repair->codes[0]);
        choice.rank++;
    }
    return ticket("no harder action is left after ", repair->action);
}
