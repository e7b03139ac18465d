/* The names of transports. */
#include "flow/wire/hub.h"

bool wire_transport_parse(const char *name, enum wire_transport *ret)
{
    static const char *const names[] = {
        [WIRE_BY_SOCKET] = "socket", [WIRE_BY_UCX] = "ucx", [WIRE_BY_AUTO] = "auto"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *ret = (enum wire_transport)i;
            return true;
        }
    return false;
}
