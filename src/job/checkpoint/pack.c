#include "job/checkpoint/pack.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "job/link/error.h"
#include "job/link/wire.h"

/* Functions of libzstd, which are stable since its version 1.0. */
struct pack {
    size_t (*compress)(void *context, void *to, size_t cap, const void *from, size_t len, int level);
    size_t (*decompress)(void *context, void *to, size_t cap, const void *from, size_t len);
    unsigned (*is_error)(size_t result);
    void *(*make_compress)(void), *(*make_decompress)(void);
    size_t (*free_compress)(void *context), (*free_decompress)(void *context);
    void *library, *compressing, *decompressing; /* the latter two are made when first needed */
    int level;
    uint8_t head[PACK_HEAD], room[PACK_PIECE];
};

/* Finds a function. On systems with dlsym, pointers to functions and to data have the same size. */
static bool find(void *library, const char *name, void *ret_function)
{
    void *symbol = dlsym(library, name);
    memcpy(ret_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool find_all(struct pack *pack)
{
    return find(pack->library, "ZSTD_compressCCtx", &pack->compress) &&
           find(pack->library, "ZSTD_decompressDCtx", &pack->decompress) &&
           find(pack->library, "ZSTD_isError", &pack->is_error) &&
           find(pack->library, "ZSTD_createCCtx", &pack->make_compress) &&
           find(pack->library, "ZSTD_createDCtx", &pack->make_decompress) &&
           find(pack->library, "ZSTD_freeCCtx", &pack->free_compress) &&
           find(pack->library, "ZSTD_freeDCtx", &pack->free_decompress);
}

int pack_open(const char *library, int level, struct pack **ret_pack, struct phx_error *error)
{
    struct pack *pack = calloc(1, sizeof *pack);
    if (pack == NULL)
        return job_fail(error, PHX_ERROR_MEMORY, "out of memory");
    pack->level = level;
    pack->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (pack->library == NULL || !find_all(pack)) {
        const char *reason = dlerror();
        int status = job_fail(error, PHX_ERROR_NONE, "zstd: %.180s", reason != NULL ? reason : library);
        pack_close(pack);
        return status;
    }
    *ret_pack = pack;
    return 0;
}

void pack_close(struct pack *pack)
{
    if (pack == NULL)
        return;
    if (pack->compressing != NULL)
        pack->free_compress(pack->compressing);
    if (pack->decompressing != NULL)
        pack->free_decompress(pack->decompressing);
    if (pack->library != NULL)
        dlclose(pack->library);
    free(pack);
}

size_t pack_piece(struct pack *pack, const uint8_t *piece, size_t len, const uint8_t **ret_head,
                  const uint8_t **ret_body)
{
    struct jobwire_writer writer = {.data = pack->head, .cap = sizeof pack->head};
    size_t size = len;
    if (pack->compressing == NULL)
        pack->compressing = pack->make_compress();
    /* with one byte less than the piece: an error means that it does not shrink */
    if (pack->compressing != NULL)
        size = pack->compress(pack->compressing, pack->room, len - 1, piece, len, pack->level);
    bool smaller = pack->compressing != NULL && !pack->is_error(size) && size < len;
    size = smaller ? size : len;
    jobwire_put(&writer, size, PACK_HEAD);
    *ret_head = pack->head;
    *ret_body = smaller ? pack->room : piece;
    return size;
}

/* ---- the other side ---- */

bool pack_room(struct pack_inbox *inbox)
{
    inbox->room = malloc(PACK_PIECE);
    return inbox->room != NULL;
}

void pack_room_done(struct pack_inbox *inbox)
{
    free(inbox->room);
    *inbox = (struct pack_inbox){0};
}

uint8_t *pack_next(struct pack_inbox *inbox, size_t *ret_len)
{
    if (inbox->have < PACK_HEAD) {
        *ret_len = PACK_HEAD - inbox->have;
        return inbox->head + inbox->have;
    }
    *ret_len = PACK_HEAD + inbox->size - inbox->have;
    return inbox->room + (inbox->have - PACK_HEAD);
}

int pack_came(struct pack_inbox *inbox, size_t count, size_t len)
{
    bool head = inbox->have < PACK_HEAD;
    inbox->have += count;
    if (inbox->have < PACK_HEAD)
        return 0;
    if (head) {
        struct jobwire_reader reader = {.data = inbox->head, .len = sizeof inbox->head};
        inbox->size = (size_t)jobwire_get(&reader, PACK_HEAD);
        if (inbox->size == 0 || inbox->size > len)
            return -1;
    }
    return inbox->have == PACK_HEAD + inbox->size;
}

bool pack_take(struct pack *pack, struct pack_inbox *inbox, uint8_t *to, size_t len, uint32_t *crc)
{
    size_t size = inbox->size;
    inbox->have = inbox->size = 0;
    if (size == len) {
        *crc = crc32c_copy(*crc, to, inbox->room, len);
        return true;
    }
    if (pack->decompressing == NULL)
        pack->decompressing = pack->make_decompress();
    if (pack->decompressing == NULL)
        return false;
    size_t got = pack->decompress(pack->decompressing, to, len, inbox->room, size);
    if (pack->is_error(got) || got != len)
        return false;
    *crc = crc32c(*crc, to, len);
    return true;
}
