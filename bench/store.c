/* store.c - appends per second of the log at several group sizes, beside the limit: the same bytes written to
 * a file of the same file system and made durable by one fdatasync a group. Prints one JSON object a line.
 *
 *     bench_store [FOLDER]        (default: $TMPDIR or /var/tmp; it should lie on the disk that the log will
 * use)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>
#include "base/arena.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "host/store/store.h"

#include "timing.h"

enum {
    RECORD_BYTES = 200,
    GROUP_MAX = 1000,
    ROUNDS = 5,
    ROUND_MS = 400,
    LIMIT_FILE_BYTES = 8 << 20,
    SAMPLES_MAX = 5000,
    STATE_BYTES = 32 << 20
};

static void die(const struct error *error)
{
    (void)fprintf(stderr, "bench_store: %s\n", error->text);
    exit(1);
}

static struct store_record records[GROUP_MAX];
static char bytes[GROUP_MAX][RECORD_BYTES];

/* Records a second over one round. */
static double append_round(struct store *store, size_t group)
{
    struct error error;
    uint64_t done = 0;
    int64_t start_ns = now_ns(), spent_ns = 0;
    while (spent_ns < ROUND_MS * INT64_C(1000000)) {
        for (size_t i = 0; i < group; i++)
            records[i] =
                (struct store_record){store_last_seq(store) + 1 + i, start_ns, {bytes[i], RECORD_BYTES}};
        if (store_append(store, records, group, &error) < 0)
            die(&error);
        done += group;
        spent_ns = now_ns() - start_ns;
    }
    return (double)done * 1e9 / (double)spent_ns;
}

static double limit_round(int fd, size_t group, off_t *offset)
{
    uint64_t done = 0;
    int64_t start_ns = now_ns(), spent_ns = 0;
    size_t len = group * RECORD_BYTES;
    while (spent_ns < ROUND_MS * INT64_C(1000000)) {
        if (*offset + (off_t)len > LIMIT_FILE_BYTES)
            *offset = 0;
        if (pwrite(fd, bytes, len, *offset) != (ssize_t)len || fdatasync(fd) < 0)
            exit(1);
        *offset += (off_t)len;
        done += group;
        spent_ns = now_ns() - start_ns;
    }
    return (double)done * 1e9 / (double)spent_ns;
}

/* Microseconds of each call of a bench that looks at stalls. */
struct durations {
    double items[SAMPLES_MAX];
    size_t len;
};

static void note(struct durations *durations, int64_t since_ns)
{
    if (durations->len < SAMPLES_MAX)
        durations->items[durations->len++] = (double)(now_ns() - since_ns) / 1000;
}

static double quantile(struct durations *durations, double share)
{
    qsort(durations->items, durations->len, sizeof durations->items[0], ascending);
    return durations->len ? durations->items[(size_t)(share * (double)(durations->len - 1))] : 0;
}

static void print(const char *name, double value, const char *unit, double limit)
{
    printf("{\"bench\":\"store\",\"case\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"", name, value, unit);
    if (limit > 0)
        printf(",\"limit\":%.6g,\"ratio_limit\":%.3f", limit, value / limit);
    printf("}\n");
    (void)fflush(stdout);
}

static struct store *open_log(const char *folder)
{
    struct buf path BUF_CLEANUP = {0};
    struct store *store;
    struct error error;
    buf_printf(&path, "%s/log", folder);
    if (store_open(path.data, NULL, &store, &error) < 0)
        die(&error);
    return store;
}

static void remove_files(const char *folder)
{
    static const char *const names[] = {"log", "log-lock", "log-wal", "log-shm", "limit"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct buf path BUF_CLEANUP = {0};
        buf_printf(&path, "%s/%s", folder, names[i]);
        (void)unlink(path.data);
    }
}

static int open_limit(const char *folder)
{
    struct buf path BUF_CLEANUP = {0};
    buf_printf(&path, "%s/limit", folder);
    int fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    for (size_t at = 0; at < LIMIT_FILE_BYTES;
         at += sizeof bytes) /* so that no sync waits for an allocation */
        CHECK(pwrite(fd, bytes, sizeof bytes, (off_t)at) > 0);
    CHECK(fsync(fd) == 0);
    return fd;
}

static void bench_append(const char *folder, size_t group)
{
    struct store *store = open_log(folder);
    int fd = open_limit(folder);
    double ours[ROUNDS], limits[ROUNDS];
    off_t offset = 0;
    for (int round = 0; round < ROUNDS; round++) {
        ours[round] = append_round(store, group);
        limits[round] = limit_round(fd, group, &offset);
    }
    char name[64];
    (void)snprintf(name, sizeof name, "append group=%zu bytes=%d", group, RECORD_BYTES);
    print(name, median(ours, ROUNDS), "records/s", median(limits, ROUNDS));
    close(fd);
    store_close(store);
    remove_files(folder);
}

/* How long one append of 10 records may hold the loop up, folds of the WAL included. */
static void bench_latency(const char *folder)
{
    static struct durations ours, limits;
    struct store *store = open_log(folder);
    int fd = open_limit(folder);
    struct error error;
    for (size_t i = 0; i < SAMPLES_MAX; i++) {
        int64_t start_ns = now_ns();
        for (size_t j = 0; j < 10; j++)
            records[j] = (struct store_record){store_last_seq(store) + 1 + j, 0, {bytes[j], RECORD_BYTES}};
        if (store_append(store, records, 10, &error) < 0)
            die(&error);
        note(&ours, start_ns);
        start_ns = now_ns();
        CHECK(pwrite(fd, bytes, 10 * RECORD_BYTES, (off_t)(i % 1000 * 2000)) > 0 && fdatasync(fd) == 0);
        note(&limits, start_ns);
    }
    print("append group=10 p50", quantile(&ours, 0.5), "us", quantile(&limits, 0.5));
    print("append group=10 p99", quantile(&ours, 0.99), "us", quantile(&limits, 0.99));
    print("append group=10 max", quantile(&ours, 1), "us", quantile(&limits, 1));
    close(fd);
    store_close(store);
    remove_files(folder);
}

/* Replay: every record read and verified; limit: the file's bytes read and checksummed. */
static void bench_read(const char *folder)
{
    struct store *store = open_log(folder);
    struct store_cursor *cursor;
    struct store_record record;
    struct error error;
    double ours[ROUNDS], limits[ROUNDS];
    uint64_t count = 0;
    for (int i = 0; i < 300; i++) {
        for (size_t j = 0; j < GROUP_MAX; j++)
            records[j] = (struct store_record){store_last_seq(store) + 1 + j, 0, {bytes[j], RECORD_BYTES}};
        if (store_append(store, records, GROUP_MAX, &error) < 0)
            die(&error);
    }
    store_close(store);
    store = open_log(folder);
    struct buf path BUF_CLEANUP = {0};
    buf_printf(&path, "%s/log", folder);
    int fd = open(path.data, O_RDONLY | O_CLOEXEC);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t start_ns = now_ns();
        int rc = store_read(store, 1, &cursor, &error);
        count = 0;
        while (rc >= 0 && (rc = store_next(cursor, &record, &error)) > 0)
            count++;
        if (rc < 0)
            die(&error);
        store_cursor_free(cursor);
        ours[round] = (double)count * 1e9 / (double)(now_ns() - start_ns);
        start_ns = now_ns();
        uint32_t crc = 0;
        ssize_t len;
        for (off_t at = 0; (len = pread(fd, bytes, sizeof bytes, at)) > 0; at += len)
            crc = crc32c(crc, bytes, (size_t)len);
        limits[round] = (double)count * 1e9 / (double)(now_ns() - start_ns + (crc == 1));
    }
    print("read and verify bytes=200", median(ours, ROUNDS), "records/s", median(limits, ROUNDS));
    close(fd);
    store_close(store);
    remove_files(folder);
}

