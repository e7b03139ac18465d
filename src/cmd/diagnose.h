/* diagnose.h - parts that phalanx diagnose of a folder (cmd_diagnose.c) and of a running job
 * (diagnose_live.c) share. */
#ifndef PHX_CMD_DIAGNOSE_H
#define PHX_CMD_DIAGNOSE_H

#include "cmd/client.h"
#include "core/diagnose/diagnose.h"

struct diagnose_options {
    struct client_options client;
    const char *order;  /* an errand's body; NULL: none */
    const char *folder; /* or KIND/NAME */
    const char *save;   /* NULL: nowhere */
    uint32_t ranks;
    bool json, verbose;
};

/* Prints the report, as text or one JSON object; EXIT_OK: no hang, EXIT_FAILED: a hang. `refused`: dumps that
 * could not be read. */
int diagnose_report(const struct diagnose_options *options, const struct diagnosis *diagnosis,
                    size_t refused);
/* Asks a running cluster; the usual exit codes besides. */
int diagnose_live(const struct diagnose_options *options);

#endif
