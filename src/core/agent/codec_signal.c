/* codec_signal.c - signals to and from protobuf-c structs. */
#include "core/agent/codec_pb.h"

#include "base/check.h"
#include "core/words/limits.h"

static Wire__Signal *write_signal(struct arena *arena, const struct signal *signal)
{
    CHECK(signal_is_valid(signal));
    Wire__Signal *ret = ARENA_NEW(arena, Wire__Signal);
    wire__signal__init(ret);
    ret->code = codec_text(arena, signal->code);
    ret->place = codec_text(arena, signal->place);
    ret->evidence = codec_text(arena, signal->evidence);
    ret->assertion = signal->assertion;
    ret->severity = signal->severity;
    ret->chip = signal->chip;
    ret->first_ns = signal->first_ns;
    ret->last_ns = signal->last_ns;
    ret->count = signal->count;
    return ret;
}

Wire__Signal **codec_write_signals(struct arena *arena, const struct signal *signals, size_t count)
{
    if (count == 0)
        return NULL;
    Wire__Signal **list = ARENA_ARRAY(arena, Wire__Signal *, count);
    for (size_t i = 0; i < count; i++)
        list[i] = write_signal(arena, &signals[i]);
    return list;
}

/* Whether assertion and severity are known; a later agent may send others. */
static bool is_known(const Wire__Signal *pb)
{
    return pb->assertion >= SIGNAL_OCCUR && pb->assertion <= SIGNAL_ONCE && pb->severity >= SEVERITY_NOTICE &&
           pb->severity <= SEVERITY_CRITICAL;
}

int codec_read_signals(struct arena *arena, Wire__Signal *const *list, size_t count,
                       struct signal **ret_signals, size_t *ret_count, struct error *error)
{
    if (count > SIGNALS_PER_EVENT_MAX)
        return error_set(error, ERROR_LIMIT, "%zu signals in one message (SIGNALS_PER_EVENT_MAX is %d)",
                         count, SIGNALS_PER_EVENT_MAX);
    struct signal *signals = codec_try_array(arena, count, sizeof *signals, error);
    if (!signals)
        return ERROR_LIMIT;
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        const Wire__Signal *pb = list[i];
        if (!is_known(pb))
            continue;
        struct signal signal = {.code = str_from(pb->code),
                                .place = str_from(pb->place),
                                .evidence = str_from(pb->evidence),
                                .assertion = (enum signal_assertion)pb->assertion,
                                .severity = (enum signal_severity)pb->severity,
                                .chip = pb->chip,
                                .first_ns = pb->first_ns,
                                .last_ns = pb->last_ns,
                                .count = pb->count};
        if (!signal_is_valid(&signal))
            return error_set(error, ERROR_INVALID,
                             "signal \"" STR_FORMAT "\" at \"" STR_FORMAT "\": malformed",
                             STR_ARG(signal.code), STR_ARG(signal.place));
        signals[known++] = signal;
    }
    *ret_signals = signals;
    *ret_count = known;
    return 0;
}
