/* Any text to ir_parse: no crash, a place in every refusal; what the parser and the verifier accept is the
 * same after printing and parsing, and after encoding and decoding. */
#include <stdint.h>
#include <stdio.h>

#include "base/check.h"
#include "flow/ir/ir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const struct error *error, int code)
{
    unsigned line = 0, column = 0;
    CHECK(code == ERROR_INVALID || code == ERROR_LIMIT || code == ERROR_UNSUPPORTED);
    CHECK(error->code == (enum error_code)code && str_is_utf8(str_from(error->text)));
    CHECK(sscanf(error->text, "fuzz:%u:%u: ", &line, &column) == 2 && line > 0 && column > 0);
}

static int check_module(struct ir_module *module, void *arg)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct ir_module *printed = NULL, *decoded = NULL;
    struct error error;
    int code = ir_verify(module, &error);
    if (code < 0) {
        check_error(&error, code);
        return 0;
    }
    struct str text = ir_print(module, &arena);
    CHECK(ir_parse(text, "printed", &printed, &error) == 0 && ir_verify(printed, &error) == 0);
    CHECK(str_equal(ir_print(printed, &arena), text));
    struct str bytes = ir_encode(module, &arena);
    CHECK(ir_decode(bytes, &decoded, &error) == 0);
    CHECK(str_equal(ir_encode(decoded, &arena), bytes) && str_equal(ir_print(decoded, &arena), text));
    ir_module_free(printed);
    ir_module_free(decoded);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    int code = ir_parse_split((struct str){(const char *)data, size}, "fuzz", check_module, NULL, &error);
    if (code < 0)
        check_error(&error, code);
    return 0;
}
