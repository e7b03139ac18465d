#include "cmd/fabric_cache.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "core/fabric/pattern.h"
#include "os/file.h"

/* Through a file beside it and a rename, so that a reader never sees a part. */
static int leave(const char *path, const struct torus *torus, const struct route *route, struct error *error)
{
    struct buf bytes BUF_CLEANUP = {0}, beside BUF_CLEANUP = {0};
    pattern_pack(torus, route, &bytes);
    buf_printf(&beside, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(beside.data, "we");
    bool good = file && fwrite(bytes.data, 1, bytes.len, file) == bytes.len;
    good = file && fclose(file) == 0 && good && rename(beside.data, path) == 0;
    int reason = errno;
    if (good)
        return 0;
    unlink(beside.data);
    return error_set_errno(error, reason, "--cache: %s", path);
}

int fabric_cache_routes(const char *folder, const struct torus *torus, struct route *ret_route,
                        struct proof *ret_proof, uint32_t *ret_load, const char **ret_source,
                        struct error *error)
{
    struct buf path BUF_CLEANUP = {0}, bytes BUF_CLEANUP = {0};
    struct error ignored;
    char key[PATTERN_KEY_MAX];
    *ret_source = "built";
    if (folder) {
        pattern_key(torus, key);
        buf_printf(&path, "%s/%s.route", folder, key);
        if (os_file_read(path.data, pattern_size_max(torus), &bytes, &ignored) == 0) {
            if (pattern_routes(buf_str(&bytes), torus, ret_route, ret_proof, ret_load, &ignored) == 0) {
                *ret_source = "from the cache";
                return 0;
            }
            *ret_source = "built, because the cache's file is damaged";
        }
    }
    int status = route_build(torus, ret_route, error);
    if (status == 0)
        status = route_prove(torus, ret_route, ret_proof, ret_load, error);
    if (status == 0 && folder)
        status = leave(path.data, torus, ret_route, error);
    return status;
}
