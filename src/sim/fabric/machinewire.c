#include "sim/fabric/machinewire.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fabric/wiring.h"

enum { READ_BYTES = 64 << 10 };

/* --- sockets ------------------------------------------------------------------------------------------- */

int machinewire_address(const char *folder, int32_t machine, struct sockaddr_un *ret_at, struct error *error)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int len = machine == MACHINEWIRE_SWITCHES
                  ? snprintf(at.sun_path, sizeof at.sun_path, "%s/light", folder)
                  : snprintf(at.sun_path, sizeof at.sun_path, "%s/%d-%d.copper", folder,
                             machine / CUBE_MACHINES, machine % CUBE_MACHINES);
    if (len >= (int)sizeof at.sun_path)
        return error_set(error, ERROR_INVALID, "%.100s: too long for sockets in it", folder);
    *ret_at = at;
    return 0;
}

int machinewire_listen(const char *folder, int32_t machine, int *ret_fd, struct error *error)
{
    struct sockaddr_un at;
    int status = machinewire_address(folder, machine, &at, error);
    if (status < 0)
        return status;
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "making the folder %.200s", folder);
    unlink(at.sun_path); /* left by a process that was killed */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 64) < 0) {
        status = error_set_errno(error, errno, "listening at %s", at.sun_path);
        if (fd >= 0)
            close(fd);
        return status;
    }
    *ret_fd = fd;
    return 0;
}

