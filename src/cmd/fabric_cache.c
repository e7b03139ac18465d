#include "cmd/fabric_cache.h"

#include "core/fabric/pattern.h"
#include "job/fabric/cache.h"

/* Reads tables from the folder. Returns false if there are no valid ones. *ret_source describes the result in
 * words. */
static bool take_cached(const char *folder, const struct torus *torus, struct route *ret_route,
                        struct proof *ret_proof, uint32_t *ret_load, const char **ret_source)
{
    struct buf bytes BUF_CLEANUP = {0};
    struct error ignored;
    int found = folder ? route_cache_read(folder, torus, &bytes, &ignored) : ERROR_NOT_FOUND;
    bool good =
        found == 0 && pattern_routes(buf_str(&bytes), torus, ret_route, ret_proof, ret_load, &ignored) == 0;
    *ret_source = good                       ? "from the cache"
                  : found == ERROR_NOT_FOUND ? "built"
                                             : "built, because the cache's file is damaged";
    return good;
}

int fabric_cache_routes(const char *folder, const struct torus *torus, struct route *ret_route,
                        struct proof *ret_proof, uint32_t *ret_load, const char **ret_source,
                        struct error *error)
{
    if (take_cached(folder, torus, ret_route, ret_proof, ret_load, ret_source))
        return 0;
    int status = route_build(torus, ret_route, error);
    if (status == 0)
        status = route_prove(torus, ret_route, ret_proof, ret_load, error);
    if (status == 0 && folder && (status = route_cache_write(folder, torus, ret_route, error)) < 0)
        error_wrap(error, "--cache");
    return status;
}
