/* Text in XML and HTML: what would be markup is a reference, and control characters are left out. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "doc/markup.h"

static void text_is_never_markup(void **state)
{
    struct buf out BUF_CLEANUP = {0};
    markup_add(&out, STR("a <b c=\"d\">&amp;\x01\n\x1f é_"));
    assert_string_equal(out.data, "a &lt;b c=&quot;d&quot;&gt;&amp;amp; é_");
}

static void all_bytes(void **state)
{
    for (int c = 0; c < 256; c++) {
        struct buf out BUF_CLEANUP = {0};
        markup_add_char(&out, (char)c);
        if (c == '&' || c == '<' || c == '>' || c == '"')
            assert_true(out.data[0] == '&' && out.data[out.len - 1] == ';');
        else
            assert_int_equal(out.len, c >= ' ');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_never_markup),
        cmocka_unit_test(all_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
