#include "host/objectstore/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/hash.h"
#include "job/checkpoint/shard_format.h"

enum { MIB = 1 << 20, PARALLEL_MAX = 32, RECORD_BYTES_MAX = 8 << 20, LINE_MAX = STORE_TAG_MAX + 64 };
#define PART_BYTES_MAX (UINT64_C(256) * MIB) /* a part, unless the operator asked for larger ones */

struct part {
    bool done;
    uint32_t crc; /* of its data, without the shard's header */
    char tag[STORE_TAG_MAX];
};

struct work {
    const struct shard_transfer *transfer;
    struct store_place place; /* with the size of a part that fits */
    uint8_t head[SHARD_HEADER_SIZE];
    struct shard_header header;
    uint64_t total;
    uint32_t parts;
    struct part *part;
    char id[STORE_ID_MAX]; /* of the upload */
    int record_fd;
    size_t record_len; /* its whole lines */
    bool down;
    pthread_mutex_t mutex; /* of the following, and of the record */
    uint32_t next;
    struct error failure; /* code 0: none */
};

/* --- names ---------------------------------------------------------------------------------------- */

void shard_key(const char *folder, uint64_t step, uint32_t attempt, uint32_t rank,
               char ret_key[SHARD_KEY_MAX])
{
    snprintf(ret_key, SHARD_KEY_MAX, "%sstep-%llu/attempt-%u-rank-%u.shard", folder, (unsigned long long)step,
             attempt, rank);
}

bool shard_key_parse(struct str key, uint64_t *ret_step, uint32_t *ret_attempt, uint32_t *ret_rank)
{
    int64_t step, attempt, rank;
    if (!str_take_number(&key, "step-", INT64_MAX, &step) ||
        !str_take_number(&key, "/attempt-", UINT32_MAX, &attempt) ||
        !str_take_number(&key, "-rank-", UINT32_MAX, &rank) || !str_is(key, ".shard"))
        return false;
    *ret_step = (uint64_t)step;
    *ret_attempt = (uint32_t)attempt;
    *ret_rank = (uint32_t)rank;
    return true;
}

/* --- the file ------------------------------------------------------------------------------------- */

