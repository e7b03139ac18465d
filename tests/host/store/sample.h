/* sample.h - records, snapshots and folders that the store's tests share: contents follow from their numbers,
 * so that whatever is read can be judged without keeping a copy. Included by one test program at a time. */
#ifndef PHX_TESTS_HOST_STORE_SAMPLE_H
#define PHX_TESTS_HOST_STORE_SAMPLE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/check.h"
#include "base/rng.h"
#include "host/store/store.h"

#define STAMP_NS(seq) ((int64_t)(seq)*1000)

/* Bytes of record `seq`: 0 … 299 of them, now and then several pages. `salt` tells histories apart. */
static inline struct str sample_bytes(struct buf *buf, uint64_t seq, uint64_t salt)
{
    struct rng rng;
    rng_seed(&rng, seq * 31 + salt);
    uint64_t len = rng_below(&rng, 40) == 0 ? 5000 + rng_below(&rng, 9000) : rng_below(&rng, 300);
    buf_clear(buf);
    for (uint64_t i = 0; i < len; i++)
        buf_add_char(buf, (char)(rng_next(&rng) >> 56));
    return (struct str){buf->len ? buf->data : "", buf->len};
}

/* State after record `seq`: half of it compresses. */
static inline struct str sample_state(struct buf *buf, uint64_t seq, size_t len)
{
    struct rng rng;
    rng_seed(&rng, seq * 77 + 5);
    buf_clear(buf);
    while (buf->len < len) {
        if (buf->len % 512 < 256)
            buf_add_char(buf, 'x');
        else
            buf_add_char(buf, (char)(rng_next(&rng) >> 56));
    }
    return buf_str(buf);
}

/* Appends `count` records behind the last one; returns store_append's code. */
static inline int sample_append(struct store *store, size_t count, uint64_t salt, struct error *error)
{
    enum { MAX = 512 };
    struct store_record records[MAX] = {0};
    struct buf bytes[MAX] = {0};
    CHECK(count <= MAX);
    for (size_t i = 0; i < count; i++) {
        uint64_t seq = store_last_seq(store) + 1 + i;
        records[i] = (struct store_record){seq, STAMP_NS(seq), sample_bytes(&bytes[i], seq, salt)};
    }
    int rc = store_append(store, records, count, error);
    for (size_t i = 0; i < count; i++)
        buf_done(&bytes[i]);
    return rc;
}

/* Reads from `from` to the end; asserts that every record is the sample's. `salt_of(seq)` in an array or NULL
 * for 0. Returns the code that the reading ended with; *ret_last is the last record that was given out. */
static inline int sample_read(struct store *store, uint64_t from, const uint8_t *salts, uint64_t *ret_last,
                              struct error *error)
{
    struct store_cursor *cursor;
    struct store_record record;
    struct buf want = {0};
    *ret_last = from - 1;
    int rc = store_read(store, from, &cursor, error);
    if (rc < 0)
        return rc;
    while ((rc = store_next(cursor, &record, error)) > 0) {
        assert_int_equal(record.seq, *ret_last + 1);
        assert_int_equal(record.stamp_ns, STAMP_NS(record.seq));
        struct str bytes = sample_bytes(&want, record.seq, salts ? salts[record.seq] : 0);
        assert_int_equal(record.bytes.len, bytes.len);
        assert_true(bytes.len == 0 || memcmp(record.bytes.data, bytes.data, bytes.len) == 0);
        *ret_last = record.seq;
    }
    store_cursor_free(cursor);
    buf_done(&want);
    return rc;
}

static inline void sample_folder(char out[64])
{
    (void)snprintf(out, 64, "%s/phalanx-store-XXXXXX", P_tmpdir);
    assert_non_null(mkdtemp(out));
}

/* Removes the folder and the files in it. */
static inline void sample_folder_remove(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        (void)unlink(path);
    }
    if (dir)
        (void)closedir(dir);
    (void)rmdir(folder);
}

static inline void sample_path(char out[96], const char *folder)
{
    (void)snprintf(out, 96, "%s/log.db", folder);
}

/* Contents of a small file; replaces `out`. Absent: empty. */
static inline void sample_file_get(const char *path, struct buf *out)
{
    buf_clear(out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char part[65536];
    ssize_t len;
    while (fd >= 0 && (len = read(fd, part, sizeof part)) > 0)
        buf_add(out, part, (size_t)len);
    if (fd >= 0)
        close(fd);
}

static inline void sample_file_put(const char *path, struct str bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.data, bytes.len), (ssize_t)bytes.len);
    close(fd);
}

#endif
