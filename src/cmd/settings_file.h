/* settings_file.h - a file of settings, for the commands that take one (probes, thresholds). */
#ifndef PHX_CMD_SETTINGS_FILE_H
#define PHX_CMD_SETTINGS_FILE_H

#include "doc/doc.h"
#include "base/error.h"

/* Reads the single document of a YAML file of at most `bytes_max` into `arena`; NULL: the file has none. The
 * error names the file. */
int settings_file_read(const char *path, size_t bytes_max, struct arena *arena, struct doc **ret_document,
                        struct error *error);

#endif
