/* listen.h - the socket that the API listens at. No state; any thread. */
#ifndef PHX_HOST_API_LISTEN_H
#define PHX_HOST_API_LISTEN_H

#include <stdint.h>

#include "base/error.h"

/* A listening TCP socket at a numeric address, non-blocking and closed on exec; the caller closes it. Port 0:
 * any; *ret_port says which. Connections that it accepts notice a silent peer within two minutes. A negative
 * error when the address is none (ERROR_INVALID) or cannot be had. */
int api_listen(const char *address, uint16_t port, uint16_t *ret_port, struct error *error);

#endif
