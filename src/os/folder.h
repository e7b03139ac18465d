/* folder.h - private folders in places where others may write, such as /dev/shm.
 *
 * In such a place another user may have made a folder or a link of any name. So these functions first open a
 * folder, without following a link, and then check its owner and set its mode through the descriptor.
 * Functions are thread-safe; they return 0 or an error of base/error.h.
 */
#ifndef PHX_OS_FOLDER_H
#define PHX_OS_FOLDER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

/* Makes the folder `name` in `at` (an open folder, or AT_FDCWD) unless it exists, and sets its mode. Stores a
 * descriptor of it in *ret_fd, which the caller closes. A new folder is given to `user` and `group`. Several
 * callers, also on several machines, may make the same folder for one user at once. ERROR_DENIED: `name` is a
 * link, not a folder, or belongs to another user than `user`. */
int os_folder_make(int at, const char *name, mode_t mode, uid_t user, gid_t group, int *ret_fd,
                   struct error *error);

/* Returns whether a folder was made by the caller's user for another user but not given away yet: another
 * caller is working on it, or was killed. os_folder_make finishes such a folder. */
bool os_folder_is_unfinished(const struct stat *info);

/* Makes every absent folder of the path, the last one with `mode` (whatever the umask), those above with
 * `above`. Follows links, so the path must come from the caller itself or an operator. */
int os_folder_path(const char *path, mode_t above, mode_t mode, struct error *error);

/* Makes every absent folder of `inner`, a relative path, in the open folder `root` with `mode`. Opens the
 * last part, which may be a file, with O_PATH, and stores the descriptor in *ret_fd, which the caller closes.
 * ERROR_DENIED: the path leads out of `root`, even by a link that is placed there during the call; nothing is
 * made outside. */
int os_folder_inside(int root, const char *inner, mode_t mode, int *ret_fd, struct error *error);

/* Returns the mode of folders above those that tasks reach. Tasks of an agent that is root may run as other
 * users, who pass through the folder without listing it (0711). Tasks of any other agent run as its own user,
 * and nobody else may pass (0700). */
mode_t os_folder_way(void);

/* As os_folder_make for the caller's own user, without a descriptor. (os_folder_own, in contrast, follows a
 * link of the user's and makes absent folders above.) */
int os_folder_private(const char *path, mode_t mode, struct error *error);

/* Removes the file or folder `name` in `at` with everything in it. Links are removed, never followed, even
 * while others move folders. Entries that cannot be removed stay; other file systems that are mounted in it
 * are left alone. */
void os_folder_remove(int at, const char *name);

#endif
