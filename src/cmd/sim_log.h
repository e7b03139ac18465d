/* sim_log.h - the log of a simulated controller in a file, as a real one keeps its own (host/store/store.h).
 *
 *     struct sim_log *log = sim_log_open("sim.db", &error);   // a file that is not there yet
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

/* ERROR_EXISTS: there is such a file already. NULL on failure. */
struct sim_log *sim_log_open(const char *path, struct error *error);
void sim_log_keep(void *log, const struct drive_record *records, size_t count);
/* Appends what is left, and frees the log. */
int sim_log_close(struct sim_log *log, struct error *error);

#endif
