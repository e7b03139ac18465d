/* subresource.h - subresources of objects: .../pods/NAME/eviction, .../jobsets/NAME/status. Private to api.
 *
 * Logs and commands are served by podlog.c and podexec.c; they are in the table so that discovery lists them.
 */
#ifndef PHX_HOST_API_SUBRESOURCE_H
#define PHX_HOST_API_SUBRESOURCE_H

#include "host/api/request.h"

struct subresource {
    const char *name;
    const char *group, *version, *kind; /* of its body; kind NULL: the object itself */
    unsigned verbs;
};
/* Returns the subresources of a resource, in static storage; an entry without a name ends the list. */
const struct subresource *subresources_of(const struct resource *resource);

/* Serves `status`, `eviction`, `token`, `injections`, `diagnosis` and `pendingworkloads`; answers 404 for any
 * other. */
void handle_subresource(struct api_request *request);
void handle_diagnosis(struct api_request *request);     /* diagnosis.c */
void handle_token_request(struct api_request *request); /* tokenrequest.c */
void handle_inject(struct api_request *request);        /* injection.c */

#endif
