/* settings.h - the settings of a task: the environment and the caller's options, checked once at the start.
 * See phalanx.h for the variables.
 */
#ifndef PHX_JOB_LINK_SETTINGS_H
#define PHX_JOB_LINK_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "job/checkpoint/retention.h"
#include "job/gang/seal.h"
#include "job/link/wire.h"
#include "phalanx/phalanx.h"

#define JOB_WORLD_MAX 65536

struct job_settings {
    bool standalone;        /* no agent */
    char agent_socket[108]; /* fits sun_path; empty when stand-alone */
    uint64_t task_uid;
    uint32_t rank, world, attempt;
    uint32_t full_world; /* ranks of the job when no machine is missing; >= world */
    bool rejoins;        /* the program joins later attempts in the same process */
    bool spare;          /* has no rank (rank and world are 0) until the agent gives it one */
    uint32_t worlds;     /* gangs whose checkpoints are committed together; 1 without PHX_WORLDS */
    char jobset[PHX_KEY_MAX];
    char host[256], port[8];        /* of the rendezvous; empty when world is 1 */
    char name[256];                 /* this rank's host name */
    char address[64];               /* empty: the address that the coordinator sees */
    char machine_address[64];       /* of this machine, as the agent names it; empty: not known */
    uint8_t key[SEAL_KEY_SIZE];     /* stand-alone: the gang's; zeros without PHX_KEY_FILE */
    uint64_t peer_quota;            /* bytes of other ranks' copies; 0: half of the folder's file system */
    char checkpoint_dir[3072];      /* empty: none */
    bool store;                     /* the agent has an object store; checkpoint_dir is empty then */
    uint64_t peer_every;            /* every n-th hold also goes to a peer; 0: only holds with PHX_IN_PEER */
    uint64_t peer_rate, fetch_rate; /* bytes per second to a peer, and from one; 0: no limit */
    bool spread_racks;              /* the peer is on another rack, not only on another machine */
    bool peer_delta;                /* only changed blocks go to a peer */
    bool peer_prove;                /* data that ranks send each other has a tag */
    uint64_t peer_zstd;             /* level of compression of copies to a peer; 0: none */
    char zstd_library[256];         /* as dlopen takes it */
    bool verify_writes;             /* each written shard is read back */
    struct retention keep;          /* which committed checkpoints are kept; without any commits */
    uint64_t mttf_s;                /* of the whole job, expected; 0: not known */
    uint64_t interval;              /* steps between checkpoints if the program sets none; 0: not set */
    char memory_dir[3072];    /* of checkpoints in memory; empty: none */
    char flight_prefix[1024]; /* of the files of flight records; empty: none are written */
    int64_t join_timeout_ms, leave_timeout_ms;
};

/* Reads and checks the environment and the options. No other thread may call setenv at the same time. Returns
 * PHX_ERROR_INVALID with the name of the wrong variable or option. */
int job_settings_load(const struct phx_options *options, struct job_settings *ret_settings,
                      struct phx_error *error);

/* Takes rank, world, full world and rendezvous from `to`; a spare becomes a rank. The settings are untouched
 * on failure. */
int job_settings_move(struct job_settings *settings, const struct jobwire_rejoin *to,
                      struct phx_error *error);
/* Sets the variables of this process's environment that describe rank, world and attempt, for code that reads
 * them there. Calls setenv, so no other thread may call getenv at the same time. */
void job_settings_export(const struct job_settings *settings, uint32_t attempt);

/* Reads a decimal number: digits only, no sign, at most `max`. Returns false for anything else. */
bool job_parse_number(const char *text, uint64_t max, uint64_t *ret_value);

#endif
