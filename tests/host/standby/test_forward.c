/* Clients of a controller that does not lead, with leaders that a test plays: requests wait for a leader, a
 * client's connection outlives leaders, no request is sent twice, and clients are let go between requests. */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/patience.h"
#include "host/standby/internal.h"

enum { CONNECTIONS_MAX = 8, OF_ADDRESS_MAX = 6 };

/* A leader: its connections, and what came by each. The test writes the answers. */
struct leader {
    struct bed *bed;
    int listener, fds[CONNECTIONS_MAX], count;
    struct sockaddr_storage place;
    struct buf in[CONNECTIONS_MAX];
};

struct bed {
    uv_loop_t loop;
    struct patience patience;
    struct forward *forward;
    bool left;
};

struct client {
    struct bed *bed;
    int fd;
    struct buf in;
    bool closed;
};

static void bed_open(struct bed *bed)
{
    struct error error;
    *bed = (struct bed){0};
    assert_int_equal(uv_loop_init(&bed->loop), 0);
    patience_init(&bed->patience, &bed->loop);
    if (forward_new(&bed->loop, "127.0.0.1", 0, OF_ADDRESS_MAX, NULL, &bed->forward, &error) < 0)
        fail_msg("%s", error.text);
}

static void bed_close(struct bed *bed)
{
    forward_close(bed->forward);
    patience_done(&bed->patience);
    uv_run(&bed->loop, UV_RUN_DEFAULT);
    forward_free(bed->forward);
    assert_int_equal(uv_loop_close(&bed->loop), 0);
}

