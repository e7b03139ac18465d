/* probe_settings.h - the probes' settings, for the commands that take a file of them (docs/probes.md). */
#ifndef PHX_CMD_PROBE_SETTINGS_H
#define PHX_CMD_PROBE_SETTINGS_H

#include "base/doc.h"
#include "base/error.h"

/* The one document of a YAML file of at most `bytes_max`, in `arena`; NULL: it has none. The error names the
 * file. */
int probe_settings_read(const char *path, size_t bytes_max, struct arena *arena, struct doc **ret_document,
                        struct error *error);

#endif
