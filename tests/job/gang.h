/* gang.h - for tests of libphalanx: ranks as local processes, and a tiny agent with the controller's commit
 * rule.
 *
 * The agent runs in the test's own process, without a thread: gang_poll moves it. A test forks its ranks,
 * then polls until a condition holds (gang_until). One agent serves all ranks, as one machine would.
 */
#ifndef PHX_TESTS_JOB_GANG_H
#define PHX_TESTS_JOB_GANG_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <netinet/in.h>
#include <ftw.h>
#include <cmocka.h>

#include "job/link/wire.h"
#include "phalanx/phalanx.h"

#define GANG_MAX         16
#define GANG_PATIENCE_MS 120000 /* for what never comes; no test may depend on its length */

struct gang_client {
    int fd;
    bool joined, can_rejoin, spare;
    uint32_t rank, task, attempt; /* of its JOIN; task: its uid - 100 */
    uint8_t in[8192];
    size_t in_len;
};

struct gang {
    char dir[64], socket[96];
    uint32_t world, attempt;
    int listen_fd, port, port_fd;
    struct gang_client clients[GANG_MAX];
    /* By task; a task's rank is its own number until gang_rejoin moves it. */
    pid_t pids[GANG_MAX];
    int statuses[GANG_MAX]; /* of waitpid; valid when pid is 0 */
    uint32_t ranks[GANG_MAX], full_world, rejoin_flags;
    size_t spares_waiting;
    /* what the agent knows */
    bool has_commit, hold_commits;
    /* The agent has an object store, the folder "store"; with hold_moves it does not answer, with a reason it
     * fails; an old one brings a rank its own shard alone. */
    bool store, hold_moves, old_agent;
    const char *store_reason;
    size_t move_count;
    uint64_t commit_step;
    uint32_t commit_attempt;
    uint64_t saved[GANG_MAX]; /* newest step of each rank in this attempt, + 1 */
    struct jobwire_step steps[GANG_MAX];
    uint64_t first_steps[GANG_MAX]; /* of this attempt; valid when step_frames isn't 0 */
    size_t unheard;                 /* number of JOINs that the agent will not answer */
    size_t step_frames[GANG_MAX], joins[GANG_MAX], leaves[GANG_MAX], gone[GANG_MAX][GANG_MAX];
    size_t retries[GANG_MAX];
    char retry_reason[JOBWIRE_REASON_MAX]; /* the newest */
    struct jobwire_routes routes[GANG_MAX]; /* the newest word of each rank */
    const char *slice;                      /* name of its routing tables, number 1; NULL: none are told */
};

static inline int64_t gang_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Another port for rank 0. It stays bound here, without listening, so that the kernel gives it to nobody
 * else; with SO_REUSEADDR on both sides rank 0 can listen on it all the same (socket(7)). */
static inline void gang_take_port(struct gang *gang)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int on = 1;
    if (gang->port_fd >= 0)
        close(gang->port_fd);
    gang->port_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(gang->port_fd >= 0);
    assert_int_equal(setsockopt(gang->port_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(gang->port_fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(gang->port_fd, (struct sockaddr *)&address, &size), 0);
    gang->port = ntohs(address.sin_port);
}

static inline void gang_listen(struct gang *gang)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, gang->socket, strlen(gang->socket) + 1);
    unlink(gang->socket);
    gang->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(gang->listen_fd >= 0);
    assert_int_equal(bind(gang->listen_fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(gang->listen_fd, 64), 0);
}

/* The agent dies: its connections break, its socket is gone. */
static inline void gang_stop_agent(struct gang *gang)
{
    if (gang->listen_fd >= 0)
        close(gang->listen_fd);
    gang->listen_fd = -1;
    for (size_t i = 0; i < GANG_MAX; i++) {
        if (gang->clients[i].fd >= 0)
            close(gang->clients[i].fd);
        gang->clients[i] = (struct gang_client){.fd = -1};
    }
}

static inline void gang_init(struct gang *gang, uint32_t world)
{
    memset(gang, 0, sizeof *gang);
    gang->world = gang->full_world = world;
    for (uint32_t i = 0; i < GANG_MAX; i++)
        gang->ranks[i] = i;
    gang->listen_fd = gang->port_fd = -1;
    for (size_t i = 0; i < GANG_MAX; i++)
        gang->clients[i].fd = -1;
    snprintf(gang->dir, sizeof gang->dir, "/tmp/phalanx-test-XXXXXX");
    assert_non_null(mkdtemp(gang->dir));
    snprintf(gang->socket, sizeof gang->socket, "%s/agent", gang->dir);
    gang_take_port(gang);
    gang_listen(gang);
}

