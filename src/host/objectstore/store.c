#include "host/objectstore/driver.h"

int object_store_open(const struct store_place *place, const atomic_bool *stop, struct object_store **ret,
                      struct error *error)
{
    int rc = place->folder ? folder_open(place, ret, error) : s3_open(place, ret, error);
    if (rc == 0) {
        (*ret)->place = place;
        (*ret)->stop = stop;
    }
    return rc;
}

void object_store_close(struct object_store *store)
{
    if (store)
        store->driver->close(store);
}

static struct buf whole(const struct object_store *store, const char *key)
{
    struct buf text = {0};
    buf_printf(&text, "%s%s", store->place->prefix, key);
    return text;
}

int bucket_put(struct object_store *store, const char *key, struct str bytes, struct error *error)
{
    struct buf name BUF_CLEANUP = whole(store, key);
    return store->driver->put(store, name.data, bytes, error);
}

int bucket_get(struct object_store *store, const char *key, uint64_t offset, uint8_t *buf, size_t len,
               size_t *ret_len, uint64_t *ret_total, struct error *error)
{
    struct buf name BUF_CLEANUP = whole(store, key);
    return store->driver->get(store, name.data, offset, buf, len, ret_len, ret_total, error);
}

int bucket_delete(struct object_store *store, const char *key, struct error *error)
{
    struct buf name BUF_CLEANUP = whole(store, key);
    return store->driver->remove(store, name.data, error);
}

/* Removes the prefix from listed keys. A key without it was not requested: ERROR_CORRUPT. */
static int cut_prefix(const struct object_store *store, struct object_list *list, struct error *error)
{
    struct str prefix = str_from(store->place->prefix);
    for (size_t i = 0; i < list->entries.len; i++) {
        struct str *key = &list->entries.items[i].key;
        if (!str_starts(*key, prefix)) {
            vec_done(&list->entries);
            return error_set(error, ERROR_CORRUPT, "the store lists a key outside %s", store->place->prefix);
        }
        *key = (struct str){key->data + prefix.len, key->len - prefix.len};
    }
    return 0;
}

int bucket_list(struct object_store *store, const char *start, struct arena *arena, struct object_list *ret,
                struct error *error)
{
    struct buf name BUF_CLEANUP = whole(store, start);
    struct object_list list = {0};
    int rc = store->driver->list(store, name.data, arena, &list, error);
    if (rc == 0)
        rc = cut_prefix(store, &list, error);
    if (rc < 0)
        vec_done(&list.entries);
    else
        *ret = list;
    return rc;
}

int upload_begin(struct object_store *store, const char *key, char ret_id[STORE_ID_MAX], struct error *error)
{
    struct buf name BUF_CLEANUP = whole(store, key);
    return store->driver->begin(store, name.data, ret_id, error);
}

int upload_part(struct object_store *store, const char *key, const char *id, uint32_t number,
                struct str bytes, char ret_tag[STORE_TAG_MAX], struct error *error)
{
    struct buf name BUF_CLEANUP = whole(store, key);
    return store->driver->part(store, name.data, id, number, bytes, ret_tag, error);
}

int upload_finish(struct object_store *store, const char *key, const char *id,
                  const char (*tags)[STORE_TAG_MAX], uint32_t count, struct error *error)
{
    struct buf name BUF_CLEANUP = whole(store, key);
    return store->driver->finish(store, name.data, id, tags, count, error);
}

int upload_abort(struct object_store *store, const char *key, const char *id, struct error *error)
{
    struct buf name BUF_CLEANUP = whole(store, key);
    return store->driver->abort(store, name.data, id, error);
}

int upload_list(struct object_store *store, struct arena *arena, struct object_list *ret, struct error *error)
{
    struct object_list list = {0};
    int rc = store->driver->uploads(store, arena, &list, error);
    if (rc == 0)
        rc = cut_prefix(store, &list, error);
    if (rc < 0)
        vec_done(&list.entries);
    else
        *ret = list;
    return rc;
}
