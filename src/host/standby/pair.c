/* pair.c - a client of a controller that does not lead, and its way: forwards each of its requests.
 *
 * A client keeps its connection while leaders change: between two requests the way to the old leader is
 * closed and one to the new leader is opened. While nobody leads, a request is held. A write of one object is
 * sent to the next leader if the current one disappears before its answer begins (again.h). Any other request
 * that was sent, in part or as a whole, is never sent again: the client's connection is closed, as the leader
 * would have closed it. Bytes that are not an HTTP/1.1 request are passed both ways until one side ends, and
 * so is TLS that ends at the leader (PAIR_BYTES).
 *
 * For a client whose TLS ends here (PAIR_SECURE), the head of each request names the client to the leader
 * (forwarded.h). Only bytes that were parsed here as a request, with such a head, may reach the leader; bytes
 * that cannot be parsed are answered with an error.
 *
 * Reads (rule.h) go to the standby's own API once its state is new enough for them, and cost the leader
 * nothing. A read that the local API does not answer, for whatever reason, is forwarded to the leader. A
 * client that already has a way to the leader uses it for reads too.
 *
 *   PAIR_HEAD ─ head complete ──► PAIR_HELD ─ the leader takes the connection ─► PAIR_ASKED
 *     ▲ │                                                                          │   │
 *     │ └─ no request ──────────────────────► PAIR_RAW ◄──────────── 101 ──────────┘   │
 *     └────────────────────────────── the answer was sent ─────────────────────────────┘
 */
#include "host/standby/way.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "host/api/forwarded.h"
#include "host/standby/again.h"

enum {
    /* memory for all writes that may be sent again; beyond it, writes are not kept */
    KEPT_BYTES_MAX = 64 << 20,
    AHEAD_BYTES = 64 << 10, /* bytes that are read ahead from a client */
    IDLE_MS = 120 * 1000,   /* limit of a client without a request; otherwise the leader's limits apply */
    WAY_IDLE_MS = 60 * 1000,
    HEAD_MS = 20 * 1000,   /* limit of a head */
    HELD_MS = 30 * 1000,   /* a request that no leader has taken by then is answered with 503 */
    UNREAD_MS = 60 * 1000, /* limit of a client that does not read what was sent to it */
    AGAIN_MS = 1000,       /* wait for the answer of a write whose leader was replaced */
    READ_MS = 3000,        /* a read whose version has not arrived by then goes to the leader */
    LEAVE_HELD_MS = 3000,  /* leaving: a request that no leader has taken by then is answered with 503 */
};

struct pair_write {
    uv_write_t request;
    struct pair *pair;
    struct buf bytes;
};

static void way_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf);
static void client_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf);

/* --- the end ------------------------------------------------------------------------------------------ */

/* Drops the kept bytes: the request will not be sent again, because its answer has begun or its client has
 * left. */
static void pair_forget(struct pair *pair)
{
    CHECK(pair->all->kept_bytes >= pair->kept_bytes);
    pair->all->kept_bytes -= pair->kept_bytes;
    pair->kept_bytes = 0;
    pair->keeps = false;
    buf_done(&pair->asked);
}

static void pair_free(struct pair *pair)
{
    struct pairs *all = pair->all;
    pair_forget(pair);
    all->count--;
    list_remove(&pair->node);
    if (pair->place != PAIR_NO_PLACE)
        all->left(all->context, pair->place);
    bounds_answer_done(&pair->answer);
    buf_done(&pair->in);
    api_tls_chain_done(&pair->secure.chain);
    mem_free(pair);
}

void pair_handle_closed(uv_handle_t *handle)
{
    struct pair *pair = handle->data;
    if (--pair->open == 0)
        pair_free(pair);
}

