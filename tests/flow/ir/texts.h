/* texts.h - modules for the tests of flow/ir: from texts, and from the programs in ../shared/data. */
#ifndef PHX_TESTS_FLOW_IR_TEXTS_H
#define PHX_TESTS_FLOW_IR_TEXTS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "flow/ir/ir.h"

#define STABLEHLO_DATA "../shared/data/stablehlo"

/* The module of a text that is right; the caller frees it. */
static inline struct ir_module *text_module(const char *text)
{
    struct ir_module *module = NULL;
    struct error error = {0};
    if (ir_parse(str_from(text), "t", &module, &error) < 0 || ir_verify(module, &error) < 0)
        fail_msg("%s\n%s", error.text, text);
    return module;
}

/* "@main" with `arguments` and the operations of `body`. */
static inline char *text_function(char *text, size_t size, const char *arguments, const char *body)
{
    int len = snprintf(text, size, "func.func @main(%s) {\n%s\nreturn\n}\n", arguments, body);
    assert_true(len > 0 && (size_t)len < size);
    return text;
}

/* The first operation of that kind in @main. */
static inline const struct ir_op *module_op(const struct ir_module *module, enum ir_op_kind kind)
{
    const struct ir_op *op = ir_function(module, STR("main"))->body.first;
    while (op && op->kind != kind)
        op = op->next;
    assert_non_null(op);
    return op;
}

static inline void places_cleared(struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        op->place = (struct ir_place){0};
        for (uint32_t i = 0; i < op->region_count; i++)
            places_cleared(&op->regions[i]);
    }
}

/* The module's bytes without its places and the name of its file. */
static inline struct str bytes_without_places(struct ir_module *module, struct arena *arena)
{
    module->file = STR("");
    for (struct ir_function *function = module->functions; function; function = function->next) {
        function->place = (struct ir_place){0};
        places_cleared(&function->body);
    }
    return ir_encode(module, arena);
}

/* The module is valid, and the same after printing and parsing, and after encoding and decoding. */
static inline void module_is_kept(struct ir_module *module)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct ir_module *printed = NULL, *decoded = NULL;
    struct error error = {0};
    struct str text, bytes;
    if (ir_verify(module, &error) < 0)
        fail_msg("%s", error.text);
    text = ir_print(module, &arena);
    if (ir_parse(text, "printed", &printed, &error) < 0 || ir_verify(printed, &error) < 0)
        fail_msg("%s\n" STR_FORMAT, error.text, STR_ARG(text));
    bytes = ir_encode(module, &arena);
    if (ir_decode(bytes, &decoded, &error) < 0)
        fail_msg("%s\n" STR_FORMAT, error.text, STR_ARG(text));
    assert_true(str_equal(ir_encode(decoded, &arena), bytes));
    assert_true(str_equal(ir_print(decoded, &arena), text));
    assert_true(str_equal(bytes_without_places(printed, &arena), bytes_without_places(module, &arena)));
    ir_module_free(printed);
    ir_module_free(decoded);
}

/* Calls `each` for every module of every program below the data's folder "." or "parallel"; returns how many
 * programs there were; 0 and a line where the data is absent. */
static inline int data_programs(const char *folder, int (*each)(struct ir_module *module, void *arg),
                                void *arg)
{
    char path[512];
    int programs = 0;
    DIR *dir = opendir(STABLEHLO_DATA);
    if (!dir) {
        print_message("skip: no " STABLEHLO_DATA "\n");
        return 0;
    }
    closedir(dir);
    snprintf(path, sizeof path, "%s/%s", STABLEHLO_DATA, folder);
    dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        struct buf BUF_CLEANUP text = {0};
        struct error error = {0};
        char part[4096];
        size_t len;
        if (!str_ends(str_from(entry->d_name), STR(".mlir")))
            continue;
        snprintf(path, sizeof path, "%s/%s/%s", STABLEHLO_DATA, folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        while ((len = fread(part, 1, sizeof part, file)) > 0)
            buf_add(&text, part, len);
        fclose(file);
        if (ir_parse_split(buf_str(&text), entry->d_name, each, arg, &error) != 0)
            fail_msg("%s", error.text);
        programs++;
    }
    closedir(dir);
    return programs;
}

#endif
