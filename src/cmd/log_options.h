/* log_options.h - how large containers' logs may become: values of --log-bytes and --log-files, which
 * `phalanx agent` takes and `phalanx up` passes on to its agents. */
#ifndef PHX_CMD_LOG_OPTIONS_H
#define PHX_CMD_LOG_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* A quantity, 64Ki to 1Ti: a line that is longer than a log would be torn. */
bool log_bytes_parse(const char *text, uint64_t *ret_bytes);
/* 1 to 100; the current file is one of them. */
bool log_files_parse(const char *text, uint32_t *ret_files);

#endif
