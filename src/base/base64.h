/* base64.h - RFC 4648 base64: with padding in the standard alphabet, and "base64url" (section 5)
 * without. */
#ifndef PHX_BASE_BASE64_H
#define PHX_BASE_BASE64_H

#include "base/str.h"

void base64_encode(struct str bytes, struct buf *out);
/* Appends the decoded bytes. Returns false if the text is not base64 (also without padding, or with stray
 * bits); `out` may have grown then. With `out` NULL it only checks. Line breaks are skipped, as in
 * Kubernetes. */
bool base64_decode(struct str text, struct buf *out);
void base64url_encode(struct str bytes, struct buf *out);
/* Appends the decoded bytes. Returns false if the text is not base64url in its only form: padding, line
 * breaks and stray bits are refused. */
bool base64url_decode(struct str text, struct buf *out);

#endif
