#include "job/checkpoint/blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crc32c.h"

enum {
    BLOCK = 4 << 20,
    PIECE = 128 << 10, /* copied, then summed: fits into the second-level cache */
    GULP = 1 << 20,    /* bytes of one read past the page cache */
    WORKERS_MAX = 4,
};

struct transfer {
    int fd;
    bool direct, reading;
    const struct iovec *parts; /* writing */
    size_t count;
    const uint8_t *whole; /* writing; not NULL: the whole file, in place of `parts` */
    uint8_t *buf;         /* reading; NULL: the data is only summed */
    int past_fd;          /* reading: opened with O_DIRECT; -1: not possible */
    size_t len, blocks;
    uint32_t *sums; /* [blocks] */
    uint8_t *first;
    atomic_size_t next;
    atomic_int failure; /* errno of any worker; -1: the file is too short */
};

/* ---- the place of a block: the head is part of the first one ---- */

static size_t data_begin(size_t block)
{
    return block == 0 ? 0 : block * (size_t)BLOCK - BLOCKS_HEAD;
}

static size_t data_end(const struct transfer *transfer, size_t block)
{
    size_t end = (block + 1) * (size_t)BLOCK - BLOCKS_HEAD;
    return end < transfer->len ? end : transfer->len;
}

/* ---- writing ---- */

/* Copies data [from, from + len) of the parts and updates the checksum. */
static uint32_t gather(const struct transfer *transfer, size_t from, size_t len, uint8_t *out)
{
    uint32_t crc = 0;
    size_t at = 0;
    for (size_t i = 0; i < transfer->count && len > 0; at += transfer->parts[i].iov_len, i++) {
        const struct iovec *part = &transfer->parts[i];
        while (len > 0 && from < at + part->iov_len) {
            size_t left = at + part->iov_len - from, piece = len < PIECE ? len : PIECE;
            piece = piece < left ? piece : left;
            crc = crc32c_copy(crc, out, (const uint8_t *)part->iov_base + (from - at), piece);
            out += piece;
            from += piece;
            len -= piece;
        }
    }
    return crc;
}

