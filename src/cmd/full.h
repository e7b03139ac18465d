/* full.h - the two programs behind the one command.
 *
 * `phalanx` contains the commands that talk to a controller over plain HTTP. It links only libc, libyaml and
 * protobuf-c, and starts in a millisecond. `phalanx-full`, in the same folder, contains every command and
 * HTTPS. Both are built from the same sources: what `phalanx` lacks is a weak symbol there, and the process
 * replaces itself by phalanx-full with the same arguments. Users need not know the name phalanx-full.
 */
#ifndef PHX_CMD_FULL_H
#define PHX_CMD_FULL_H

/* Remembers the arguments of the process; main calls this first. */
void full_begin(char **argv);
/* Replaces the process by phalanx-full. Returns only if that program cannot be started: an exit code, after a
 * message. */
int full_run(void);

#endif
