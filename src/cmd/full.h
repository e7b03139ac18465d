/* full.h - the two programs behind the one command.
 *
 * `phalanx` holds the commands that talk to a controller over plain HTTP and links nothing but libc,
 * libyaml and protobuf-c, so that it starts in a millisecond. `phalanx-full`, beside it, has every
 * command, and HTTPS. The two share their sources: a command, or HTTPS, that `phalanx` lacks is a weak
 * symbol there, and the process goes on as phalanx-full with the same arguments. Users need not know
 * phalanx-full by its name.
 */
#ifndef PHX_CMD_FULL_H
#define PHX_CMD_FULL_H

/* Remembers the arguments of the process; main calls this first. */
void full_begin(char **argv);
/* Goes on as phalanx-full. Returns an exit code, after a message, only if that program cannot be started. */
int full_run(void);

#endif
