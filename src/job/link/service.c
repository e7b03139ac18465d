#include "job/context.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "job/link/error.h"

#define BACKOFF_MIN_NS  2000000   /* 2 ms: in a recovery the other side starts at the same time */
#define BACKOFF_MAX_NS 100000000 /* 100 ms: a restarted agent or coordinator is found again soon */
#define PATIENCE_MIN_NS 5000000000 /* an agent answers at once, unless the machine is overloaded */
#define PATIENCE_MAX_NS 60000000000

int64_t job_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t job_deadline_ns(int64_t timeout_ms)
{
    int64_t now_ns = job_now_ns();
    if (timeout_ms < 0 || timeout_ms > (JOB_NEVER - now_ns) / 1000000)
        return JOB_NEVER;
    return now_ns + timeout_ms * 1000000;
}

/* Returns the end of a wait that begins now, and doubles the next wait. *wait_ns 0 means the shortest. */
static int64_t wait_longer(int64_t *wait_ns, int64_t min_ns, int64_t max_ns)
{
    int64_t now_wait_ns = *wait_ns < min_ns ? min_ns : *wait_ns;
    *wait_ns = now_wait_ns * 2 < max_ns ? now_wait_ns * 2 : max_ns;
    return job_now_ns() + now_wait_ns;
}

int64_t job_backoff(int64_t *backoff_ns)
{
    return wait_longer(backoff_ns, BACKOFF_MIN_NS, BACKOFF_MAX_NS);
}

void job_patience_begin(struct job_patience *patience)
{
    patience->due_ns = wait_longer(&patience->limit_ns, PATIENCE_MIN_NS, PATIENCE_MAX_NS);
}

void job_patience_end(struct job_patience *patience)
{
    *patience = (struct job_patience){0};
}

int job_thread_start(struct phx_context *ctx, void *(*serve)(void *ctx), pthread_t *thread, bool *started,
                     struct phx_error *error)
{
    sigset_t all, before;
    if (*started)
        return 0;
    sigfillset(&all); /* the program's own threads handle its signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(thread, NULL, serve, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != 0)
        return job_fail_errno(error, status, "start a thread of the library");
    *started = true;
    return 0;
}

void job_wake(struct phx_context *ctx)
{
    (void)!eventfd_write(ctx->wake_fd, 1); /* fails only when a wake-up is pending anyway */
}

void job_changed(struct phx_context *ctx)
{
    pthread_cond_broadcast(&ctx->changed);
}

bool job_wait_apart(struct phx_context *ctx, int64_t deadline_ns)
{
    if (deadline_ns == JOB_NEVER)
        return pthread_cond_wait(&ctx->changed, &ctx->mutex) == 0;
    if (job_now_ns() >= deadline_ns)
        return false;
    struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    pthread_cond_timedwait(&ctx->changed, &ctx->mutex, &until);
    return true; /* the caller tests its condition again, whatever ended the wait */
}

bool job_wait(struct phx_context *ctx, int64_t deadline_ns)
{
    ctx->rejoin.waiters++;
    bool again = job_wait_apart(ctx, deadline_ns);
    if (--ctx->rejoin.waiters == 0 && ctx->failure != 0)
        job_changed(ctx); /* the next attempt may wait for this */
    return again;
}

int job_failure(const struct phx_context *ctx, struct phx_error *error)
{
    if (ctx->failure == 0)
        return 0;
    if (ctx->failure == PHX_ERROR_REJOIN)
        return job_fail(error, PHX_ERROR_REJOIN, "the membership has changed: call phx_rejoin");
    if (ctx->failure == PHX_ERROR_FENCED) {
        if (error != NULL)
            *error = (struct phx_error){PHX_ERROR_FENCED, -1, "a newer attempt of this task exists"};
        return PHX_ERROR_FENCED;
    }
    if (error != NULL) {
        *error = (struct phx_error){.code = PHX_ERROR_PEER, .rank = (int)ctx->lost_rank};
        snprintf(error->message, sizeof error->message, "rank %u is lost", ctx->lost_rank);
    }
    return PHX_ERROR_PEER;
}

static void fail(struct phx_context *ctx, int code)
{
    if (ctx->failure == 0)
        (void)!eventfd_write(ctx->failure_fd, 1);
    if (ctx->failure == 0 && ctx->abort.call != NULL) {
        ctx->abort.due = true;
        job_wake(ctx);
    }
    ctx->failure = code;
    job_changed(ctx);
}

void job_abort_set(struct phx_context *ctx, void (*call)(void *job), void *job)
{
    pthread_mutex_lock(&ctx->mutex);
    ctx->abort.due = false;
    while (ctx->abort.running)
        job_wait_apart(ctx, JOB_NEVER);
    ctx->abort = (struct job_abort){.call = call, .job = job, .due = call != NULL && ctx->failure != 0};
    if (ctx->abort.due)
        job_wake(ctx);
    pthread_mutex_unlock(&ctx->mutex);
}

/* Calls the program's abort function. Releases the mutex meanwhile, since a communication library may take
 * long. */
static void call_abort(struct phx_context *ctx)
{
    struct job_abort abort = ctx->abort;
    ctx->abort.due = false;
    ctx->abort.running = true;
    pthread_mutex_unlock(&ctx->mutex);
    abort.call(abort.job);
    pthread_mutex_lock(&ctx->mutex);
    ctx->abort.running = false;
    job_changed(ctx);
}

