/* diagnose.h - shared by the two forms of `phalanx diagnose`: of a folder (cmd_diagnose.c), and of a running
 * job (diagnose_live.c). */
#ifndef PHX_CMD_DIAGNOSE_H
#define PHX_CMD_DIAGNOSE_H

#include "cmd/client.h"
#include "core/diagnose/diagnose.h"

struct diagnose_options {
    struct client_options client;
    const char *order;  /* an errand's body; NULL: none */
    const char *folder; /* or KIND/NAME */
    const char *save;   /* where to save the dumps; NULL: nowhere */
    uint32_t ranks;
    bool json, verbose;
};

/* Prints the report, as text or one JSON object. `refused` is the number of dumps that could not be read.
 * Returns EXIT_OK if there is no hang, EXIT_FAILED if there is one. */
int diagnose_report(const struct diagnose_options *options, const struct diagnosis *diagnosis,
                    size_t refused);
/* Diagnoses a job of a running cluster. Returns as diagnose_report, or another of the usual exit codes. */
int diagnose_live(const struct diagnose_options *options);

#endif
