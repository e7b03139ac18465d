/* Gangs of threads: collectives give each member its part, and no member of a broken gang waits for ever. */
#include "programs.h"

#define RUN_PARALLEL(programs)                                                                               \
    "func.func @main() {\n\"interpreter.run_parallel\"() <{programs = " programs "}> : () -> "               \
    "()\nreturn\n}\n"
#define ALL_REDUCE(groups)                                                                                   \
    "%0 = \"stablehlo.all_reduce\"(%x) <{replica_groups = dense<" groups "> : tensor<1x2xi64>}> ({\n"        \
    "^bb0(%a: tensor<i32>, %b: tensor<i32>):\n  %s = stablehlo.add %a, %b : tensor<i32>\n"                   \
    "  stablehlo.return %s : tensor<i32>\n}) : (tensor<i32>) -> tensor<i32>\n"
#define FUNCTION(name, body) "func.func @" name "() {\n" body "return\n}\n"
#define ONE                  "%x = stablehlo.constant dense<1> : tensor<i32>\n"

static void test_sum(void **state)
{
    struct error error = {0};
    for (int round = 0; round < 50; round++) {
        int code = program_run(
            RUN_PARALLEL("[[@a], [@a]]") FUNCTION(
                "a", ONE ALL_REDUCE("[[0, 1]]") "check.expect_eq_const %0, dense<2> : tensor<i32>\n"),
            &error);
        if (code < 0)
            fail_msg("%s", error.text);
    }
}

/* The member's own failure is reported, not that of those who waited for it. */
static void test_failing_member(void **state)
{
    struct error error = {0};
    for (int round = 0; round < 50; round++) {
        assert_int_equal(
            program_run(RUN_PARALLEL("[[@a], [@b]]") FUNCTION("a", ONE ALL_REDUCE("[[0, 1]]"))
                            FUNCTION("b", ONE "check.expect_eq_const %x, dense<7> : tensor<i32>\n" ALL_REDUCE(
                                              "[[0, 1]]")),
                        &error),
            ERROR_INVALID);
        assert_non_null(strstr(error.text, "element 0 is 1, expected 7"));
    }
}

/* One ends without the collective that the other waits in. */
static void test_member_that_does_not_come(void **state)
{
    struct error error = {0};
    for (int round = 0; round < 50; round++) {
        assert_int_equal(program_run(RUN_PARALLEL("[[@a], [@b]]") FUNCTION("a", ONE ALL_REDUCE("[[0, 1]]"))
                                         FUNCTION("b", ONE),
                                     &error),
                         ERROR_INVALID);
        assert_non_null(strstr(error.text, "wait for each other"));
    }
}

/* Two wait in different groups: neither can be complete. */
static void test_crossed_groups(void **state)
{
    struct error error = {0};
    for (int round = 0; round < 50; round++) {
        assert_int_equal(program_run(RUN_PARALLEL("[[@a], [@b]]") FUNCTION("a", ONE ALL_REDUCE("[[0, 1]]"))
                                         FUNCTION("b", ONE ALL_REDUCE("[[1, 0]]")),
                                     &error),
                         ERROR_INVALID);
        assert_non_null(strstr(error.text, "wait for each other"));
    }
}

/* A group of another size than the result's type says. */
static void test_result_without_room(void **state)
{
    struct error error = {0};
    int code = program_run(
        RUN_PARALLEL("[[@a], [@a]]")
            FUNCTION("a", "%x = stablehlo.constant dense<1> : tensor<1xi32>\n"
                          "%0 = \"stablehlo.all_gather\"(%x) <{all_gather_dim = 0 : i64, replica_groups = "
                          "dense<> : tensor<0x0xi64>}> : (tensor<1xi32>) -> tensor<1xi32>\n"),
        &error);
    assert_int_equal(code, ERROR_INVALID);
    assert_non_null(strstr(error.text, "has no room for 2 members"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_failing_member),
        cmocka_unit_test(test_member_that_does_not_come),
        cmocka_unit_test(test_crossed_groups),
        cmocka_unit_test(test_result_without_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
