/* TLS below the wire: messages arrive whole and in order, strangers are refused by both sides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "host/access/folder.h"
#include "host/patience.h"
#include "host/wire/wire.h"

enum { MESSAGES = 400 };

static char folder[] = "/tmp/phalanx-tls-XXXXXX";

struct side {
    struct wire_conn *conn;
    int opened, closed, refused;
    uint64_t received, wrong;
    enum wire_reason reason;
    char name[64], why[200];
};
static struct side server, client;
static struct wire_tls *of_server;
static uv_loop_t loop;
static struct patience patience;

static void server_opened(struct wire_conn *conn)
{
    server.opened++;
    server.conn = conn;
    snprintf(server.name, sizeof server.name, "%s", wire_conn_peer_name(conn));
}

static void from_agent(struct wire_conn *conn, const struct from_agent *message)
{
    CHECK(message->kind == FROM_AGENT_LOG_DATA);
    server.wrong += message->log_data.stream != server.received ||
                    message->log_data.bytes.len != server.received * 97 % 70000;
    server.received++;
    struct from_controller reply = {.kind = FROM_CONTROLLER_REPORTS_ACK, .number = server.received};
    wire_send_controller(conn, &reply);
}

static void server_closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    server.closed++;
    server.conn = NULL;
    server.reason = reason;
}

static void server_refused(void *context, const char *peer, const char *why)
{
    server.refused++;
    assert_int_equal(strncmp(peer, "127.0.0.1:", 10), 0); /* known also after the client has reset it */
    snprintf(server.why, sizeof server.why, "%s", why);
}

static void client_opened(struct wire_conn *conn)
{
    client.opened++;
    snprintf(client.name, sizeof client.name, "%s", wire_conn_peer_name(conn));
}

static void from_controller(struct wire_conn *conn, const struct from_controller *message)
{
    client.received++;
    client.wrong += message->number != client.received;
}

static void client_closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    client.closed++;
    client.conn = NULL;
    client.reason = reason;
    snprintf(client.why, sizeof client.why, "%s", why);
}

static const struct wire_handlers server_handlers = {
    .opened = server_opened, .from_agent = from_agent, .closed = server_closed, .refused = server_refused};
static const struct wire_handlers client_handlers = {
    .opened = client_opened, .from_controller = from_controller, .closed = client_closed};

static struct wire_tls *settings(const char *authority, const char *name)
{
    static char paths[6][300];
    static unsigned next;
    char *ca = paths[next++ % 6], *cert = paths[next++ % 6], *key = paths[next++ % 6];
    struct wire_tls *tls;
    struct error error;
    snprintf(ca, 300, "%s/%s/ca.crt", folder, authority);
    snprintf(cert, 300, "%s/%s.crt", folder, name);
    snprintf(key, 300, "%s/%s.key", folder, name);
    if (wire_tls_new(&(struct wire_tls_options){ca, cert, key}, &tls, &error) < 0)
        fail_msg("%s", error.text);
    return tls;
}

/* Connects with these credentials (tls NULL: in the clear) and runs until `done`. */
static void exchange(const char *host, struct wire_tls *server_tls, struct wire_tls *client_tls, bool send,
                     bool (*done)(void))
{
    struct wire_listener *listener;
    struct error error;
    uint16_t port;
    server = client = (struct side){0};
    uv_loop_init(&loop);
    patience_init(&patience, &loop);
    struct wire *wire = wire_new(&loop);
    CHECK(wire_listen(wire, "127.0.0.1", 0, &server_handlers, NULL, &listener, &port, &error) == 0);
    wire_listener_set_tls(listener, server_tls);
    struct wire_target target = {.host = host, .port = port, .tls = client_tls};
    CHECK(wire_connect(wire, &target, &client_handlers, NULL, &client.conn, &error) == 0);
    char *bytes = mem_alloc(70000);
    for (uint64_t i = 0; send && i < MESSAGES; i++) {
        struct from_agent message = {.kind = FROM_AGENT_LOG_DATA,
                                     .log_data = {.stream = i, .bytes = {bytes, i * 97 % 70000}}};
        wire_send_agent(client.conn, &message);
    }
    PATIENT_UNTIL(&patience, done());
    mem_free(bytes);
    wire_shutdown(wire);
    patience_done(&patience);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0);
}