void pair_close(struct pair *pair)
{
    if (pair->closing)
        return;
    pair->closing = true;
    uv_close((uv_handle_t *)&pair->client, pair_handle_closed);
    if (way_hang_up(pair))
        return;
    if (pair->way == WAY_BEGUN || pair->way == WAY_OPEN)
        uv_close((uv_handle_t *)&pair->leader, pair_handle_closed);
}

/* --- passing bytes ------------------------------------------------------------------------------------ */

static void pair_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    const struct pair *pair = handle->data;
    *buf = uv_buf_init(pair->all->room, PAIR_READ_BYTES);
}

static void pair_answered(struct pair *pair);

static void on_written(uv_write_t *request, int status)
{
    struct pair_write *write = request->data;
    struct pair *pair = write->pair;
    bool to_client = request->handle == (uv_stream_t *)&pair->client;
    buf_done(&write->bytes);
    mem_free(write);
    if (pair->closing || (!to_client && pair->way != WAY_OPEN))
        return;
    if (to_client)
        pair->to_client = false;
    else
        pair->to_leader = false;
    if (status < 0 && !to_client && pair->state == PAIR_ASKED) {
        /* the leader may have answered before it closed: continue to read its answer */
        pair->to_leader = true;
        return;
    }
    if (status < 0) {
        pair_close(pair);
        return;
    }
    pair->since_ms = uv_now(pair->all->loop);
    if (to_client && pair->state == PAIR_ASKED && bounds_answer_complete(&pair->answer))
        pair_answered(pair);
    else
        pair_go_on(pair);
}

/* Writes `bytes`, and empties them. */
static void pair_write(struct pair *pair, uv_tcp_t *to, struct buf *bytes)
{
    struct pair_write *write = mem_alloc(sizeof *write);
    *write = (struct pair_write){.pair = pair, .bytes = *bytes};
    *bytes = (struct buf){0};
    write->request.data = write;
    uv_buf_t out = uv_buf_init(write->bytes.data, (unsigned)write->bytes.len);
    pair->since_ms = uv_now(pair->all->loop); /* pair_tick() measures how long the write takes */
    if (to == &pair->client)
        pair->to_client = true;
    else
        pair->to_leader = true;
    if (uv_write(&write->request, (uv_stream_t *)to, &out, 1, on_written) < 0) {
        buf_done(&write->bytes);
        mem_free(write);
        pair_close(pair);
    }
}

/* Keeps the first `len` bytes from the client while the request may be sent again: a read here, or a kept
 * write. */
static void pair_keep(struct pair *pair, size_t len)
{
    if (!pair->here && !pair->keeps)
        return;
    buf_add(&pair->asked, pair->in.data, len);
    CHECK(pair->asked.len <= AGAIN_BYTES_MAX);
}

/* Sends the first `len` bytes from the client to the leader. */
static void pair_pass(struct pair *pair, size_t len)
{
    struct buf out = {0};
    if (len == pair->in.len) {
        out = pair->in;
        pair->in = (struct buf){0};
    } else {
        buf_add(&out, pair->in.data, len);
        buf_drop_front(&pair->in, len);
    }
    pair_write(pair, &pair->leader, &out);
}

static void pair_enter(struct pair *pair, enum pair_state state)
{
    pair->state = state;
    pair->since_ms = uv_now(pair->all->loop);
}

/* Answers the request here, and closes the connection afterwards. */
static void pair_refuse(struct pair *pair, const char *status, struct str text)
{
    struct buf out = {0};
    buf_printf(&out,
               "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n%s"
               "Content-Length: %zu\r\nConnection: close\r\n\r\n" STR_FORMAT,
               status, status[0] == '5' ? "Retry-After: 1\r\n" : "", text.len, STR_ARG(text));
    way_close(pair);
    pair_enter(pair, PAIR_ASKED);
    bounds_answer_begin(&pair->answer, &pair->request);
    pair->answer.closes = true;
    pair->answer.reply.state = HTTP_COMPLETE;
    pair_write(pair, &pair->client, &out);
}

