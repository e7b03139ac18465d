/* Shards from machine to machine: what arrives is what lay there, or it does not count; strangers, old
 * attempts, damage and silence end in an error. The server runs in a thread of the test. */
#include "job/gang.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>

#include "job/checkpoint/copies.h"
#include "base/crc32c.h"
#include "job/checkpoint/held.h"
#include "job/checkpoint/transfer.h"

#define LEN ((size_t)3000 * 1000)

struct stage {
    struct gang gang; /* for its folder */
    struct transfer_server *server;
    pthread_t thread;
    struct transfer_peer peer;
    struct transfer_self self; /* of the server */
    struct transfer_request request;
    uint8_t *data, *back;
};

static void *serve(void *server)
{
    transfer_serve(server);
    return NULL;
}

/* A slot of rank 2 of 4, step 10, of attempt 1; the gang is in attempt 3. */
static struct stage *stage_new(void)
{
    struct stage *stage = calloc(1, sizeof *stage);
    struct phx_error error;
    struct held held;
    signal(SIGPIPE, SIG_IGN);
    gang_init(&stage->gang, 1);
    stage->data = malloc(LEN);
    stage->back = calloc(1, LEN);
    for (size_t i = 0; i < LEN; i++)
        stage->data[i] = (uint8_t)(i * 2654435761u >> 13);
    assert_int_equal(held_open(&held, stage->gang.dir, true, 2, 4, 1, &error), 0);
    struct iovec part = {stage->data, LEN};
    assert_int_equal(held_copy(&held, 1, &part, 1, &error), 0);
    assert_int_equal(held_seal(&held, 1, 10, LEN, 77, &error), 0);
    held_close(&held);
    assert_int_equal(transfer_serve_new(stage->gang.dir, "127.0.0.1", &stage->server, &error), 0);
    stage->self =
        (struct transfer_self){.gang = transfer_gang("a/b"), .attempt = 3, .rank = 2, .world = 4, .key = "k"};
    transfer_serve_as(stage->server, &stage->self);
    assert_int_equal(pthread_create(&stage->thread, NULL, serve, stage->server), 0);
    stage->peer = (struct transfer_peer){.address = "127.0.0.1", .port = transfer_serve_port(stage->server)};
    stage->request = (struct transfer_request){.type = TRANSFER_GET,
                                               .self = stage->self,
                                               .offer = {.step = 10,
                                                         .attempt = 1,
                                                         .rank = 2,
                                                         .world = 4,
                                                         .key = 77,
                                                         .len = LEN,
                                                         .crc = crc32c(0, stage->data, LEN),
                                                         .slot = 1}};
    return stage;
}

static void stage_free(struct stage *stage)
{
    transfer_serve_stop(stage->server);
    pthread_join(stage->thread, NULL);
    transfer_serve_free(stage->server);
    gang_done(&stage->gang);
    free(stage->data);
    free(stage->back);
    free(stage);
}

static int get(struct stage *stage)
{
    struct phx_error error;
    return transfer_get(&stage->peer, &stage->request, stage->back, &error);
}

static int put(struct stage *stage, uint64_t step)
{
    struct phx_error error;
    stage->request.type = TRANSFER_PUT;
    stage->request.offer.step = step;
    stage->request.offer.place = OFFER_COPY;
    stage->request.offer.slot = 0;
    return transfer_put(&stage->peer, &stage->request, stage->data, &error);
}

