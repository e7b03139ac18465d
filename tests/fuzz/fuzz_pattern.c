/* A pattern, a zero byte, a text: no crash, bounded work, the same answer twice, refusals that say why. */
#include <stdint.h>

#include "base/check.h"
#include "core/spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = {(const char *)data, size}, pattern = input, text = {NULL, 0};
    struct error error = {0};
    bool matched = true, again = false;
    str_cut(input, 0, &pattern, &text);
    int rc = pattern_search(pattern, text, &matched, &error);
    if (rc < 0) {
        CHECK((rc == ERROR_INVALID || rc == ERROR_LIMIT) && error.code == rc && error.text[0] && matched);
        return 0;
    }
    CHECK(pattern_search(pattern, text, &again, NULL) == 0 && again == matched);
    return 0;
}
