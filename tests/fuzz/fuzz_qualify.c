/* The body of a qualification's errand, of one machine and of one end of a pair: no crash, and refusals that
 * say why and leave the thresholds alone. */
#include <stdint.h>

#include "base/check.h"
#include "host/qualify/qualify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int pair = 0; pair < 2; pair++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct qualify_options options = {.budget_ns = NS_PER_SECOND};
        struct error error = {0};
        arena.limit_bytes = 16 << 20;
        int rc = qualify_order_read((struct str){(const char *)data, size}, pair, &arena, &options, &error);
        CHECK(rc == 0 || (error.code == rc && error.text[0]));
        CHECK(options.budget_ns > 0 && options.budget_ns <= QUALIFY_SECONDS_MAX * NS_PER_SECOND);
        for (int i = 0; i < QUALIFY_FIGURES; i++)
            CHECK(!options.golden.given[i] || (rc == 0 && options.golden.limit[i] >= 0));
        CHECK(rc < 0 || !pair ||
              (options.pair.host && options.pair.port > 0 && options.pair.deadline_ns > 0));
    }
    return 0;
}
