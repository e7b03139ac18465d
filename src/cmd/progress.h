/* progress.h - one line a jobset: bar, step, loss, steps per second, attempt, state. */
#ifndef PHX_CMD_PROGRESS_H
#define PHX_CMD_PROGRESS_H

#include "cmd/client.h"

struct progress_row {
    struct str key, name; /* "namespace/name", in the view's arena */
    struct str state;     /* static text or in the row's arena */
    int64_t step, total, attempt, restarts, checkpoint, ettr_ppm;
    double rate;        /* steps per second */
    struct buf metrics; /* "loss 2.341" */
    struct buf why;
    struct buf last_event; /* newest restart, as printed */
    int64_t restarts_shown;
    bool finished, failed, gone;
    int64_t printed_ns;
    struct buf printed; /* the plain line that was printed last */
};
struct progress_view {
    VEC(struct progress_row *) rows;
    struct arena arena;
    bool terminal, utf8, color;
    size_t lines_shown; /* of the live block on the screen */
    int64_t drawn_ns;
};

void progress_begin(struct progress_view *view);
/* Takes a JobSet as the API shows it; `gone`: it was deleted. */
void progress_take(struct progress_view *view, const struct doc *jobset, bool gone);
/* Draws the live block (terminal), or prints the lines that are news (otherwise, at most one a second and
 * jobset). */
void progress_draw(struct progress_view *view, bool last);
void progress_done(struct progress_view *view);

#endif
