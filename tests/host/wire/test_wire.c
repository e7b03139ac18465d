/* Framed connections on real sockets. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/units.h"
#include "core/agent/codec.h"
#include "host/patience.h"
#include "host/wire/wire.h"

enum { MANY = 1500 };

/* One loop with both ends in it. */
struct world {
    uv_loop_t loop;
    struct patience patience;
    struct wire *wire;
    struct wire_listener *listener;
    uint16_t port;
    int server_open, server_closed, client_open, client_closed;
    int from_agent, from_controller;
    enum wire_reason reason;
    struct wire_conn *last_server, *last_client;
    size_t bytes;
    uint64_t next_number;
    void (*on_agent)(struct world *world, struct wire_conn *conn, const struct from_agent *message);
};

static void server_opened(struct wire_conn *conn)
{
    struct world *world = wire_conn_context(conn);
    world->server_open++;
    world->last_server = conn;
}

static void server_message(struct wire_conn *conn, const struct from_agent *message)
{
    struct world *world = wire_conn_context(conn);
    world->from_agent++;
    if (world->on_agent)
        world->on_agent(world, conn, message);
}

static void server_closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    struct world *world = wire_conn_context(conn);
    world->server_closed++;
    world->reason = reason;
    assert_true(why[0] != 0);
}

static void client_opened(struct wire_conn *conn)
{
    struct world *world = wire_conn_context(conn);
    world->client_open++;
}

static void client_message(struct wire_conn *conn, const struct from_controller *message)
{
    struct world *world = wire_conn_context(conn);
    world->from_controller++;
}

static void client_closed(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    struct world *world = wire_conn_context(conn);
    world->client_closed++;
    world->reason = reason;
}

static const struct wire_handlers server = {
    .opened = server_opened, .from_agent = server_message, .closed = server_closed};
static const struct wire_handlers client = {
    .opened = client_opened, .from_controller = client_message, .closed = client_closed};

static void world_init(struct world *world)
{
    memset(world, 0, sizeof *world);
    assert_int_equal(uv_loop_init(&world->loop), 0);
    patience_init(&world->patience, &world->loop);
    world->wire = wire_new(&world->loop);
    struct error error;
    assert_int_equal(
        wire_listen(world->wire, "127.0.0.1", 0, &server, world, &world->listener, &world->port, &error), 0);
}

static void world_done(struct world *world)
{
    wire_shutdown(world->wire);
    patience_done(&world->patience);
    while (uv_run(&world->loop, UV_RUN_DEFAULT) != 0)
        ;
    assert_int_equal(uv_loop_close(&world->loop), 0);
}

static void dial_for(struct world *world, const char *host, uint16_t port, uint32_t timeout_ms)
{
    struct error error;
    struct wire_target target = {.host = host, .port = port, .timeout_ms = timeout_ms};
    assert_int_equal(wire_connect(world->wire, &target, &client, world, &world->last_client, &error), 0);
}

static void dial(struct world *world, const char *host, uint16_t port)
{
    dial_for(world, host, port, PATIENCE_S * 1000);
}

#define RUN_UNTIL(world, condition) PATIENT_UNTIL(&(world)->patience, condition)

static void answer_heartbeat(struct world *world, struct wire_conn *conn, const struct from_agent *message)
{
    assert_int_equal(message->kind, FROM_AGENT_HEARTBEAT);
    wire_send_controller(conn, &(struct from_controller){.kind = FROM_CONTROLLER_HEARTBEAT_ACK,
                                                         .sent_ns = message->heartbeat.sent_ns});
}

static void test_messages_go_both_ways(void **state)
{
    struct world world;
    world_init(&world);
    world.on_agent = answer_heartbeat;
    dial(&world, "127.0.0.1", world.port);
    for (int i = 0; i < 100; i++) /* before the connection is there: they wait */
        wire_send_agent(world.last_client,
                        &(struct from_agent){.kind = FROM_AGENT_HEARTBEAT, .heartbeat = {.sent_ns = i}});
    RUN_UNTIL(&world, world.from_controller == 100);
    char peer[WIRE_ADDRESS_MAX], expected[WIRE_ADDRESS_MAX];
    wire_conn_peer(world.last_client, peer);
    snprintf(expected, sizeof expected, "127.0.0.1:%u", world.port);
    assert_string_equal(peer, expected);
    assert_true(wire_conn_fd(world.last_client) >= 0);
    wire_close(world.last_client);
    RUN_UNTIL(&world, world.server_closed == 1);
    assert_int_equal(world.reason, WIRE_EOF);
    assert_int_equal(world.client_closed, 0); /* who closes hears nothing */
    world_done(&world);
}

