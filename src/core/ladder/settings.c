/* settings.c - the annotations by which users choose rungs, their limits and their budgets; MindCluster's
 * equivalents.
 *
 *   recovery  = "off" | rung *("," rung)
 *   limits    = rung "=" duration *("," ...)
 *   budgets   = (rung | cause) "=" count "/" duration *("," ...)
 *   attempts  = decimal
 *   backoff   = "off" | duration "/" duration
 * White space around words is ignored; no name may occur twice; an empty text is an error.
 */
#include "core/ladder/ladder.h"

#define HOUR_NS (INT64_C(3600) * NS_PER_SECOND)

const char *const ladder_keys[LADDER_WORDS_ALL] = {
    [WORD_RECOVERY] = "phalanx.dev/recovery",          [WORD_LIMITS] = "phalanx.dev/recovery-limits",
    [WORD_BUDGETS] = "phalanx.dev/recovery-budgets",   [WORD_ATTEMPTS] = "phalanx.dev/no-progress-attempts",
    [WORD_BACKOFF] = "phalanx.dev/restart-backoff",    [WORD_STRATEGY] = "recover-strategy",
    [WORD_PROCESS_RECOVER] = "process-recover-enable", [WORD_POD_RESCHEDULING] = "pod-rescheduling",
    [WORD_RETRY_TIMES] = "fault-retry-times",
};

static const char *const rung_names[RUNGS] = {
    "none", "retry", "restart-process", "replace-machine", "shrink", "dump", "requeue",
};
static const char *const loss_names[LOSS_CAUSES] = {
    "none",  "process-exit", "out-of-memory", "start-failed", "machine-lost",
    "fault", "eviction",     "hang",          "slow",         "deletion",
};
_Static_assert(sizeof rung_names / sizeof *rung_names == RUNGS, "a name for each");
_Static_assert(sizeof loss_names / sizeof *loss_names == LOSS_CAUSES, "a name for each");
#define RUNG_LIST "retry, restart-process, replace-machine, shrink, dump, requeue"
#define CAUSE_LIST                                                                                           \
    "process-exit, out-of-memory, start-failed, machine-lost, fault, eviction, hang, slow, deletion"

const char *rung_name(enum rung rung)
{
    CHECK((unsigned)rung < RUNGS);
    return rung_names[rung];
}

const char *loss_name(enum loss_cause cause)
{
    CHECK((unsigned)cause < LOSS_CAUSES);
    return loss_names[cause];
}

bool loss_is_infrastructure(enum loss_cause cause)
{
    return cause == LOSS_MACHINE || cause == LOSS_FAULT || cause == LOSS_EVICTED || cause == LOSS_SLOW;
}

void ladder_defaults(struct ladder_settings *ret)
{
    static const int64_t limits_s[RUNGS] = {0, 30, 30, 120, 60, 60, 0};
    *ret = (struct ladder_settings){.no_progress_attempts = LADDER_NO_PROGRESS_ATTEMPTS,
                                    .backoff_first_ns = CRASH_BACKOFF_FIRST_NS,
                                    .backoff_max_ns = CRASH_BACKOFF_MAX_NS};
    for (int rung = RUNG_RETRY; rung < RUNGS; rung++) {
        ret->allowed[rung] = true;
        ret->limit_ns[rung] = limits_s[rung] * NS_PER_SECOND;
    }
    for (int rung = RUNG_RESTART_PROCESS; rung <= RUNG_SHRINK; rung++)
        ret->rungs[rung] = (struct ladder_budget){true, 10, HOUR_NS};
}

/* --- words ------------------------------------------------------------------------------------ */

/* Returns 0 if the name is unknown. */
static int find_name(struct str text, const char *const *names, int count)
{
    for (int i = 1; i < count; i++)
        if (str_is(text, names[i]))
            return i;
    return 0;
}

/* The part of a word that error messages show; the word may be long. */
#define SHOWN(text) STR_ARG(str_head_utf8(text, 64))

/* Takes the next word of a comma-separated list. Returns false if none is left. */
static bool next_word(struct str *text, bool *more, struct str *ret)
{
    struct str tail = {0};
    if (!*more)
        return false;
    *more = str_cut(*text, ',', ret, &tail);
    if (!*more)
        *ret = *text;
    *text = tail;
    *ret = str_trim(*ret);
    return true;
}