static bool all_received(void)
{
    return client.received == MESSAGES;
}

static bool both_ended(void)
{
    return client.closed && (server.refused || server.closed);
}

static void test_messages(void **state)
{
    struct wire_tls *a = settings("good", "good/server"), *b = settings("good", "good/agents/m-1");
    exchange("127.0.0.1", a, b, true, all_received);
    assert_int_equal(server.received, MESSAGES);
    assert_int_equal(server.wrong + client.wrong, 0);
    assert_int_equal(server.opened + client.opened, 2);
    assert_string_equal(server.name, "system:node:m-1");
    assert_string_equal(client.name, "phalanx-controller");
    wire_tls_free(a);
    wire_tls_free(b);
}

/* The owner of the listener never hears of a connection whose handshake failed. */
static void expect_refused(const char *client_ca, const char *client_name, const char *host)
{
    struct wire_tls *a = settings("good", "good/server");
    struct wire_tls *b = client_name ? settings(client_ca, client_name) : NULL;
    exchange(host, a, b, true, both_ended);
    assert_int_equal(server.opened + server.received + server.closed, 0);
    assert_int_equal(server.refused, 1);
    assert_int_equal(client.received, 0);
    wire_tls_free(a);
    wire_tls_free(b);
}

static void test_strangers(void **state)
{
    expect_refused("good", "evil/agents/m-1", "127.0.0.1"); /* another authority's */
    assert_non_null(strstr(server.why, "NOT trusted"));
    expect_refused("evil", "evil/agents/m-1", "127.0.0.1"); /* it does not trust us either */
    expect_refused("good", "good/expired", "127.0.0.1");
    assert_non_null(strstr(server.why, "expired"));
    expect_refused(NULL, NULL, "127.0.0.1"); /* in the clear */
}

/* If only one side speaks TLS, both sides know it by the bytes that they have seen. */
static void test_one_side_only(void **state)
{
    struct wire_tls *a = settings("good", "good/server"), *b = settings("good", "good/agents/m-1");
    exchange("127.0.0.1", a, NULL, true, both_ended);
    assert_int_equal(client.reason, WIRE_PEER_TLS);
    assert_non_null(strstr(server.why, "speaks no TLS"));
    exchange("127.0.0.1", NULL, b, true, both_ended);
    assert_int_equal(client.reason, WIRE_PEER_PLAIN);
    assert_int_equal(server.reason, WIRE_PEER_TLS);
    wire_tls_free(a);
    wire_tls_free(b);
}

/* A controller that is not the one asked for, and an agent's certificate at the controller's place. */
static void test_impostor(void **state)
{
    struct wire_tls *a = settings("good", "good/other"), *b = settings("good", "good/agents/m-1");
    exchange("127.0.0.1", a, b, true, both_ended);
    assert_int_equal(client.opened + server.received, 0);
    assert_int_equal(client.reason, WIRE_PROTOCOL);
    wire_tls_free(a);
    a = settings("good", "good/agents/m-2");
    exchange("127.0.0.1", a, b, true, both_ended);
    assert_int_equal(client.opened + server.received, 0);
    wire_tls_free(a);
    wire_tls_free(b);
}

