/* sockets.c - a socket for each container's process, at which libphalanx reaches the agent.
 *
 *     <state>/sockets/<container>/agent.sock      0600, of the container's user; the folder is the agent's
 *
 * A connection speaks for one task: the socket's. Its peer must descend from a shim of that task, whatever
 * its user, so that no other process on the machine can join in the task's place, or report or learn of its
 * checkpoints. The agent owns the folder, since an owner could put a link in the socket's place while the
 * agent recreates it.
 *
 * The path depends on the state directory alone, so tasks find a restarted agent. A path in sun_path has 108
 * bytes; if the state directory's path is too long, the sockets are in a folder with a short name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/hash.h"
#include "host/agent/internal.h"
#include "os/folder.h"

enum { SOCKET_BACKLOG = 64, NUMBER_DIGITS_MAX = 20 };

struct task_socket {
    uv_pipe_t listener;
    struct list_node node;
    struct live *live;
    uint64_t container; /* of local_container_uid */
    uint32_t user, group;
    struct file_mark mark;
};

/* --- paths ---------------------------------------------------------------------------------------- */

/* Writes the path of the folder of all sockets. */
static void folder_path(const struct live *live, char ret_path[PATH_BYTES + 64])
{
    size_t rest = strlen("/sockets/") + NUMBER_DIGITS_MAX + strlen("/agent.sock");
    size_t len = strlen(live->directory);
    if (len + rest <= AGENT_SOCKET_PATH_MAX)
        snprintf(ret_path, PATH_BYTES + 64, "%s/sockets", live->directory);
    else
        snprintf(ret_path, PATH_BYTES + 64, "%s/phalanx-%u-%016llx", geteuid() == 0 ? "/run" : "/tmp",
                 (unsigned)geteuid(), (unsigned long long)hash64(0, live->directory, len));
}

static void container_path(const struct live *live, uint64_t container, const char *name,
                           char ret_path[PATH_BYTES + 128])
{
    char folder[PATH_BYTES + 64];
    folder_path(live, folder);
    snprintf(ret_path, PATH_BYTES + 128, "%s/%llu%s", folder, (unsigned long long)container, name);
}

const char *local_socket_path(const struct live *live, uint64_t container, struct arena *arena)
{
    char path[PATH_BYTES + 128];
    container_path(live, container, "/agent.sock", path);
    return arena_strdup(arena, str_from(path));
}

/* --- listening ------------------------------------------------------------------------------------ */

static void on_connection(uv_stream_t *listener, int status)
{
    const struct task_socket *door = listener->data;
    if (status == 0)
        local_client_accept(door->live, door->container, listener);
}

static void on_closed(uv_handle_t *handle)
{
    struct task_socket *door = handle->data;
    struct agent_host *host = door->live->machine->host;
    mem_free(door);
    local_part_closed(host);
}

/* Makes the folders, through which another user's process must reach its socket. */
static int make_folders(const struct task_socket *door, struct error *error)
{
    char all[PATH_BYTES + 64], own[PATH_BYTES + 128];
    folder_path(door->live, all);
    container_path(door->live, door->container, "", own);
    int rc = os_folder_private(all, os_folder_way(), error);
    return rc == 0 ? os_folder_private(own, door->user == geteuid() ? 0700 : 0711, error) : rc;
}

/* Binds the socket. The agent owns the folder, so no other user can replace the socket in between. */
static int bind_at(int fd, const char *path, const struct task_socket *door, struct error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len >= sizeof address.sun_path)
        return error_set(error, ERROR_INVALID, "the path of the socket %s is longer than %zu bytes", path,
                         sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, len);
    unlink(path); /* an earlier agent's socket, or another file in its place */
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, 0600) < 0 ||
        (door->user != geteuid() && lchown(path, door->user, door->group) < 0))
        return error_set_errno(error, errno, "making the socket %s", path);
    return 0;
}

static int listen_at(struct task_socket *door, const char *path, struct error *error)
{
    int rc = make_folders(door, error);
    if (rc < 0)
        return rc;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return error_set_errno(error, errno, "making the socket %s", path);
    rc = bind_at(fd, path, door, error);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    /* Owned by the handle from here on; closing it leaves the path alone. */
    rc = uv_pipe_open(&door->listener, fd);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&door->listener, SOCKET_BACKLOG, on_connection);
    local_state_mark(path, &door->mark);
    return rc == 0 ? 0 : error_set(error, ERROR_IO, "listening on %s: %s", path, uv_strerror(rc));
}

static void close_door(struct task_socket *door)
{
    list_remove(&door->node);
    uv_close((uv_handle_t *)&door->listener, on_closed);
}

static int open_door(struct live *live, uint64_t container, uint32_t user, uint32_t group,
                     struct error *error)
{
    char path[PATH_BYTES + 128];
    struct task_socket *door = mem_alloc(sizeof *door);
    *door = (struct task_socket){.live = live, .container = container, .user = user, .group = group};
    uv_pipe_init(live->machine->host->loop, &door->listener, 0);
    door->listener.data = door;
    live->machine->host->open_parts++;
    list_append(&live->sockets, &door->node);
    container_path(live, container, "/agent.sock", path);
    int rc = listen_at(door, path, error);
    if (rc < 0)
        close_door(door);
    return rc;
}

static struct task_socket *find(const struct live *live, uint64_t container)
{
    list_for_each(node, &live->sockets)
    {
        struct task_socket *door = container_of(node, struct task_socket, node);
        if (door->container == container)
            return door;
    }
    return NULL;
}

int local_socket_open(struct live *live, const struct task_launch *launch, uint32_t index,
                      struct error *error)
{
    uint64_t number = local_container_uid(launch->task, index);
    struct container_launch container;
    if (find(live, number))
        return 0; /* a restart in place */
    local_container_launch(launch, index, &container);
    return open_door(live, number, local_user_of(&container), local_group_of(&container), error);
}

void local_socket_remove(struct live *live, uint64_t container)
{
    char path[PATH_BYTES + 128];
    struct task_socket *door = find(live, container);
    if (door)
        close_door(door);
    container_path(live, container, "/agent.sock", path);
    unlink(path);
    container_path(live, container, "", path);
    rmdir(path);
}

/* --- the agent's own files (state.c) -------------------------------------------------------------- */

static bool is_whole(const struct task_socket *door)
{
    char path[PATH_BYTES + 128];
    container_path(door->live, door->container, "/agent.sock", path);
    return local_state_is_there(path, door->mark);
}

bool local_sockets_whole(const struct live *live)
{
    list_for_each(node, &live->sockets) if (!is_whole(container_of(node, struct task_socket, node)))
        return false;
    return true;
}

/* A socket that cannot be made again stays in the list, and is tried again the next time. */
int local_sockets_renew(struct live *live, struct error *error)
{
    int rc = 0;
    list_for_each_safe(node, after, &live->sockets)
    {
        struct task_socket *door = container_of(node, struct task_socket, node);
        if (rc < 0 || is_whole(door))
            continue;
        rc = open_door(live, door->container, door->user, door->group, error);
        if (rc == 0)
            close_door(door);
    }
    return rc;
}

void local_sockets_close(struct live *live)
{
    char path[PATH_BYTES + 64];
    list_for_each_safe(node, after, &live->sockets) close_door(container_of(node, struct task_socket, node));
    folder_path(live, path);
    rmdir(path); /* running tasks keep theirs: the next agent listens there again */
}
