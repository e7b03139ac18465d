/* ending.h - SIGINT and SIGTERM of a command that serves until it is told to end. */
#ifndef PHX_CMD_ENDING_H
#define PHX_CMD_ENDING_H

#include <signal.h>

/* Blocks both signals, and returns a flag that is set when one of them has been let in. A loop lets them in
 * by ppoll() with an empty mask and nowhere else, so that none is lost between its look at the flag and its
 * wait. Call it before threads are made; it may be called again. */
const volatile sig_atomic_t *ending_await(void);

#endif