static void test_get(void **unused)
{
    struct stage *stage = stage_new();
    assert_int_equal(get(stage), 0);
    assert_memory_equal(stage->back, stage->data, LEN);
    stage->request.offer.step = 11; /* not there */
    assert_int_equal(get(stage), PHX_ERROR_CORRUPT);
    stage->request.offer.step = 10;
    stage->request.self.attempt = 2; /* an old process that came back */
    assert_int_equal(get(stage), PHX_ERROR_FENCED);
    stage->request.self.attempt = 3;
    stage->request.self.gang++;
    assert_int_equal(get(stage), PHX_ERROR_FENCED);
    stage->request.self.gang--;
    stage->request.self.world++;
    assert_int_equal(get(stage), PHX_ERROR_FENCED);
    stage->request.self.world--;
    stage->request.self.rank = 4; /* outside the world */
    assert_int_equal(get(stage), PHX_ERROR_FENCED);
    stage->request.self.rank = 1; /* another rank may ask, but not give copies of this one's shard */
    assert_int_equal(get(stage), 0);
    assert_int_equal(put(stage, 3), PHX_ERROR_FENCED);
    stage_free(stage);
}

static void test_damaged_on_the_way(void **unused)
{
    struct stage *stage = stage_new();
    char path[160];
    struct phx_error error;
    offer_path(stage->gang.dir, &stage->request.offer, path, sizeof path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && pwrite(fd, "xyz", 3, LEN / 2) == 3);
    assert_int_equal(transfer_get(&stage->peer, &stage->request, stage->back, &error), PHX_ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "checksum"));
    assert_int_equal(ftruncate(fd, LEN / 2), 0);
    assert_int_equal(get(stage), PHX_ERROR_CORRUPT);
    close(fd);
    stage_free(stage);
}

/* Carries one connection to the server, and changes bytes of the data on their way: those from the client
 * behind its request, or those of the server behind its answer. */
struct meddler {
    int listen_fd;
    uint16_t port, to;
    bool of_client;
    size_t place; /* of the change, in the data */
    pthread_t thread;
};

/* Five bytes that CRC-32C does not see, whatever they are added to: the polynomial, first bit first. */
static void add_polynomial(uint8_t *bytes)
{
    const uint64_t bits = UINT64_C(0x11edc6f41);
    for (int i = 0; i <= 32; i++)
        bytes[i / 8] ^= (uint8_t)((bits >> (32 - i) & 1) << (i % 8));
}

/* Passes on what comes; false: it has ended. */
static bool pass_on(int from, int to, size_t *at, size_t place)
{
    static uint8_t bytes[1 << 16];
    ssize_t got =
        recv(from, bytes, place > *at && place - *at < sizeof bytes ? place - *at : sizeof bytes, 0);
    if (got <= 0)
        return false;
    if (*at == place && got >= 5)
        add_polynomial(bytes);
    *at += (size_t)got;
    return send(to, bytes, (size_t)got, MSG_NOSIGNAL) == got;
}

static void *meddle(void *context)
{
    struct meddler *meddler = context;
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(meddler->to)};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int client = accept(meddler->listen_fd, NULL, NULL),
        there = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(there, (struct sockaddr *)&server, sizeof server), 0);
    size_t sent = 0, back = 0, behind = SIZE_MAX;
    size_t place = meddler->of_client ? TRANSFER_SEALED_SIZE + meddler->place : behind;
    size_t place_back =
        meddler->of_client ? behind : TRANSFER_HELLO_SIZE + TRANSFER_ANSWER_SIZE + meddler->place;
    struct pollfd fds[] = {{client, POLLIN, 0}, {there, POLLIN, 0}};
    bool on = true;
    while (on && poll(fds, 2, -1) > 0) {
        if (fds[0].revents)
            on = pass_on(client, there, &sent, place);
        if (on && fds[1].revents)
            on = pass_on(there, client, &back, place_back);
    }
    close(client);
    close(there);
    return NULL;
}

static void meddler_begin(struct meddler *meddler, struct stage *stage, bool of_client, size_t place)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    *meddler =
        (struct meddler){.to = transfer_serve_port(stage->server), .of_client = of_client, .place = place};
    meddler->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(meddler->listen_fd, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(listen(meddler->listen_fd, 1), 0);
    assert_int_equal(getsockname(meddler->listen_fd, (struct sockaddr *)&here, &size), 0);
    stage->peer.port = ntohs(here.sin_port);
    assert_int_equal(pthread_create(&meddler->thread, NULL, meddle, meddler), 0);
}

