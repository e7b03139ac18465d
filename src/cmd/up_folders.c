#include "cmd/up.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/local.h"
#include "host/access/folder.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/namespace.h"

/* --- folders -------------------------------------------------------------------------------------------- */

static bool failed(const char *path)
{
    fprintf(stderr, "phalanx: up: %s: %s\n", path, strerror(errno));
    return false;
}

/* Lets other users pass through folders if tasks run as other users. With --allow-root-tasks a task runs as
 * another user only if it requests that; if agents can bridge a closed folder for such tasks, folders are
 * closed. */
void up_choose_way(struct up *up)
{
    up->bridges = up->bridges && (geteuid() != 0 || os_mounts_refused() == 0);
    up->way = up->root_tasks && !up->task_user && up->bridges ? 0700 : os_folder_way();
}

/* Makes the folder, or takes one that belongs to this user alone. os_folder_own does not change whether
 * others may pass an existing folder. Here they may not if tasks run as this user, and they may if nothing
 * bridges the folder. */
static bool own_folder(const struct up *up, const char *path, char ret_real[PATH_BYTES])
{
    struct error error;
    int rc = os_folder_own(path, up->way, &error);
    if (rc == 0 && !realpath(path, ret_real))
        return failed(path);
    if (rc == 0 && (up->way == 0700 || !up->bridges))
        rc = os_folder_private(ret_real, up->way, &error);
    if (rc < 0)
        fprintf(stderr, "phalanx: up: %s\n", error.text);
    return rc == 0;
}

/* Makes DATA/machines: a folder, or with --state-dir a link to that folder, so that every program finds a
 * machine's state in one place. */
