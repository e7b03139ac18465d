/* Tensors of suspended clients in a file.
 *
 * Saves are written one after another at the end of the file. The end returns to 0 when the file is empty. */
#include "flow/host/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A tensor in the file. */
struct disk_piece {
    struct ir_type type;
    off_t at;
    size_t bytes;
};
/* A save (tensor) or a load (piece). */
struct disk_order {
    uint64_t number;
    struct tensor *tensor;
    struct disk_piece *piece;
};
struct disk_answer {
    struct flow_event event;
    struct fault fault;
    struct tensor *loaded;
};

struct disk {
    const char *folder;
    struct loop *loop;
    pthread_mutex_t mutex;
    pthread_cond_t ordered;
    pthread_t thread;
    bool started, stop;
    VEC(struct disk_order) orders;
    VEC(struct disk_answer) answers;
    size_t first_order, first_answer; /* indexes of the first order and answer still to be handled */
    struct disk_answer last;          /* the answer that disk_next returned last */
    int fd;                           /* -1: not made yet */
    off_t end;
    uint64_t pieces; /* saved tensors that are not scrapped */
};

struct disk *disk_new(const char *folder, struct loop *loop)
{
    struct disk *disk = mem_alloc(sizeof *disk);
    disk->folder = folder;
    disk->loop = loop;
    disk->fd = -1;
    pthread_mutex_init(&disk->mutex, NULL);
    pthread_cond_init(&disk->ordered, NULL);
    return disk;
}

