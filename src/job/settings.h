/* settings.h - what a task is told from outside: the environment and the caller's options, checked once at
 * the start. See phalanx.h for the variables. */
#ifndef PHX_JOB_SETTINGS_H
#define PHX_JOB_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "phalanx/phalanx.h"

#define JOB_WORLD_MAX 65536

struct job_settings {
    bool standalone;        /* no agent */
    char agent_socket[108]; /* fits sun_path; empty when stand-alone */
    uint64_t task_uid;
    uint32_t rank, world, attempt;
    uint32_t worlds; /* gangs whose checkpoints are committed together; 1 when PHX_WORLDS doesn't say */
    char jobset[PHX_KEY_MAX];
    char host[256], port[8];   /* of the rendezvous; empty when world is 1 */
    char name[256];            /* this rank's host name */
    char address[64];          /* empty: what the hub sees */
    char checkpoint_dir[3072]; /* empty: none */
    char memory_dir[3072];     /* of checkpoints in memory; empty: none */
    char flight_prefix[1024];  /* of the files of flight records; empty: none are written */
    int64_t join_timeout_ms, leave_timeout_ms;
};

/* Reads the environment (so, like getenv, not beside a setenv). */
int job_settings_load(const struct phx_options *options, struct job_settings *ret_settings,
                      struct phx_error *error);

/* Strict decimal: digits only, no sign, at most `max`. False for anything else. */
bool job_parse_number(const char *text, uint64_t max, uint64_t *ret_value);

#endif
