/* The HTTP server over real sockets: requests one behind the other and in pieces, answers at once, later and
 * in pieces, clients that go, stand still, or send more than was read. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/units.h"
#include "host/http/http.h"
#include "host/http/listener.h"
#include "host/patience.h"

/* --- an owner ------------------------------------------------------------------------------------------ */

enum { SLOW_CLIENTS = 4, SLOW_EACH = 3, SLOW = SLOW_CLIENTS * SLOW_EACH };
#define SLOW_NS (3 * NS_PER_MS) /* longer than a turn of the server may be */

/* "/now" is answered with its body, "/early" before the body, "/later" and "/stream" when the test says so,
 * "/up" by an upgrade, "/slow" with its body after a while in which the loop does nothing else. */
struct exchange {
    struct bed *bed;
    struct http_connection *connection;
    struct buf target, body;
};

struct bed {
    uv_loop_t loop;
    struct patience patience;
    struct http *http;
    struct listener *listener;
    uint16_t port;
    struct exchange *held;  /* the last one that was not answered at once */
    struct buf pieces;      /* of the stream */
    bool pieces_end, stays; /* `gone` is refused */
    bool releases;          /* an upgraded connection is given back at once */
    bool spreads;           /* the end of a request drops the one that is held, and flushes */
    int begun, ended, left, gone, upgraded_fd, pauses, pause_errno;
    struct buf upgraded;
    bool closed;
    uv_prepare_t prepare; /* other handles of the loop */
    uv_check_t check;
    int others;        /* times that one of them ran */
    int slow_at[SLOW]; /* `others` when a slow request was served */
    int slow;
};

static void say(struct exchange *exchange, int code, struct str text)
{
    struct buf body = {0};
    buf_add_str(&body, text);
    http_answer(exchange->connection, code, STR("Content-Type: text/plain\r\n"), &body);
}

static void *begins(void *context, struct http_connection *connection, const struct http_head *head)
{
    struct exchange *exchange = mem_alloc(sizeof *exchange);
    exchange->bed = context;
    exchange->connection = connection;
    exchange->bed->begun++;
    buf_add_str(&exchange->target, head->target);
    if (str_is(head->target, "/hold"))
        exchange->bed->held = exchange;
    if (str_is(head->target, "/early"))
        say(exchange, 413, STR("no"));
    return exchange;
}

static void body(void *request, struct str bytes)
{
    buf_add_str(&((struct exchange *)request)->body, bytes);
}

static int64_t read_piece(void *context, char *data, size_t max)
{
    struct bed *bed = context;
    size_t len = bed->pieces.len < max ? bed->pieces.len : max;
    if (len == 0)
        return bed->pieces_end ? -1 : 0;
    memcpy(data, bed->pieces.data, len);
    buf_drop_front(&bed->pieces, len);
    return (int64_t)len;
}

static void serve_slowly(struct bed *bed)
{
    uint64_t until_ns = uv_hrtime() + SLOW_NS;
    while (uv_hrtime() < until_ns)
        ;
    assert_true(bed->slow < SLOW);
    bed->slow_at[bed->slow++] = bed->others;
}

static void whole(void *request)
{
    struct exchange *exchange = request;
    struct str target = buf_str(&exchange->target);
    bool slow = str_is(target, "/slow"), at_once = slow || str_is(target, "/now");
    if (slow)
        serve_slowly(exchange->bed);
    if (at_once)
        say(exchange, 200, buf_str(&exchange->body));
    else if (str_is(target, "/stream"))
        http_stream(exchange->connection, 200, STR(""), (struct http_source){exchange->bed, read_piece});
    else if (str_is(target, "/up"))
        http_upgrade(exchange->connection, STR("Upgrade: echo\r\n"));
    if (!at_once)
        exchange->bed->held = exchange;
}

static bool gone(void *request)
{
    struct exchange *exchange = request;
    exchange->bed->gone++;
    return !exchange->bed->stays;
}

static void woken(void *request)
{
    say(request, 200, STR("at last"));
}

