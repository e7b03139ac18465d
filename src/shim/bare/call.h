/* call.h - the functions that a processor's own file provides for libc.c: a system call, the entry and
 * vfork(). */
#ifndef PHX_SHIM_BARE_CALL_H
#define PHX_SHIM_BARE_CALL_H

/* The kernel's result as it is: -4095 to -1 is an error. */
long bare_call(long number, long a, long b, long c, long d, long e, long f);

extern int bare_errno;

#endif
