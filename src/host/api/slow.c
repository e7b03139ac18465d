#include "host/api/slow.h"

#include <sys/socket.h>

#include "base/units.h"

void slow_init(struct slow *slow)
{
    for (int i = 0; i < SLOW_STAGES; i++)
        list_init(&slow->stages[i]);
}

void slow_move(struct slow *slow, struct slow_peer *peer, enum slow_stage stage, int64_t now_ns)
{
    list_remove(&peer->node);
    peer->since_ns = now_ns;
    if (stage < SLOW_STAGES)
        list_append(&slow->stages[stage], &peer->node);
}

void slow_tick(struct slow *slow, int64_t now_ns)
{
    static const int limits_s[SLOW_STAGES] = {[SLOW_QUIET] = 120, [SLOW_HEADERS] = 20, [SLOW_BODY] = 60};
    for (int i = 0; i < SLOW_STAGES; i++) {
        list_for_each_safe(node, after, &slow->stages[i])
        {
            struct slow_peer *peer = (struct slow_peer *)node; /* its first member */
            if (now_ns - peer->since_ns < limits_s[i] * NS_PER_SECOND)
                break;
            const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(peer->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
            list_remove(&peer->node);
            if (info)
                (void)shutdown(info->connect_fd, SHUT_RDWR);
        }
    }
}
