/* errands.c - the ends of errands (errand/errand.h) to those who began them. */
#include "core/internal.h"

static void hand_over(struct step *step, const struct errand *errand, const struct errand_end *end)
{
    CHECK(step->errands && end->errand == errand->uid);
    switch (errand->owner) { /* a case for each owner that begins errands */
    case ERRAND_OF_HANG:
        hang_errand_ended(step, errand, end);
        break;
    case ERRAND_OF_REPAIR:
        repairs_errand_ended(step, errand, end);
        break;
    case ERRAND_OF_PREFLIGHT:
        break;
    }
}

bool core_errands(struct core *core, struct step *step)
{
    const struct errand *errand;
    struct errand_end end;
    bool any = false;
    while (errands_next_end(core->errands, &errand, &end)) {
        hand_over(step, errand, &end);
        any = true;
    }
    return any;
}
