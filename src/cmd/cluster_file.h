/* cluster_file.h - reads a cluster file, for the commands that take one. */
#ifndef PHX_CMD_CLUSTER_FILE_H
#define PHX_CMD_CLUSTER_FILE_H

#include "core/model/model.h"

/* Reads, parses and checks FILE ("-": standard input). On success *ret_cluster (free with cluster_done) is
 * loaded and *ret_json (buf_done) has the document as JSON. Returns false after printing every mistake on
 * standard error, as FILE:LINE:COLUMN: path: message. */
bool cluster_file_load(const char *path, struct cluster *ret_cluster, struct buf *ret_json);

/* The built-in cluster of `phalanx up` without --cluster: clusters/mini.yaml. */
extern const char cluster_file_default[];
/* Reads all of FILE ("-": standard input), at most 64 MiB. Returns false, after a message on standard error,
 * on failure. */
bool cluster_file_text(const char *path, struct buf *ret_text);

#endif