int machinewire_connect(const char *folder, int32_t machine)
{
    struct sockaddr_un at;
    if (machinewire_address(folder, machine, &at, NULL) < 0)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int machinewire_accept(int listen_fd)
{
    return accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* --- a connection -------------------------------------------------------------------------------------- */

void machinewire_close(struct machinewire_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    buf_done(&stream->in);
    buf_done(&stream->out);
    *stream = (struct machinewire_stream){.fd = -1};
}

bool machinewire_receive(struct machinewire_stream *stream)
{
    char bytes[READ_BYTES];
    ssize_t got = recv(stream->fd, bytes, sizeof bytes, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        return false;
    buf_drop_front(&stream->in, stream->taken);
    stream->taken = 0;
    buf_add(&stream->in, bytes, got > 0 ? (size_t)got : 0);
    return true;
}

int machinewire_next(struct machinewire_stream *stream, struct jobwire_reader *ret_frame)
{
    size_t left = stream->in.len - stream->taken;
    if (left < MACHINEWIRE_HEAD)
        return 0;
    const uint8_t *at = (const uint8_t *)stream->in.data + stream->taken;
    struct jobwire_reader head = {.data = at, .len = left};
    size_t len = (size_t)jobwire_get(&head, MACHINEWIRE_HEAD);
    if (len == 0 || len > MACHINEWIRE_BYTES_MAX)
        return ERROR_CORRUPT;
    if (len > left - MACHINEWIRE_HEAD)
        return 0;
    *ret_frame = (struct jobwire_reader){.data = at + MACHINEWIRE_HEAD, .len = len};
    stream->taken += MACHINEWIRE_HEAD + len;
    return 1;
}

bool machinewire_send(struct machinewire_stream *stream)
{
    while (stream->sent < stream->out.len) {
        ssize_t some = send(stream->fd, stream->out.data + stream->sent, stream->out.len - stream->sent,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (some < 0 && errno == EINTR)
            continue;
        if (some < 0 && errno == EAGAIN)
            return stream->out.len - stream->sent <= MACHINEWIRE_OUT_MAX;
        if (some < 0)
            return false;
        stream->sent += (size_t)some;
    }
    buf_clear(&stream->out);
    stream->sent = 0;
    return true;
}

struct pollfd machinewire_poll(const struct machinewire_stream *stream)
{
    bool more = stream->sent < stream->out.len;
    return (struct pollfd){stream->fd, (short)(POLLIN | (more ? POLLOUT : 0)), 0};
}

/* --- frames -------------------------------------------------------------------------------------------- */

static void put(struct machinewire_stream *stream, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        buf_add_char(&stream->out, (char)(value >> (8 * i)));
}

static void put_head(struct machinewire_stream *stream, enum machinewire_type type, size_t fields)
{
    put(stream, 1 + fields, MACHINEWIRE_HEAD);
    put(stream, type, 1);
}

void machinewire_put_hello(struct machinewire_stream *stream, uint32_t machine)
{
    put_head(stream, MACHINEWIRE_HELLO, 6);
    put(stream, MACHINEWIRE_VERSION, 2);
    put(stream, machine, 4);
}

void machinewire_put_frame(struct machinewire_stream *stream, struct machinewire_end end, const void *bytes,
                           size_t len)
{
    put_head(stream, MACHINEWIRE_FRAME, 9 + len);
    put(stream, end.chip, 4);
    put(stream, end.port, 1);
    put(stream, end.epoch, 4);
    buf_add(&stream->out, bytes, len);
}

void machinewire_put_light(struct machinewire_stream *stream, struct machinewire_end end, bool light)
{
    put_head(stream, MACHINEWIRE_LIGHT, 10);
    put(stream, end.chip, 4);
    put(stream, end.port, 1);
    put(stream, light, 1);
    put(stream, end.epoch, 4);
}

void machinewire_put_retrain(struct machinewire_stream *stream, struct machinewire_end end)
{
    put_head(stream, MACHINEWIRE_RETRAIN, 9);
    put(stream, end.chip, 4);
    put(stream, end.port, 1);
    put(stream, end.epoch, 4);
}

void machinewire_put_lost(struct machinewire_stream *stream, const struct chips_lost *lost)
{
    put_head(stream, MACHINEWIRE_LOST, 20);
    put(stream, lost->from, 4);
    put(stream, lost->serial, 4);
    put(stream, lost->session, 4);
    put(stream, lost->tag, 8);
}

static bool read_whole(const struct jobwire_reader *reader)
{
    return !reader->broken && reader->pos == reader->len;
}

static void get_end(struct jobwire_reader *reader, struct machinewire_end *ret_end)
{
    ret_end->chip = (uint32_t)jobwire_get(reader, 4);
    ret_end->port = (uint32_t)jobwire_get(reader, 1);
}

static bool end_is_of_a_pod(const struct machinewire_end *end)
{
    return end->chip < POD_CUBES_MAX * CUBE_CHIPS && end->port < CHIP_PORTS;
}

bool machinewire_get_hello(struct jobwire_reader *reader, uint32_t *ret_machine)
{
    uint64_t version = jobwire_get(reader, 2);
    *ret_machine = (uint32_t)jobwire_get(reader, 4);
    return read_whole(reader) && version == MACHINEWIRE_VERSION &&
           *ret_machine < POD_CUBES_MAX * CUBE_MACHINES;
}

bool machinewire_get_frame(struct jobwire_reader *reader, struct machinewire_end *ret_end)
{
    get_end(reader, ret_end);
    ret_end->epoch = (uint32_t)jobwire_get(reader, 4);
    return !reader->broken && end_is_of_a_pod(ret_end);
}

bool machinewire_get_light(struct jobwire_reader *reader, struct machinewire_end *ret_end, bool *ret_light)
{
    get_end(reader, ret_end);
    uint64_t light = jobwire_get(reader, 1);
    ret_end->epoch = (uint32_t)jobwire_get(reader, 4);
    *ret_light = light == 1;
    return read_whole(reader) && end_is_of_a_pod(ret_end) && light <= 1;
}

bool machinewire_get_retrain(struct jobwire_reader *reader, struct machinewire_end *ret_end)
{
    return machinewire_get_frame(reader, ret_end) && read_whole(reader);
}

bool machinewire_get_lost(struct jobwire_reader *reader, struct chips_lost *ret_lost)
{
    ret_lost->from = (uint32_t)jobwire_get(reader, 4);
    ret_lost->serial = (uint32_t)jobwire_get(reader, 4);
    ret_lost->session = (uint32_t)jobwire_get(reader, 4);
    ret_lost->tag = jobwire_get(reader, 8);
    return read_whole(reader) && ret_lost->from < POD_CUBES_MAX * CUBE_CHIPS;
}