static void meddler_end(struct meddler *meddler, struct stage *stage)
{
    pthread_join(meddler->thread, NULL);
    close(meddler->listen_fd);
    stage->peer.port = transfer_serve_port(stage->server);
}

/* A checksum finds what chance does. What somebody does is found by the tag, with which the data still comes
 * whole when nobody meddles. */
static void test_changed_on_the_way(void **unused)
{
    struct stage *stage = stage_new();
    struct meddler meddler;
    for (int proved = 0; proved < 2; proved++) {
        stage->peer.prove = proved;
        stage->request.type = TRANSFER_GET;
        stage->request.offer.step = 10;
        stage->request.offer.place = OFFER_SLOT;
        stage->request.offer.slot = 1;
        assert_int_equal(get(stage), 0);
        assert_memory_equal(stage->back, stage->data, LEN);
        meddler_begin(&meddler, stage, false, LEN / 2);
        assert_int_equal(get(stage), proved ? PHX_ERROR_CORRUPT : 0);
        meddler_end(&meddler, stage);
        assert_memory_not_equal(stage->back, stage->data, LEN);
        stage->request.keep_attempt = UINT32_MAX;
        assert_int_equal(put(stage, 20), 0);
        meddler_begin(&meddler, stage, true, LEN / 3);
        assert_int_equal(put(stage, 21), proved ? PHX_ERROR_CORRUPT : 0);
        meddler_end(&meddler, stage);
        meddler_begin(&meddler, stage, true, LEN); /* the tag itself, where there is one */
        assert_int_equal(put(stage, 22), proved ? PHX_ERROR_CORRUPT : 0);
        meddler_end(&meddler, stage);
    }
    stage_free(stage);
}

/* The copies that count: steps, as a set of bits. */
static unsigned copied(const struct stage *stage, uint32_t rank)
{
    static const uint64_t machines[] = {1};
    struct offer_list list = {0};
    struct offer_share share = offer_share_of(0, 1, machines);
    unsigned steps = 0;
    offer_scan(stage->gang.dir, &share, &list);
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].place == OFFER_COPY && list.items[i].rank == rank)
            steps |= 1u << list.items[i].step;
    return steps;
}

static void test_put(void **unused)
{
    struct stage *stage = stage_new();
    struct phx_error error;
    stage->request.keep_attempt = UINT32_MAX;
    assert_int_equal(put(stage, 1), 0);
    assert_int_equal(put(stage, 2), 0);
    assert_int_equal(copied(stage, 2), 1u << 1 | 1u << 2);
    stage->request.keep_step = 1;
    stage->request.keep_attempt = 1;
    assert_int_equal(put(stage, 3), 0); /* in the place of 2, which is newer */
    assert_int_equal(copied(stage, 2), 1u << 1 | 1u << 3);
    stage->request.offer.crc++; /* not what is announced: it never counts, and the one to keep stays */
    assert_int_equal(put(stage, 4), PHX_ERROR_CORRUPT);
    assert_int_equal(copied(stage, 2), 1u << 1);
    stage->request.offer.crc--;
    stage->request.self.attempt = 2;
    assert_int_equal(put(stage, 5), PHX_ERROR_FENCED);
    stage->request.self.attempt = 3;
    assert_int_equal(copied(stage, 2), 1u << 1);
    stage->request.offer.len = 0;
    stage->request.offer.crc = 0;
    assert_int_equal(put(stage, 6), 0);
    stage->request.offer.len = LEN;
    stage->request.offer.crc = crc32c(0, stage->data, LEN);
    stage->request.keep_step = 6;
    assert_int_equal(put(stage, 7), 0);
    static const uint64_t machines[] = {1};
    struct offer_list list = {0};
    struct offer_share share = offer_share_of(0, 1, machines);
    offer_scan(stage->gang.dir, &share, &list);
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].step == 7)
            assert_int_equal(offer_read(stage->gang.dir, &list.items[i], stage->back, &error), 0);
    assert_memory_equal(stage->back, stage->data, LEN);
    stage_free(stage);
}

