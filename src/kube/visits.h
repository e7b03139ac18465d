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

enum { VISITS_OF_INDEXED = 8 }; /* what a member costs that is put into an index, in visits */

struct visits {
    size_t count;
    struct error *error;
};

/* Returns ERROR_LIMIT with a message from the visit on that exceeds PATCH_VISITS_MAX. */
int visits_charge(struct visits *visits, size_t more);

#endif
