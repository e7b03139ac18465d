/* logs.c - sends a task's log as LOG_DATA: the existing lines, then new ones.
 *
 * A log is a file and its older parts (launch.h). A stream opens all parts at its start, oldest first, so a
 * later rotation loses nothing. To follow a log, the file's size is read every FOLLOW_MS: cheap, and the same
 * on every file system. Sent lines wait in the connection's queue; at QUEUE_BYTES, reading stops until the
 * queue is empty. A file beside the log has the times at which lines arrived (logtime.h); for a log without
 * one, `since` leaves out the parts that were last written before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/agent/internal.h"
#include "host/agent/logtime.h"

enum {
    FOLLOW_MS = 50,
    CHUNK_BYTES = 64 * 1024,
    TURN_BYTES = 512 * 1024, /* of one stream before others have their turn */
    QUEUE_BYTES = 1024 * 1024,
    PARTS_MAX = 16,
};

struct stream {
    struct live *live;
    struct list_node node;
    uint64_t number;
    obj_id task;
    uint64_t process; /* the launcher's number of the container's */
    bool follow, limited, timestamps, previous;
    bool mid_line;      /* the last byte sent was no line end */
    bool only_new;      /* all there is was written before `since` */
    int64_t left_bytes; /* with `limited` */
    int fds[PARTS_MAX]; /* oldest first; the last is the current file */
    struct log_times times[PARTS_MAX];
    off_t starts[PARTS_MAX]; /* where reading begins, for `since` */
    size_t next, count;      /* fds[next] is being read */
    char path[LAUNCH_PATH_MAX];
};

/* --- sending -------------------------------------------------------------------------------------- */

static void send_data(struct live *live, uint64_t stream, struct str bytes, bool end, const char *error)
{
    struct from_agent message = {.kind = FROM_AGENT_LOG_DATA,
                                 .log_data = {stream, bytes, end, str_from(error)}};
    if (live->machine->conn)
        wire_send_agent(live->machine->conn, &message);
}

static void close_part(struct stream *stream, size_t part)
{
    close(stream->fds[part]);
    log_times_close(&stream->times[part]);
}

static void stream_free(struct stream *stream)
{
    for (size_t i = stream->next; i < stream->count; i++)
        close_part(stream, i);
    list_remove(&stream->node);
    stream->live->stream_count--;
    mem_free(stream);
}

static void stream_end(struct stream *stream, const char *error)
{
    send_data(stream->live, stream->number, STR(""), true, error);
    stream_free(stream);
}

/* --- rotation ------------------------------------------------------------------------------------- */

static bool same_file(const char *path, const struct stat *known)
{
    struct stat now;
    return stat(path, &now) == 0 && now.st_ino == known->st_ino && now.st_dev == known->st_dev;
}

static void part_path(const struct stream *stream, int part, char ret_path[LAUNCH_PATH_MAX + 16])
{
    if (part == 0)
        snprintf(ret_path, LAUNCH_PATH_MAX + 16, "%s", stream->path);
    else
        snprintf(ret_path, LAUNCH_PATH_MAX + 16, "%s.%d", stream->path, part);
}

/* Opens the file that followed the one being read, which was at its end and is no longer the current one.
 * Returns whether there is more to read, in either. */