static inline int gang_remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    return remove(path);
}

static inline void gang_remove_tree(const char *path)
{
    nftw(path, gang_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void gang_reap(struct gang *gang, bool block)
{
    for (size_t rank = 0; rank < GANG_MAX; rank++) {
        int status;
        if (gang->pids[rank] > 0 && waitpid(gang->pids[rank], &status, block ? 0 : WNOHANG) > 0) {
            gang->statuses[rank] = status;
            gang->pids[rank] = 0;
        }
    }
}

static inline void gang_done(struct gang *gang)
{
    for (size_t rank = 0; rank < GANG_MAX; rank++)
        if (gang->pids[rank] > 0)
            kill(gang->pids[rank], SIGKILL);
    gang_reap(gang, true);
    gang_stop_agent(gang);
    close(gang->port_fd);
    gang_remove_tree(gang->dir);
}

static inline void gang_send(struct gang *gang, size_t client, const struct jobwire_message *message)
{
    uint8_t frame[JOBWIRE_FRAME_MAX];
    size_t len = jobwire_encode(message, frame, sizeof frame);
    assert_true(len > 0);
    (void)!send(gang->clients[client].fd, frame, len, MSG_NOSIGNAL); /* small: fits, or the task is gone */
}

static inline void gang_send_all(struct gang *gang, const struct jobwire_message *message)
{
    for (size_t i = 0; i < GANG_MAX; i++)
        if (gang->clients[i].fd >= 0 && gang->clients[i].joined)
            gang_send(gang, i, message);
}

/* The controller's rule: a step is committed when every rank of this attempt has saved it. */
static inline void gang_commit(struct gang *gang)
{
    uint64_t lowest = UINT64_MAX;
    for (uint32_t rank = 0; rank < gang->world; rank++)
        lowest = gang->saved[rank] < lowest ? gang->saved[rank] : lowest;
    if (lowest == 0 || gang->hold_commits ||
        (gang->has_commit && gang->commit_attempt == gang->attempt && lowest - 1 <= gang->commit_step))
        return;
    gang->has_commit = true;
    gang->commit_step = lowest - 1;
    gang->commit_attempt = gang->attempt;
    struct jobwire_message message = {.type = JOBWIRE_CHECKPOINT_COMMITTED};
    message.committed.step = gang->commit_step;
    message.committed.attempt = gang->commit_attempt;
    gang_send_all(gang, &message);
}

/* The key of an attempt. */
static inline void gang_key(uint32_t attempt, uint8_t ret_key[JOBWIRE_KEY_SIZE])
{
    memset(ret_key, 'k', JOBWIRE_KEY_SIZE);
    ret_key[0] = (uint8_t)attempt;
}

/* To the process of a task, which is a rank of this attempt. */
static inline void gang_send_rejoin(struct gang *gang, size_t client)
{
    uint32_t rank = gang->ranks[gang->clients[client].task];
    struct jobwire_message message = {.type = JOBWIRE_REJOIN};
    message.rejoin = (struct jobwire_rejoin){.attempt = gang->attempt,
                                             .rank = rank,
                                             .world = gang->world,
                                             .full_world = gang->full_world,
                                             .flags = gang->rejoin_flags,
                                             .has_restore = gang->has_commit,
                                             .restore_step = gang->commit_step,
                                             .restore_attempt = gang->commit_attempt};
    gang_key(gang->attempt, message.rejoin.key);
    snprintf(message.rejoin.rendezvous, sizeof message.rejoin.rendezvous, "127.0.0.1:%d", gang->port);
    if (rank < gang->world)
        gang_send(gang, client, &message);
}

/* `session`: which a rank has opened; 0: none. */
static inline void gang_send_tables(struct gang *gang, size_t client, uint64_t session)
{
    struct jobwire_message message = {.type = JOBWIRE_TABLES, .tables = {.number = 1, .session = session}};
    snprintf(message.tables.name, sizeof message.tables.name, "%s", gang->slice);
    gang_send(gang, client, &message);
}

static inline void gang_on_join(struct gang *gang, size_t client, const struct jobwire_join *join)
{
    struct gang_client *from = &gang->clients[client];
    struct jobwire_message answer = {.type = JOBWIRE_FENCED, .fenced = {gang->attempt}};
    from->task = (uint32_t)(join->task_uid - 100);
    from->can_rejoin = (join->flags & JOBWIRE_JOIN_CAN_REJOIN) != 0;
    from->spare = (join->flags & JOBWIRE_JOIN_SPARE) != 0;
    assert_true(from->task < GANG_MAX);
    if (from->spare) {
        from->joined = true;
        from->attempt = join->attempt;
        gang->spares_waiting++;
    } else if (join->attempt < gang->attempt && from->can_rejoin && gang->ranks[from->task] < gang->world) {
        gang_send_rejoin(gang, client);
        return;
    }
    if (from->spare || (join->attempt == gang->attempt && join->rank < gang->world &&
                        join->rank == gang->ranks[from->task] && join->world == gang->world)) {
        from->joined = true;
        from->rank = join->rank;
        from->attempt = join->attempt;
        gang->joins[join->rank] += !from->spare;
        answer = (struct jobwire_message){.type = JOBWIRE_WELCOME};
        answer.welcome.attempt = gang->attempt;
        answer.welcome.has_restore = gang->has_commit;
        answer.welcome.restore_step = gang->commit_step;
        answer.welcome.restore_attempt = gang->commit_attempt;
        gang_key(gang->attempt, answer.welcome.key);
    }
    gang_send(gang, client, &answer);
    if (gang->slice != NULL)
        gang_send_tables(gang, client, 0);
}

static inline bool gang_copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "r"), *out = in != NULL ? fopen(to, "r+") : NULL;
    out = in != NULL && out == NULL ? fopen(to, "w") : out;
    char bytes[4096];
    for (size_t len; out != NULL && (len = fread(bytes, 1, sizeof bytes, in)) > 0;)
        assert_int_equal(fwrite(bytes, 1, len, out), len);
    if (in != NULL)
        fclose(in);
    return out != NULL && fclose(out) == 0;
}

