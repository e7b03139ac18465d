/* base64.h - RFC 4648 base64 with padding, the standard alphabet. */
#ifndef PHX_BASE_BASE64_H
#define PHX_BASE_BASE64_H

#include "base/str.h"

void base64_encode(struct str bytes, struct buf *out);
/* Appends the bytes; false: not base64 (also: no padding, stray bits), `out` may have grown. NULL `out`:
 * only checks.
 * Line breaks are skipped, as Kubernetes does. */
bool base64_decode(struct str text, struct buf *out);

#endif