static int write_at(int fd, const uint8_t *bytes, size_t len, off_t at)
{
    while (len > 0) {
        ssize_t written = pwrite(fd, bytes, len, at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        bytes += written;
        at += written;
        len -= (size_t)written;
    }
    return 0;
}

static int write_block(struct transfer *transfer, size_t block, uint8_t *room)
{
    size_t begin = data_begin(block), end = data_end(transfer, block), head = block == 0 ? BLOCKS_HEAD : 0;
    size_t len = head + (end - begin);
    memset(room, 0, head);
    transfer->sums[block] = gather(transfer, begin, end - begin, room + head);
    if (transfer->direct) {
        size_t whole = (len + BLOCKS_ALIGN - 1) / BLOCKS_ALIGN * BLOCKS_ALIGN;
        memset(room + len, 0, whole - len);
        len = whole;
    }
    if (block == 0)
        memcpy(transfer->first, room, len < BLOCKS_ALIGN ? len : BLOCKS_ALIGN);
    return write_at(transfer->fd, room, len, (off_t)(block * (size_t)BLOCK));
}

static int write_part(const struct transfer *transfer, size_t block)
{
    size_t begin = block * (size_t)BLOCK, len = BLOCKS_HEAD + transfer->len - begin;
    len = len < BLOCK ? len : BLOCK;
    if (transfer->direct)
        len = (len + BLOCKS_ALIGN - 1) / BLOCKS_ALIGN * BLOCKS_ALIGN;
    return write_at(transfer->fd, transfer->whole + begin, len, (off_t)begin);
}

/* ---- reading ---- */

static int read_at(int fd, uint8_t *bytes, size_t len, off_t at)
{
    while (len > 0) {
        ssize_t got = pread(fd, bytes, len, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : -1;
        bytes += got;
        at += got;
        len -= (size_t)got;
    }
    return 0;
}

static bool is_cached(const struct transfer *transfer, size_t block)
{
    uint8_t byte;
    struct iovec part = {&byte, 1};
    return preadv2(transfer->fd, &part, 1, (off_t)(block * (size_t)BLOCK), RWF_NOWAIT) == 1;
}

/* Reads past the page cache, which halves the work: the cached pages would not be used again. Returns EINVAL
 * if the file cannot be read that way. */
static int read_past(struct transfer *transfer, size_t block, uint8_t *room)
{
    size_t at = data_begin(block), end = data_end(transfer, block), head = block == 0 ? BLOCKS_HEAD : 0;
    uint32_t crc = 0;
    while (at < end) {
        ssize_t got = pread(transfer->past_fd, room, GULP, (off_t)(BLOCKS_HEAD + at - head));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= (ssize_t)head)
            return got < 0 ? errno : -1;
        size_t len = (size_t)got - head < end - at ? (size_t)got - head : end - at;
        struct iovec data = {room + head, len};
        struct transfer from = {.parts = &data, .count = 1};
        crc = crc32c_join(crc, gather(&from, 0, len, transfer->buf + at), len);
        at += len;
        head = 0;
    }
    transfer->sums[block] = crc;
    return 0;
}

static int read_block(struct transfer *transfer, size_t block, uint8_t *room)
{
    size_t end = data_end(transfer, block);
    uint32_t crc = 0;
    if (transfer->past_fd >= 0 && !is_cached(transfer, block)) {
        int failure = read_past(transfer, block, room);
        if (failure != EINVAL)
            return failure;
    }
    /* The kernel's own read-ahead is a hundredth of that. */
    posix_fadvise(transfer->fd, (off_t)(block * (size_t)BLOCK), BLOCK, POSIX_FADV_WILLNEED);
    for (size_t at = data_begin(block); at < end;) {
        size_t piece = end - at < PIECE ? end - at : PIECE;
        uint8_t *to = transfer->buf != NULL ? transfer->buf + at : room;
        int failure = read_at(transfer->fd, to, piece, (off_t)(BLOCKS_HEAD + at));
        if (failure != 0)
            return failure;
        crc = crc32c(crc, to, piece);
        at += piece;
    }
    transfer->sums[block] = crc;
    return 0;
}

/* ---- the workers ---- */

static void *work(void *argument)
{
    struct transfer *transfer = argument;
    size_t size = transfer->whole != NULL ? BLOCKS_ALIGN : transfer->reading ? GULP : BLOCK;
    uint8_t *room = aligned_alloc(BLOCKS_ALIGN, size);
    if (room == NULL) {
        transfer->failure = ENOMEM;
        return NULL;
    }
    for (;;) {
        size_t block = atomic_fetch_add(&transfer->next, 1);
        if (block >= transfer->blocks || transfer->failure != 0)
            break;
        int failure = transfer->reading         ? read_block(transfer, block, room)
                      : transfer->whole != NULL ? write_part(transfer, block)
                                                : write_block(transfer, block, room);
        if (failure != 0)
            transfer->failure = failure;
    }
    free(room);
    return NULL;
}

/* Runs the workers, the caller among them. If a thread cannot be started, the others do its work. */
static void work_together(struct transfer *transfer)
{
    pthread_t threads[WORKERS_MAX - 1];
    sigset_t all, before;
    size_t wanted = transfer->blocks < WORKERS_MAX ? transfer->blocks : WORKERS_MAX, started = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, work, transfer) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(transfer);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static int run(struct transfer *transfer, uint32_t *ret_crc)
{
    transfer->blocks = (BLOCKS_HEAD + transfer->len + BLOCK - 1) / BLOCK;
    transfer->sums = calloc(transfer->blocks, sizeof *transfer->sums);
    if (transfer->sums == NULL)
        return ENOMEM;
    work_together(transfer);
    uint32_t crc = 0;
    for (size_t i = 0; i < transfer->blocks && transfer->failure == 0; i++)
        crc = crc32c_join(crc, transfer->sums[i], data_end(transfer, i) - data_begin(i));
    free(transfer->sums);
    *ret_crc = crc;
    return transfer->failure;
}

int blocks_write(int fd, bool direct, const struct iovec *parts, size_t count, size_t len, uint32_t *ret_crc,
                 uint8_t ret_first[BLOCKS_ALIGN])
{
    struct transfer transfer = {
        .fd = fd, .direct = direct, .parts = parts, .count = count, .len = len, .first = ret_first};
    memset(ret_first, 0, BLOCKS_ALIGN);
    return run(&transfer, ret_crc);
}

int blocks_write_whole(int fd, bool direct, const uint8_t *whole, size_t len)
{
    struct transfer transfer = {.fd = fd, .direct = direct, .whole = whole, .len = len - BLOCKS_HEAD};
    uint32_t crc;
    return run(&transfer, &crc);
}

int blocks_read(int fd, uint8_t *buf, size_t len, uint32_t *ret_crc)
{
    struct transfer transfer = {.fd = fd, .reading = true, .buf = buf, .len = len, .past_fd = -1};
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (buf != NULL) /* data that is only verified is read again soon, so it may stay in the page cache */
        transfer.past_fd = open(name, O_RDONLY | O_DIRECT | O_CLOEXEC);
    int failure = run(&transfer, ret_crc);
    if (transfer.past_fd >= 0)
        close(transfer.past_fd);
    return failure;
}