static int put_delta(struct stage *stage, struct delta_history *history, uint64_t step, uint64_t *ret_sent)
{
    struct phx_error error;
    stage->request.type = TRANSFER_DELTA;
    stage->request.offer.step = step;
    stage->request.offer.place = OFFER_COPY;
    stage->request.offer.crc = crc32c(0, stage->data, stage->request.offer.len);
    return transfer_put_delta(&stage->peer, &stage->request, stage->data, history, ret_sent, &error);
}

static void expect_copy(struct stage *stage, uint64_t step)
{
    static const uint64_t machines[] = {1};
    struct offer_list list = {0};
    struct offer_share share = offer_share_of(0, 1, machines);
    struct phx_error error;
    bool found = false;
    offer_scan(stage->gang.dir, &share, &list);
    for (size_t i = 0; i < list.count && !found; i++) {
        found = list.items[i].place == OFFER_COPY && list.items[i].step == step;
        if (found)
            assert_int_equal(offer_read(stage->gang.dir, &list.items[i], stage->back, &error), 0);
    }
    assert_true(found);
    assert_memory_equal(stage->back, stage->data, stage->request.offer.len);
}

/* Two copies take turns, so what goes is what has changed since the one before the last. */
static void test_delta(void **unused)
{
    struct stage *stage = stage_new();
    struct delta_history history = {0};
    uint64_t sent = 0;
    stage->request.keep_attempt = UINT32_MAX;
    for (uint64_t step = 1; step <= 2; step++) { /* nothing is there yet */
        assert_int_equal(put_delta(stage, &history, step, &sent), 0);
        assert_int_equal(sent, LEN);
    }
    assert_int_equal(put_delta(stage, &history, 3, &sent), 0);
    assert_int_equal(sent, 0);
    expect_copy(stage, 3);
    stage->data[5] ^= 1;
    stage->data[DELTA_BLOCK * 7] ^= 1;
    stage->data[LEN - 1] ^= 1;
    assert_int_equal(put_delta(stage, &history, 4, &sent), 0);
    assert_int_equal(sent, 2 * DELTA_BLOCK + LEN % DELTA_BLOCK);
    expect_copy(stage, 4);
    stage->request.offer.len = LEN - DELTA_BLOCK; /* shorter, longer, nothing at all, and back */
    assert_int_equal(put_delta(stage, &history, 5, &sent), 0);
    expect_copy(stage, 5);
    stage->request.offer.len = LEN;
    assert_int_equal(put_delta(stage, &history, 6, &sent), 0);
    expect_copy(stage, 6);
    stage->request.offer.len = 0;
    assert_int_equal(put_delta(stage, &history, 7, &sent), 0);
    stage->request.offer.len = LEN;
    assert_int_equal(put_delta(stage, &history, 8, &sent), 0);
    expect_copy(stage, 8);
    delta_forget(&history); /* another process: it doesn't know what it has sent */
    assert_int_equal(put_delta(stage, &history, 9, &sent), 0);
    assert_int_equal(sent, LEN);
    expect_copy(stage, 9);
    delta_forget(&history);
    stage_free(stage);
}

/* A slot that has changed at the peer meanwhile does not count as a copy, and the next one is a whole one. */
static void test_delta_on_damage(void **unused)
{
    struct stage *stage = stage_new();
    struct delta_history history = {0};
    uint64_t sent = 0;
    char path[160];
    stage->request.keep_attempt = UINT32_MAX;
    for (uint64_t step = 1; step <= 2; step++)
        assert_int_equal(put_delta(stage, &history, step, &sent), 0);
    stage->request.offer.slot = 0; /* of step 1, the next to go */
    offer_path(stage->gang.dir, &stage->request.offer, path, sizeof path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && pwrite(fd, "xyz", 3, LEN / 2) == 3);
    close(fd);
    assert_int_equal(put_delta(stage, &history, 3, &sent), PHX_ERROR_CORRUPT);
    assert_int_equal(copied(stage, 2), 1u << 2);
    assert_int_equal(put_delta(stage, &history, 4, &sent), 0);
    assert_int_equal(sent, LEN);
    expect_copy(stage, 4);
    delta_forget(&history);
    stage_free(stage);
}

