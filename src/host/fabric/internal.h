/* internal.h - the drivers that Phalanx brings, and those from shared libraries. */
#ifndef PHX_HOST_FABRIC_INTERNAL_H
#define PHX_HOST_FABRIC_INTERNAL_H

#include "base/error.h"
#include "phalanx/driver.h"

extern const struct phx_switch_driver driver_scpi, driver_tl1, driver_sai;

/* The driver named "scpi", "tl1" or "sai", or that of the shared library at a path with a '/'. A library
 * stays loaded until the process ends. ERROR_NOT_FOUND, ERROR_UNSUPPORTED: the reason is in *error. */
int driver_find(const char *name, const struct phx_switch_driver **ret_driver, struct error *error);

#endif
