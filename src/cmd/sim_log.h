/* sim_log.h - writes the log of a simulated controller to a file, as a real controller does
 * (host/store/store.h).
 *
 *     struct sim_log *log = sim_log_open("sim.db", &error);   // a file that does not exist yet
 *     options.keep = sim_log_keep, options.keep_context = log;
 *     simulation_run(&options, &outcome);
 *     int rc = sim_log_close(log, &error);                    // the first failure of all
 *
 * Records are appended in large groups, because each append waits for the disk.
 */
#ifndef PHX_CMD_SIM_LOG_H
#define PHX_CMD_SIM_LOG_H

#include "drive/ports.h"

struct sim_log;

/* Creates the file. Returns NULL on failure: ERROR_EXISTS if the file exists. */
struct sim_log *sim_log_open(const char *path, struct error *error);
/* Takes copies of records, for simulation_run(). The first failure to append drops all later records. */
void sim_log_keep(void *log, const struct drive_record *records, size_t count);
/* Appends the remaining records and frees the log. Returns the first failure. */
int sim_log_close(struct sim_log *log, struct error *error);

#endif
