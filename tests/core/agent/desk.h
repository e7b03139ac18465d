/* desk.h - one agent and the time, for tests. */
#ifndef PHX_TESTS_CORE_AGENT_DESK_H
#define PHX_TESTS_CORE_AGENT_DESK_H

#include "base/units.h"
#include "core/agent/agent.h"

#define LEASE_NS (3 * NS_PER_SECOND)
#define WALL_NS  INT64_C(1700000000000000000)

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

#endif
