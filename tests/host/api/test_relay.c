/* TLS beside the loop: handshakes need no turn of the loop, bytes pass whole in both directions, and what
 * strangers can hold is bounded. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "host/access/folder.h"
#include "host/api/relay.h"
#include "host/patience.h"

enum { LARGE_BYTES = 3 * 1024 * 1024, SMALL_RECORD_BYTES = 512, LIMIT = 4 };

/* In place of libc's: fails to add sockets, but not what the loop waits for, when the test says so. */
static atomic_bool refuse_watches;
int epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
    int type;
    socklen_t len = sizeof type;
    if (op == EPOLL_CTL_ADD && refuse_watches && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, epoll_fd, op, fd, event);
}

static char folder[] = "/tmp/phalanx-relay-XXXXXX";
static char certs[5][320]; /* server, its key, authority, client, its key */
static uv_loop_t loop;
static struct patience patience;
static struct api_tls *tls;
static struct relay *relay;

/* The messages that the loop was told. */
static struct {
    int fd; /* of the client that came last; -1: none */
    int ready, gone;
    unsigned chain;
    char address[64];
} told;

static int send_buffer; /* bytes of the relay's sockets to clients; 0: the kernel's default */

static void on_client(void *context, struct relay_client *client)
{
    (void)context;
    if (told.fd >= 0)
        close(told.fd);
    told.fd = client->fd;
    told.chain = client->chain.count;
    told.ready++;
    uv_ip4_name((struct sockaddr_in *)&client->address, told.address, sizeof told.address);
}

static void on_gone(void *context, const struct sockaddr_storage *address)
{
    (void)context;
    told.gone++;
}

static void begin(const struct relay_limits *limits)
{
    static const struct relay_hooks hooks = {NULL, on_client, on_gone, NULL};
    struct error error;
    memset(&told, 0, sizeof told);
    told.fd = -1;
    uv_loop_init(&loop);
    patience_init(&patience, &loop);
    assert_int_equal(api_tls_new(certs[0], certs[1], true, &tls, &error), 0);
    assert_int_equal(relay_new(&loop, tls, &hooks, limits, &relay, &error), 0);
}

static void end(void)
{
    relay_close(relay, NULL, NULL);
    if (told.fd >= 0)
        close(told.fd);
    patience_done(&patience);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    api_tls_free(tls);
}

/* Offers one end of a new pair to the relay; the other is the client's. -1: it was refused. */
static int offer(void)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000007)};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
    if (send_buffer > 0)
        assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer), 0);
    if (relay_take(relay, pair[0], (struct sockaddr *)&from, sizeof from))
        return pair[1];
    close(pair[0]);
    close(pair[1]);
    return -1;
}