static struct pack *pack_new(void)
{
    struct phx_error error;
    struct pack *pack;
    assert_int_equal(pack_open(PACK_LIBRARY, 1, &pack, &error), 0);
    return pack;
}

/* Half of it gets smaller; whole, and by blocks. */
static void send_packed(bool prove)
{
    struct stage *stage = stage_new();
    stage->peer.prove = prove;
    struct delta_history history = {0};
    uint64_t sent = 0;
    stage->request.keep_attempt = UINT32_MAX;
    stage->peer.pack = pack_new();
    memset(stage->data, 7, LEN / 2);
    stage->request.offer.crc = crc32c(0, stage->data, LEN);
    assert_int_equal(put(stage, 1), 0);
    expect_copy(stage, 1);
    for (uint64_t step = 2; step <= 3; step++)
        assert_int_equal(put_delta(stage, &history, step, &sent), 0);
    stage->data[5] ^= 1; /* alone, in a run, and at the end */
    memset(stage->data + DELTA_BLOCK * 7, 9, 20 * DELTA_BLOCK);
    stage->data[LEN - 1] ^= 1;
    assert_int_equal(put_delta(stage, &history, 4, &sent), 0);
    assert_int_equal(sent, 21 * DELTA_BLOCK + LEN % DELTA_BLOCK);
    expect_copy(stage, 4);
    stage->request.offer.crc = 1; /* not what was announced */
    stage->request.offer.step = 5;
    struct phx_error error;
    stage->request.type = TRANSFER_PUT;
    assert_int_equal(transfer_put(&stage->peer, &stage->request, stage->data, &error), PHX_ERROR_CORRUPT);
    assert_int_equal(copied(stage, 2) & 1u << 5, 0);
    delta_forget(&history);
    pack_close(stage->peer.pack);
    stage_free(stage);
}

static void test_packed(void **unused)
{
    send_packed(false);
    send_packed(true);
}

/* A receiver without zstd says so, and takes the bytes unpacked. */
static void test_packed_refused(void **unused)
{
    struct stage *stage = stage_new();
    struct pack *pack = pack_new();
    transfer_serve_library(stage->server, "libnowhere.so.1");
    stage->request.keep_attempt = UINT32_MAX;
    stage->peer.pack = pack;
    assert_int_equal(put(stage, 1), PHX_ERROR_INVALID);
    stage->peer.pack = NULL;
    assert_int_equal(put(stage, 1), 0);
    expect_copy(stage, 1);
    pack_close(pack);
    stage_free(stage);
}

/* Slots stay mapped in the server; one that was deleted, or is longer than before, is mapped anew. */
static void test_mapped_slots(void **unused)
{
    struct stage *stage = stage_new();
    struct delta_history history = {0};
    uint64_t sent = 0;
    char path[160];
    stage->request.keep_attempt = UINT32_MAX;
    stage->request.offer.len = LEN / 2;
    for (uint64_t step = 1; step <= 4; step++)
        assert_int_equal(put_delta(stage, &history, step, &sent), 0);
    stage->request.offer.place = OFFER_COPY;
    for (stage->request.offer.slot = 0; stage->request.offer.slot < PEER_SLOTS; stage->request.offer.slot++) {
        offer_path(stage->gang.dir, &stage->request.offer, path, sizeof path);
        assert_int_equal(unlink(path), 0);
    }
    stage->request.offer.slot = 0;
    assert_int_equal(put_delta(stage, &history, 5, &sent), 0);
    expect_copy(stage, 5);
    stage->request.offer.len = LEN;
    for (uint64_t step = 6; step <= 9; step++) {
        stage->data[step] ^= 1;
        assert_int_equal(put_delta(stage, &history, step, &sent), 0);
        expect_copy(stage, step);
    }
    delta_forget(&history);
    stage_free(stage);
}

