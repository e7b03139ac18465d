#include "host/standby/way.h"

#include <unistd.h>

#include "base/check.h"

/* --- the end ------------------------------------------------------------------------------------------ */

bool way_hang_up(struct pair *pair)
{
    if (!pair->calling)
        return false;
    secure_cancel(pair->calling);
    pair->calling = NULL;
    pair->way = WAY_NONE;
    return true;
}

static void on_way_closed(uv_handle_t *handle)
{
    struct pair *pair = handle->data;
    if (pair->closing) {
        pair_handle_closed(handle);
        return;
    }
    pair->open--;
    pair->way = WAY_NONE;
    pair->here = pair->stale = pair->to_leader = pair->reads_leader = false;
    pair_go_on(pair);
}

void way_close(struct pair *pair)
{
    if (way_hang_up(pair) || (pair->way != WAY_BEGUN && pair->way != WAY_OPEN))
        return;
    pair->way = WAY_CLOSING;
    uv_close((uv_handle_t *)&pair->leader, on_way_closed);
}

/* --- the beginning ------------------------------------------------------------------------------------ */

static void on_connected(uv_connect_t *request, int status)
{
    struct pair *pair = request->data;
    if (pair->closing || pair->way != WAY_BEGUN)
        return;
    if (status < 0) { /* nothing was sent: the request waits for a leader that accepts it */
        pair->refused = true;
        way_close(pair);
        return;
    }
    pair->way = WAY_OPEN;
    uv_tcp_nodelay(&pair->leader, 1);
    pair_go_on(pair);
}

/* Takes over a socket that leads to the answering server. Returns false, and closes the socket, if it cannot
 * be used. */
static bool way_open(struct pair *pair, int fd)
{
    uv_tcp_init(pair->all->loop, &pair->leader);
    pair->leader.data = pair;
    pair->open++;
    pair->way = WAY_OPEN;
    if (uv_tcp_open(&pair->leader, fd) == 0) /* libuv's TCP handle works with any stream socket */
        return true;
    close(fd);
    way_close(pair);
    return false;
}

/* Joins the client to the local API. If no descriptor is left, the leader answers the request. */
static void way_begin_here(struct pair *pair)
{
    struct pairs *all = pair->all;
    uv_os_fd_t client;
    int fd =
        uv_fileno((uv_handle_t *)&pair->client, &client) == 0
            ? all->reads.connect(all->reads.context, client, pair->kind == PAIR_SECURE ? &pair->secure : NULL)
            : -1;
    pair->here = fd >= 0;
    if (fd < 0 || !way_open(pair, fd))
        pair->rule.here = false;
}

static void on_called(void *context, int fd)
{
    struct pair *pair = context;
    pair->calling = NULL;
    pair->way = WAY_NONE;
    if (fd >= 0 && way_open(pair, fd))
        pair_go_on(pair);
    else
        pair->refused = true; /* the next tick tries again */
}

/* Opens a TLS session with the leader, or answers the request if the leader is known to take none. */
static void way_begin_secure(struct pair *pair)
{
    struct secure *secure = pair->all->secure;
    if (!secure_ends(secure)) {
        pair_refuse_untaken(pair, "the leader takes no requests from this controller");
        return;
    }
    pair->calling = secure_call(secure, on_called, pair);
    pair->way = pair->calling ? WAY_BEGUN : WAY_NONE;
    pair->refused = !pair->calling;
}

void way_begin(struct pair *pair)
{
    struct pairs *all = pair->all;
    bool reads = pair->state == PAIR_HELD && pair->rule.here && all->reads.connect;
    if (pair->way == WAY_NONE && !pair->closing && reads)
        way_begin_here(pair);
    if (pair->way != WAY_NONE || pair->closing || !all->has_leader)
        return;
    if (pair->kind == PAIR_SECURE) {
        way_begin_secure(pair);
        return;
    }
    uv_tcp_init(all->loop, &pair->leader);
    pair->leader.data = pair->connect.data = pair;
    pair->open++;
    pair->way = WAY_BEGUN;
    if (uv_tcp_connect(&pair->connect, &pair->leader, (struct sockaddr *)&all->leader, on_connected) < 0)
        way_close(pair);
}