void pair_refuse_untaken(struct pair *pair, const char *why)
{
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "%s: %s\n", why,
               pair->first_ms ? "whether the write was done is not known" : "nothing was done");
    pair_refuse(pair, pair->first_ms ? "504 Gateway Timeout" : "503 Service Unavailable", buf_str(&text));
}

/* --- the way to the leader ---------------------------------------------------------------------------- */

static bool pair_waits(const struct pair *pair)
{
    return pair->state == PAIR_HELD || (pair->state == PAIR_RAW && pair->way != WAY_OPEN);
}

/* Handles bytes from the leader that no request asked for: after the end of an answer, or without a
 * request. */
static void way_is_wrong(struct pair *pair)
{
    if (pair->state == PAIR_ASKED)
        pair->stale = true; /* closed when the current answer was sent */
    else
        way_close(pair);
}

/* Handles an answer 421: the leader does not accept us as a controller, and the request had no effect.
 * Returns whether the client was answered. */
static bool pair_is_misdirected(struct pair *pair)
{
    if (pair->kind != PAIR_SECURE || pair->here || pair->to_client || pair->answer.reply.code != 421)
        return false;
    if (!pair->stale)
        secure_refuse(pair->all->secure);
    pair->first_ms = pair->again ? pair->first_ms : 0;
    bounds_answer_done(&pair->answer);
    pair_refuse_untaken(pair, "the leader takes no requests from this controller");
    return true;
}

static void way_take(struct pair *pair, struct str bytes)
{
    struct buf out = {0};
    size_t used = 0;
    if (pair->state == PAIR_RAW) {
        buf_add_str(&out, bytes);
        pair_write(pair, &pair->client, &out);
        return;
    }
    if (pair->state != PAIR_ASKED || bounds_answer_complete(&pair->answer)) {
        way_is_wrong(pair);
        return;
    }
    pair_forget(pair);
    bool closes = pair->all->leaving || pair->client_ended;
    if (bounds_answer_take(&pair->answer, bytes, closes, &out, &used) < 0) {
        buf_done(&out);
        pair_close(pair);
        return;
    }
    if (pair_is_misdirected(pair)) {
        buf_done(&out);
        return;
    }
    if (bounds_answer_switched(&pair->answer))
        buf_add(&out, bytes.data + used, bytes.len - used);
    else if (used < bytes.len)
        way_is_wrong(pair);
    if (out.len)
        pair_write(pair, &pair->client, &out);
    else
        pair_go_on(pair);
}

/* Sends a read that waits for a newer state to the leader. */
static void read_elsewhere(struct pair *pair)
{
    CHECK(pair->state == PAIR_HELD && pair->here);
    pair->rule.here = false;
    way_close(pair);
}

/* Puts a request without an answer back at the front of `in`, to be sent by another way. */
static void take_back(struct pair *pair)
{
    bounds_answer_done(&pair->answer);
    buf_add_str(&pair->asked, buf_str(&pair->in));
    buf_done(&pair->in);
    pair->in = pair->asked;
    pair->asked = (struct buf){0};
    way_close(pair);
}

/* Sends a read that the local API has not answered to the leader. */
static void read_again(struct pair *pair)
{
    pair->rule.here = false;
    pair->state = PAIR_HELD;
    take_back(pair);
}

/* Sends a write that its leader has not answered to the next leader, whether or not it was applied. */
static void write_again(struct pair *pair)
{
    CHECK(pair->state == PAIR_ASKED && pair->keeps && pair->first_ms > 0);
    pair->scanned = 0;
    pair->state = PAIR_HEAD; /* its head is parsed again */
    take_back(pair);
}