/* Makes a file without a name. Returns 0 or an errno. */
static int disk_open(struct disk *disk)
{
    if (disk->fd >= 0)
        return 0;
    disk->fd = open(disk->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (disk->fd >= 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
        return errno;
    char name[512];
    int len = snprintf(name, sizeof name, "%s/phalanx-flow-XXXXXX", disk->folder);
    if (len < 0 || (size_t)len >= sizeof name)
        return ENAMETOOLONG;
    disk->fd = mkostemp(name, O_CLOEXEC);
    if (disk->fd < 0)
        return errno;
    unlink(name);
    return 0;
}

static int disk_write(int fd, const char *data, size_t bytes, off_t at)
{
    while (bytes > 0) {
        ssize_t done = pwrite(fd, data, bytes, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : ENOSPC;
        data += done;
        bytes -= (size_t)done;
        at += done;
    }
    return 0;
}

static int disk_read(int fd, char *data, size_t bytes, off_t at)
{
    while (bytes > 0) {
        ssize_t done = pread(fd, data, bytes, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : EIO;
        data += done;
        bytes -= (size_t)done;
        at += done;
    }
    return 0;
}

static void disk_save_one(struct disk *disk, const struct disk_order *order, struct disk_answer *answer)
{
    struct disk_piece *piece = mem_alloc(sizeof *piece);
    piece->type = order->tensor->type;
    piece->bytes = (size_t)ir_type_bytes(&piece->type);
    int code = disk_open(disk);
    pthread_mutex_lock(&disk->mutex);
    if (disk->pieces == 0) /* keeps the size of a file full of holes from growing without bound */
        disk->end = 0;
    piece->at = disk->end;
    disk->end += (off_t)piece->bytes;
    disk->pieces++;
    pthread_mutex_unlock(&disk->mutex);
    if (code == 0)
        code = disk_write(disk->fd, order->tensor->data, piece->bytes, piece->at);
    tensor_unref(order->tensor);
    answer->event.kind = FLOW_SAVED;
    answer->event.executable = code == 0 ? piece : NULL;
    if (code == 0)
        return;
    answer->fault = fault_make(FAULT_CANCELLED, 0, 0, "saving %zu bytes in %s: %s", piece->bytes,
                               disk->folder, strerror(code));
    disk_scrap(disk, piece);
}

static void disk_load_one(const struct disk *disk, const struct disk_order *order, struct disk_answer *answer)
{
    const struct disk_piece *piece = order->piece;
    struct tensor *tensor = tensor_new(&piece->type);
    int code = tensor ? disk_read(disk->fd, tensor->data, piece->bytes, piece->at) : ENOMEM;
    answer->event.kind = FLOW_LOADED;
    answer->loaded = code == 0 ? tensor : NULL;
    if (code == 0)
        return;
    tensor_unref(tensor);
    answer->fault = fault_make(code == ENOMEM ? FAULT_OUT_OF_MEMORY : FAULT_CANCELLED, 0, 0,
                               "loading %zu bytes of a suspended client: %s", piece->bytes, strerror(code));
    answer->fault.lost = true;
}

static void *disk_main(void *arg)
{
    struct disk *disk = arg;
    for (;;) {
        pthread_mutex_lock(&disk->mutex);
        while (disk->orders.len == 0 && !disk->stop)
            pthread_cond_wait(&disk->ordered, &disk->mutex);
        bool stop = disk->stop;
        struct disk_order order = {0};
        if (!stop)
            order = disk->orders.items[disk->first_order++];
        if (disk->first_order == disk->orders.len) {
            vec_clear(&disk->orders);
            disk->first_order = 0;
        }
        pthread_mutex_unlock(&disk->mutex);
        if (stop)
            return NULL;
        struct disk_answer answer = {.event = {.handle = order.number}};
        if (order.tensor)
            disk_save_one(disk, &order, &answer);
        else
            disk_load_one(disk, &order, &answer);
        pthread_mutex_lock(&disk->mutex);
        bool first = disk->answers.len == 0;
        vec_push(&disk->answers, answer);
        pthread_mutex_unlock(&disk->mutex);
        if (first)
            loop_wake(disk->loop);
    }
}

static void disk_order(struct disk *disk, const struct disk_order *order)
{
    sigset_t all, old;
    pthread_mutex_lock(&disk->mutex);
    vec_push(&disk->orders, *order);
    pthread_cond_signal(&disk->ordered);
    if (!disk->started) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        CHECK(pthread_create(&disk->thread, NULL, disk_main, disk) == 0);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        disk->started = true;
    }
    pthread_mutex_unlock(&disk->mutex);
}

void disk_save(struct disk *disk, struct flow_effect *effect)
{
    disk_order(disk, &(struct disk_order){.number = effect->handle, .tensor = effect->payload});
    effect->payload = NULL;
}

void disk_load(struct disk *disk, const struct flow_effect *effect)
{
    disk_order(disk, &(struct disk_order){.number = effect->handle, .piece = effect->executable});
}

void disk_scrap(struct disk *disk, void *saved)
{
    struct disk_piece *piece = saved;
    pthread_mutex_lock(&disk->mutex);
    /* Best effort: on a file system without holes, the space is freed with the file. */
    if (disk->fd >= 0 && piece->bytes > 0)
        fallocate(disk->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, piece->at, (off_t)piece->bytes);
    disk->pieces--;
    pthread_mutex_unlock(&disk->mutex);
    mem_free(piece);
}

bool disk_next(struct disk *disk, struct flow_event *ret_event)
{
    pthread_mutex_lock(&disk->mutex);
    bool some = disk->answers.len > 0;
    if (some)
        disk->last = disk->answers.items[disk->first_answer++];
    if (disk->first_answer == disk->answers.len) {
        vec_clear(&disk->answers);
        disk->first_answer = 0;
    }
    pthread_mutex_unlock(&disk->mutex);
    if (!some)
        return false;
    *ret_event = disk->last.event;
    ret_event->fault = disk->last.fault.reason ? &disk->last.fault : NULL;
    ret_event->results = &disk->last.loaded;
    ret_event->result_count = disk->last.loaded != NULL;
    return true;
}

void disk_stop(struct disk *disk)
{
    pthread_mutex_lock(&disk->mutex);
    disk->stop = true;
    pthread_cond_signal(&disk->ordered);
    pthread_mutex_unlock(&disk->mutex);
    if (disk->started)
        pthread_join(disk->thread, NULL);
    disk->started = false;
}

void disk_free(struct disk *disk)
{
    CHECK(disk->stop && !disk->started);
    for (size_t i = disk->first_order; i < disk->orders.len; i++)
        tensor_unref(disk->orders.items[i].tensor);
    struct flow_event event;
    while (disk_next(disk, &event)) {
        if (event.executable)
            disk_scrap(disk, event.executable);
        if (event.result_count > 0)
            tensor_unref(event.results[0]);
    }
    CHECK(disk->pieces == 0);
    vec_done(&disk->orders);
    vec_done(&disk->answers);
    if (disk->fd >= 0)
        close(disk->fd);
    pthread_cond_destroy(&disk->ordered);
    pthread_mutex_destroy(&disk->mutex);
    mem_free(disk);
}
