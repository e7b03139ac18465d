/* prefer.c - the comparison of two places for a rank that moves. */
#include "core/ladder/ladder.h"

int ladder_place_compare(const struct ladder_place *a, const struct ladder_place *b)
{
    CHECK(a && b);
    if (a->caused != b->caused)
        return a->caused ? 1 : -1;
    if (a->suspect != b->suspect)
        return a->suspect ? 1 : -1;
    if (a->same_rack != b->same_rack)
        return a->same_rack ? -1 : 1;
    if (a->same_pod != b->same_pod)
        return a->same_pod ? -1 : 1;
    return (a->machine > b->machine) - (a->machine < b->machine);
}
