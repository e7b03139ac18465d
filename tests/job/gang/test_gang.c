/* Whole gangs of local processes: joining, barriers, keys, heartbeats, loss, fence, drain, agent restarts,
 * checkpoints.
 */
#include "job/gang.h"

#include <fcntl.h>

#include "job/gang/rendezvous.h"

#define WORLD   5
#define FOREVER (-1)

static int talk(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    char key[32], value[64];
    size_t len;
    uint32_t rank = phx_rank(ctx), world = phx_world_size(ctx);
    EXPECT(world == WORLD && phx_attempt(ctx) == 0);
    EXPECT(phx_kv_get(ctx, "absent", value, sizeof value, &len, 0, &error) == PHX_ERROR_NONE);
    EXPECT(phx_kv_get(ctx, "absent", value, sizeof value, &len, 20, &error) == PHX_ERROR_TIMEOUT);
    for (int round = 0; round < 50; round++) {
        snprintf(key, sizeof key, "round-%d-rank-%u", round, rank);
        EXPECT(phx_kv_put(ctx, key, key, strlen(key), &error) == 0);
        snprintf(key, sizeof key, "round-%d-rank-%u", round, (rank + 1) % world);
        EXPECT(phx_kv_get(ctx, key, value, sizeof value, &len, FOREVER, &error) == 0);
        EXPECT(len == strlen(key) && memcmp(key, value, len) == 0);
        EXPECT(phx_kv_get(ctx, key, value, 3, &len, FOREVER, &error) == PHX_ERROR_SPACE &&
               len == strlen(key));
        EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    }
    char *large = malloc(PHX_VALUE_MAX);
    memset(large, 'a' + (int)rank, PHX_VALUE_MAX);
    snprintf(key, sizeof key, "large-%u", rank);
    EXPECT(phx_kv_put(ctx, key, large, PHX_VALUE_MAX, &error) == 0);
    snprintf(key, sizeof key, "large-%u", (rank + 2) % world);
    EXPECT(phx_kv_get(ctx, key, large, PHX_VALUE_MAX, &len, FOREVER, &error) == 0 && len == PHX_VALUE_MAX);
    EXPECT(large[0] == 'a' + (char)((rank + 2) % world) && large[len - 1] == large[0]);
    free(large);
    struct phx_peer peer;
    for (uint32_t other = 0; other < world; other++)
        EXPECT(phx_peer(ctx, other, &peer, &error) == 0 && strcmp(peer.address, "127.0.0.1") == 0);
    EXPECT(phx_peer(ctx, world, &peer, &error) == PHX_ERROR_INVALID);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_talk(void **unused)
{
    struct gang gang;
    gang_init(&gang, WORLD);
    gang_fork_all(&gang, talk, NULL);
    gang_expect_exits(&gang, 0);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        assert_true(gang.joins[rank] == 1 && gang.leaves[rank] == 1);
    gang_done(&gang);
}

static int take_steps(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    struct timespec start, now;
    uint64_t step = 0;
    phx_set_total_steps(ctx, 1000000);
    clock_gettime(CLOCK_MONOTONIC, &start);
    do { /* as fast as possible for half a second, or longer where that is no time */
        struct phx_metric metric = {"loss", 1.0 / (double)++step};
        EXPECT(phx_step(ctx, step, &metric, 1, &error) == 0);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (step < 200 ||
             (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 500);
    struct phx_metric wrong = {"two words", 0};
    EXPECT(phx_step(ctx, step, &wrong, 1, &error) == PHX_ERROR_INVALID);
    EXPECT(phx_kv_put(ctx, "steps", &step, sizeof step, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_heartbeat(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    int64_t began_ms = gang_now_ms();
    gang_fork_all(&gang, take_steps, NULL);
    gang_until(&gang, gang.step_frames[0] > 0);
    assert_true(gang.steps[0].step == 1); /* the first one is sent at once */
    gang_expect_exits(&gang, 0);
    /* 20 per second and the ends: at least the first and one half a second later */
    assert_in_range(gang.step_frames[0], 2, 5 + (gang_now_ms() - began_ms) / 50);
    assert_true(gang.steps[0].step > 100 && gang.steps[0].total == 1000000);
    assert_string_equal(gang.steps[0].metrics[0].name, "loss"); /* and the last one too */
    assert_true(gang.steps[0].metrics[0].value == 1.0 / (double)gang.steps[0].step);
    gang_done(&gang);
}

struct loss {
    uint32_t victim;
    bool in_barrier; /* or in a wait for a key */
};

static int be_lost(void *argument)
{
    const struct loss *loss = argument;
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    size_t len;
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    EXPECT(phx_step(ctx, 1, NULL, 0, &error) == 0);
    if (phx_rank(ctx) == loss->victim)
        for (;;)
            pause();
    int status = loss->in_barrier ? phx_barrier(ctx, FOREVER, &error)
                                  : phx_kv_get(ctx, "never", NULL, 0, &len, FOREVER, &error);
    EXPECT(status == PHX_ERROR_PEER && error.rank == (int)loss->victim);
    struct pollfd fd = {.fd = phx_failure_fd(ctx), .events = POLLIN};
    EXPECT(poll(&fd, 1, 0) == 1 && phx_check(ctx, &error) == PHX_ERROR_PEER);
    EXPECT(phx_barrier(ctx, FOREVER, &error) == PHX_ERROR_PEER);
    EXPECT(phx_leave(ctx, &error) == PHX_ERROR_PEER);
    return 75;
}

/* Each rank may be the victim, rank 0 too. Everybody learns of it, and reports the victim only. */
static void test_loss(void **unused)
{
    for (uint32_t victim = 0; victim < WORLD; victim++) {
        struct gang gang;
        struct loss loss = {victim, victim % 2 == 0};
        gang_init(&gang, WORLD);
        gang_fork_all(&gang, be_lost, &loss);
        for (uint32_t rank = 0; rank < WORLD; rank++)
            gang_until(&gang, gang.step_frames[rank] > 0);
        kill(gang.pids[victim], SIGKILL);
        gang_until(&gang, gang_ended(&gang));
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            assert_int_equal(gang_exit(&gang, rank), rank == victim ? 256 + SIGKILL : 75);
            for (uint32_t other = 0; other < WORLD; other++)
                assert_int_equal(gang.gone[rank][other], rank != victim && other == victim);
            assert_int_equal(gang.leaves[rank], 0);
        }
        gang_done(&gang);
    }
}

static int leave_early(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    if (phx_rank(ctx) == 2) {
        EXPECT(phx_leave(ctx, &error) == 0);
        return 0;
    }
    EXPECT(phx_barrier(ctx, FOREVER, &error) == PHX_ERROR_PEER && error.rank == 2);
    EXPECT(phx_check(ctx, &error) == 0); /* nobody is lost */
    EXPECT(phx_kv_put(ctx, "key", "value", 5, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_leave_early(void **unused)
{
    struct gang gang;
    gang_init(&gang, WORLD);
    gang_fork_all(&gang, leave_early, NULL);
    gang_expect_exits(&gang, 0);
    gang_done(&gang);
}

static int wait_for_fence(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    EXPECT(phx_step(ctx, 1, NULL, 0, &error) == 0);
    struct pollfd fd = {.fd = phx_failure_fd(ctx), .events = POLLIN};
    EXPECT(poll(&fd, 1, GANG_PATIENCE_MS) == 1);
    EXPECT(phx_check(ctx, &error) == PHX_ERROR_FENCED);
    EXPECT(phx_checkpoint_save(ctx, 5, "x", 1, &error) == PHX_ERROR_FENCED);
    EXPECT(phx_step(ctx, 2, NULL, 0, &error) == PHX_ERROR_FENCED);
    EXPECT(phx_barrier(ctx, FOREVER, &error) == PHX_ERROR_FENCED);
    phx_close(ctx);
    return 0;
}

static int join_fenced(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = NULL;
    EXPECT(phx_join(NULL, &ctx, &error) == PHX_ERROR_FENCED && ctx == NULL);
    return 0;
}

static void test_fence(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    gang_fork_all(&gang, wait_for_fence, NULL);
    gang_until(&gang, gang.step_frames[0] > 0);
    gang_send_all(&gang, &(struct jobwire_message){.type = JOBWIRE_FENCED, .fenced = {1}});
    gang_expect_exits(&gang, 0);
    gang_fork(&gang, 0, join_fenced, NULL); /* as attempt 0 ... */
    gang.attempt = 1;                       /* ... of an agent that has moved on */
    gang_expect_exits(&gang, 0);
    gang_done(&gang);
}

static int wait_for_drain(void *unused)
{
    struct phx_error error = {0};
    struct phx_drain drain = {0};
    phx_context *ctx = gang_join();
    EXPECT(phx_notice(ctx, &drain) == 0);
    EXPECT(phx_step(ctx, 1, NULL, 0, &error) == 0);
    for (uint64_t step = 2; phx_notice(ctx, &drain) == 0; step++)
        EXPECT(phx_step(ctx, step, NULL, 0, &error) == 0);
    EXPECT(drain.reason == PHX_DRAIN_PREEMPTION && drain.remaining_ms > 0 && drain.remaining_ms <= 30000);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_drain(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    gang_fork_all(&gang, wait_for_drain, NULL);
    gang_until(&gang, gang.step_frames[0] > 0);
    struct jobwire_message drain = {.type = JOBWIRE_DRAIN};
    drain.drain = (struct jobwire_drain){.deadline_ms = 30000, .reason = JOBWIRE_DRAIN_PREEMPTION};
    gang_send_all(&gang, &drain);
    gang_expect_exits(&gang, 0);
    gang_done(&gang);
}

static int wait_for_tables(void *unused)
{
    struct phx_error error = {0};
    char name[64] = "";
    phx_context *ctx = gang_join();
    EXPECT(phx_slice_tables(ctx, name, sizeof name) == 0 && name[0] == '\0');
    EXPECT(phx_slice_get(ctx, &(struct phx_slice){0}) == 0);
    for (uint64_t step = 1; phx_slice_tables(ctx, NULL, 0) < 2; step++)
        EXPECT(phx_step(ctx, step, NULL, 0, &error) == 0);
    EXPECT(phx_slice_tables(ctx, name, 6) == 2 && strcmp(name, "4x4x8") == 0); /* cut */
    EXPECT(phx_slice_tables(ctx, name, sizeof name) == 2 && strcmp(name, "4x4x8 without x5") == 0);
    struct phx_slice slice;
    EXPECT(phx_slice_get(ctx, &slice) == 1 && slice.tables == 2 && slice.without == 1u << 5);
    EXPECT(slice.extent[0] == 4 && slice.extent[2] == 8 && !slice.twisted && slice.chip_count == 4);
    EXPECT(phx_slice_wait(ctx, 0, 0, &slice, &error) == 0 && slice.tables == 2);
    EXPECT(phx_slice_wait(ctx, 2, 0, &slice, &error) == PHX_ERROR_TIMEOUT);
    EXPECT(phx_step(ctx, 1000000, NULL, 0, &error) == 0); /* now others come */
    EXPECT(phx_slice_wait(ctx, 2, -1, &slice, &error) == 0 && slice.tables == 3 && slice.without == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_tables(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    gang_fork_all(&gang, wait_for_tables, NULL);
    gang_until(&gang, gang.step_frames[0] > 0);
    struct jobwire_message message = {.type = JOBWIRE_TABLES, .tables = {.number = 2}};
    snprintf(message.tables.name, sizeof message.tables.name, "4x4x8 without x5");
    gang_send_all(&gang, &message);
    gang_until(&gang, gang.steps[0].step == 1000000);
    message.tables.number = 3;
    snprintf(message.tables.name, sizeof message.tables.name, "4x4x8");
    gang_send_all(&gang, &message);
    gang_expect_exits(&gang, 0);
    gang_done(&gang);
}

/* The limit is passed while the agent is there but has no word of a controller; a wait without a limit ends
 * with the answer to this opening, and with no earlier word. */
static int wait_for_an_answer(void *unused)
{
    struct phx_error error = {0};
    struct phx_slice slice;
    phx_context *ctx = gang_join();
    EXPECT(phx_slice_enter(ctx, 20, &error) == PHX_ERROR_TIMEOUT);
    EXPECT(strstr(error.message, "rank 0") != NULL && strstr(error.message, "has the job a slice?") != NULL);
    EXPECT(phx_step(ctx, 1, NULL, 0, &error) == 0);
    EXPECT(phx_slice_wait(ctx, 0, FOREVER, &slice, &error) == 0);
    EXPECT(phx_slice_enter(ctx, 20, &error) == PHX_ERROR_TIMEOUT);
    EXPECT(strstr(error.message, "no controller has answered") != NULL);
    EXPECT(phx_step(ctx, 2, NULL, 0, &error) == 0);
    EXPECT(phx_slice_enter(ctx, FOREVER, &error) == 0);
    EXPECT(phx_slice_get(ctx, &slice) == 1 && slice.tables == 8);
    phx_slice_wrong(ctx, 1u << 5);
    EXPECT(phx_slice_wait(ctx, 8, FOREVER, &slice, &error) == 0 && slice.without == 1u << 5);
    phx_slice_loaded(ctx, slice.tables, slice.without);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_a_session_waits_for_its_answer(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    gang_fork_all(&gang, wait_for_an_answer, NULL);
    gang_until(&gang, gang.steps[0].step == 1);
    uint64_t first = gang.routes[0].session;
    assert_true(first > 0 && !gang.routes[0].open); /* it is closed after the failure */
    struct jobwire_message message = {.type = JOBWIRE_TABLES, .tables = {.number = 7, .session = first}};
    snprintf(message.tables.name, sizeof message.tables.name, "4x4x8");
    gang_send_all(&gang, &message);
    gang_until(&gang, gang.steps[0].step == 2);
    gang_until(&gang, gang.routes[0].open);
    assert_true(gang.routes[0].session > first && gang.routes[0].tables == 0);
    gang_send_all(&gang, &message); /* no answer to this session */
    message.tables.number = 8;
    gang_send_all(&gang, &message);
    gang_poll(&gang, 20);
    assert_true(gang.pids[0] != 0 && gang.routes[0].tables == 0);
    message.tables.session = gang.routes[0].session;
    gang_send_all(&gang, &message);
    gang_until(&gang, gang.routes[0].wrong == 1u << 5); /* it asks for tables without that switch */
    assert_int_equal(gang.routes[0].tables, 0);
    message.tables.number = 9;
    snprintf(message.tables.name, sizeof message.tables.name, "4x4x8 without x5");
    gang_send_all(&gang, &message);
    gang_until(&gang, gang.routes[0].tables == 9);
    assert_int_equal(gang.routes[0].wrong, 1u << 5); /* it still sees it */
    gang_expect_exits(&gang, 0);
    gang_done(&gang);
}

static int enter_without_an_agent(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    EXPECT(phx_step(ctx, 1, NULL, 0, &error) == 0);
    while (phx_slice_enter(ctx, 20, &error) == PHX_ERROR_TIMEOUT &&
           strstr(error.message, "its agent") == NULL)
        ;
    EXPECT(error.code == PHX_ERROR_TIMEOUT);
    phx_close(ctx);
    return 0;
}

static void test_an_agent_that_is_gone_is_named(void **unused)
{
    struct gang gang;
    gang_init(&gang, 1);
    gang_fork_all(&gang, enter_without_an_agent, NULL);
    gang_until(&gang, gang.step_frames[0] > 0);
    gang_stop_agent(&gang);
    gang_expect_exits(&gang, 0);
    gang_done(&gang);
}

static int outlive_agent(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    EXPECT(phx_step(ctx, 1, NULL, 0, &error) == 0);
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    EXPECT(phx_checkpoint_save(ctx, 7, "seven", 5, &error) == 0); /* perhaps while there is no agent */
    EXPECT(phx_checkpoint_wait(ctx, 7, FOREVER, &error) == 0);
    EXPECT(phx_step(ctx, 7, NULL, 0, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_agent_restart(void **unused)
{
    struct gang gang;
    gang_init(&gang, WORLD);
    gang.hold_commits = true;
    gang_fork_all(&gang, outlive_agent, NULL);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        gang_until(&gang, gang.step_frames[rank] > 0);
    gang_stop_agent(&gang);
    gang_poll(&gang, 50);
    gang.hold_commits = false;
    memset(gang.saved, 0, sizeof gang.saved); /* the new agent knows nothing */
    gang_listen(&gang);
    gang_expect_exits(&gang, 0);
    assert_int_equal(gang.commit_step, 7);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        assert_int_equal(gang.joins[rank], 2);
        assert_int_equal(gang.steps[rank].step, 7);
        assert_int_equal(gang.leaves[rank], 1);
    }
    gang_done(&gang);
}

static int come_and_go(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    EXPECT(phx_barrier(ctx, FOREVER, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

/* An answer may be lost with an agent that dies, so it is asked for again. */
static void test_an_agent_that_does_not_answer_is_asked_again(void **unused)
{
    struct gang gang;
    gang_init(&gang, WORLD);
    gang.unheard = WORLD;
    gang_fork_all(&gang, come_and_go, NULL);
    gang_until(&gang, gang.unheard == 0);
    gang_expect_exits(&gang, 0);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        assert_int_equal(gang.joins[rank], 1); /* that was answered */
    gang_done(&gang);
}

/* ---- strangers at the rendezvous ---- */

static size_t accept_some(int listener, int *ret_fds, size_t cap)
{
    size_t count = 0;
    while (count < cap && (ret_fds[count] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        count++;
    return count;
}

/* Another program listens at rank 0's address, takes connections, and says nothing; then it is gone. */
static void test_a_stranger_that_says_nothing_is_left(void **unused)
{
    struct gang gang;
    size_t calls = 0;
    int fds[4];
    gang_init(&gang, 2);
    assert_int_equal(listen(gang.port_fd, 8), 0);
    assert_int_equal(fcntl(gang.port_fd, F_SETFL, O_NONBLOCK), 0);
    gang_fork(&gang, 1, come_and_go, NULL);
    gang_until(&gang, (calls += accept_some(gang.port_fd, fds + calls, 4 - calls)) >= 2);
    shutdown(gang.port_fd, SHUT_RDWR); /* rank 1 has inherited the descriptor */
    for (size_t i = 0; i < calls; i++)
        close(fds[i]);
    gang_fork(&gang, 0, come_and_go, NULL);
    gang_expect_exits(&gang, 0);
    gang_done(&gang);
}

static int dial(const struct gang *gang)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)gang->port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Reads the next frame of the coordinator; 0 when it closes. */
static size_t next_frame(int fd, uint8_t *frame, size_t cap, struct rendezvous_message *ret_message)
{
    size_t used = 0, len = 0;
    while (rendezvous_decode(frame, len, RENDEZVOUS_BODY_MAX, ret_message, &used) == 0) {
        ssize_t got = recv(fd, frame + len, len < 8 ? 8 - len : cap - len, 0);
        if (got <= 0)
            return 0;
        len += (size_t)got;
    }
    return used;
}

/* Answers the coordinator's nonce as a rank with the key of this attempt would. */
static void put_hello(struct rendezvous_message hello, const uint8_t *key, const uint8_t *nonce,
                      uint8_t frame[4096])
{
    uint8_t value[SEAL_NONCE_SIZE + RENDEZVOUS_NAME_SIZE_MAX] = "my own nonce";
    struct seal seal;
    hello.type = RENDEZVOUS_HELLO;
    hello.value = value;
    hello.value_len = (uint32_t)(SEAL_NONCE_SIZE + rendezvous_put_name(&(struct rendezvous_name){.name = "x"},
                                                                       value + SEAL_NONCE_SIZE));
    seal_begin(&seal, key, RENDEZVOUS_PURPOSE, SEAL_FROM_CLIENT, nonce, value);
    rendezvous_encode(&hello, frame);
    rendezvous_seal(&seal, frame, rendezvous_size(&hello));
}

/* Connects, and waits for the coordinator's nonce. */
static int meet(struct gang *gang, uint8_t ret_nonce[SEAL_NONCE_SIZE])
{
    uint8_t frame[4096];
    struct rendezvous_message message;
    int fd = dial(gang);
    assert_true(fd >= 0 && next_frame(fd, frame, sizeof frame, &message) > 0);
    assert_int_equal(message.type, RENDEZVOUS_CHALLENGE);
    assert_int_equal(message.value_len, SEAL_NONCE_SIZE);
    memcpy(ret_nonce, message.value, SEAL_NONCE_SIZE);
    return fd;
}

/* Sends bytes as the first frame. Returns the answer's type, and its status; 0 when the coordinator just
 * closes. */
static uint16_t answer_to(int fd, const uint8_t *frame, size_t size, uint32_t *ret_status)
{
    uint8_t bytes[4096];
    struct rendezvous_message answer = {0};
    (void)!send(fd, frame, size, MSG_NOSIGNAL);
    size_t got = next_frame(fd, bytes, sizeof bytes, &answer);
    close(fd);
    *ret_status = answer.status;
    return got == 0 ? 0 : answer.type;
}

static size_t frame_size(const uint8_t *frame)
{
    return RENDEZVOUS_HEADER_SIZE + frame[0] + 256u * frame[1] + RENDEZVOUS_TAG_SIZE;
}

/* Sends a HELLO with the key of its attempt; as answer_to. */
static uint16_t greet(struct gang *gang, struct rendezvous_message hello, uint32_t *ret_status)
{
    uint8_t frame[4096], nonce[SEAL_NONCE_SIZE], key[SEAL_KEY_SIZE];
    int fd = meet(gang, nonce);
    gang_key(hello.attempt, key);
    put_hello(hello, key, nonce, frame);
    return answer_to(fd, frame, frame_size(frame), ret_status);
}

static int wait_for_drained_hub(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    EXPECT(phx_step(ctx, 1, NULL, 0, &error) == 0);
    char byte;
    size_t len; /* rank 0 says when it is over */
    while (phx_rank(ctx) == 0 && phx_notice(ctx, NULL) == 0)
        EXPECT(phx_kv_get(ctx, "over", &byte, 1, &len, 5, &error) == PHX_ERROR_TIMEOUT);
    if (phx_rank(ctx) == 0)
        EXPECT(phx_kv_put(ctx, "over", "x", 1, &error) == 0);
    EXPECT(phx_kv_get(ctx, "over", &byte, 1, &len, FOREVER, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

/* A process that knows all but the key is not admitted, whatever it sends: no HELLO, a HELLO of a rank again,
 * another key, every bit of a HELLO changed, cut frames, giant lengths. */
static void forge(struct gang *gang, struct rendezvous_message hello)
{
    uint8_t frame[4096], bytes[4096], nonce[SEAL_NONCE_SIZE], key[SEAL_KEY_SIZE];
    uint32_t status;
    gang_key(hello.attempt, key);
    int fd = meet(gang, nonce);
    put_hello(hello, key, nonce, frame); /* a good one, but for another connection */
    close(fd);
    size_t size = frame_size(frame);
    assert_int_equal(answer_to(meet(gang, nonce), frame, size, &status), RENDEZVOUS_REJECT);
    for (size_t i = 0; i < sizeof key; i += 5) { /* other keys */
        fd = meet(gang, nonce);
        key[i] ^= 1;
        put_hello(hello, key, nonce, frame);
        key[i] ^= 1;
        assert_int_equal(answer_to(fd, frame, size, &status), RENDEZVOUS_REJECT);
        assert_int_equal(status, -PHX_ERROR_INVALID);
    }
    for (size_t bit = 32; bit < size * 8; bit += 29) { /* behind the length, which would only be awaited */
        fd = meet(gang, nonce);
        put_hello(hello, key, nonce, bytes);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        uint16_t answer = answer_to(fd, bytes, size, &status);
        assert_true(answer == 0 || answer == RENDEZVOUS_REJECT);
    }
    static const uint16_t types[] = {RENDEZVOUS_ARRIVE, RENDEZVOUS_PUT,   RENDEZVOUS_GET,  RENDEZVOUS_OFFERS,
                                     RENDEZVOUS_HELD,   RENDEZVOUS_TABLE, RENDEZVOUS_LEAVE};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) { /* no HELLO first */
        struct rendezvous_message other = {.type = types[i], .rank = 1, .world = 2, .attempt = 3};
        rendezvous_encode(&other, bytes);
        assert_int_equal(answer_to(meet(gang, nonce), bytes, rendezvous_size(&other), &status), 0);
    }
    memset(bytes, 0xff, 8); /* 4 GiB */
    assert_int_equal(answer_to(meet(gang, nonce), bytes, 8, &status), 0);
}

static void test_strangers(void **unused)
{
    struct gang gang;
    uint32_t status = 0;
    static const uint8_t key[] = "default/test";
    struct rendezvous_message hello = {
        .rank = 1, .world = 2, .attempt = 3, .key = key, .key_len = sizeof key - 1};
    gang_init(&gang, 2);
    gang.attempt = 3;
    gang_fork(&gang, 0, wait_for_drained_hub, NULL);
    int probe = -1;
    gang_until(&gang, gang.joins[0] > 0 && (probe = dial(&gang)) >= 0);
    assert_true(send(probe, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL) == 18);
    struct rendezvous_message wrong = hello;
    wrong.attempt = 2; /* an old process that came back */
    assert_int_equal(greet(&gang, wrong, &status), RENDEZVOUS_REJECT);
    assert_int_equal(status, -PHX_ERROR_FENCED);
    wrong.attempt = 4; /* a new one that finds the old coordinator: it comes again */
    assert_int_equal(greet(&gang, wrong, &status), 0);
    wrong = hello;
    wrong.world = 3;
    assert_int_equal(greet(&gang, wrong, &status), RENDEZVOUS_REJECT);
    wrong = hello;
    wrong.rank = 0;
    assert_int_equal(greet(&gang, wrong, &status), RENDEZVOUS_REJECT);
    wrong = hello;
    wrong.key_len--;
    assert_int_equal(greet(&gang, wrong, &status), RENDEZVOUS_REJECT);
    forge(&gang, hello);
    int many[200]; /* more than may wait at the door */
    for (size_t i = 0; i < 200; i++)
        many[i] = dial(&gang);
    gang_fork(&gang, 1, wait_for_drained_hub, NULL);
    gang_until(&gang, gang.step_frames[0] > 0 && gang.step_frames[1] > 0);
    assert_int_equal(greet(&gang, hello, &status), RENDEZVOUS_REJECT); /* the rank is here already */
    struct jobwire_message drain = {.type = JOBWIRE_DRAIN, .drain = {.deadline_ms = 1000, .reason = 1}};
    gang_send_all(&gang, &drain);
    gang_expect_exits(&gang, 0);
    for (size_t i = 0; i < 200; i++)
        if (many[i] >= 0)
            close(many[i]);
    close(probe);
    gang_done(&gang);
}

/* ---- checkpoints ---- */

static int begin_training(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    char state[32];
    size_t len;
    uint64_t step;
    EXPECT(phx_checkpoint_restore(ctx, state, sizeof state, &len, &step, &error) == PHX_ERROR_NONE);
    for (step = 10; step <= 50; step += 10) {
        snprintf(state, sizeof state, "rank %u step %u", phx_rank(ctx), (unsigned)step);
        if (step == 50 && phx_rank(ctx) == 1) { /* this checkpoint stays incomplete */
            EXPECT(phx_step(ctx, 50, NULL, 0, &error) == 0);
            pause();
        }
        EXPECT(phx_checkpoint_save(ctx, step, state, strlen(state), &error) == 0);
        EXPECT(phx_checkpoint_save(ctx, step, state, strlen(state), &error) == PHX_ERROR_INVALID);
        if (step < 50)
            EXPECT(phx_checkpoint_wait(ctx, step, FOREVER, &error) == 0);
    }
    EXPECT(phx_checkpoint_wait(ctx, 50, FOREVER, &error) == PHX_ERROR_PEER);
    return 75;
}

static int go_on_training(void *unused)
{
    struct phx_error error = {0};
    phx_context *ctx = gang_join();
    char state[32], expected[32];
    size_t len = 0;
    uint64_t step = 0;
    EXPECT(phx_attempt(ctx) == 1);
    EXPECT(phx_checkpoint_restore(ctx, state, 3, &len, &step, &error) == PHX_ERROR_SPACE && len > 3);
    EXPECT(phx_checkpoint_find(ctx, &len, &step, &error) == 0 && step == 40);
    EXPECT(phx_checkpoint_restore(ctx, state, sizeof state, &len, &step, &error) == 0 && step == 40);
    snprintf(expected, sizeof expected, "rank %u step 40", phx_rank(ctx));
    EXPECT(len == strlen(expected) && memcmp(state, expected, len) == 0);
    EXPECT(phx_checkpoint_save(ctx, 50, "again", 5, &error) == 0);
    EXPECT(phx_checkpoint_wait(ctx, 50, FOREVER, &error) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static bool exists(const struct gang *gang, unsigned step, unsigned attempt, unsigned rank)
{
    char path[256];
    snprintf(path, sizeof path, "%s/checkpoints/step-%u/attempt-%u-rank-%u.shard", gang->dir, step, attempt,
             rank);
    return access(path, F_OK) == 0;
}

static void test_checkpoints(void **unused)
{
    struct gang gang;
    gang_init(&gang, 3);
    gang_fork_all(&gang, begin_training, NULL);
    gang_until(&gang, gang.steps[1].step == 50 && gang.saved[0] == 51 && gang.saved[2] == 51);
    gang_until(&gang, !exists(&gang, 20, 0, 0)); /* its rank removes it when it hears of the commit */
    kill(gang.pids[1], SIGKILL);
    gang_until(&gang, gang_ended(&gang));
    assert_int_equal(gang_exit(&gang, 0), 75);
    assert_int_equal(gang.commit_step, 40); /* step 50 misses a shard */
    assert_true(exists(&gang, 50, 0, 0) && !exists(&gang, 50, 0, 1));
    assert_true(exists(&gang, 30, 0, 0) && !exists(&gang, 20, 0, 0) && !exists(&gang, 10, 0, 0));
    gang_next_attempt(&gang);
    gang_fork_all(&gang, go_on_training, NULL);
    gang_expect_exits(&gang, 0);
    assert_true(gang.commit_step == 50 && gang.commit_attempt == 1);
    for (unsigned rank = 0; rank < 3; rank++)
        assert_true(exists(&gang, 50, 1, rank) && exists(&gang, 40, 0, rank) && !exists(&gang, 30, 0, rank));
    gang_done(&gang);
}

/* ---- without Phalanx ---- */

static void leave_phalanx(void)
{
    char number[16];
    int port = (int)strtol(strrchr(getenv("PHX_RENDEZVOUS"), ':') + 1, NULL, 10) - 1;
    setenv("RANK", getenv("PHX_RANK"), 1);
    setenv("WORLD_SIZE", getenv("PHX_WORLD_SIZE"), 1);
    setenv("MASTER_ADDR", "localhost", 1);
    snprintf(number, sizeof number, "%d", port);
    setenv("MASTER_PORT", number, 1);
    static const char *const ours[] = {"PHX_AGENT_SOCKET", "PHX_RANK",    "PHX_WORLD_SIZE",
                                       "PHX_RENDEZVOUS",   "PHX_ATTEMPT", "PHX_TASK_UID"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        unsetenv(ours[i]);
}

static int stand_alone(void *argument)
{
    const uint64_t *from = argument;
    struct phx_error error = {0};
    leave_phalanx();
    phx_context *ctx = gang_join();
    uint64_t state, step;
    size_t len;
    int status = phx_checkpoint_restore(ctx, &state, sizeof state, &len, &step, &error);
    EXPECT(*from == 0 ? status == PHX_ERROR_NONE : status == 0 && step == *from && state == *from * 2);
    EXPECT(phx_attempt(ctx) == *from / 20);
    for (step = *from + 10; step <= *from + 20; step += 10) {
        state = step * 2;
        EXPECT(phx_checkpoint_save(ctx, step, &state, sizeof state, &error) == 0);
    }
    EXPECT(phx_checkpoint_wait(ctx, *from + 20, FOREVER, &error) == 0);
    EXPECT(phx_step(ctx, step, NULL, 0, &error) == 0 && phx_notice(ctx, NULL) == 0);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static int stand_alone_damaged(void *unused)
{
    struct phx_error error = {0};
    uint64_t state, step;
    size_t len;
    leave_phalanx();
    phx_context *ctx = gang_join();
    EXPECT(phx_attempt(ctx) == 3);
    EXPECT(phx_checkpoint_restore(ctx, &state, sizeof state, &len, &step, &error) == 0);
    EXPECT(step == 50 && state == 100);
    EXPECT(phx_leave(ctx, &error) == 0);
    return 0;
}

static void test_stand_alone(void **unused)
{
    for (uint32_t world = 1; world <= 3; world += 2) {
        struct gang gang;
        gang_init(&gang, world);
        for (uint64_t from = 0; from <= 40; from += 20) {
            gang_fork_all(&gang, stand_alone, &from);
            gang_expect_exits(&gang, 0);
            gang_take_port(&gang);
        }
        gang_damage_shard(&gang, 60, 2, world - 1, GANG_FLIP_DATA);
        gang_fork_all(&gang, stand_alone_damaged, NULL);
        gang_expect_exits(&gang, 0);
        gang_done(&gang);
    }
}

static int join_incomplete(void *unused)
{
    struct phx_error error = {0};
    bool coordinator = strcmp(getenv("PHX_RANK"), "0") ==
                       0; /* gives up first, when rank 2 is there, or the machine very slow */
    struct phx_options options = {.size = sizeof options, .join_timeout_ms = coordinator ? 1000 : 3000};
    phx_context *ctx = NULL;
    EXPECT(phx_join(&options, &ctx, &error) == PHX_ERROR_TIMEOUT && ctx == NULL);
    if (coordinator)
        EXPECT(strstr(error.message, "1, 3") != NULL || strstr(error.message, "1, 2, 3") != NULL);
    return 0;
}

static void test_incomplete(void **unused)
{
    struct gang gang;
    gang_init(&gang, 4);
    gang_fork(&gang, 0, join_incomplete, NULL);
    gang_fork(&gang, 2, join_incomplete, NULL);
    gang_until(&gang, gang_ended(&gang));
    assert_true(gang_exit(&gang, 0) == 0 && gang_exit(&gang, 2) == 0);
    gang_done(&gang);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_talk),
        cmocka_unit_test(test_heartbeat),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_leave_early),
        cmocka_unit_test(test_fence),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_an_agent_that_does_not_answer_is_asked_again),
        cmocka_unit_test(test_a_stranger_that_says_nothing_is_left),
        cmocka_unit_test(test_agent_restart),
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_stand_alone),
        cmocka_unit_test(test_incomplete),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_a_session_waits_for_its_answer),
        cmocka_unit_test(test_an_agent_that_is_gone_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