struct client {
    int fd;
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

/* Shakes hands, blocking: the loop does not run meanwhile. The client takes records of `record_max` bytes at
 * most; 0: of any size. */
static struct client shake_with(size_t record_max)
{
    struct client client = {.fd = offer()};
    assert_true(client.fd >= 0);
    CHECK(gnutls_certificate_allocate_credentials(&client.credentials) == 0);
    CHECK(gnutls_certificate_set_x509_trust_file(client.credentials, certs[2], GNUTLS_X509_FMT_PEM) == 1);
    CHECK(gnutls_certificate_set_x509_key_file(client.credentials, certs[3], certs[4], GNUTLS_X509_FMT_PEM) ==
          0);
    CHECK(gnutls_init(&client.session, GNUTLS_CLIENT) == 0);
    CHECK(gnutls_set_default_priority(client.session) == 0);
    CHECK(gnutls_credentials_set(client.session, GNUTLS_CRD_CERTIFICATE, client.credentials) == 0);
    gnutls_session_set_verify_cert(client.session, "localhost", 0);
    gnutls_transport_set_int(client.session, client.fd);
    if (record_max > 0)
        CHECK(gnutls_record_set_max_recv_size(client.session, record_max) == 0);
    assert_int_equal(gnutls_handshake(client.session), 0);
    return client;
}

static struct client shake(void)
{
    return shake_with(0);
}

static void client_done(struct client *client)
{
    gnutls_deinit(client->session);
    gnutls_certificate_free_credentials(client->credentials);
    close(client->fd);
}

static void say(struct client *client, const char *text)
{
    assert_int_equal(gnutls_record_send(client->session, text, strlen(text)), strlen(text));
}

static ssize_t hear(char *text, size_t size)
{
    ssize_t count = recv(told.fd, text, size, MSG_DONTWAIT);
    return count < 0 && errno == EAGAIN ? -1 : count;
}

static void test_no_turn_of_the_loop(void **state)
{
    char text[64];
    ssize_t count = -1;
    (void)state;
    begin(&(struct relay_limits){0});
    struct client client = shake();
    assert_int_equal(relay_shaking(relay), 1);
    say(&client, "GET / HTTP/1.1");
    assert_int_equal(told.ready, 0); /* the loop has not run */
    PATIENT_UNTIL(&patience, told.ready == 1 && (count = hear(text, sizeof text)) > 0);
    assert_int_equal(count, 14);
    assert_memory_equal(text, "GET / HTTP/1.1", 14);
    assert_int_equal(relay_shaking(relay), 0);
    assert_int_equal(told.chain, 1);
    assert_string_equal(told.address, "10.0.0.7");
    assert_int_equal(send(told.fd, "answer", 6, 0), 6);
    assert_int_equal(gnutls_record_recv(client.session, text, sizeof text), 6);
    close(told.fd); /* the server has said everything: the client hears of it */
    told.fd = -1;
    assert_int_equal(gnutls_record_recv(client.session, text, sizeof text), 0);
    client_done(&client);
    PATIENT_UNTIL(&patience, told.gone == 1);
    end();
}

static char pattern_at(size_t i)
{
    return (char)(i * 7 + i / 251);
}

/* Reads what the client has sent, as a slow server: some bytes each time. */
static size_t read_server(size_t from)
{
    char bytes[5000];
    ssize_t count = told.fd >= 0 ? hear(bytes, sizeof bytes) : -1;
    for (ssize_t i = 0; i < count; i++)
        assert_int_equal(bytes[i], pattern_at(from + (size_t)i));
    return from + (count > 0 ? (size_t)count : 0);
}

static void test_large(void **state)
{
    char *bytes = mem_alloc(LARGE_BYTES);
    size_t sent = 0, got = 0, back = 0;
    (void)state;
    begin(&(struct relay_limits){0});
    struct client client = shake();
    for (size_t i = 0; i < LARGE_BYTES; i++)
        bytes[i] = pattern_at(i);
    assert_int_equal(fcntl(client.fd, F_SETFL, O_NONBLOCK), 0);
    patience_renew(&patience);
    while (got < LARGE_BYTES) { /* the client blocks when the server does not read */
        ssize_t count =
            sent < LARGE_BYTES ? gnutls_record_send(client.session, bytes + sent, LARGE_BYTES - sent) : 0;
        assert_true(count >= 0 || count == GNUTLS_E_AGAIN);
        sent += count > 0 ? (size_t)count : 0;
        got = read_server(got);
        if (told.ready == 0)
            patience_turn(&patience, "the client is ready");
    }
    for (size_t at = 0; back < LARGE_BYTES;) {
        char some[9000];
        ssize_t count = at < LARGE_BYTES ? send(told.fd, bytes + at, LARGE_BYTES - at, MSG_DONTWAIT) : 0;
        at += count > 0 ? (size_t)count : 0;
        count = gnutls_record_recv(client.session, some, sizeof some);
        assert_true(count > 0 || count == GNUTLS_E_AGAIN);
        for (ssize_t i = 0; i < count; i++)
            assert_int_equal(some[i], pattern_at(back + (size_t)i));
        back += count > 0 ? (size_t)count : 0;
    }
    client_done(&client);
    char none;
    PATIENT_UNTIL(&patience, hear(&none, 1) == 0);
    close(told.fd);
    told.fd = -1;
    PATIENT_UNTIL(&patience, told.gone == 1);
    mem_free(bytes);
    end();
}

/* A client may ask for records far smaller than the server's (RFC 8449): an answer leaves in many. */
static void test_small_records(void **state)
{
    char bytes[50000], some[4096];
    size_t got = 0;
    ssize_t count;
    (void)state;
    begin(&(struct relay_limits){0});
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = pattern_at(i);
    struct client client = shake_with(SMALL_RECORD_BYTES);
    say(&client, "x");
    PATIENT_UNTIL(&patience, told.ready == 1);
    assert_int_equal(send(told.fd, bytes, sizeof bytes, 0), sizeof bytes);
    close(told.fd);
    told.fd = -1;
    while ((count = gnutls_record_recv(client.session, some, sizeof some)) > 0) {
        assert_true(count <= SMALL_RECORD_BYTES);
        for (ssize_t i = 0; i < count; i++)
            assert_int_equal(some[i], pattern_at(got + (size_t)i));
        got += (size_t)count;
    }
    assert_int_equal(count, 0);
    assert_int_equal(got, sizeof bytes);
    client_done(&client);
    end();
}

/* The bytes that the server leaves when it ends reach the client. */
static void test_last_words(void **state)
{
    char *bytes = mem_alloc(LARGE_BYTES), some[4096];
    size_t got = 0;
    ssize_t count;
    (void)state;
    begin(&(struct relay_limits){0});
    struct client client = shake();
    say(&client, "x");
    PATIENT_UNTIL(&patience, told.ready == 1);
    ssize_t left = send(told.fd, bytes, LARGE_BYTES, MSG_DONTWAIT);
    assert_true(left > 0);
    close(told.fd);
    told.fd = -1;
    while ((count = gnutls_record_recv(client.session, some, sizeof some)) > 0)
        got += (size_t)count;
    assert_int_equal(count, 0); /* an orderly end, no reset */
    assert_true(got >= (size_t)left);
    client_done(&client);
    mem_free(bytes);
    end();
}

/* The client's socket is full when the server ends: close_notify waits for room, lest the client takes its
 * answer for cut off. */
static void test_goodbye_waits(void **state)
{
    static const char bytes[4000];
    char some[4096];
    ssize_t count;
    size_t got = 0;
    (void)state;
    send_buffer = 1; /* the kernel's least: a record of this size fills it */
    begin(&(struct relay_limits){0});
    struct client client = shake();
    send_buffer = 0;
    say(&client, "x");
    PATIENT_UNTIL(&patience, told.ready == 1);
    assert_int_equal(send(told.fd, bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(shutdown(told.fd, SHUT_WR), 0);
    struct pollfd server = {.fd = told.fd};
    assert_int_equal(poll(&server, 1, PATIENCE_S * 1000), 1); /* the relay has closed its end */
    while ((count = gnutls_record_recv(client.session, some, sizeof some)) > 0)
        got += (size_t)count;
    assert_int_equal(count, 0);
    assert_int_equal(got, sizeof bytes);
    client_done(&client);
    end();
}

/* The server has ended, and the client does not take what is left: its seat is free again nevertheless. */
static void test_rest(void **state)
{
    char *bytes = mem_alloc(LARGE_BYTES), some[4096];
    (void)state;
    begin(&(struct relay_limits){.rest_ms = 1});
    struct client client = shake();
    say(&client, "x");
    PATIENT_UNTIL(&patience, told.ready == 1);
    for (int full = 0; full < 2;) { /* the sockets between are full, and stay so */
        ssize_t count = send(told.fd, bytes, LARGE_BYTES, MSG_DONTWAIT);
        struct pollfd room = {.fd = told.fd, .events = POLLOUT};
        full = count > 0 || poll(&room, 1, 100) > 0 ? 0 : full + 1;
    }
    close(told.fd);
    told.fd = -1;
    PATIENT_UNTIL(&patience, told.gone == 1);
    while (gnutls_record_recv(client.session, some, sizeof some) > 0) {
    }
    client_done(&client);
    mem_free(bytes);
    end();
}

/* The kernel watches no other descriptor (fs.epoll.max_user_watches): that connection alone ends. */
static void test_no_watches(void **state)
{
    char text[8];
    (void)state;
    begin(&(struct relay_limits){0});
    refuse_watches = true;
    int fd = offer();
    PATIENT_UNTIL(&patience, told.gone == 1);
    refuse_watches = false;
    assert_int_equal(recv(fd, text, sizeof text, 0), 0);
    close(fd);
    struct client client = shake();
    refuse_watches = true; /* of the carrying thread */
    say(&client, "x");
    PATIENT_UNTIL(&patience, told.gone == 2);
    refuse_watches = false;
    client_done(&client);
    int before = told.ready; /* "x" may have come to the server before its connection ended */
    struct client other = shake();
    say(&other, "y");
    PATIENT_UNTIL(&patience, told.ready > before && hear(text, sizeof text) == 1);
    assert_int_equal(text[0], 'y');
    client_done(&other);
    end();
}

/* A message of the handshake that announces 10 MiB: the server ends it long before they have come. */
static void test_large_hello(void **state)
{
    enum { RECORD = 16384, MANY = 400 };
    /* A record of TLS 1.0, as first ones are, and in it the head of a ClientHello. */
    static const unsigned char head[] = {22, 3, 1, RECORD >> 8, 0, 1, 0xa0, 0, 0, 3, 3};
    unsigned char *bytes = mem_alloc(RECORD + 5);
    ssize_t count = 1;
    int sent = 0;
    (void)state;
    begin(&(struct relay_limits){0});
    int fd = offer();
    memcpy(bytes, head, sizeof head);
    while (count > 0 && sent++ < MANY)
        count = send(fd, bytes, RECORD + 5, MSG_NOSIGNAL);
    assert_true(sent < MANY);
    PATIENT_UNTIL(&patience, told.gone == 1);
    assert_int_equal(told.ready, 0);
    close(fd);
    mem_free(bytes);
    end();
}

static void test_limits(void **state)
{
    int held[LIMIT];
    (void)state;
    begin(&(struct relay_limits){.shaking = 1000, .shaking_of_address = LIMIT});
    for (int i = 0; i < LIMIT; i++)
        assert_true((held[i] = offer()) >= 0);
    assert_int_equal(offer(), -1);
    close(held[0]); /* the shaking thread sees its end, and the loop hears of it */
    PATIENT_UNTIL(&patience, told.gone == 1);
    assert_true((held[0] = offer()) >= 0);
    assert_int_equal(offer(), -1);
    assert_int_equal(send(held[1], "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18); /* no TLS */
    PATIENT_UNTIL(&patience, told.gone == 2);
    assert_int_equal(told.ready, 0);
    for (int i = 0; i < LIMIT; i++)
        close(held[i]);
    PATIENT_UNTIL(&patience, told.gone == LIMIT + 1);
    end();
    begin(&(struct relay_limits){.shaking = 1, .shaking_of_address = LIMIT});
    assert_true((held[0] = offer()) >= 0);
    assert_int_equal(offer(), -1);
    end(); /* with a connection that shakes hands */
    close(held[0]);
}

/* A reload serves new connections; those that began before go on. */
static void test_reload(void **state)
{
    struct error error;
    char text[8];
    (void)state;
    begin(&(struct relay_limits){0});
    struct client before = shake();
    assert_int_equal(api_tls_reload(tls, &error), 0);
    struct client after = shake();
    say(&before, "before");
    PATIENT_UNTIL(&patience, told.ready == 1);
    assert_int_equal(send(told.fd, "1", 1, 0), 1);
    assert_int_equal(gnutls_record_recv(before.session, text, sizeof text), 1);
    say(&after, "after");
    PATIENT_UNTIL(&patience, told.ready == 2);
    client_done(&before);
    client_done(&after);
    end();
}

/* A leader's socket, and the calls to it. */
static struct {
    struct relay *relay;
    int fd, opened, failed, gone;
    enum error_code why;
} calls;

static void on_opened(void *context, struct relay_client *client)
{
    (void)context;
    assert_ptr_equal(client->call, &calls);
    calls.fd = client->fd;
    calls.opened++;
}

static void on_failed(void *context, void *call, const struct error *why)
{
    (void)context;
    assert_ptr_equal(call, &calls);
    calls.why = why->code;
    calls.failed++;
}

static void on_call_gone(void *context, const struct sockaddr_storage *address)
{
    (void)context;
    (void)address;
    calls.gone++;
}

/* Takes what has connected, for the relay. */
static bool accept_for_relay(int listener)
{
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    int fd = accept4(listener, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return fd >= 0 && relay_take(relay, fd, (struct sockaddr *)&from, sizeof from);
}

/* A controller calls the one that leads: one that takes such calls, one that does not, and nobody. */
static void test_connect(void **state)
{
    static const struct relay_hooks hooks = {NULL, on_opened, on_call_gone, on_failed};
    struct sockaddr_storage place = {0};
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof place;
    struct api_tls *client;
    struct error error;
    char text[16];
    ssize_t count = -1;
    (void)state;
    memset(&calls, 0, sizeof calls);
    begin(&(struct relay_limits){0});
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&place, &len), 0);
    assert_int_equal(api_tls_new_client(certs[3], certs[4], certs[2], &client, &error), ERROR_DENIED);
    assert_int_equal(api_tls_new_client(certs[0], certs[1], certs[2], &client, &error), 0);
    assert_int_equal(
        relay_new(&loop, client, &hooks, &(struct relay_limits){.shaking = 1}, &calls.relay, &error), 0);
    assert_true(relay_connect(calls.relay, &place, &calls)); /* it takes no requests that are passed on */
    assert_false(relay_connect(calls.relay, &place, &calls));
    PATIENT_UNTIL(&patience, accept_for_relay(listener));
    PATIENT_UNTIL(&patience, calls.gone == 1);
    assert_int_equal(calls.failed, 1);
    assert_int_equal(calls.why, ERROR_DENIED);
    api_tls_take_forwards(tls);
    assert_true(relay_connect(calls.relay, &place, &calls));
    PATIENT_UNTIL(&patience, accept_for_relay(listener));
    PATIENT_UNTIL(&patience, calls.opened == 1); /* before anything was said */
    assert_int_equal(told.ready, 0);
    assert_int_equal(send(calls.fd, "request", 7, 0), 7);
    PATIENT_UNTIL(&patience, told.ready == 1 && (count = hear(text, sizeof text)) > 0);
    assert_int_equal(count, 7);
    assert_int_equal(told.chain, 1);
    assert_int_equal(send(told.fd, "answer", 6, 0), 6);
    PATIENT_UNTIL(&patience, recv(calls.fd, text, sizeof text, MSG_DONTWAIT) == 6);
    assert_int_equal(relay_open(calls.relay), 1);
    close(told.fd); /* the leader ends */
    told.fd = -1;
    PATIENT_UNTIL(&patience, recv(calls.fd, text, sizeof text, MSG_DONTWAIT) == 0);
    close(calls.fd);
    PATIENT_UNTIL(&patience, calls.gone == 2);
    assert_int_equal(relay_open(calls.relay), 0);
    close(listener);
    if (relay_connect(calls.relay, &place, &calls)) { /* refused there and then, or in the handshake */
        PATIENT_UNTIL(&patience, calls.gone == 3);
        assert_int_equal(calls.failed, 2);
        assert_int_equal(calls.why, ERROR_IO);
    }
    assert_int_equal(calls.opened, 1);
    relay_close(calls.relay, NULL, NULL);
    api_tls_free(client);
    end();
}

/* Another one takes the relay over: it hears of connections that were there. */
static void test_hooks(void **state)
{
    static const struct relay_hooks hooks = {NULL, on_opened, on_call_gone, NULL};
    (void)state;
    memset(&calls, 0, sizeof calls);
    begin(&(struct relay_limits){0});
    struct client client = shake();
    relay_set_hooks(relay, &hooks);
    client_done(&client);
    PATIENT_UNTIL(&patience, calls.gone == 1);
    assert_int_equal(told.gone, 0);
    end();
}

static int set_up(void **state)
{
    static const char *const hosts[] = {"localhost"};
    static const char *const names[] = {"server.crt", "server.key", "ca.crt", "admin.crt", "admin.key"};
    char path[300];
    struct error error;
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/access", folder);
    if (folder_init(path, hosts, 1, &error) < 0)
        fail_msg("%s", error.text);
    for (size_t i = 0; i < 5; i++)
        snprintf(certs[i], sizeof certs[i], "%s/%s", path, names[i]);
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_turn_of_the_loop),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_small_records),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_goodbye_waits),
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_large_hello),
        cmocka_unit_test(test_no_watches),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_reload),
        cmocka_unit_test(test_connect),
        cmocka_unit_test(test_hooks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
