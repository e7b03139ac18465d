/* desk.h - one agent and the time, for tests. */
#ifndef PHX_TESTS_CORE_AGENT_DESK_H
#define PHX_TESTS_CORE_AGENT_DESK_H

#include "base/units.h"
#include "core/agent/agent.h"

#define LEASE_NS (3 * NS_PER_SECOND)
#define WALL_NS  INT64_C(1700000000000000000)
#define DESK_CLUSTER UINT64_C(0xc1)

static struct str one_arg[] __attribute__((unused)) = {{"true", 4}};

struct desk {
    struct agent *agent;
    struct agent_effects effects;
    int64_t now_ns;
};

static void desk_init(struct desk *desk)
{
    *desk = (struct desk){.now_ns = 10 * NS_PER_SECOND};
    struct agent_config config = {
        .machine = STR("m-1"), .software = STR("test"), .incarnation = 1, .chips = 4, .seed = 7};
    desk->agent = agent_new(&config);
}

static void desk_done(struct desk *desk)
{
    agent_free(desk->agent);
    agent_effects_done(&desk->effects);
}

static inline void desk_step(struct desk *desk, struct agent_event event)
{
    event.boot_ns = desk->now_ns;
    event.wall_ns = WALL_NS + desk->now_ns;
    agent_step(desk->agent, &event, &desk->effects);
    agent_check_invariants(desk->agent);
}

static inline void desk_say(struct desk *desk, struct from_controller message)
{
    desk_step(desk, (struct agent_event){.kind = AGENT_MESSAGE, .message = &message});
}

/* Returns the message of the last step; NULL: none of that kind. */
static inline const struct from_agent *desk_sent(const struct desk *desk, enum from_agent_kind kind)
{
    for (size_t i = 0; i < desk->effects.list.len; i++) {
        const struct agent_effect *effect = &desk->effects.list.items[i];
        if (effect->kind == AGENT_SEND && effect->send.kind == kind)
            return &effect->send;
    }
    return NULL;
}

static inline void desk_welcome(struct desk *desk)
{
    struct from_controller welcome = {.kind = FROM_CONTROLLER_WELCOME};
    welcome.welcome = (struct welcome){5, LEASE_NS, NS_PER_SECOND, 0, {0}, DESK_CLUSTER, WIRE_VERSION};
    desk_say(desk, welcome);
}

#endif
