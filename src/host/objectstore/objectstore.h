/* objectstore.h - objects in a bucket of an S3-compatible server, or files in a directory, behind one
 * interface. docs/checkpoints.md is the operator's view.
 *
 *     s3://BUCKET[/PREFIX][?OPTION=VALUE&...]      file:///DIRECTORY[?OPTION=VALUE&...]
 *     endpoint=URL          of the server, with the bucket in the path (Amazon's server of the region)
 *     region=NAME           signed into requests (us-east-1)
 *     style=path|host       place of the bucket's name
 *     part=SIZE             size of an upload's parts, 5Mi to 5Gi (16Mi)
 *     parallel=N            parts transferred at once, 1 to 32 (4)
 *     rate=SIZE             bytes a second of one transfer, in each direction (no limit)
 *     patience=DURATION     how long a request is retried, with growing pauses (5m)
 *     credentials=FILE      in the form of ~/.aws/credentials, profile AWS_PROFILE or "default". Without it
 *                           AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, then
 *                           AWS_SHARED_CREDENTIALS_FILE. Messages never contain them
 *     ca=FILE               PEM, the authority of an https endpoint (the system's)
 *
 * Every request is signed with the checksum of its body, so the server refuses a body that was damaged on the
 * way. Keys are given without the prefix.
 *
 * A store belongs to one thread at a time; several stores of one place may be open. Calls block; once *stop
 * is true they end soon with ERROR_UNAVAILABLE. ERROR_NOT_FOUND: no such object or upload. ERROR_DENIED: the
 * credentials are refused. ERROR_UNAVAILABLE: the server could not be reached, or failed, for `patience`.
 * ERROR_CORRUPT: the server's answer makes no sense.
 */
#ifndef PHX_HOST_OBJECTSTORE_OBJECTSTORE_H
#define PHX_HOST_OBJECTSTORE_OBJECTSTORE_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

enum { STORE_TEXT_MAX = 512, STORE_ID_MAX = 1024, STORE_TAG_MAX = 128, STORE_PARTS_MAX = 10000 };

struct store_place {
    bool folder;
    char bucket[STORE_TEXT_MAX]; /* of a folder: the directory's path */
    char prefix[STORE_TEXT_MAX]; /* empty, or ends with "/" */
    char endpoint[STORE_TEXT_MAX], region[64], credentials[STORE_TEXT_MAX], ca[STORE_TEXT_MAX];
    bool in_path;                    /* whether the bucket's name is in the URL's path, not in its host */
    uint64_t part_bytes, rate_bytes; /* rate 0: no limit */
    uint32_t parallel;
    int64_t patience_ns;
};

/* Returns whether the text is an address of a store, that is, "s3://..." or "file://...". */
bool store_place_is(const char *url);
/* Parses an address of a store. ERROR_INVALID, ERROR_LIMIT: the message names the wrong part. */
int store_place_parse(const char *url, struct store_place *ret_place, struct error *error);

struct object_store;
/* Opens a store: reads its credentials, but sends nothing. `place` must outlive the store; `stop` may be
 * NULL. ERROR_NOT_FOUND: there are no credentials. ERROR_INVALID, ERROR_IO: they cannot be read. */
int object_store_open(const struct store_place *place, const atomic_bool *stop, struct object_store **ret,
                      struct error *error);
void object_store_close(struct object_store *store); /* NULL is allowed */

/* Makes or replaces an object of `bytes`. */
int bucket_put(struct object_store *store, const char *key, struct str bytes, struct error *error);
/* Reads `len` bytes from `offset`, or fewer at the object's end, and stores how many in *ret_len. *ret_total
 * (may be NULL) is the object's size. */
int bucket_get(struct object_store *store, const char *key, uint64_t offset, uint8_t *buf, size_t len,
               size_t *ret_len, uint64_t *ret_total, struct error *error);
int bucket_delete(struct object_store *store, const char *key, struct error *error); /* no error if absent */

struct object_entry {
    struct str key; /* without the prefix */
    uint64_t bytes;
    struct str upload; /* its id, in a list of uploads; else empty */
    int64_t begun_ns;  /* wall clock, in a list of uploads; 0: not known */
};
struct object_list {
    VEC(struct object_entry) entries; /* sorted by key; strings are in the arena */
};
/* Lists all objects whose keys begin with `start`. The caller frees the entries with vec_done(). */
int bucket_list(struct object_store *store, const char *start, struct arena *arena, struct object_list *ret,
                struct error *error);

/* An upload in parts; the object appears when it is finished. Parts are numbered from 1; all but the last
 * have the place's part_bytes. The caller keeps the id and the parts' tags. */
int upload_begin(struct object_store *store, const char *key, char ret_id[STORE_ID_MAX], struct error *error);
int upload_part(struct object_store *store, const char *key, const char *id, uint32_t number,
                struct str bytes, char ret_tag[STORE_TAG_MAX], struct error *error);
int upload_finish(struct object_store *store, const char *key, const char *id,
                  const char (*tags)[STORE_TAG_MAX], uint32_t count, struct error *error);
int upload_abort(struct object_store *store, const char *key, const char *id, struct error *error);
/* Lists the uploads that were begun and neither finished nor aborted. The caller frees the entries. */
int upload_list(struct object_store *store, struct arena *arena, struct object_list *ret,
                struct error *error);

#endif
