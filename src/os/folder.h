/* folder.h - folders of one's own in places where others may write, such as /dev/shm.
 *
 * A name in such a place proves nothing: another user may have made a folder or a link of that name. So a
 * folder is opened first, without following a link, and its owner is checked and its mode set through the
 * descriptor. Functions are thread-safe; they return 0 or an error of base/error.h.
 */
#ifndef PHX_OS_FOLDER_H
#define PHX_OS_FOLDER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

/* Makes the folder `name` in `at` (an open folder, or AT_FDCWD) unless it is there, and gives it `mode`.
 * Returns a descriptor of it in *ret_fd, which the caller closes. A folder that is made is given to `user`
 * and `group`. Several callers, also on several machines, may make one folder for one user at once.
 * ERROR_DENIED: `name` is a link, no folder, or a folder of another user than `user`. */
int os_folder_make(int at, const char *name, mode_t mode, uid_t user, gid_t group, int *ret_fd,
                   struct error *error);

/* True of a folder that the caller's user makes for another user, from mkdir until it is given away: another
 * caller is at work on it, or was killed before its end. os_folder_make finishes such a folder. */
bool os_folder_is_unfinished(const struct stat *info);

/* Makes every folder of the path that is absent, the last one with `mode` (whatever the umask), those above
 * it with `above`. Follows links: for places that the caller alone, or an operator, has named. */
int os_folder_path(const char *path, mode_t above, mode_t mode, struct error *error);

/* Makes every folder of `inner`, a relative path, that is absent in the open folder `root`, with `mode`, and
 * opens the last part, which may be a file (O_PATH), in *ret_fd, which the caller closes. No link leads out
 * of `root`, not even one that is put there meanwhile, and nothing is made outside: ERROR_DENIED. */
int os_folder_inside(int root, const char *inner, mode_t mode, int *ret_fd, struct error *error);

/* The mode of a folder on the way to what tasks reach: root's tasks may be other users, and pass through it
 * without listing it (0711); the tasks of any other user are that user, and nobody else passes (0700). */
mode_t os_folder_way(void);

/* As os_folder_make for the caller's own user, without a descriptor. (os_folder_own follows a link of the
 * user's, and makes what is absent above.) */
int os_folder_private(const char *path, mode_t mode, struct error *error);

/* Removes the file or folder `name` in `at` with everything in it. Links are removed, never followed, also
 * while others move folders about; what cannot be removed stays. Other file systems that are mounted in it
 * are left alone. */
void os_folder_remove(int at, const char *name);

#endif
