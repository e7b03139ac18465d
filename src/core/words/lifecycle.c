#include "core/words/lifecycle.h"

#include <stdio.h>

#include "base/check.h"

void lifecycle_move(const struct lifecycle *lifecycle, uint8_t *state, uint8_t to)
{
    CHECK(lifecycle->states > 0 && lifecycle->states <= 8 * sizeof *lifecycle->next);
    if (!lifecycle_allows(lifecycle, *state, to)) {
        CHECK(*state < lifecycle->states && to < lifecycle->states);
        fprintf(stderr, "%s: no move from %s to %s\n", lifecycle->what, lifecycle->names[*state],
                lifecycle->names[to]);
        CHECK_UNREACHABLE();
    }
    *state = to;
}
