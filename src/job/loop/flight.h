/* flight.h - the flight record: the barriers that this rank has passed, newest last. The agent reads it at
 * any time (wire.h, flight segment); `phalanx diagnose` reads it as a file, together with the other ranks'
 * records (docs/diagnose.md describes the form).
 *
 * The record is always kept: it costs two clock readings a barrier and one a step. If PHX_FLIGHT_PREFIX is
 * set, the record is written to the file of that prefix and the rank number, when a barrier times out and
 * when the agent gives notice. The library's thread writes it at a notice, so a rank whose own threads hang
 * has a file too. A new file replaces the old one atomically (it is written under another name and renamed).
 */
#ifndef PHX_JOB_LOOP_FLIGHT_H
#define PHX_JOB_LOOP_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "job/link/settings.h"
#include "job/link/wire.h"

struct job_flight {
    struct jobwire_flight *record; /* in memory that the agent can read, if fd is not -1 */
    int fd;                        /* of that memory; -1: the record is in private memory */
    bool due;                      /* the library's thread must write the file */
};

/* Allocates the record. Returns false if there is no memory. */
bool job_flight_open(struct job_flight *flight);
void job_flight_close(struct job_flight *flight);
/* Clears the record and writes rank, world and attempt into it. Call it at each attempt's beginning. */
void job_flight_show(struct job_flight *flight, const struct job_settings *settings, uint32_t attempt);

/* Record that this rank has entered barrier `number`, and that the barrier is complete. A second call for the
 * same barrier does nothing (several threads may wait for one barrier). */
void job_flight_begin(struct job_flight *flight, uint64_t number);
void job_flight_end(struct job_flight *flight, uint64_t number);
/* Records that `step` steps are done. */
void job_flight_step(struct job_flight *flight, uint64_t step);

/* Writes the file from a copy of the record, so no lock is needed. Does nothing without a prefix. Failures
 * are ignored: the file serves the diagnosis of a job that has failed anyway. */
void job_flight_write(const struct jobwire_flight *record, const struct job_settings *settings);

#endif