static int dial(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Sends the request under this connection's nonce, as a client with this key would. */
static int ask(struct stage *stage, struct seal *ret_answers)
{
    uint8_t hello[TRANSFER_HELLO_SIZE], bytes[TRANSFER_SEALED_SIZE];
    uint8_t *nonce = bytes + TRANSFER_REQUEST_SIZE;
    struct seal seal;
    int fd = dial(stage->peer.port);
    assert_int_equal(recv(fd, hello, sizeof hello, MSG_WAITALL), sizeof hello);
    transfer_put_request(&stage->request, bytes);
    assert_true(seal_nonce(nonce));
    seal_begin(&seal, stage->request.self.key, TRANSFER_MAGIC, SEAL_FROM_CLIENT, hello + 8, nonce);
    seal_begin(ret_answers, stage->request.self.key, TRANSFER_MAGIC, SEAL_FROM_SERVER, hello + 8, nonce);
    seal_tag(&seal, bytes, sizeof bytes - SEAL_TAG_SIZE, nonce + SEAL_NONCE_SIZE);
    assert_int_equal(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
    return fd;
}

/* Garbage, silence, and more connections than are served at once harm nobody; one that leaves in the middle
 * of its copy leaves none. */
static void test_strangers(void **unused)
{
    struct stage *stage = stage_new();
    uint8_t bytes[TRANSFER_SEALED_SIZE], byte;
    struct seal answers;
    int quiet[2 * TRANSFER_LINES];
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
        quiet[i] = dial(stage->peer.port);
    int fd = dial(stage->peer.port);
    memset(bytes, 'G', sizeof bytes);
    assert_int_equal(recv(fd, bytes, TRANSFER_HELLO_SIZE, MSG_WAITALL), TRANSFER_HELLO_SIZE);
    assert_int_equal(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
    assert_int_equal(recv(fd, &byte, 1, 0) <= 0, 1);
    close(fd);
    stage->request.type = TRANSFER_PUT;
    stage->request.offer.place = OFFER_COPY;
    stage->request.offer.slot = 0;
    fd = ask(stage, &answers);
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    assert_int_equal(send(fd, stage->data, 1000, MSG_NOSIGNAL), 1000);
    close(fd);
    stage->request.type = TRANSFER_GET;
    stage->request.offer.place = OFFER_SLOT;
    stage->request.offer.slot = 1;
    assert_int_equal(get(stage), 0);
    assert_int_equal(copied(stage, 2), 0);
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
        close(quiet[i]);
    stage_free(stage);
}

/* A piece that is none ends the connection, and leaves no copy. */
static void test_packed_garbage(void **unused)
{
    static const uint8_t pieces[][12] = {
        {0}, {0xff, 0xff, 0xff, 0xff}, {8, 0, 0, 0, 'n', 'o', 't', ' ', 'z', 's', 't', 'd'}};
    struct stage *stage = stage_new();
    uint8_t answer[TRANSFER_ANSWER_SIZE];
    struct seal answers;
    stage->request.type = TRANSFER_PUT;
    stage->request.packed = true;
    stage->request.offer.place = OFFER_COPY;
    stage->request.offer.slot = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        int fd = ask(stage, &answers);
        assert_int_equal(recv(fd, answer, sizeof answer, MSG_WAITALL), sizeof answer);
        assert_int_equal(answer[0], 0);
        assert_int_equal(send(fd, pieces[i], sizeof *pieces, MSG_NOSIGNAL), sizeof *pieces);
        assert_true(recv(fd, answer, 1, 0) <= 0);
        close(fd);
    }
    assert_int_equal(copied(stage, 2), 0);
    stage_free(stage);
}

/* Messages of a stranger who knows all but the key: nothing is answered, nothing is written. */
static void test_forged(void **unused)
{
    struct stage *stage = stage_new();
    uint8_t first[TRANSFER_HELLO_SIZE], second[TRANSFER_HELLO_SIZE], good[TRANSFER_SEALED_SIZE], byte;
    stage->request.type = TRANSFER_PUT;
    stage->request.offer.place = OFFER_COPY;
    stage->request.offer.slot = 0;
    stage->request.offer.step = 50000;
    stage->request.keep_attempt = UINT32_MAX;
    struct transfer_request known = stage->request;
    struct seal answers;
    for (size_t i = 0; i < SEAL_KEY_SIZE * 8; i += 37) { /* keys that differ in one bit */
        stage->request.self.key[i / 8] ^= (uint8_t)(1u << i % 8);
        int fd = ask(stage, &answers);
        assert_true(recv(fd, &byte, 1, 0) <= 0);
        close(fd);
        stage->request = known;
    }
    int fd = dial(stage->peer.port); /* a request that a rank has sent, on another connection */
    assert_int_equal(recv(fd, first, sizeof first, MSG_WAITALL), sizeof first);
    transfer_put_request(&known, good);
    uint8_t *nonce = good + TRANSFER_REQUEST_SIZE;
    memset(nonce, 1, SEAL_NONCE_SIZE);
    struct seal seal;
    seal_begin(&seal, known.self.key, TRANSFER_MAGIC, SEAL_FROM_CLIENT, first + 8, nonce);
    seal_tag(&seal, good, sizeof good - SEAL_TAG_SIZE, nonce + SEAL_NONCE_SIZE);
    int again = dial(stage->peer.port);
    assert_int_equal(recv(again, second, sizeof second, MSG_WAITALL), sizeof second);
    assert_memory_not_equal(first, second, sizeof first);
    assert_int_equal(send(again, good, sizeof good, MSG_NOSIGNAL), sizeof good);
    assert_true(recv(again, &byte, 1, 0) <= 0);
    close(again);
    for (size_t bit = 0; bit < sizeof good * 8; bit += 11) { /* one bit of it is another */
        uint8_t bytes[TRANSFER_SEALED_SIZE];
        again = dial(stage->peer.port);
        assert_int_equal(recv(again, second, sizeof second, MSG_WAITALL), sizeof second);
        seal_begin(&seal, known.self.key, TRANSFER_MAGIC, SEAL_FROM_CLIENT, second + 8, nonce);
        seal_tag(&seal, good, sizeof good - SEAL_TAG_SIZE, nonce + SEAL_NONCE_SIZE);
        memcpy(bytes, good, sizeof bytes);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(send(again, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
        assert_true(recv(again, &byte, 1, 0) <= 0);
        close(again);
    }
    close(fd);
    assert_int_equal(copied(stage, 2), 0);
    stage_free(stage);
}

/* A server that does not know the key is not believed. */
static void test_impostor(void **unused)
{
    struct stage *stage = stage_new();
    stage->self.key[0]++;
    transfer_serve_as(stage->server, &stage->self);
    assert_int_equal(get(stage), PHX_ERROR_IO);
    stage_free(stage);
}

/* Copies have a quota together; replacing one needs no more than before. */
static void test_quota(void **unused)
{
    struct stage *stage = stage_new();
    transfer_serve_quota(stage->server, 2 * (LEN + 4096));
    stage->request.keep_attempt = UINT32_MAX;
    for (uint64_t step = 1; step <= 4; step++)
        assert_int_equal(put(stage, step), 0);
    assert_int_equal(copied(stage, 2), 1u << 3 | 1u << 4);
    stage->request.self.rank = stage->request.offer.rank = 3;
    assert_int_equal(put(stage, 5), PHX_ERROR_SPACE);
    stage->request.offer.len = UINT64_MAX / 4;
    assert_int_equal(put(stage, 5), PHX_ERROR_SPACE);
    assert_int_equal(copied(stage, 3), 0);
    stage_free(stage);
}

/* Another address of this machine than the one it was told leads nowhere. */
static void test_address(void **unused)
{
    struct stage *stage = stage_new();
    struct transfer_server *server;
    struct phx_error error;
    assert_int_equal(get(stage), 0);
    stage->peer.address = "127.0.0.2";
    assert_int_equal(get(stage), PHX_ERROR_IO);
    assert_int_equal(transfer_serve_new(stage->gang.dir, "192.0.2.1", &server, &error), PHX_ERROR_IO);
    stage_free(stage);
}

static void test_nobody(void **unused)
{
    struct stage *stage = stage_new();
    stage->peer.port = 0;
    assert_int_equal(get(stage), PHX_ERROR_IO);
    stage->peer.address = "nowhere at all";
    stage->peer.port = 1;
    assert_int_equal(get(stage), PHX_ERROR_IO);
    atomic_bool stop = true;
    stage->peer = (struct transfer_peer){
        .address = "127.0.0.1", .port = transfer_serve_port(stage->server), .stop = &stop};
    assert_int_equal(get(stage), PHX_ERROR_IO);
    stage_free(stage);
}

/* Slower than it could be, on purpose: 3 MB at 20 MB per second. */
static void test_rate(void **unused)
{
    struct stage *stage = stage_new();
    stage->peer.rate = 20 * 1000 * 1000;
    int64_t begin_ms = gang_now_ms();
    assert_int_equal(get(stage), 0);
    assert_true(gang_now_ms() - begin_ms >= 130);
    stage->request.keep_attempt = UINT32_MAX;
    begin_ms = gang_now_ms();
    assert_int_equal(put(stage, 1), 0);
    assert_true(gang_now_ms() - begin_ms >= 130);
    stage_free(stage);
}

static void test_requests(void **unused)
{
    struct transfer_request request = {.type = TRANSFER_PUT,
                                       .self = {.gang = 8, .attempt = 7, .rank = 1, .world = 2},
                                       .offer = {.step = 9, .rank = 1, .world = 2, .place = OFFER_COPY},
                                       .keep_step = 10,
                                       .keep_attempt = 11},
                            back;
    uint8_t bytes[TRANSFER_REQUEST_SIZE];
    transfer_put_request(&request, bytes);
    assert_true(transfer_get_request(bytes, &back));
    assert_true(back.type == TRANSFER_PUT && back.self.attempt == 7 && back.self.gang == 8 &&
                back.self.rank == 1 && back.self.world == 2 && back.offer.step == 9 && back.keep_step == 10 &&
                back.keep_attempt == 11);
    request.offer.place = OFFER_STORED;
    transfer_put_request(&request, bytes);
    assert_false(transfer_get_request(bytes, &back));
    request.offer.place = OFFER_COPY;
    request.packed = true;
    transfer_put_request(&request, bytes);
    assert_true(transfer_get_request(bytes, &back) && back.packed && back.type == TRANSFER_PUT);
    request.type = TRANSFER_GET;
    transfer_put_request(&request, bytes);
    assert_false(transfer_get_request(bytes, &back));
    request.packed = false;
    request.type = TRANSFER_FRONT;
    request.front = 12;
    transfer_put_request(&request, bytes);
    assert_true(transfer_get_request(bytes, &back) && back.type == TRANSFER_FRONT && back.front == 12);
    request.type = (enum transfer_type)5;
    transfer_put_request(&request, bytes);
    assert_false(transfer_get_request(bytes, &back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_damaged_on_the_way),
        cmocka_unit_test(test_changed_on_the_way),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_impostor),
        cmocka_unit_test(test_quota),
        cmocka_unit_test(test_address),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_delta),
        cmocka_unit_test(test_delta_on_damage),
        cmocka_unit_test(test_mapped_slots),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_packed_refused),
        cmocka_unit_test(test_packed_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
