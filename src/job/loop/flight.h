/* flight.h - the flight record: the barriers that this rank has passed, newest last. The agent reads it at
 * any time (wire.h, flight segment); `phalanx diagnose` reads it as a file, together with the other ranks'
 * records (docs/diagnose.md describes the form).
 *
 * The record is always kept: it costs two clock readings a barrier and one a step. The file is written if
 * PHX_FLIGHT_PREFIX is set, to that prefix and the rank: when a barrier times out, and when the agent gives
 * notice, also of a rank whose own threads hang. Each file replaces the one before it at once (it is written
 * under another name and renamed).
 */
#ifndef PHX_JOB_LOOP_FLIGHT_H
#define PHX_JOB_LOOP_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "job/link/settings.h"
#include "job/link/wire.h"

struct job_flight {
    struct jobwire_flight *record; /* in memory that the agent can read, where there is such */
    int fd;                        /* of it; -1: there is none */
    bool due;                      /* the library's thread is to write the file */
};

/* False: out of memory. */
bool job_flight_open(struct job_flight *flight);
void job_flight_close(struct job_flight *flight);
/* Writes into the record, from joining on, whose record it is. Another attempt begins without barriers and
 * steps. */
void job_flight_show(struct job_flight *flight, const struct job_settings *settings, uint32_t attempt);

/* This rank has entered barrier `number`; all ranks have. Calling it again for the same barrier does nothing
 * (several threads may wait for one barrier). */
void job_flight_begin(struct job_flight *flight, uint64_t number);
void job_flight_end(struct job_flight *flight, uint64_t number);
void job_flight_step(struct job_flight *flight, uint64_t step);

/* Writes a copy, without a lock. What goes wrong is not told: the record is for a job that has gone wrong
 * anyway. Nothing where no prefix is set. */
void job_flight_write(const struct jobwire_flight *record, const struct job_settings *settings);

#endif
