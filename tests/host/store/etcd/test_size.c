/* Etcd's data stay within their limit while the log goes on: records are trimmed behind snapshots, and etcd's
 * old revisions compacted. Readers and watches that are slow meanwhile lose no record. */
#include <pthread.h>
#include <stdatomic.h>

#include "host/store/etcd/proxy.h"
#include "host/store/etcd/side.h"

static int set_up(void **state)
{
    members_fresh(&members);
    return 0;
}

static void save_well(struct side *side, uint64_t seq, size_t len)
{
    struct buf bytes BUF_CLEANUP = {0};
    struct error error;
    void *writer;
    int rc = side->store.snapshot_begin(side->log, seq, STAMP_NS(seq), sample_state(&bytes, seq, len),
                                        &writer, &error);
    if (rc < 0)
        fail_msg("%s", error.text);
    while ((rc = side->store.snapshot_step(writer, &error)) > 0)
        ;
    if (rc < 0)
        fail_msg("%s", error.text);
    side->store.snapshot_free(writer);
}

/* Trims until there is nothing more to do. */
static void trim_all(struct side *side, int64_t keep_after_ns)
{
    struct error error;
    int rc;
    while ((rc = side->store.trim(side->log, keep_after_ns, &error)) > 0)
        ;
    if (rc < 0)
        fail_msg("%s", error.text);
}

static struct store_stats stats_of(struct side *side)
{
    struct store_stats stats;
    struct error error;
    if (side->store.stats(side->log, &stats, &error) < 0)
        fail_msg("%s", error.text);
    return stats;
}

/* --- bounds ------------------------------------------------------------------------------------------- */

/* Trims as a leader does, between its appends: etcd gives pages back some commits after a compaction. */
static void trim_below_the_limit(struct side *side)
{
    int64_t until_ns = etcd_mono_ns() + 120 * NS_PER_SECOND;
    trim_all(side, 0); /* nothing is old enough, but the limit rules */
    while (stats_of(side).over) {
        assert_true(etcd_mono_ns() < until_ns);
        append_well(side, 1, 0);
        trim_all(side, 0);
    }
}

static uint64_t used_bytes(struct side *side)
{
    struct store_stats stats = stats_of(side);
    return stats.file_bytes - stats.free_bytes;
}

static void trim_bounds_the_size(void **state)
{
    enum { ROUNDS = 60, GROUPS = 4, GROUP = 64, LIMIT = 2 << 20 };
    static uint8_t salts[1 << 16]; /* all zero */
    struct etcd_options kept = members.options;
    struct side a = {0}, b = {0};
    struct store_verify_result result;
    struct error error;
    uint64_t most = 0;
    members.options.bytes_max = LIMIT;
    members.options.snapshots_keep = 2;
    side_open(&a);
    side_open(&b);
    members.options = kept;
    assert_int_equal(side_lead(&a, false), 1);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < GROUPS; i++)
            append_well(&a, GROUP, 0);
        if (round % 3 == 0)
            save_well(&a, a.store.ends(a.log).last, 100000);
        uint64_t used = used_bytes(&a);
        most = most > used ? most : used;
        trim_below_the_limit(&a);
    }
    struct store_stats stats = stats_of(&a);
    print_message("%d records, %d KiB: at most %d KiB in use\n", (int)stats.last_seq,
                  (int)(a.log->appended_bytes >> 10), (int)(most >> 10));
    assert_true(a.log->appended_bytes > 2 * LIMIT);
    assert_true(most < LIMIT + (1 << 20)); /* what one round brings is beyond trimming */
    assert_int_equal(stats.snapshots, 2);
    assert_true(stats.first_seq > 1);
    if (a.store.verify(a.log, NULL, NULL, &result, &error) < 0)
        fail_msg("%s", error.text);
    assert_true(stats.last_seq < sizeof salts);
    assert_int_equal(side_read(&b, stats.first_seq, salts), stats.last_seq);
    side_close(&a);
    side_close(&b);
}

/* Reads the log's head as it was at a revision of etcd's. */
static int head_at(int64_t revision, struct error *error)
{
    struct etcd_key key = etcd_key_of(members.options.prefix, ETCD_HEAD, 0, 0);
    struct arena arena ARENA_CLEANUP = {0};
    struct buf body BUF_CLEANUP = {0};
    struct etcd_client *client;
    struct doc *reply;
    etcd_range_body(&body, etcd_key_str(&key), (struct str){0}, 0, false, false);
    body.len--; /* its brace */
    buf_printf(&body, ",\"revision\":\"%lld\"}", (long long)revision);
    assert_int_equal(etcd_client_new(&members.options, &client, NULL), 0);
    int rc = etcd_call(client, "/v3/kv/range", buf_str(&body), etcd_mono_ns() + 60 * NS_PER_SECOND, &arena,
                       &reply, NULL, error);
    etcd_client_free(client);
    return rc;
}

