/* plan.c - the lifecycle of a JobSet's recovery. */
#include "core/ladder/plan.h"

#include "base/check.h"

static const char *const names[RECOVERY_STATES] = {
    [RECOVERY_NONE] = "None",           [RECOVERY_BACKING_OFF] = "BackingOff",
    [RECOVERY_PARKED] = "Parked",       [RECOVERY_DUMPING] = "Dumping",
    [RECOVERY_SAVED] = "Saved",         [RECOVERY_REFUSED] = "Refused",
    [RECOVERY_REJOINING] = "Rejoining",
};

#define TO LIFECYCLE_TO
static const uint32_t next[RECOVERY_STATES] = {
    [RECOVERY_NONE] = TO(RECOVERY_BACKING_OFF) | TO(RECOVERY_PARKED) | TO(RECOVERY_DUMPING),
    [RECOVERY_BACKING_OFF] = TO(RECOVERY_PARKED) | TO(RECOVERY_DUMPING) | TO(RECOVERY_NONE),
    [RECOVERY_PARKED] = TO(RECOVERY_REJOINING) | TO(RECOVERY_DUMPING) | TO(RECOVERY_NONE),
    [RECOVERY_DUMPING] = TO(RECOVERY_SAVED) | TO(RECOVERY_REFUSED) | TO(RECOVERY_PARKED) | TO(RECOVERY_NONE),
    [RECOVERY_SAVED] = TO(RECOVERY_NONE),
    [RECOVERY_REFUSED] = TO(RECOVERY_NONE),
    [RECOVERY_REJOINING] = TO(RECOVERY_NONE),
};
const struct lifecycle recovery_lifecycle = {"recovery", RECOVERY_STATES, names, next};
_Static_assert(sizeof names / sizeof *names == RECOVERY_STATES, "a name for each");

const char *recovery_path_name(enum recovery_path path)
{
    static const char *const paths[] = {"restart", "keep", "planned"};
    _Static_assert(sizeof paths / sizeof *paths == PATHS, "a name for each");
    CHECK((unsigned)path < PATHS);
    return paths[path];
}

void recovery_state_move(uint8_t *state, enum recovery_state to)
{
    CHECK(*state < RECOVERY_STATES && to < RECOVERY_STATES);
    if (*state != to)
        lifecycle_move(&recovery_lifecycle, state, (uint8_t)to);
}
