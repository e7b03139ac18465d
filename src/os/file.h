/* file.h - whole files.
 *
 * Functions are thread-safe; they return 0 or an error of base/error.h whose message names the file.
 */
#ifndef PHX_OS_FILE_H
#define PHX_OS_FILE_H

#include "base/error.h"
#include "base/str.h"

/* Reads the file at `path`, of at most `most` bytes, into *ret_text, whose earlier content is released.
 * ERROR_IO: the system refuses; ERROR_LIMIT: the file is larger. */
int os_file_read(const char *path, size_t most, struct buf *ret_text, struct error *error);

#endif
