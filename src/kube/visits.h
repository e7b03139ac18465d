/* visits.h - the budget of one patch: how many members and list items it may look at, whatever its form.
 * Private to kube.
 *
 *     struct visits visits = {.error = error};
 *     if (visits_charge(&visits, doc_len(object)) < 0)
 *         return ERROR_LIMIT;
 */
#ifndef PHX_KUBE_VISITS_H
#define PHX_KUBE_VISITS_H

#include <stddef.h>

#include "base/error.h"

enum { VISITS_OF_INDEXED = 8 }; /* cost in visits of adding a member to an index */

struct visits {
    size_t count;
    struct error *error;
};

/* Counts visits. Returns ERROR_LIMIT with a message once PATCH_VISITS_MAX is exceeded, else 0. */
int visits_charge(struct visits *visits, size_t more);

#endif
