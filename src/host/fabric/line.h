/* line.h - a text session over TCP with a deadline for each wait: the ground of the SCPI and TL1 drivers.
 *
 * Blocking; one owner. Results are enum phx_switch_status.
 */
#ifndef PHX_HOST_FABRIC_LINE_H
#define PHX_HOST_FABRIC_LINE_H

#include "base/str.h"
#include "phalanx/driver.h"

enum { LINE_ANSWER_MAX = 1 << 20 };

struct line {
    int fd;
    uint32_t timeout_ms;
    struct buf in;
    size_t taken; /* bytes of the answer that the caller has; dropped with the next wait */
};

/* Sets status and message; returns `status`. `error` may be NULL. */
int switch_fail(struct phx_switch_error *error, enum phx_switch_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Connects to "HOST:PORT". TIMEOUT, LOST, or INVALID for the address itself. */
int line_open(struct line *line, const char *address, uint32_t timeout_ms, struct phx_switch_error *error);
void line_close(struct line *line);
int line_send(struct line *line, struct str text, struct phx_switch_error *error);
/* Waits for an answer; `length` returns the bytes of the first whole one, or 0. *ret_answer is valid until
 * the next call. */
int line_receive(struct line *line, size_t (*length)(struct str bytes), struct str *ret_answer,
                 struct phx_switch_error *error);

#endif
