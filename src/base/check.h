/* check.h - assertions that stay on in every build.
 *
 * A CHECK states a condition on which the code around it relies. It guards against our own mistakes only: a
 * user's mistake is an error value (error.h), the world's is an event. A failed CHECK prints the place and
 * the condition and aborts, so that no wrong state ever reaches the log.
 */
#ifndef PHX_BASE_CHECK_H
#define PHX_BASE_CHECK_H

/* Prints "FILE:LINE: check failed: CONDITION" to standard error and aborts. Thread-safe. */
_Noreturn void check_failed(const char *file, int line, const char *condition);

#define CHECK(condition)    ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))
#define CHECK_UNREACHABLE() check_failed(__FILE__, __LINE__, "unreachable")

#endif
