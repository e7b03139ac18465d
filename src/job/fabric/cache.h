/* cache.h - a folder of solved route patterns (core/fabric/pattern.h), for tasks and the command line.
 *
 *     route_cache_read(folder, &torus, &bytes, &error)      what the folder has for shape and dead links
 *     pattern_routes(buf_str(&bytes), &torus, ...)          the tables, if their proof holds
 *     route_cache_write(folder, &torus, &route, &error)     tables that route_build() made
 *     route_cache_begin(folder, &torus, &route)             the same in a thread: the disk may take a second
 *
 * A pattern_key() has a file of its own: "<folder>/4x4x8-0123456789abcdef.route". Any number of processes, on
 * any number of machines, may use a folder at the same time: a file is written beside its place, made durable
 * and renamed, so that a reader never sees a part. No file is trusted: its reader proves the tables, and
 * makes them anew where that fails.
 */
#ifndef PHX_JOB_FABRIC_CACHE_H
#define PHX_JOB_FABRIC_CACHE_H

#include "core/fabric/route.h"

/* Appends the file's bytes to *ret_bytes. ERROR_NOT_FOUND: there is none; ERROR_INVALID: it is no plain file;
 * ERROR_LIMIT: it is larger than a pattern of this torus; ERROR_IO. */
int route_cache_read(const char *folder, const struct torus *torus, struct buf *ret_bytes,
                     struct error *error);

/* Puts the tables in the place of what the folder has for this torus. A file that has them already stays.
 * ERROR_IO, ERROR_NO_SPACE: the folder is as before. */
int route_cache_write(const char *folder, const struct torus *torus, const struct route *route,
                      struct error *error);

struct route_keeper;
/* Begins to keep the tables as route_cache_write() does; copies all that it is given. */
struct route_keeper *route_cache_begin(const char *folder, const struct torus *torus,
                                       const struct route *route);
/* Returns the error that the keeper has ended with; NULL: it has not ended, or all is well. Any thread may
 * call. */
const struct error *route_cache_failure(const struct route_keeper *keeper);
/* Waits for the end and frees the keeper; `hurry`: tables that are not written yet are given up. NULL is
 * allowed. */
void route_cache_end(struct route_keeper *keeper, bool hurry);

#endif
