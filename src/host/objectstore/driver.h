/* driver.h - the interface of a kind of store; private to this folder.
 *   place.c    addresses of stores
 *   store.c    the public calls: prefixes, drivers
 *   s3.c       the protocol of S3; request.c one request, tried again; sigv4.c its signature; answer.c XML
 *   secrets.c  credentials
 *   folder.c   a directory
 *   transfer.c shards: to a store and back, in parallel, resumable, verified
 */
#ifndef PHX_HOST_OBJECTSTORE_DRIVER_H
#define PHX_HOST_OBJECTSTORE_DRIVER_H

#include "host/objectstore/objectstore.h"

/* The calls of objectstore.h. Keys include the prefix, in arguments and in lists. */
struct store_driver {
    void (*close)(struct object_store *store);
    int (*put)(struct object_store *store, const char *key, struct str bytes, struct error *error);
    int (*get)(struct object_store *store, const char *key, uint64_t offset, uint8_t *buf, size_t len,
               size_t *ret_len, uint64_t *ret_total, struct error *error);
    int (*remove)(struct object_store *store, const char *key, struct error *error);
    int (*list)(struct object_store *store, const char *start, struct arena *arena, struct object_list *ret,
                struct error *error);
    int (*begin)(struct object_store *store, const char *key, char ret_id[STORE_ID_MAX], struct error *error);
    int (*part)(struct object_store *store, const char *key, const char *id, uint32_t number,
                struct str bytes, char ret_tag[STORE_TAG_MAX], struct error *error);
    int (*finish)(struct object_store *store, const char *key, const char *id,
                  const char (*tags)[STORE_TAG_MAX], uint32_t count, struct error *error);
    int (*abort)(struct object_store *store, const char *key, const char *id, struct error *error);
    int (*uploads)(struct object_store *store, struct arena *arena, struct object_list *ret,
                   struct error *error);
};

struct object_store { /* the first member of each driver's own struct */
    const struct store_driver *driver;
    const struct store_place *place;
    const atomic_bool *stop; /* NULL: never */
};

static inline bool store_stopped(const struct object_store *store)
{
    return store->stop && atomic_load(store->stop);
}

int s3_open(const struct store_place *place, struct object_store **ret, struct error *error);
int folder_open(const struct store_place *place, struct object_store **ret, struct error *error);

#endif
