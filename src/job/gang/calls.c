/* The public calls of a joined context, without checkpoints. */
#include "job/context.h"

#include <stdio.h>
#include <string.h>

#include "job/link/error.h"

/* Reads a number under the mutex, since another thread may change the attempt. Casting const away is safe: a
 * context is never in read-only memory. */
static uint32_t read_number(const phx_context *ctx, const uint32_t *number)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&ctx->mutex;
    pthread_mutex_lock(mutex);
    uint32_t value = *number;
    pthread_mutex_unlock(mutex);
    return value;
}

uint32_t phx_rank(const phx_context *ctx)
{
    return read_number(ctx, &ctx->settings.rank);
}

uint32_t phx_world_size(const phx_context *ctx)
{
    return read_number(ctx, &ctx->settings.world);
}

uint32_t phx_full_world_size(const phx_context *ctx)
{
    return read_number(ctx, &ctx->settings.full_world);
}

uint32_t phx_attempt(const phx_context *ctx)
{
    return read_number(ctx, &ctx->attempt);
}

int phx_peer(const phx_context *ctx, uint32_t rank, struct phx_peer *ret_peer, struct phx_error *error)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&ctx->mutex;
    pthread_mutex_lock(mutex);
    uint32_t world = ctx->settings.world;
    bool inside = ret_peer != NULL && rank < world;
    if (inside)
        *ret_peer = (struct phx_peer){ctx->names[rank].name, ctx->names[rank].address};
    pthread_mutex_unlock(mutex);
    return inside ? 0 : job_fail(error, PHX_ERROR_INVALID, "rank %u is outside a world of %u", rank, world);
}

