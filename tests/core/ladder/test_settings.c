/* Words that users write about the ladder: every word means what docs/recovery.md says, every wrong one is
 * refused with its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "core/ladder/ladder.h"

static struct ladder_settings taken(enum ladder_word word, const char *text)
{
    struct ladder_settings settings;
    struct error error = {0};
    ladder_defaults(&settings);
    assert_true(ladder_take(&settings, word, str_from(text), &error));
    assert_string_equal(error.text, "");
    return settings;
}

static void refused(enum ladder_word word, const char *text, const char *why)
{
    struct ladder_settings settings, before;
    struct error error = {0};
    ladder_defaults(&settings);
    before = settings;
    assert_false(ladder_take(&settings, word, str_from(text), &error));
    assert_memory_equal(&before, &settings, sizeof settings);
    if (!strstr(error.text, why))
        fail_msg("\"%s\" is not in \"%s\"", why, error.text);
}

static void defaults_allow_all(void **state)
{
    static const int seconds[RUNGS] = {0, 30, 30, 120, 60, 60, 0};
    struct ladder_settings settings;
    ladder_defaults(&settings);
    assert_false(settings.given || settings.off || settings.attempts_given);
    assert_int_equal(settings.no_progress_attempts, 5);
    for (int rung = RUNG_RETRY; rung < RUNGS; rung++) {
        assert_true(settings.allowed[rung]);
        assert_int_equal(settings.limit_ns[rung], seconds[rung] * NS_PER_SECOND);
        bool bound = rung >= RUNG_RESTART_PROCESS && rung <= RUNG_SHRINK;
        assert_int_equal(settings.rungs[rung].given, bound);
        assert_int_equal(settings.rungs[rung].count, bound ? 10 : 0);
    }
    for (int cause = 0; cause < LOSS_CAUSES; cause++)
        assert_false(settings.causes[cause].given);
}

static void rungs_are_chosen(void **state)
{
    struct ladder_settings settings = taken(WORD_RECOVERY, " restart-process ,dump");
    assert_true(settings.given && !settings.off);
    assert_true(settings.allowed[RUNG_RESTART_PROCESS] && settings.allowed[RUNG_DUMP]);
    assert_true(settings.allowed[RUNG_REQUEUE]); /* the failure policy always holds */
    assert_false(settings.allowed[RUNG_RETRY] || settings.allowed[RUNG_REPLACE_MACHINE] ||
                 settings.allowed[RUNG_SHRINK]);
    settings = taken(WORD_RECOVERY, "off");
    assert_true(settings.given && settings.off);
    for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++)
        assert_false(settings.allowed[rung]);
    refused(WORD_RECOVERY, "", "\"\" is not a rung");
    refused(WORD_RECOVERY, "retry,", "\"\" is not a rung");
    refused(WORD_RECOVERY, "retry,reboot",
            "\"reboot\" is not a rung: expected off, or some of retry, restart-process");
    refused(WORD_RECOVERY, "retry,off", "off stands alone");
    refused(WORD_RECOVERY, "dump,retry,dump", "dump is named twice");
    refused(WORD_RECOVERY, "none", "\"none\" is not a rung");
}

static void limits_are_durations(void **state)
{
    struct ladder_settings settings = taken(WORD_LIMITS, "restart-process=2500ms, shrink = 5m");
    assert_int_equal(settings.limit_ns[RUNG_RESTART_PROCESS], 2500 * NS_PER_MS);
    assert_int_equal(settings.limit_ns[RUNG_SHRINK], 300 * NS_PER_SECOND);
    assert_int_equal(settings.limit_ns[RUNG_REPLACE_MACHINE], 120 * NS_PER_SECOND);
    assert_false(settings.given);
    refused(WORD_LIMITS, "restart-process", "\"restart-process\" must be RUNG=DURATION");
    refused(WORD_LIMITS, "requeue=5s", "\"requeue\" is not a rung with a limit");
    refused(WORD_LIMITS, "dump=0s", "\"0s\" of dump must be a duration from 1ms to 24h");
    refused(WORD_LIMITS, "dump=25h", "from 1ms to 24h");
    refused(WORD_LIMITS, "dump=-1s", "from 1ms to 24h");
    refused(WORD_LIMITS, "dump=1s,dump=2s", "dump is named twice");
}

static void budgets_are_of_rungs_and_causes(void **state)
{
    struct ladder_settings settings = taken(WORD_BUDGETS, "retry=0/1h,process-exit=3/10m");
    assert_true(settings.rungs[RUNG_RETRY].given);
    assert_int_equal(settings.rungs[RUNG_RETRY].count, 0);
    assert_int_equal(settings.causes[LOSS_EXIT].count, 3);
    assert_int_equal(settings.causes[LOSS_EXIT].window_ns, 600 * NS_PER_SECOND);
    assert_int_equal(settings.rungs[RUNG_SHRINK].count, 10); /* as it was */
    refused(WORD_BUDGETS, "retry=3", "\"3\" of retry must be COUNT/DURATION, a count up to 100");
    refused(WORD_BUDGETS, "retry=101/1h", "a count up to 100 in 1s to 30d");
    refused(WORD_BUDGETS, "hang=1/31d", "a count up to 100 in 1s to 30d");
    refused(WORD_BUDGETS, "requeue=1/1h", "\"requeue\" has no budget");
    refused(WORD_BUDGETS, "slow=1/1h,slow=2/1h", "\"slow\" is named twice");
}

