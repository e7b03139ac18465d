#include "job/loop/pace.h"

/* Accumulates the time since the phase began. */
static void book(struct job_pace *pace, int64_t now_ns)
{
    if (pace->phase == PHX_PHASE_COMMUNICATE || pace->phase == PHX_PHASE_SAVE)
        pace->away_ns += now_ns - pace->phase_ns;
    pace->phase_ns = now_ns;
}

enum phx_phase job_pace_phase(struct job_pace *pace, enum phx_phase phase, int64_t now_ns)
{
    enum phx_phase before = pace->phase;
    book(pace, now_ns);
    pace->phase = phase >= PHX_PHASE_NONE && phase <= PHX_PHASE_SAVE ? phase : PHX_PHASE_NONE;
    return before;
}

void job_pace_step(struct job_pace *pace, int64_t now_ns)
{
    book(pace, now_ns);
    if (pace->step_ns) {
        int64_t elapsed_ns = now_ns - pace->step_ns;
        pace->steps++;
        pace->elapsed_ns += elapsed_ns;
        pace->own_ns += elapsed_ns > pace->away_ns ? elapsed_ns - pace->away_ns : 0;
    }
    pace->step_ns = now_ns;
    pace->away_ns = 0;
}

void job_pace_fill(const struct job_pace *pace, struct jobwire_pace *ret)
{
    *ret =
        (struct jobwire_pace){pace->steps, (uint64_t)pace->elapsed_ns / 1000, (uint64_t)pace->own_ns / 1000};
}
