/* agent_errand.c - errands of the controller: those that wait, run, or have ended without an acknowledgement.
 * The host runs them and enforces their time-outs. An end is repeated until the controller acknowledges
 * it. */
#include "core/agent/agent_private.h"
#include "core/words/limits.h"

static const char *const names[] = {"waiting", "running", "ended"};
static const uint32_t next[] = {
    [ERRAND_WAITS] = LIFECYCLE_TO(ERRAND_RUNS),
    [ERRAND_RUNS] = LIFECYCLE_TO(ERRAND_ENDED),
    [ERRAND_ENDED] = 0,
};
_Static_assert(sizeof names / sizeof *names == ERRAND_STATES && sizeof next / sizeof *next == ERRAND_STATES,
               "a row for each state");
const struct lifecycle errand_lifecycle = {"errand", ERRAND_STATES, names, next};

static size_t find(const struct agent *agent, obj_id uid)
{
    size_t at = 0;
    while (at < agent->errands.len && agent->errands.items[at]->uid != uid)
        at++;
    return at;
}

void agent_errand_drop(struct agent *agent, size_t index)
{
    arena_done(&agent->errands.items[index]->arena);
    mem_free(agent->errands.items[index]);
    vec_remove(&agent->errands, index);
}

static void run_waiting(struct agent *agent, struct agent_effects *effects)
{
    size_t running = 0;
    for (size_t i = 0; i < agent->errands.len; i++)
        running += agent->errands.items[i]->state == ERRAND_RUNS;
    for (size_t i = 0; i < agent->errands.len && running < AGENT_ERRANDS_RUNNING_MAX; i++) {
        struct local_errand *errand = agent->errands.items[i];
        if (errand->state != ERRAND_WAITS)
            continue;
        lifecycle_move(&errand_lifecycle, &errand->state, ERRAND_RUNS);
        agent_effect_add(effects, AGENT_ERRAND_START)->errand_start = &errand->start;
        running++;
    }
}

void agent_errand_start(struct agent *agent, const struct errand_start *start, struct agent_effects *effects)
{
    if (find(agent, start->errand) < agent->errands.len)
        return;
    if (agent->errands.len == ERRANDS_PER_MACHINE_MAX) { /* the controller's own time-out ends it */
        agent_note(effects, "an errand is left alone: %d are here already", ERRANDS_PER_MACHINE_MAX);
        return;
    }
    struct local_errand *errand = mem_alloc(sizeof *errand);
    errand->uid = start->errand;
    errand->start = *start;
    errand->start.body = arena_str(&errand->arena, start->body);
    vec_push(&agent->errands, errand);
    run_waiting(agent, effects);
}

void agent_errand_stop(struct agent *agent, obj_id uid, struct agent_effects *effects)
{
    size_t at = find(agent, uid);
    if (at == agent->errands.len)
        return;
    if (agent->errands.items[at]->state == ERRAND_RUNS)
        agent_effect_add(effects, AGENT_ERRAND_STOP)->task = uid;
    agent_errand_drop(agent, at);
    run_waiting(agent, effects);
}

void agent_errand_ended(struct agent *agent, const struct errand_end *end, struct agent_effects *effects)
{
    size_t at = find(agent, end->errand);
    if (at == agent->errands.len || agent->errands.items[at]->state != ERRAND_RUNS)
        return;
    CHECK(end->outcome >= ERRAND_OK && end->outcome <= ERRAND_TIMED_OUT);
    struct local_errand *errand = agent->errands.items[at];
    lifecycle_move(&errand_lifecycle, &errand->state, ERRAND_ENDED);
    errand->end = *end;
    errand->end.output = str_head_utf8(end->output, ERRAND_OUTPUT_MAX);
    errand->end.output = arena_str(&errand->arena, errand->end.output);
    run_waiting(agent, effects);
}

void agent_list_errands(const struct agent *agent, struct arena *arena, struct hello *hello)
{
    hello->errands = true;
    hello->errand_count = agent->errands.len;
    hello->errand_ids = ARENA_ARRAY(arena, obj_id, agent->errands.len);
    for (size_t i = 0; i < agent->errands.len; i++)
        hello->errand_ids[i] = agent->errands.items[i]->uid;
}

static bool is_due(const struct local_errand *errand)
{
    return errand->state == ERRAND_ENDED && errand->number == 0;
}

size_t agent_errands_due(const struct agent *agent)
{
    size_t due = 0;
    for (size_t i = 0; i < agent->errands.len; i++)
        due += is_due(agent->errands.items[i]);
    return due;
}

void agent_take_errands(struct agent *agent, struct arena *arena, struct reports *reports)
{
    reports->errands = ARENA_ARRAY(arena, struct errand_end, agent_errands_due(agent));
    for (size_t i = 0; i < agent->errands.len; i++) {
        struct local_errand *errand = agent->errands.items[i];
        if (!is_due(errand))
            continue;
        errand->number = reports->number;
        reports->errands[reports->errand_count++] = errand->end;
    }
}

void agent_errands_acked(struct agent *agent, uint64_t number)
{
    for (size_t i = agent->errands.len; i-- > 0;)
        if (agent->errands.items[i]->number != 0 && agent->errands.items[i]->number <= number)
            agent_errand_drop(agent, i);
}

void agent_errands_unsaid(struct agent *agent)
{
    for (size_t i = 0; i < agent->errands.len; i++)
        agent->errands.items[i]->number = 0;
}
