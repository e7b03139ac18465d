/* agent.h - the machine's side of drive: what every host does between an agent (core/agent/agent.h) and the
 * world. Pure as the rest of drive.
 *
 * Rank tables. A START of a large gang refers to a SHEET, the gang's rank table, which came before it on the
 * same session. Each machine keeps the bytes of its newest, which are few; what they say of thousands of
 * ranks is read once for all machines and starts of a process.
 */
#ifndef PHX_DRIVE_AGENT_H
#define PHX_DRIVE_AGENT_H

#include "base/error.h"
#include "core/agent/message.h"

/* The newest SHEET of a machine's session. Zeroed: none. */
struct machine_sheet {
    uint64_t number;
    struct buf bytes;
};
void machine_sheet_keep(struct machine_sheet *sheet, const struct packed_sheet *packed);
void machine_sheet_drop(struct machine_sheet *sheet); /* the session has ended */

/* The SHEET that was read last, for all machines of a process. */
struct sheet_reader;
struct sheet_reader *sheet_reader_new(void);
void sheet_reader_free(struct sheet_reader *reader);
/* Makes a launch that refers to a SHEET whole again; it then points into `reader`, until the next call. On
 * failure the session is to be closed: on the next one the SHEET is sent again. */
int machine_sheet_put_back(const struct machine_sheet *sheet, struct sheet_reader *reader,
                           struct task_launch *launch, struct error *error);

#endif
