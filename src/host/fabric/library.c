#include <dlfcn.h>
#include <string.h>

#include "host/fabric/internal.h"

static int check_table(const char *path, const struct phx_switch_driver *driver, struct error *error)
{
    if (!driver)
        return error_set(error, ERROR_UNSUPPORTED, "%.200s: %s() returns no driver", path,
                         PHX_SWITCH_DRIVER_SYMBOL);
    if (driver->abi < PHX_SWITCH_DRIVER_ABI)
        return error_set(error, ERROR_UNSUPPORTED,
                         "%.200s: its driver is of version %u: expected %d or later; build it again with "
                         "phalanx/driver.h",
                         path, driver->abi, PHX_SWITCH_DRIVER_ABI);
    if (!driver->name || !driver->open || !driver->close || !driver->identify || !driver->list ||
        !driver->add || !driver->remove || !driver->ports)
        return error_set(
            error, ERROR_UNSUPPORTED,
            "%.200s: its driver lacks a function: expected name, open, close, identify, list, add, "
            "remove and ports",
            path);
    return 0;
}

static int load_driver(const char *path, const struct phx_switch_driver **ret_driver, struct error *error)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(error, ERROR_NOT_FOUND, "driver: %.400s", dlerror());
    phx_switch_driver_fn *entry;
    *(void **)&entry = dlsym(library, PHX_SWITCH_DRIVER_SYMBOL);
    if (!entry) {
        dlclose(library);
        return error_set(error, ERROR_UNSUPPORTED, "%.200s: no driver of switches: it has no symbol %s", path,
                         PHX_SWITCH_DRIVER_SYMBOL);
    }
    const struct phx_switch_driver *driver = entry();
    int rc = check_table(path, driver, error);
    if (rc < 0)
        dlclose(library);
    else
        *ret_driver = driver;
    return rc;
}

int driver_find(const char *name, const struct phx_switch_driver **ret_driver, struct error *error)
{
    if (strchr(name, '/'))
        return load_driver(name, ret_driver, error);
    const struct phx_switch_driver *known[] = {&driver_scpi, &driver_tl1, &driver_sai};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i]->name, name) == 0) {
            *ret_driver = known[i];
            return 0;
        }
    return error_set(error, ERROR_NOT_FOUND,
                     "driver \"%.64s\": expected scpi, tl1, sai, or the path of a shared library with a '/'",
                     name);
}
