#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

/* Each block is as large as all before it, up to a last size, so that a small arena stays small (each task
 * has one for its name) and a large one rarely calls the heap. A large allocation that does not fit gets its
 * own block, after the current one, instead of wasting that block's rest. */
enum { BLOCK_FIRST = 512, BLOCK_LAST = 256 * 1024 };

struct arena_block {
    struct arena_block *next;
    size_t size; /* of bytes */
    _Alignas(ARENA_ALIGNMENT) unsigned char bytes[];
};

static struct arena_block *block_new(size_t size)
{
    struct arena_block *block = mem_alloc(sizeof *block + size);
    block->size = size;
    return block;
}

static void put_in_front(struct arena *arena, struct arena_block *block)
{
    block->next = arena->blocks;
    arena->blocks = block;
    arena->next = block->bytes;
    arena->end = block->bytes + block->size;
}

void *arena_take_anew(struct arena *arena, size_t size)
{
    CHECK(size % ARENA_ALIGNMENT == 0);
    if (arena->blocks && size > BLOCK_LAST / 4) {
        struct arena_block *own = block_new(size);
        own->next = arena->blocks->next;
        arena->blocks->next = own;
        arena->used_bytes += size;
        return own->bytes;
    }
    size_t grown = arena->used_bytes < BLOCK_FIRST  ? BLOCK_FIRST
                   : arena->used_bytes > BLOCK_LAST ? BLOCK_LAST
                                                    : arena->used_bytes;
    put_in_front(arena, block_new(grown > size ? grown : size));
    return arena_take(arena, size);
}

void arena_too_large(void)
{
    CHECK(!"a size that no memory has");
}

void arena_reserve(struct arena *arena, size_t bytes)
{
    CHECK(!arena->blocks && bytes > 0);
    put_in_front(arena, block_new(arena_round(bytes)));
}

void *arena_alloc_array(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    CHECK(!__builtin_mul_overflow(count, size, &total));
    return arena_alloc(arena, total);
}

void *arena_try_alloc(struct arena *arena, size_t size)
{
    size = arena_round(size);
    if (arena->limit_bytes &&
        (arena->used_bytes > arena->limit_bytes || arena->limit_bytes - arena->used_bytes < size))
        return NULL;
    return arena_take(arena, size);
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

struct str arena_concat(struct arena *arena, const struct str *parts, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    char *text = arena_alloc(arena, len + 1);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        mem_copy(text + at, parts[i].data, parts[i].len);
        at += parts[i].len;
    }
    CHECK(at == len);
    return (struct str){text, len};
}

struct str arena_printf(struct arena *arena, const char *format, ...)
{
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    return arena_str(arena, buf_str(&text));
}

void arena_done(struct arena *arena)
{
    for (struct arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        mem_free(block);
    }
    arena->blocks = NULL;
    arena->next = arena->end = NULL;
    arena->used_bytes = 0;
}

void arena_clear(struct arena *arena)
{
    struct arena_block *kept = arena->blocks;
    if (!kept)
        return;
    memset(kept->bytes, 0, (size_t)(arena->next - kept->bytes));
    arena->blocks = kept->next;
    arena_done(arena);
    kept->next = NULL;
    put_in_front(arena, kept);
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