/* Sends what begins as a handshake message of 10 MiB, which no peer has reason to. */
static bool flood(void)
{
    enum { RECORD = 16384 };
    static unsigned char bytes[5 + RECORD] = {22, 3, 1, RECORD >> 8, 0, 1, 0xa0, 0, 0, 3, 3};
    if (client.conn)
        (void)send(wire_conn_fd(client.conn), bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    return both_ended();
}

static void test_large_hello(void **state)
{
    struct wire_tls *a = settings("good", "good/server");
    exchange("127.0.0.1", a, NULL, false, flood);
    assert_int_equal(server.opened, 0);
    assert_non_null(strstr(server.why, "handshake of more than"));
    wire_tls_free(a);
}

/* A certificate that was good when hands were shaken is not for ever: the authority takes it back. */
static bool taken_back(void)
{
    char ca[300], key[300], cert[300];
    struct error error;
    if (!server.conn)
        return false;
    assert_int_equal(wire_conn_check_peer(server.conn, &error), 0);
    assert_true(wire_conn_peer_ends_s(server.conn) > time(NULL));
    snprintf(ca, sizeof ca, "%s/good/ca.crt", folder);
    snprintf(key, sizeof key, "%s/good/ca.key", folder);
    snprintf(cert, sizeof cert, "%s/good/agents/m-2.crt", folder);
    assert_int_equal(pki_revoke(ca, key, cert, &error), 0);
    assert_true(wire_tls_files_changed(of_server));
    assert_int_equal(wire_tls_reload(of_server, &error), 0);
    assert_int_equal(wire_conn_check_peer(server.conn, &error), ERROR_DENIED);
    assert_non_null(strstr(error.text, "revoked"));
    return true;
}

static void test_revoked(void **state)
{
    struct wire_tls *agent = settings("good", "good/agents/m-2");
    of_server = settings("good", "good/server");
    exchange("127.0.0.1", of_server, agent, false, taken_back);
    exchange("127.0.0.1", of_server, agent, true, both_ended); /* nor is it let in again */
    assert_int_equal(server.opened, 0);
    wire_tls_free(of_server);
    wire_tls_free(agent);
}

static bool answer_in_its_stead(const struct wire_conn *conn, const struct from_agent *message,
                                struct from_controller *ret_reply)
{
    (void)conn;
    (void)message;
    *ret_reply = (struct from_controller){.kind = FROM_CONTROLLER_REPORTS_ACK, .number = 1};
    return true;
}

static bool framed(void)
{
    return client.received > 0;
}

static void send_one(uint64_t number)
{
    struct from_agent message = {.kind = FROM_AGENT_LOG_DATA, .log_data = {.stream = number}};
    message.log_data.bytes = (struct str){folder, number * 97 % 70000};
    assert_true(message.log_data.bytes.len <= sizeof folder);
    wire_send_agent(client.conn, &message);
}

/* A record that cannot be opened, behind one that is answered in the loop's stead: the connection ends. */
static void test_garbled_while_lent(void **state)
{
    static const char garbage[] = "\x17\x03\x03\x00\x20nobody sealed these 32 bytes....";
    struct wire_tls *a = settings("good", "good/server"), *b = settings("good", "good/agents/m-1");
    struct wire_handlers handlers = server_handlers;
    struct wire_attendant *attendant = wire_attendant_new();
    struct wire_listener *listener;
    struct error error;
    uint16_t port;
    (void)state;
    handlers.stand_in = answer_in_its_stead;
    server = client = (struct side){0};
    uv_loop_init(&loop);
    patience_init(&patience, &loop);
    struct wire *wire = wire_new(&loop);
    CHECK(wire_listen(wire, "127.0.0.1", 0, &handlers, NULL, &listener, &port, &error) == 0);
    wire_listener_set_tls(listener, a);
    struct wire_target target = {.host = "127.0.0.1", .port = port, .tls = b};
    CHECK(wire_connect(wire, &target, &client_handlers, NULL, &client.conn, &error) == 0);
    send_one(0);
    PATIENT_UNTIL(&patience, framed());
    server.received = 0;
    send_one(0);
    wire_flush(wire);
    assert_int_equal(send(wire_conn_fd(client.conn), garbage, sizeof garbage - 1, 0), sizeof garbage - 1);
    wire_attend(wire, attendant);
    assert_int_equal(server.received, 0); /* the loop has not had its turn */
    wire_gather(wire);
    PATIENT_UNTIL(&patience, both_ended());
    assert_int_equal(server.reason, WIRE_PROTOCOL);
    assert_int_equal(server.received, 1);
    wire_attendant_free(attendant);
    wire_shutdown(wire);
    patience_done(&patience);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0);
    wire_tls_free(a);
    wire_tls_free(b);
}

