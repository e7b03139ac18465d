/* objectstore.h - objects in a bucket of an S3-compatible server, or files in a directory, behind one
 * interface. docs/checkpoints.md is the operator's view.
 *
 *     s3://BUCKET[/PREFIX][?OPTION=VALUE&...]      file:///DIRECTORY[?OPTION=VALUE&...]
 *     endpoint=URL          of the server, with the bucket in the path; without it Amazon's of the region
 *     region=NAME           signed into requests (us-east-1)
 *     style=path|host       where the bucket stands
 *     part=SIZE             an upload goes in parts of it, 5Mi to 5Gi (16Mi)
 *     parallel=N            parts under way at once, 1 to 32 (4)
 *     rate=SIZE             bytes a second in each direction, of one transfer (no limit)
 *     patience=DURATION     a request is tried again for so long, with growing pauses (5m)
 *     credentials=FILE      in the form of ~/.aws/credentials, profile AWS_PROFILE or "default". Without it
 *                           AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, then
 *                           AWS_SHARED_CREDENTIALS_FILE. They stand in no message of ours
 *     ca=FILE               PEM, the authority of an https endpoint (the system's)
 *
 * Every request is signed with the checksum of its body, so the server refuses what did not arrive as it was
 * sent. Keys are given without the prefix.
 *
 * A store belongs to one thread at a time; more stores of one place may be open. Calls block; once *stop is
 * true they end soon, with ERROR_UNAVAILABLE. ERROR_NOT_FOUND: no such object or upload; ERROR_DENIED: the
 * credentials don't do; ERROR_UNAVAILABLE: the server could not be reached or was not well for as long as
 * `patience`.
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
    char bucket[STORE_TEXT_MAX]; /* the directory's path, of a folder */
    char prefix[STORE_TEXT_MAX]; /* empty, or with a "/" behind it */
    char endpoint[STORE_TEXT_MAX], region[64], credentials[STORE_TEXT_MAX], ca[STORE_TEXT_MAX];
    bool in_path;                    /* the bucket's name */
    uint64_t part_bytes, rate_bytes; /* rate 0: no limit */
    uint32_t parallel;
    int64_t patience_ns;
};

/* Is the text an address of a store at all, that is, "s3://..." or "file://..."? */
bool store_place_is(const char *url);
/* ERROR_INVALID says what is wrong where. */
int store_place_parse(const char *url, struct store_place *ret_place, struct error *error);

struct object_store;
/* Reads the credentials; sends nothing. `place` must live as long; `stop` may be NULL. ERROR_NOT_FOUND: there
 * are no credentials. */
int object_store_open(const struct store_place *place, const atomic_bool *stop, struct object_store **ret,
                      struct error *error);
void object_store_close(struct object_store *store); /* NULL is allowed */

int bucket_put(struct object_store *store, const char *key, struct str bytes, struct error *error);
/* `len` bytes from `offset`, fewer at the object's end: *ret_len. *ret_total (may be NULL): its size. */
int bucket_get(struct object_store *store, const char *key, uint64_t offset, uint8_t *buf, size_t len,
               size_t *ret_len, uint64_t *ret_total, struct error *error);
int bucket_delete(struct object_store *store, const char *key, struct error *error); /* absent is well */

struct object_entry {
    struct str key; /* without the prefix */
    uint64_t bytes;
    struct str upload; /* its number, in a list of uploads; else empty */
    int64_t begun_ns;  /* wall clock, in a list of uploads */
};
struct object_list {
    VEC(struct object_entry) entries; /* in the order of their keys; strings from the arena */
};
/* All whose keys begin with `start`. The caller frees entries. */
int bucket_list(struct object_store *store, const char *start, struct arena *arena, struct object_list *ret,
                struct error *error);

/* An object in parts, which appears when it is finished. Parts are numbered from 1 and have part_bytes each,
 * but for the last. Their tags are kept by the caller. */
int upload_begin(struct object_store *store, const char *key, char ret_id[STORE_ID_MAX], struct error *error);
int upload_part(struct object_store *store, const char *key, const char *id, uint32_t number,
                struct str bytes, char ret_tag[STORE_TAG_MAX], struct error *error);
int upload_finish(struct object_store *store, const char *key, const char *id,
                  const char (*tags)[STORE_TAG_MAX], uint32_t count, struct error *error);
int upload_abort(struct object_store *store, const char *key, const char *id, struct error *error);
/* Lists the uploads that were begun and neither finished nor aborted. */
int upload_list(struct object_store *store, struct arena *arena, struct object_list *ret,
                struct error *error);

#endif