static bool take_rungs(struct ladder_settings *settings, struct str text, struct error *error)
{
    bool more = true, named[RUNGS] = {0};
    struct str word;
    settings->given = true;
    settings->off = str_is(str_trim(text), "off");
    while (!settings->off && next_word(&text, &more, &word)) {
        int rung = find_name(word, rung_names, RUNGS);
        if (!rung && str_is(word, "off"))
            return error_set(error, ERROR_INVALID, "off stands alone"), false;
        if (!rung)
            return error_set(error, ERROR_INVALID,
                             "\"" STR_FORMAT "\" is not a rung: expected off, or some of " RUNG_LIST,
                             SHOWN(word)),
                   false;
        if (named[rung])
            return error_set(error, ERROR_INVALID, "%s is named twice", rung_names[rung]), false;
        named[rung] = true;
    }
    for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++)
        settings->allowed[rung] = named[rung];
    return true;
}

/* Splits "NAME=VALUE". */
static bool cut_pair(struct str word, struct str *ret_name, struct str *ret_value, const char *form,
                     struct error *error)
{
    if (!str_cut(word, '=', ret_name, ret_value))
        return error_set(error, ERROR_INVALID, "\"" STR_FORMAT "\" must be %s", SHOWN(word), form), false;
    *ret_name = str_trim(*ret_name);
    *ret_value = str_trim(*ret_value);
    return true;
}

static bool take_limits(struct ladder_settings *settings, struct str text, struct error *error)
{
    bool more = true, named[RUNGS] = {0};
    struct str word, name, value;
    while (next_word(&text, &more, &word)) {
        if (!cut_pair(word, &name, &value, "RUNG=DURATION", error))
            return false;
        int rung = find_name(name, rung_names, RUNG_REQUEUE);
        int64_t limit_ns;
        if (!rung)
            return error_set(error, ERROR_INVALID,
                             "\"" STR_FORMAT "\" is not a rung with a limit: expected one of " RUNG_LIST
                             " but requeue",
                             SHOWN(name)),
                   false;
        if (named[rung])
            return error_set(error, ERROR_INVALID, "%s is named twice", rung_names[rung]), false;
        if (!duration_parse(value, &limit_ns) || limit_ns < NS_PER_MS || limit_ns > LADDER_LIMIT_MAX_NS)
            return error_set(error, ERROR_INVALID,
                             "\"" STR_FORMAT "\" of %s must be a duration from 1ms to 24h", SHOWN(value),
                             rung_names[rung]),
                   false;
        named[rung] = true;
        settings->limit_ns[rung] = limit_ns;
    }
    return true;
}

static bool read_budget(struct str text, struct ladder_budget *ret)
{
    struct str count, window;
    int64_t number;
    if (!str_cut(text, '/', &count, &window) || !str_to_i64(str_trim(count), 0, LADDER_BUDGET_MAX, &number) ||
        !duration_parse(str_trim(window), &ret->window_ns) || ret->window_ns < NS_PER_SECOND ||
        ret->window_ns > LADDER_WINDOW_MAX_NS)
        return false;
    ret->given = true;
    ret->count = (uint32_t)number;
    return true;
}

static bool take_budgets(struct ladder_settings *settings, struct str text, struct error *error)
{
    bool more = true, named[RUNGS + LOSS_CAUSES] = {0};
    struct str word, name, value;
    while (next_word(&text, &more, &word)) {
        struct ladder_budget budget;
        if (!cut_pair(word, &name, &value, "RUNG=COUNT/DURATION", error))
            return false;
        int rung = find_name(name, rung_names, RUNG_REQUEUE);
        int cause = rung ? 0 : find_name(name, loss_names, LOSS_CAUSES);
        if (!rung && !cause)
            return error_set(error, ERROR_INVALID,
                             "\"" STR_FORMAT "\" has no budget: " RUNG_LIST " but requeue; " CAUSE_LIST,
                             SHOWN(name)),
                   false;
        int place = rung ? rung : RUNGS + cause;
        if (named[place])
            return error_set(error, ERROR_INVALID, "\"" STR_FORMAT "\" is named twice", SHOWN(name)), false;
        if (!read_budget(value, &budget))
            return error_set(error, ERROR_INVALID,
                             "\"" STR_FORMAT "\" of " STR_FORMAT
                             " must be COUNT/DURATION, a count up to %d in 1s to 30d",
                             SHOWN(value), SHOWN(name), LADDER_BUDGET_MAX),
                   false;
        named[place] = true;
        *(rung ? &settings->rungs[rung] : &settings->causes[cause]) = budget;
    }
    return true;
}

