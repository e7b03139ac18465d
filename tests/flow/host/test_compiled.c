/* Compiled functions: equal texts share one, what nobody has is kept for a while, within bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/host/compiled.h"

#define TWO                                                                                                  \
    "module {\n"                                                                                             \
    "  func.func @twice(%a: tensor<2xf32>) -> tensor<2xf32> {\n"                                             \
    "    %b = stablehlo.add %a, %a : tensor<2xf32>\n"                                                        \
    "    return %b : tensor<2xf32>\n"                                                                        \
    "  }\n"                                                                                                  \
    "  func.func @same(%a: tensor<2xf32>) -> tensor<2xf32> {\n"                                              \
    "    return %a : tensor<2xf32>\n"                                                                        \
    "  }\n"                                                                                                  \
    "}\n"

static struct compiled *get(struct compiled_functions *all, const char *name, const char *text,
                            bool *ret_reused)
{
    struct buf tail BUF_CLEANUP = {0};
    struct compiled *compiled = NULL;
    struct error error = {0};
    buf_add(&tail, name, strlen(name) + 1);
    buf_add_str(&tail, str_from(text));
    if (compiled_get(all, buf_str(&tail), &compiled, ret_reused, &error) < 0)
        fail_msg("%s", error.text);
    return compiled;
}

/* Function number `i` of many. */
static struct compiled *get_number(struct compiled_functions *all, int i, bool *ret_reused)
{
    char text[256];
    snprintf(text, sizeof text,
             "module {\n  func.func @main(%%a: tensor<%dxf32>) -> tensor<%dxf32> {\n"
             "    return %%a : tensor<%dxf32>\n  }\n}\n",
             i + 1, i + 1, i + 1);
    return get(all, "main", text, ret_reused);
}

static void equal_texts_share(void **state)
{
    struct compiled_functions *all = compiled_functions_new(NULL, NULL);
    bool reused;
    struct compiled *first = get(all, "twice", TWO, &reused);
    assert_false(reused);
    assert_ptr_equal(get(all, "twice", TWO, &reused), first);
    assert_true(reused);
    struct compiled *other = get(all, "same", TWO, &reused); /* another function of the text */
    assert_false(reused);
    struct compiled *spaced = get(all, "twice", TWO " ", &reused);
    assert_false(reused);
    assert_true(other != first && spaced != first && other != spaced);
    compiled_drop(first);
    assert_ptr_equal(get(all, "twice", TWO, &reused), first);
    assert_true(reused);
    compiled_drop(first);
    compiled_drop(first); /* nobody has it */
    assert_ptr_equal(get(all, "twice", TWO, &reused), first);
    assert_true(reused);
    compiled_drop(first);
    compiled_drop(other);
    compiled_drop(spaced);
    compiled_functions_free(all);
}

static void the_idle_are_bounded(void **state)
{
    struct compiled_functions *all = compiled_functions_new(NULL, NULL);
    bool reused;
    for (int i = 0; i <= COMPILED_IDLE_MAX; i++)
        compiled_drop(get_number(all, i, &reused));
    compiled_drop(get_number(all, COMPILED_IDLE_MAX, &reused));
    assert_true(reused);
    compiled_drop(get_number(all, 1, &reused)); /* is used again, and so stays longer than number 2 */
    assert_true(reused);
    compiled_drop(get_number(all, 0, &reused)); /* idle for the longest time when the bound was reached */
    assert_false(reused);
    compiled_drop(get_number(all, 1, &reused));
    assert_true(reused);
    compiled_drop(get_number(all, 2, &reused));
    assert_false(reused);
    compiled_functions_free(all);
}

/* Texts beyond the bound are compiled, and not kept. Idle ones make room for one that fits. */
static void the_texts_are_bounded(void **state)
{
    struct compiled_functions *all = compiled_functions_new(NULL, NULL);
    struct buf text BUF_CLEANUP = {0};
    struct compiled *large[2], *again;
    bool reused;
    buf_add_str(&text, STR(TWO));
    for (size_t i = 0; i < COMPILED_BYTES_MAX / 16 * 9; i += 16)
        buf_add_str(&text, STR("               \n"));
    buf_add_char(&text, 0);
    large[0] = get(all, "twice", text.data, &reused);
    large[1] = get(all, "same", text.data, &reused);
    again = get(all, "same", text.data, &reused);
    assert_false(reused); /* there was room for the first alone */
    compiled_drop(again);
    compiled_drop(large[1]);
    again = get(all, "twice", text.data, &reused);
    assert_true(reused);
    compiled_drop(again);
    compiled_drop(large[0]); /* idle */
    large[1] = get(all, "same", text.data, &reused);
    assert_false(reused);
    again = get(all, "same", text.data, &reused);
    assert_true(reused);
    compiled_drop(again);
    compiled_drop(large[1]);
    compiled_functions_free(all);
}

static void failures_are_not_kept(void **state)
{
    struct compiled_functions *all = compiled_functions_new(NULL, NULL);
    static const char *const tails[] = {"main\0module {", "gone\0module {}", "name alone"};
    static const size_t lens[] = {13, 14, 10};
    struct compiled *none;
    struct error error;
    bool reused;
    for (int i = 0; i < 6; i++)
        assert_true(compiled_get(all, (struct str){tails[i / 2], lens[i / 2]}, &none, &reused, &error) < 0);
    compiled_functions_free(all);
}

/* A text of a shared object does not say what the file holds today. */
static void shared_objects_are_not_shared(void **state)
{
    static const char text[] = "user \"stub_flow_user.so\"\nfunc @add1(tensor<2xf32>) -> (tensor<2xf32>)\n";
    const char *build = getenv("PHX_BUILD");
    struct compiled_functions *all = compiled_functions_new(build ? build : "build", NULL);
    bool reused;
    struct compiled *first = get(all, "add1", text, &reused), *second = get(all, "add1", text, &reused);
    assert_true(first != second && !reused);
    compiled_drop(first);
    compiled_drop(second);
    compiled_functions_free(all);
}

/* A worker that ends drops its functions after its threads are gone. */
static void the_owner_leaves_first(void **state)
{
    struct compiled_functions *all = compiled_functions_new(NULL, NULL);
    bool reused;
    struct compiled *held[2] = {get_number(all, 1, &reused), get_number(all, 2, &reused)};
    compiled_drop(get_number(all, 3, &reused));
    compiled_functions_free(all);
    assert_non_null(held[0]->function);
    compiled_drop(held[0]);
    compiled_drop(held[1]); /* the last one takes everything along */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_texts_share),      cmocka_unit_test(the_idle_are_bounded),
        cmocka_unit_test(the_texts_are_bounded),  cmocka_unit_test(failures_are_not_kept),
        cmocka_unit_test(the_owner_leaves_first), cmocka_unit_test(shared_objects_are_not_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