static void ended(void *request)
{
    struct exchange *exchange = request;
    exchange->bed->ended++;
    struct bed *bed = exchange->bed;
    if (bed->held == exchange)
        bed->held = NULL;
    if (bed->spreads && bed->held) {
        bed->spreads = false;
        http_drop(bed->held->connection);
        http_flush(bed->http);
    }
    buf_done(&exchange->target);
    buf_done(&exchange->body);
    mem_free(exchange);
}

static void left(void *context, void *peer)
{
    struct bed *bed = context;
    bed->left++;
    if (bed->listener)
        listener_left(bed->listener, 1);
}

static void upgraded(void *request, int fd, struct str first)
{
    struct exchange *exchange = request;
    exchange->bed->upgraded_fd = fd;
    buf_add_str(&exchange->bed->upgraded, first);
    if (exchange->bed->releases)
        http_release(exchange->connection);
}

static uint32_t taken(void *context, int fd, const struct sockaddr_storage *address, socklen_t len)
{
    http_take(((struct bed *)context)->http, fd, NULL);
    return 1;
}

static void paused(void *context, int errno_code)
{
    struct bed *bed = context;
    bed->pauses++;
    bed->pause_errno = errno_code;
}

/* --- the bed ------------------------------------------------------------------------------------------- */

static void bed_init_with(struct bed *bed, const int stages_s[HTTP_STAGES])
{
    *bed = (struct bed){.upgraded_fd = -1};
    const struct http_options options = {.context = bed,
                                         .begins = begins,
                                         .body = body,
                                         .whole = whole,
                                         .gone = gone,
                                         .woken = woken,
                                         .ended = ended,
                                         .left = left,
                                         .upgraded = upgraded,
                                         .head_bytes_max = 4096,
                                         .stages_s = {stages_s[0], stages_s[1], stages_s[2], stages_s[3]}};
    const struct listener_options listening = {
        .taken = taken, .paused = paused, .context = bed, .open_max = 100};
    struct error error;
    assert_int_equal(uv_loop_init(&bed->loop), 0);
    patience_init(&bed->patience, &bed->loop);
    assert_int_equal(http_new(&bed->loop, &options, &bed->http, &error), 0);
    assert_int_equal(
        listener_open_tcp(&bed->loop, "127.0.0.1", 0, &listening, &bed->listener, &bed->port, &error), 0);
}

static void bed_init(struct bed *bed, int seconds)
{
    bed_init_with(bed, (const int[HTTP_STAGES]){seconds, seconds, seconds, seconds});
}

static void on_closed(void *context)
{
    ((struct bed *)context)->closed = true;
}

static void bed_done(struct bed *bed)
{
    struct listener *listener = bed->listener;
    bed->listener = NULL;
    listener_close(listener, NULL, NULL);
    http_close(bed->http, on_closed, bed);
    PATIENT_UNTIL(&bed->patience, bed->closed);
    patience_done(&bed->patience);
    assert_int_equal(uv_run(&bed->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&bed->loop), 0);
    assert_int_equal(bed->begun, bed->ended);
    buf_done(&bed->pieces);
    buf_done(&bed->upgraded);
}

struct client {
    struct bed *bed;
    int fd;
    struct buf in;
    bool closed, reset;
};