static void leader_open(struct leader *leader, struct bed *bed)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof leader->place;
    *leader = (struct leader){.bed = bed,
                              .listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    assert_int_equal(bind(leader->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(leader->listener, 8), 0);
    assert_int_equal(getsockname(leader->listener, (struct sockaddr *)&leader->place, &len), 0);
}

/* Takes what has come. Returns whether connection `i` has brought exactly `text`. */
static bool leader_has(struct leader *leader, int i, const char *text)
{
    char chunk[4096];
    int fd = accept4(leader->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        leader->fds[leader->count++] = fd;
    for (int k = 0; k < leader->count; k++) {
        ssize_t len = leader->fds[k] >= 0 ? recv(leader->fds[k], chunk, sizeof chunk, MSG_DONTWAIT) : -1;
        if (len > 0)
            buf_add(&leader->in[k], chunk, (size_t)len);
    }
    return i < leader->count && str_is(buf_str(&leader->in[i]), text);
}

static void leader_says(struct leader *leader, int i, const char *text)
{
    buf_clear(&leader->in[i]);
    assert_int_equal(send(leader->fds[i], text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void leader_ends(struct leader *leader, int i)
{
    close(leader->fds[i]);
    leader->fds[i] = -1;
}

static void leader_close(struct leader *leader)
{
    for (int i = 0; i < leader->count; i++) {
        if (leader->fds[i] >= 0)
            close(leader->fds[i]);
        buf_done(&leader->in[i]);
    }
    close(leader->listener);
}

/* Connects from an address of 127/8. */
static void client_open_from(struct client *client, struct bed *bed, uint32_t address)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(forward_port(bed->forward)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *client = (struct client){.bed = bed, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(bind(client->fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(client->fd, (struct sockaddr *)&at, sizeof at), 0);
}

static void client_open(struct client *client, struct bed *bed)
{
    client_open_from(client, bed, INADDR_LOOPBACK);
}

static void client_says(struct client *client, const char *text)
{
    assert_int_equal(send(client->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static bool client_has(struct client *client, const char *text)
{
    char chunk[4096];
    ssize_t len;
    while ((len = recv(client->fd, chunk, sizeof chunk, MSG_DONTWAIT)) > 0)
        buf_add(&client->in, chunk, (size_t)len);
    client->closed |= len == 0 || (len < 0 && errno != EAGAIN);
    bool has = text && str_is(buf_str(&client->in), text);
    if (has)
        buf_clear(&client->in);
    return has;
}

static void client_close(struct client *client)
{
    close(client->fd);
    buf_done(&client->in);
}

#define LEADER_GETS(leader, i, text) PATIENT_UNTIL(&(leader)->bed->patience, leader_has(leader, i, text))
#define CLIENT_GETS(client, text)    PATIENT_UNTIL(&(client)->bed->patience, client_has(client, text))
#define CLIENT_CLOSED(client)                                                                                \
    PATIENT_UNTIL(&(client)->bed->patience, (client_has(client, NULL), (client)->closed))

#define GET   "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define WATCH "GET /p?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n"
#define POST  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"
#define OK    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define LAST  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
#define LINES "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

/* --- cases --------------------------------------------------------------------------------------------- */

static void requests_wait_for_a_leader(void **state)
{
    struct bed bed;
    struct leader first;
    struct client client;
    bed_open(&bed);
    leader_open(&first, &bed);
    client_open(&client, &bed);
    client_says(&client, GET);
    for (int i = 0; i < 10; i++)
        uv_run(&bed.loop, UV_RUN_NOWAIT);
    forward_to(bed.forward, &first.place);
    LEADER_GETS(&first, 0, GET);
    leader_says(&first, 0, OK);
    CLIENT_GETS(&client, OK);
    client_says(&client, GET); /* by the same way */
    LEADER_GETS(&first, 0, GET);
    client_close(&client);
    leader_close(&first);
    bed_close(&bed);
}

static void a_client_outlives_leaders(void **state)
{
    struct bed bed;
    struct leader first, second;
    struct client client;
    bed_open(&bed);
    leader_open(&first, &bed);
    leader_open(&second, &bed);
    client_open(&client, &bed);
    forward_to(bed.forward, &first.place);
    client_says(&client, POST);
    LEADER_GETS(&first, 0, POST);
    forward_to(bed.forward, NULL); /* it hands over: what it was asked, it answers */
    client_says(&client, "body");
    LEADER_GETS(&first, 0, POST "body");
    forward_to(bed.forward, &second.place);
    leader_says(&first, 0, LAST);
    CLIENT_GETS(&client, OK); /* the end of the leader's connection is not the client's affair */
    leader_ends(&first, 0);
    client_says(&client, GET GET); /* two at once: one behind the other */
    LEADER_GETS(&second, 0, GET);
    leader_says(&second, 0, OK);
    LEADER_GETS(&second, 0, GET);
    leader_says(&second, 0, OK);
    CLIENT_GETS(&client, OK OK);
    assert_int_equal(first.count, 1);
    client_close(&client);
    leader_close(&first);
    leader_close(&second);
    bed_close(&bed);
}

/* A connection that nothing was sent by may end: the request takes another one. */
static void an_idle_way_may_end(void **state)
{
    struct bed bed;
    struct leader first;
    struct client client;
    bed_open(&bed);
    leader_open(&first, &bed);
    client_open(&client, &bed);
    forward_to(bed.forward, &first.place);
    client_says(&client, GET);
    LEADER_GETS(&first, 0, GET);
    leader_says(&first, 0, OK);
    CLIENT_GETS(&client, OK);
    leader_ends(&first, 0);
    for (int i = 0; i < 10; i++)
        uv_run(&bed.loop, UV_RUN_NOWAIT);
    client_says(&client, GET);
    LEADER_GETS(&first, 1, GET);
    leader_says(&first, 1, OK);
    CLIENT_GETS(&client, OK);
    client_close(&client);
    leader_close(&first);
    bed_close(&bed);
}

static void nothing_is_sent_twice(void **state)
{
    struct bed bed;
    struct leader first, second;
    struct client client;
    bed_open(&bed);
    leader_open(&first, &bed);
    leader_open(&second, &bed);
    client_open(&client, &bed);
    forward_to(bed.forward, &first.place);
    client_says(&client, POST "body");
    LEADER_GETS(&first, 0, POST "body");
    leader_ends(&first, 0); /* it may have been applied */
    forward_to(bed.forward, &second.place);
    CLIENT_CLOSED(&client);
    assert_false(leader_has(&second, 0, ""));
    assert_int_equal(second.count, 0);
    client_close(&client);
    leader_close(&first);
    leader_close(&second);
    bed_close(&bed);
}

#define MAP     "/api/v1/namespaces/default/configmaps/m"
#define PUT     "PUT " MAP " HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 4\r\n\r\n"
#define UNNAMED "PUT " MAP " HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"

/* Returns whether connection `i` has brought PUT and `body`, and that it was sent before. */
static bool leader_has_again(struct leader *leader, int i, const char *body)
{
    char text[512];
    unsigned long long ms;
    int used = 0;
    snprintf(text, sizeof text, "%.*sPhalanx-Resent: %%llu\r\n\r\n%s%%n", (int)strlen(PUT) - 2, PUT, body);
    if (leader_has(leader, i, "") || i >= leader->count || leader->in[i].len == 0)
        return false;
    return sscanf(leader->in[i].data, text, &ms, &used) == 1 && (size_t)used == leader->in[i].len;
}

#define LEADER_GETS_AGAIN(leader, i, body)                                                                   \
    PATIENT_UNTIL(&(leader)->bed->patience, leader_has_again(leader, i, body))

static void a_write_is_sent_again(void **state)
{
    struct bed bed;
    struct leader first, second;
    struct client client;
    bed_open(&bed);
    leader_open(&first, &bed);
    leader_open(&second, &bed);
    client_open(&client, &bed);
    forward_repeats(bed.forward, true);
    forward_to(bed.forward, &first.place);
    client_says(&client, PUT "body");
    LEADER_GETS(&first, 0, PUT "body");
    leader_ends(&first, 0); /* it may have been applied */
    forward_to(bed.forward, &second.place);
    LEADER_GETS_AGAIN(&second, 0, "body");
    leader_says(&second, 0, OK);
    CLIENT_GETS(&client, OK);
    client_says(&client, PUT "bo"); /* half of it is there when the next leader goes */
    LEADER_GETS(&second, 0, PUT "bo");
    leader_ends(&second, 0);
    LEADER_GETS_AGAIN(&second, 1, "bo");
    client_says(&client, "dy");
    LEADER_GETS_AGAIN(&second, 1, "body");
    leader_says(&second, 1, OK);
    CLIENT_GETS(&client, OK);
    client_says(&client, GET); /* what is no write goes as before */
    LEADER_GETS(&second, 1, GET);
    leader_ends(&second, 1);
    CLIENT_CLOSED(&client);
    client_close(&client);
    leader_close(&first);
    leader_close(&second);
    bed_close(&bed);
}

/* The machine of the leader died: its connections do not end. */
static void a_replaced_leader_is_not_waited_for(void **state)
{
    struct bed bed;
    struct leader first, second;
    struct client client;
    bed_open(&bed);
    leader_open(&first, &bed);
    leader_open(&second, &bed);
    client_open(&client, &bed);
    forward_repeats(bed.forward, true);
    forward_to(bed.forward, &first.place);
    client_says(&client, PUT "body");
    LEADER_GETS(&first, 0, PUT "body");
    forward_to(bed.forward, &second.place);
    LEADER_GETS_AGAIN(&second, 0, "body");
    leader_says(&second, 0, OK);
    CLIENT_GETS(&client, OK);
    client_close(&client);
    leader_close(&first);
    leader_close(&second);
    bed_close(&bed);
}

/* Returns the key that connection `i` has brought; empty: none yet. */
static struct str key_of(struct leader *leader, int i)
{
    static const char name[] = "Idempotency-Key: ";
    (void)leader_has(leader, i, "");
    const char *line = i < leader->count && leader->in[i].len ? strstr(leader->in[i].data, name) : NULL;
    const char *end = line ? strstr(line, "\r\n") : NULL;
    bool whole = end && strstr(line, "\r\n\r\nbody");
    return whole ? (struct str){line + strlen(name), (size_t)(end - line) - strlen(name)} : (struct str){0};
}

static void writes_get_keys(void **state)
{
    struct bed bed;
    struct leader first;
    struct client client;
    char keys[2][64];
    bed_open(&bed);
    leader_open(&first, &bed);
    client_open(&client, &bed);
    forward_repeats(bed.forward, true);
    forward_to(bed.forward, &first.place);
    client_says(&client, UNNAMED);
    PATIENT_UNTIL(&bed.patience, key_of(&first, 0).len > 0);
    snprintf(keys[0], sizeof keys[0], STR_FORMAT, STR_ARG(key_of(&first, 0)));
    leader_ends(&first, 0);
    PATIENT_UNTIL(&bed.patience, key_of(&first, 1).len > 0);
    assert_true(str_is(key_of(&first, 1), keys[0])); /* the same write */
    leader_says(&first, 1, OK);
    CLIENT_GETS(&client, OK);
    client_says(&client, UNNAMED);
    PATIENT_UNTIL(&bed.patience, key_of(&first, 1).len > 0);
    snprintf(keys[1], sizeof keys[1], STR_FORMAT, STR_ARG(key_of(&first, 1)));
    assert_string_not_equal(keys[0], keys[1]);
    client_close(&client);
    leader_close(&first);
    bed_close(&bed);
}

/* The answer has begun, or the request is more than one write, or its path names nothing that is written. */
static void what_is_not_sent_again(void **state)
{
    static const struct {
        const char *asks, *answers;
    } cases[] = {
        {PUT "body", "HTTP/1.1 200 OK\r\nContent-Le"},
        {"DELETE /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: a\r\n\r\n", ""},
        {"POST /version HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", ""},
        {"PUT " MAP " HTTP/1.1\r\nHost: a\r\nPhalanx-Resent: 5\r\nContent-Length: 0\r\n\r\n", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bed bed;
        struct leader first;
        struct client client;
        bed_open(&bed);
        leader_open(&first, &bed);
        client_open(&client, &bed);
        forward_repeats(bed.forward, true);
        forward_to(bed.forward, &first.place);
        client_says(&client, cases[i].asks);
        LEADER_GETS(&first, 0, cases[i].asks);
        leader_says(&first, 0, cases[i].answers);
        for (int turn = 0; turn < 10; turn++)
            uv_run(&bed.loop, UV_RUN_NOWAIT);
        leader_ends(&first, 0);
        CLIENT_CLOSED(&client);
        assert_false(leader_has(&first, 1, ""));
        assert_int_equal(first.count, 1);
        client_close(&client);
        leader_close(&first);
        bed_close(&bed);
    }
}

/* A watch whose leader goes ends whole, and its client goes on where it is. */
static void watches_end_whole(void **state)
{
    struct bed bed;
    struct leader first, second;
    struct client client;
    bed_open(&bed);
    leader_open(&first, &bed);
    leader_open(&second, &bed);
    client_open(&client, &bed);
    forward_to(bed.forward, &first.place);
    client_says(&client, WATCH);
    LEADER_GETS(&first, 0, WATCH);
    leader_says(&first, 0, LINES "3\r\none\r\n");
    CLIENT_GETS(&client, LINES "3\r\none\r\n");
    leader_ends(&first, 0);
    CLIENT_GETS(&client, "0\r\n\r\n");
    forward_to(bed.forward, &second.place);
    client_says(&client, GET);
    LEADER_GETS(&second, 0, GET);
    leader_says(&second, 0, OK);
    CLIENT_GETS(&client, OK);
    client_says(&client, GET); /* a stream that is no watch may not seem whole */
    LEADER_GETS(&second, 0, GET);
    leader_says(&second, 0, LINES "3\r\none\r\n");
    CLIENT_GETS(&client, LINES "3\r\none\r\n");
    leader_ends(&second, 0);
    CLIENT_CLOSED(&client);
    assert_int_equal(client.in.len, 0);
    client_close(&client);
    leader_close(&first);
    leader_close(&second);
    bed_close(&bed);
}

static void other_protocols_pass(void **state)
{
    static const char hello[] = "\x16\x03\x01 hello",
                      up[] = "GET /x HTTP/1.1\r\nHost: a\r\nUpgrade: e\r\n\r\n",
                      switched[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n";
    struct bed bed;
    struct leader first;
    struct client tls, web;
    bed_open(&bed);
    leader_open(&first, &bed);
    client_open(&tls, &bed);
    client_says(&tls, hello); /* nobody leads yet */
    forward_to(bed.forward, &first.place);
    LEADER_GETS(&first, 0, hello);
    leader_says(&first, 0, "hi");
    CLIENT_GETS(&tls, "hi");
    client_open(&web, &bed);
    client_says(&web, up);
    LEADER_GETS(&first, 1, up);
    leader_says(&first, 1, switched);
    CLIENT_GETS(&web, switched);
    forward_to(bed.forward, NULL); /* those that are joined stay */
    client_says(&web, "ping");
    LEADER_GETS(&first, 1, "ping");
    leader_says(&first, 1, "pong");
    CLIENT_GETS(&web, "pong");
    leader_ends(&first, 1);
    CLIENT_CLOSED(&web);
    client_close(&tls);
    client_close(&web);
    leader_close(&first);
    bed_close(&bed);
}

static void on_left(void *context)
{
    ((struct bed *)context)->left = true;
}

static void leaving_lets_clients_go(void **state)
{
    struct bed bed;
    struct leader first;
    struct client busy, idle, late, watch;
    bed_open(&bed);
    leader_open(&first, &bed);
    forward_to(bed.forward, &first.place);
    client_open(&busy, &bed);
    client_says(&busy, GET);
    LEADER_GETS(&first, 0, GET);
    client_open(&watch, &bed);
    client_says(&watch, WATCH);
    LEADER_GETS(&first, 1, WATCH);
    leader_says(&first, 1, LINES);
    CLIENT_GETS(&watch, LINES);
    client_open(&idle, &bed);
    client_open(&late, &bed);
    forward_leave(bed.forward, on_left, &bed);
    CLIENT_GETS(&watch, "0\r\n\r\n");
    client_says(&late, GET); /* has connected, and asks now */
    LEADER_GETS(&first, 2, GET);
    leader_says(&first, 2, OK);
    CLIENT_GETS(&late, LAST);
    leader_says(&first, 0, OK);
    CLIENT_GETS(&busy, LAST);
    CLIENT_CLOSED(&busy);
    CLIENT_CLOSED(&late);
    CLIENT_CLOSED(&idle);
    CLIENT_CLOSED(&watch);
    PATIENT_UNTIL(&bed.patience, bed.left);
    client_close(&busy);
    client_close(&idle);
    client_close(&late);
    client_close(&watch);
    leader_close(&first);
    bed_close(&bed);
}

/* One source address has some of the connections; the others go on being served. */
static void an_address_has_few_connections(void **state)
{
    struct bed bed;
    struct leader first;
    struct client held[OF_ADDRESS_MAX], beyond, other, next;
    bed_open(&bed);
    leader_open(&first, &bed);
    forward_to(bed.forward, &first.place);
    for (int i = 0; i < OF_ADDRESS_MAX; i++)
        client_open(&held[i], &bed);
    client_open(&beyond, &bed);
    CLIENT_CLOSED(&beyond);
    client_open_from(&other, &bed, INADDR_LOOPBACK + 1);
    client_says(&other, GET);
    LEADER_GETS(&first, 0, GET);
    leader_says(&first, 0, OK);
    CLIENT_GETS(&other, OK);
    client_has(&held[0], NULL);
    assert_false(held[0].closed);
    client_says(&held[0], "this is no request\r\n\r\n"); /* passed on as it is, until one side ends */
    LEADER_GETS(&first, 1, "this is no request\r\n\r\n");
    leader_ends(&first, 1);
    CLIENT_CLOSED(&held[0]);
    client_open(&next, &bed);
    client_says(&next, GET);
    LEADER_GETS(&first, 2, GET);
    leader_says(&first, 2, OK);
    CLIENT_GETS(&next, OK);
    for (int i = 0; i < OF_ADDRESS_MAX; i++)
        client_close(&held[i]);
    client_close(&beyond);
    client_close(&other);
    client_close(&next);
    leader_close(&first);
    bed_close(&bed);
}

/* A client that another server has given away, with the beginning of its request. */
static void clients_are_taken_over(void **state)
{
    struct bed bed;
    struct leader first;
    struct client client;
    int ends[2];
    bed_open(&bed);
    leader_open(&first, &bed);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    client = (struct client){.bed = &bed, .fd = ends[0]};
    forward_take(bed.forward, ends[1], STR("GET / HT"), NULL);
    client_says(&client, "TP/1.1\r\nHost: a\r\n\r\n");
    forward_to(bed.forward, &first.place);
    LEADER_GETS(&first, 0, GET);
    leader_says(&first, 0, OK);
    CLIENT_GETS(&client, OK);
    client_close(&client);
    leader_close(&first);
    bed_close(&bed);
}

/* --- reads --------------------------------------------------------------------------------------------- */

#define READ      "GET /api/v1/pods HTTP/1.1\r\nHost: a\r\n\r\n"
#define READ_ANY  "GET /api/v1/pods?resourceVersion=0 HTTP/1.1\r\nHost: a\r\n\r\n"
#define READ_FIVE "GET /api/v1/pods?resourceVersion=5 HTTP/1.1\r\nHost: a\r\n\r\n"

/* The API here: `side` has its ends of the connections. */
struct here {
    struct leader side;
    uint64_t version;
    int looks;
    bool full; /* no descriptor is left */
};

static int here_connect(void *context, int client, const struct relay_client *tls)
{
    struct here *here = context;
    int ends[2];
    if (here->full)
        return -1;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    here->side.fds[here->side.count++] = ends[1];
    return ends[0];
}

static uint64_t here_version(void *context)
{
    return ((const struct here *)context)->version;
}

static void here_look(void *context)
{
    ((struct here *)context)->looks++;
}

static void here_open(struct here *here, struct bed *bed)
{
    *here = (struct here){.side = {.bed = bed, .listener = -1}};
    forward_reads(bed->forward, &(struct forward_reads){here, here_connect, here_version, here_look});
}

static void turn(struct bed *bed)
{
    for (int i = 0; i < 10; i++)
        uv_run(&bed->loop, UV_RUN_NOWAIT);
}

static void reads_wait_for_a_state_that_is_new_enough(void **state)
{
    struct bed bed;
    struct here here;
    struct client client;
    bed_open(&bed);
    here_open(&here, &bed);
    client_open(&client, &bed);
    client_says(&client, READ_ANY); /* nobody leads, and nothing was looked at */
    LEADER_GETS(&here.side, 0, READ_ANY);
    leader_says(&here.side, 0, OK);
    CLIENT_GETS(&client, OK);
    assert_int_equal(here.looks, 0);
    client_says(&client, READ);
    PATIENT_UNTIL(&bed.patience, here.looks > 0);
    turn(&bed);
    assert_false(leader_has(&here.side, 0, READ));
    forward_looked(bed.forward, true);
    LEADER_GETS(&here.side, 0, READ);
    leader_says(&here.side, 0, OK);
    CLIENT_GETS(&client, OK);
    here.version = 4;
    client_says(&client, READ_FIVE);
    turn(&bed);
    forward_looked(bed.forward, true);
    turn(&bed);
    assert_false(leader_has(&here.side, 0, READ_FIVE));
    here.version = 5;
    forward_looked(bed.forward, true);
    LEADER_GETS(&here.side, 0, READ_FIVE);
    leader_says(&here.side, 0, OK);
    CLIENT_GETS(&client, OK);
    assert_int_equal(here.side.count, 1);
    here.looks = 0;
    client_says(&client, READ);
    assert_int_equal(shutdown(client.fd, SHUT_WR), 0); /* nothing more */
    PATIENT_UNTIL(&bed.patience, here.looks > 0);
    turn(&bed);
    forward_looked(bed.forward, true);
    LEADER_GETS(&here.side, 0, READ);
    leader_says(&here.side, 0, OK);
    CLIENT_GETS(&client, LAST);
    CLIENT_CLOSED(&client);
    client_close(&client);
    leader_close(&here.side);
    bed_close(&bed);
}

/* A read that needs the newest state where that cannot be known, a read whose connection ends without an
 * answer, and one for which there is no connection. */
static void reads_that_are_not_answered_here_are_the_leaders(void **state)
{
    struct bed bed;
    struct here here;
    struct leader leader;
    struct client client;
    for (int way = 0; way < 4; way++) {
        bed_open(&bed);
        here_open(&here, &bed);
        leader_open(&leader, &bed);
        forward_to(bed.forward, &leader.place);
        client_open(&client, &bed);
        here.full = way == 2;
        client_says(&client, way == 0 ? READ : READ_ANY);
        if (way == 0) {
            PATIENT_UNTIL(&bed.patience, here.looks > 0);
            forward_looked(bed.forward, false);
        } else if (way == 1) {
            LEADER_GETS(&here.side, 0, READ_ANY);
            leader_ends(&here.side, 0);
        } else if (way == 3) {
            LEADER_GETS(&here.side, 0, READ_ANY);
            forward_reads(bed.forward, NULL); /* it takes the lead; what was asked is answered */
            leader_says(&here.side, 0, OK);
            CLIENT_GETS(&client, OK);
            client_says(&client, READ_ANY);
        }
        LEADER_GETS(&leader, 0, way == 0 ? READ : READ_ANY);
        leader_says(&leader, 0, OK);
        CLIENT_GETS(&client, OK);
        client_close(&client);
        leader_close(&here.side);
        leader_close(&leader);
        bed_close(&bed);
    }
}

/* A read of a version that does not come, though the log is looked at all the time: the leader is asked. */
static void a_read_of_a_version_that_does_not_come(void **state)
{
    struct bed bed;
    struct here here;
    struct leader leader;
    struct client client;
    bed_open(&bed);
    here_open(&here, &bed);
    leader_open(&leader, &bed);
    forward_to(bed.forward, &leader.place);
    here.version = 4;
    client_open(&client, &bed);
    client_says(&client, READ_FIVE);
    PATIENT_UNTIL(&bed.patience, here.looks > 0);
    PATIENT_UNTIL(&bed.patience, (forward_looked(bed.forward, true), leader_has(&leader, 0, READ_FIVE)));
    assert_false(leader_has(&here.side, 0, READ_FIVE));
    leader_says(&leader, 0, OK);
    CLIENT_GETS(&client, OK);
    here.version = 5;
    client_says(&client, READ_FIVE); /* by the way that it has now */
    LEADER_GETS(&leader, 0, READ_FIVE);
    leader_says(&leader, 0, OK);
    CLIENT_GETS(&client, OK);
    client_close(&client);
    leader_close(&here.side);
    leader_close(&leader);
    bed_close(&bed);
}

/* A client that has written reads what it has written, whatever the standby knows. */
static void a_client_with_a_way_to_the_leader_reads_by_it(void **state)
{
    struct bed bed;
    struct here here;
    struct leader leader;
    struct client client;
    bed_open(&bed);
    here_open(&here, &bed);
    leader_open(&leader, &bed);
    forward_to(bed.forward, &leader.place);
    client_open(&client, &bed);
    client_says(&client, READ_ANY);
    LEADER_GETS(&here.side, 0, READ_ANY);
    leader_says(&here.side, 0, OK);
    CLIENT_GETS(&client, OK);
    client_says(&client, POST "body");
    LEADER_GETS(&leader, 0, POST "body");
    leader_says(&leader, 0, OK);
    CLIENT_GETS(&client, OK);
    client_says(&client, READ_ANY);
    LEADER_GETS(&leader, 0, READ_ANY);
    leader_says(&leader, 0, OK);
    CLIENT_GETS(&client, OK);
    assert_int_equal(here.side.count, 1);
    client_close(&client);
    leader_close(&here.side);
    leader_close(&leader);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_wait_for_a_state_that_is_new_enough),
        cmocka_unit_test(reads_that_are_not_answered_here_are_the_leaders),
        cmocka_unit_test(a_read_of_a_version_that_does_not_come),
        cmocka_unit_test(a_client_with_a_way_to_the_leader_reads_by_it),
        cmocka_unit_test(requests_wait_for_a_leader),
        cmocka_unit_test(a_client_outlives_leaders),
        cmocka_unit_test(an_idle_way_may_end),
        cmocka_unit_test(nothing_is_sent_twice),
        cmocka_unit_test(a_write_is_sent_again),
        cmocka_unit_test(a_replaced_leader_is_not_waited_for),
        cmocka_unit_test(writes_get_keys),
        cmocka_unit_test(what_is_not_sent_again),
        cmocka_unit_test(watches_end_whole),
        cmocka_unit_test(other_protocols_pass),
        cmocka_unit_test(leaving_lets_clients_go),
        cmocka_unit_test(clients_are_taken_over),
        cmocka_unit_test(an_address_has_few_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
