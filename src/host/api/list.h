/* list.h - shared by get and list. Private to api. */
#ifndef PHX_HOST_API_LIST_H
#define PHX_HOST_API_LIST_H

#include "host/api/request.h"

struct render list_render(struct api_request *request, struct json_writer out);
/* Rows that show another kind's objects show those alone of which they know something. */
bool object_is_listed(const struct api *api, const struct resource *resource, struct object_ref object,
                      int64_t now_ns);
/* A row of an open Table. */
void list_put_row(struct render *render, struct answer_form form, const struct resource *resource,
                  struct object_ref object, struct str name);

#endif