/* The leader has ended the connection. */
static void way_ended(struct pair *pair, bool broken)
{
    struct buf out = {0};
    struct error error;
    if (pair->state == PAIR_HEAD || pair->state == PAIR_HELD) {
        way_close(pair);
        return;
    }
    if (pair->asked.len > 0) { /* nothing of its answer has arrived */
        if (pair->keeps)
            write_again(pair);
        else
            read_again(pair);
        return;
    }
    bool whole = pair->state == PAIR_ASKED && !broken && pair->answer.passed &&
                 http_reply_closed(&pair->answer.reply, &error) == 0;
    if (!whole && pair->state == PAIR_ASKED && !pair->to_client)
        whole = bounds_answer_end_watch(&pair->answer, &out);
    if (!whole) {
        pair_close(pair);
        return;
    }
    pair->stale = true;
    if (out.len)
        pair_write(pair, &pair->client, &out);
    else if (!pair->to_client)
        pair_answered(pair);
}

static void way_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct pair *pair = stream->data;
    if (count == 0 || pair->closing || pair->way != WAY_OPEN)
        return;
    uv_read_stop(stream);
    pair->reads_leader = false;
    if (count < 0)
        way_ended(pair, count != UV_EOF);
    else
        way_take(pair, (struct str){buf->base, (size_t)count});
}

/* --- the client --------------------------------------------------------------------------------------- */

/* Ends a request whose answer was sent: the next one may begin. */
static void pair_answered(struct pair *pair)
{
    bool switched = bounds_answer_switched(&pair->answer);
    bool ends = !switched && (pair->answer.closes || !pair->request.whole || pair->client_ended);
    bool keeps_way = pair->answer.reply.keep_alive && !pair->stale;
    bounds_answer_done(&pair->answer);
    if (ends) {
        pair_close(pair);
        return;
    }
    pair->state = switched ? PAIR_RAW : PAIR_HEAD;
    pair->scanned = 0;
    pair->first_ms = 0;
    if (!switched && !keeps_way)
        way_close(pair);
    pair_go_on(pair);
}

static void on_shut(uv_shutdown_t *request, int status)
{
    mem_free(request);
}

/* The client sends no more: shuts down the way after the bytes that were passed on. */
static void client_end(struct pair *pair)
{
    bool may_wait = pair->state == PAIR_RAW || (pair->state == PAIR_ASKED && pair->request.whole);
    pair->client_ended = true;
    if (pair->state == PAIR_HELD && pair->rule.here)
        return; /* a read that waits for a newer state */
    if (!may_wait || pair->way != WAY_OPEN) {
        pair_close(pair);
        return;
    }
    if (pair->kind == PAIR_SECURE && !pair->here) { /* a relay would end both directions */
        if (pair->state == PAIR_RAW)
            pair_close(pair);
        return;
    }
    uv_shutdown_t *request = mem_alloc(sizeof *request);
    if (uv_shutdown(request, (uv_stream_t *)&pair->leader, on_shut) < 0) {
        mem_free(request);
        pair_close(pair);
    }
}

static void client_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct pair *pair = stream->data;
    if (count == 0 || pair->closing)
        return;
    uv_read_stop(stream);
    pair->reads_client = false;
    if (count < 0 && count != UV_EOF) {
        pair_close(pair);
    } else if (count < 0) {
        client_end(pair);
    } else {
        if (pair->state == PAIR_HEAD && pair->in.len == 0)
            pair->since_ms = uv_now(pair->all->loop);
        buf_add(&pair->in, buf->base, (size_t)count);
        pair_go_on(pair);
    }
}

/* Keeps the write at the front of `in`, and gives it a key unless it has one. */
static void pair_begin_keeping(struct pair *pair)
{
    struct pairs *all = pair->all;
    size_t bytes = pair->head_len + AGAIN_KEY_MAX + (size_t)all->head.content_length;
    if (pair->kept_bytes == 0 && all->kept_bytes + bytes > KEPT_BYTES_MAX)
        return;
    all->kept_bytes += bytes - pair->kept_bytes;
    pair->kept_bytes = bytes;
    pair->keeps = true;
    struct buf named = {0};
    char key[AGAIN_KEY_MAX];
    snprintf(key, sizeof key, "forwarded-%016" PRIx64 "-%" PRIu64, all->key, ++all->keys);
    again_name(&named, &all->head, (struct str){pair->in.data, pair->head_len}, key);
    size_t head_len = named.len;
    buf_add(&named, pair->in.data + pair->head_len, pair->in.len - pair->head_len);
    buf_done(&pair->in);
    pair->in = named;
    pair->head_len = head_len;
}

