#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

/* Blocks double from the first to the last size, so that a small arena stays small (each task has one for its
 * name) and a large one calls the heap seldom. What would waste a block's rest gets a block of its own behind
 * the current one. */
enum { ALIGNMENT = 16, BLOCK_FIRST = 512, BLOCK_LAST = 256 * 1024 };

struct arena_block {
    struct arena_block *next;
    size_t used, size; /* of bytes */
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

static struct arena_block *block_new(size_t size)
{
    struct arena_block *block = mem_alloc(sizeof *block + size);
    block->size = size;
    return block;
}

static void *take(struct arena *arena, size_t size)
{
    struct arena_block *block = arena->blocks;
    if (!block || block->size - block->used < size) {
        if (block && size > BLOCK_LAST / 4) {
            struct arena_block *own = block_new(size);
            own->next = block->next;
            block->next = own;
            block = own;
        } else {
            size_t grown = block ? block->size * 2 : BLOCK_FIRST;
            if (grown > BLOCK_LAST)
                grown = BLOCK_LAST;
            struct arena_block *fresh = block_new(grown > size ? grown : size);
            fresh->next = block;
            arena->blocks = block = fresh;
        }
    }
    void *memory = block->bytes + block->used;
    block->used += size;
    arena->used_bytes += size;
    return memory;
}

static size_t round_up(size_t size)
{
    CHECK(size < SIZE_MAX / 2);
    return size ? (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1) : ALIGNMENT;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    return take(arena, round_up(size));
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    CHECK(!__builtin_mul_overflow(count, size, &total));
    return arena_alloc(arena, total);
}

void *arena_try_alloc(struct arena *arena, size_t size)
{
    size = round_up(size);
    if (arena->limit_bytes &&
        (arena->used_bytes > arena->limit_bytes || arena->limit_bytes - arena->used_bytes < size))
        return NULL;
    return take(arena, size);
}

char *arena_strdup(struct arena *arena, struct str s)
{
    char *copy = arena_alloc(arena, s.len + 1);
    if (s.len)
        memcpy(copy, s.data, s.len);
    return copy;
}

struct str arena_str(struct arena *arena, struct str s)
{
    return (struct str){arena_strdup(arena, s), s.len};
}

struct str arena_printf(struct arena *arena, const char *format, ...)
{
    char small[256];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int need = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    CHECK(need >= 0);
    char *text = arena_alloc(arena, (size_t)need + 1);
    if ((size_t)need < sizeof small)
        memcpy(text, small, (size_t)need);
    else
        vsnprintf(text, (size_t)need + 1, format, again);
    va_end(again);
    return (struct str){text, (size_t)need};
}

void arena_done(struct arena *arena)
{
    for (struct arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        mem_free(block);
    }
    arena->blocks = NULL;
    arena->used_bytes = 0;
}

void arena_clear(struct arena *arena)
{
    struct arena_block *kept = arena->blocks;
    if (!kept)
        return;
    arena->blocks = kept->next;
    arena_done(arena);
    memset(kept->bytes, 0, kept->used);
    kept->used = 0;
    kept->next = NULL;
    arena->blocks = kept;
}

static void *need_memory(void *memory)
{
    if (!memory) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return memory;
}

void *mem_alloc(size_t size)
{
    return need_memory(calloc(1, size ? size : 1));
}

void *mem_realloc(void *old, size_t size)
{
    return need_memory(realloc(old, size ? size : 1));
}

void mem_free(void *ptr)
{
    free(ptr);
}
