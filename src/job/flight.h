/* flight.h - the flight record: what this rank did together with all others, newest last, as a file that
 * `phalanx diagnose` reads beside those of the other ranks (docs/diagnose.md has the form).
 *
 * Kept always, as it costs two clock readings a barrier. Written when PHX_FLIGHT_PREFIX is set, to that
 * prefix and the rank: when a barrier's time is over, and when the agent gives notice, also of a rank whose
 * own threads hang. The file takes its place at once (it is written beside it and renamed) and is replaced by
 * the next one. */
#ifndef PHX_JOB_FLIGHT_H
#define PHX_JOB_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "job/settings.h"

#define JOB_FLIGHT_MAX 64 /* barriers kept */

struct job_flight_entry {
    int64_t begun_ns, ended_ns; /* wall clock; 0: not yet */
};
struct job_flight {
    struct job_flight_entry entries[JOB_FLIGHT_MAX]; /* of barrier n at n % JOB_FLIGHT_MAX */
    uint64_t begun, ended;                           /* barriers, from 1; they follow each other */
    uint64_t step;
    bool step_known, due; /* due: the library's thread is to write it */
};

/* This rank has come to barrier `number`; everybody has. Again for the same one: nothing (several threads may
 * wait for one barrier). */
void job_flight_begin(struct job_flight *flight, uint64_t number);
void job_flight_end(struct job_flight *flight, uint64_t number);

/* Writes a copy, without a lock. What goes wrong is not told: the record is for a job that has gone wrong
 * anyway. Nothing where no prefix is set. */
void job_flight_write(const struct job_flight *flight, const struct job_settings *settings, uint32_t attempt);

#endif