/* Handles bytes that are not a request which can be read here: passes them on, or answers an error. */
static void pair_refuse_form(struct pair *pair, int code)
{
    if (pair->kind != PAIR_SECURE) {
        pair_enter(pair, PAIR_RAW);
        return;
    }
    pair->request = (struct request_bounds){0};
    pair_refuse(pair,
                code == 414   ? "414 URI Too Long"
                : code == 431 ? "431 Request Header Fields Too Large"
                : code == 501 ? "501 Not Implemented"
                : code == 505 ? "505 HTTP Version Not Supported"
                              : "400 Bad Request",
                STR("the request cannot be read: nothing was done\n"));
}

/* Parses the head of the next request, if it is complete. */
static void pair_look(struct pair *pair)
{
    if (pair->in.len == pair->scanned)
        return;
    int rc = bounds_request_begin(buf_str(&pair->in), pair->scanned, &pair->all->head, &pair->request,
                                  &pair->head_len);
    pair->scanned = rc == 0 ? pair->in.len : 0;
    if (rc < 0)
        pair_refuse_form(pair, -rc);
    if (rc > 0 && pair->secure.forwards && !pair->trusted)
        pair_refuse(pair, "421 Misdirected Request",
                    STR("the certificate of this connection is no controller's\n"));
    if (rc <= 0 || pair->state != PAIR_HEAD)
        return;
    pair_enter(pair, PAIR_HELD);
    bool by_leader = pair->way != WAY_NONE && !pair->here;
    pair->looked = false;
    pair->rule = rule_of(&pair->all->head);
    pair->rule.here &= pair->all->reads.connect && !by_leader;
    if ((pair->all->repeats || pair->first_ms > 0) && again_may(&pair->all->head))
        pair_begin_keeping(pair);
    if (pair->here && !pair->rule.here)
        way_close(pair);
}

/* Returns whether the state is new enough for the read. If not, requests a refresh. */
static bool may_read(const struct pair *pair)
{
    const struct forward_reads *reads = &pair->all->reads;
    if (pair->looked || (!pair->rule.newest && reads->version(reads->context) >= pair->rule.version))
        return true;
    reads->look(reads->context);
    return false;
}

/* Returns whether we must name the client in the head. A request that a controller forwards to us names it
 * already. */
static bool pair_vouches(const struct pair *pair)
{
    return pair->kind == PAIR_SECURE && !pair->here && !pair->trusted;
}

/* Sends a head with the lines to add, and `body` bytes of its body. `again`: the write was sent before. */
static void pair_pass_head(struct pair *pair, size_t len, size_t body, bool again)
{
    struct str head = {pair->in.data, len};
    struct buf marked BUF_CLEANUP = {0}, out = {0};
    if (again) {
        again_mark(&marked, head, uv_now(pair->all->loop) - pair->first_ms);
        head = buf_str(&marked);
    }
    if (pair_vouches(pair))
        forwarded_put(&out, head, &pair->secure.chain, &pair->secure.address);
    else
        buf_add_str(&out, head);
    buf_add(&out, pair->in.data + len, body);
    buf_drop_front(&pair->in, len + body);
    pair_write(pair, &pair->leader, &out);
}

