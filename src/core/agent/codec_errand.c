/* codec_errand.c - errands to and from protobuf-c structs. */
#include "core/agent/codec_pb.h"

#include "base/check.h"
#include "core/words/limits.h"

void codec_write_errand_start(struct arena *arena, const struct errand_start *start, Wire__ErrandStart *ret)
{
    CHECK(start->errand != 0 && start->timeout_ns > 0);
    wire__errand_start__init(ret);
    ret->errand = start->errand;
    ret->kind = start->kind;
    ret->body = codec_text(arena, start->body);
    ret->timeout_ns = start->timeout_ns;
}

Wire__ErrandEnd **codec_write_errand_ends(struct arena *arena, const struct errand_end *ends, size_t count)
{
    if (count == 0)
        return NULL;
    Wire__ErrandEnd **list = ARENA_ARRAY(arena, Wire__ErrandEnd *, count);
    for (size_t i = 0; i < count; i++) {
        Wire__ErrandEnd *ret = list[i] = ARENA_NEW(arena, Wire__ErrandEnd);
        wire__errand_end__init(ret);
        ret->errand = ends[i].errand;
        ret->outcome = ends[i].outcome;
        ret->exit_code = ends[i].exit_code;
        ret->output = codec_text(arena, ends[i].output);
    }
    return list;
}

/* Accepts a kind that this agent does not know: the errand then ends with a message that says so. */
int codec_read_errand_start(const Wire__ErrandStart *pb, struct errand_start *ret, struct error *error)
{
    struct errand_start start = {pb->errand, (enum errand_kind)pb->kind, str_from(pb->body), pb->timeout_ns};
    if (start.errand == 0)
        return error_set(error, ERROR_INVALID, "errand without a number");
    if (start.timeout_ns <= 0 || start.timeout_ns > ERRAND_TIMEOUT_MAX_NS)
        return error_set(error, ERROR_INVALID, "errand %llu: time-out of %lld ns",
                         (unsigned long long)start.errand, (long long)start.timeout_ns);
    if (start.body.len > ERRAND_BODY_MAX)
        return error_set(error, ERROR_LIMIT, "errand %llu: a body of %zu bytes (ERRAND_BODY_MAX is %d)",
                         (unsigned long long)start.errand, start.body.len, ERRAND_BODY_MAX);
    *ret = start;
    return 0;
}

int codec_read_errand_ends(struct arena *arena, Wire__ErrandEnd *const *list, size_t count,
                           struct errand_end **ret_ends, size_t *ret_count, struct error *error)
{
    if (count > ERRANDS_PER_MACHINE_MAX)
        return error_set(error, ERROR_LIMIT,
                         "%zu ends of errands in one message (ERRANDS_PER_MACHINE_MAX is %d)", count,
                         ERRANDS_PER_MACHINE_MAX);
    struct errand_end *ends = codec_try_array(arena, count, sizeof *ends, error);
    if (!ends)
        return ERROR_LIMIT;
    for (size_t i = 0; i < count; i++) {
        const Wire__ErrandEnd *pb = list[i];
        struct errand_end end = {pb->errand, (enum errand_outcome)pb->outcome, pb->exit_code,
                                 str_from(pb->output)};
        /* Only the controller reports LOST. */
        if (end.errand == 0 || pb->outcome < ERRAND_OK || pb->outcome > ERRAND_TIMED_OUT)
            return error_set(error, ERROR_INVALID, "end of errand %llu: outcome %u",
                             (unsigned long long)end.errand, pb->outcome);
        if (end.output.len > ERRAND_OUTPUT_MAX || !str_is_utf8(end.output))
            return error_set(error, ERROR_INVALID,
                             "end of errand %llu: its output is longer than %d bytes, or no UTF-8",
                             (unsigned long long)end.errand, ERRAND_OUTPUT_MAX);
        ends[i] = end;
    }
    *ret_ends = ends;
    *ret_count = count;
    return 0;
}
