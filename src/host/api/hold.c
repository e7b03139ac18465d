#include "host/api/hold.h"

void hold_begin(struct hold *hold, const struct api_request *request,
                void (*end)(struct hold *hold, int code))
{
    hold->pass = guard_pass_new(request);
    hold->api = request->api;
    hold->transport = request->transport;
    hold->end = end;
    if (hold->pass)
        list_append(&request->api->holds, &hold->node);
}

void hold_done(struct hold *hold)
{
    if (!hold->pass)
        return;
    list_remove(&hold->node);
    guard_pass_free(hold->pass);
    hold->pass = NULL;
}

void holds_check(struct api *api)
{
    if (!api->access || !guard_look_due(api, &api->holds_look))
        return;
    list_for_each_safe(node, after, &api->holds)
    {
        struct hold *hold = container_of(node, struct hold, node);
        int code = guard_pass_check(hold->pass, hold->api, hold->transport);
        if (code == 0)
            continue;
        hold_done(hold);
        hold->end(hold, code);
    }
}