/* STORE and FETCH. */
static inline void gang_move(struct gang *gang, size_t client, const struct jobwire_message *asked)
{
    struct jobwire_message answer = {.type = asked->type == JOBWIRE_STORE ? JOBWIRE_STORED : JOBWIRE_FETCHED};
    char slot[128], object[192];
    gang->move_count++;
    if (gang->hold_moves)
        return;
    uint32_t copy_of = asked->slot.copy_of, rank = copy_of > 0 ? copy_of - 1 : gang->clients[client].rank;
    snprintf(slot, sizeof slot, "%s/memory/%s-%u.%u", gang->dir, copy_of > 0 ? "peer" : "rank", rank,
             asked->slot.slot);
    snprintf(object, sizeof object, "%s/store", gang->dir);
    mkdir(object, 0700);
    snprintf(object, sizeof object, "%s/store/step-%llu-attempt-%u-rank-%u", gang->dir,
             (unsigned long long)asked->slot.step, asked->slot.attempt, rank);
    answer.moved =
        (struct jobwire_moved){.step = asked->slot.step, asked->slot.attempt, asked->slot.slot, .bytes = 100};
    answer.moved.copy_of = gang->old_agent ? 0 : copy_of;
    bool store = asked->type == JOBWIRE_STORE;
    if (gang->store_reason != NULL)
        answer.moved.status = JOBWIRE_MOVE_FAILED;
    else if (!gang_copy_file(store ? slot : object, store ? object : slot))
        answer.moved.status = JOBWIRE_MOVE_MISSING;
    snprintf(answer.moved.reason, sizeof answer.moved.reason, "%s",
             gang->store_reason != NULL ? gang->store_reason : "");
    gang_send(gang, client, &answer);
}

static inline void gang_on_message(struct gang *gang, size_t client, const struct jobwire_message *message)
{
    uint32_t rank = gang->clients[client].rank;
    if (message->type == JOBWIRE_JOIN && gang->unheard > 0) {
        gang->unheard--;
        return;
    }
    if (message->type == JOBWIRE_JOIN) {
        gang_on_join(gang, client, &message->join);
        return;
    }
    assert_true(gang->clients[client].joined);
    if (gang->clients[client].attempt != gang->attempt)
        return; /* an old attempt's report */
    switch (message->type) {
    case JOBWIRE_STEP:
        gang->steps[rank] = message->step;
        if (gang->step_frames[rank]++ == 0)
            gang->first_steps[rank] = message->step.step;
        break;
    case JOBWIRE_SHARD_SAVED:
        if (message->shard_saved.step + 1 > gang->saved[rank])
            gang->saved[rank] = message->shard_saved.step + 1;
        gang_commit(gang);
        break;
    case JOBWIRE_PEER_GONE:
        assert_true(message->peer_gone.rank < gang->world);
        gang->gone[rank][message->peer_gone.rank]++;
        break;
    case JOBWIRE_RETRY:
        gang->retries[rank]++;
        memcpy(gang->retry_reason, message->retry.reason, sizeof gang->retry_reason);
        break;
    case JOBWIRE_ROUTES:
        gang->routes[rank] = message->routes;
        if (gang->slice != NULL && message->routes.open && message->routes.tables == 0)
            gang_send_tables(gang, client, message->routes.session);
        break;
    case JOBWIRE_LEAVE:
        gang->leaves[rank]++;
        break;
    case JOBWIRE_STORE:
    case JOBWIRE_FETCH:
        gang_move(gang, client, message);
        break;
    default:
        fail_msg("a task sent a frame of type %u", message->type);
    }
}