/* --- limits of handshakes ------------------------------------------------------------------------- */

struct guest {
    struct wire_conn *conn;
    bool opened, closed;
};

static void guest_opened(struct wire_conn *conn)
{
    ((struct guest *)wire_conn_context(conn))->opened = true;
}

static void guest_hears(struct wire_conn *conn, const struct from_controller *message)
{
    (void)conn;
    (void)message;
}

static void guest_closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    (void)reason;
    (void)why;
    struct guest *guest = wire_conn_context(conn);
    guest->closed = true;
    guest->conn = NULL;
}

static const struct wire_handlers guest_handlers = {
    .opened = guest_opened, .from_controller = guest_hears, .closed = guest_closed};

struct door {
    struct wire *wire;
    struct wire_tls *own, *agent;
    uint16_t port;
};

static void door_open(struct door *door, uint32_t shaking_max, uint32_t of_address_max)
{
    struct wire_listener *listener;
    struct error error;
    server = (struct side){0};
    uv_loop_init(&loop);
    patience_init(&patience, &loop);
    *door = (struct door){.wire = wire_new(&loop),
                          .own = settings("good", "good/server"),
                          .agent = settings("good", "good/agents/m-1")};
    wire_set_limits(door->wire, shaking_max, of_address_max);
    CHECK(wire_listen(door->wire, "127.0.0.1", 0, &server_handlers, NULL, &listener, &door->port, &error) ==
          0);
    wire_listener_set_tls(listener, door->own);
}

static void door_close(struct door *door)
{
    wire_shutdown(door->wire);
    patience_done(&patience);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0);
    wire_tls_free(door->own);
    wire_tls_free(door->agent);
}

static void arrive(struct door *door, struct guest *guest, const char *source, bool shakes)
{
    struct error error;
    struct wire_target target = {.host = "127.0.0.1",
                                 .port = door->port,
                                 .source = source,
                                 .tls = shakes ? door->agent : NULL,
                                 .timeout_ms = PATIENCE_S * 1000};
    *guest = (struct guest){0};
    CHECK(wire_connect(door->wire, &target, &guest_handlers, guest, &guest->conn, &error) == 0);
    PATIENT_UNTIL(&patience, guest->opened || guest->closed);
}

/* Guests who connect and say nothing; the last one is beyond the limit. */
static void crowd_in(struct door *door, struct guest *guests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        arrive(door, &guests[i], "127.0.0.1", false);
    PATIENT_UNTIL(&patience, guests[count - 1].closed);
    for (size_t i = 0; i + 1 < count; i++)
        assert_false(guests[i].closed); /* they came before, and wait for what comes next */
    assert_int_equal(server.opened, 0);
}

/* Is an agent at one of these addresses served? Two addresses may share a place of the crowd, but not all. */
static bool served(struct door *door, int from, int to)
{
    struct guest guest;
    for (int i = from; i <= to; i++) {
        char source[16];
        snprintf(source, sizeof source, "127.0.0.%d", i);
        arrive(door, &guest, source, true);
        if (guest.opened) {
            PATIENT_UNTIL(&patience, server.opened == 1); /* its side of the handshake ends last */
            wire_close(guest.conn);
            return true;
        }
    }
    return false;
}

static void test_an_address_has_its_handshakes(void **state)
{
    struct door door;
    struct guest guests[3];
    (void)state;
    door_open(&door, 100, 2);
    crowd_in(&door, guests, 3);
    assert_false(served(&door, 1, 1)); /* nor is an agent of the same address */
    assert_true(served(&door, 2, 5));
    door_close(&door);
}

static void test_all_have_their_handshakes(void **state)
{
    struct door door;
    struct guest guests[3];
    (void)state;
    door_open(&door, 2, 100);
    crowd_in(&door, guests, 3);
    assert_false(served(&door, 2, 5));
    for (int i = 0; i < 2; i++)
        wire_close(guests[i].conn);
    PATIENT_UNTIL(&patience, server.refused == 2); /* the server knows that they left */
    assert_true(served(&door, 1, 1));
    door_close(&door);
}