static void count_log(struct world *world, struct wire_conn *conn, const struct from_agent *message)
{
    assert_int_equal(message->kind, FROM_AGENT_LOG_DATA);
    assert_int_equal(message->log_data.stream, ++world->next_number); /* in order */
    world->bytes += message->log_data.bytes.len;
    for (size_t i = 0; i < message->log_data.bytes.len; i += 4096)
        assert_int_equal(message->log_data.bytes.data[i], 'x');
}

static void test_large_messages(void **state)
{
    struct world world;
    world_init(&world);
    world.on_agent = count_log;
    dial(&world, "127.0.0.1", world.port);
    size_t size = 20 * 1024 * 1024, total = 0;
    char *data = mem_alloc(size);
    memset(data, 'x', size);
    size_t sizes[] = {1, size, 300000, 0, 65536, size};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(
            wire_send_agent(world.last_client,
                            &(struct from_agent){.kind = FROM_AGENT_LOG_DATA,
                                                 .log_data = {i + 1, {data, sizes[i]}, false, {0}}}),
            0);
        total += sizes[i];
    }
    RUN_UNTIL(&world, world.bytes == total && world.from_agent == 6);
    struct from_agent huge = {.kind = FROM_AGENT_LOG_DATA};
    huge.log_data.bytes = (struct str){data, FRAME_BYTES_MAX};
    mem_free(data);
    data = mem_alloc(FRAME_BYTES_MAX);
    huge.log_data.bytes.data = data;
    assert_int_equal(wire_send_agent(world.last_client, &huge), ERROR_LIMIT);
    mem_free(data);
    world_done(&world);
}

/* A plain socket that says what it likes. */
static int raw_client(struct world *world, const void *bytes, size_t len)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(world->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(write(fd, bytes, len), len);
    return fd;
}

static void test_broken_peers(void **state)
{
    struct world world;
    world_init(&world);
    const char *const wrong[] = {"GET / HTTP/1.1\r\n\r\n", "\x03\0\0\0\1\2\3\4abc", "\0\0\0\0\0\0\0\0"};
    const size_t sizes[] = {18, 11, 8};
    for (int i = 0; i < 3; i++) {
        int fd = raw_client(&world, wrong[i], sizes[i]);
        RUN_UNTIL(&world, world.server_closed == i + 1);
        assert_int_equal(world.reason, WIRE_PROTOCOL);
        close(fd);
    }
    int fd = raw_client(&world, "\x40\0\0\0\1\2\3\4abc", 11); /* half a frame, then killed */
    close(fd);
    RUN_UNTIL(&world, world.server_closed == 4);
    assert_int_equal(world.reason, WIRE_EOF);
    fd = raw_client(&world, "", 0); /* with bytes unread libuv would call a reset an end of file */
    struct linger linger = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    RUN_UNTIL(&world, world.server_open == 5);
    close(fd);
    RUN_UNTIL(&world, world.server_closed == 5);
    assert_int_equal(world.reason, WIRE_RESET);
    assert_int_equal(world.from_agent, 0);
    world_done(&world);
}

/* Connections that have sent no whole frame hold little, each and together. */
/* A message of a kind that only the next release knows is skipped; those before and behind it count. */
static void test_later_kinds(void **state)
{
    struct world world;
    world_init(&world);
    BUF_CLEANUP struct buf bytes = {0};
    const struct from_agent beat = {.kind = FROM_AGENT_HEARTBEAT, .heartbeat = {.sent_ns = 1}};
    const char later[] = "\xba\x06\x02\x08\x01"; /* field 103: a message */
    uint32_t header[2] = {sizeof later - 1, crc32c(0, later, sizeof later - 1)};
    assert_int_equal(codec_put_agent(&bytes, &beat, NULL), 0);
    buf_add(&bytes, (const char *)header, sizeof header); /* integers are little-endian here as on the wire */
    buf_add(&bytes, later, sizeof later - 1);
    assert_int_equal(codec_put_agent(&bytes, &beat, NULL), 0);
    int fd = raw_client(&world, bytes.data, bytes.len);
    RUN_UNTIL(&world, world.from_agent == 2);
    assert_int_equal(world.server_closed, 0);
    close(fd);
    RUN_UNTIL(&world, world.server_closed == 1);
    assert_int_equal(world.reason, WIRE_EOF);
    world_done(&world);
}

