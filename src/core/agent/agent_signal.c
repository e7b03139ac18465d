/* agent_signal.c - signals of the machine, kept until the controller has acknowledged them.
 *
 * At most one message with signals is under way; until it is acknowledged, equal signals are merged into
 * one with a larger count. A storm therefore costs neither memory nor the controller's time. If there are too
 * many signals, the least important one is dropped and counted: a lesser signal never displaces a graver
 * one. */
#include "core/agent/agent_private.h"
#include "core/words/limits.h"

_Static_assert((int)AGENT_SIGNALS_MAX <= (int)SIGNALS_PER_EVENT_MAX, "all that waits is one message");

/* Places reserved for "os/signals-lost": one under way, one that waits. */
enum { LOST_MAX = 2 };

void agent_drop_signal(struct agent *agent, size_t index)
{
    arena_done(&agent->signals.items[index].text);
    vec_remove(&agent->signals, index);
}

/* Returns the newest kept signal of this code and place; NULL: none. */
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

static uint32_t sum_of(uint32_t a, uint32_t b)
{
    return a < UINT32_MAX - b ? a + b : UINT32_MAX;
}

/* Joins equal signals into one, with the newest evidence. */
static void merge(struct local_signal *waiting, const struct signal *signal)
{
    int64_t first_ns = waiting->signal.first_ns;
    uint32_t count = waiting->signal.count;
    struct local_signal merged = {0};
    copy_signal(&merged, signal);
    merged.signal.first_ns = first_ns < signal->first_ns ? first_ns : signal->first_ns;
    merged.signal.count = sum_of(count, signal->count);
    arena_done(&waiting->text);
    *waiting = merged;
}

static bool joined(struct agent *agent, const struct signal *signal)
{
    struct local_signal *waiting = find_newest(agent, signal);
    if (!waiting || waiting->number != 0 || waiting->signal.assertion != signal->assertion)
        return false;
    merge(waiting, signal);
    return true;
}

static void append(struct agent *agent, const struct signal *signal)
{
    CHECK(agent->signals.len < AGENT_SIGNALS_MAX);
    struct local_signal fresh = {0};
    copy_signal(&fresh, signal);
    vec_push(&agent->signals, fresh);
}

bool agent_tells_lost(const struct signal *signal)
{
    return str_is(signal->code, "os/signals-lost");
}

/* A begin or an end is sent only once, so it is worth more than a momentary event. */
static int importance(const struct signal *signal)
{
    return 2 * (int)signal->severity + (signal->assertion != SIGNAL_ONCE);
}

/* Returns the oldest signal of the least importance. */
static size_t least_important(const struct agent *agent)
{
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < agent->signals.len; i++) {
        const struct signal *signal = &agent->signals.items[i].signal;
        if (agent_tells_lost(signal))
            continue;
        if (least == SIZE_MAX || importance(signal) < importance(&agent->signals.items[least].signal))
            least = i;
    }
    CHECK(least != SIZE_MAX);
    return least;
}

static void tell_lost(struct agent *agent, uint32_t count)
{
    struct signal signal = {.code = STR("os/signals-lost"),
                            .evidence =
                                STR("more signals than an agent keeps: the least important were lost"),
                            .assertion = SIGNAL_ONCE,
                            .severity = SEVERITY_MINOR,
                            .chip = -1,
                            .first_ns = agent->wall_ns,
                            .last_ns = agent->wall_ns,
                            .count = count};
    if (!joined(agent, &signal))
        append(agent, &signal);
}

/* Drops a signal. A signal under way is lost only if its message is, so it is counted then. */
static void give_up(struct agent *agent, size_t index)
{
    const struct local_signal *victim = &agent->signals.items[index];
    uint32_t count = victim->signal.count;
    bool under_way = victim->number != 0;
    agent_drop_signal(agent, index);
    if (under_way)
        agent->signals_given_up = sum_of(agent->signals_given_up, count);
    else
        tell_lost(agent, count);
}

void agent_saw(struct agent *agent, const struct signal *signal)
{
    CHECK(signal_is_valid(signal));
    if (joined(agent, signal))
        return;
    size_t others = 0;
    for (size_t i = 0; i < agent->signals.len; i++)
        others += !agent_tells_lost(&agent->signals.items[i].signal);
    if (others == AGENT_SIGNALS_MAX - LOST_MAX) {
        size_t least = least_important(agent);
        if (importance(signal) < importance(&agent->signals.items[least].signal)) {
            tell_lost(agent, signal->count);
            return;
        }
        give_up(agent, least);
    }
    append(agent, signal);
}

size_t agent_signals_due(const struct agent *agent)
{
    return agent->signals_number == 0 ? agent->signals.len : 0;
}

void agent_take_signals(struct agent *agent, struct arena *arena, struct reports *reports)
{
    reports->signal_count = agent_signals_due(agent);
    reports->signals = ARENA_ARRAY(arena, struct signal, reports->signal_count);
    for (size_t i = 0; i < reports->signal_count; i++) {
        CHECK(agent->signals.items[i].number == 0);
        agent->signals.items[i].number = agent->signals_number = reports->number;
        reports->signals[i] = agent->signals.items[i].signal;
    }
}

void agent_signals_acked(struct agent *agent, uint64_t number)
{
    for (size_t i = agent->signals.len; i-- > 0;)
        if (agent->signals.items[i].number != 0 && agent->signals.items[i].number <= number)
            agent_drop_signal(agent, i);
    if (agent->signals_number <= number)
        agent->signals_number = agent->signals_given_up = 0;
}

void agent_signals_unsent(struct agent *agent)
{
    for (size_t i = 0; i < agent->signals.len; i++)
        agent->signals.items[i].number = 0;
    if (agent->signals_given_up > 0)
        tell_lost(agent, agent->signals_given_up);
    agent->signals_number = agent->signals_given_up = 0;
}
