/* progress.h - the progress of jobsets: a bar and facts each on a terminal, lines of text or JSON otherwise.
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
    bool resumed, resumed_shown; /* from which step the newest restart went on is known; has been told */
    bool finished, failed, gone;
    int64_t printed_ns;
    struct buf printed;       /* the plain line that was printed last, */
    struct str printed_state; /* and its state */
};
struct progress_view {
    VEC(struct progress_row *) rows;
    struct arena arena;
    bool terminal, utf8, color, json;
    size_t lines_shown; /* of the live block on the screen */
    int64_t drawn_ns;
};

/* `json`: one JSON object a line whenever something is news, also on a terminal. */
void progress_begin(struct progress_view *view, bool json);
/* Takes a JobSet as the API shows it; `gone`: it was deleted. */
void progress_take(struct progress_view *view, const struct doc *jobset, bool gone);
/* Draws the live block (terminal), or prints the lines that are news (otherwise, at most one a second and
 * jobset). */
void progress_draw(struct progress_view *view, bool last);
/* After the last drawing: why a jobset failed, from its object read alone. */
void progress_failure(struct progress_view *view, const struct doc *jobset);
void progress_done(struct progress_view *view);

#endif
