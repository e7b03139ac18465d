#include "cmd/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/str.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/namespace.h"

enum { PLACES = 3, ENTRY_BYTES = 512 };

static bool is_ours(const char *folder, mode_t forbidden)
{
    struct stat info;
    return lstat(folder, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           !(info.st_mode & forbidden);
}

/* Finds the folder of links in the place with this number; with `make` creates it. Returns false if it cannot
 * be used. */
static bool folder_of(int place, bool make, char path[PATH_MAX])
{
    const char *base = place == 0 ? getenv("XDG_STATE_HOME") : place == 1 ? getenv("HOME") : "/tmp";
    if (!base || base[0] != '/')
        return false;
    int len = place == 0   ? snprintf(path, PATH_MAX, "%s/phalanx-up", base)
              : place == 1 ? snprintf(path, PATH_MAX, "%s/.local/state/phalanx-up", base)
                           : snprintf(path, PATH_MAX, "%s/phalanx-up-%u", base, (unsigned)geteuid());
    if (len >= PATH_MAX)
        return false;
    struct error ignored;
    if (make && place < 2 && (!is_ours(base, 022) || os_folder_path(path, 0700, 0700, &ignored) < 0))
        return false;
    if (make && place == 2 && mkdir(path, 0700) < 0 && errno != EEXIST)
        return false;
    return is_ours(path, 022);
}

/* Writes the name "HOST-ADDRESS:PORT" for a URL or ADDRESS:PORT; the wildcard address and localhost are
 * 127.0.0.1. */
static bool entry_of(const char *server, char name[ENTRY_BYTES])
{
    static const char *const loopback[] = {"localhost", "0.0.0.0", "127.0.0.1"};
    struct utsname host;
    const char *scheme = strstr(server, "://");
    struct str at = str_from(scheme ? scheme + 3 : server), first, rest;
    if (str_cut(at, '/', &first, &rest))
        at = first;
    const char *colon = at.len ? memrchr(at.data, ':', at.len) : NULL;
    if (!colon || uname(&host) < 0)
        return false;
    struct str address = {at.data, (size_t)(colon - at.data)};
    for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
        if (str_is(address, loopback[i]))
            address = STR("127.0.0.1");
    int len = snprintf(name, ENTRY_BYTES, "%s-" STR_FORMAT STR_FORMAT, host.nodename, STR_ARG(address),
                       STR_ARG(((struct str){colon, (size_t)(at.data + at.len - colon)})));
    return len < ENTRY_BYTES && !strchr(name, '/');
}

bool local_find(const char *server, char ret_path[PATH_MAX])
{
    char name[ENTRY_BYTES], folder[PATH_MAX];
    if (!entry_of(server, name))
        return false;
    for (int i = 0; i < PLACES; i++)
        if (folder_of(i, false, folder) && snprintf(ret_path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX &&
            access(ret_path, R_OK) == 0)
            return true;
    return false;
}

bool local_announce(const char *server, const char *kubeconfig)
{
    char name[ENTRY_BYTES], folder[PATH_MAX], path[PATH_MAX];
    bool announced = false;
    if (!entry_of(server, name))
        return false;
    for (int i = 0; i < PLACES; i++) {
        if (!folder_of(i, kubeconfig && !announced, folder) ||
            snprintf(path, sizeof path, "%s/%s", folder, name) >= PATH_MAX)
            continue;
        (void)unlink(path); /* left by a killed cluster, whose port this one has now */
        announced = announced || (kubeconfig && symlink(kubeconfig, path) == 0);
    }
    return announced;
}

/* Removes the links of one folder that lead below `data`. */
static void forget_in(const char *folder, const char *data)
{
    DIR *links = opendir(folder);
    struct dirent *entry;
    while (links && (entry = readdir(links))) {
        char target[PATH_MAX];
        ssize_t got = readlinkat(dirfd(links), entry->d_name, target, sizeof target - 1);
        target[got > 0 ? got : 0] = 0;
        if (os_path_is_below(target, data))
            (void)unlinkat(dirfd(links), entry->d_name, 0);
    }
    if (links)
        closedir(links);
}

void local_forget(const char *data)
{
    char folder[PATH_MAX];
    for (int i = 0; i < PLACES; i++)
        if (folder_of(i, false, folder))
            forget_in(folder, data);
}

bool local_others_reach(const char *path, char ret_why[PATH_MAX])
{
    char real[PATH_MAX], barrier[PATH_MAX];
    if (!realpath(path, real) || !os_path_barrier(real, (uid_t)-1, (gid_t)-1, barrier))
        return true; /* a mistake in the path is reported when the path is used */
    int refused = os_mounts_refused();
    if (refused)
        snprintf(ret_why, PATH_MAX,
                 "%.2000s is closed to other users, and no mount namespace is allowed (%s)", barrier,
                 strerror(refused));
    return !refused;
}
