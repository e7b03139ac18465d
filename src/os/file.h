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
 * ERROR_IO: the system refuses; ERROR_LIMIT: the file is larger. */
int os_file_read(const char *path, size_t most, struct buf *ret_text, struct error *error);

/* Makes a file of `text` at `path`, with this mode, whole or not at all; `replace`: also over an old one.
 * After a loss of power it may be missing, or the old one. */
int os_file_write(const char *path, struct str text, mode_t mode, bool replace, struct error *error);
/* As os_file_write, over an old one; the file is durable on return. */
int os_file_replace(const char *path, struct str text, mode_t mode, struct error *error);

/* Returns in *ret_seed the random number that is kept in the file at `path`, which is made, for this user
 * alone, unless it is there. What it makes of a name cannot be guessed, and stays the same. */
int os_file_seed(const char *path, uint64_t *ret_seed, struct error *error);

/* Whether `path` names `folder` or something below it, by the names alone; neither ends with a slash. */
bool os_path_is_below(const char *path, const char *folder);

/* Finds the uppermost folder on the way to `path`, which is absolute, that a process of this user and
 * group may not pass through; (uid_t)-1 and (gid_t)-1 are nobody in particular. Returns whether there is
 * one, and its path in `ret`. Names behind an absent folder are not looked at. */
bool os_path_barrier(const char *path, uid_t user, gid_t group, char ret[PATH_MAX]);

/* Makes the folder `path` with this mode, and those above it that are absent, or takes the one that is there.
 * Others may then neither list nor write it. Whether they may pass through a folder of root that is there is
 * left as it is; a folder of another user they never pass, whatever `mode` says. ERROR_CONFLICT: the folder,
 * or the link that `path` is, belongs to another user, or others may write into the folder, unless it is an
 * empty file system that was just mounted. */
int os_folder_own(const char *path, mode_t mode, struct error *error);

/* Sets the umask with which this process's files are its user's alone. Folders that root makes may be passed
 * through: tasks of other users reach their own below them. */
void os_umask_own(void);

#endif
