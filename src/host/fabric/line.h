/* line.h - a text session over TCP with a deadline for each wait: the base of the SCPI and TL1 drivers.
 *
 * Functions block. A line has one owner. Results are enum phx_switch_status.
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
    size_t taken; /* bytes of the last answer returned; dropped by the next line_receive() */
};

/* Sets status and message of `error`, which may be NULL, and returns `status`. */
int switch_fail(struct phx_switch_error *error, enum phx_switch_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Connects to "HOST:PORT". Returns TIMEOUT, LOST, or INVALID if the address has another form. `timeout_ms`
 * limits the connection and each later wait. */
int line_open(struct line *line, const char *address, uint32_t timeout_ms, struct phx_switch_error *error);
void line_close(struct line *line);
/* Sends the whole text. Returns TIMEOUT or LOST if that fails. */
int line_send(struct line *line, struct str text, struct phx_switch_error *error);
/* Waits for an answer. `length` returns the number of bytes of the first whole answer, or 0 if it is
 * incomplete. *ret_answer is valid until the next call. Returns TIMEOUT, LOST, or GARBLED for more than
 * LINE_ANSWER_MAX bytes. */
int line_receive(struct line *line, size_t (*length)(struct str bytes), struct str *ret_answer,
                 struct phx_switch_error *error);

#endif