static int read_file(int fd, uint8_t *buf, size_t len, uint64_t at, struct error *error)
{
    while (len > 0) {
        ssize_t got = pread(fd, buf, len, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? error_set_errno(error, errno, "reading the shard")
                           : error_set(error, ERROR_CORRUPT, "the shard is cut short");
        buf += got;
        at += (uint64_t)got;
        len -= (size_t)got;
    }
    return 0;
}

static int write_file(int fd, const uint8_t *buf, size_t len, uint64_t at, struct error *error)
{
    while (len > 0) {
        ssize_t written = pwrite(fd, buf, len, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return error_set_errno(error, errno, "writing the shard");
        buf += written;
        at += (uint64_t)written;
        len -= (size_t)written;
    }
    return 0;
}

static int check_head(struct work *work, const char *where, struct error *error)
{
    const struct shard_transfer *transfer = work->transfer;
    uint32_t version;
    if (!shard_header_get(work->head, crc32c, &work->header, &version) || version != SHARD_VERSION)
        return error_set(error, ERROR_CORRUPT, "%s is not a whole shard", where);
    if (work->header.step != transfer->step || work->header.attempt != transfer->attempt ||
        work->header.rank != transfer->rank || work->header.len > UINT64_MAX / 4)
        return error_set(error, ERROR_CORRUPT, "%s holds step %llu of attempt %u, rank %u", where,
                         (unsigned long long)work->header.step, work->header.attempt, work->header.rank);
    work->total = SHARD_HEADER_SIZE + work->header.len;
    return 0;
}

/* --- parts ---------------------------------------------------------------------------------------- */

/* Divides the shard into parts. Each thread holds one in memory: beyond PART_BYTES_MAX the shard is refused,
 * because its length is the task's word. */
static int lay_out(struct work *work, struct error *error)
{
    uint64_t size = work->place.part_bytes, most = size > PART_BYTES_MAX ? size : PART_BYTES_MAX;
    if ((work->total + size - 1) / size > STORE_PARTS_MAX)
        size = (work->total / STORE_PARTS_MAX / MIB + 1) * MIB;
    if (size > most)
        return error_set(error, ERROR_LIMIT,
                         "a shard of %llu bytes is too large: parts of at most %llu MiB, %d parts",
                         (unsigned long long)work->total, (unsigned long long)(most / MIB), STORE_PARTS_MAX);
    work->place.part_bytes = size;
    work->parts = (uint32_t)((work->total + size - 1) / size);
    work->part = mem_alloc(work->parts * sizeof *work->part);
    return 0;
}

static size_t part_len(const struct work *work, uint32_t index)
{
    uint64_t left = work->total - index * work->place.part_bytes;
    return (size_t)(left < work->place.part_bytes ? left : work->place.part_bytes);
}

static uint32_t part_crc(uint32_t index, const uint8_t *bytes, size_t len)
{
    size_t head = index == 0 ? SHARD_HEADER_SIZE : 0;
    return crc32c(0, bytes + head, len - head);
}

static bool sums_join(const struct work *work)
{
    uint32_t crc = 0;
    for (uint32_t i = 0; i < work->parts; i++)
        crc = crc32c_join(crc, work->part[i].crc, part_len(work, i) - (i == 0 ? SHARD_HEADER_SIZE : 0));
    return crc == work->header.data_crc;
}

static int send_part(struct work *work, struct object_store *store, uint32_t index, uint8_t *room,
                     struct error *error)
{
    struct part *part = &work->part[index];
    size_t len = part_len(work, index);
    char line[LINE_MAX];
    int rc = read_file(work->transfer->fd, room, len, index * work->place.part_bytes, error);
    if (rc == 0 && index == 0) /* as it was at the start, whatever the slot holds now */
        memcpy(room, work->head, SHARD_HEADER_SIZE);
    part->crc = rc == 0 ? part_crc(index, room, len) : 0;
    if (rc == 0)
        rc = upload_part(store, work->transfer->key, work->id, index + 1,
                         (struct str){(const char *)room, len}, part->tag, error);
    if (rc < 0)
        return rc;
    part->done = true;
    int written = snprintf(line, sizeof line, "part %u %08x %s\n", index + 1, part->crc, part->tag);
    pthread_mutex_lock(&work->mutex);
    if (write(work->record_fd, line, (size_t)written) != written)
        rc = error_set_errno(error, errno, "writing %s", work->transfer->record);
    pthread_mutex_unlock(&work->mutex);
    return rc;
}

static int receive_part(struct work *work, struct object_store *store, uint32_t index, uint8_t *room,
                        struct error *error)
{
    size_t len = part_len(work, index), got, head = index == 0 ? SHARD_HEADER_SIZE : 0;
    uint64_t at = index * work->place.part_bytes;
    int rc = bucket_get(store, work->transfer->key, at, room, len, &got, NULL, error);
    if (rc == 0 && got != len)
        rc = error_set(error, ERROR_CORRUPT, "the store's %s is cut short", work->transfer->key);
    if (rc < 0)
        return rc;
    work->part[index].crc = part_crc(index, room, len);
    return write_file(work->transfer->fd, room + head, len - head, at + head, error);
}

/* Returns the next part to move, or UINT32_MAX if none is left or one has failed. */
static uint32_t next_part(struct work *work)
{
    pthread_mutex_lock(&work->mutex);
    while (work->next < work->parts && work->part[work->next].done)
        work->next++;
    uint32_t index = work->failure.code == 0 && work->next < work->parts ? work->next++ : UINT32_MAX;
    pthread_mutex_unlock(&work->mutex);
    return index;
}

static void fail(struct work *work, const struct error *error)
{
    pthread_mutex_lock(&work->mutex);
    if (work->failure.code == 0)
        work->failure = *error;
    pthread_mutex_unlock(&work->mutex);
}

static void *move_parts(void *argument)
{
    struct work *work = argument;
    struct object_store *store = NULL;
    struct error error;
    uint8_t *room = malloc((size_t)work->place.part_bytes);
    int rc = room ? object_store_open(&work->place, work->transfer->stop, &store, &error)
                  : error_set(&error, ERROR_LIMIT, "there is no memory for a part");
    for (uint32_t index; rc == 0 && (index = next_part(work)) != UINT32_MAX;)
        rc = work->down ? receive_part(work, store, index, room, &error)
                        : send_part(work, store, index, room, &error);
    if (rc < 0)
        fail(work, &error);
    object_store_close(store);
    free(room);
    return NULL;
}

static int move_all(struct work *work, struct error *error)
{
    pthread_t threads[PARALLEL_MAX];
    uint32_t wanted = work->place.parallel < work->parts ? work->place.parallel : work->parts, started = 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, move_parts, work) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    move_parts(work);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (work->failure.code == 0)
        return 0;
    if (error)
        *error = work->failure;
    return work->failure.code;
}

/* --- the record ----------------------------------------------------------------------------------- */

/* Writes the beginning of a record. A record has the lines "phalanx-upload 1", the bucket and its prefix, the
 * key, the shard's header, the size of a part and the upload's id, and then a line for each part. */
static struct buf record_begin(const struct work *work)
{
    char head[2 * SHARD_HEADER_SIZE + 1];
    struct buf text = {0};
    hex_encode(work->head, SHARD_HEADER_SIZE, head);
    buf_printf(&text, "phalanx-upload 1\n%s/%s\n%s\n%s\n%llu\n", work->place.bucket, work->place.prefix,
               work->transfer->key, head, (unsigned long long)work->place.part_bytes);
    return text;
}

static bool record_line(struct work *work, struct str line)
{
    unsigned number, crc;
    char text[LINE_MAX], tag[STORE_TAG_MAX];
    snprintf(text, sizeof text, STR_FORMAT, STR_ARG(line));
    if (sscanf(text, "part %u %8x %127s", &number, &crc, tag) != 3 || number < 1 || number > work->parts)
        return false;
    struct part *part = &work->part[number - 1];
    part->done = true;
    part->crc = crc;
    snprintf(part->tag, sizeof part->tag, "%s", tag);
    return true;
}

static struct buf record_text(const char *path)
{
    struct buf text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? 1 : 0;
    while (got > 0 && text.len < RECORD_BYTES_MAX) {
        buf_reserve(&text, 65536);
        got = read(fd, text.data + text.len, 65536);
        text.len += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    return text;
}

/* Reads the record. Returns false if there is none, or if it is that of another upload. An incomplete last
 * line is ignored. */
static bool record_read(struct work *work)
{
    struct buf begin BUF_CLEANUP = record_begin(work), text BUF_CLEANUP = record_text(work->transfer->record);
    struct str rest = buf_str(&text), line;
    if (!str_starts(rest, buf_str(&begin)))
        return false;
    rest = (struct str){rest.data + begin.len, rest.len - begin.len};
    if (!str_cut(rest, '\n', &line, &rest) || line.len == 0 || line.len >= STORE_ID_MAX)
        return false;
    snprintf(work->id, sizeof work->id, STR_FORMAT, STR_ARG(line));
    while (str_cut(rest, '\n', &line, &rest))
        if (!record_line(work, line))
            return false;
    work->record_len = text.len - rest.len;
    return true;
}

void shard_upload_drop(const struct store_place *place, const atomic_bool *stop, const char *record)
{
    struct buf text BUF_CLEANUP = record_text(record);
    struct str rest = buf_str(&text), line[6] = {{0}};
    struct object_store *store = NULL;
    size_t count = 0;
    while (count < 6 && str_cut(rest, '\n', &line[count], &rest))
        count++;
    if (count == 6 && object_store_open(place, stop, &store, NULL) == 0) {
        struct arena arena ARENA_CLEANUP = {0};
        (void)upload_abort(store, arena_strdup(&arena, line[2]), arena_strdup(&arena, line[5]), NULL);
    }
    object_store_close(store);
    unlink(record);
}

static int record_make(struct work *work, struct error *error)
{
    struct buf text BUF_CLEANUP = record_begin(work);
    buf_printf(&text, "%s\n", work->id);
    int fd = open(work->transfer->record, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int rc = fd < 0 || write(fd, text.data, text.len) != (ssize_t)text.len
                 ? error_set_errno(error, errno, "writing %s", work->transfer->record)
                 : 0;
    if (fd >= 0)
        close(fd);
    work->record_len = text.len;
    return rc;
}

/* --- up ------------------------------------------------------------------------------------------- */

/* Returns 1 if the object exists with this header, 0 if not, or an error. */
static int is_there(struct work *work, struct object_store *store, struct error *error)
{
    uint8_t head[SHARD_HEADER_SIZE];
    uint64_t total;
    size_t got;
    int rc = bucket_get(store, work->transfer->key, 0, head, sizeof head, &got, &total, error);
    if (rc == ERROR_NOT_FOUND || rc == ERROR_CORRUPT)
        return 0;
    return rc < 0 ? rc : got == sizeof head && total == work->total && memcmp(head, work->head, got) == 0;
}

static int still_the_same(struct work *work, struct error *error)
{
    uint8_t head[SHARD_HEADER_SIZE];
    int rc = read_file(work->transfer->fd, head, sizeof head, 0, error);
    if (rc == 0 && (memcmp(head, work->head, sizeof head) != 0 || !sums_join(work)))
        rc = error_set(error, ERROR_CORRUPT, "the shard was overwritten while it was uploaded");
    return rc;
}

static int finish(struct work *work, struct object_store *store, struct error *error)
{
    char(*tags)[STORE_TAG_MAX] = mem_alloc(work->parts * sizeof *tags);
    for (uint32_t i = 0; i < work->parts; i++)
        memcpy(tags[i], work->part[i].tag, STORE_TAG_MAX);
    int rc = upload_finish(store, work->transfer->key, work->id, (const char(*)[STORE_TAG_MAX])tags,
                           work->parts, error);
    mem_free(tags);
    if (rc < 0 && rc != ERROR_NOT_FOUND) /* not found: finished already, and the answer was lost */
        return rc;
    struct error other;
    int there = is_there(work, store, &other);
    if (there == 1)
        return 0;
    if (rc < 0)
        return rc;
    return there < 0 ? error_set(error, other.code, "%s", other.text)
                     : error_set(error, ERROR_CORRUPT, "the stored object differs from the upload");
}

static int upload_small(struct work *work, struct object_store *store, struct error *error)
{
    uint8_t *bytes = mem_alloc((size_t)work->total);
    int rc = read_file(work->transfer->fd, bytes, (size_t)work->total, 0, error);
    if (rc == 0)
        memcpy(bytes, work->head, SHARD_HEADER_SIZE);
    if (rc == 0)
        work->part[0].crc = part_crc(0, bytes, (size_t)work->total);
    if (rc == 0)
        rc = still_the_same(work, error);
    if (rc == 0)
        rc = bucket_put(store, work->transfer->key, (struct str){(char *)bytes, (size_t)work->total}, error);
    mem_free(bytes);
    return rc;
}

/* Uploads in parts: continues the upload of the record, or begins a new one if the store does not know it any
 * more. */
static int upload_parts(struct work *work, struct object_store *store, struct error *error)
{
    bool known = record_read(work);
    if (!known) {
        memset(work->part, 0, work->parts * sizeof *work->part);
        int rc = upload_begin(store, work->transfer->key, work->id, error);
        if (rc == 0)
            rc = record_make(work, error);
        if (rc < 0)
            return rc;
    }
    work->next = 0;
    work->failure.code = 0;
    work->record_fd = open(work->transfer->record, O_WRONLY | O_APPEND | O_CLOEXEC);
    int rc = work->record_fd < 0 || ftruncate(work->record_fd, (off_t)work->record_len) < 0
                 ? error_set_errno(error, errno, "opening %s", work->transfer->record)
                 : move_all(work, error);
    if (rc == 0)
        rc = still_the_same(work, error);
    if (rc == 0)
        rc = finish(work, store, error);
    if (work->record_fd >= 0)
        close(work->record_fd);
    if (rc == ERROR_CORRUPT)
        (void)upload_abort(store, work->transfer->key, work->id, NULL);
    if (rc == 0 || rc == ERROR_CORRUPT || rc == ERROR_NOT_FOUND)
        unlink(work->transfer->record);
    return rc == ERROR_NOT_FOUND && known ? upload_parts(work, store, error) : rc;
}

static void work_done(struct work *work, struct object_store *store)
{
    object_store_close(store);
    mem_free(work->part);
    pthread_mutex_destroy(&work->mutex);
}

int shard_upload(const struct shard_transfer *transfer, uint64_t *ret_bytes, struct error *error)
{
    struct work work = {.transfer = transfer, .place = *transfer->place};
    struct object_store *store = NULL;
    pthread_mutex_init(&work.mutex, NULL);
    int rc = read_file(transfer->fd, work.head, sizeof work.head, 0, error);
    if (rc == 0)
        rc = check_head(&work, "the slot", error);
    if (rc == 0)
        rc = lay_out(&work, error);
    if (rc == 0)
        rc = object_store_open(&work.place, transfer->stop, &store, error);
    if (rc == 0)
        rc = is_there(&work, store, error);
    if (rc == 0)
        rc = work.parts == 1 ? upload_small(&work, store, error) : upload_parts(&work, store, error);
    work_done(&work, store);
    if (rc >= 0)
        *ret_bytes = work.total;
    return rc > 0 ? 0 : rc;
}

/* --- down ----------------------------------------------------------------------------------------- */

static int look_at_object(struct work *work, struct object_store *store, struct error *error)
{
    uint64_t total;
    size_t got;
    int rc = bucket_get(store, work->transfer->key, 0, work->head, sizeof work->head, &got, &total, error);
    if (rc == 0 && got != sizeof work->head)
        rc = error_set(error, ERROR_CORRUPT, "the store's %s is not a whole shard", work->transfer->key);
    if (rc == 0)
        rc = check_head(work, work->transfer->key, error);
    if (rc == 0 && total != work->total)
        rc = error_set(error, ERROR_CORRUPT, "the store's %s has another size than its header says",
                       work->transfer->key);
    return rc;
}

static int fill(struct work *work, struct error *error)
{
    static const uint8_t zero[SHARD_HEADER_SIZE];
    int fd = work->transfer->fd;
    int rc = write_file(fd, zero, sizeof zero, 0, error);
    int reason = rc == 0 ? posix_fallocate(fd, 0, (off_t)work->total) : 0;
    if (reason != 0)
        rc = error_set_errno(error, reason, "making room for %llu bytes", (unsigned long long)work->total);
    if (rc == 0)
        rc = move_all(work, error);
    if (rc == 0 && !sums_join(work))
        rc = error_set(error, ERROR_CORRUPT, "the store's %s is damaged: the checksum is wrong",
                       work->transfer->key);
    return rc == 0 ? write_file(fd, work->head, sizeof work->head, 0, error) : rc;
}

int shard_download(const struct shard_transfer *transfer, uint64_t *ret_bytes, struct error *error)
{
    struct work work = {.transfer = transfer, .place = *transfer->place, .down = true};
    struct object_store *store = NULL;
    pthread_mutex_init(&work.mutex, NULL);
    int rc = object_store_open(&work.place, transfer->stop, &store, error);
    if (rc == 0)
        rc = look_at_object(&work, store, error);
    if (rc == 0)
        rc = lay_out(&work, error);
    if (rc == 0)
        rc = fill(&work, error);
    work_done(&work, store);
    if (rc == 0)
        *ret_bytes = work.total;
    return rc;
}