static inline void gang_read(struct gang *gang, size_t index)
{
    struct gang_client *client = &gang->clients[index];
    ssize_t got =
        recv(client->fd, client->in + client->in_len, sizeof client->in - client->in_len, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        close(client->fd);
        *client = (struct gang_client){.fd = -1};
        return;
    }
    client->in_len += (size_t)got;
    for (;;) {
        struct jobwire_message message;
        size_t used;
        int status = jobwire_decode(client->in, client->in_len, &message, &used);
        assert_true(status >= 0);
        if (status <= 0)
            return;
        memmove(client->in, client->in + used, client->in_len - used);
        client->in_len -= used;
        gang_on_message(gang, index, &message);
    }
}

/* One turn of the agent; false when nothing came in that time. */
static inline bool gang_poll(struct gang *gang, int timeout_ms)
{
    struct pollfd fds[GANG_MAX + 1];
    for (size_t i = 0; i < GANG_MAX; i++)
        fds[i] = (struct pollfd){.fd = gang->clients[i].fd, .events = POLLIN};
    fds[GANG_MAX] = (struct pollfd){.fd = gang->listen_fd, .events = POLLIN};
    if (poll(fds, GANG_MAX + 1, timeout_ms) <= 0)
        return false;
    for (size_t i = 0; i < GANG_MAX; i++)
        if (fds[i].fd >= 0 && fds[i].revents != 0)
            gang_read(gang, i);
    int fd = gang->listen_fd < 0 ? -1 : accept4(gang->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    for (size_t i = 0; i < GANG_MAX && fd >= 0; i++) {
        if (gang->clients[i].fd < 0) {
            gang->clients[i] = (struct gang_client){.fd = fd};
            return true;
        }
    }
    if (fd >= 0)
        close(fd);
    return true;
}

/* Polls until the condition holds. */
#define gang_until(gang, condition)                                                                          \
    do {                                                                                                     \
        int64_t until_ms = gang_now_ms() + GANG_PATIENCE_MS;                                                 \
        while (!(condition)) {                                                                               \
            if (gang_now_ms() > until_ms)                                                                    \
                fail_msg("not in time: %s", #condition);                                                     \
            gang_poll((gang), 5);                                                                            \
            gang_reap((gang), false);                                                                        \
        }                                                                                                    \
    } while (0)

/* All ranks have ended, and what they said last has been heard. */
static inline bool gang_ended(struct gang *gang)
{
    for (uint32_t rank = 0; rank < gang->world; rank++)
        if (gang->pids[rank] != 0)
            return false;
    while (gang_poll(gang, 0))
        ;
    return true;
}

/* Exit code of a rank, or 256 + its signal. */
static inline int gang_exit(const struct gang *gang, uint32_t rank)
{
    int status = gang->statuses[rank];
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static inline void gang_setenv(const char *name, const char *format, ...)
{
    char value[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    setenv(name, value, 1);
}

/* A task beyond the world is a spare. */
static inline void gang_environment(const struct gang *gang, uint32_t task)
{
    uint32_t rank = gang->ranks[task];
    gang_setenv("PHX_AGENT_SOCKET", "%s", gang->socket);
    gang_setenv("PHX_TASK_UID", "%u", 100 + task);
    gang_setenv("PHX_JOBSET", "default/test");
    gang_setenv("PHX_ATTEMPT", "%u", gang->attempt);
    if (rank < gang->world) {
        gang_setenv("PHX_RANK", "%u", rank);
        gang_setenv("PHX_WORLD_SIZE", "%u", gang->world);
        gang_setenv("PHX_RENDEZVOUS", "127.0.0.1:%d", gang->port);
    } else {
        gang_setenv("PHX_SPARE", "1");
    }
    if (gang->store)
        gang_setenv("PHX_CHECKPOINT_STORE", "1");
    else
        gang_setenv("PHX_CHECKPOINT_DIR", "%s/checkpoints", gang->dir);
    gang_setenv("PHX_MEMORY_DIR", "%s/memory", gang->dir);
}

/* Forks one task; `body` runs in it and its result is the exit code. */
static inline void gang_fork(struct gang *gang, uint32_t rank, int (*body)(void *), void *argument)
{
    assert_int_equal(gang->pids[rank], 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        gang_stop_agent(gang);
        gang_environment(gang, rank);
        _exit(body(argument));
    }
    gang->pids[rank] = pid;
}

static inline void gang_fork_all(struct gang *gang, int (*body)(void *), void *argument)
{
    for (uint32_t rank = 0; rank < gang->world; rank++)
        gang_fork(gang, rank, body, argument);
}

/* All ranks end, with this code. */
static inline void gang_expect_exits(struct gang *gang, int code)
{
    gang_until(gang, gang_ended(gang));
    for (uint32_t rank = 0; rank < gang->world; rank++)
        if (gang_exit(gang, rank) != code)
            fail_msg("rank %u ended with %d, not %d", rank, gang_exit(gang, rank), code);
}

static inline void gang_run(struct gang *gang, int (*body)(void *), void *argument)
{
    gang_fork_all(gang, body, argument);
    gang_expect_exits(gang, 0);
}

/* In a rank, with a `struct phx_error error`: what does not hold ends it, with a line for people. */
#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "rank %s: %s:%d: %s (%s)\n", getenv("PHX_RANK"), __FILE__, __LINE__, #condition, \
                    error.message);                                                                          \
            _exit(99);                                                                                       \
        }                                                                                                    \
    } while (0)

static inline phx_context *gang_join(void)
{
    struct phx_error error = {0};
    struct phx_options options = {
        .size = sizeof options, .join_timeout_ms = GANG_PATIENCE_MS, .leave_timeout_ms = GANG_PATIENCE_MS};
    phx_context *ctx = NULL;
    EXPECT(phx_join(&options, &ctx, &error) == 0);
    return ctx;
}

/* Below `below`, by xorshift; *state is not 0. */
static inline uint32_t gang_draw(uint32_t *state, uint32_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state % below;
}

enum gang_damage { GANG_FLIP_DATA, GANG_FLIP_HEADER, GANG_CUT, GANG_REMOVE, GANG_DAMAGES };

/* Harms a rank's shard at rest. */
static inline void gang_damage_shard(const struct gang *gang, uint64_t step, uint32_t attempt, uint32_t rank,
                                     enum gang_damage kind)
{
    char path[256];
    struct stat info;
    uint8_t byte = 0;
    snprintf(path, sizeof path, "%s/checkpoints/step-%llu/attempt-%u-rank-%u.shard", gang->dir,
             (unsigned long long)step, attempt, rank);
    assert_int_equal(stat(path, &info), 0);
    if (kind == GANG_REMOVE) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    if (kind == GANG_CUT) {
        assert_int_equal(truncate(path, info.st_size - 1), 0);
        return;
    }
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    long at = kind == GANG_FLIP_DATA ? info.st_size - 1 : 20;
    assert_true(fseek(file, at, SEEK_SET) == 0 && fread(&byte, 1, 1, file) == 1);
    byte ^= 4;
    assert_true(fseek(file, at, SEEK_SET) == 0 && fwrite(&byte, 1, 1, file) == 1 && fclose(file) == 0);
}

/* After the last attempt has ended: forget its reports, fence it. */
static inline void gang_next_attempt(struct gang *gang)
{
    gang->attempt++;
    memset(gang->saved, 0, sizeof gang->saved);
    memset(gang->gone, 0, sizeof gang->gone);
    memset(gang->leaves, 0, sizeof gang->leaves);
    memset(gang->step_frames, 0, sizeof gang->step_frames);
    gang_take_port(gang);
}

/* The next attempt, with the processes that live: they are told. gang->ranks and gang->world may have been
 * changed before; who has no process is the caller's to start. */
static inline void gang_rejoin(struct gang *gang)
{
    gang_next_attempt(gang);
    for (size_t i = 0; i < GANG_MAX; i++)
        if (gang->clients[i].fd >= 0 && gang->clients[i].joined &&
            (gang->clients[i].can_rejoin || gang->clients[i].spare) && gang->pids[gang->clients[i].task] > 0)
            gang_send_rejoin(gang, i);
}

#endif
