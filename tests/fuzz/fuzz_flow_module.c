/* Any bytes to ir_decode: no crash; what is accepted is verified already, can be printed, and is the same
 * after encoding and decoding. */
#include <stdint.h>

#include "base/check.h"
#include "flow/ir/ir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct ir_module *module = NULL, *again = NULL;
    struct error error;
    int code = ir_decode((struct str){(const char *)data, size}, &module, &error);
    if (code < 0) {
        CHECK(!module && (code == ERROR_CORRUPT || code == ERROR_UNSUPPORTED));
        CHECK(error.code == (enum error_code)code && error.text[0] && str_is_utf8(str_from(error.text)));
        return 0;
    }
    CHECK(ir_verify(module, &error) == 0);
    struct str bytes = ir_encode(module, &arena), text = ir_print(module, &arena);
    CHECK(ir_decode(bytes, &again, &error) == 0);
    CHECK(str_equal(ir_encode(again, &arena), bytes) && str_equal(ir_print(again, &arena), text));
    ir_module_free(module);
    ir_module_free(again);
    return 0;
}
