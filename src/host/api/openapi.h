/* openapi.h - the schema tables as OpenAPI v3 documents, one a group and version. Private to api.
 *
 * kubectl reads from them that the server validates fields itself, and what `kubectl explain` prints. The
 * documents depend on nothing that changes while the server runs: each is made once, when it is first asked
 * for.
 */
#ifndef PHX_HOST_API_OPENAPI_H
#define PHX_HOST_API_OPENAPI_H

#include "kube/resource.h"

struct openapi; /* the documents made so far */
struct openapi *openapi_new(void);
void openapi_free(struct openapi *openapi);

/* Describes a field in a sentence; NULL: there is no description. `schema`: a name from the tables. */
const char *openapi_describe(const char *schema, const char *field);

#endif