/* A snapshot of 32 MiB in steps, the clean-up behind it in slices; limit: zstd at the same level, one write,
 * one sync. */
static void bench_snapshot(const char *folder)
{
    static struct durations steps, slices;
    struct store *store = open_log(folder);
    int fd = open_limit(folder);
    struct error error;
    struct buf state BUF_CLEANUP = {0}, packed BUF_CLEANUP = {0};
    double ours[ROUNDS], limits[ROUNDS];
    for (size_t i = 0; state.len < STATE_BYTES; i++)
        buf_printf(&state, "machine-%zu{state=healthy,address=10.%zu.%zu.%zu,seen=%zu}", i, i >> 16,
                   i >> 8 & 255, i & 255, i * 2654435761U);
    buf_reserve(&packed, ZSTD_compressBound(state.len));
    for (int round = 0; round < ROUNDS; round++) {
        append_round(store, GROUP_MAX);
        struct store_snapshot_writer *writer;
        int64_t start_ns = now_ns();
        int rc = store_snapshot_begin(store, store_last_seq(store), 0, buf_str(&state), &writer, &error);
        for (int64_t step_ns = now_ns(); rc >= 0 && (rc = store_snapshot_step(writer, &error)) > 0;
             step_ns = now_ns())
            note(&steps, step_ns);
        if (rc < 0)
            die(&error);
        store_snapshot_writer_free(writer);
        ours[round] = (double)state.len * 1e3 / (double)(now_ns() - start_ns);
        start_ns = now_ns();
        size_t len = ZSTD_compress(packed.data, packed.cap, state.data, state.len, 1);
        CHECK(pwrite(fd, packed.data, len, 0) == (ssize_t)len && fdatasync(fd) == 0);
        limits[round] = (double)state.len * 1e3 / (double)(now_ns() - start_ns);
        for (int64_t slice_ns = now_ns(); store_trim(store, INT64_MAX, &error) > 0; slice_ns = now_ns())
            note(&slices, slice_ns);
    }
    print("snapshot of 32 MiB", median(ours, ROUNDS), "MB/s", median(limits, ROUNDS));
    print("snapshot step p99", quantile(&steps, 0.99), "us", 0);
    print("snapshot step max", quantile(&steps, 1), "us", 0);
    print("clean-up slice p50", quantile(&slices, 0.5), "us", 0);
    print("clean-up slice p99", quantile(&slices, 0.99), "us", 0);
    print("clean-up slice max", quantile(&slices, 1), "us", 0);
    close(fd);
    store_close(store);
    remove_files(folder);
}

int main(int argc, char **argv)
{
    const char *parent = getenv("TMPDIR");
    if (argc > 1 && argv[1][0] != '-')
        parent = argv[1];
    struct buf folder = {0};
    buf_printf(&folder, "%s/phalanx-bench-XXXXXX", parent ? parent : "/var/tmp");
    if (!mkdtemp(folder.data)) {
        (void)fprintf(stderr, "bench_store: %s: %s\n", folder.data, strerror(errno));
        return 1;
    }
    for (size_t i = 0; i < GROUP_MAX; i++)
        for (size_t j = 0; j < RECORD_BYTES; j++)
            bytes[i][j] = (char)(i * 31 + j);
    static const size_t groups[] = {1, 10, 100, 1000};
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        bench_append(folder.data, groups[i]);
    bench_latency(folder.data);
    bench_read(folder.data);
    bench_snapshot(folder.data);
    (void)rmdir(folder.data);
    buf_done(&folder);
    return 0;
}