static void test_half_frames_of_strangers(void **state)
{
    enum { PARTS = 15, HALF = PARTS * 65536, STRANGERS = 40 };
    struct world world;
    static char half[65536];
    int fds[STRANGERS], open = 0;
    world_init(&world);
    int large = raw_client(&world, "\x00\x00\x10\x00\1\2\3\4abc", 11); /* 1 MiB and its header */
    RUN_UNTIL(&world, world.server_closed == 1);
    assert_int_equal(world.reason, WIRE_PROTOCOL);
    close(large);
    while (open < STRANGERS && world.server_closed == 1) {
        fds[open] = raw_client(&world, "\x00\xff\x0f\x00\1\2\3\4", 8);
        RUN_UNTIL(&world, world.server_open == open + 2);
        for (int i = 0; i < PARTS; i++) { /* what the loop reads makes room for more */
            size_t sent = 0;
            while (sent < sizeof half) {
                ssize_t count = send(fds[open], half + sent, sizeof half - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
                sent += count > 0 ? (size_t)count : 0;
                if (count < 0 && errno != EAGAIN)
                    break;
                uv_run(&world.loop, UV_RUN_NOWAIT);
                if (world.server_closed > 1)
                    break;
            }
        }
        open++;
    }
    RUN_UNTIL(&world, world.server_closed > 1);
    assert_in_range(open, 32, 36); /* 32 MiB together */
    for (int i = 0; i < open; i++)
        close(fds[i]);
    RUN_UNTIL(&world, world.server_closed == open + 1);
    world_done(&world);
}

/* A frame in pieces of every size, with a frame of an unknown kind between known ones. */
static void test_pieces(void **state)
{
    struct world world;
    world_init(&world);
    BUF_CLEANUP struct buf bytes = {0};
    struct from_agent message = {.kind = FROM_AGENT_HEARTBEAT, .heartbeat = {.sent_ns = 1}};
    assert_int_equal(codec_put_agent(&bytes, &message, NULL), 0);
    buf_add(&bytes, "\x03\0\0\0", 4);
    uint32_t crc = 0x0;
    const char unknown[3] = {(char)0xba, 6, 0};
    crc = crc32c(0, unknown, 3);
    buf_add(&bytes, &crc, 4);
    buf_add(&bytes, unknown, 3);
    assert_int_equal(codec_put_agent(&bytes, &message, NULL), 0);
    int count = 0;
    for (size_t cut = 1; cut < bytes.len; cut++) {
        int fd = raw_client(&world, bytes.data, cut);
        for (int turn = 0; turn < 3; turn++)
            uv_run(&world.loop, UV_RUN_NOWAIT);
        assert_int_equal(write(fd, bytes.data + cut, bytes.len - cut), bytes.len - cut);
        count += 2;
        RUN_UNTIL(&world, world.from_agent == count);
        close(fd);
    }
    RUN_UNTIL(&world, world.server_closed == world.server_open);
    assert_int_equal(world.reason, WIRE_EOF);
    world_done(&world);
}

static void test_unreachable(void **state)
{
    struct world world;
    world_init(&world);
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* a port where nobody listens */
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t len = sizeof address;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    dial(&world, "127.0.0.1", ntohs(address.sin_port));
    RUN_UNTIL(&world, world.client_closed == 1);
    assert_int_equal(world.reason, WIRE_UNREACHABLE);
    dial(&world, "localhost", world.port); /* by name */
    RUN_UNTIL(&world, world.client_open == 1 || world.client_closed == 2);
    dial_for(&world, "no-such-host.invalid", 1, 500);
    int closed = world.client_closed;
    RUN_UNTIL(&world, world.client_closed == closed + 1);
    assert_true(world.reason == WIRE_UNREACHABLE || world.reason == WIRE_TIMEOUT);
    dial_for(&world, "no-such-host.invalid", 1, 500); /* given up at once */
    wire_close(world.last_client);
    dial(&world, "127.0.0.1", world.port);
    wire_close(world.last_client);
    struct error error;
    struct wire_target target = {.host = "127.0.0.1", .port = 1, .source = "nonsense"};
    assert_int_equal(wire_connect(world.wire, &target, &client, &world, &world.last_client, &error),
                     ERROR_INVALID);
    struct wire_listener *second;
    assert_int_equal(wire_listen(world.wire, "127.0.0.1", world.port, &server, &world, &second, NULL, &error),
                     ERROR_CONFLICT);
    close(fd);
    world_done(&world);
}

static void test_source_address(void **state)
{
    struct world world;
    world_init(&world);
    struct error error;
    struct wire_target target = {.host = "127.0.0.1", .port = world.port, .source = "127.0.0.77"};
    assert_int_equal(wire_connect(world.wire, &target, &client, &world, &world.last_client, &error), 0);
    RUN_UNTIL(&world, world.server_open == 1);
    char peer[WIRE_ADDRESS_MAX];
    wire_conn_peer(world.last_server, peer);
    assert_memory_equal(peer, "127.0.0.77:", 11);
    world_done(&world);
}

/* A peer that does not read cannot make us hold more than the limit. */
static void test_slow_peer(void **state)
{
    struct world world;
    world_init(&world);
    int fd = raw_client(&world, "", 0);
    RUN_UNTIL(&world, world.server_open == 1);
    wire_conn_set_limit(world.last_server, 1 << 20);
    char *text = mem_alloc(100001);
    memset(text, 'y', 100000);
    size_t most = 0;
    int rc = 0;
    while (rc == 0) {
        rc =
            wire_send_controller(world.last_server, &(struct from_controller){.kind = FROM_CONTROLLER_REFUSED,
                                                                              .text = {text, 100000}});
        if (wire_conn_queued(world.last_server) > most)
            most = wire_conn_queued(world.last_server);
        uv_run(&world.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(rc, ERROR_LIMIT);
    assert_true(most <= (1 << 20));
    RUN_UNTIL(&world, world.server_closed == 1);
    assert_int_equal(world.reason, WIRE_OVERFLOW);
    mem_free(text);
    close(fd);
    world_done(&world);
}

/* Connections that come at once are taken a few in each turn of the loop, and none is forgotten. */
static void test_flood(void **state)
{
    enum { FLOOD = 300, A_TURN = 64 };
    struct world world;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fds[FLOOD], before = 0;
    (void)state;
    world_init(&world);
    here.sin_port = htons(world.port);
    for (int i = 0; i < FLOOD; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&here, sizeof here), 0);
    }
    patience_renew(&world.patience);
    while (world.server_open < FLOOD) {
        patience_turn(&world.patience, "all are open");
        assert_true(world.server_open - before <= A_TURN + 1); /* the one that waited for this turn */
        before = world.server_open;
    }
    for (int i = 0; i < FLOOD; i++)
        close(fds[i]);
    RUN_UNTIL(&world, world.server_closed == FLOOD);
    world_done(&world);
}

static void test_many(void **state)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 2 * MANY + 64)
        skip();
    struct world world;
    world_init(&world);
    world.on_agent = answer_heartbeat;
    struct wire_conn **conns = mem_alloc(MANY * sizeof *conns);
    for (int i = 0; i < MANY; i++) {
        dial(&world, "127.0.0.1", world.port);
        conns[i] = world.last_client;
    }
    RUN_UNTIL(&world, world.client_open == MANY && world.server_open == MANY);
    for (int round = 1; round <= 5; round++) {
        uint64_t start = uv_hrtime();
        for (int i = 0; i < MANY; i++)
            wire_send_agent(conns[i],
                            &(struct from_agent){.kind = FROM_AGENT_HEARTBEAT, .heartbeat = {.sent_ns = i}});
        RUN_UNTIL(&world, world.from_controller == MANY * round);
        if (round == 5)
            printf("%d heartbeats there and back: %.2f us each\n", MANY,
                   (double)(uv_hrtime() - start) / 1e3 / MANY);
    }
    mem_free(conns);
    assert_int_equal(world.client_closed + world.server_closed, 0);
    world_done(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_go_both_ways),
        cmocka_unit_test(test_large_messages),
        cmocka_unit_test(test_broken_peers),
        cmocka_unit_test(test_later_kinds),
        cmocka_unit_test(test_half_frames_of_strangers),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_unreachable),
        cmocka_unit_test(test_source_address),
        cmocka_unit_test(test_slow_peer),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
