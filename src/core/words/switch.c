#include "core/words/switch.h"

#include "base/check.h"

const char *switch_outcome_name(enum switch_outcome outcome)
{
    static const char *const names[SWITCH_OUTCOMES] = {"done", "refused", "partly", "unreachable"};
    CHECK(outcome >= 0 && outcome < SWITCH_OUTCOMES);
    return names[outcome];
}

const char *switch_state_name(enum switch_state state)
{
    static const char *const names[SWITCH_STATES] = {"Unseen", "Up", "Degraded", "Down"};
    CHECK(state >= 0 && state < SWITCH_STATES);
    return names[state];
}
