/* Every kind of effect has a name and a line for people. All stories test that lines can be made of real
 * effects: harness_watch describes each effect that comes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/str.h"
#include "core/effect.h"

static const enum effect_kind kinds[] = {EFFECT_REPLY,        EFFECT_CHANGED,      EFFECT_TASK_START,
                                         EFFECT_TASK_STOP,    EFFECT_TASK_NOTICE,  EFFECT_TASK_FORGET,
                                         EFFECT_ERRAND_START, EFFECT_ERRAND_STOP,  EFFECT_SAY_AGAIN,
                                         EFFECT_TASK_REJOIN,  EFFECT_SWITCH_APPLY, EFFECT_WARNING};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void names_are_words_of_their_own(void **state)
{
    for (size_t i = 0; i < KINDS; i++) {
        const char *name = effect_kind_name(kinds[i]);
        assert_true(strlen(name) > 3);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz-"), strlen(name));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(name, effect_kind_name(kinds[k]));
    }
}

static void lines_without_an_object(void **state)
{
    struct {
        struct effect effect;
        const char *line;
    } cases[] = {
        {{.kind = EFFECT_REPLY, .seq = 7, .reply = {.code = 404, .reason = "NotFound"}},
         "7.0 reply 404 NotFound"},
        {{.kind = EFFECT_TASK_STOP, .seq = 7, .index = 2, .stop.stop = {.task = 0x1f, .grace_ns = 5000000}},
         "7.2 task-stop 1f grace 5 ms"},
        {{.kind = EFFECT_TASK_NOTICE, .notice.notice.task = 0x1f}, "0.0 task-notice 1f"},
        {{.kind = EFFECT_TASK_FORGET, .forget.task = 0x1f}, "0.0 task-forget 1f"},
        {{.kind = EFFECT_ERRAND_START, .errand_start.start.errand = 0x1f}, "0.0 errand-start 1f"},
        {{.kind = EFFECT_ERRAND_STOP, .errand_stop.errand = 0x1f}, "0.0 errand-stop 1f"},
        {{.kind = EFFECT_SWITCH_APPLY,
          .switch_apply = {.name = STR("pod-1-x5"), .operation = 9, .make_count = 2}},
         "0.0 switch-apply pod-1-x5 operation 9: 0 to break, 2 to make"},
        {{.kind = EFFECT_SAY_AGAIN}, "0.0 say-again"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf line BUF_CLEANUP = {0};
        effect_describe(&line, &cases[i].effect);
        assert_string_equal(line.data, cases[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_words_of_their_own),
        cmocka_unit_test(lines_without_an_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
