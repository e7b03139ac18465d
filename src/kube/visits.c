#include "kube/visits.h"

#include "kube/patch.h"

int visits_charge(struct visits *visits, size_t more)
{
    visits->count += more;
    if (visits->count <= PATCH_VISITS_MAX)
        return 0;
    return error_set(visits->error, ERROR_LIMIT,
                     "the patch visits more than %d members: send it in several parts", PATCH_VISITS_MAX);
}