/* Etcd keeps every value that a key has had until the leader compacts: a minute later, or at once when space
 * is short. */
static void old_revisions_are_dropped(void **state)
{
    struct side a = {0};
    struct error error;
    int64_t revisions[4];
    side_open(&a);
    assert_int_equal(side_lead(&a, false), 1);
    for (int i = 0; i < 4; i++) {
        append_well(&a, 1, 0);
        revisions[i] = a.log->revision;
        a.log->compact_ns = i < 2 ? 0 : a.log->compact_ns; /* a minute has passed */
        trim_all(&a, 0);
    }
    assert_int_equal(a.log->compact_revision, revisions[1]);
    assert_int_equal(head_at(revisions[0], &error), 0); /* of a minute ago */
    a.log->compact_ns = 0;
    trim_all(&a, 0);
    assert_true(head_at(revisions[0], &error) < 0);
    assert_non_null(strstr(error.text, "compacted"));
    assert_int_equal(head_at(revisions[1], &error), 0);
    assert_int_equal(head_at(revisions[3], &error), 0);
    a.log->options.bytes_max = 1;
    trim_all(&a, 0);
    assert_true(head_at(revisions[2], &error) < 0);
    assert_non_null(strstr(error.text, "compacted"));
    assert_int_equal(head_at(revisions[3], &error), 0);
    side_close(&a);
}

/* Under the alarm NOSPACE etcd refuses what trimming writes, but no compaction, of which its operator makes
 * room. */
static void a_full_etcd_is_compacted(void **state)
{
    struct side a = {0};
    struct error error;
    side_open(&a);
    assert_int_equal(side_lead(&a, false), 1);
    append_well(&a, 5, 0);
    save_well(&a, 5, 1000);
    int64_t before = a.log->revision;
    append_well(&a, 5, 0);
    members_alarm(&members, "ACTIVATE");
    assert_int_equal(head_at(before, &error), 0);
    assert_int_equal(a.store.trim(a.log, INT64_MAX, &error), ERROR_NO_SPACE);
    assert_true(head_at(before, &error) < 0);
    assert_non_null(strstr(error.text, "compacted"));
    members_alarm(&members, "DEACTIVATE");
    trim_all(&a, INT64_MAX);
    assert_int_equal(stats_of(&a).first_seq, 6);
    side_close(&a);
}

/* --- followers ---------------------------------------------------------------------------------------- */

/* The log is trimmed and compacted while a follower reads, and its watch is not looked at: it is told, goes
 * on from the snapshot, and wakes for the next append. */
static void slow_follower(void **state)
{
    static const uint8_t salts[2048] = {0};
    struct side a = {0}, b = {0};
    struct etcd_watch *watch;
    struct etcd_seen seen;
    struct error error;
    struct store_record record;
    struct store_snapshot snapshot;
    void *cursor;
    int64_t far_ns = etcd_mono_ns() + 300 * NS_PER_SECOND;
    side_open(&a);
    side_open(&b);
    assert_int_equal(side_lead(&a, false), 1);
    assert_int_equal(etcd_log_watch(&members.options, &watch, &error), 0);
    assert_int_equal(etcd_watch_wait(watch, far_ns), 1); /* it is set up */
    for (int i = 0; i < 40; i++)
        append_well(&a, 10, 0);
    int64_t before = a.log->revision;
    assert_int_equal(etcd_log_refresh(b.log, &seen, &error), 0);
    assert_int_equal(b.store.read(b.log, 1, &cursor, &error), 0);
    assert_int_equal(b.store.next(cursor, &record, &error), 1);
    save_well(&a, 395, 1000);
    a.log->options.bytes_max = 1; /* compact at once */
    trim_all(&a, INT64_MAX);
    append_well(&a, 10, 0);
    assert_true(head_at(before, &error) < 0);
    int rc;
    uint64_t seq = 1;
    while ((rc = b.store.next(cursor, &record, &error)) > 0)
        assert_int_equal(record.seq, ++seq);
    assert_int_equal(rc, ERROR_NOT_FOUND);
    b.store.cursor_free(cursor);
    assert_int_equal(b.store.snapshot_load(b.log, UINT64_MAX, &snapshot, &error), 0);
    assert_int_equal(snapshot.seq, 395);
    buf_done(&snapshot.bytes);
    assert_int_equal(etcd_watch_wait(watch, far_ns), 1);
    assert_int_equal(side_read(&b, 396, salts), 410);
    append_well(&a, 5, 0);
    do
        assert_int_equal(etcd_watch_wait(watch, far_ns), 1);
    while (side_read(&b, 396, salts) < 415);
    etcd_watch_free(watch);
    side_close(&a);
    side_close(&b);
}

