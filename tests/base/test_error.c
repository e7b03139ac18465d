#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/error.h"
#include "base/str.h"

static void codes_have_names(void **state)
{
    assert_string_equal(error_name(0), "NONE");
    for (int code = ERROR_DENIED; code < 0; code++)
        assert_string_not_equal(error_name(code), "UNKNOWN");
    assert_string_equal(error_name(ERROR_DENIED - 1), "UNKNOWN");
    assert_string_equal(error_name(1), "UNKNOWN");
}

static void message_and_causes(void **state)
{
    struct error error = {0};
    assert_int_equal(error_set(&error, ERROR_LIMIT, "%d jobs", 7), ERROR_LIMIT);
    assert_int_equal(error_wrap(&error, "queue %s", "a"), ERROR_LIMIT);
    assert_int_equal(error.code, ERROR_LIMIT);
    assert_string_equal(error.text, "queue a: 7 jobs");
    assert_int_equal(error_set_errno(&error, ENOENT, "open %s", "x"), ERROR_IO);
    assert_string_equal(error.text, "open x: No such file or directory");
    assert_int_equal(error_set_errno(&error, ENOSPC, "write"), ERROR_NO_SPACE);
    assert_int_equal(error_set_errno(NULL, EDQUOT, "write"), ERROR_NO_SPACE);
    assert_int_equal(error_set(NULL, ERROR_FENCED, "x"), ERROR_FENCED);
    assert_true(error_wrap(NULL, "x") < 0);
}

/* Whatever was quoted, the text is one line of UTF-8 that fits. */
static void text_is_always_printable(void **state)
{
    struct error error;
    char input[1200];
    for (size_t len = 0; len < sizeof input - 1; len += 7) {
        for (size_t i = 0; i < len; i++)
            input[i] = (char)(1 + (i * 37 + len) % 255);
        input[len] = 0;
        error_set(&error, ERROR_INVALID, "%s", input);
        error_wrap(&error, "%s", input);
        size_t text_len = strlen(error.text);
        assert_true(text_len < ERROR_TEXT_MAX);
        assert_true(str_is_utf8(str_from(error.text)));
        for (size_t i = 0; i < text_len; i++)
            assert_true((unsigned char)error.text[i] >= 0x20);
    }
    error_set(&error, ERROR_INVALID, "%0600d", 1);
    assert_true(str_ends(str_from(error.text), STR("0...")));
    error_set(&error, ERROR_INVALID, "%0*d", ERROR_TEXT_MAX - 1, 1);
    assert_true(str_ends(str_from(error.text), STR("01")));
}

/* A cut never splits a character. */
static void cut_on_a_boundary(void **state)
{
    struct error error;
    char input[800] = "";
    for (size_t shift = 0; shift < 4; shift++) {
        struct buf text = {0};
        for (size_t i = 0; i < shift; i++)
            buf_add_char(&text, 'x');
        while (text.len < sizeof input - 4)
            buf_add_str(&text, STR("\xf0\x9f\x98\x80"));
        error_set(&error, ERROR_INVALID, "%s", text.data);
        assert_true(str_is_utf8(str_from(error.text)));
        assert_true(str_ends(str_from(error.text), STR("\x80...")));
        buf_done(&text);
    }
}

static void failed_check_aborts(void **state)
{
    pid_t child = fork();
    if (child == 0) {
        close(2);
        signal(SIGABRT, SIG_DFL);
        CHECK(1 + 1 == 3);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK(1 + 1 == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_names),         cmocka_unit_test(message_and_causes),
        cmocka_unit_test(text_is_always_printable), cmocka_unit_test(cut_on_a_boundary),
        cmocka_unit_test(failed_check_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
