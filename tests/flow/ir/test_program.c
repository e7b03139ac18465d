/* Programs: what is proved, and their bytes and text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "flow/ir/program.h"

static struct program *example(void)
{
    struct program *program = program_new();
    struct ir_type type = {IR_F32, 2, {8, 6}};
    struct flow_sharding rows = {.mesh = 7, .axes = {1, 2}}, other = {.mesh = 9, .axes = {0, 1}};
    program_add_mesh(program, &(struct flow_mesh){7, 2, {2, 3}});
    program_add_mesh(program, &(struct flow_mesh){9, 1, {2}});
    uint32_t x = program_arg(program, &type, &rows);
    uint32_t y = program_call(program, 5, 7, &x, 1, &(struct program_value){type, rows}, 1);
    program_result(program, program_reshard(program, y, &other));
    program_result(program, y);
    return program;
}

static void program_reads_as_text(void **state)
{
    struct program *program = example();
    struct buf text = {0};
    program_print(program, &text);
    assert_string_equal(text.data, "mesh @7 [2, 3]\n"
                                   "mesh @9 [2]\n"
                                   "%0 = arg : tensor<8x6xf32> @7 [{0}, {1}]\n"
                                   "%1 = call #5 on @7 %0 : tensor<8x6xf32> @7 [{0}, {1}]\n"
                                   "%2 = reshard %1 : tensor<8x6xf32> @9 [{}, {0}]\n"
                                   "result %2\n"
                                   "result %1\n");
    buf_done(&text);
    program_free(program);
}

static void bytes_give_the_program_back(void **state)
{
    struct program *program = example(), *back;
    struct buf bytes = {0}, again = {0};
    struct rng rng;
    program_encode(program, &bytes);
    assert_int_equal(program_decode(buf_str(&bytes), &back, NULL), 0);
    program_encode(back, &again);
    assert_true(str_equal(buf_str(&bytes), buf_str(&again)));
    program_free(back);
    rng_seed(&rng, 1);
    int refused = 0;
    for (int i = 0; i < 20000; i++) {
        buf_clear(&again);
        buf_add_str(&again, buf_str(&bytes));
        again.data[rng_below(&rng, again.len)] ^= (char)(1 + rng_below(&rng, 255));
        again.len -= rng_below(&rng, 4) ? 0 : rng_below(&rng, again.len);
        if (program_decode(buf_str(&again), &back, NULL) < 0)
            refused++;
        else
            program_free(back);
    }
    assert_true(refused > 10000);
    buf_done(&bytes);
    buf_done(&again);
    program_free(program);
}

static void wrong_programs_are_refused(void **state)
{
    struct error error;
    struct ir_type type = {IR_F32, 1, {6}};
    struct flow_sharding good = {.mesh = 1, .axes = {1}}, twice = {.mesh = 1, .axes = {1, 1}};
    struct flow_sharding lacking = {.mesh = 1, .axes = {2}}, elsewhere = {.mesh = 2};
    const struct flow_sharding *wrong[] = {&twice, &lacking, &elsewhere};
    for (int i = 0; i < 3; i++) {
        struct program *program = program_new();
        program_add_mesh(program, &(struct flow_mesh){1, 1, {2}});
        program_result(program, program_arg(program, &type, wrong[i]));
        assert_int_equal(program_verify(program, &error), ERROR_INVALID);
        program_free(program);
    }
    struct program *program = program_new();
    program_add_mesh(program, &(struct flow_mesh){1, 1, {4}});
    uint32_t x = program_arg(program, &type, &good);
    assert_int_equal(program_verify(program, &error), ERROR_INVALID); /* 6 does not divide by 4 */
    program_result(program, x + 3);
    program_free(program);
    program = program_new();
    program_add_mesh(program, &(struct flow_mesh){1, 1, {2}});
    program_arg(program, &type, &good);
    assert_int_equal(program_verify(program, &error), ERROR_INVALID);
    assert_string_equal(error.text, "the program hands out no result");
    program_free(program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_reads_as_text),
        cmocka_unit_test(bytes_give_the_program_back),
        cmocka_unit_test(wrong_programs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
