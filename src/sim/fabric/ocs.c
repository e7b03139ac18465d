#include "sim/fabric/ocs.h"

#include <string.h>

#include "base/check.h"
#include "base/rng.h"

void ocs_init(struct ocs *ocs, const struct ocs_settings *settings)
{
    CHECK(settings->a_ports + settings->b_ports <= OCS_PORTS_MAX && settings->a_ports > 0);
    memset(ocs, 0, sizeof *ocs);
    ocs->settings = *settings;
    ocs->joins_left = UINT64_MAX;
}

uint32_t ocs_ports(const struct ocs *ocs)
{
    return ocs->settings.a_ports + ocs->settings.b_ports;
}

bool ocs_side_a(const struct ocs *ocs, uint32_t port)
{
    return port <= ocs->settings.a_ports;
}

uint32_t ocs_peer(const struct ocs *ocs, uint32_t port)
{
    return port >= 1 && port <= ocs_ports(ocs) ? ocs->port[port].peer : 0;
}

uint32_t ocs_fibre_in(const struct ocs *ocs, uint32_t port)
{
    CHECK(port >= 1 && port <= ocs_ports(ocs));
    return ocs->port[port].fibre ? ocs->port[port].fibre : port;
}

uint32_t ocs_port_of(const struct ocs *ocs, uint32_t fibre)
{
    uint32_t port = fibre; /* follows the circle of ports whose fibres were swapped, usually of length one */
    while (ocs_fibre_in(ocs, port) != fibre)
        port = ocs_fibre_in(ocs, port);
    return port;
}

void ocs_swap(struct ocs *ocs, uint32_t a, uint32_t b)
{
    if (a < 1 || b < 1 || a > ocs_ports(ocs) || b > ocs_ports(ocs) ||
        ocs_side_a(ocs, a) != ocs_side_a(ocs, b))
        return;
    uint32_t fibre = ocs_fibre_in(ocs, a);
    ocs->port[a].fibre = (uint16_t)ocs_fibre_in(ocs, b);
    ocs->port[b].fibre = (uint16_t)fibre;
}

enum ocs_result ocs_may_join(const struct ocs *ocs, uint32_t a, uint32_t b)
{
    if (a < 1 || b < 1 || a > ocs_ports(ocs) || b > ocs_ports(ocs))
        return OCS_NO_PORT;
    if (!ocs_side_a(ocs, a) || ocs_side_a(ocs, b))
        return OCS_WRONG_SIDE;
    if (ocs->port[a].peer == b)
        return OCS_DONE;
    return ocs->port[a].peer || ocs->port[b].peer ? OCS_IN_USE : OCS_DONE;
}

enum ocs_result ocs_join(struct ocs *ocs, uint32_t a, uint32_t b, int64_t now_ns)
{
    enum ocs_result may = ocs_may_join(ocs, a, b);
    if (may != OCS_DONE || ocs->port[a].peer == b)
        return may;
    if (!ocs->joins_left) {
        ocs->dead = true;
        return OCS_DIED;
    }
    ocs->joins_left -= ocs->joins_left != UINT64_MAX;
    ocs->joins++;
    int64_t settled_ns = now_ns + ocs->settings.tuning_ns;
    struct ocs_port *one = &ocs->port[a], *other = &ocs->port[b];
    one->failed = one->stuck;
    other->failed = other->stuck;
    one->settled_ns = other->settled_ns = settled_ns;
    if (!one->failed && !other->failed) {
        one->peer = (uint16_t)b;
        other->peer = (uint16_t)a;
    }
    if (settled_ns > ocs->settled_ns)
        ocs->settled_ns = settled_ns;
    return OCS_DONE;
}

enum ocs_result ocs_part(struct ocs *ocs, uint32_t a, uint32_t b, int64_t now_ns)
{
    if (a < 1 || a > ocs_ports(ocs) || b > ocs_ports(ocs))
        return OCS_NO_PORT;
    uint32_t peer = ocs->port[a].peer;
    if (!peer || (b && b != peer))
        return OCS_NOT_JOINED;
    ocs->port[a].peer = ocs->port[peer].peer = 0;
    ocs->port[a].settled_ns = ocs->port[peer].settled_ns = now_ns;
    return OCS_DONE;
}

int32_t ocs_loss_mdb(const struct ocs *ocs, uint32_t a, uint32_t b)
{
    struct rng rng;
    rng_seed(&rng, ocs->settings.seed ^ ((uint64_t)a << 32 | b));
    return 800 + (int32_t)rng_below(&rng, 1201);
}

int32_t ocs_power_mdbm(const struct ocs *ocs, uint32_t port, int64_t now_ns)
{
    CHECK(port >= 1 && port <= ocs_ports(ocs));
    const struct ocs_port *at = &ocs->port[port];
    if (ocs_side_a(ocs, port))
        return at->dark ? OCS_DARK_MDBM : ocs->settings.light_mdbm;
    if (!at->peer || now_ns < at->settled_ns || at->shutter_closed || ocs->port[at->peer].shutter_closed ||
        ocs->port[at->peer].dark)
        return OCS_DARK_MDBM;
    return ocs->settings.light_mdbm - ocs_loss_mdb(ocs, at->peer, port);
}

void ocs_restart(struct ocs *ocs, bool forget, int64_t now_ns)
{
    ocs->dead = false;
    ocs->joins_left = UINT64_MAX;
    ocs->settled_ns = now_ns;
    for (uint32_t port = 1; port <= ocs_ports(ocs); port++) {
        struct ocs_port *at = &ocs->port[port];
        at->settled_ns = now_ns;
        at->failed = false;
        if (forget)
            at->peer = 0;
    }
}
