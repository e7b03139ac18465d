/* pace.h - how a rank spends its time between steps: its own work, told from communication, checkpoints and
 * waiting. A clock's reading a call; the caller's mutex covers it. */
#ifndef PHX_JOB_LOOP_PACE_H
#define PHX_JOB_LOOP_PACE_H

#include "job/link/wire.h"
#include "phalanx/phalanx.h"

/* Zeroed: nothing has begun. */
struct job_pace {
    enum phx_phase phase;
    int64_t phase_ns; /* monotonic; since when, as far as it is not in away_ns yet */
    int64_t step_ns;  /* of the last step; 0: none was made */
    int64_t away_ns;  /* since then, not the rank's own work */
    int64_t own_ns, elapsed_ns;
    uint64_t steps;
};

/* Another phase begins; returns the one before. */
enum phx_phase job_pace_phase(struct job_pace *pace, enum phx_phase phase, int64_t now_ns);
void job_pace_step(struct job_pace *pace, int64_t now_ns); /* a step is done */
void job_pace_fill(const struct job_pace *pace, struct jobwire_pace *ret);

#endif
