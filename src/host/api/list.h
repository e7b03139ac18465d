/* list.h - shared by get and list. Private to api. */
#ifndef PHX_HOST_API_LIST_H
#define PHX_HOST_API_LIST_H

#include "host/api/request.h"

/* Returns the settings with which the request's objects are rendered into `out`. */
struct render list_render(struct api_request *request, struct json_writer out);
/* Returns whether a resource shows the object. Resources that are views of another kind (metrics, lemons)
 * show only objects about which they have data. */
bool object_is_listed(const struct api *api, const struct resource *resource, struct object_ref object,
                      int64_t now_ns);
/* Writes the object's row into a Table that has been begun. */
void list_put_row(struct render *render, struct answer_form form, const struct resource *resource,
                  struct object_ref object, struct str name);

#endif
