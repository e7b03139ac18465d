#include "host/access/access.h"
#include "host/api/openapi.h"
#include "host/api/request.h"
#include "kube/usage.h"

struct api *api_new_bare(const struct api_hooks *hooks)
{
    CHECK(hooks->core && hooks->now_ns && hooks->submit && hooks->logs && hooks->logs_closed);
    struct api *api = mem_alloc(sizeof *api);
    api->hooks = *hooks;
    list_init(&api->pending);
    list_init(&api->holds);
    api->ring = watch_ring_new(api);
    api->openapi = openapi_new();
    api->usages = usage_table_new();
    api->builtins = access_builtins_new();
    return api;
}

void api_free_bare(struct api *api)
{
    CHECK(list_empty(&api->pending) && list_empty(&api->holds) && api->retries.len == 0);
    watch_ring_free(api->ring);
    openapi_free(api->openapi);
    usage_table_free(api->usages);
    access_builtins_free(api->builtins);
    vec_done(&api->retries);
    vec_done(&api->told_of_images);
    mem_free(api);
}

void api_changed(struct api *api, const struct effect *changed)
{
    watch_ring_add(api->ring, changed);
}

void api_usage(struct api *api, machine_id machine, const struct usage *usage)
{
    usage_put(api->usages, machine, usage, api->hooks.now_ns(api->hooks.context));
}

void api_stats(const struct api *api, struct api_stats *ret_stats)
{
    *ret_stats = api->stats;
    watch_ring_stats(api->ring, ret_stats);
}
