/* injection.c - nodes/NAME/injections: POST makes the Node's agent inject a fault, or undo one. The result
 * is an Event of the Node, with the name that the client chose (core/react/injections.c). */
#include "host/api/subresource.h"
#include "host/api/write.h"

void handle_inject(struct api_request *request)
{
    struct doc *document = NULL;
    struct buf text BUF_CLEANUP = {0};
    if (!body_parse(request, &document))
        return;
    struct write_job *job = write_job_new(request, WRITE_INJECT);
    json_write(&text, document);
    job->event.body = arena_str(&request->arena, buf_str(&text));
    write_submit(request);
}