static void attempts_are_a_number(void **state)
{
    assert_int_equal(taken(WORD_ATTEMPTS, "0").no_progress_attempts, 0);
    assert_int_equal(taken(WORD_ATTEMPTS, "12").no_progress_attempts, 12);
    assert_true(taken(WORD_ATTEMPTS, "12").attempts_given);
    refused(WORD_ATTEMPTS, "-1", "must be a number of attempts from 0 to 1000000");
    refused(WORD_ATTEMPTS, "many", "must be a number of attempts");
}

static struct ladder_settings theirs(enum ladder_word a, const char *text_a, enum ladder_word b,
                                     const char *text_b)
{
    struct str texts[LADDER_WORDS_ALL] = {0};
    struct ladder_settings settings;
    texts[a] = str_from(text_a);
    texts[b] = str_from(text_b);
    ladder_defaults(&settings);
    ladder_take_theirs(&settings, texts);
    return settings;
}

static void mindclusters_words_mean_the_same(void **state)
{
    struct ladder_settings settings =
        theirs(WORD_STRATEGY, "recover,recover-in-place,elastic-training,exit", WORD_PROCESS_RECOVER, "on");
    assert_true(settings.given && settings.allowed[RUNG_REPLACE_MACHINE] &&
                settings.allowed[RUNG_RESTART_PROCESS] && settings.allowed[RUNG_SHRINK]);
    assert_false(settings.allowed[RUNG_RETRY] || settings.allowed[RUNG_DUMP]);
    settings = theirs(WORD_STRATEGY, "retry", WORD_PROCESS_RECOVER, "pause");
    assert_false(settings.given || settings.allowed[RUNG_RETRY]);
    settings = theirs(WORD_POD_RESCHEDULING, "on", WORD_PROCESS_RECOVER, "off");
    assert_true(settings.given && settings.allowed[RUNG_REPLACE_MACHINE]);
    assert_false(settings.allowed[RUNG_RESTART_PROCESS]);
    settings = theirs(WORD_RETRY_TIMES, "3", WORD_STRATEGY, "something else");
    assert_false(settings.given);
    assert_true(settings.allowed[RUNG_RETRY] && settings.causes[LOSS_EXIT].given);
    assert_int_equal(settings.causes[LOSS_EXIT].count, 3);
    settings = theirs(WORD_RETRY_TIMES, "1000", WORD_PROCESS_RECOVER, "");
    assert_int_equal(settings.causes[LOSS_EXIT].count, LADDER_BUDGET_MAX);
    assert_false(theirs(WORD_RETRY_TIMES, "x", WORD_STRATEGY, "").causes[LOSS_EXIT].given);
}

static void names_are_read_as_they_are_written(void **state)
{
    for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++) {
        struct ladder_settings settings = taken(WORD_RECOVERY, rung_name((enum rung)rung));
        assert_true(settings.allowed[rung]);
    }
    for (int cause = LOSS_NONE + 1; cause < LOSS_CAUSES; cause++) {
        char text[64];
        snprintf(text, sizeof text, "%s=7/1h", loss_name((enum loss_cause)cause));
        assert_int_equal(taken(WORD_BUDGETS, text).causes[cause].count, 7);
    }
}

static void back_offs(void **state)
{
    struct ladder_settings settings;
    ladder_defaults(&settings);
    assert_true(settings.backoff_first_ns == NS_PER_SECOND && settings.backoff_max_ns == 300 * NS_PER_SECOND);
    settings = taken(WORD_BACKOFF, "off");
    assert_true(settings.backoff_first_ns == 0 && settings.backoff_max_ns == 0);
    settings = taken(WORD_BACKOFF, "500ms / 2m");
    assert_true(settings.backoff_first_ns == 500 * NS_PER_MS &&
                settings.backoff_max_ns == 120 * NS_PER_SECOND);
    static const char *const bad[] = {"",      "1s",     "1s/",        "/1s",     "2s/1s",
                                      "0s/1s", "1s/48h", "soon/later", "1s/2s/3s"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(WORD_BACKOFF, bad[i], "must be off, or FIRST/MAX");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(back_offs),
        cmocka_unit_test(defaults_allow_all),
        cmocka_unit_test(rungs_are_chosen),
        cmocka_unit_test(limits_are_durations),
        cmocka_unit_test(budgets_are_of_rungs_and_causes),
        cmocka_unit_test(attempts_are_a_number),
        cmocka_unit_test(mindclusters_words_mean_the_same),
        cmocka_unit_test(names_are_read_as_they_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
