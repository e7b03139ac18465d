/* progress.h - shows the progress of jobsets: a bar and facts for each on a terminal, lines of text or JSON
 * otherwise.
 *
 * A line is never wider than the screen: the least useful facts are left out. The reason why a jobset waits
 * is below its line; restarts and failures are printed once, above the block.
 */
#ifndef PHX_CMD_PROGRESS_H
#define PHX_CMD_PROGRESS_H

#include "cmd/client.h"

struct progress_row {
    struct str key, namespace_, name; /* key: "namespace/name"; in the view's arena */
    struct str state;                 /* static text or in the row's arena */
    int64_t step, total, attempt, restarts, checkpoint, ettr_ppm;
    int64_t created_ns, finished_ns; /* 0: unknown */
    double rate;                     /* steps per second */
    struct buf metrics;              /* "loss 2.341" */
    struct buf why;
    struct buf last_event; /* newest restart, as printed */
    int64_t restarts_shown;
    bool resumed, resumed_shown; /* the step that the newest restart resumed from is known; was printed */
    bool finished, failed, gone;
    int64_t printed_ns;
    struct buf printed;       /* the plain line that was printed last */
    struct str printed_state; /* the state in that line */
};
struct progress_view {
    VEC(struct progress_row *) rows;
    struct arena arena;
    bool terminal, utf8, color, json;
    size_t lines_shown; /* of the live block on the screen */
    int64_t drawn_ns;
};

/* Initialises a view. With `json` it prints a JSON object a line for each change, even on a terminal. */
void progress_begin(struct progress_view *view, bool json);
/* Takes a JobSet in the form of the API; `gone` means that it was deleted. */
void progress_take(struct progress_view *view, const struct doc *jobset, bool gone);
/* Draws the live block on a terminal. Otherwise prints the lines that have changed, at most one a second for
 * each jobset. `last`: no drawing follows. */
void progress_draw(struct progress_view *view, bool last);
/* Prints why a jobset failed, from its object read alone; nothing if it has not failed. Call it after the
 * last drawing. */
void progress_failure(struct progress_view *view, const struct doc *jobset);
void progress_done(struct progress_view *view);

#endif
