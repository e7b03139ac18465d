/* The SCPI of Polatis switches: commands that are written, answers that are read or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/arena.h"
#include "host/fabric/scpi.h"

static void commands_have_one_list_a_side(void **state)
{
    struct buf out BUF_CLEANUP = {0};
    struct phx_crossconnect pairs[] = {{1, 65}, {2, 70}};
    scpi_put_pairs(&out, "add", pairs, 2);
    assert_string_equal(out.data, ":oxc:swit:conn:add (@1,2),(@65,70)\n");
}

static void both_forms_of_a_state_are_read(void **state)
{
    static const char *const texts[] = {"(@2,1),(@70,65)", "(@1),(@65);(@2),(@70)\r", " (@1, 2), (@65 ,70) "};
    struct phx_crossconnect pairs[4];
    uint32_t count;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(scpi_read_pairs(str_from(texts[i]), 64, 64, pairs, 4, &count, NULL), 0);
        assert_int_equal(count, 2);
        assert_int_equal(pairs[0].a, 1);
        assert_int_equal(pairs[0].b, 65);
        assert_int_equal(pairs[1].b, 70);
    }
    assert_int_equal(scpi_read_pairs(STR("(@),(@)"), 64, 64, pairs, 4, &count, NULL), 0);
    assert_int_equal(count, 0);
    assert_int_equal(scpi_read_pairs(STR(""), 64, 64, pairs, 4, &count, NULL), 0);
}

static void a_state_that_cannot_be_is_refused(void **state)
{
    static const char *const texts[] = {
        "(@1,2),(@65)", "(@1),(@2)",           "(@65),(@1)",      "(@0),(@65)",
        "(@1),(@129)",  "(@1,1),(@65,66)",     "(@1,2),(@65,65)", "(@1),(@65)x",
        "(@1),(@65",    "(@1)(@65)",           "(@1,),(@65,)",    "1,65",
        "(@-1),(@65)",  "(@1),(@99999999999)",
    };
    struct phx_crossconnect pairs[1] = {{7, 7}};
    struct error error;
    uint32_t count = 9;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(scpi_read_pairs(str_from(texts[i]), 64, 64, pairs, 1, &count, &error),
                         ERROR_CORRUPT);
        assert_int_equal(count, 9);
        assert_int_equal(pairs[0].a, 7);
    }
    assert_int_equal(scpi_read_pairs(STR("(@1,2),(@65,66)"), 64, 64, pairs, 1, &count, &error),
                     ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "at most 1"));
}

static void sizes_verdicts_and_identities_are_read(void **state)
{
    uint32_t a, b;
    int64_t code;
    struct str text;
    struct phx_switch_identity identity;
    assert_int_equal(scpi_read_size(STR("64,64\r"), &a, &b, NULL), 0);
    assert_int_equal(a + b, 128);
    assert_int_equal(scpi_read_size(STR("600,600"), &a, &b, NULL), ERROR_CORRUPT);
    assert_int_equal(scpi_read_size(STR("64"), &a, &b, NULL), ERROR_CORRUPT);
    assert_int_equal(scpi_read_verdict(STR("-221,\"Settings conflict\""), &code, &text, NULL), 0);
    assert_int_equal(code, -221);
    assert_true(str_is(text, "Settings conflict"));
    assert_int_equal(scpi_read_verdict(STR("No error"), &code, &text, NULL), ERROR_CORRUPT);
    assert_int_equal(scpi_read_identity(STR("Polatis,OST-64x64,1234,6.1"), &identity, NULL), 0);
    assert_string_equal(identity.model, "OST-64x64");
    assert_string_equal(identity.firmware, "6.1");
    assert_int_equal(scpi_read_identity(STR("Polatis"), &identity, NULL), ERROR_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_have_one_list_a_side),
        cmocka_unit_test(both_forms_of_a_state_are_read),
        cmocka_unit_test(a_state_that_cannot_be_is_refused),
        cmocka_unit_test(sizes_verdicts_and_identities_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
