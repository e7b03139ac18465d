/* ending.h - SIGINT and SIGTERM for a command that serves until one of them arrives. */
#ifndef PHX_CMD_ENDING_H
#define PHX_CMD_ENDING_H

#include <signal.h>

/* Blocks both signals, and returns a flag that is set when one of them is delivered. The caller's loop must
 * unblock them only in ppoll(), with an empty mask: then no signal is lost between its test of the flag and
 * its wait. Call it before threads are started; it may be called again. */
const volatile sig_atomic_t *ending_await(void);

#endif
