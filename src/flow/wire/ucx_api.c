/* Loads libucp. */
#include "flow/wire/ucx_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

struct ucx_api ucx_api;

static pthread_mutex_t api_mutex = PTHREAD_MUTEX_INITIALIZER;
static void *api_library; /* never closed: UCX does not support that */

static const struct {
    const char *name;
    void **place;
} api_functions[] = {
#define UCX_ROW(name) {#name, (void **)&ucx_api.name},
    UCX_FUNCTIONS(UCX_ROW)
#undef UCX_ROW
};

static int api_load(struct error *error)
{
    setenv("UCX_LOG_FILE", "stderr", 0); /* the default of UCX is to write warnings to standard output */
    void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(error, ERROR_UNSUPPORTED, "UCX cannot be used here (Debian: libucx0): %s",
                         dlerror());
    for (size_t i = 0; i < sizeof api_functions / sizeof *api_functions; i++) {
        *api_functions[i].place = dlsym(library, api_functions[i].name);
        if (!*api_functions[i].place)
            return error_set(error, ERROR_UNSUPPORTED,
                             "libucp.so.0 has no function %s: UCX 1.13 or newer is needed",
                             api_functions[i].name);
    }
    api_library = library;
    return 0;
}

int ucx_api_load(struct error *error)
{
    pthread_mutex_lock(&api_mutex);
    int rc = api_library ? 0 : api_load(error);
    pthread_mutex_unlock(&api_mutex);
    return rc;
}
