/* internal.h - finds switch drivers: those built into Phalanx, and those in shared libraries. */
#ifndef PHX_HOST_FABRIC_INTERNAL_H
#define PHX_HOST_FABRIC_INTERNAL_H

#include "base/error.h"
#include "phalanx/driver.h"

extern const struct phx_switch_driver driver_scpi, driver_tl1, driver_sai;

/* Finds the driver named "scpi", "tl1" or "sai", or loads the shared library at a path with a '/'. A library
 * stays loaded until the process ends. Returns ERROR_NOT_FOUND if there is no such driver or library, and
 * ERROR_UNSUPPORTED if the library has no usable driver. */
int driver_find(const char *name, const struct phx_switch_driver **ret_driver, struct error *error);

#endif
