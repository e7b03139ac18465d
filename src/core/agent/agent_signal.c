/* agent_signal.c - what was seen on the machine, until the controller has it.
 *
 * One message with signals is under way at a time; meanwhile equal ones become one with a larger count. So a
 * storm costs neither memory nor the controller's time. The oldest goes when there are too many. */
#include "core/agent/agent_private.h"
#include "core/limits.h"

_Static_assert((int)AGENT_SIGNALS_MAX <= (int)SIGNALS_PER_EVENT_MAX, "all that waits is one message");

void agent_drop_signal(struct agent *agent, size_t index)
{
    arena_done(&agent->signals.items[index].text);
    vec_remove(&agent->signals, index);
}

/* The newest signal of this code and place, NULL: none waits. */
static struct local_signal *find_newest(const struct agent *agent, const struct signal *signal)
{
    for (size_t i = agent->signals.len; i-- > 0;) {
        struct local_signal *waiting = &agent->signals.items[i];
        if (str_equal(waiting->signal.code, signal->code) && str_equal(waiting->signal.place, signal->place))
            return waiting;
    }
    return NULL;
}

static void copy_signal(struct local_signal *to, const struct signal *from)
{
    to->signal = *from;
    to->signal.code = arena_str(&to->text, from->code);
    to->signal.place = arena_str(&to->text, from->place);
    to->signal.evidence = arena_str(&to->text, from->evidence);
}

/* Several of the same are one, with the newest evidence. */
static void merge(struct local_signal *waiting, const struct signal *signal)
{
    int64_t first_ns = waiting->signal.first_ns;
    uint32_t count = waiting->signal.count;
    struct local_signal merged = {0};
    copy_signal(&merged, signal);
    merged.signal.first_ns = first_ns < signal->first_ns ? first_ns : signal->first_ns;
    merged.signal.count = count < UINT32_MAX - signal->count ? count + signal->count : UINT32_MAX;
    arena_done(&waiting->text);
    *waiting = merged;
}

void agent_saw(struct agent *agent, const struct signal *signal)
{
    CHECK(signal_is_valid(signal));
    struct local_signal *waiting = find_newest(agent, signal);
    if (waiting && waiting->number == 0 && waiting->signal.assertion == signal->assertion) {
        merge(waiting, signal);
        return;
    }
    if (agent->signals.len == AGENT_SIGNALS_MAX)
        agent_drop_signal(agent, 0);
    struct local_signal fresh = {0};
    copy_signal(&fresh, signal);
    vec_push(&agent->signals, fresh);
}

/* Those under way are the oldest, so the first one tells. */
size_t agent_signals_due(const struct agent *agent)
{
    return agent->signals.len > 0 && agent->signals.items[0].number == 0 ? agent->signals.len : 0;
}

void agent_take_signals(struct agent *agent, struct arena *arena, struct reports *reports)
{
    reports->signal_count = agent_signals_due(agent);
    reports->signals = ARENA_ARRAY(arena, struct signal, reports->signal_count);
    for (size_t i = 0; i < reports->signal_count; i++) {
        CHECK(agent->signals.items[i].number == 0);
        agent->signals.items[i].number = reports->number;
        reports->signals[i] = agent->signals.items[i].signal;
    }
}

void agent_signals_acked(struct agent *agent, uint64_t number)
{
    for (size_t i = agent->signals.len; i-- > 0;)
        if (agent->signals.items[i].number != 0 && agent->signals.items[i].number <= number)
            agent_drop_signal(agent, i);
}
