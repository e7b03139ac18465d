#include "flow/host/watch.h"

#include <errno.h>
#include <poll.h>

#include "base/units.h"
#include "flow/island/entry.h"
#include "flow/wire/clock.h"
#include "flow/wire/token.h"
#include "flow/wire/wire.h"

#define WATCH_REST_NS (5 * NS_PER_SECOND)

struct flow_watch {
    struct wire *wire;
    char address[256];
    bool welcome, denied;
    struct buf status; /* the last one received */
    bool has_status, trace_over;
    bool has_answer; /* to SUSPEND or RESUME */
    struct flow_entry answer;
    struct fault refusal;
    const struct flow_trace_sink *sink; /* NULL: no trace is requested */
};

static void watch_take_trace(const struct flow_watch *watch, const struct flow_entry *entry, struct str tail)
{
    for (size_t i = 0; i < trace_count(tail); i++) {
        struct trace_record record;
        int64_t day_ns = (int64_t)entry->args[0];
        if (!trace_at(tail, i, &record) ||
            __builtin_add_overflow(record.begin_ns, day_ns, &record.begin_ns) ||
            __builtin_add_overflow(record.end_ns, day_ns, &record.end_ns))
            continue;
        watch->sink->record(watch->sink->context, entry->node, &record);
    }
}

static bool watch_took(void *context, const struct flow_entry *entry, struct str tail)
{
    struct flow_watch *watch = context;
    if (entry->kind == ENTRY_WELCOME) {
        watch->welcome = true;
        watch->denied = (entry->flags & ENTRY_IS_FAILED) != 0;
    } else if (entry->kind == ENTRY_STATUS) {
        buf_clear(&watch->status);
        buf_add_str(&watch->status, tail);
        watch->has_status = true;
    } else if (entry->kind == ENTRY_SUSPEND || entry->kind == ENTRY_RESUME) {
        watch->has_answer = true;
        watch->answer = *entry;
        if (entry->flags & ENTRY_IS_FAILED)
            fault_decode(tail, &watch->refusal);
    } else if (watch->sink && entry->kind == ENTRY_HOST && !(entry->flags & ENTRY_IS_DOWN)) {
        watch->sink->host(watch->sink->context, entry->node, tail);
    } else if (watch->sink && entry->kind == ENTRY_NAME) {
        watch->sink->name(watch->sink->context, entry->client, entry->handle, tail);
    } else if (watch->sink && entry->kind == ENTRY_TRACE) {
        watch_take_trace(watch, entry, tail);
        watch->trace_over = (entry->flags & ENTRY_IS_DOWN) != 0;
    }
    return true;
}

/* Reads and writes until *done. Returns ERROR_TIMEOUT if the time has expired or stop_fd is readable
 * before. */
static int watch_until(struct flow_watch *watch, const bool *done, int64_t until_ns, int stop_fd,
                       struct error *error)
{
    while (!*done) {
        struct pollfd polled[2] = {{.fd = watch->wire->fd, .events = POLLIN},
                                   {.fd = stop_fd, .events = POLLIN}};
        int rc = flow_wire_flush(watch->wire);
        if (rc > 0 && !watch->wire->ops->is_ready) /* a ring becomes readable also when it has space again */
            polled[0].events |= POLLOUT;
        int64_t left_ns = until_ns == INT64_MAX ? INT64_MAX : until_ns - flow_now_ns();
        if (rc >= 0 && left_ns <= 0)
            return error_set(error, ERROR_TIMEOUT, "the head at %s does not answer", watch->address);
        int timeout_ms = left_ns < NS_PER_SECOND ? (int)(left_ns / NS_PER_MS) + 1 : 1000;
        if (rc >= 0 && poll(polled, 2, timeout_ms) < 0 && errno != EINTR)
            return error_set_errno(error, errno, "waiting for the head at %s", watch->address);
        if (rc >= 0)
            rc = flow_wire_read(watch->wire, watch_took, watch, NULL);
        if (rc < 0 && !*done)
            return error_set(error, ERROR_UNAVAILABLE, "the head at %s is gone, or has no room for a watcher",
                             watch->address);
        if (!*done && polled[1].revents)
            return error_set(error, ERROR_TIMEOUT, "stopped");
    }
    return 0;
}