static bool take_attempts(struct ladder_settings *settings, struct str text, struct error *error)
{
    if (!str_to_i64(str_trim(text), 0, LADDER_ATTEMPTS_MAX, &settings->no_progress_attempts))
        return error_set(error, ERROR_INVALID,
                         "must be a number of attempts from 0 to %d; 0: as many as it takes",
                         LADDER_ATTEMPTS_MAX),
               false;
    settings->attempts_given = true;
    return true;
}

static bool take_backoff(struct ladder_settings *settings, struct str text, struct error *error)
{
    struct str first, most;
    settings->backoff_first_ns = settings->backoff_max_ns = 0;
    if (str_is(str_trim(text), "off"))
        return true;
    if (!str_cut(text, '/', &first, &most) || !duration_parse(str_trim(first), &settings->backoff_first_ns) ||
        !duration_parse(str_trim(most), &settings->backoff_max_ns) || settings->backoff_first_ns <= 0 ||
        settings->backoff_first_ns > settings->backoff_max_ns ||
        settings->backoff_max_ns > LADDER_LIMIT_MAX_NS)
        return error_set(
                   error, ERROR_INVALID,
                   "must be off, or FIRST/MAX, such as 1s/5m: how long the second crash in a row is waited "
                   "for, and the longest wait, up to 24h"),
               false;
    return true;
}

bool ladder_take(struct ladder_settings *settings, enum ladder_word word, struct str text,
                 struct error *error)
{
    CHECK((unsigned)word < LADDER_WORDS);
    struct ladder_settings taken = *settings;
    bool valid = false;
    switch (word) {
    case WORD_RECOVERY:
        valid = take_rungs(&taken, text, error);
        break;
    case WORD_LIMITS:
        valid = take_limits(&taken, text, error);
        break;
    case WORD_BUDGETS:
        valid = take_budgets(&taken, text, error);
        break;
    case WORD_ATTEMPTS:
        valid = take_attempts(&taken, text, error);
        break;
    case WORD_BACKOFF:
        valid = take_backoff(&taken, text, error);
        break;
    default:
        CHECK(false);
    }
    if (valid)
        *settings = taken;
    return valid;
}

/* --- MindCluster's ---------------------------------------------------------------------------- */

/* MindCluster's strategies for our rungs; "exit" follows when none helps. */
static const char *const strategies[RUNGS] = {
    [RUNG_RETRY] = "retry",
    [RUNG_RESTART_PROCESS] = "recover-in-place",
    [RUNG_REPLACE_MACHINE] = "recover",
    [RUNG_SHRINK] = "elastic-training",
    [RUNG_DUMP] = "dump",
};

static void take_strategy(struct ladder_settings *settings, struct str text)
{
    bool more = true, named[RUNGS] = {0}, any = false;
    struct str word;
    while (next_word(&text, &more, &word)) {
        any |= str_is(word, "exit");
        for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++)
            named[rung] |= str_is(word, strategies[rung]);
    }
    for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++)
        any |= named[rung];
    for (int rung = RUNG_RETRY; any && rung < RUNG_REQUEUE; rung++)
        settings->allowed[rung] = named[rung];
    settings->given |= any;
}

void ladder_take_theirs(struct ladder_settings *settings, const struct str texts[LADDER_WORDS_ALL])
{
    struct str recover = texts[WORD_PROCESS_RECOVER], pods = texts[WORD_POD_RESCHEDULING];
    int64_t retries;
    if (texts[WORD_STRATEGY].data)
        take_strategy(settings, texts[WORD_STRATEGY]);
    settings->given |= str_is(recover, "on") || str_is(pods, "on");
    if (str_is(recover, "off") || str_is(recover, "pause")) {
        settings->given = str_is(pods, "on");
        for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++)
            settings->allowed[rung] = false;
        settings->allowed[RUNG_REPLACE_MACHINE] = settings->given; /* "pod level": replaces the bad Pod */
    }
    if (texts[WORD_RETRY_TIMES].data && str_to_i64(texts[WORD_RETRY_TIMES], 0, INT32_MAX, &retries))
        settings->causes[LOSS_EXIT] = (struct ladder_budget){
            true, (uint32_t)(retries < LADDER_BUDGET_MAX ? retries : LADDER_BUDGET_MAX),
            LADDER_WINDOW_MAX_NS};
}
