/* markup.h - text in XML and HTML (XML 1.0, sections 2.2 and 2.4). */
#ifndef PHX_DOC_MARKUP_H
#define PHX_DOC_MARKUP_H

#include "base/str.h"

/* Appends text as the content of an element or of a quoted attribute: `&`, `<`, `>` and `"` become
 * references, and control characters, most of which XML forbids, are left out. */
void markup_add(struct buf *out, struct str text);
void markup_add_char(struct buf *out, char c); /* the same for one byte */

#endif
