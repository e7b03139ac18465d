/* picture.h - writes an SVG that was made in memory to the file that an option names. */
#ifndef PHX_CMD_PICTURE_H
#define PHX_CMD_PICTURE_H

#include "base/str.h"

/* Writes all of it to `path`; `option` is named in the message if that fails. Returns an exit status. */
int picture_write(const char *path, const char *option, const struct buf *picture);

#endif