static int64_t clock_of(clockid_t clock)
{
    struct timespec time;
    CHECK(clock_gettime(clock, &time) == 0);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* The accepting side's work is another thread's: this process has no third one that works. */
static void test_the_loop_shakes_no_hands(void **state)
{
    enum { GUESTS = 20, LEAST_NS = 20000 }; /* of each one; a handshake takes ten times as long */
    struct door door;
    struct guest guests[GUESTS];
    (void)state;
    door_open(&door, 0, 0);
    int64_t beside_ns = clock_of(CLOCK_PROCESS_CPUTIME_ID) - clock_of(CLOCK_THREAD_CPUTIME_ID);
    for (size_t i = 0; i < GUESTS; i++)
        arrive(&door, &guests[i], "127.0.0.1", true);
    PATIENT_UNTIL(&patience, server.opened == GUESTS);
    int64_t after_ns = clock_of(CLOCK_PROCESS_CPUTIME_ID) - clock_of(CLOCK_THREAD_CPUTIME_ID);
    assert_true(after_ns - beside_ns > GUESTS * LEAST_NS);
    door_close(&door);
}

static int set_up(void **state)
{
    static const char *const hosts[] = {"127.0.0.1"}, *const others[] = {"10.9.9.9", "elsewhere"};
    char good[300], evil[300], ca[300], key[300], cert[300], own[300];
    struct error error = {0};
    CHECK(mkdtemp(folder));
    snprintf(good, sizeof good, "%s/good", folder);
    snprintf(evil, sizeof evil, "%s/evil", folder);
    snprintf(ca, sizeof ca, "%s/good/ca.crt", folder);
    snprintf(key, sizeof key, "%s/good/ca.key", folder);
    int rc = folder_init(good, hosts, 1, &error);
    if (rc == 0)
        rc = folder_init(evil, hosts, 1, &error);
    if (rc == 0)
        rc = folder_agent(good, "m-1", &error);
    if (rc == 0)
        rc = folder_agent(good, "m-2", &error);
    if (rc == 0)
        rc = folder_agent(evil, "m-1", &error);
    struct pki_request other = {.name = "phalanx-controller", .hosts = others, .host_count = 2, .days = 9};
    struct pki_request expired = {.name = "system:node:m-1", .days = -1};
    snprintf(cert, sizeof cert, "%s/good/other.crt", folder);
    snprintf(own, sizeof own, "%s/good/other.key", folder);
    if (rc == 0)
        rc = pki_issue(ca, key, &other, cert, own, &error);
    snprintf(cert, sizeof cert, "%s/good/expired.crt", folder);
    snprintf(own, sizeof own, "%s/good/expired.key", folder);
    if (rc == 0)
        rc = pki_issue(ca, key, &expired, cert, own, &error);
    if (rc < 0)
        fail_msg("%s", error.text);
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"ca",         "server", "admin",  "agents/m-1",
                                        "agents/m-2", "other",  "expired"};
    static const char *const parts[] = {"good", "evil"}, *const endings[] = {".crt", ".key"};
    char path[400];
    for (size_t p = 0; p < 2; p++) {
        for (size_t i = 0; i < sizeof names / sizeof *names * 2; i++) {
            snprintf(path, sizeof path, "%s/%s/%s%s", folder, parts[p], names[i / 2], endings[i % 2]);
            unlink(path);
        }
        static const char *const rest[] = {"/tokens.csv", "/revoked.crl", "/agents", ""};
        for (size_t i = 0; i < 4; i++) {
            snprintf(path, sizeof path, "%s/%s%s", folder, parts[p], rest[i]);
            if (unlink(path) < 0)
                rmdir(path);
        }
    }
    rmdir(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_one_side_only),
        cmocka_unit_test(test_impostor),
        cmocka_unit_test(test_revoked),
        cmocka_unit_test(test_large_hello),
        cmocka_unit_test(test_garbled_while_lent),
        cmocka_unit_test(test_an_address_has_its_handshakes),
        cmocka_unit_test(test_all_have_their_handshakes),
        cmocka_unit_test(test_the_loop_shakes_no_hands),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
