/* bed.h - for tests of agents: a fake controller, a state directory and an agent process on it. */
#ifndef PHX_TESTS_HOST_AGENT_BED_H
#define PHX_TESTS_HOST_AGENT_BED_H

#include "host/agent/agent_process.h"
#include "host/agent/fake.h"

struct bed {
    struct fake fake;
    char state[64];
    pid_t agent;
};

/* Without an agent yet. */
static inline void bed_prepare(struct bed *bed)
{
    fake_init(&bed->fake);
    snprintf(bed->state, sizeof bed->state, "/tmp/phx-agent-test-XXXXXX");
    assert_non_null(mkdtemp(bed->state));
}

/* The first, or one more on the same state after the end of the one before. */
static inline void begin_agent(struct bed *bed)
{
    int hellos = bed->fake.hellos;
    bed->agent = agent_spawn(bed->fake.port, bed->state);
    RUN_UNTIL(&bed->fake, bed->fake.agent && bed->fake.hellos > hellos);
}

static inline void bed_init(struct bed *bed)
{
    bed_prepare(bed);
    begin_agent(bed);
}

/* After the agent's end. */
static inline void bed_clear(struct bed *bed)
{
    agent_remove_state(bed->state);
    fake_done(&bed->fake);
}

static inline void bed_done(struct bed *bed)
{
    assert_int_equal(agent_end(bed->agent, SIGTERM), 0);
    bed_clear(bed);
}

#endif
