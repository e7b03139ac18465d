/* cluster_file.h - reading a cluster file for the commands that take one. */
#ifndef PHX_CMD_CLUSTER_FILE_H
#define PHX_CMD_CLUSTER_FILE_H

#include "core/model/model.h"

/* Reads, parses and checks FILE ("-": standard input). On success *ret_cluster (cluster_done) is loaded and
 * *ret_json (buf_done) holds the document as JSON. On failure every mistake has been printed as
 * FILE:LINE:COLUMN: path: message on standard error; false. */
bool cluster_file_load(const char *path, struct cluster *ret_cluster, struct buf *ret_json);

/* The file of `phalanx up` without --cluster: clusters/mini.yaml, built in. */
extern const char cluster_file_default[];
/* Reads all of FILE ("-": standard input), at most 64 MiB. False, after a message on standard error. */
bool cluster_file_text(const char *path, struct buf *ret_text);

#endif