static struct client client_new(struct bed *bed)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(bed->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct client client = {.bed = bed, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(client.fd >= 0);
    assert_int_equal(connect(client.fd, (struct sockaddr *)&address, sizeof address), 0);
    return client;
}

static void client_say(struct client *client, const char *text)
{
    assert_int_equal(send(client->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static bool client_has(struct client *client, const char *text)
{
    char chunk[4096];
    ssize_t len;
    while ((len = recv(client->fd, chunk, sizeof chunk, MSG_DONTWAIT)) > 0)
        buf_add(&client->in, chunk, (size_t)len);
    client->closed |= len == 0;
    client->reset |= len < 0 && errno == ECONNRESET;
    return text && client->in.data && strstr(client->in.data, text);
}

#define CLIENT_GETS(client, text) PATIENT_UNTIL(&(client)->bed->patience, client_has(client, text))
#define CLIENT_CLOSED(client)                                                                                \
    PATIENT_UNTIL(&(client)->bed->patience, (client_has(client, NULL), (client)->closed))

static void client_done(struct client *client)
{
    close(client->fd);
    buf_done(&client->in);
}

static int count_of(const struct client *client, const char *text)
{
    int count = 0;
    for (const char *at = client->in.data; at && (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

/* --- cases --------------------------------------------------------------------------------------------- */

#define GET(target)        "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define POST(target, text) "POST " target " HTTP/1.1\r\nHost: a\r\nContent-Length: " text

static void test_requests_behind_each_other(void **state)
{
    struct bed bed;
    bed_init(&bed, 60);
    struct client client = client_new(&bed);
    client_say(
        &client,
        POST("/now", "3\r\n\r\none") POST(
            "/now", "3\r\n\r\ntwo") "POST /now HTTP/1.1\r\nHost: a\r\n"
                                    "Transfer-Encoding: chunked\r\n\r\n2\r\nth\r\n3\r\nree\r\n0\r\n\r\n" GET(
                                        "/later"));
    CLIENT_GETS(&client, "three");
    assert_true(strstr(client.in.data, "\r\n\r\none") < strstr(client.in.data, "\r\n\r\ntwo"));
    assert_int_equal(count_of(&client, "HTTP/1.1 200 OK\r\nDate: "), 3);
    PATIENT_UNTIL(&bed.patience, bed.held);
    client_say(&client, POST("/now", "4\r\n\r\nlast")); /* waits for its turn */
    http_wake(bed.held->connection);
    CLIENT_GETS(&client, "\r\n\r\nlast");
    assert_true(strstr(client.in.data, "at last") < strstr(client.in.data, "\r\n\r\nlast"));
    assert_int_equal(bed.ended, 5);
    client_done(&client);
    PATIENT_UNTIL(&bed.patience, bed.left == 1);
    bed_done(&bed);
}

static void test_a_byte_at_a_time(void **state)
{
    static const char text[] = POST("/now", "5\r\nExpect: 100-continue\r\n\r\n");
    struct bed bed;
    bed_init(&bed, 60);
    struct client client = client_new(&bed);
    for (size_t i = 0; text[i]; i++) {
        client_say(&client, (char[]){text[i], 0});
        uv_run(&bed.loop, UV_RUN_NOWAIT);
    }
    CLIENT_GETS(&client, "HTTP/1.1 100 Continue\r\n\r\n");
    client_say(&client, "he");
    uv_run(&bed.loop, UV_RUN_NOWAIT);
    client_say(&client, "llo" GET("/now"));
    CLIENT_GETS(&client, "hello");
    PATIENT_UNTIL(&bed.patience, bed.ended == 2);
    client_done(&client);
    bed_done(&bed);
}

static void test_heads_and_versions(void **state)
{
    struct bed bed;
    bed_init(&bed, 60);
    struct client head = client_new(&bed), old = client_new(&bed), bad = client_new(&bed);
    client_say(&head, "HEAD /now HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody" GET("/early"));
    CLIENT_GETS(&head, "413 Content Too Large");
    assert_non_null(strstr(head.in.data, "Content-Length: 4\r\n\r\nHTTP/1.1 413")); /* and no body */
    buf_add_str(&bed.pieces, STR("plain"));
    bed.pieces_end = true;
    client_say(&old, "GET /stream HTTP/1.0\r\n\r\n");
    CLIENT_CLOSED(&old);
    assert_non_null(strstr(old.in.data, "Connection: close\r\n\r\nplain"));
    client_say(&bad, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    CLIENT_CLOSED(&bad);
    assert_non_null(strstr(bad.in.data, "HTTP/1.1 400 Bad Request"));
    client_done(&head);
    client_done(&old);
    client_done(&bad);
    bed_done(&bed);
}

static void test_stream(void **state)
{
    struct bed bed;
    bed_init(&bed, 60);
    struct client client = client_new(&bed);
    client_say(&client, GET("/stream"));
    CLIENT_GETS(&client, "Transfer-Encoding: chunked\r\n\r\n"); /* before there is anything to say */
    buf_add_str(&bed.pieces, STR("first"));
    http_wake(bed.held->connection);
    CLIENT_GETS(&client, "00005\r\nfirst\r\n");
    for (int i = 0; i < 1000000; i++)
        buf_add_str(&bed.pieces, STR("0123456789"));
    http_wake(bed.held->connection);
    bed.pieces_end = true;
    CLIENT_GETS(&client, "0\r\n\r\n");
    assert_true(client.in.len > 10 * 1000 * 1000);
    assert_int_equal(bed.ended, 1);
    client_say(&client, GET("/now")); /* the connection goes on */
    CLIENT_GETS(&client, "Content-Length: 0");
    client_done(&client);
    bed_done(&bed);
}

/* A client that hangs up ends the request it waits for, and its stream, unless the owner still needs it. */
static void test_clients_that_go(void **state)
{
    struct bed bed;
    bed_init(&bed, 60);
    struct client waits = client_new(&bed), streams = client_new(&bed);
    client_say(&waits, GET("/later"));
    PATIENT_UNTIL(&bed.patience, bed.held);
    client_done(&waits);
    PATIENT_UNTIL(&bed.patience, bed.left == 1);
    assert_int_equal(bed.gone, 1);
    client_say(&streams, GET("/stream"));
    CLIENT_GETS(&streams, "chunked");
    client_done(&streams);
    PATIENT_UNTIL(&bed.patience, bed.left == 2);
    bed.stays = true;
    struct client writes = client_new(&bed);
    client_say(&writes, GET("/later"));
    PATIENT_UNTIL(&bed.patience, bed.held);
    client_done(&writes);
    PATIENT_UNTIL(&bed.patience, bed.gone >= 2);
    assert_int_equal(bed.left, 2);
    http_wake(bed.held->connection);
    PATIENT_UNTIL(&bed.patience, bed.left == 3);
    bed_done(&bed);
}

static void test_upgrade(void **state)
{
    struct bed bed;
    bed_init(&bed, 60);
    struct client client = client_new(&bed);
    client_say(&client, GET("/up") "first");
    PATIENT_UNTIL(&bed.patience, bed.upgraded_fd >= 0);
    assert_string_equal(bed.upgraded.data, "first");
    assert_int_equal(send(bed.upgraded_fd, "echo", 4, MSG_NOSIGNAL), 4);
    CLIENT_GETS(&client, "Connection: Upgrade\r\n\r\necho");
    http_release(bed.held->connection);
    CLIENT_CLOSED(&client);
    client_done(&client);
    bed_done(&bed);
}

/* Whatever a client sends behind an early answer, the answer arrives, and no reset overtakes it. */
static void test_early_answers_arrive(void **state)
{
    struct bed bed;
    bed_init(&bed, 60);
    struct client client = client_new(&bed);
    client_say(&client, POST("/early", "1000000\r\n\r\n"));
    CLIENT_GETS(&client, "\r\n\r\nno");
    for (int i = 0; i < 50; i++) { /* the rest of it, long after the answer */
        client_say(&client, "more of the same request");
        uv_run(&bed.loop, UV_RUN_NOWAIT);
    }
    CLIENT_CLOSED(&client);
    assert_false(client.reset);
    assert_int_equal(bed.left, 0); /* what comes is still read */
    client_done(&client);
    PATIENT_UNTIL(&bed.patience, bed.left == 1);
    bed_done(&bed);
}

/* Half a head, half a body, an answer that is not taken, silence: each ends when its time is over. */
static void test_slow_clients(void **state)
{
    struct bed bed;
    bed_init(&bed, 1);
    struct client quiet = client_new(&bed), head = client_new(&bed), half = client_new(&bed),
                  deaf = client_new(&bed);
    struct client later = client_new(&bed);
    client_say(&later, GET("/later")); /* has no limit */
    PATIENT_UNTIL(&bed.patience, bed.held);
    struct http_connection *waits = bed.held->connection;
    for (int i = 0; i < 2000000; i++)
        buf_add_str(&bed.pieces, STR("0123456789"));
    client_say(&head, "GET / HT");
    client_say(&half, POST("/now", "10\r\n\r\nhalf"));
    client_say(&deaf, GET("/stream"));
    PATIENT_UNTIL(&bed.patience, bed.left == 4);
    CLIENT_CLOSED(&quiet);
    CLIENT_CLOSED(&head);
    CLIENT_CLOSED(&half);
    http_wake(waits);
    CLIENT_GETS(&later, "at last");
    client_done(&quiet);
    client_done(&head);
    client_done(&half);
    client_done(&deaf);
    client_done(&later);
    bed_done(&bed);
}

/* Half a head behind a whole request has the time of a head, not that of silence. */
static void test_slow_head_behind_a_request(void **state)
{
    struct bed bed;
    bed_init_with(&bed, (const int[HTTP_STAGES]){3600, 1, 3600, 3600});
    struct client client = client_new(&bed);
    client_say(&client, GET("/now") "GET / HT");
    CLIENT_CLOSED(&client);
    assert_int_equal(count_of(&client, "200 OK"), 1);
    client_done(&client);
    bed_done(&bed);
}

/* An owner that gives the socket back from inside of its hook ends the connection. */
static void test_release_at_once(void **state)
{
    struct bed bed;
    bed_init(&bed, 60);
    bed.releases = true;
    struct client client = client_new(&bed);
    client_say(&client, GET("/up"));
    CLIENT_CLOSED(&client);
    PATIENT_UNTIL(&bed.patience, bed.left == 1);
    client_done(&client);
    bed_done(&bed);
}

/* The time of one connection is over, and the hook ends the next one, whose time is over too. */
static void test_an_end_that_ends_others(void **state)
{
    struct bed bed;
    bed_init(&bed, 1);
    struct client first = client_new(&bed), second = client_new(&bed);
    client_say(&first, POST("/now", "9\r\n\r\nhalf"));
    PATIENT_UNTIL(&bed.patience, bed.begun == 1);
    client_say(&second, POST("/hold", "9\r\n\r\nhalf"));
    PATIENT_UNTIL(&bed.patience, bed.held);
    bed.spreads = true;
    CLIENT_CLOSED(&first);
    CLIENT_CLOSED(&second);
    assert_int_equal(bed.ended, 2);
    client_done(&first);
    client_done(&second);
    bed_done(&bed);
}

/* A child that has not come to exec still holds the socket: what arrives there is nobody's. */
static void test_socket_held_by_a_child(void **state)
{
    struct bed bed;
    bed_init(&bed, 60);
    struct client client = client_new(&bed), other = client_new(&bed);
    client_say(&client, GET("/later"));
    PATIENT_UNTIL(&bed.patience, bed.held);
    struct http_connection *gone = bed.held->connection;
    int child = dup(http_socket(gone));
    http_drop(gone);
    PATIENT_UNTIL(&bed.patience, bed.left == 1);
    client_say(&client, GET("/now"));
    client_say(&other, GET("/now"));
    CLIENT_GETS(&other, "200 OK");
    assert_int_equal(bed.begun, 2);
    close(child);
    client_done(&client);
    client_done(&other);
    bed_done(&bed);
}

/* A connection that cannot be watched is let go, but not before its caller knows that it was taken. */
static void test_a_file_that_is_no_socket(void **state)
{
    struct bed bed;
    bed_init(&bed, 60);
    struct listener *listener = bed.listener;
    bed.listener = NULL; /* it has not counted the file */
    http_take(bed.http, open("/proc/self/status", O_RDONLY | O_CLOEXEC), NULL);
    assert_int_equal(bed.left, 0);
    PATIENT_UNTIL(&bed.patience, bed.left == 1);
    bed.listener = listener;
    bed_done(&bed);
}

/* Without a descriptor for another connection the loop rests; with one, the client that waited is served. */
static void test_no_descriptors(void **state)
{
    struct bed bed;
    struct rlimit before, none;
    bed_init(&bed, 60);
    struct client client = client_new(&bed);
    client_say(&client, GET("/now"));
    int next = dup(client.fd); /* the lowest number that is free */
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){(rlim_t)next, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    PATIENT_UNTIL(&bed.patience, bed.pauses == 1);
    assert_int_equal(bed.pause_errno, EMFILE);
    int64_t turns = 0, end_ns = (int64_t)uv_hrtime() + 3 * LISTENER_PAUSE_MS * NS_PER_MS;
    for (; (int64_t)uv_hrtime() < end_ns; turns++)
        (void)uv_run(&bed.loop, UV_RUN_NOWAIT);
    assert_true(bed.pauses <= 5 && turns > bed.pauses && bed.begun == 0); /* once each LISTENER_PAUSE_MS */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    CLIENT_GETS(&client, "200 OK");
    client_done(&client);
    bed_done(&bed);
}

/* Closed with requests in every state, it ends them all. */
static void test_close(void **state)
{
    struct bed bed;
    bed_init(&bed, 60);
    struct client clients[4];
    static const char *const texts[] = {GET("/later"), GET("/stream"), POST("/now", "9\r\n\r\nhalf"),
                                        "GET /"};
    for (size_t i = 0; i < 4; i++) {
        clients[i] = client_new(&bed);
        client_say(&clients[i], texts[i]);
    }
    PATIENT_UNTIL(&bed.patience, bed.begun == 3);
    bed_done(&bed);
    assert_int_equal(bed.left, 4);
    for (size_t i = 0; i < 4; i++)
        client_done(&clients[i]);
}

/* --- another server takes the connections -------------------------------------------------------------- */

struct other {
    enum http_giving giving;
    int fd, asked;
    struct buf first;
};

static enum http_giving give(void *context, void *peer, int fd, struct str bytes)
{
    struct other *other = context;
    other->asked++;
    if (other->giving == HTTP_GIVEN) {
        other->fd = fd;
        buf_add_str(&other->first, bytes);
    }
    return other->giving;
}

static void test_connections_are_given_away(void **state)
{
    struct bed bed;
    struct other other = {.giving = HTTP_GIVEN, .fd = -1};
    char rest[8] = "";
    bed_init(&bed, 60);
    struct client client = client_new(&bed), slow = client_new(&bed);
    client_say(&client, GET("/hold"));
    client_say(&slow, POST("/now", "9\r\n\r\nhalf"));
    PATIENT_UNTIL(&bed.patience, bed.held && bed.begun == 2);
    http_give_away(bed.http, give, &other);
    assert_int_equal(http_unanswered(bed.http), 2);
    client_say(&client, "GET /n"); /* the next request is the other one's */
    uv_run(&bed.loop, UV_RUN_NOWAIT);
    assert_int_equal(other.asked, 0);
    http_wake(bed.held->connection);
    CLIENT_GETS(&client, "at last");
    PATIENT_UNTIL(&bed.patience, other.fd >= 0 && bed.left == 1);
    ssize_t len = recv(other.fd, rest, sizeof rest, MSG_DONTWAIT);
    if (len > 0)
        buf_add(&other.first, rest, (size_t)len);
    assert_true(str_is(buf_str(&other.first), "GET /n"));
    assert_int_equal(send(other.fd, "other", 5, MSG_NOSIGNAL), 5);
    CLIENT_GETS(&client, "other");
    close(other.fd);
    http_refuse_bodies(bed.http);
    CLIENT_GETS(&slow, "503 Service Unavailable");
    CLIENT_CLOSED(&slow);
    client_done(&client);
    client_done(&slow);
    PATIENT_UNTIL(&bed.patience, http_open(bed.http) == 0);
    buf_done(&other.first);
    bed_done(&bed);
}

static void test_connections_that_stay(void **state)
{
    struct bed bed;
    struct other other = {.giving = HTTP_SERVED, .fd = -1};
    bed_init(&bed, 60);
    struct client client = client_new(&bed), idle = client_new(&bed);
    client_say(&idle, GET("/now"));
    CLIENT_GETS(&idle, "200 OK");
    http_give_away(bed.http, give, &other);
    client_say(&client, GET("/now"));
    CLIENT_GETS(&client, "Connection: close");
    CLIENT_CLOSED(&client);
    assert_int_equal(http_open(bed.http), 1);
    other.giving = HTTP_CLOSED;
    http_give_away(bed.http, give, &other);
    CLIENT_CLOSED(&idle);
    client_done(&client);
    client_done(&idle);
    bed_done(&bed);
}

/* The port is open while one listener takes the place of the other, and nobody is lost between them. */
static void test_a_shared_socket(void **state)
{
    struct bed bed;
    struct error error;
    struct listener *second;
    uint16_t port;
    bed_init(&bed, 60);
    const struct listener_options options = {.taken = taken, .context = &bed, .open_max = 100};
    listener_rest(bed.listener, true);
    struct client client = client_new(&bed); /* waits in the kernel's queue */
    client_say(&client, GET("/now"));
    assert_int_equal(
        listener_open_shared(&bed.loop, listener_socket(bed.listener), &options, &second, &port, &error), 0);
    assert_int_equal(port, bed.port);
    CLIENT_GETS(&client, "200 OK");
    listener_close(second, NULL, NULL);
    struct client next = client_new(&bed);
    client_say(&next, GET("/now"));
    listener_rest(bed.listener, false);
    CLIENT_GETS(&next, "200 OK");
    struct client last = client_new(&bed);
    listener_prompt(bed.listener);
    listener_rest(bed.listener, true);
    listener_rest(bed.listener, false);
    listener_drain(bed.listener);
    client_say(&last, GET("/now"));
    CLIENT_GETS(&last, "200 OK");
    client_done(&client);
    client_done(&next);
    client_done(&last);
    bed_done(&bed);
}

static void on_prepare(uv_prepare_t *prepare)
{
    ((struct bed *)prepare->data)->others++;
}

static void on_check(uv_check_t *check)
{
    ((struct bed *)check->data)->others++;
}

/* Many requests are ready, of several clients and one behind the other, and each takes longer than the server
 * may keep the loop: the loop's other handles run between any two. */
static void test_turns_are_short(void **state)
{
    struct bed bed;
    struct client clients[SLOW_CLIENTS];
    (void)state;
    bed_init(&bed, PATIENCE_S);
    bed.prepare.data = bed.check.data = &bed;
    assert_int_equal(uv_prepare_init(&bed.loop, &bed.prepare) + uv_check_init(&bed.loop, &bed.check), 0);
    for (int i = 0; i < SLOW_CLIENTS; i++) {
        clients[i] = client_new(&bed);
        client_say(&clients[i], "GET /now HTTP/1.1\r\nHost: h\r\n\r\n"); /* it is accepted */
        CLIENT_GETS(&clients[i], "200 OK");
    }
    assert_int_equal(uv_prepare_start(&bed.prepare, on_prepare) + uv_check_start(&bed.check, on_check), 0);
    for (int i = 0; i < SLOW; i++)
        client_say(&clients[i % SLOW_CLIENTS], "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    PATIENT_UNTIL(&bed.patience, bed.slow == SLOW);
    for (int i = 1; i < SLOW; i++)
        assert_true(bed.slow_at[i] > bed.slow_at[i - 1]);
    for (int i = 0; i < SLOW_CLIENTS; i++) {
        PATIENT_UNTIL(&bed.patience,
                      (client_has(&clients[i], NULL), count_of(&clients[i], "200 OK")) == 1 + SLOW_EACH);
        client_done(&clients[i]);
    }
    uv_close((uv_handle_t *)&bed.prepare, NULL);
    uv_close((uv_handle_t *)&bed.check, NULL);
    bed_done(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_behind_each_other),
        cmocka_unit_test(test_a_byte_at_a_time),
        cmocka_unit_test(test_heads_and_versions),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_clients_that_go),
        cmocka_unit_test(test_upgrade),
        cmocka_unit_test(test_early_answers_arrive),
        cmocka_unit_test(test_slow_clients),
        cmocka_unit_test(test_slow_head_behind_a_request),
        cmocka_unit_test(test_release_at_once),
        cmocka_unit_test(test_an_end_that_ends_others),
        cmocka_unit_test(test_socket_held_by_a_child),
        cmocka_unit_test(test_a_file_that_is_no_socket),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_connections_are_given_away),
        cmocka_unit_test(test_connections_that_stay),
        cmocka_unit_test(test_a_shared_socket),
        cmocka_unit_test(test_turns_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
