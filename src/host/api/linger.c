#include "host/api/linger.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"

enum { READS_A_TURN = 16 };

struct late {
    struct lingering *linger;
    struct list_node node;
    uv_poll_t poll;
    int fd, ticks;
};

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

static void drop(struct late *late)
{
    list_remove(&late->node);
    late->linger->count--;
    uv_close((uv_handle_t *)&late->poll, on_closed);
    close(late->fd);
}

static void on_bytes(uv_poll_t *poll, int status, int events)
{
    static char nowhere[65536];
    struct late *late = poll->data;
    ssize_t got = 1;
    (void)status;
    (void)events;
    for (int i = 0; i < READS_A_TURN && got > 0; i++)
        got = recv(late->fd, nowhere, sizeof nowhere, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        drop(late);
}

void linger_init(struct lingering *linger, uv_loop_t *loop)
{
    *linger = (struct lingering){.loop = loop};
    list_init(&linger->sockets);
}

void linger_take(struct lingering *linger, int fd, bool early)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    bool wanted = got > 0 || (got < 0 && errno == EAGAIN && early);
    if (!linger->loop || !wanted || linger->count == LINGER_MAX)
        return;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return;
    struct late *late = mem_alloc(sizeof *late);
    *late = (struct late){.linger = linger, .fd = own};
    if (shutdown(own, SHUT_WR) < 0 || uv_poll_init(linger->loop, &late->poll, own) != 0) {
        close(own);
        mem_free(late);
        return;
    }
    late->poll.data = late;
    list_append(&linger->sockets, &late->node);
    linger->count++;
    uv_poll_start(&late->poll, UV_READABLE, on_bytes);
}

void linger_tick(struct lingering *linger)
{
    list_for_each_safe(node, after, &linger->sockets)
    {
        struct late *late = container_of(node, struct late, node);
        if (++late->ticks > LINGER_TICKS)
            drop(late);
    }
}

void linger_close(struct lingering *linger)
{
    list_for_each_safe(node, after, &linger->sockets) drop(container_of(node, struct late, node));
    linger->loop = NULL;
}
