/* units.h - times, durations and quantities as text.
 *
 * Times are nanoseconds since 1970 (UTC, no leap seconds) in int64_t named *_ns; durations are nanoseconds
 * too.
 */
#ifndef PHX_BASE_UNITS_H
#define PHX_BASE_UNITS_H

#include "base/str.h"

#define NS_PER_US     INT64_C(1000)
#define NS_PER_MS     INT64_C(1000000)
#define NS_PER_SECOND INT64_C(1000000000)

/* Writes "2026-08-21T07:05:09Z" (RFC 3339, whole seconds, as Kubernetes writes metav1.Time). */
void time_format(int64_t time_ns, char ret_text[32]);
/* Writes the time with microseconds, as metav1.MicroTime. */
void time_format_micro(int64_t time_ns, char ret_text[40]);
/* Parses an RFC 3339 time with optional fraction. Returns false if malformed or outside int64_t. */
bool time_parse(struct str text, int64_t *ret_time_ns);
/* Writes an age as kubectl prints it: "5s", "2m3s", "17m", "3h4m", "2d5h", "94d" (apimachinery's
 * HumanDuration). */
void age_format(int64_t duration_ns, char ret_text[24]);
/* Writes a duration for people: "340 us", "12.3 ms", "4.56 s", "2m03s". */
void duration_format(int64_t duration_ns, char ret_text[24]);
/* Parses "250ms", "3s", "1.5h", "2m30s", "7d" or a bare number of seconds. Returns false if malformed,
 * negative or too large. */
bool duration_parse(struct str text, int64_t *ret_duration_ns);
/* Parses a Kubernetes quantity ("4", "500m", "2Gi", "1e3", "1.5M") to thousandths, rounded up. Returns false
 * if malformed, negative or beyond int64_t.
 * https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ */
bool quantity_parse_milli(struct str text, int64_t *ret_milli);
bool quantity_parse_nano(struct str text, int64_t *ret_nano); /* the same in 10^-9 */
enum { QUANTITY_TEXT_MAX = 32 };
/* Writes a quantity in the API server's only form: "1024Mi" is "1Gi", "0.5" is "500m", "1e6" stays. Returns
 * false if malformed, negative, or beyond 2^63 - 1. */
bool quantity_canonical(struct str text, char ret_text[QUANTITY_TEXT_MAX]);
void bytes_format(uint64_t bytes, char ret_text[24]); /* "17 B", "1.4 KB", "3.2 GB" (powers of 1000) */

#endif
