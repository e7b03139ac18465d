#include "job/link/slice.h"

#include <string.h>
#include <time.h>

#include "job/context.h"
#include "job/link/error.h"

enum { EXTENT_MAX = 600, FACE_LINKS = 16 };
static const uint32_t machine_chips[3] = {2, 2, 1}; /* along X, Y, Z */

/* Reads a number without a sign or leading zeros. Returns the byte after it; NULL if it is not a number up to
 * `max`. */
static const char *take_number(const char *text, uint32_t max, uint32_t *ret_number)
{
    uint32_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9' && number <= max; at++)
        number = 10 * number + (uint32_t)(*at - '0');
    if (at == text || number > max || (*text == '0' && at > text + 1))
        return NULL;
    *ret_number = number;
    return at;
}

/* Reads "x5,y3" as the controller writes it (core/slice/connect.c), or with a blank after each comma. */
static int take_switches(const char *at, uint64_t *ret_without)
{
    for (;;) {
        uint32_t index, axis = (uint32_t)(*at - 'x');
        if (*at < 'x' || *at > 'z' || (at = take_number(at + 1, FACE_LINKS - 1, &index)) == NULL)
            return -1;
        *ret_without |= UINT64_C(1) << (FACE_LINKS * axis + index);
        if (*at == '\0')
            return 0;
        if (*at++ != ',')
            return -1;
        at += *at == ' ';
    }
}

static const char *take_shape(const char *name, struct phx_slice *slice)
{
    static const char twisted[] = "-twisted";
    const char *at = name;
    for (int axis = 0; axis < 3; axis++) {
        if (axis > 0 && *at++ != 'x')
            return NULL;
        if ((at = take_number(at, EXTENT_MAX, &slice->extent[axis])) == NULL || slice->extent[axis] == 0 ||
            slice->extent[axis] % machine_chips[axis] != 0)
            return NULL;
    }
    slice->twisted = strncmp(at, twisted, sizeof twisted - 1) == 0;
    return slice->twisted ? at + sizeof twisted - 1 : at;
}

int job_slice_parse(const char *name, uint32_t rank, struct phx_slice *ret_slice)
{
    static const char without[] = " without ";
    struct phx_slice slice = {.chip_count = PHX_SLICE_CHIPS};
    const char *at = take_shape(name, &slice);
    if (at == NULL)
        return -1;
    if (*at != '\0' && (strncmp(at, without, sizeof without - 1) != 0 ||
                        take_switches(at + sizeof without - 1, &slice.without) < 0))
        return -1;
    uint32_t first[3], rest = rank;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t machines = slice.extent[axis] / machine_chips[axis];
        first[axis] = rest % machines * machine_chips[axis];
        rest /= machines;
    }
    if (rest > 0)
        return -1;
    for (uint32_t i = 0; i < PHX_SLICE_CHIPS; i++) {
        uint32_t *chip = slice.chips[i].at;
        chip[0] = first[0] + i % 2;
        chip[1] = first[1] + i / 2;
        chip[2] = first[2];
        slice.chips[i].number = chip[0] + slice.extent[0] * (chip[1] + slice.extent[1] * chip[2]);
    }
    *ret_slice = slice;
    return 0;
}

/* Caller holds the mutex. */
static bool see_slice(const struct phx_context *ctx, uint64_t seen, struct phx_slice *ret_slice)
{
    struct phx_slice slice;
    if (ctx->tables.number <= seen || job_slice_parse(ctx->tables.name, ctx->settings.rank, &slice) < 0)
        return false;
    slice.tables = ctx->tables.number;
    *ret_slice = slice;
    return true;
}

int phx_slice_get(phx_context *ctx, struct phx_slice *ret_slice)
{
    pthread_mutex_lock(&ctx->mutex);
    bool seen = see_slice(ctx, 0, ret_slice);
    pthread_mutex_unlock(&ctx->mutex);
    return seen ? 1 : 0;
}

int phx_slice_wait(phx_context *ctx, uint64_t seen, int64_t timeout_ms, struct phx_slice *ret_slice,
                   struct phx_error *error)
{
    int64_t deadline_ns = job_deadline_ns(timeout_ms);
    int status = 0;
    pthread_mutex_lock(&ctx->mutex);
    while (status == 0 && !see_slice(ctx, seen, ret_slice)) {
        status = job_failure(ctx, error);
        if (status == 0 && !job_wait(ctx, deadline_ns))
            status = job_fail(error, PHX_ERROR_TIMEOUT, "the slice has no tables above number %llu",
                              (unsigned long long)seen);
    }
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

/* --- the session of this rank's chips ------------------------------------------------------------------- */

void job_routes_say(struct phx_context *ctx)
{
    if (ctx->routes.session > 0)
        job_link_send(ctx, &(struct jobwire_message){.type = JOBWIRE_ROUTES, .routes = ctx->routes});
}

/* Returns a number above those of this machine's earlier sessions, even of other processes. */
static uint64_t next_session(const struct phx_context *ctx)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t at_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    return at_ns > ctx->routes.session ? at_ns : ctx->routes.session + 1;
}

/* Sets the error of a session without an answer, which should arrive through the agent. Caller holds the
 * mutex. */
static int fail_unanswered(const struct phx_context *ctx, int64_t timeout_ms, struct phx_error *error)
{
    const char *who = ctx->link.state != LINK_READY ? "its agent does not answer"
                      : ctx->tables.number == 0 ? "no controller has named any tables: has the job a slice?"
                                                : "the agent is there, but no controller has answered";
    return job_fail(error, PHX_ERROR_TIMEOUT,
                    "rank %u waited %lld ms for the controller to hear of its chips' session: %s",
                    ctx->settings.rank, (long long)timeout_ms, who);
}

/* Caller holds the mutex. */
static void close_session(struct phx_context *ctx)
{
    if (!ctx->routes.open)
        return;
    ctx->routes = (struct jobwire_routes){.session = ctx->routes.session};
    job_routes_say(ctx);
}

int phx_slice_enter(phx_context *ctx, int64_t timeout_ms, struct phx_error *error)
{
    int64_t deadline_ns = job_deadline_ns(timeout_ms);
    int status = 0;
    pthread_mutex_lock(&ctx->mutex);
    ctx->routes = (struct jobwire_routes){.session = next_session(ctx), .open = true};
    job_routes_say(ctx);
    while (!ctx->settings.standalone && ctx->tables.session < ctx->routes.session && status == 0) {
        status = job_failure(ctx, error);
        if (status == 0 && !job_wait(ctx, deadline_ns))
            status = fail_unanswered(ctx, timeout_ms, error);
    }
    if (status != 0)
        close_session(ctx);
    pthread_mutex_unlock(&ctx->mutex);
    return status;
}

void phx_slice_loaded(phx_context *ctx, uint64_t tables, uint64_t without)
{
    pthread_mutex_lock(&ctx->mutex);
    if (ctx->routes.open) {
        ctx->routes.tables = tables;
        ctx->routes.without = without;
        job_routes_say(ctx);
    }
    pthread_mutex_unlock(&ctx->mutex);
}

void phx_slice_wrong(phx_context *ctx, uint64_t switches)
{
    pthread_mutex_lock(&ctx->mutex);
    if (ctx->routes.open && (switches || ctx->routes.wrong)) {
        ctx->routes.wrong = switches;
        job_routes_say(ctx);
    }
    pthread_mutex_unlock(&ctx->mutex);
}

void phx_slice_leave(phx_context *ctx)
{
    pthread_mutex_lock(&ctx->mutex);
    close_session(ctx);
    pthread_mutex_unlock(&ctx->mutex);
}