void job_lose(struct phx_context *ctx, uint32_t rank)
{
    if (ctx->members[rank] == MEMBER_GONE || ctx->members[rank] == MEMBER_LEFT)
        return;
    ctx->members[rank] = MEMBER_GONE;
    job_link_send(ctx, &(struct jobwire_message){.type = JOBWIRE_PEER_GONE, .peer_gone = {rank}});
    if (ctx->coordinator != NULL)
        job_coordinator_announce(ctx, RENDEZVOUS_GONE, rank);
    if (ctx->failure == 0) {
        ctx->lost_rank = rank;
        fail(ctx, PHX_ERROR_PEER);
    }
}

void job_fence(struct phx_context *ctx)
{
    if (ctx->failure != PHX_ERROR_FENCED)
        fail(ctx, PHX_ERROR_FENCED);
}

void job_end_attempt(struct phx_context *ctx)
{
    if (ctx->failure == 0)
        fail(ctx, PHX_ERROR_REJOIN);
}

void job_join_failed(struct phx_context *ctx, int code, const char *text)
{
    if (ctx->join_code == 0) {
        ctx->join_code = code;
        snprintf(ctx->join_text, sizeof ctx->join_text, "%s", text);
    }
    job_changed(ctx);
}

void job_committed(struct phx_context *ctx, uint64_t step, uint32_t attempt)
{
    if (ctx->committed.valid && step <= ctx->committed.step)
        return;
    ctx->committed = (struct job_checkpoint_ref){true, step, attempt};
    retention_commit(&ctx->retention, step);
    size_t kept = 0;
    for (size_t i = 0; i < ctx->saved_count; i++)
        if (attempt != ctx->attempt || ctx->saved[i].step > step)
            ctx->saved[kept++] = ctx->saved[i];
    ctx->saved_count = kept;
    job_changed(ctx);
}

/* Fills the list of descriptors, of which the first three have fixed places (poll skips -1). Returns NULL if
 * there is no memory. */
static struct pollfd *fill(struct phx_context *ctx, struct pollfd *fds, size_t *cap, size_t *ret_count)
{
    size_t need = 3 + job_coordinator_poll_size(ctx);
    if (*cap < need) {
        struct pollfd *larger = realloc(fds, need * 2 * sizeof *larger);
        if (larger == NULL)
            return NULL;
        fds = larger;
        *cap = need * 2;
    }
    fds[0] = (struct pollfd){.fd = ctx->wake_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = ctx->link.conn.fd, .events = job_link_events(ctx)};
    fds[2] = (struct pollfd){.fd = ctx->member.conn.fd, .events = job_member_events(ctx)};
    *ret_count = 3 + job_coordinator_poll_fill(ctx, fds + 3);
    return fds;
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int poll_timeout_ms(const struct phx_context *ctx)
{
    int64_t at = earliest(earliest(job_link_timer(ctx), job_member_timer(ctx)), job_coordinator_timer(ctx));
    if (at == JOB_NEVER)
        return -1;
    int64_t left_ms = (at - job_now_ns() + 999999) / 1000000;
    return left_ms < 0 ? 0 : left_ms > 60000 ? 60000 : (int)left_ms;
}

static void dispatch(struct phx_context *ctx, const struct pollfd *fds, size_t count)
{
    uint64_t ignored;
    if (fds[0].revents != 0)
        (void)!eventfd_read(ctx->wake_fd, &ignored);
    if (fds[1].revents != 0 && fds[1].fd == ctx->link.conn.fd)
        job_link_ready(ctx, fds[1].revents);
    if (fds[2].revents != 0 && fds[2].fd == ctx->member.conn.fd)
        job_member_ready(ctx, fds[2].revents);
    job_coordinator_ready(ctx, fds + 3, count - 3);
    int64_t now_ns = job_now_ns();
    if (job_link_timer(ctx) <= now_ns)
        job_link_tick(ctx, now_ns);
    if (job_member_timer(ctx) <= now_ns)
        job_member_tick(ctx, now_ns);
    if (job_coordinator_timer(ctx) <= now_ns)
        job_coordinator_tick(ctx, now_ns);
}

void *job_service(void *argument)
{
    struct phx_context *ctx = argument;
    struct pollfd *fds = NULL;
    size_t cap = 0, count = 0;
    pthread_mutex_lock(&ctx->mutex);
    while (!ctx->stop) {
        job_rejoin_change(ctx);
        if (ctx->abort.due)
            call_abort(ctx);
        struct pollfd *filled = fill(ctx, fds, &cap, &count);
        if (filled == NULL) {
            job_join_failed(ctx, PHX_ERROR_MEMORY, "out of memory");
            ctx->stop = true;
            job_lose(ctx, ctx->settings.rank); /* no thread serves the connections any longer */
            break;
        }
        fds = filled;
        int timeout_ms = poll_timeout_ms(ctx);
        struct jobwire_flight record;
        bool due = ctx->flight.due;
        if (due)
            record = *ctx->flight.record;
        ctx->flight.due = false;
        pthread_mutex_unlock(&ctx->mutex);
        if (due)
            job_flight_write(&record, &ctx->settings);
        int ready = poll(fds, count, timeout_ms);
        pthread_mutex_lock(&ctx->mutex);
        if (ready < 0)
            for (size_t i = 0; i < count; i++)
                fds[i].revents = 0; /* EINTR or out of memory: poll again */
        dispatch(ctx, fds, count);
    }
    pthread_mutex_unlock(&ctx->mutex);
    free(fds);
    return NULL;
}
