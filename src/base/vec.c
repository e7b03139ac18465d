#include "base/vec.h"

void vec_grow(void **items, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return;
    size_t grown = *cap < 8 ? 8 : *cap;
    while (grown < need) {
        CHECK(grown <= SIZE_MAX / 2);
        grown *= 2;
    }
    size_t bytes;
    CHECK(!__builtin_mul_overflow(grown, size, &bytes));
    *items = mem_realloc(*items, bytes);
    *cap = grown;
}
