/* cache.h - a folder of solved route patterns (core/fabric/pattern.h), for tasks and the command line.
 *
 *     route_cache_read(folder, &torus, &bytes, &error)      reads the pattern for this shape and dead links
 *     pattern_routes(buf_str(&bytes), &torus, ...)          the tables, if their proof holds
 *     route_cache_write(folder, &torus, &route, &error)     writes tables that route_build() made
 *     route_cache_begin(folder, &torus, &route)             the same in a thread: the disk may take a second
 *
 * Each pattern_key() has its own file: "<folder>/4x4x8-0123456789abcdef.route". Any number of processes, on
 * any number of machines, may use a folder at the same time. A file is written under another name, made
 * durable and renamed, so a reader never sees a part. No file is trusted: its reader proves the tables, and
 * builds new ones if the proof fails.
 */
#ifndef PHX_JOB_FABRIC_CACHE_H
#define PHX_JOB_FABRIC_CACHE_H

#include "core/fabric/route.h"

/* Appends the file's bytes to *ret_bytes. Returns ERROR_NOT_FOUND if there is no file, ERROR_INVALID if it is
 * not a regular file, ERROR_LIMIT if it is larger than any pattern of this torus, or ERROR_IO. */
int route_cache_read(const char *folder, const struct torus *torus, struct buf *ret_bytes,
                     struct error *error);

/* Replaces the folder's tables for this torus. A file that has the same tables already stays. After ERROR_IO
 * or ERROR_NO_SPACE the folder is as before. */
int route_cache_write(const char *folder, const struct torus *torus, const struct route *route,
                      struct error *error);

struct route_keeper;
/* Starts a thread that does what route_cache_write() does. Copies its arguments. The caller frees the keeper
 * with route_cache_end(). */
struct route_keeper *route_cache_begin(const char *folder, const struct torus *torus,
                                       const struct route *route);
/* Returns the error with which the keeper has ended, valid while the keeper lives. Returns NULL if the keeper
 * is still running or has succeeded. Any thread may call. */
const struct error *route_cache_failure(const struct route_keeper *keeper);
/* Waits for the keeper and frees it. With `hurry` tables that are not yet written are dropped. NULL is
 * allowed. */
void route_cache_end(struct route_keeper *keeper, bool hurry);

#endif