int phx_check(phx_context *ctx, struct phx_error *error)
{
    pthread_mutex_lock(&ctx->mutex);
    int status = job_failure(ctx, error);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

int phx_failure_fd(const phx_context *ctx)
{
    return ctx->failure_fd;
}

/* Returns 0 while this rank is connected to the coordinator, otherwise the failure. */
static int rendezvous_state(const struct phx_context *ctx, struct phx_error *error)
{
    int status = job_failure(ctx, error);
    if (status == 0 && ctx->coordinator == NULL && ctx->member.state != MEMBER_LINK_READY)
        return job_fail_peer(error, 0, "has left");
    return status;
}

int phx_barrier(phx_context *ctx, int64_t timeout_ms, struct phx_error *error)
{
    int64_t deadline_ns = job_deadline_ns(timeout_ms);
    pthread_mutex_lock(&ctx->mutex);
    enum phx_phase phase = job_pace_phase(&ctx->pace, PHX_PHASE_COMMUNICATE, job_now_ns());
    int status = rendezvous_state(ctx, error);
    uint64_t barrier = ctx->barrier_left ? ctx->barrier_left : ctx->barrier_released + 1;
    if (status == 0 && ctx->barrier_arrived < barrier) {
        ctx->barrier_arrived = barrier;
        job_flight_begin(&ctx->flight, barrier);
        job_member_send(ctx, &(struct rendezvous_message){.type = RENDEZVOUS_ARRIVE, .number = barrier});
    }
    while (status == 0 && ctx->barrier_released < barrier) {
        status = rendezvous_state(ctx, error);
        if (status == 0 && ctx->any_left)
            status = job_fail_peer(error, ctx->left_rank, "has left; no barrier completes without it");
        else if (status == 0 && !job_wait(ctx, deadline_ns))
            status = job_fail(error, PHX_ERROR_TIMEOUT, "the barrier is not complete");
    }
    job_pace_phase(&ctx->pace, phase, job_now_ns());
    ctx->barrier_left = status == PHX_ERROR_TIMEOUT ? barrier : 0;
    struct jobwire_flight record;
    if (status == 0)
        job_flight_end(&ctx->flight, barrier);
    else
        record = *ctx->flight.record;
    pthread_mutex_unlock(&ctx->mutex);
    if (status == PHX_ERROR_TIMEOUT)
        job_flight_write(&record, &ctx->settings);
    return status;
}

/* ---- key-value exchange ---- */

static int check_key(const char *key, struct phx_error *error)
{
    size_t len = key == NULL ? 0 : strnlen(key, PHX_KEY_MAX);
    if (len == 0 || len >= PHX_KEY_MAX)
        return job_fail(error, PHX_ERROR_INVALID, "a key has 1 to %d bytes", PHX_KEY_MAX - 1);
    return 0;
}

/* Sends the message as a call and waits for its answer. Mutex held. */
static int run_call(struct phx_context *ctx, struct job_call *call, struct rendezvous_message *message,
                    int64_t deadline_ns, struct phx_error *error)
{
    int status = rendezvous_state(ctx, error);
    if (status != 0)
        return status;
    call->id = message->number = ++ctx->next_call;
    call->next = ctx->calls;
    ctx->calls = call;
    job_member_send(ctx, message);
    while (status == 0 && !call->done) {
        status = rendezvous_state(ctx, error);
        if (status == 0 && !job_wait(ctx, deadline_ns)) {
            status = job_fail(error, PHX_ERROR_TIMEOUT, "no answer for key \"%.*s\" in time",
                              (int)message->key_len, (const char *)message->key);
            job_member_send(ctx, &(struct rendezvous_message){.type = RENDEZVOUS_CANCEL, .number = call->id});
        }
    }
    struct job_call **at = &ctx->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    return call->done ? 0 : status;
}

int phx_kv_put(phx_context *ctx, const char *key, const void *value, size_t len, struct phx_error *error)
{
    int status = check_key(key, error);
    if (status != 0)
        return status;
    if (len > PHX_VALUE_MAX || (value == NULL && len > 0))
        return job_fail(error, PHX_ERROR_INVALID, "a value has at most %d bytes", PHX_VALUE_MAX);
    struct job_call call = {0};
    struct rendezvous_message message = {.type = RENDEZVOUS_PUT,
                                         .key = (const uint8_t *)key,
                                         .key_len = (uint32_t)strlen(key),
                                         .value = value,
                                         .value_len = (uint32_t)len};
    pthread_mutex_lock(&ctx->mutex);
    status = run_call(ctx, &call, &message, JOB_NEVER, error);
    pthread_mutex_unlock(&ctx->mutex);
    if (status == 0 && call.status != 0)
        return job_fail(error, call.status, "rank 0 didn't store \"%s\": %s", key,
                        call.status == PHX_ERROR_SPACE ? "the store is full" : phx_code_name(call.status));
    return status;
}

int phx_kv_get(phx_context *ctx, const char *key, void *buf, size_t cap, size_t *ret_len, int64_t timeout_ms,
               struct phx_error *error)
{
    int status = check_key(key, error);
    if (status != 0)
        return status;
    if (ret_len == NULL || (buf == NULL && cap > 0))
        return job_fail(error, PHX_ERROR_INVALID, "buf or ret_len is NULL");
    struct job_call call = {.buf = buf, .cap = cap};
    struct rendezvous_message message = {.type = RENDEZVOUS_GET,
                                         .key = (const uint8_t *)key,
                                         .key_len = (uint32_t)strlen(key),
                                         .status = timeout_ms != 0};
    pthread_mutex_lock(&ctx->mutex); /* timeout 0 still waits for the answer, but not for the key */
    status = run_call(ctx, &call, &message, timeout_ms == 0 ? JOB_NEVER : job_deadline_ns(timeout_ms), error);
    pthread_mutex_unlock(&ctx->mutex);
    if (status != 0)
        return status;
    if (call.status == PHX_ERROR_SPACE) {
        *ret_len = call.len;
        return job_fail(error, PHX_ERROR_SPACE, "\"%s\" has %zu bytes, the buffer %zu", key, call.len, cap);
    }
    if (call.status != 0)
        return job_fail(error, call.status, "no rank has put \"%s\"", key);
    *ret_len = call.len;
    return 0;
}

/* ---- progress ---- */

void phx_set_total_steps(phx_context *ctx, uint64_t total)
{
    pthread_mutex_lock(&ctx->mutex);
    ctx->step.total = total;
    pthread_mutex_unlock(&ctx->mutex);
}

void job_step_from(struct phx_context *ctx, uint64_t step)
{
    pthread_mutex_lock(&ctx->mutex);
    ctx->step.first = step + 1;
    ctx->from_known = true;
    pthread_mutex_unlock(&ctx->mutex);
}

int phx_step(phx_context *ctx, uint64_t step, const struct phx_metric *metrics, size_t metric_count,
             struct phx_error *error)
{
    if (metric_count > PHX_METRICS_MAX || (metrics == NULL && metric_count > 0))
        return job_fail(error, PHX_ERROR_INVALID, "a step has at most %d metrics", PHX_METRICS_MAX);
    for (size_t i = 0; i < metric_count; i++) {
        size_t len = metrics[i].name == NULL ? 0 : strnlen(metrics[i].name, PHX_METRIC_NAME_MAX);
        if (!jobwire_name_valid((const uint8_t *)metrics[i].name, len))
            return job_fail(error, PHX_ERROR_INVALID,
                            "the name of metric %zu is not 1 to %d printable ASCII characters without spaces",
                            i, PHX_METRIC_NAME_MAX - 1);
    }
    pthread_mutex_lock(&ctx->mutex);
    int status = ctx->failure == PHX_ERROR_FENCED ? job_failure(ctx, error) : 0;
    if (status == 0) {
        ctx->step.step = step;
        ctx->step.first = ctx->from_known || ctx->step_known ? ctx->step.first : step;
        job_flight_step(&ctx->flight, step);
        ctx->step.metric_count = (uint16_t)metric_count;
        for (size_t i = 0; i < metric_count; i++) {
            struct jobwire_metric *metric = &ctx->step.metrics[i];
            memcpy(metric->name, metrics[i].name, strlen(metrics[i].name) + 1);
            metric->value = metrics[i].value;
        }
        ctx->step_known = true;
        job_pace_step(&ctx->pace, job_now_ns());
        job_pace_fill(&ctx->pace, &ctx->step.pace);
        job_link_step(ctx);
    }
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

void phx_phase_begin(phx_context *ctx, enum phx_phase phase)
{
    pthread_mutex_lock(&ctx->mutex);
    job_pace_phase(&ctx->pace, phase, job_now_ns());
    pthread_mutex_unlock(&ctx->mutex);
}

void phx_phase_end(phx_context *ctx)
{
    phx_phase_begin(ctx, PHX_PHASE_NONE);
}

/* ---- notice ---- */

uint64_t phx_slice_tables(phx_context *ctx, char *ret_name, size_t size)
{
    pthread_mutex_lock(&ctx->mutex);
    uint64_t number = ctx->tables.number;
    if (number > 0 && ret_name != NULL && size > 0)
        snprintf(ret_name, size, "%s", ctx->tables.name);
    pthread_mutex_unlock(&ctx->mutex);
    return number;
}

int phx_notice(phx_context *ctx, struct phx_drain *ret_drain)
{
    pthread_mutex_lock(&ctx->mutex);
    bool drain = ctx->drain;
    if (drain && ret_drain != NULL) {
        ret_drain->remaining_ms = (ctx->drain_deadline_ns - job_now_ns()) / 1000000;
        ret_drain->reason = ctx->drain_reason;
    }
    pthread_mutex_unlock(&ctx->mutex);
    return drain ? 1 : 0;
}