int flow_watch_open(const char *address, const char *token_file, struct flow_watch **ret_watch,
                    struct error *error)
{
    struct flow_token token = {0};
    struct wire *wire;
    int rc = flow_token_find(token_file, address, &token, error);
    if (rc == 0)
        rc = flow_wire_connect(address, &wire, error);
    if (rc < 0)
        return rc;
    struct flow_watch *watch = mem_alloc(sizeof *watch);
    watch->wire = wire;
    struct str name = str_head_utf8(str_from(address), sizeof watch->address - 1);
    mem_copy(watch->address, name.data, name.len);
    struct flow_entry hello = {.kind = ENTRY_HELLO_WATCH};
    struct buf tail BUF_CLEANUP = {0};
    flow_token_sign(&token, &hello, &tail);
    flow_wire_put(wire, &hello, buf_str(&tail), NULL);
    rc = watch_until(watch, &watch->welcome, flow_now_ns() + WATCH_REST_NS, -1, error);
    if (rc == 0 && watch->denied)
        rc = error_set(error, ERROR_DENIED, "the head at %s refuses the token%s", address,
                       token.set ? "" : ", and there is none here: give --token-file");
    if (rc < 0) {
        flow_watch_close(watch);
        return rc;
    }
    *ret_watch = watch;
    return 0;
}

void flow_watch_close(struct flow_watch *watch)
{
    if (!watch)
        return;
    flow_wire_free(watch->wire);
    buf_done(&watch->status);
    mem_free(watch);
}

int flow_watch_status(struct flow_watch *watch, int stop_fd, struct flow_status *ret_status,
                      struct error *error)
{
    watch->has_status = false;
    flow_wire_put(watch->wire, &(struct flow_entry){.kind = ENTRY_STATUS}, (struct str){0}, NULL);
    int rc = watch_until(watch, &watch->has_status, INT64_MAX, stop_fd, error);
    return rc < 0 ? rc : flow_status_decode(buf_str(&watch->status), ret_status, error);
}

static int watch_ask(struct flow_watch *watch, const struct flow_entry *entry, const char *name, int stop_fd,
                     struct flow_suspension *ret, struct error *error)
{
    watch->has_answer = false;
    flow_wire_put(watch->wire, entry, str_from(name), NULL);
    int rc = watch_until(watch, &watch->has_answer, INT64_MAX, stop_fd, error);
    if (rc < 0)
        return rc;
    if (watch->answer.flags & ENTRY_IS_FAILED)
        return error_set(error, ERROR_CONFLICT, "%s: %s", name, watch->refusal.text);
    *ret = (struct flow_suspension){watch->answer.count, watch->answer.args[0]};
    return 0;
}

int flow_watch_suspend(struct flow_watch *watch, const char *name, int64_t time_ns, int stop_fd,
                       struct flow_suspension *ret, struct error *error)
{
    struct flow_entry entry = {.kind = ENTRY_SUSPEND, .args = {(uint64_t)time_ns}};
    return watch_ask(watch, &entry, name, stop_fd, ret, error);
}

int flow_watch_resume(struct flow_watch *watch, const char *name, struct flow_suspension *ret,
                      struct error *error)
{
    struct flow_entry entry = {.kind = ENTRY_RESUME};
    return watch_ask(watch, &entry, name, -1, ret, error);
}

static void watch_ask_trace(struct flow_watch *watch, bool begins)
{
    struct flow_entry entry = {.kind = ENTRY_TRACE, .count = begins};
    watch->trace_over = false;
    flow_wire_put(watch->wire, &entry, (struct str){0}, NULL);
}

int flow_watch_trace(struct flow_watch *watch, int64_t time_ns, int stop_fd,
                     const struct flow_trace_sink *sink, struct error *error)
{
    int64_t now_ns = flow_now_ns(), until_ns = time_ns < INT64_MAX - now_ns ? now_ns + time_ns : INT64_MAX;
    watch->sink = sink;
    watch_ask_trace(watch, true);
    int rc = watch_until(watch, &watch->trace_over, until_ns, stop_fd, error);
    if (rc == ERROR_TIMEOUT) { /* the expected end: only time and stop_fd end the trace */
        watch_ask_trace(watch, false);
        rc = watch_until(watch, &watch->trace_over, flow_now_ns() + WATCH_REST_NS, -1, error);
        rc = rc == ERROR_TIMEOUT ? 0 : rc; /* hosts that do not answer are left out */
    }
    watch->sink = NULL;
    return rc;
}