/* Sends the head, and as much of the body as has arrived, over an open way. */
static void pair_ask(struct pair *pair)
{
    size_t len = pair->head_len, used = 0;
    bool readable = true;
    if (!pair->request.whole)
        readable =
            bounds_request_take(&pair->request, (struct str){pair->in.data + len, pair->in.len - len}, &used);
    if (!readable) { /* the leader answers what is wrong with it */
        pair_refuse_form(pair, 400);
        return;
    }
    bounds_answer_begin(&pair->answer, &pair->request);
    pair_enter(pair, PAIR_ASKED);
    pair_keep(pair, len + used);
    bool again = pair->keeps && pair->first_ms > 0;
    pair->again = again;
    if (!again)
        pair->first_ms = pair->keeps ? uv_now(pair->all->loop) : 0;
    if (again || pair_vouches(pair))
        pair_pass_head(pair, len, used, again);
    else
        pair_pass(pair, len + used);
}

/* Sends more of the request's body. */
static void pair_ask_more(struct pair *pair)
{
    size_t used = 0;
    if (!bounds_request_take(&pair->request, buf_str(&pair->in), &used)) {
        pair_close(pair);
        return;
    }
    pair_keep(pair, used);
    pair_pass(pair, used);
}

/* Ends the answer of a watch that is between two lines, so that its client asks another controller. */
void pair_end_watch(struct pair *pair)
{
    struct buf out = {0};
    if (pair->state != PAIR_ASKED || pair->to_client || pair->closing ||
        !bounds_answer_end_watch(&pair->answer, &out))
        return;
    pair->stale = true;
    pair_write(pair, &pair->client, &out);
}

static void pair_set_reading(struct pair *pair)
{
    bool client = !pair->client_ended && pair->in.len < AHEAD_BYTES;
    bool leader = pair->way == WAY_OPEN && !pair->to_client;
    if (client && !pair->reads_client)
        client = uv_read_start((uv_stream_t *)&pair->client, pair_room, client_read) == 0;
    else if (!client && pair->reads_client)
        uv_read_stop((uv_stream_t *)&pair->client);
    pair->reads_client = client;
    if (leader && !pair->reads_leader)
        leader = uv_read_start((uv_stream_t *)&pair->leader, pair_room, way_read) == 0;
    else if (!leader && pair->reads_leader)
        uv_read_stop((uv_stream_t *)&pair->leader);
    pair->reads_leader = leader;
}

void pair_go_on(struct pair *pair)
{
    if (pair->state == PAIR_HEAD && !pair->closing)
        pair_look(pair);
    if (pair->closing)
        return;
    if (pair_waits(pair) && !pair->refused)
        way_begin(pair);
    bool open = pair->way == WAY_OPEN && !pair->to_leader;
    if (pair->state == PAIR_HELD && open && (!pair->here || may_read(pair)))
        pair_ask(pair);
    else if (pair->state == PAIR_ASKED && open && !pair->request.whole && pair->in.len)
        pair_ask_more(pair);
    if (pair->state == PAIR_RAW && pair->way == WAY_OPEN && !pair->to_leader && pair->in.len)
        pair_pass(pair, pair->in.len);
    if (pair->all->leaving)
        pair_end_watch(pair);
    if (!pair->closing)
        pair_set_reading(pair);
}

struct pair *pair_begin(struct pairs *all, enum pair_kind kind, int fd, uint32_t place, struct str bytes,
                        const struct relay_client *tls)
{
    struct pair *pair = mem_alloc(sizeof *pair);
    pair->all = all;
    pair->kind = (uint8_t)kind;
    pair->state = kind == PAIR_BYTES ? PAIR_RAW : PAIR_HEAD;
    pair->place = PAIR_NO_PLACE;
    uv_tcp_init(all->loop, &pair->client);
    pair->client.data = pair;
    pair->open = 1;
    pair->since_ms = uv_now(all->loop);
    all->count++;
    list_append(&all->list, &pair->node);
    if (uv_tcp_open(&pair->client, fd) < 0) {
        pair_close(pair);
        return NULL;
    }
    pair->place = place;
    if (tls) {
        pair->secure = *tls;
        pair->secure.chain = api_tls_chain_copy(&tls->chain);
        pair->trusted = secure_trusts(all->secure, tls);
    }
    uv_tcp_nodelay(&pair->client, 1);
    buf_add_str(&pair->in, bytes);
    pair_go_on(pair);
    return pair;
}

