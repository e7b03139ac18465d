/* driver.c - finds the driver of the machine's chips: built in, or a shared library. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "job/fabric/internal.h"

static int load_library(const char *path, const struct phx_chips_driver **ret_driver, struct phx_error *error)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return fabric_fail(error, PHX_ERROR_INVALID, "driver of chips: %.200s", dlerror());
    phx_chips_driver_fn *entry;
    *(void **)&entry = dlsym(library, PHX_CHIPS_DRIVER_SYMBOL);
    const struct phx_chips_driver *driver = entry != NULL ? entry() : NULL;
    if (driver == NULL || driver->abi < PHX_CHIPS_DRIVER_ABI) {
        dlclose(library);
        return fabric_fail(error, PHX_ERROR_INVALID, "%.150s: no driver of chips of version %d or later",
                           path, PHX_CHIPS_DRIVER_ABI);
    }
    *ret_driver = driver;
    return 0;
}

int fabric_driver(const char *text, const struct phx_chips_driver **ret_driver, const char **ret_address,
                  struct phx_error *error)
{
    const char *colon = strchr(text, ':');
    char name[4096];
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    if (len == 0 || len >= sizeof name)
        return fabric_fail(error, PHX_ERROR_INVALID,
                           "PHX_CHIP_NETWORK \"%.100s\": expected emulated:PATH or LIBRARY:ADDRESS", text);
    snprintf(name, sizeof name, "%.*s", (int)len, text);
    *ret_address = colon + 1;
    if (strchr(name, '/') != NULL)
        return load_library(name, ret_driver, error);
    if (strcmp(name, fabric_emulated.name) != 0)
        return fabric_fail(
            error, PHX_ERROR_INVALID,
            "PHX_CHIP_NETWORK \"%.100s\": expected the driver emulated, or the path of a library with a "
            "'/'",
            text);
    *ret_driver = &fabric_emulated;
    return 0;
}
