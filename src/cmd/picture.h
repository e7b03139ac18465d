/* picture.h - writes an SVG from memory to the file that an option names. */
#ifndef PHX_CMD_PICTURE_H
#define PHX_CMD_PICTURE_H

#include "base/str.h"

/* Writes the picture to `path`. Returns an exit status; a failure's message names `option`. */
int picture_write(const char *path, const char *option, const struct buf *picture);

#endif
