/* arena.h - memory that is freed all at once.
 *
 * Objects that share one lifetime (a parsed document, a job, one reply) are allocated from one arena. A
 * zeroed struct arena is ready for use. Allocations are zero-filled and aligned to 16 bytes. Memory
 * exhaustion aborts. Not thread-safe.
 */
#ifndef PHX_BASE_ARENA_H
#define PHX_BASE_ARENA_H

#include "base/str.h"

struct arena_block;
struct arena {
    struct arena_block *blocks; /* newest first */
    unsigned char *next, *end;  /* free bytes of the newest block */
    size_t used_bytes;          /* bytes allocated in all */
    size_t limit_bytes;         /* arena_try_alloc fails beyond this; 0: no limit */
};

enum { ARENA_ALIGNMENT = 16 };

/* Private: makes a block for `size` bytes, a multiple of ARENA_ALIGNMENT, and takes them. */
void *arena_take_anew(struct arena *arena, size_t size);
static inline void *arena_take(struct arena *arena, size_t size)
{
    unsigned char *memory = arena->next;
    if ((size_t)(arena->end - memory) < size)
        return arena_take_anew(arena, size);
    arena->next = memory + size;
    arena->used_bytes += size;
    return memory;
}
void arena_too_large(void); /* private: aborts */
static inline size_t arena_round(size_t size)
{
    if (size >= SIZE_MAX / 2)
        arena_too_large();
    return size ? (size + ARENA_ALIGNMENT - 1) & ~(size_t)(ARENA_ALIGNMENT - 1) : ARENA_ALIGNMENT;
}
/* Allocates zero-filled bytes. Size 0 gives a valid pointer. */
static inline void *arena_alloc(struct arena *arena, size_t size)
{
    return arena_take(arena, arena_round(size));
}
/* Allocates the first block of an empty arena, when the caller knows about how many bytes will be needed; the
 * arena still grows beyond it. */
void arena_reserve(struct arena *arena, size_t bytes);
void *arena_alloc_array(struct arena *arena, size_t count, size_t size); /* overflow-checked */
void *arena_try_alloc(struct arena *arena, size_t size);                 /* NULL beyond limit_bytes */
char *arena_strdup(struct arena *arena, struct str s);                   /* NUL-terminated copy */
struct str arena_str(struct arena *arena, struct str s);                 /* copy; also NUL-terminated */
/* Joins the texts, in order; the result is also NUL-terminated. */
struct str arena_concat(struct arena *arena, const struct str *parts, size_t count);
#define ARENA_CONCAT(arena, ...)                                                                             \
    arena_concat((arena), (const struct str[]){__VA_ARGS__},                                                 \
                 sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))
struct str arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void arena_done(struct arena *arena); /* frees all; the arena is empty and usable again */
/* Empties the arena but keeps its newest block, for one small use after another. Pointers from it become
 * invalid. */
void arena_clear(struct arena *arena);
#define ARENA_CLEANUP                   __attribute__((cleanup(arena_done)))
#define ARENA_NEW(arena, type)          ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_alloc_array((arena), (count), sizeof(type)))

/* Heap calls that abort instead of returning NULL, for objects with their own lifetime. */
void *mem_alloc(size_t size); /* zero-filled */
void *mem_realloc(void *old, size_t size);
void mem_free(void *ptr);
/* Copies `len` bytes, like memcpy, but allows NULL if `len` is 0. */
static inline void mem_copy(void *to, const void *from, size_t len)
{
    if (len > 0)
        memcpy(to, from, len);
}

#endif
