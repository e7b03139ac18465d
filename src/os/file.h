/* file.h - whole files, and folders of this process's user.
 *
 * Functions are thread-safe; they return 0 or an error of base/error.h whose message names the file.
 */
#ifndef PHX_OS_FILE_H
#define PHX_OS_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"

/* Reads the file at `path`, of at most `most` bytes, into *ret_text, whose earlier content is released.
 * ERROR_IO: the system refuses, also because there is no such file; ERROR_LIMIT: the file is larger. */
int os_file_read(const char *path, size_t most, struct buf *ret_text, struct error *error);

/* Makes a file of `text` at `path` with this mode, completely or not at all. `replace`: it may replace an old
 * file; otherwise an existing file is ERROR_IO. After a loss of power the file may be missing, or be the old
 * one. */
int os_file_write(const char *path, struct str text, mode_t mode, bool replace, struct error *error);
/* As os_file_write with `replace`; the file is durable on return. */
int os_file_replace(const char *path, struct str text, mode_t mode, struct error *error);

/* Stores the random number that is kept in the file at `path`. A missing file is made, for this user alone.
 * Names derived from the number cannot be guessed and stay the same. */
int os_file_seed(const char *path, uint64_t *ret_seed, struct error *error);

/* Returns whether `path` is `folder` or below it, by the names alone; neither ends with a slash. */
bool os_path_is_below(const char *path, const char *folder);

/* Finds the uppermost folder above the absolute `path` that a process of this user and group may not pass
 * through; (uid_t)-1 and (gid_t)-1 match no owner. Returns whether there is one, with its path in `ret`. The
 * search ends at an absent folder. */
bool os_path_barrier(const char *path, uid_t user, gid_t group, char ret[PATH_MAX]);

/* Makes the folder `path` with this mode, and absent folders above it, or takes over an existing one. Other
 * users may then neither list nor write it. Only a folder of root may let others pass through: a new one by
 * `mode`, an existing one as before. ERROR_CONFLICT: the folder, or the link that `path` is, belongs to
 * another user, or others may write into the folder, unless it is an empty file system that was just
 * mounted. */
int os_folder_own(const char *path, mode_t mode, struct error *error);

/* Sets the umask so that only this process's user can access its files. Others may pass through folders that
 * root makes, so that tasks of other users reach their own folders below. */
void os_umask_own(void);

#endif