static bool open_successor(struct stream *stream)
{
    struct stat known;
    char path[LAUNCH_PATH_MAX + 16];
    if (fstat(stream->fds[stream->next], &known) < 0 || same_file(stream->path, &known))
        return false;
    int part = 0; /* if it is gone, the oldest part would do as well; take the current one */
    for (int i = 1; i < PARTS_MAX; i++) {
        part_path(stream, i, path);
        if (same_file(path, &known))
            part = i - 1;
    }
    /* The shim may have written once more before it began the next file, and writes to this one no longer. */
    if (fstat(stream->fds[stream->next], &known) == 0 &&
        known.st_size > lseek(stream->fds[stream->next], 0, SEEK_CUR))
        return true;
    part_path(stream, part, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    close_part(stream, stream->next);
    stream->fds[stream->next] = fd;
    log_times_open(&stream->times[stream->next], path);
    return true;
}

/* --- reading -------------------------------------------------------------------------------------- */

enum turn { TURN_WAIT, TURN_MORE, TURN_GONE };

static enum turn at_end(struct stream *stream, bool was_live)
{
    if (stream->next + 1 < stream->count) {
        close_part(stream, stream->next++);
        return TURN_MORE;
    }
    if (stream->count > 0 && open_successor(stream))
        return TURN_MORE;
    if (stream->follow && was_live)
        return TURN_WAIT;
    stream_end(stream, NULL);
    return TURN_GONE;
}

static bool find_path(struct stream *stream)
{
    struct launcher *launcher = stream->live->launcher;
    int rc = stream->previous ? launch_previous_log_path(launcher, stream->process, stream->path, NULL)
                              : launch_log_path(launcher, stream->process, stream->path, NULL);
    if (rc < 0)
        stream->path[0] = 0;
    return rc == 0;
}

static bool open_current(struct stream *stream)
{
    if (stream->path[0] == 0 && !find_path(stream))
        return false;
    int fd = open(stream->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    log_times_open(&stream->times[stream->count], stream->path);
    stream->fds[stream->count++] = fd;
    return true;
}

/* Returns whether the container may still write: it runs or has not been started. Call it before reading:
 * once its end is known, its log is complete. */
static bool writes_on(const struct stream *stream)
{
    const struct live *live = stream->live;
    char path[LAUNCH_PATH_MAX];
    for (size_t i = 0; i < live->running.len; i++)
        if (live->running.items[i] == stream->process)
            return !stream->previous;
    return agent_task_live(live->machine->agent, stream->task) && !stream->previous &&
           launch_log_path(live->launcher, stream->process, path, NULL) < 0;
}

/* Adds the lines of `bytes`, which are at `offset` of the file being read, each after its time. */
static void add_times(struct stream *stream, struct str bytes, off_t offset, struct buf *out)
{
    while (bytes.len > 0) {
        if (!stream->mid_line) {
            char text[40];
            int64_t time_ns = log_times_at(&stream->times[stream->next], offset);
            struct stat info;
            if (time_ns == 0 && fstat(stream->fds[stream->next], &info) == 0)
                time_ns = info.st_mtim.tv_sec * NS_PER_SECOND + info.st_mtim.tv_nsec;
            time_format(time_ns, text); /* whole seconds, then "Z" */
            size_t len = strlen(text);
            buf_printf(out, "%.*s.%09lldZ ", (int)(len > 0 ? len - 1 : 0), text,
                       (long long)(time_ns % NS_PER_SECOND));
        }
        const char *end = memchr(bytes.data, '\n', bytes.len);
        size_t len = end ? (size_t)(end - bytes.data) + 1 : bytes.len;
        buf_add(out, bytes.data, len);
        stream->mid_line = !end;
        bytes = (struct str){bytes.data + len, bytes.len - len};
        offset += (off_t)len;
    }
}

static enum turn read_some(struct stream *stream)
{
    static char chunk[CHUNK_BYTES];
    bool was_live = writes_on(stream);
    if (stream->count == 0 && !open_current(stream))
        return at_end(stream, was_live);
    size_t want = sizeof chunk;
    if (stream->limited && stream->left_bytes < (int64_t)want)
        want = (size_t)stream->left_bytes;
    if (want == 0) {
        stream_end(stream, NULL);
        return TURN_GONE;
    }
    ssize_t count = read(stream->fds[stream->next], chunk, want);
    if (count < 0 && errno == EINTR)
        return TURN_MORE;
    if (count < 0) {
        struct error error;
        error_set_errno(&error, errno, "reading the log");
        stream_end(stream, error.text);
        return TURN_GONE;
    }
    if (count == 0)
        return at_end(stream, was_live);
    BUF_CLEANUP struct buf timed = {0};
    struct str bytes = {chunk, (size_t)count};
    if (stream->timestamps) {
        add_times(stream, bytes, lseek(stream->fds[stream->next], 0, SEEK_CUR) - count, &timed);
        bytes = buf_str(&timed);
        if (stream->limited && (int64_t)bytes.len > stream->left_bytes)
            bytes.len = (size_t)stream->left_bytes;
    }
    stream->left_bytes -= (int64_t)bytes.len;
    send_data(stream->live, stream->number, bytes, false, NULL);
    return TURN_MORE;
}

/* Sends more of the stream. Returns true if it has more to send at once, after the other streams' turn. */
static bool stream_pump(struct stream *stream)
{
    struct live *live = stream->live;
    for (int done = 0; done < TURN_BYTES; done += CHUNK_BYTES) {
        if (!live->machine->conn || wire_conn_queued(live->machine->conn) >= QUEUE_BYTES)
            return false; /* continued by `drained` */
        if (read_some(stream) != TURN_MORE)
            return false;
    }
    return true;
}

static void on_log_timer(uv_timer_t *timer)
{
    local_logs_pump(timer->data);
}

void local_logs_pump(struct live *live)
{
    bool more = false;
    list_for_each_safe(node, after, &live->streams) more |=
        stream_pump(container_of(node, struct stream, node));
    if (live->stream_count == 0)
        uv_timer_stop(&live->log_timer);
    else
        uv_timer_start(&live->log_timer, on_log_timer, more ? 0 : FOLLOW_MS, 0);
}

/* --- opening -------------------------------------------------------------------------------------- */

/* Returns the offset of the first line that begins at `offset` or after it. */
static off_t next_line(int fd, off_t offset)
{
    static char chunk[CHUNK_BYTES];
    if (offset == 0)
        return 0;
    offset--; /* the line end before it, if it is one */
    for (;;) {
        ssize_t count = pread(fd, chunk, sizeof chunk, offset);
        if (count <= 0)
            return offset;
        const char *end = memchr(chunk, '\n', (size_t)count);
        if (end)
            return offset + (end - chunk) + 1;
        offset += count;
    }
}

/* Returns whether some of this part belongs to the requested time, and stores from where. */
static bool part_wanted(struct log_times *times, int fd, int64_t since_ns, off_t *ret_start)
{
    struct stat info;
    off_t start = 0;
    if (since_ns > 0 && log_times_since(times, since_ns, &start)) {
        *ret_start = start < 0 ? 0 : next_line(fd, start);
        return start >= 0;
    }
    *ret_start = 0;
    return fstat(fd, &info) == 0 && info.st_mtim.tv_sec * NS_PER_SECOND + info.st_mtim.tv_nsec >= since_ns;
}

/* Opens the parts that were written since then, oldest first. */
static void open_parts(struct stream *stream, int64_t since_ns)
{
    if (!find_path(stream))
        return;
    for (int part = PARTS_MAX - 1; part >= 0; part--) {
        char path[LAUNCH_PATH_MAX + 16];
        part_path(stream, part, path);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        size_t at = stream->count;
        stream->fds[at] = fd;
        log_times_open(&stream->times[at], path);
        bool wanted = part_wanted(&stream->times[at], fd, since_ns, &stream->starts[at]);
        if (!wanted && part == 0)
            stream->only_new = lseek(fd, 0, SEEK_END) >= 0;
        else
            lseek(fd, stream->starts[at], SEEK_SET);
        if (wanted || part == 0)
            stream->count++;
        else
            close_part(stream, at);
    }
}

/* Counts back *lines line ends in one file. Returns true, with the offset of the first wanted line, if the
 * file has them. */
static bool find_tail(int fd, int64_t *lines, bool *last_byte, off_t *ret_offset)
{
    static char chunk[CHUNK_BYTES];
    off_t end = lseek(fd, 0, SEEK_END);
    while (end > 0) {
        size_t want = end < (off_t)sizeof chunk ? (size_t)end : sizeof chunk;
        ssize_t count = pread(fd, chunk, want, end - (off_t)want);
        if (count <= 0)
            break;
        for (ssize_t i = count; i-- > 0;) {
            bool ends_text = *last_byte; /* a line end at the file's end ends the last line and begins none */
            *last_byte = false;
            if (chunk[i] != '\n' || ends_text)
                continue;
            if (--*lines == 0) {
                *ret_offset = end - (off_t)want + i + 1;
                return true;
            }
        }
        end -= (off_t)want;
    }
    return false;
}

static void seek_tail(struct stream *stream, int64_t lines)
{
    bool last_byte = true;
    size_t first = 0;
    off_t offset = 0;
    for (size_t i = stream->count; i-- > 0;) {
        if (lines > 0 ? find_tail(stream->fds[i], &lines, &last_byte, &offset) : i + 1 == stream->count) {
            first = i;
            if (lines == 0 && i + 1 == stream->count && offset == 0)
                offset = lseek(stream->fds[i], 0, SEEK_END);
            break;
        }
    }
    for (size_t i = 0; i < first; i++)
        close_part(stream, i);
    stream->next = first;
    for (size_t i = first; i < stream->count; i++)
        lseek(stream->fds[i], i == first && offset > stream->starts[i] ? offset : stream->starts[i],
              SEEK_SET);
}

/* Returns the request for the task that had the name in the earlier attempt; task 0: this machine has nothing
 * of it. */
static struct log_open of_earlier(struct live *live, const struct log_open *open)
{
    struct log_open its = *open;
    if (open->earlier.len > 0) {
        its.task = launch_kept_find(live->launcher, open->earlier, (uint32_t)open->attempt, open->after);
        its.follow = its.previous = false;
    }
    return its;
}

void local_logs_open(struct live *live, const struct log_open *asked)
{
    const struct log_open its = of_earlier(live, asked), *open = &its;
    char path[LAUNCH_PATH_MAX];
    uint64_t process = open->task;
    struct error error = {0};
    int found = local_container_find(live, open->task, open->container, &process, &error);
    bool known = open->previous ? launch_previous_log_path(live->launcher, process, path, NULL) == 0
                                : agent_task_live(live->machine->agent, open->task) ||
                                      launch_log_path(live->launcher, process, path, NULL) == 0;
    const char *refusal = open->task == 0                     ? LOG_NOT_KEPT
                          : found < 0                         ? error.text
                          : !known && open->previous          ? "previous terminated container not found"
                          : !known                            ? "no log of this task on its machine"
                          : live->stream_count >= STREAMS_MAX ? "too many log streams on this machine"
                                                              : NULL;
    if (refusal) {
        send_data(live, open->stream, STR(""), true, refusal);
        return;
    }
    struct stream *stream = mem_alloc(sizeof *stream);
    stream->live = live;
    stream->number = open->stream;
    stream->task = open->task;
    stream->process = process;
    stream->timestamps = open->timestamps;
    stream->previous = open->previous;
    stream->follow = open->follow;
    stream->limited = open->limit_bytes > 0;
    stream->left_bytes = open->limit_bytes;
    list_append(&live->streams, &stream->node);
    live->stream_count++;
    open_parts(stream, open->since_ns);
    if (open->tail_lines >= 0 && !stream->only_new)
        seek_tail(stream, open->tail_lines);
    uv_timer_start(&live->log_timer, on_log_timer, 0, 0);
}

void local_logs_close(struct live *live, uint64_t number)
{
    list_for_each_safe(node, after, &live->streams)
    {
        struct stream *stream = container_of(node, struct stream, node);
        if (stream->number == number)
            stream_free(stream);
    }
}

void local_logs_close_all(struct live *live)
{
    list_for_each_safe(node, after, &live->streams) stream_free(container_of(node, struct stream, node));
}

static void on_log_timer_closed(uv_handle_t *handle)
{
    struct live *live = handle->data;
    local_part_closed(live->machine->host);
}

void local_logs_init(struct live *live)
{
    uv_timer_init(live->machine->host->loop, &live->log_timer);
    live->log_timer.data = live;
    live->logging = true;
    live->machine->host->open_parts++;
}

void local_logs_shutdown(struct live *live)
{
    local_logs_close_all(live);
    if (live->logging)
        uv_close((uv_handle_t *)&live->log_timer, on_log_timer_closed);
}
