/* side.h - a controller's side of the log on real etcd processes, for tests: it reads, leads and appends
 * sample records. Included by one test program at a time.
 *
 *     struct side a = {0};
 *     side_open(&a);
 *     assert_int_equal(side_lead(&a, false), 1);
 *     append_well(&a, 3, 0);
 *     side_close(&a);
 */
#ifndef PHX_TESTS_HOST_STORE_ETCD_SIDE_H
#define PHX_TESTS_HOST_STORE_ETCD_SIDE_H

#include "host/store/etcd/internal.h"
#include "host/store/etcd/members.h"

static struct members members; /* where the sides' logs are */

/* A controller's side of the log. */
struct side {
    struct etcd_log *log;
    struct etcd_lease *lease;
    bool renews; /* the lease, before each append */
    struct log_store store;
};

static inline void side_open(struct side *side)
{
    struct error error;
    if (etcd_log_open(&members.options, &side->log, &error) < 0)
        fail_msg("%s", error.text);
    side->store = etcd_log_store(side->log);
}

static inline void side_lease(struct side *side)
{
    struct error error;
    if (side->lease)
        return;
    if (etcd_lease_new(&members.options, &side->lease, &error) < 0)
        fail_msg("%s", error.text);
    side->renews = true;
}

/* Returns what etcd_log_lead() does. `over`: from whoever leads. */
static inline int side_lead(struct side *side, bool over)
{
    struct etcd_seen seen;
    struct error error;
    side_lease(side);
    assert_int_equal(etcd_log_refresh(side->log, &seen, &error), 0);
    int rc = etcd_log_lead(side->log, side->lease, STR("a side"), over ? &seen : NULL, &error);
    if (rc < 0)
        fail_msg("%s", error.text);
    return rc;
}

static inline void side_close(struct side *side)
{
    side->store.close(side->log);
    etcd_lease_end(side->lease);
    *side = (struct side){0};
}

static inline int side_append(struct side *side, size_t count, uint64_t salt, struct error *error)
{
    if (side->lease && side->renews)
        (void)etcd_lease_renew(side->lease, NULL); /* no thread does that here; one that has ended stays so */
    struct store_record records[64];
    struct buf bytes[64] = {0};
    uint64_t last = side->store.ends(side->log).last;
    for (size_t i = 0; i < count; i++)
        records[i] = (struct store_record){last + 1 + i, STAMP_NS(last + 1 + i),
                                           sample_bytes(&bytes[i], last + 1 + i, salt)};
    int rc = side->store.append(side->log, records, count, error);
    for (size_t i = 0; i < count; i++)
        buf_done(&bytes[i]);
    return rc;
}

static inline void append_well(struct side *side, size_t count, uint64_t salt)
{
    struct error error;
    if (side_append(side, count, salt, &error) < 0)
        fail_msg("%s", error.text);
}

/* Reads all there is, after a look at the head; salts[seq] tells who wrote a record. */
static inline uint64_t side_read(struct side *side, uint64_t from, const uint8_t *salts)
{
    struct etcd_seen seen;
    struct error error;
    struct store_record record;
    struct buf want BUF_CLEANUP = {0};
    void *cursor;
    assert_int_equal(etcd_log_refresh(side->log, &seen, &error), 0);
    if (side->store.read(side->log, from, &cursor, &error) < 0)
        fail_msg("%s", error.text);
    int rc;
    uint64_t seq = from;
    for (; (rc = side->store.next(cursor, &record, &error)) > 0; seq++)
        assert_true(str_equal(record.bytes, sample_bytes(&want, seq, salts[seq])));
    if (rc < 0)
        fail_msg("%s", error.text);
    side->store.cursor_free(cursor);
    assert_int_equal(seq, seen.last_seq + 1);
    return seen.last_seq;
}

#endif
