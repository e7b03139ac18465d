/* states.c - the lifecycles of tasks, Jobs, gangs and moves; names of JobSets' conditions and ends. */
#include "core/job/facts.h"

static const char *const task_names[TASK_STATES] = {"Pending",  "Placed",    "Starting", "Running",
                                                    "Stopping", "Succeeded", "Failed"};
static const uint32_t task_next[TASK_STATES] = {
    [TASK_PENDING] = LIFECYCLE_TO(TASK_PLACED) | LIFECYCLE_TO(TASK_FAILED),
    [TASK_PLACED] = LIFECYCLE_TO(TASK_STARTING) | LIFECYCLE_TO(TASK_FAILED) | LIFECYCLE_TO(TASK_PENDING),
    [TASK_STARTING] = LIFECYCLE_TO(TASK_RUNNING) | LIFECYCLE_TO(TASK_STOPPING) |
                      LIFECYCLE_TO(TASK_SUCCEEDED) | LIFECYCLE_TO(TASK_FAILED) | LIFECYCLE_TO(TASK_PLACED),
    [TASK_RUNNING] = LIFECYCLE_TO(TASK_STOPPING) | LIFECYCLE_TO(TASK_SUCCEEDED) | LIFECYCLE_TO(TASK_FAILED) |
                     LIFECYCLE_TO(TASK_PLACED),
    [TASK_STOPPING] = LIFECYCLE_TO(TASK_SUCCEEDED) | LIFECYCLE_TO(TASK_FAILED) | LIFECYCLE_TO(TASK_PLACED),
};
const struct lifecycle task_lifecycle = {"task", TASK_STATES, task_names, task_next};

static const char *const job_state_names[JOB_STATES] = {"Suspended",  "Active", "Failing",
                                                        "Completing", "Failed", "Complete"};
static const uint32_t job_next[JOB_STATES] = {
    [JOB_SUSPENDED] = LIFECYCLE_TO(JOB_ACTIVE),
    [JOB_ACTIVE] = LIFECYCLE_TO(JOB_SUSPENDED) | LIFECYCLE_TO(JOB_FAILING) | LIFECYCLE_TO(JOB_COMPLETING),
    [JOB_FAILING] = LIFECYCLE_TO(JOB_FAILED),
    [JOB_COMPLETING] = LIFECYCLE_TO(JOB_COMPLETE),
};
const struct lifecycle job_lifecycle = {"job", JOB_STATES, job_state_names, job_next};

static const char *const gang_names[GANG_STATES] = {"Queued", "Placed", "Running", "Ended"};
static const uint32_t gang_next[GANG_STATES] = {
    [GANG_QUEUED] = LIFECYCLE_TO(GANG_PLACED) | LIFECYCLE_TO(GANG_ENDED),
    [GANG_PLACED] = LIFECYCLE_TO(GANG_RUNNING) | LIFECYCLE_TO(GANG_ENDED) | LIFECYCLE_TO(GANG_QUEUED),
    [GANG_RUNNING] = LIFECYCLE_TO(GANG_PLACED) | LIFECYCLE_TO(GANG_ENDED),
};
_Static_assert(GANG_QUEUED == 0 && TASK_PENDING == 0, "what was just made waits");
const struct lifecycle gang_lifecycle = {"gang", GANG_STATES, gang_names, gang_next};

static const char *const move_names[MOVE_STATES] = {
    [MOVE_NONE] = "None", [MOVE_ROOM] = "Room", [MOVE_SAVING] = "Saving", [MOVE_LEAVING] = "Leaving"};
static const uint32_t move_next[MOVE_STATES] = {
    [MOVE_NONE] = LIFECYCLE_TO(MOVE_ROOM) | LIFECYCLE_TO(MOVE_SAVING),
    [MOVE_ROOM] = LIFECYCLE_TO(MOVE_SAVING) | LIFECYCLE_TO(MOVE_NONE),
    [MOVE_SAVING] = LIFECYCLE_TO(MOVE_LEAVING) | LIFECYCLE_TO(MOVE_NONE),
    [MOVE_LEAVING] = LIFECYCLE_TO(MOVE_NONE),
};
const struct lifecycle move_lifecycle = {"move", MOVE_STATES, move_names, move_next};

const char *condition_name(enum condition_kind kind)
{
    static const char *const names[CONDITION_KINDS] = {
        "Completed",        "Failed", "Suspended", "StartupPolicyInProgress", "StartupPolicyCompleted",
        "RestartingJobSet",
    };
    CHECK((unsigned)kind < CONDITION_KINDS);
    return names[kind];
}

const char *terminal_state_name(enum terminal_state state)
{
    static const char *const names[] = {
        [TERMINAL_NONE] = "", [TERMINAL_COMPLETED] = "Completed", [TERMINAL_FAILED] = "Failed"};
    _Static_assert(sizeof names / sizeof *names == TERMINAL_STATES, "a name for each");
    CHECK((unsigned)state < TERMINAL_STATES);
    return names[state];
}
