/* arena.h - memory that is given back all at once.
 *
 * Everything that shares one lifetime (a parsed document, a job, one reply) is taken from one arena. A zeroed
 * struct arena is ready for use. Allocations are zero-filled and aligned to 16 bytes. Memory exhaustion
 * aborts. Not thread-safe.
 */
#ifndef PHX_BASE_ARENA_H
#define PHX_BASE_ARENA_H

#include "base/str.h"

struct arena_block;
struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used_bytes;          /* handed out in all */
    size_t limit_bytes;         /* arena_try_alloc fails beyond this; 0: no limit */
};

void *arena_alloc(struct arena *arena, size_t size);                     /* size 0 gives a valid pointer */
void *arena_alloc_array(struct arena *arena, size_t count, size_t size); /* overflow-checked */
void *arena_try_alloc(struct arena *arena, size_t size);                 /* NULL beyond limit_bytes */
char *arena_strdup(struct arena *arena, struct str s);                   /* NUL-terminated copy */
struct str arena_str(struct arena *arena, struct str s);                 /* copy; also NUL-terminated */
struct str arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_done(struct arena *arena); /* frees all; the arena is empty and usable again */
/* Empties it and keeps its newest block: for one small thing after another. */
void arena_clear(struct arena *arena);
#define ARENA_CLEANUP                   __attribute__((cleanup(arena_done)))
#define ARENA_NEW(arena, type)          ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_alloc_array((arena), (count), sizeof(type)))

/* Heap calls that abort instead of returning NULL, for objects with a life of their own. */
void *mem_alloc(size_t size); /* zero-filled */
void *mem_realloc(void *old, size_t size);
void mem_free(void *ptr);
/* memcpy that takes NULL for "nothing" (C leaves that undefined). */
static inline void mem_copy(void *to, const void *from, size_t len)
{
    if (len > 0)
        memcpy(to, from, len);
}

#endif