static bool make_state_folder(const struct up *up)
{
    char path[PATH_BYTES + 32], target[PATH_BYTES], now[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/machines", up->data);
    if (!up->state_dir)
        return mkdir(path, 0755) == 0 || errno == EEXIST || failed(path);
    if (!own_folder(up, up->state_dir, target))
        return false;
    if (symlink(target, path) == 0)
        return true;
    if (errno != EEXIST)
        return failed(path);
    if (realpath(path, now) && strcmp(now, target) == 0)
        return true;
    fprintf(stderr, "phalanx: up: %s exists and is not %s: move it away first\n", path, target);
    return false;
}

/* Lets the machines' states join this cluster. With a new log this is another cluster than the one that left
 * the states, for example in a --state-dir that was kept. Machines in this folder belong to its cluster. */
static void move_machines(const struct up *up)
{
    char path[LONG_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/log.db", up->data);
    if (access(path, F_OK) == 0)
        return;
    snprintf(path, sizeof(path), "%s/machines", up->data);
    DIR *machines = opendir(path);
    for (struct dirent *entry; machines && (entry = readdir(machines));) {
        snprintf(path, sizeof(path), "%s/cluster", entry->d_name);
        if (strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(machines), path, 0);
    }
    if (machines)
        closedir(machines);
}

/* Makes the folder in memory that agents use. Agents would keep it for their next start; `phalanx up` removes
 * it when the cluster ends. */
static void make_memory(struct up *up)
{
    struct error error;
    if (keeper_memory(up->data, up->memory, &error) && os_folder_private(up->memory, up->way, &error) == 0)
        return;
    fprintf(stderr, "phalanx: up: tasks can hold no checkpoints in memory: %s\n", error.text);
    snprintf(up->memory, sizeof(up->memory), "none");
}

bool up_make_folders(struct up *up, const char *data)
{
    if (!own_folder(up, data, up->data))
        return false;
    if (!keeper_start(&up->keeper, up->data))
        return false;
    if (!make_state_folder(up)) {
        keeper_end(&up->keeper);
        return false;
    }
    move_machines(up);
    up_remove_ready(up);
    make_memory(up);
    up_make_groups(up);
    return true;
}

bool up_make_credentials(struct up *up)
{
    char host[128], name[NAME_MAX_BYTES + 1];
    struct error error;
    snprintf(host, sizeof(host), "%.*s", (int)strcspn(up->api, ":"), up->api);
    const char *hosts[] = {"localhost", "127.0.0.1", "::1", host};
    bool more = strcmp(host, "127.0.0.1") != 0 && strcmp(host, "localhost") != 0 && *host;
    snprintf(up->access, sizeof(up->access), "%s/access", up->data);
    if (up->access_mode == UP_INSECURE) {
        fprintf(stderr,
                "phalanx: up: warning: --insecure: who reaches the API at %s, as every user of this computer "
                "does, may do everything, and run commands as this user\n",
                up->api);
        return true;
    }
    int rc = folder_init(up->access, hosts, more ? 4 : 3, &error);
    for (size_t i = 0; rc == 0 && i < up->cluster.machine_count; i++) {
        snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(up->cluster.machines[i].name));
        rc = folder_agent(up->access, name, &error);
    }
    if (rc == 0)
        rc = folder_session_token(up->access, up->token, &error);
    if (rc < 0)
        fprintf(stderr, "phalanx: up: %s\n", error.text);
    return rc == 0;
}

/* --- announcing the cluster ----------------------------------------------------------------------------- */

void up_write_text(const struct up *up, const char *name, const char *text)
{
    char path[PATH_BYTES + 64];
    struct error error;
    snprintf(path, sizeof(path), "%s/%s", up->data, name);
    if (os_file_write(path, str_from(text), 0600, true, &error) < 0)
        fprintf(stderr, "phalanx: up: %s\n", error.text);
}

static bool write_config(const struct up *up, const char *path, const struct folder_config *config)
{
    struct error error;
    bool written = folder_kubeconfig(path, config, &error) == 0;
    if (!written)
        fprintf(stderr, "phalanx: up: %s\n", error.text);
    return written;
}

/* Writes the address and the token of this run to the place where commands of this user search (local.h). A
 * loopback address is used over plain HTTP, so commands need not load TLS libraries. */
static bool announce_locally(const struct up *up, const char *kubeconfig)
{
    char url[256], path[PATH_BYTES + 64];
    const char *colon = strrchr(up->api_at, ':');
    bool loopback = strncmp(up->api_at, "127.", 4) == 0 || strncmp(up->api_at, "0.0.0.0:", 8) == 0;
    snprintf(url, sizeof(url), "http://127.0.0.1%s", colon ? colon : "");
    snprintf(path, sizeof(path), "%s/local.kubeconfig", up->access);
    if (loopback && !write_config(up, path, &(struct folder_config){.server = url, .token = up->token}))
        return false;
    return local_announce(up->api_at, loopback ? path : kubeconfig);
}

void up_announce(struct up *up)
{
    char url[256], path[PATH_BYTES + 64];
    bool secure = up->access_mode != UP_INSECURE;
    snprintf(url, sizeof(url), "%s://%s", secure ? "https" : "http", up->api_at);
    snprintf(path, sizeof(path), "%s/kubeconfig", up->data);
    struct folder_config config = {.server = url};
    if (secure) {
        config.folder = up->access;
        config.user = "admin";
    }
    write_config(up, path, &config);
    bool found = up->access_mode == UP_FOUND ? announce_locally(up, path) : local_announce(up->api_at, NULL);
    up_say(up, "cluster " STR_FORMAT " is up: %zu machines, %llu chips; API at %s", STR_ARG(up->cluster.name),
           up->cluster.machine_count, (unsigned long long)up->cluster.chip_count, url);
    if (found && strcmp(url, "https://127.0.0.1:7070") == 0)
        up_say(up, "  export KUBECONFIG=%s", path);
    else
        up_say(up, "  export KUBECONFIG=%s %s=%s", path,
               secure && !found ? "PHALANX_CONFIG" : "PHALANX_SERVER", secure && !found ? path : url);
    snprintf(path, sizeof(path), "%s\n", url);
    up_write_text(up, "ready", path);
}

void up_remove_ready(const struct up *up)
{
    char path[PATH_BYTES + 16];
    snprintf(path, sizeof(path), "%s/ready", up->data);
    unlink(path);
}