struct pair *pairs_next(const struct pairs *all, const struct pair *pair)
{
    struct list_node *next = pair ? pair->node.next : all->list.next;
    return next == &all->list ? NULL : container_of(next, struct pair, node);
}

/* --- time --------------------------------------------------------------------------------------------- */

static bool pair_is_idle(const struct pair *pair)
{
    return pair->state == PAIR_HEAD && pair->in.len == 0;
}

/* Returns whether the pair has waited too long for its client, or for a way of bytes. */
static bool pair_is_overdue(const struct pair *pair, uint64_t spent_ms)
{
    if (pair->state == PAIR_HEAD && spent_ms >= (pair_is_idle(pair) ? IDLE_MS : HEAD_MS))
        return true;
    if (pair->to_client && spent_ms >= UNREAD_MS)
        return true;
    if (pair->client_ended && pair->state == PAIR_ASKED && spent_ms >= HEAD_MS)
        return true; /* a stream that is quiet would keep the pair */
    return pair->state == PAIR_RAW && pair->way != WAY_OPEN && spent_ms >= HELD_MS;
}

void pair_tick(struct pair *pair, uint64_t now_ms)
{
    uint64_t spent_ms = now_ms - pair->since_ms;
    if (pair->closing)
        return;
    pair->refused = false;
    if (pair->state == PAIR_HELD && spent_ms >= HELD_MS)
        pair_refuse_untaken(pair, "no controller leads");
    else if (pair->state == PAIR_ASKED && pair->stale && pair->keeps && spent_ms >= AGAIN_MS)
        write_again(pair);
    else if (pair->state == PAIR_HELD && pair->here && spent_ms >= READ_MS)
        read_elsewhere(pair);
    else if (pair_is_overdue(pair, spent_ms))
        pair_close(pair);
    else if (pair_is_idle(pair) && spent_ms >= WAY_IDLE_MS)
        way_close(pair);
    else if (pair_waits(pair))
        way_begin(pair);
}

void pair_leave(struct pair *pair, const struct pair_leaving *leaving)
{
    bool still = (pair->state == PAIR_RAW || pair_is_idle(pair)) &&
                 leaving->now_ms - pair->since_ms >= leaving->grace_ms;
    if (leaving->over || (leaving->graced && still))
        pair_close(pair);
    else if (pair->state == PAIR_HELD && leaving->spent_ms >= LEAVE_HELD_MS)
        pair_refuse_untaken(pair, "no controller leads");
}

/* --- changes ------------------------------------------------------------------------------------------ */

void pair_follow(struct pair *pair)
{
    if (pair->here)
        return;
    if (pair->state == PAIR_ASKED || (pair->state == PAIR_RAW && pair->way == WAY_OPEN))
        pair->stale = true;
    else if (!pair->closing)
        way_close(pair);
    if (!pair->closing && pair_waits(pair))
        way_begin(pair);
}

void pair_reads_over(struct pair *pair)
{
    if (!pair->here || pair->closing)
        return;
    if (pair->state == PAIR_ASKED)
        pair->stale = true;
    else if (pair->state == PAIR_HELD)
        read_elsewhere(pair);
    else
        way_close(pair);
}

void pair_looked(struct pair *pair, bool newest, uint64_t version)
{
    if (pair->closing || pair->state != PAIR_HELD || !pair->here || pair->way != WAY_OPEN)
        return;
    pair->looked = newest && version >= pair->rule.version;
    if (pair->looked)
        pair_go_on(pair);
    else if (!newest)
        read_elsewhere(pair);
}
