/* The functions of hub.h in a build without UCX. */
#include "flow/wire/hub.h"

#include "base/check.h"

int wire_hub_new(enum wire_transport transport, struct wire_hub **ret_hub, struct error *error)
{
    *ret_hub = NULL;
    if (transport != WIRE_BY_UCX)
        return 0;
    return error_set(
        error, ERROR_UNSUPPORTED,
        "this build has no UCX: install libucx-dev and build again, or use the transport socket");
}

void wire_hub_free(struct wire_hub *hub)
{
}

int wire_hub_connect(struct wire_hub *hub, const char *address, struct wire **ret_wire, struct error *error)
{
    return flow_wire_connect(address, ret_wire, error);
}

void wire_hub_offer(struct wire_hub *hub, struct wire *wire)
{
}

int wire_hub_fd(const struct wire_hub *hub)
{
    CHECK_UNREACHABLE();
}

bool wire_hub_turn(struct wire_hub *hub)
{
    CHECK_UNREACHABLE();
}

struct wire *wire_hub_next(struct wire_hub *hub)
{
    CHECK_UNREACHABLE();
}
