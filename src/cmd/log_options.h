/* log_options.h - limits of containers' logs: the values of --log-bytes and --log-files, which `phalanx
 * agent` takes and `phalanx up` passes on to its agents. */
#ifndef PHX_CMD_LOG_OPTIONS_H
#define PHX_CMD_LOG_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Reads a quantity from 64Ki to 1Ti. The minimum keeps lines whole: a line longer than a log file would be
 * split. */
bool log_bytes_parse(const char *text, uint64_t *ret_bytes);
/* Reads a number of files, the current one included, from 1 to 100. */
bool log_files_parse(const char *text, uint32_t *ret_files);

#endif
