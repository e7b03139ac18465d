#include "host/standby/trial.h"

#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/str.h"

enum {
    STATUS_BYTES = 12, /* "HTTP/1.1 200" */
    ROOM_BYTES = 1024,
    LATE_MS = 5000,
};

struct trial {
    uv_tcp_t stream;
    uv_write_t write;
    uv_timer_t late;
    uint8_t open; /* handles that are open */
    bool closing;
    void (*ended)(void *context, int status); /* NULL: called already, or cancelled */
    void *context;
    char answer[STATUS_BYTES], room[ROOM_BYTES];
    size_t len;
};

static void on_closed(uv_handle_t *handle)
{
    struct trial *trial = handle->data;
    if (--trial->open == 0)
        mem_free(trial);
}

static void trial_close(struct trial *trial)
{
    if (trial->closing)
        return;
    trial->closing = true;
    uv_close((uv_handle_t *)&trial->stream, on_closed);
    uv_close((uv_handle_t *)&trial->late, on_closed);
}

void trial_cancel(struct trial *trial)
{
    if (!trial)
        return;
    trial->ended = NULL;
    trial_close(trial);
}

static void trial_end(struct trial *trial, int status)
{
    void (*ended)(void *context, int status) = trial->ended;
    trial->ended = NULL;
    trial_close(trial);
    if (ended)
        ended(trial->context, status);
}

static void on_late(uv_timer_t *timer)
{
    trial_end(timer->data, 0);
}

static void on_written(uv_write_t *request, int status)
{
    struct trial *trial = request->data;
    if (status < 0)
        trial_end(trial, 0);
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct trial *trial = handle->data;
    *buf = uv_buf_init(trial->room, ROOM_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct trial *trial = stream->data;
    size_t more = count > 0 ? (size_t)count : 0, left = STATUS_BYTES - trial->len;
    int64_t status = 0;
    more = more < left ? more : left;
    if (more)
        memcpy(trial->answer + trial->len, buf->base, more);
    trial->len += more;
    if (trial->len == STATUS_BYTES && str_starts((struct str){trial->answer, STATUS_BYTES}, STR("HTTP/1.1 ")))
        (void)str_to_i64((struct str){trial->answer + STATUS_BYTES - 3, 3}, 100, 999, &status);
    if (count < 0 || trial->len == STATUS_BYTES)
        trial_end(trial, (int)status);
}

struct trial *trial_begin(uv_loop_t *loop, int fd, void (*ended)(void *context, int status), void *context)
{
    static char request[] = "GET /livez HTTP/1.1\r\nHost: controller\r\nConnection: close\r\n\r\n";
    struct trial *trial = mem_alloc(sizeof *trial);
    uv_buf_t bytes = uv_buf_init(request, sizeof request - 1);
    trial->ended = ended;
    trial->context = context;
    trial->open = 2;
    uv_tcp_init(loop, &trial->stream);
    uv_timer_init(loop, &trial->late);
    trial->stream.data = trial->late.data = trial->write.data = trial;
    uv_timer_start(&trial->late, on_late, LATE_MS, 0);
    if (uv_tcp_open(&trial->stream, fd) < 0)
        close(fd);
    else if (uv_write(&trial->write, (uv_stream_t *)&trial->stream, &bytes, 1, on_written) == 0 &&
             uv_read_start((uv_stream_t *)&trial->stream, give_room, on_read) == 0)
        return trial;
    uv_timer_start(&trial->late, on_late, 0, 0);
    return trial;
}
