/* openapi.h - the schema tables as OpenAPI v3 documents, one per group and version. Private to api.
 *
 * kubectl reads from them that the server validates fields itself, and the text of `kubectl explain`. The
 * documents do not change while the server runs: each is made once, at its first request.
 */
#ifndef PHX_HOST_API_OPENAPI_H
#define PHX_HOST_API_OPENAPI_H

#include "kube/resource.h"

struct openapi; /* the documents made so far */
struct openapi *openapi_new(void);
void openapi_free(struct openapi *openapi);

/* Returns a sentence that describes a field, in static storage, or NULL if there is none. `schema` is a name
 * from the tables. */
const char *openapi_describe(const char *schema, const char *field);

#endif