/* A member that ends the first watch, in the words of etcd 3.4 to a watch that was a compaction behind; the
 * stream stays open. */
struct ender {
    int listener;
    atomic_int streams;
};

static void ender_says(int fd, const char *line)
{
    char chunk[512];
    int len = snprintf(chunk, sizeof chunk, "%zx\r\n%s\r\n", strlen(line), line);
    CHECK(send(fd, chunk, (size_t)len, MSG_NOSIGNAL) == len);
}

static void *run_ender(void *context)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    struct ender *ender = context;
    int fds[2];
    for (int i = 0; i < 2; i++) {
        char room[4096];
        fds[i] = accept(ender->listener, NULL, NULL);
        CHECK(fds[i] >= 0 && recv(fds[i], room, sizeof room, 0) > 0);
        CHECK(send(fds[i], head, strlen(head), MSG_NOSIGNAL) == (ssize_t)strlen(head));
        atomic_fetch_add(&ender->streams, 1);
        ender_says(fds[i], "{\"result\":{\"header\":{\"revision\":\"1\"},\"created\":true}}\n");
        if (i == 0) {
            ender_says(fds[i], "{\"result\":{\"header\":{\"raft_term\":\"2\"},\"cance");
            ender_says(fds[i], "led\":true,\"compact_revision\":\"3001\"}}\n");
        }
    }
    for (int i = 0; i < 2; i++)
        close(fds[i]);
    return NULL;
}

static void a_watch_that_etcd_ends_is_set_up_again(void **state)
{
    char endpoint[64];
    struct ender ender = {0};
    struct etcd_options options = {.endpoints = endpoint};
    struct etcd_watch *watch;
    struct error error;
    pthread_t thread;
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", members_port(&ender.listener));
    assert_int_equal(listen(ender.listener, 8), 0);
    assert_int_equal(pthread_create(&thread, NULL, run_ender, &ender), 0);
    assert_int_equal(etcd_log_watch(&options, &watch, &error), 0);
    while (atomic_load(&ender.streams) < 2)
        assert_int_equal(etcd_watch_wait(watch, etcd_mono_ns() + 120 * NS_PER_SECOND), 1);
    pthread_join(thread, NULL);
    etcd_watch_free(watch);
    close(ender.listener);
}

/* A user who is not root learns no size and compacts nothing, from etcd 3.5.28 on: the log goes on, its
 * records are trimmed by age, and the operator is told once. */
static void what_root_alone_may_do(void **state)
{
    struct members kept = members;
    struct side a = {0};
    struct proxy proxy;
    struct error error;
    proxy_start(&proxy, members.client_ports[0]);
    members.options.endpoints = proxy.endpoint; /* the side's */
    atomic_store(&proxy.denies, true);
    side_open(&a);
    assert_int_equal(side_lead(&a, false), 1);
    append_well(&a, 30, 0);
    append_well(&a, 10, 0);
    save_well(&a, 30, 1000);
    assert_int_equal(stats_of(&a).file_bytes, 0);
    trim_all(&a, INT64_MAX);
    assert_int_equal(stats_of(&a).first_seq, 31);
    a.log->compact_ns = 0; /* a minute has passed */
    assert_int_equal(a.store.trim(a.log, INT64_MAX, &error), ERROR_DENIED);
    assert_non_null(strstr(error.text, "--auto-compaction-retention"));
    a.log->compact_ns = 0;
    trim_all(&a, INT64_MAX);
    append_well(&a, 1, 0);
    side_close(&a);
    proxy_stop(&proxy);
    members = kept;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(trim_bounds_the_size, set_up),
        cmocka_unit_test_setup(old_revisions_are_dropped, set_up),
        cmocka_unit_test_setup(a_full_etcd_is_compacted, set_up),
        cmocka_unit_test_setup(what_root_alone_may_do, set_up),
        cmocka_unit_test_setup(slow_follower, set_up),
        cmocka_unit_test(a_watch_that_etcd_ends_is_set_up_again),
    };
    members_need();
    members_start(&members, 1, NULL);
    members.options.lease_s = 120;
    members.options.patience_ns = 60 * NS_PER_SECOND; /* no case is about members that do not answer */
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    members_stop(&members);
    return failed;
}
