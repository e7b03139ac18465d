/* pace.h - how a rank spends its time between steps: its own work, as opposed to communication, checkpoints
 * and waiting. Each call costs one reading of the clock, by the caller. The caller's lock covers the
 * struct. */
#ifndef PHX_JOB_LOOP_PACE_H
#define PHX_JOB_LOOP_PACE_H

#include "job/link/wire.h"
#include "phalanx/phalanx.h"

/* Begins as all zeros. */
struct job_pace {
    enum phx_phase phase;
    int64_t phase_ns; /* monotonic; from here on the phase is not in away_ns yet */
    int64_t step_ns;  /* monotonic time of the last step; 0: none was made */
    int64_t away_ns;  /* time since the last step that was not the rank's own work */
    int64_t own_ns, elapsed_ns;
    uint64_t steps;
};

/* Begins a phase; returns the previous one. */
enum phx_phase job_pace_phase(struct job_pace *pace, enum phx_phase phase, int64_t now_ns);
void job_pace_step(struct job_pace *pace, int64_t now_ns); /* call it when a step is done */
/* Fills in the sums since the first step. */
void job_pace_fill(const struct job_pace *pace, struct jobwire_pace *ret);

#endif
